"""What is outside the supported subset is refused by name, with a word on who supports it."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import EngineRefused
from searchapp.model import Document
from tests.engines.embedded.conftest import MAPPING, body, spec_of

ELSEWHERE = "; Elasticsearch does: use --engine elasticsearch"
MATCH = {"match": {"text": "a"}}


@pytest.fixture
def index(embedded: EmbeddedEngine) -> Any:
    documents = [Document("1", "a b", {"year": 1})]
    embedded.build("refusing", spec_of(documents), documents)
    return embedded.open("refusing")


@pytest.mark.parametrize(
    ("query", "piece"),
    [
        ({"fuzzy": {"text": "a"}}, "the query `fuzzy`"),
        ({"query_string": {"query": "a"}}, "the query `query_string`"),
        ({"more_like_this": {"like": "a"}}, "the query `more_like_this`"),
        ({"match": {"text": {"query": "a", "fuzziness": "AUTO"}}}, "`fuzziness` in the query `match`"),
        ({"match": {"text": {"query": "a", "_name": "x"}}}, "`_name` in the query `match`"),
        ({"match_phrase": {"text": {"query": "a b", "slop": 1}}}, "`slop: 1` of the query `match_phrase`"),
        ({"match_phrase": {"text.alike": "ring car"}}, "several terms on one position"),
        ({"multi_match": {"query": "a", "fields": ["text"], "type": "cross_fields"}}, "`type: cross_fields`"),
        ({"multi_match": {"query": "a", "fields": ["te*"]}}, "the pattern `te*`"),
        ({"multi_match": {"query": "a", "fields": ["text"], "slop": 1}}, "`slop` in the query `multi_match`"),
        (
            {"term": {"tag": {"value": "a", "case_insensitive": True}}},
            "`case_insensitive` in the query `term`",
        ),
        ({"terms": {"tag": {"index": "x", "id": "1", "path": "y"}}}, "the lookup of terms"),
        ({"range": {"tag": {"gte": "a"}}}, "the query `range` on tag"),
        ({"range": {"year": {"gte": 1, "format": "yyyy"}}}, "`format` in the query `range`"),
        (
            {"bool": {"must": [MATCH], "adjust_pure_negative": False}},
            "`adjust_pure_negative` in the query `bool`",
        ),
        (
            {"function_score": {"query": MATCH, "random_score": {}}},
            "`random_score` in the query `function_score`",
        ),
        ({"function_score": {"query": MATCH, "functions": [{"gauss": {}}]}}, "`gauss` in a function"),
        ({"term": {"_id": "1"}}, "queries on `_id`"),
    ],
)
def test_a_query_outside_the_subset_is_refused(index: Any, query: dict[str, Any], piece: str) -> None:
    with pytest.raises(EngineRefused, match=re.escape(piece)) as refusal:
        list(index.search([body(query)]))
    assert str(refusal.value).endswith(ELSEWHERE)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"match": {"text": {"query": "a", "boost": -1}}}, "the boost of the query `match` is -1"),
        ({"match": {"text": {"operator": "and"}}}, "the query `match` lacks `query`"),
        ({"match": {"text": {"query": "a", "minimum_should_match": "some"}}}, "minimum_should_match 'some'"),
        ({"match": {"text": "a", "tag": "b"}}, "the query `match` must name one thing, not text, tag"),
        ({"match": {"year": "soon"}}, "the number for year must be a number, not 'soon'"),
        ({}, "a query must name one thing, not nothing"),
        (
            {"function_score": {"query": MATCH, "field_value_factor": {"field": "weight"}}},
            "has no value in weight",
        ),
    ],
)
def test_a_query_that_makes_no_sense_is_a_sentence(index: Any, query: dict[str, Any], problem: str) -> None:
    with pytest.raises(EngineRefused, match=re.escape(problem)):
        list(index.search([body(query)]))


@pytest.mark.parametrize(
    ("more", "piece"),
    [
        ({"aggs": {}}, "`aggs` in a search body"),
        ({"sort": [{"year": "asc"}]}, "`sort: "),
        ({"sort": None}, "`sort: None`"),
        ({"_source": "t*"}, "the pattern or path `t*` in `_source`"),
        ({"highlight": {"fields": {"text": {}}}}, "`type: unified` of `highlight`"),
        ({"highlight": {"type": "plain", "fields": {"text": {}}}}, "fragments in `highlight`"),
        ({"highlight": {"type": "plain", "order": "score", "fields": {}}}, "`order` in `highlight`"),
        (
            {
                "explain": True,
                "query": {"constant_score": {"filter": {"function_score": {"query": MATCH, "weight": 2}}}},
            },
            "the explanation of `function_score` inside a filter",
        ),
        (
            {
                "explain": True,
                "query": {
                    "boosting": {"positive": MATCH, "negative": {"match_none": {}}, "negative_boost": 0.5}
                },
            },
            "the explanation of a query inside another one that matches nothing",
        ),
    ],
)
def test_a_body_outside_the_subset_is_refused(index: Any, more: dict[str, Any], piece: str) -> None:
    with pytest.raises(EngineRefused, match=re.escape(piece)) as refusal:
        index.find(body(MATCH) | more)
    assert str(refusal.value).endswith(ELSEWHERE)


@pytest.mark.parametrize(
    ("path", "value", "piece"),
    [
        (["mappings", "properties", "day"], {"type": "date"}, "the type `date` of the field day"),
        (["mappings", "properties", "text", "norms"], False, "`norms` in the field text"),
        (
            ["mappings", "properties", "text", "similarity"],
            "boolean",
            "the similarity `boolean` of the field text",
        ),
        (["mappings", "dynamic"], True, "`dynamic: True`"),
        (["mappings", "runtime"], {}, "`runtime` in `mappings`"),
        (["settings", "number_of_shards"], 2, "`number_of_shards` in the settings"),
        (["settings", "similarity", "flat"], {"type": "DFR"}, "the type `DFR` of the similarity flat"),
        (["aliases"], {}, "`aliases` in a mapping"),
    ],
)
def test_a_mapping_outside_the_subset_is_refused(
    embedded: EmbeddedEngine, path: list[str], value: Any, piece: str
) -> None:
    mapping = copy.deepcopy(MAPPING)
    place = mapping
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(EngineRefused, match=re.escape(piece)) as refusal:
        embedded.build("refused", spec_of([], mapping), [])
    assert str(refusal.value).endswith(ELSEWHERE)
    assert embedded.index_info("refused") is None


def test_several_shards_are_refused(embedded: EmbeddedEngine) -> None:
    spec = spec_of([])
    with pytest.raises(EngineRefused, match="3 shards, only 1"):
        embedded.build("sharded", type(spec)(spec.mapping, 0, "1", shards=3), [])
