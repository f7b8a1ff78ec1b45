"""The query `dis_max`: the best of several queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from searchapp.lucene import parameters
from searchapp.lucene.errors import invalid
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import Mask
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries.boolean import NONE, Bool, any_matching
from searchapp.lucene.queries.query import (
    Parser,
    Query,
    boosted,
    exact_value,
    explain,
    map_queries,
    required,
    rewrite_once,
)
from searchapp.lucene.queries.scores import ScoreRows, Scores
from searchapp.lucene.records import Explanation
from searchapp.lucene.similarity import ONE


@dataclass(frozen=True, slots=True, eq=False)
class DisMax(Query):
    """The best of several queries, in any order, plus `tie_breaker` times the others."""

    queries: tuple[Query, ...]
    tie_breaker: float

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DisMax)
            and self.tie_breaker == other.tie_breaker
            and Counter(self.queries) == Counter(other.queries)
        )

    def __hash__(self) -> int:
        return hash((self.tie_breaker, frozenset(self.queries)))

    def children(self) -> tuple[Query, ...]:
        return self.queries

    def with_children(self, children: tuple[Query, ...]) -> Query:
        return DisMax(children, self.tie_breaker)

    def rewritten(self) -> Query:
        if not self.queries:
            return NONE
        if len(self.queries) == 1:
            return self.queries[0]
        if self.tie_breaker == 1:
            return Bool(should=self.queries)
        queries = map_queries(rewrite_once, self.queries)
        return self if queries is self.queries else DisMax(queries, self.tie_breaker)

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        return any_matching(self.queries, rows, boost, scope)

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        return disjunction_max([query.scores(rows, boost, scope) for query in self.queries], self.tie_breaker)

    def notation(self, schema: Schema) -> str:
        parts = " | ".join(query.inner_notation(schema) for query in self.queries)
        return f"({parts})" + (f"~{printed(self.tie_breaker)}" if self.tie_breaker else "")

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        explanations = (query.explanation(rows, document, boost) for query in self.queries)
        details = [detail for detail in explanations if detail is not None]
        if not details:
            return None
        best, others = 0.0, 0.0
        for value in map(exact_value, details):  # in their order, on which the sum of doubles depends
            best, others = max(best, value), others + min(best, value)
        score = best + others * float(np.float32(self.tie_breaker))
        if self.tie_breaker == 0:
            return explain(score, "max of:", details)
        return explain(score, f"max plus {printed(self.tie_breaker)} times others of:", details)


def disjunction_max(clauses: Sequence[Scores], tie_breaker: float) -> Scores:
    """Return the greatest score plus `tie_breaker` times the sum of the others, as `DisjunctionMaxScorer`."""
    best = np.zeros_like(clauses[0].values)
    rest = np.zeros(len(best))
    mask = np.zeros(len(best), bool)
    for scores in clauses:
        rest += np.minimum(best, scores.values)
        best = np.maximum(best, scores.values)
        mask |= scores.mask()
    return Scores((best + rest * float(np.float32(tie_breaker))).astype(np.float32), mask)


def read_dis_max(parser: Parser, content: Any) -> Query:
    """Read `dis_max`."""
    given = parser.options(content, "dis_max", ("queries", "tie_breaker"))
    queries = parser.queries(required(given, "queries", "dis_max"), "dis_max.queries")
    if not queries:
        raise invalid("the query `dis_max` has no `queries`")
    tie_breaker = parameters.share(given.get("tie_breaker", 0), "tie_breaker")
    return boosted(DisMax(queries, tie_breaker), given, "dis_max")
