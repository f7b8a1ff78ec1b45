"""Counts of matches and values, and `search_after`, in the embedded engine and in both engines."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

import pytest

from searchapp.engines.base import Index
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import EngineRefused
from searchapp.model import Counts, Document, Hits
from tests.engines.embedded.conftest import MAPPING, EnginePair, body, spec_of
from tests.profile import SEED

RING = {"match": {"text": "ring"}}
DOCUMENTS = [
    Document("1", "ring a b", {"tag": "X"}),
    Document("10", "ring ring", {"tag": ["Y", "X", "Y"]}),
    Document("2", "field", {"tag": "x"}),
    Document("3", "ring", {"tag": "é"}),
    Document("4", "ring and field", {"tag": ["😀", "é", "\ufb01"]}),
    Document("é", "ring"),
    Document("😀", "ring", {"tag": ""}),
]
QUERIES: list[dict[str, Any]] = [
    {"match_all": {}},
    {"match_none": {}},
    RING,
    {"bool": {"must_not": [RING]}},
    {"bool": {"should": [RING, {"match_all": {"boost": 0}}], "minimum_should_match": 1}},
    {"bool": {"filter": [RING]}},
    {"ids": {"values": ["1", "nowhere"]}},
    {"term": {"tag": "X"}},
]


def paged(index: Index, query: Mapping[str, Any], size: int) -> Iterator[tuple[str, float]]:
    """Yield all hits by pages, each after the last hit of the previous page."""
    more: dict[str, Any] = {}
    while True:
        (hits,) = index.search([body(query, size, **more)])
        yield from ((hit.document_id, hit.score) for hit in hits)
        if len(hits) < size:
            return
        last = hits[len(hits) - 1]
        more = {"search_after": [last.score, last.document_id]}


def pairs(hits: Hits) -> list[tuple[str, float]]:
    return [(hit.document_id, hit.score) for hit in hits]


@pytest.fixture
def index(embedded: EmbeddedEngine) -> Index:
    embedded.build("test", spec_of(DOCUMENTS), DOCUMENTS)
    return embedded.open("test")


def test_matches_and_values_are_counted(index: Index) -> None:
    assert index.counts(RING, {"tag": 10}) == Counts(
        6, {"tag": [("X", 2), ("é", 2), ("", 1), ("Y", 1), ("\ufb01", 1), ("😀", 1)]}
    )
    assert index.counts(RING, {"tag": 3}) == Counts(6, {"tag": [("X", 2), ("é", 2), ("", 1)]})
    assert index.counts({"match_all": {}}, {}) == Counts(7, {})
    assert index.counts({"match_none": {}}, {"tag": 5}) == Counts(0, {"tag": []})


def test_documents_without_a_score_are_counted(index: Index) -> None:
    assert index.counts({"bool": {"filter": [RING]}}, {}).total == 6
    assert index.counts({"match_all": {"boost": 0}}, {}).total == 7


def test_an_empty_index_has_nothing_to_count(embedded: EmbeddedEngine) -> None:
    embedded.build("empty", spec_of([]), [])
    assert embedded.open("empty").counts({"match_all": {}}, {"tag": 5}) == Counts(0, {"tag": []})


@pytest.mark.parametrize("field", ["text", "year", "nowhere"])
def test_only_values_of_keyword_fields_are_counted(index: Index, field: str) -> None:
    with pytest.raises(EngineRefused, match=f"counting the values of {field}"):
        index.counts(RING, {field: 5})


@pytest.mark.parametrize("query", QUERIES, ids=repr)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 8])
def test_pages_join_to_the_complete_ranking(index: Index, query: dict[str, Any], size: int) -> None:
    (ranking,) = index.search([body(query)])
    assert list(paged(index, query, size)) == pairs(ranking)


def test_search_after_accepts_a_score_and_id_of_no_hit(index: Index) -> None:
    def hits_after(score: float, id_: str) -> list[str]:
        (hits,) = index.search([body({"match_all": {}}, search_after=[score, id_])])
        return list(hits.document_ids)

    assert hits_after(1.0, "2") == ["3", "4", "é", "😀"]
    assert hits_after(1, "11") == ["2", "3", "4", "é", "😀"]
    assert hits_after(1.0, "") == hits_after(1.5, "zz") == ["1", "10", "2", "3", "4", "é", "😀"]
    assert hits_after(1.0, "😀") == hits_after(0.5, "") == []


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"search_after": [1.0]}, "a list of a score and an id"),
        ({"search_after": None}, "a list of a score and an id"),
        ({"search_after": [1.0, "1"], "from": 1}, "`from` must be 0"),
        ({"search_after": ["1.0", "1"]}, "only a number and a text"),
        ({"search_after": [True, "1"]}, "only a number and a text"),
        ({"search_after": [1.0, 1]}, "only a number and a text"),
        ({"search_after": [1e39, "1"]}, r"`search_after` begins with 1e\+39, which is not a finite float32"),
        ({"search_after": [10**400, "1"]}, "which is not a finite float32"),
    ],
)
def test_invalid_search_after_is_rejected(index: Index, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(EngineRefused, match=message):
        index.search([body(RING, **parameters)]).__next__()


# Both engines


def test_both_engines_count_the_same(make_pair: Callable[..., EnginePair]) -> None:
    engines = make_pair(DOCUMENTS)
    for query in QUERIES:
        for limit in (1, 3, 10):
            counts = engines.server.counts(query, {"tag": limit, "id": limit})
            assert counts == engines.embedded.counts(query, {"tag": limit, "id": limit})
        assert engines.server.counts(query, {}) == engines.embedded.counts(query, {})


def test_both_engines_return_the_same_pages(make_pair: Callable[..., EnginePair]) -> None:
    draw = Random(SEED)
    words = ["ring", "field", "group", "the", "of"]
    documents = [
        Document(f"{number * 7919 % 1000}é{number}", " ".join(draw.choices(words, k=draw.randint(1, 6))))
        for number in range(300)
    ]
    engines = make_pair(documents)
    for query in QUERIES:
        (ranking,) = engines.embedded.search([body(query, 1_000)])
        for size in (7, 150, 300):
            assert list(paged(engines.server, query, size)) == pairs(ranking)
            assert list(paged(engines.embedded, query, size)) == pairs(ranking)
    for after in ([0.75, "5"], [1, ""], [2.5, "zz"], [1e-3, "1é"]):
        engines.require_same_hits({"match": {"text": "ring field"}}, 300, search_after=after)


@pytest.mark.timeout(600)
def test_hits_beyond_rank_10_000_are_the_same_on_both(make_pair: Callable[..., EnginePair]) -> None:
    """Without `search_after`, both engines return hits only to rank 10,000."""
    mapping = copy.deepcopy(MAPPING)
    documents = [Document(f"{number:05}", "ring" + " a" * (number % 50)) for number in range(10_500)]
    engines = make_pair(documents, mapping)
    ours = list(paged(engines.embedded, RING, 4_000))
    assert len(ours) == 10_500
    assert len(set(ours)) == 10_500
    assert ours == sorted(ours, key=lambda hit: (-hit[1], hit[0]))
    assert list(paged(engines.server, RING, 10_000)) == ours
