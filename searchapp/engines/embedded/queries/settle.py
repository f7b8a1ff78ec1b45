"""What Lucene learns from an index before it searches: that all documents match, or all values of a field, or none.

The index settles leaves: see `Leaf.settled`. Explanations show the result, and other rules of rewriting go by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
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
from searchapp.engines.embedded.storage.reader import IndexReader


def settled(query: Query, reader: IndexReader) -> Query:
    """A query as it was written, with what the index tells of the leaves inside."""
    match query:
        case Leaf():
            return query.settled(reader)
        case TermsDisjunction():
            return query
        case Boost(inner, boost):
            return Boost(settled(inner, reader), boost)
        case Constant(inner):
            return Constant(settled(inner, reader))
        case DisMax(queries, tie_breaker):
            return DisMax(_all(queries, reader), tie_breaker)
        case Bool(must, must_not, should, filter, minimum):
            return Bool(
                must=_all(must, reader),
                must_not=_all(must_not, reader),
                should=_all(should, reader),
                filter=_all(filter, reader),
                minimum=minimum,
            )
        case Boosting(positive, negative):
            return replace(query, positive=settled(positive, reader), negative=settled(negative, reader))
        case FunctionScore(query=inner):
            functions = tuple(
                one if one.filter is None else replace(one, filter=settled(one.filter, reader))
                for one in query.functions
            )
            return replace(query, query=settled(inner, reader), functions=functions)
        case _:
            assert_never(query)


def _all(queries: Iterable[Query], reader: IndexReader) -> tuple[Query, ...]:
    return tuple(settled(query, reader) for query in queries)
