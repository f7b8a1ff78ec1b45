from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchapp.engines.base import Index
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import UsageError
from searchapp.model import Document
from searchapp.ranking.highlighting import TextAnalyzer
from searchapp.ranking.query_language import (
    BrokenQuery,
    CompiledQuery,
    FieldFilter,
    Query,
    QueryCompiler,
    SearchFields,
    parse_query,
)
from tests.engines.embedded.conftest import MAPPING, ORDER, spec_of

RANKING = {"match": {"text": "the words"}}

DOCUMENTS = [
    Document("1", "the ring of a b", {"tag": "X", "year": 1990, "long": 2**63 - 1, "ratio": 0.5}),
    Document("2", "a ring a ring", {"tag": "Y", "year": 1991, "ratio": -1e30}),
    Document("3", "fields and rings", {"tag": ["X", "Y z"], "year": [1990, 1991], "weight": 1e100}),
    Document("4", "ideal of a ring", {"tag": "Z"}),
]
GAPS: Query = {"match": {"text.gaps": "x"}}
"""What makes words be looked for in `text` alone, as in every query here."""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder: Path = tmp_path_factory.mktemp("compiled")
    with closing(EmbeddedEngine(folder, "test")) as engine:
        engine.build("test", spec_of(DOCUMENTS), DOCUMENTS)
        yield engine.open("test")


def compiled(index: Index, typed: str, filters: Sequence[FieldFilter] = ()) -> CompiledQuery:
    fields = SearchFields.of(MAPPING, GAPS)
    return QueryCompiler(fields, TextAnalyzer(index, MAPPING)).compile(
        parse_query(typed, fields.kinds), filters
    )


def ids(index: Index, typed: str, *filters: tuple[str, str]) -> str:
    """The documents that are left, best first, where a recipe ranks by the words in `text`."""
    said = compiled(index, typed, [FieldFilter(*one) for one in filters])
    ranking = {"match": {"text": said.words}} if said.words else None
    (hits,) = index.search([{"query": said.query(ranking), "size": 10, "sort": ORDER, "_source": False}])
    return "".join(sorted(hits.document_ids))


def test_words_alone_are_the_recipes(index: Index) -> None:
    said = compiled(index, "the  words")
    assert said == CompiledQuery("the words", (), (), (), (), ())
    assert said.query(RANKING) == RANKING
    assert said.filter_query() is None


def test_every_clause_has_its_place(index: Index) -> None:
    said = compiled(index, 'one +two -three "a b" +"c d" -"e f" +(g) tag:X', [FieldFilter("year", "1990")])
    assert said.words == "one two"
    assert said.query(RANKING) == {
        "bool": {
            "should": [
                RANKING,
                {"match_phrase": {"text": {"query": "a b"}}},
                {"term": {"tag": {"value": "X"}}},
            ],
            "must": [
                {"match_phrase": {"text": {"query": "c d"}}},
                {
                    "bool": {
                        "should": [{"match": {"text": {"query": "g", "operator": "and"}}}],
                        "minimum_should_match": 1,
                    }
                },
            ],
            "filter": [
                {"match": {"text": {"query": "two", "operator": "and"}}},
                {"term": {"year": {"value": 1990}}},
            ],
            "must_not": [
                {"match": {"text": {"query": "three", "operator": "and"}}},
                {"match_phrase": {"text": {"query": "e f"}}},
            ],
        }
    }


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("", "1234"),
        ("ring", "124"),
        ("ring fields", "1234"),
        ("+ring fields", "124"),
        ("+ring +ideal", "4"),
        ("ring -ideal", "12"),
        ("-ring", "3"),
        ("-ring -fields", ""),
        ('"a ring"', "24"),
        ('"a ring" fields', "234"),
        ('+"a ring" fields', "24"),
        ('-"a ring"', "13"),
        ("ring*", "1234"),
        ("RING*", "1234"),
        ("+rings*", "3"),
        ("fie* -ring*", ""),
        ("+(fields ideal)", "34"),
        ("+(+ring +ideal)", "4"),
        ("(ring -ideal) fields", "123"),
        ("+(-ideal)", "123"),
        ("-(ring -ideal)", "34"),
        ("-(+ring -(a))", "1234"),
        ("ring +(fields ideal) -b", "34"),
        # fields
        ("tag:X", "13"),
        ("tag:x", ""),
        ('tag:"Y z"', "3"),
        ("tag:Y*", "23"),
        ("tag:(X Z)", "134"),
        ('tag:(+X -"Y z")', "1"),
        ("-tag:X", "24"),
        ("+tag:X ring", "13"),
        ("year:1990", "13"),
        ("year:(1990 1991)", "123"),
        ("+year:1990 +year:1991", "3"),
        ("year:0001991", "23"),
        ("long:9223372036854775807", "1"),
        ("ratio:.5", "1"),
        ("ratio:5e-1", "1"),
        ("weight:1.5", ""),
        ("text:ideal", "4"),
        ('text:"a ring"', "24"),
        ("text:fie*", "3"),
        ("text:(+ring -ideal)", "12"),
        ("id:3", "3"),
        # what the analyzer drops: it leaves out nothing, and finds nothing
        ("text.gaps:the", ""),
        ("+text.gaps:the", "1234"),
        ("+text.gaps:the ring", "124"),
        ('+text.gaps:"of the" ring', "124"),
        ("+(text.gaps:the) ring", "124"),
        ("-text.gaps:the ring", "124"),
        ("+text.gaps:(the ideal)", "4"),
        ("()", ""),
        ("+() ring", "124"),
        ("-() ring", "124"),
        ('""', ""),
        ('+"" ring', "124"),
    ],
)
def test_signs_leave_the_documents_that_they_say(index: Index, typed: str, left: str) -> None:
    assert ids(index, typed) == left


def test_filters_of_one_field_are_alternatives_and_those_of_several_all_hold(index: Index) -> None:
    assert ids(index, "", ("tag", "X")) == "13"
    assert ids(index, "", ("tag", "X"), ("tag", "Z")) == "134"
    assert ids(index, "", ("tag", "X"), ("year", "1991")) == "3"
    assert ids(index, "ring", ("tag", "X")) == "1"
    assert ids(index, '"a ring"', ("tag", "Z")) == "4"
    assert ids(index, "-ring", ("tag", "X")) == "3"
    assert ids(index, "ring", ("tag", "nowhere")) == ""


def test_a_filter_does_not_score(index: Index) -> None:
    def score(*filters: FieldFilter) -> float:
        query = compiled(index, "ring", filters).query(RANKING | {"match": {"text": "ring"}})
        (hits,) = index.search([{"query": query, "size": 1, "sort": ORDER, "_source": False}])
        return hits[0].score

    assert score(FieldFilter("tag", "Y")) == score() > 0


@pytest.mark.parametrize(
    ("typed", "at", "said"),
    [
        ("year:x", 5, "a field of whole numbers, not 'x'"),
        ("year:1.5", 5, "whole numbers"),
        ("year:٣", 5, "whole numbers"),
        ("year:1_0", 5, "whole numbers"),
        ('ring year:""', 10, "whole numbers"),
        ("ring year:(1 x)", 10, "a field of whole numbers, not 'x'"),
        ("year:199*", 5, "leave out the *"),
        ("long:9223372036854775808", 5, "is out of range for"),
        ("long:-" + "9" * 5_000, 5, "is out of range for"),
        ("ratio:1e39", 6, "is out of range for"),
        ("ratio:1e999", 6, "is out of range for"),
        ("ratio:nan", 6, "a field of numbers, not 'nan'"),
        ("ratio:" + "x" * 5_000, 6, "…"),
        ('tag:"' + "é" * 9_000 + " " + "é" * 9_000 + '"', 4, "at most 32,766 bytes"),
        ("tag:(year:5)", 4, "can't contain another"),
        ("tag:((year:5))", 4, "can't contain another"),
    ],
)
def test_what_a_field_cant_hold_is_told_with_its_place(index: Index, typed: str, at: int, said: str) -> None:
    with pytest.raises(BrokenQuery) as caught:
        compiled(index, typed)
    assert caught.value.at == at
    assert said in caught.value.what
    assert len(caught.value.what) < 200


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("tags", "X", r"unknown filter field 'tags' \(did you mean tag\?\): choose tag or year"),
        ("text", "ring", "unknown filter field 'text'"),
        ("id", "1", "unknown filter field 'id'"),
        ("year", "soon", "the filter year=soon: year is a field of whole numbers"),
        ("tag", "\udcff", "not UTF-8"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(index: Index, field: str, value: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        compiled(index, "ring", [FieldFilter(field, value)])
    assert not isinstance(caught.value, BrokenQuery)


def test_tasks_without_fields_have_no_filters(index: Index) -> None:
    mapping: dict[str, Any] = {
        "mappings": {"properties": {"id": {"type": "keyword"}, "text": {"type": "text"}}}
    }
    with pytest.raises(UsageError, match="no fields to filter by"):
        QueryCompiler(SearchFields.of(mapping, {}), TextAnalyzer(index, mapping)).compile(
            parse_query(""), [FieldFilter("tag", "X")]
        )


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("ring", None),
        ("ring -ideal", "123"),
        ("+ring fields", "124"),
        ('ring +"a ring"', "24"),
        ('ring "a ring"', None),
        ('"a ring"', "24"),
        ("ring tag:X", None),
        ("ring +tag:X", "13"),
    ],
)
def test_what_a_document_has_to_match_is_apart_from_its_score(
    index: Index, typed: str, left: str | None
) -> None:
    chosen = compiled(index, typed).filter_query()
    if left is None:
        assert chosen is None
    else:
        (hits,) = index.search([{"query": chosen, "size": 10, "sort": ORDER, "_source": False}])
        assert "".join(sorted(hits.document_ids)) == left
