"""Terms in several fields, scored as if the fields were one, or with shared document frequencies."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest

from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import EngineRefused
from searchapp.lucene.queries.combined import blended_frequencies
from searchapp.lucene.similarity import FieldStatistics
from searchapp.model import Document
from tests.engines.embedded.conftest import EnginePair, body, spec_of

Json = dict[str, Any]

TEXT: Json = {"type": "text", "analyzer": "plain"}
FIELDS = ["text", "title", "tags.name"]
MAPPING: Json = {
    "settings": {
        "analysis": {
            "filter": {"same": {"type": "synonym", "synonyms": ["b, z", "united states, usa"]}},
            "analyzer": {
                "plain": {"tokenizer": "whitespace", "filter": ["lowercase"]},
                "synonyms": {"tokenizer": "whitespace", "filter": ["lowercase", "same"]},
            },
        },
        "similarity": {"default": {"type": "BM25", "k1": 0.9, "b": 0.6}, "flat": {"type": "BM25", "b": 0.1}},
    },
    "mappings": {
        "dynamic": "strict",
        "properties": {
            "id": {"type": "keyword"},
            "text": TEXT,
            "title": {
                **TEXT,
                "fields": {
                    "own": {**TEXT, "similarity": "flat"},
                    "alike": {**TEXT, "search_analyzer": "synonyms"},
                },
            },
            "tags": {
                "properties": {"name": {**TEXT, "fields": {"alike": {**TEXT, "search_analyzer": "synonyms"}}}}
            },
            "kind": {"type": "keyword"},
            "short": {"type": "alias", "path": "title"},
        },
    },
}


def documents() -> list[Document]:
    random_ = random.Random(3)

    def words(most: int) -> str:
        return " ".join(random_.choices("abcdefgh", [32, 16, 8, 8, 4, 4, 2, 1], k=random_.randint(0, most)))

    return [
        Document(
            str(number),
            words(12),
            {
                **({"title": words(4)} if random_.random() < 0.7 else {}),
                **({"tags": {"name": [words(3), words(60)]}} if random_.random() < 0.4 else {}),
                "kind": random_.choice("abc"),
            },
        )
        for number in range(40)
    ]


def combined(query: str, fields: Any, **more: Any) -> Json:
    return {"combined_fields": {"query": query, "fields": fields, **more}}


def cross(query: str, fields: list[str], **more: Any) -> Json:
    return {"multi_match": {"query": query, "fields": fields, "type": "cross_fields", **more}}


ALIKE = ["title.alike", "tags.name.alike^2"]
QUERIES: list[Json] = [
    *(
        make(query, fields, **more)
        for make, query, fields, more in itertools.product(
            (combined, cross),
            ("a", "a b", "h c a a absent"),
            (
                FIELDS,
                ["text^2", "title"],
                ["tags.name^1.7", "text^3.25"],
                ["title"],
                ["text^1.5", *FIELDS[1:], "nowhere"],
            ),
            ({}, {"operator": "and"}, {"minimum_should_match": 2, "boost": 0.3}),
        )
    ),
    *(make("a b c", ALIKE) for make in (combined, cross)),
    *(make("", FIELDS, zero_terms_query="all") for make in (combined, cross)),
    *({"bool": {"must": make("a", FIELDS), "filter": make("c d", FIELDS)}} for make in (combined, cross)),
    *({"constant_score": {"filter": make("c d", FIELDS)}} for make in (combined, cross)),
    *(
        {"bool": {"must": {"match": {"text": "a"}}, "must_not": make("c", FIELDS)}}
        for make in (combined, cross)
    ),
    *(
        {"dis_max": {"queries": [make("a b", FIELDS), make("c", FIELDS, boost=0)]}}
        for make in (combined, cross)
    ),
    {"bool": {"should": [combined("a", FIELDS), combined("a b", FIELDS), {"match": {"text": "c"}}]}},
    combined("a h", ["short", ""]),
    *(cross("a b h", [*FIELDS, "kind^3", "title.own"], tie_breaker=tie) for tie in (0.3, 1)),
    cross("a", [*FIELDS, "kind^3"], analyzer="plain", boost=7),
]


def test_queries_of_several_fields_rank_as_on_the_server(make_pair: Callable[..., EnginePair]) -> None:
    engines = make_pair(documents(), MAPPING)
    for query in QUERIES:
        engines.require_same_hits(query)
        engines.require_same_details(query, explain=True)
        marked: dict[str, Any] = {name: {} for name in ("text", "title", "tags.name", "title.alike", "kind")}
        highlight = {"type": "plain", "number_of_fragments": 0, "fields": marked}
        engines.require_same_details(query, highlight=highlight)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (combined("a", ["text", "kind"]), "needs text fields, kind is keyword"),
        (combined("a", ["title.own"]), "needs the default similarity, title.own has its own"),
        (combined("a", ["text", "title.alike"]), "must have the same search analyzer"),
        (combined("a", ["text^0.5"]), "must be at least 1"),
        (combined("a", 5), "must be a list of names, not 5"),
        (combined("a", []), "the query `combined_fields` without fields"),
        (combined("a", ["title", "short"]), "a field and its alias"),
        (
            combined("a", ["text^1.7", "title", "tags.name"]),
            "not multiples of 0.00390625, with more than 2 fields",
        ),
        (
            combined("united states", ALIKE),
            "a search of several fields as one on title.alike, whose analyzer",
        ),
        (combined("a", FIELDS, analyzer="plain"), "`analyzer` in the query `combined_fields`"),
        ({"combined_fields": {"query": 5, "fields": FIELDS}}, "must be text, not 5"),
        (cross("united states", ALIKE), "a search of several fields as one on title.alike, whose analyzer"),
        (cross("a", FIELDS, tie_breaker=2), "tie_breaker is 2, but must be from 0 to 1"),
    ],
)
def test_queries_of_several_fields_are_rejected(embedded: EmbeddedEngine, query: Json, message: str) -> None:
    embedded.build("refusing", spec_of(documents(), MAPPING), documents())
    with pytest.raises(EngineRefused) as refusal:
        list(embedded.open("refusing").search([body(query)]))
    assert message in str(refusal.value)


def test_blended_document_frequencies_are_possible_in_each_field() -> None:
    large, small = FieldStatistics(100, 1_000), FieldStatistics(7, 30)
    assert blended_frequencies([5, 20, 0], [small, large, large], 100) == [7, 20, 0]
    assert blended_frequencies([20, 10, 5], [large] * 3, 100) == [20, 21, 22]
    assert blended_frequencies([90, 40], [large, FieldStatistics(50, 60)], 100) == [60, 50]
    assert blended_frequencies([3], [large], 100) == [3]
    assert blended_frequencies([0, 0], [large] * 2, 100) == [0, 0]
