"""A query class is sufficient for a new query: the engine needs no other change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.errors import EngineRefused
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import IndexReader, Mask, Numbers
from searchapp.lucene.queries import dsl, match_all
from searchapp.lucene.queries import match_all as match_none
from searchapp.lucene.queries.query import (
    EVERYWHERE,
    Leaf,
    MarkedLeaf,
    Parser,
    PositionSpans,
    Query,
    apply_boost_parameter,
    explain,
)
from searchapp.lucene.queries.scores import ScoreRows, Scores
from searchapp.lucene.similarity import ONE
from searchapp.model import Document, Explanation, Token
from tests.engines.embedded.conftest import body, spec_of
from tests.search.random_bodies import KINDS

DOCUMENTS = [Document("1", "b a"), Document("2", "ab b"), Document("3", "ba"), Document("4", "b b")]

MARKED = {
    "type": "plain",
    "number_of_fragments": 0,
    "pre_tags": ["<"],
    "post_tags": [">"],
    "fields": {"text": {}},
}


@dataclass(frozen=True, slots=True)
class Suffix(MarkedLeaf):
    """Match documents with a term that has the suffix, with the score 1. Lucene has no such query."""

    suffix: str

    def documents(self, reader: IndexReader) -> Numbers:
        field = reader.fields[self.field]
        ranks = (rank for rank, term in enumerate(field.terms) if term.decode().endswith(self.suffix))
        return field.documents_with(ranks)

    def notation(self, schema: Schema) -> str:
        return f"{self.field}:*{self.suffix}"

    def term_spans(self, tokens: Sequence[Token]) -> Mapping[str, PositionSpans]:
        return {token.term: EVERYWHERE for token in tokens if token.term.endswith(self.suffix)}


def read(parser: Parser, content: Any) -> Query:
    name, parameters = parser.on_field(content, "suffix", "value", ())
    return apply_boost_parameter(Suffix(name, parameters["value"]), parameters, "suffix")


@dataclass(frozen=True, slots=True)
class Halved(Query):
    """Halve the scores of an inner query. Lucene has no such query."""

    query: Query

    def children(self) -> tuple[Query, ...]:
        return (self.query,)

    def with_children(self, children: tuple[Query, ...]) -> Query:
        return Halved(*children)

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        return self.query.matching(rows, boost, scope)

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        scores = self.query.scores(rows, boost, scope)
        return Scores(scores.values / np.float32(2), scores.matching)

    def notation(self, schema: Schema) -> str:
        return f"half of {self.query.notation(schema)}"

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        inner = self.query.explanation(rows, document, boost)
        return None if inner is None else explain(inner.value / 2, "half of:", (inner,))


def read_halved(parser: Parser, content: Any) -> Query:
    parameters = parser.options(content, "halved", ("query",))
    return apply_boost_parameter(Halved(parser.query(parameters["query"])), parameters, "halved")


@pytest.fixture
def index(embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch) -> EmbeddedIndex:
    """Build an index that can parse the queries `suffix` and `halved`."""
    known, added = dsl.reader, {"suffix": read, "halved": read_halved}
    monkeypatch.setattr(dsl, "reader", lambda name: added.get(name) or known(name))
    embedded.build("leaves", spec_of(DOCUMENTS), DOCUMENTS)
    return embedded.open("leaves")


ENDS_IN_A = {"suffix": {"text": "a"}}
HALVED = [("1", 1.0), ("2", 0.0), ("4", 0.0)]
BEST = [("1", 1.0), ("3", 1.0), ("2", 0.5), ("4", 0.5)]
HAS_B = {"constant_score": {"filter": {"term": {"text": "b"}}}}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (ENDS_IN_A, [("1", 1.0), ("3", 1.0)]),
        ({"suffix": {"text": {"value": "a", "boost": 2}}}, [("1", 2.0), ("3", 2.0)]),
        ({"bool": {"should": [ENDS_IN_A, HAS_B]}}, [("1", 2.0), ("2", 1.0), ("3", 1.0), ("4", 1.0)]),
        ({"bool": {"should": [ENDS_IN_A, HAS_B], "minimum_should_match": 2}}, [("1", 2.0)]),
        ({"bool": {"must": HAS_B, "should": ENDS_IN_A}}, [("1", 2.0), ("2", 1.0), ("4", 1.0)]),
        ({"bool": {"must": HAS_B, "filter": ENDS_IN_A}}, [("1", 1.0)]),
        ({"bool": {"must": HAS_B, "must_not": ENDS_IN_A}}, [("2", 1.0), ("4", 1.0)]),
        ({"dis_max": {"queries": [ENDS_IN_A, HAS_B]}}, [("1", 1.0), ("2", 1.0), ("3", 1.0), ("4", 1.0)]),
        (
            {"boosting": {"positive": HAS_B, "negative": ENDS_IN_A, "negative_boost": 0.5}},
            [("2", 1.0), ("4", 1.0), ("1", 0.5)],
        ),
        ({"function_score": {"query": ENDS_IN_A, "weight": 3}}, [("1", 3.0), ("3", 3.0)]),
        ({"halved": {"query": {"bool": {"filter": HAS_B, "should": [ENDS_IN_A, ENDS_IN_A]}}}}, HALVED),
        ({"bool": {"must": [{"halved": {"query": ENDS_IN_A, "boost": 4}}]}}, [("1", 2.0), ("3", 2.0)]),
        ({"bool": {"filter": {"halved": {"query": ENDS_IN_A}}, "must": HAS_B}}, [("1", 1.0)]),
        ({"dis_max": {"queries": [{"halved": {"query": HAS_B}}, ENDS_IN_A]}}, BEST),
    ],
)
def test_new_queries_work_alone_and_inside_others(
    index: EmbeddedIndex, query: dict[str, Any], expected: list[tuple[str, float]]
) -> None:
    (hits,) = index.search([body(query)])
    assert [(hit.document_id, hit.score) for hit in hits] == expected
    for hit, (_id, score) in zip(index.find(body(query, explain=True)), expected, strict=True):
        assert hit.explanation is not None
        assert hit.explanation.value == score


def test_a_new_leaf_is_explained_and_highlighted(index: EmbeddedIndex) -> None:
    (hit, _other) = index.find(body(ENDS_IN_A, explain=True, highlight=MARKED))
    assert hit.explanation is not None
    assert hit.explanation.description == "text:*a"
    assert hit.highlights == {"text": ["b <a>"]}


def test_a_new_compound_query_is_explained_highlighted_and_counted(index: EmbeddedIndex) -> None:
    halved = {"halved": {"query": ENDS_IN_A}}
    (hit, _other) = index.find(body(halved, explain=True, highlight=MARKED))
    assert hit.explanation is not None
    assert (hit.explanation.value, hit.explanation.description) == (0.5, "half of:")
    assert hit.highlights == {"text": ["b <a>"]}
    (constant, _other) = index.find(body({"constant_score": {"filter": halved}}, explain=True))
    assert constant.explanation is not None
    assert constant.explanation.description == "ConstantScore(half of text:*a)"
    with pytest.raises(EngineRefused, match=r"8,193 clauses"):
        index.find(body({"halved": {"query": {"bool": {"should": [ENDS_IN_A] * 8_193}}}}))


def test_equal_leaves_are_equal_values() -> None:
    leaves: set[Leaf] = {
        Suffix("text", "a"),
        Suffix("text", "a"),
        match_all.MatchAll(),
        match_all.MatchAll(late=True),
    }
    assert len(leaves) == 2
    assert match_none.MatchNone() != match_none.MatchNone(late=True)


def test_each_query_of_the_dsl_is_compared_with_the_server() -> None:
    assert {name for name in dsl.KINDS if dsl.reader(name)} == KINDS
