from __future__ import annotations

from typing import Any

from searchapp import tasks
from searchapp.lucene.index.index_settings import NOT_INDEXED
from searchapp.ranking.query_language import FieldKind, SearchFields

MAPPING: dict[str, Any] = {
    "settings": {"analysis": {"analyzer": {"default": {}, "own": {}, "asked": {}}}},
    "mappings": {
        "properties": {
            "id": {"type": "keyword"},
            "text": {
                "type": "text",
                "analyzer": "own",
                "search_analyzer": "asked",
                "fields": {"short": {"type": "text", "analyzer": "own"}, "raw": {"type": "keyword"}},
            },
            "title": {"type": "text"},
            "a.b": {"type": "text", "analyzer": "own"},
            "answer": {"properties": {"label": {"type": "keyword"}}},
            "year": {"type": "short"},
            "ratio": {"type": "double"},
            "day": {"type": "date"},
            "hidden": {"type": "keyword", "index": False},
            "kept": NOT_INDEXED,
        }
    },
}


def test_each_field_has_a_kind_by_its_full_name() -> None:
    assert dict(SearchFields.of(MAPPING, {}).kinds) == {
        "id": FieldKind.value,
        "text": FieldKind.text,
        "text.short": FieldKind.text,
        "text.raw": FieldKind.value,
        "title": FieldKind.text,
        "a.b": FieldKind.text,
        "answer.label": FieldKind.value,
        "year": FieldKind.integer,
        "ratio": FieldKind.number,
    }


def test_words_are_looked_for_in_the_texts_that_the_recipe_matches() -> None:
    def searched(query: dict[str, Any]) -> tuple[str, ...]:
        return SearchFields.of(MAPPING, query).searched

    assert searched({}) == ("text", "title", "a.b")
    assert searched({"match": {"text.short": "x"}}) == ("text",)
    assert searched({"bool": {"should": [{"match_phrase": {"title": "x"}}, {"match": {"year": 5}}]}}) == (
        "title",
    )
    assert searched({"multi_match": {"query": "x", "fields": ["title^2", "a.b"]}}) == ("title", "a.b")
    assert searched({"multi_match": {"query": "x", "fields": "text.short"}}) == ("text",)
    assert searched({"term": {"text": "x"}}) == ("text", "title", "a.b")


def test_each_text_has_what_analyzes_queries_in_it() -> None:
    assert dict(SearchFields.of(MAPPING, {}).analyzers) == {
        "text": "asked",
        "text.short": "own",
        "title": "default",
        "a.b": "own",
    }


def test_documents_are_filtered_by_whole_fields_that_are_no_text() -> None:
    fields = SearchFields.of(MAPPING, {})
    assert fields.filters == ("answer.label", "year", "ratio")
    assert fields.facets == ("answer.label",)


def test_checkthat_has_values_and_a_number() -> None:
    fields = SearchFields.of(tasks.load("checkthat").index_mapping(), {})
    assert fields.filters == ("debate", "part", "line", "speaker")
    assert fields.facets == ("debate", "part", "speaker")
