"""Terms of an index that resemble a misspelled one."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.lucene import Index
from searchapp.lucene.search.spelling import SimilarTerm
from searchapp.model import Document

MAPPING = {
    "mappings": {
        "dynamic": "strict",
        "properties": {"id": {"type": "keyword"}, "text": {"type": "text", "analyzer": "standard"}},
    }
}

TEXTS = (
    "abelian abelian groups",
    "abelian gruppe naïve Übung straße",
    "amelia group set sat",
    "groups grouped groupoid",
)


@pytest.fixture
def index(tmp_path: Path) -> Index:
    documents = [Document(str(number), text) for number, text in enumerate(TEXTS)]
    return Index.create(tmp_path, MAPPING, documents)


def similar(index: Index, term: str, size: int = 3) -> list[str]:
    return [found.term for found in index.similar_terms("text", term, size)]


def test_the_closest_terms_are_found_the_most_frequent_first(index: Index) -> None:
    assert index.similar_terms("text", "abelain", 3) == [SimilarTerm("abelian", 1, 2)]
    assert similar(index, "grousp") == ["groups", "group"]  # a swap, and a deletion
    assert similar(index, "groupx") == ["groups", "group"]  # one edit; `groups` is in more documents
    assert similar(index, "groupx", 1) == ["groups"]


def test_short_terms_may_differ_in_one_edit_and_shorter_ones_in_none(index: Index) -> None:
    assert similar(index, "abexxan") == ["abelian"]
    assert similar(index, "grxxp") == []
    assert similar(index, "grxup") == ["group"]
    assert similar(index, "sot") == []


def test_the_first_character_must_agree(index: Index) -> None:
    assert similar(index, "bbelian") == []


def test_characters_of_several_bytes_count_once(index: Index) -> None:
    assert similar(index, "naive") == ["naïve"]
    assert similar(index, "übnug") == ["übung"]
    assert similar(index, "strasse") == ["straße"]


def test_unknown_fields_and_fields_without_analysis_have_no_similar_terms(index: Index) -> None:
    assert index.similar_terms("nowhere", "abelain", 3) == []
    assert index.similar_terms("id", "1000", 3) == []


def test_terms_of_later_segments_count(index: Index) -> None:
    index.add([Document("8", "abelaine abelian")])
    assert index.similar_terms("text", "abelain", 3) == [
        SimilarTerm("abelian", 1, 3),
        SimilarTerm("abelaine", 1, 1),
    ]
