"""The best documents, ordered by score and id, at every depth."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.model import Document, Hit
from tests.engines.embedded.conftest import body, spec_of
from tests.search.drawing import Draw

pytestmark = pytest.mark.usefixtures("either_way")

DOCUMENTS = 1_000
TEXTS = ["a", "a b", "a b b", "a a b c", "c", "ring a b c", "b"]

COMMON = {"match": {"text": "a b"}}
RARE = {"match": {"text": "ring"}}
EQUAL: dict[str, Any] = {"match_all": {}}
ZERO = {"match": {"text": {"query": "a", "boost": 0}}}
ONE_BEST = {"dis_max": {"queries": [EQUAL, {"ids": {"values": ["é7"], "boost": 2}}]}}
FEW = {"ids": {"values": ["é7", "5", "10", "500", "1"]}}
NONE: dict[str, Any] = {"match_none": {}}


def documents() -> list[Document]:
    """Return documents with few texts and unordered ids, one in seven of them not ASCII."""
    draw = Draw("top k")
    numbers = sorted(range(DOCUMENTS), key=lambda number: number * 7919 % DOCUMENTS)
    return [Document(f"{number}" if number % 7 else f"é{number}", draw.choice(TEXTS)) for number in numbers]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedIndex]:
    folder: Path = tmp_path_factory.mktemp("ties")
    with closing(EmbeddedEngine(folder, "test")) as engine:
        content = documents()
        engine.build("ties", spec_of(content), content)
        yield engine.open("ties")


def ranked(index: EmbeddedIndex, query: Any, size: int = DOCUMENTS + 1, first: int = 0) -> list[Hit]:
    (hits,) = index.search([body(query, size, **{"from": first})])
    return list(hits)


@pytest.mark.parametrize("query", [COMMON, RARE, EQUAL, ZERO, ONE_BEST, FEW, NONE], ids=repr)
def test_equal_scores_are_ordered_by_the_bytes_of_the_ids(index: EmbeddedIndex, query: Any) -> None:
    hits = ranked(index, query)
    assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.document_id.encode()))


def test_lists_of_ids_in_turn_find_their_own_documents(index: EmbeddedIndex) -> None:
    lists = [["5", "é7"], ["5", "é7"], ["5"], ["gone"], ["5", "é7", "10"], ["5"]]
    bodies = [body({"ids": {"values": ids}}, DOCUMENTS) for ids in lists]
    remaining = [
        body({"bool": {"must": EQUAL, "must_not": {"ids": {"values": ids}}}}, DOCUMENTS) for ids in lists
    ]
    everything = {document.id for document in documents()}
    for ids, hits, others in zip(lists, index.search(bodies), index.search(remaining), strict=True):
        assert set(hits.document_ids) == everything & {*ids}
        assert set(others.document_ids) == everything - {*ids}


@pytest.mark.parametrize("query", [COMMON, RARE, EQUAL, ZERO, ONE_BEST, FEW, NONE], ids=repr)
def test_every_page_is_a_slice_of_the_complete_ranking(index: EmbeddedIndex, query: Any) -> None:
    everything = ranked(index, query)
    score_changes = [
        rank
        for rank, (upper, lower) in enumerate(itertools.pairwise(everything), 1)
        if upper.score != lower.score
    ]
    around = {size for rank in score_changes for size in (rank - 1, rank, rank + 1)}
    for size in sorted({0, 1, 2, 5, 100, 999, 1_001, *around}):
        assert ranked(index, query, size) == everything[:size]
        assert ranked(index, query, 3, size) == everything[size : size + 3]


def test_only_matching_documents_are_hits_with_a_score_of_0(index: EmbeddedIndex) -> None:
    hits = ranked(index, ZERO)
    assert {hit.score for hit in hits} == {0.0}
    assert {hit.document_id for hit in hits} == {
        hit.document_id for hit in ranked(index, {"match": {"text": "a"}})
    }
    assert 0 < len(hits) < DOCUMENTS
    assert ranked(index, NONE) == []
