"""Queries that differ only in their texts are parsed from a template, with the same result."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.engines.embedded import EmbeddedEngine, EmbeddedIndex
from searchapp.lucene.errors import Refused
from searchapp.lucene.search.request import BodyReader
from searchapp.model import Document
from tests.engines.embedded.conftest import body, spec_of

Json = dict[str, Any]

DOCUMENTS = [Document(str(number), "a b c d", {"tag": "x"}) for number in range(3)]

TEXTS = ["a b", "a", "", "a a b", "b c d", "of the", "c"]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedIndex]:
    folder: Path = tmp_path_factory.mktemp("recurring")
    with closing(EmbeddedEngine(folder, "test")) as engine:
        engine.build("recurring", spec_of(DOCUMENTS), DOCUMENTS)
        yield engine.open("recurring")


def fresh(index: EmbeddedIndex) -> BodyReader:
    """Return a reader without cached templates."""
    return BodyReader(index.index.bodies._parser, index.index._find_nearest)


def match(field: str, text: Any, **more: Any) -> Json:
    return {"match": {field: {"query": text, **more} if more else text}}


def term(field: str, text: Any) -> Json:
    return {"term": {field: text}}


def template(texts: list[str]) -> list[Json]:
    """Return the queries of several templates for a topic."""
    first, second, third = texts
    clauses = [
        match("text", first, boost=0.4),
        match("text.gaps", second, boost=0.3),
        match("text.alike", first),
    ]
    return [
        match("text", first),
        {"bool": {"must": [{"match_all": {"boost": 0}}], "should": clauses, "must_not": [term("id", third)]}},
        {"bool": {"should": clauses, "filter": [term("tag", third)]}},
        {"bool": {"should": [clauses[0], match("text", second)]}},
        {"bool": {"should": [{"bool": {"should": clauses}}, term("tag", third)], "minimum_should_match": 1}},
        {"bool": {"must": clauses[:2], "should": [{"match_phrase": {"text": "a b"}}]}},
        {"dis_max": {"queries": clauses, "tie_breaker": 0.3}},
        {"constant_score": {"filter": clauses[0]}},
        {"boosting": {"positive": clauses[0], "negative": clauses[1], "negative_boost": 0.5}},
        {
            "bool": {
                "should": [match("text", first, boost=0), match("text.gaps", second, minimum_should_match=2)]
            }
        },
        {"bool": {"should": [match("absent", first), match("text", second, operator="and")]}},
        {"function_score": {"query": clauses[0], "functions": [{"weight": 2, "filter": clauses[1]}]}},
        {"multi_match": {"query": first, "fields": ["text", "text.gaps^2"]}},
    ]


@given(st.lists(st.tuples(*[st.sampled_from(TEXTS)] * 3), min_size=2, max_size=8))
def test_templates_give_the_result_of_parsing_each_query(
    index: EmbeddedIndex, topics: list[tuple[str, ...]]
) -> None:
    reader = fresh(index)
    for queries in zip(*[template(list(topic)) for topic in topics], strict=True):
        for query in queries:
            request = reader.ranked(body(copy.deepcopy(query)))
            expected = fresh(index).read(body(query))
            assert repr((request.query, request.frame)) == repr((expected.query, expected.frame))


def test_later_topics_of_a_recipe_use_the_template(
    index: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = fresh(index)
    for text in ["a b", "a c", "b c d"]:
        reader.ranked(body(template([text, text, text])[1]))
    monkeypatch.delattr(BodyReader, "_read")
    reader.ranked(body(template(["d a", "c d", "1"])[1]))


DIFFERENT = [
    (match("text", "a", boost=1), match("text", "a", boost=True)),
    (match("text", "a", boost=0.0), match("text", "a", boost=-0.0)),
    (match("text", "a b"), match("text", 1)),
    (match("text", "a b"), match("text", None)),
    (match("text", "a b"), match("text.gaps", "a b")),
    (match("text", "a b", operator="or"), match("text", "a b", operator="and")),
    (match("text", "a b", operator="or"), {"match": {"text": {"operator": "or", "query": 5}}}),
    (
        {"bool": {"should": [match("text", "a b")]}},
        {"bool": {"should": [match("text", "a b"), match("text.gaps", "a b")]}},
    ),
    ({"bool": {"must": [match("text", "a b")]}}, {"bool": {"must": match("text", "a b")}}),
    ({"bool": {"must": [match("text", "a b")]}}, {"bool": {"should": [match("text", "a b")]}}),
    (term("tag", "x"), term("tag", {"value": "x"})),
    (term("tag", "x"), term("tag", ["x"])),
    (term("tag", "x"), term("tag", "x" * 40_000)),
]


@pytest.mark.parametrize(("first", "second"), DIFFERENT, ids=json.dumps)
@pytest.mark.parametrize("reverse", [False, True])
def test_queries_that_differ_in_more_than_texts_are_parsed_again(
    index: EmbeddedIndex, first: Json, second: Json, reverse: bool
) -> None:
    def outcome(reader: BodyReader, query: Json) -> str:
        try:
            return repr(reader.ranked(body(query)).query)
        except Refused as error:
            return f"refused: {error}"

    reader = fresh(index)
    if reverse:
        first, second = second, first
    outcome(reader, copy.deepcopy(first))
    assert outcome(reader, second) == outcome(fresh(index), second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"size": 1}, {"size": 2}),
        ({"size": 1}, {"size": True}),
        ({"track_total_hits": 0}, {"track_total_hits": False}),
        ({"min_score": 0.5}, {"min_score": 0.25}),
        ({"from": 0}, {"from": 2}),
        ({}, {"search_after": [1.5, "1"]}),
        ({"sort": [{"_score": "desc"}]}, {"sort": [{"_score": "asc"}]}),
        ({"sort": ({"_score": "desc"},)}, {"sort": ({"_score": "asc"},)}),
        ({"_source": False}, {"_source": "text"}),
        ({}, {"post_filter": term("tag", "x")}),
        ({}, {"aggs": {"tags": {"terms": {"field": "tag"}}}}),
        ({}, {"unknown": 1}),
    ],
    ids=json.dumps,
)
@pytest.mark.parametrize("reverse", [False, True])
def test_bodies_that_differ_outside_the_query_are_parsed_again(
    index: EmbeddedIndex, first: Json, second: Json, reverse: bool
) -> None:
    def outcome(reader: BodyReader, text: str, other: Json) -> str:
        try:
            return repr(reader.ranked({"query": match("text", text), "size": 5, **other}))
        except Refused as error:
            return f"refused: {error}"

    reader = fresh(index)
    if reverse:
        first, second = second, first
    outcome(reader, "a b", copy.deepcopy(first))
    assert outcome(reader, "c d", second) == outcome(fresh(index), "c d", second)


def test_a_repeated_query_object_is_not_taken_for_a_template(index: EmbeddedIndex) -> None:
    reader = fresh(index)
    first, second = match("text", "a b"), match("text", "c d")
    reader.ranked(body({"bool": {"should": [first, first]}}))
    request = body({"bool": {"should": [first, second]}})
    assert repr(reader.ranked(request).query) == repr(fresh(index).read(request).query)


def test_a_changed_body_is_parsed_again(index: EmbeddedIndex) -> None:
    reader = fresh(index)
    everything = {"boost": 0}
    query = {"bool": {"must": [{"match_all": everything}], "should": [match("text", "a b")]}}
    before = repr(reader.ranked(body(query)).query)
    everything["boost"] = 2
    changed = repr(reader.ranked(body(query)).query)
    assert changed == repr(fresh(index).read(body(query)).query) != before


def test_too_many_clauses_from_a_template_are_rejected(index: EmbeddedIndex) -> None:
    reader = fresh(index)
    reader.ranked(body(match("text", "a b")))
    with pytest.raises(Refused, match="8,193 clauses"):
        reader.ranked(body(match("text", " ".join(map(str, range(8_193))))))


def test_an_invalid_highlight_is_rejected_in_a_ranking(index: EmbeddedIndex) -> None:
    reader = fresh(index)
    reader.ranked(body(match("text", "a b")))
    with pytest.raises(Refused, match="no such query|`nonsense`"):
        reader.ranked(
            body(match("text", "a c"), highlight={"highlight_query": {"nonsense": {}}, "fields": {}})
        )
