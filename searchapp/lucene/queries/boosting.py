"""The query `boosting`: a query, and another one that lowers the score of what it matches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from searchapp.lucene import parameters
from searchapp.lucene.errors import invalid, unsupported
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import IndexReader, Mask
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries.match_all import is_nothing
from searchapp.lucene.queries.parser import Parser, required
from searchapp.lucene.queries.query import (
    Boost,
    Leaf,
    Query,
    boosted,
    exact,
    explained,
    only,
    require_few,
    rewrite,
)
from searchapp.lucene.queries.scores import ScoreRows, Scores
from searchapp.lucene.records import Explanation
from searchapp.lucene.similarity import ONE


@dataclass(frozen=True, slots=True)
class Boosting(Query):
    """The documents of `positive`, those that match `negative` too with `factor` times the score.

    `as_written` is `negative` as the search body has it, which explanations show.
    """

    positive: Query
    negative: Query
    factor: float
    as_written: Query

    def children(self) -> tuple[Query, ...]:
        return self.positive, self.negative, self.as_written

    def with_children(self, children: tuple[Query, ...]) -> Query:
        positive, negative, as_written = children
        return Boosting(positive, negative, self.factor, as_written)

    @property
    def clause_count(self) -> int:
        require_few(self.negative.clause_count)
        return self.positive.clause_count

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        return self.positive.leaves(boost)

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:  # noqa: ARG002
        return self.positive.scored_terms()

    def resolved(self, reader: IndexReader) -> Query:
        return replace(self, positive=self.positive.resolved(reader), negative=self.negative.resolved(reader))

    def rewritten(self) -> Query:
        positive, negative = self.positive.rewritten(), rewrite(self.negative)
        if positive is self.positive and negative is self.negative:
            return self
        return replace(self, positive=positive, negative=negative)

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Mask:  # noqa: ARG002
        return self.positive.matching(rows, among=among)

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Scores:
        positive = self.positive.scores(rows, among=among)
        factors = np.where(self.negative.matching(rows, among=among), self.factor, 1.0)
        values = (positive.values.astype(np.float64) * factors * float(boost)).astype(np.float32)
        return Scores(values, positive.mask())

    def notation(self, schema: Schema) -> str:
        lowering = f"queryboost(score({self.as_written.notation(schema)}))^{printed(self.factor)}"
        return f"FunctionScoreQuery({self.positive.notation(schema)}, scored by boost({lowering}))"

    def unscored(self) -> Query:
        return self.positive.unscored()

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        """The product is a double, as Lucene's `DoubleValuesSource` has it."""
        inner = self.positive.explanation(rows, document, ONE)
        if inner is None:
            return None
        schema, among = rows.reader.schema, only(document, rows)
        score = self.scores(rows, boost, among).values[document]
        if self.negative.matching(rows, among=among)[document]:
            negative = self.negative.query if isinstance(self.negative, Boost) else self.negative
            factor = explained(self.factor, f"Matched boosting query score({negative.notation(schema)})")
            inner = Explanation(exact(inner) * exact(factor), "product of:", (inner, factor))
        name = f"weight({self.notation(schema)})"
        if boost == 1:
            return Explanation(inner.value, f"{name}, result of:", (inner,))
        return explained(score, f"{name}, product of:", (explained(boost, "boost"), inner))


def read_boosting(parser: Parser, content: Any) -> Query:
    """A query, and another one that lowers the score of what it matches."""
    described = parameters.mapping(content, "the query `boosting`")
    parameters.without_lists(described, ("boost", "negative_boost"), "the query `boosting`")
    given = parser.options(described, "boosting", ("positive", "negative", "negative_boost"))
    factor = parameters.signless(required(given, "negative_boost", "boosting"), "negative_boost")
    if not math.isfinite(factor):
        raise unsupported(f"{factor} as negative_boost")
    if factor < 0:
        raise invalid(f"negative_boost is {factor:g}, but must not be negative")
    positive = parser.query(required(given, "positive", "boosting"))
    negative = parser.query(required(given, "negative", "boosting"))
    if is_nothing(positive):
        return positive
    return boosted(Boosting(positive, negative, factor, as_written=negative), given, "boosting")
