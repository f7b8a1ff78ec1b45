"""The query `nested`, which joins the scores of nested objects to the documents or objects that contain them.

org.apache.lucene.search.join.ToParentBlockJoinQuery
org.elasticsearch.index.query.NestedQueryBuilder
org.elasticsearch.index.search.NestedHelper
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import invalid, unsupported
from searchapp.lucene.index.mapping import ROOT, Schema
from searchapp.lucene.index.reader import IndexReader, Mask, Numbers
from searchapp.lucene.queries.boolean import Bool, TermsDisjunction
from searchapp.lucene.queries.geo import GeoBox
from searchapp.lucene.queries.ip_range import IpRange
from searchapp.lucene.queries.match_all import MatchAll, MatchNone
from searchapp.lucene.queries.number_range import NumberRange
from searchapp.lucene.queries.query import (
    Boost,
    Constant,
    Leaf,
    Parser,
    Query,
    apply_boost_parameter,
    explain,
    required,
    rewrite,
)
from searchapp.lucene.queries.scores import ScoreRows, Scores
from searchapp.lucene.queries.term import Term, TermInSet
from searchapp.lucene.records import Explanation
from searchapp.lucene.similarity import ONE

# Names of the score modes in explanations.
MODES = {"avg": "Avg", "sum": "Total", "max": "Max", "min": "Min", "none": "None"}


@dataclass(frozen=True, slots=True)
class OfPath(Leaf):
    """The nested objects of a path, or the documents, which are no nested objects."""

    path: str

    def documents(self, reader: IndexReader) -> NDArray[Any]:
        return np.flatnonzero(reader.live_mask() if reader.path == self.path else ()).astype(np.int32)

    def notation(self, schema: Schema) -> str:
        if self.path == ROOT:
            return "FieldExistsQuery [field=_primary_term]"
        return f"_nested_path:{self.path}"


@dataclass(frozen=True, slots=True)
class Nested(Query):
    """The members of `scope` (a path) around nested objects of `path` that match a query."""

    query: Query
    path: str
    scope: str
    mode: str  # how the scores of the objects are combined, a key of `MODES`

    def children(self) -> tuple[Query, ...]:
        return (self.query,)

    def with_children(self, children: tuple[Query, ...]) -> Query:
        return Nested(children[0], self.path, self.scope, self.mode)

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:
        yield from ()  # the scores of documents do not include them

    def _objects(self, rows: ScoreRows, scope: Mask | None) -> tuple[ScoreRows, Numbers, Mask | None]:
        """Return the rows of the nested objects, the parent of each, and the objects in a scope."""
        nested = rows.nested(self.path)
        parents = rows.reader.nested[self.path].parents(self.scope)
        return nested, parents, None if scope is None else scope[parents]

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        nested, parents, scope = self._objects(rows, scope)
        mask = np.zeros(rows.count, bool)
        mask[parents[self.query.matching(nested, boost, scope)]] = True
        return mask

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        if self.mode == "none":
            mask = self.matching(rows, np.float32(0), scope)
            return Scores(np.zeros(rows.count, np.float32), mask)
        nested, parents, scope = self._objects(rows, scope)
        scores = self.query.scores(nested, boost, scope)
        matching = scores.mask()
        parents, values = parents[matching], scores.values[matching].astype(np.float64)
        counts = np.bincount(parents, minlength=rows.count)
        mask = counts > 0
        if self.mode in ("max", "min"):
            extreme = np.maximum if self.mode == "max" else np.minimum
            joined = np.full(rows.count, 0.0 if self.mode == "max" else np.inf)
            extreme.at(joined, parents, values)
            joined[~mask] = 0
        else:
            joined = np.asarray(np.bincount(parents, values, rows.count), np.float64)
            if self.mode == "avg":
                joined /= np.maximum(counts, 1)
        return Scores(joined.astype(np.float32), mask)

    def notation(self, schema: Schema) -> str:
        return f"ToParentBlockJoinQuery ({self.query.notation(schema)})"

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        """Return the explanation, which contains that of the best object, or of the worst with `min`."""
        nested, parents, _scope = self._objects(rows, None)
        query, boost = (
            (rewrite(Constant(self.query)), np.float32(0)) if self.mode == "none" else (self.query, boost)
        )
        first, end = parents.searchsorted([document, document + 1]).tolist()
        objects = [query.explanation(nested, number, boost) for number in range(first, end)]
        matching = [explanation for explanation in objects if explanation is not None]
        if not matching:
            return None
        scope = np.zeros(rows.count, bool)
        scope[document] = True
        score = self.scores(rows, boost, scope).values[document]
        choose = min if self.mode == "min" else max
        shown = choose(matching, key=lambda explanation: np.float32(explanation.value))
        before = rows.reader.number(document - 1) + 1 if document else 0
        place = f"in range from {before} to {rows.reader.number(document) - 1}"
        description = (
            f"Score based on {len(matching)} child docs {place}, using score mode {MODES[self.mode]}"
        )
        return explain(score, description, [shown])


def read_nested(parser: Parser, content: Any) -> Query:
    """Read `nested`."""
    options = parser.options(content, "nested", ("path", "query", "score_mode", "ignore_unmapped"))
    path = parameters.raw_text(required(options, "path", "nested"), "`path` of the query `nested`")
    mode = parameters.raw_text(options.get("score_mode", "avg"), "`score_mode` of the query `nested`")
    if mode not in MODES:
        raise invalid(f"`score_mode` of the query `nested` must be {' or '.join(MODES)}, not {mode!r}")
    ignores_unmapped = parameters.flag(options.get("ignore_unmapped", False), "`ignore_unmapped`")
    outer, schema = parser.scope, parser.reader.schema
    if path not in schema.nested:
        if not ignores_unmapped:
            raise invalid(f"the mapping has no nested objects at the `path` {path}")
        parser.query(required(options, "query", "nested"))
        return MatchNone(late=True)
    if outer != ROOT and not path.startswith(f"{outer}."):
        raise unsupported(
            f"the query `nested` for {path} inside that for {outer}, which does not contain it,"
        )
    parser.scope = path
    try:
        query = parser.query(required(options, "query", "nested"))
    finally:
        parser.scope = outer
    if may_match_others(query, path, schema):
        query = Bool(must=(query,), filter=(OfPath(path),))
    return apply_boost_parameter(Nested(query, path, outer, mode), options, "nested")


def may_match_nested(query: Query, schema: Schema) -> bool:
    """Return whether Elasticsearch filters the hits of a query, because it may match nested objects."""
    return bool(schema.nested) and _may_match(query, lambda field: schema.scope(field) != ROOT)


def may_match_others(query: Query, path: str, schema: Schema) -> bool:
    """Return whether Elasticsearch expects that a query matches other objects or documents than those of a path."""
    return _may_match(query, lambda field: _is_outside(field, path, schema))


def only_documents(query: Query) -> Query:
    """Return a query with a filter of nested objects, which the hits of documents do not need."""
    return Bool(must=(query,), filter=(OfPath(ROOT),))


def _is_outside(field: str, path: str, schema: Schema) -> bool:
    """Return whether objects other than those of a path may have a field."""
    scope = schema.scope(field)
    return scope != path or schema.nested[path].in_parent or schema.nested[path].in_root


def _may_match(query: Query, may_match_field: Callable[[str], bool]) -> bool:
    """Return whether Elasticsearch expects that a query matches objects, by the fields of its terms."""
    if isinstance(query, Constant | Boost):
        return _may_match(query.query, may_match_field)
    if isinstance(query, MatchAll):
        return True
    if isinstance(query, MatchNone):
        return False
    if isinstance(query, NumberRange) and (query.is_point or query.has_now):
        return True
    if isinstance(query, Term | TermsDisjunction | TermInSet | NumberRange | IpRange | GeoBox):
        return may_match_field(query.field)
    if isinstance(query, Nested):
        return query.scope != ROOT
    if isinstance(query, Bool):
        if required_clauses := (*query.must, *query.filter):
            return all(_may_match(clause, may_match_field) for clause in required_clauses)
        return any(_may_match(clause, may_match_field) for clause in query.should)
    return True
