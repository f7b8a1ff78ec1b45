"""Queries in Lucene's notation (`Query.toString`), as it appears in explanations."""

from __future__ import annotations

from typing import assert_never

from searchapp.engines.embedded.java_numbers import printed
from searchapp.engines.embedded.queries.disjunctions import spelled_out, with_terms_as_clauses
from searchapp.engines.embedded.queries.leaf import Leaf
from searchapp.engines.embedded.queries.leaves.match_all import MatchAll
from searchapp.engines.embedded.queries.leaves.match_none import INSIDE_ANOTHER
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
from searchapp.engines.embedded.refusals import unsupported
from searchapp.engines.embedded.schema import Schema


def described(query: Query, schema: Schema) -> str:
    """A query in Lucene's notation.

    Raises:
        EngineRefused: the notation of the query is not known here.
    """
    match query:
        case Leaf():
            return query.described(schema)
        case Constant(inner):
            return f"ConstantScore({described(inner, schema)})"
        case Boost(inner, boost):
            return f"({described(inner, schema)})^{printed(boost)}"
        case TermsDisjunction():
            return described(spelled_out(query), schema)
        case Bool():
            return _bool(with_terms_as_clauses(query), schema)
        case DisMax(queries, tie_breaker):
            parts = " | ".join(_nested(inner, schema) for inner in queries)
            return f"({parts})" + (f"~{printed(tie_breaker)}" if tie_breaker else "")
        case Boosting(positive, _, factor, as_written):
            lowering = f"queryboost(score({described(as_written, schema)}))^{printed(factor)}"
            return f"FunctionScoreQuery({described(positive, schema)}, scored by boost({lowering}))"
        case FunctionScore(inner, functions=()):
            return f"function score ({described(inner, schema)}, functions: [])"
        case FunctionScore():
            # Elasticsearch prints the addresses of objects there, which are others each time.
            raise unsupported("the explanation of `function_score` inside a filter or a constant score")
        case _:
            assert_never(query)


def described_as_filter(query: Query, schema: Schema) -> str:
    """What explanations show in the place of a query that only filters.

    Raises:
        EngineRefused: as `described`.
    """
    inner = _without_scores(query)
    return inner.described_as_filter(schema) if isinstance(inner, Leaf) else described(inner, schema)


def _without_scores(query: Query) -> Query:
    """The query inside whose weight Lucene makes when it only filters."""
    match query:
        case (
            Boost(inner, _)
            | Constant(inner)
            | Boosting(positive=inner)
            | FunctionScore(inner, min_score=None)
        ):
            return _without_scores(inner)
        case FunctionScore() | Leaf() | TermsDisjunction() | Bool() | DisMax():
            return query
        case _:
            assert_never(query)


def _nested(query: Query, schema: Schema) -> str:
    text = described(query, schema)
    return f"({text})" if isinstance(query, Bool | TermsDisjunction) else text


def _bool(query: Bool, schema: Schema) -> str:
    if any(clause == MatchAll() for clause in map(_without_scores, query.must_not)):
        raise unsupported(INSIDE_ANOTHER)
    marks = (("+", query.must), ("-", query.must_not), ("", query.should), ("#", query.filter))
    text = " ".join(mark + _nested(clause, schema) for mark, clauses in marks for clause in clauses)
    return f"({text})~{query.minimum}" if query.minimum > 0 else text
