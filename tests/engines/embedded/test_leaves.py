"""What a leaf query brings with it is all that the engine needs of it: nothing else has to know it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from searchapp.engines import embedded as index
from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import IndexReader, Numbers
from searchapp.lucene.queries import match_all
from searchapp.lucene.queries import match_all as match_none
from searchapp.lucene.queries.parser import Parser
from searchapp.lucene.queries.query import EVERYWHERE, Leaf, MarkedLeaf, Places, Query, boosted
from searchapp.lucene.search.request import READERS
from searchapp.model import Document, Token
from tests.engines.embedded.conftest import body, spec_of
from tests.search.asking import KINDS

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
    """Documents that have a term with the suffix, with the score 1: a query that Lucene does not have."""

    suffix: str

    def documents(self, reader: IndexReader) -> Numbers:
        field = reader.fields[self.field]
        ranks = (rank for rank, term in enumerate(field.terms) if term.decode().endswith(self.suffix))
        return field.documents_with(ranks)

    def described(self, schema: Schema) -> str:
        return f"{self.field}:*{self.suffix}"

    def places(self, tokens: Sequence[Token]) -> Mapping[str, Places]:
        return {token.term: EVERYWHERE for token in tokens if token.term.endswith(self.suffix)}


def read(parser: Parser, content: Any) -> Query:
    name, given = parser.on_field(content, "suffix", "value", ())
    return boosted(Suffix(name, given["value"]), given, "suffix")


@pytest.fixture
def searched(embedded: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch) -> EmbeddedIndex:
    """An index whose readers know the query `suffix`."""
    monkeypatch.setattr(index, "READERS", {**READERS, "suffix": read})
    embedded.build("leaves", spec_of(DOCUMENTS), DOCUMENTS)
    return embedded.open("leaves")


ENDS_IN_A = {"suffix": {"text": "a"}}
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
    ],
)
def test_a_leaf_is_known_by_its_class_alone(
    searched: EmbeddedIndex, query: dict[str, Any], expected: list[tuple[str, float]]
) -> None:
    (hits,) = searched.search([body(query)])
    assert [(hit.document_id, hit.score) for hit in hits] == expected
    for found, (_id, score) in zip(searched.find(body(query, explain=True)), expected, strict=True):
        assert found.explanation is not None
        assert found.explanation.value == score


def test_a_leaf_is_explained_and_highlighted_by_its_class_alone(searched: EmbeddedIndex) -> None:
    (found, _other) = searched.find(body(ENDS_IN_A, explain=True, highlight=MARKED))
    assert found.explanation is not None
    assert found.explanation.description == "text:*a"
    assert found.highlights == {"text": ["b <a>"]}


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
    assert set(READERS) == KINDS
