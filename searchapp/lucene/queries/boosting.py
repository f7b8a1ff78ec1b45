"""The query `boosting`, which lowers the scores of documents that match a second query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import invalid
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import IndexReader, Mask
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries.match_all import is_nothing
from searchapp.lucene.queries.query import (
    Boost,
    Leaf,
    Parser,
    Query,
    apply_boost_parameter,
    check_clause_count,
    document_mask,
    exact_value,
    explain,
    required,
    rewrite,
)
from searchapp.lucene.queries.scores import ScoreRows, Scores
from searchapp.lucene.records import Explanation
from searchapp.lucene.similarity import ONE


@dataclass(frozen=True, slots=True)
class Boosting(Query):
    """The documents of `positive`; those that also match `negative` have `factor` times the score."""

    positive: Query
    negative: Query
    factor: float
    original: Query  # `negative` before rewriting, for explanations

    def children(self) -> tuple[Query, ...]:
        return self.positive, self.negative, self.original

    def with_children(self, children: tuple[Query, ...]) -> Query:
        positive, negative, original = children
        return Boosting(positive, negative, self.factor, original)

    @property
    def clause_count(self) -> int:
        check_clause_count(self.negative.clause_count)
        return self.positive.clause_count

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        return self.positive.leaves(boost)

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:
        return self.positive.scored_terms()

    def resolved(self, reader: IndexReader) -> Query:
        return replace(self, positive=self.positive.resolved(reader), negative=self.negative.resolved(reader))

    def rewritten(self) -> Query:
        positive, negative = self.positive.rewritten(), rewrite(self.negative)
        if positive is self.positive and negative is self.negative:
            return self
        return replace(self, positive=positive, negative=negative)

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        return self.positive.matching(rows, scope=scope)

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        positive = self.positive.scores(rows, scope=scope)
        factors = np.where(self.negative.matching(rows, scope=scope), self.factor, 1.0)
        values = (positive.values.astype(np.float64) * factors * float(boost)).astype(np.float32)
        return Scores(values, positive.mask())

    def notation(self, schema: Schema) -> str:
        lowering = f"queryboost(score({self.original.notation(schema)}))^{printed(self.factor)}"
        return f"FunctionScoreQuery({self.positive.notation(schema)}, scored by boost({lowering}))"

    def unscored(self) -> Query:
        return self.positive.unscored()

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        """Return the explanation; its product is a double, as in Lucene's `DoubleValuesSource`."""
        inner = self.positive.explanation(rows, document, ONE)
        if inner is None:
            return None
        schema, scope = rows.reader.schema, document_mask(document, rows)
        score = self.scores(rows, boost, scope).values[document]
        if self.negative.matching(rows, scope=scope)[document]:
            negative = self.negative.query if isinstance(self.negative, Boost) else self.negative
            factor = explain(self.factor, f"Matched boosting query score({negative.notation(schema)})")
            inner = Explanation(exact_value(inner) * exact_value(factor), "product of:", (inner, factor))
        name = f"weight({self.notation(schema)})"
        if boost == 1:
            return Explanation(inner.value, f"{name}, result of:", (inner,))
        return explain(score, f"{name}, product of:", (explain(boost, "boost"), inner))


def read_boosting(parser: Parser, content: Any) -> Query:
    """Read `boosting`."""
    described = parameters.mapping(content, "the query `boosting`")
    parameters.without_lists(described, ("boost", "negative_boost"), "the query `boosting`")
    options = parser.options(described, "boosting", ("positive", "negative", "negative_boost"))
    negative_boost = parameters.signless(required(options, "negative_boost", "boosting"), "negative_boost")
    factor = parameters.supported_finite(negative_boost, "negative_boost")
    if factor < 0:
        raise invalid(f"negative_boost is {factor:g}, but must not be negative")
    positive = parser.query(required(options, "positive", "boosting"))
    negative = parser.query(required(options, "negative", "boosting"))
    if is_nothing(positive):
        return positive
    return apply_boost_parameter(Boosting(positive, negative, factor, original=negative), options, "boosting")
