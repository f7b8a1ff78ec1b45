"""How many clauses a query may have, counted as Elasticsearch counts them (`MaxClauseCountQueryVisitor`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from searchapp.engines.embedded.queries.leaf import Leaf
from searchapp.engines.embedded.queries.nodes import (
    Bool,
    Boost,
    Boosting,
    Constant,
    DisMax,
    FunctionScore,
    Query,
    TermsDisjunction,
)
from searchapp.engines.embedded.refusals import invalid

MOST_CLAUSES = 8_192
"""What a server with 512 MB of heap and two cores allows.

Each server has a limit of its own, of 1,024 or more: its heap in MB times 64, divided by its search threads. The
embedded engine has one that is the same everywhere.
"""


def require_few(query: Query) -> None:
    """Refuse a query, as it was written, that has more clauses than a server allows.

    Raises:
        EngineRefused: the query has too many.
    """
    _require(count_of(query))


def _require(count: int) -> None:
    if count > MOST_CLAUSES:
        raise invalid(f"a query has {count:,} clauses, and at most {MOST_CLAUSES:,} are allowed")


def count_of(query: Query) -> int:
    """How many clauses a query counts as.

    Raises:
        EngineRefused: a query inside has too many.
    """
    match query:
        case Leaf():
            return query.clause_count
        case TermsDisjunction(_, terms):
            return len(terms)
        case Boost(inner) | Constant(inner):
            return count_of(inner)
        case DisMax(queries):
            return _all(queries)
        case Bool():
            _require(len(query))
            once = (*dict.fromkeys(query.must_not), *dict.fromkeys(query.filter))
            return _all(query.must) + _all(query.should) + _all(once)
        case Boosting(positive, negative):
            require_few(negative)
            return count_of(positive)
        case FunctionScore():
            for function in query.functions:
                if function.filter is not None:
                    require_few(function.filter)
            return count_of(query.query)
        case _:
            assert_never(query)


def _all(queries: Iterable[Query]) -> int:
    return sum(map(count_of, queries))
