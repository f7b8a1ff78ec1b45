"""What Lucene learns from an index before it searches: that all documents match, or all values of a field, or none.

As `FieldExistsQuery.rewrite`, `PointRangeQuery.rewrite` and `IndexOrDocValuesQuery.rewrite` have it. It shows in
explanations, and other rules of rewriting go by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from searchapp.engines.embedded.queries.nodes import (
    Between,
    Bool,
    Boost,
    Boosting,
    Constant,
    DisMax,
    Exists,
    FunctionScore,
    MatchAll,
    MatchNone,
    Query,
)
from searchapp.engines.embedded.storage.reader import FieldReader


class Extents:
    """Knows which documents of an index have values, and between which bounds."""

    def __init__(self, fields: Mapping[str, FieldReader], documents: int) -> None:
        self._fields = fields
        self._documents = documents

    def settled(self, query: Query) -> Query:
        """A query as it was written, with what the index tells of the queries inside."""
        match query:
            case Boost(inner, boost):
                return Boost(self.settled(inner), boost)
            case Constant(inner):
                return Constant(self.settled(inner))
            case DisMax(queries, tie_breaker):
                return DisMax(self._all(queries), tie_breaker)
            case Bool(must, must_not, should, filter, minimum):
                return Bool(
                    self._all(must), self._all(must_not), self._all(should), self._all(filter), minimum
                )
            case Boosting(positive, negative):
                return replace(query, positive=self.settled(positive), negative=self.settled(negative))
            case FunctionScore(query=inner):
                functions = tuple(
                    one if one.filter is None else replace(one, filter=self.settled(one.filter))
                    for one in query.functions
                )
                return replace(query, query=self.settled(inner), functions=functions)
            case Exists(field) if self._in_all(field):
                return MatchAll()
            case Between():
                return self._between(query)
        return query

    def _all(self, queries: Iterable[Query]) -> tuple[Query, ...]:
        return tuple(map(self.settled, queries))

    def _between(self, query: Between) -> Query:
        whole, none = self._fields[query.field].extent(query.low, query.high)
        if whole and self._in_all(query.field):
            return MatchAll()
        if query.is_point:
            return query
        return MatchNone() if none else replace(query, whole=whole)

    def _in_all(self, field: str) -> bool:
        return self._fields[field].statistics.documents == self._documents
