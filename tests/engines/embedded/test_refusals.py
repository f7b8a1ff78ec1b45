"""Unsupported features are rejected with an error that names them and an engine that supports them."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import EngineRefused, UsageError
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
        ({"percolate": {"field": "text"}}, "the query `percolate`"),
        ({"fuzzy": {"text": {"value": "a", "rewrite": "constant_score"}}}, "the rewrite `constant_score`"),
        ({"fuzzy": {"text": {"value": "é" * 51}}}, "a term of more than 50 characters"),
        ({"match": {"text": {"query": "a", "_name": "x"}}}, "`_name` in the query `match`"),
        ({"multi_match": {"query": "a", "fields": ["text"], "type": "other"}}, "`type: other`"),
        ({"multi_match": {"query": "a", "fields": ["te*"]}}, "the pattern `te*`"),
        (
            {"term": {"tag": {"value": "a", "case_insensitive": True}}},
            "`case_insensitive` in the query `term`",
        ),
        ({"term": {"tag": {"term": ["a"]}}}, "a list as `term` of the query `term`"),
        (
            {"function_score": {"query": MATCH, "functions": [{"weight": 2, "filter": []}]}},
            "a list as `filter` of a function",
        ),
        (
            {"function_score": {"field_value_factor": {"field": "year", "missing": []}}},
            "a list as `missing` of `field_value_factor`",
        ),
        ({"terms": {"tag": {"index": "x", "id": "1", "path": "y"}}}, "the lookup of terms"),
        ({"regexp": {"tag": ".*a.{12}"}}, "an automaton of more than 1,024 states"),
        ({"regexp": {"tag": "(" * 400 + "a" + ")" * 400}}, "the deeply nested regular expression"),
        ({"regexp": {"tag": {"value": "é", "case_insensitive": True}}}, "`case_insensitive` for 'é'"),
        ({"regexp": {"tag": {"value": "a()", "case_insensitive": True}}}, "an empty part of a regular"),
        ({"regexp": {"tag": {"value": "a", "max_determinized_states": 5}}}, "`max_determinized_states: 5`"),
        ({"wildcard": {"tag": "*a" + "?" * 40}}, "more than 8 `?` after a `*`"),
        (
            {"simple_query_string": {"query": "a", "fields": ["*d"]}},
            "the pattern `*d` for the names of fields",
        ),
        (
            {"simple_query_string": {"query": "(" * 60 + "a" + ")" * 60, "fields": ["text"]}},
            "more than 50 nested parts",
        ),
        (
            {"simple_query_string": {"query": "a + b | c " * 60, "fields": ["text"]}},
            "more than 50 nested parts",
        ),
        (
            {"query_string": {"query": "/r.*/", "fields": ["text"], "analyzer": "standard"}},
            "a regular expression with `analyzer`",
        ),
        ({"query_string": {"query": '"a b"~-1', "fields": ["text"]}}, "the slop -1 of a phrase"),
        ({"query_string": {"query": "_exists_:te\\*"}}, "the pattern `te*` for the names of fields"),
        ({"query_string": {"query": "_id:1"}}, "queries on `_id`"),
        ({"query_string": {"query": "a", "type": "cross_fields"}}, "`type: cross_fields` of the query"),
        (
            {"query_string": {"query": "+a b c d", "fields": ["text"], "minimum_should_match": 1}},
            "`minimum_should_match` of the query `query_string` with required and optional clauses",
        ),
        ({"query_string": {"query": "(" * 60 + "a" + ")" * 60}}, "more than 50 nested parts"),
        (
            {"bool": {"must": [MATCH], "adjust_pure_negative": False}},
            "`adjust_pure_negative` in the query `bool`",
        ),
        (
            {"function_score": {"query": MATCH, "random_score": {}}},
            "`random_score`, whose numbers depend on the name of the index, in `function_score`",
        ),
        ({"function_score": {"query": MATCH, "functions": [{"script_score": {}}]}}, "`script_score` (use"),
        ({"term": {"_id": "1"}}, "queries on `_id`"),
        (
            {"boosting": {"positive": MATCH, "negative": MATCH, "negative_boost": "NaN"}},
            "nan as negative_boost",
        ),
        ({"multi_match": {"query": "a"}}, "the query `multi_match` without fields"),
    ],
)
def test_unsupported_queries_are_rejected(index: Any, query: dict[str, Any], piece: str) -> None:
    with pytest.raises(EngineRefused, match=re.escape(piece)) as refusal:
        list(index.search([body(query)]))
    assert str(refusal.value).endswith(ELSEWHERE)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"match": {"text": {"query": "a", "boost": -1}}}, "the boost of the query `match` is -1"),
        ({"match": {"text": {"operator": "and"}}}, "the query `match` lacks `query`"),
        (
            {"match": {"text": {"query": "a b", "minimum_should_match": "some"}}},
            "minimum_should_match 'some'",
        ),
        (
            {"match": {"text": "a", "tag": "b"}},
            "the query `match` must have exactly one entry, not text, tag",
        ),
        ({"match": {"year": "soon"}}, "the number for year must be a number, not 'soon'"),
        ({}, "a query must have exactly one entry, not none"),
        (
            {"function_score": {"query": MATCH, "field_value_factor": {"field": "weight"}}},
            "has no value in weight",
        ),
    ],
)
def test_invalid_queries_are_rejected_with_a_reason(index: Any, query: dict[str, Any], problem: str) -> None:
    with pytest.raises(EngineRefused, match=re.escape(problem)):
        list(index.search([body(query)]))


def scored(**parameters: Any) -> dict[str, Any]:
    return {"function_score": {"query": MATCH, **parameters}}


INVALID_QUERIES: list[dict[str, Any]] = [
    {"multi_match": {"query": "a", "fields": [[]]}},
    {"multi_match": {"query": "a", "fields": ["text", "text.gaps"], "tie_breaker": 2}},
    {"match": {"text": {"query": "a", "analyzer": ""}}},
    {"match": {"text": {"query": "a", "boost": 1e39}}},
    {"match": {"text": {"query": "a", "boost": float("inf")}}},
    {"match": {"nowhere": {"query": "a", "boost": -1}}},
    {"match_phrase": {"text": {"query": "a", "zero_terms_query": "some"}}},
    {"match_none": {"boost": -1}},
    {"term": {"nowhere": ["a"]}},
    {"term": {"tag": {"value": ["a"], "term": "a"}}},
    {"term": {"tag": {"term": {}, "value": "a"}}},
    {"match_phrase": {"": "a"}},
    {"term": {"year": "\u0661"}},
    {"terms": {"tag": ["x", None]}},
    {"range": {"year": 5}},
    {"range": {"nowhere": []}},
    {"range": {"year": {"gt": 2**40}}},
    {"range": {"long": {"lte": 2**63}}},
    {"ids": {"values": [""]}},
    {"ids": {"values": 1}},
    {"exists": {"field": ["text"]}},
    {"bool": {"must": ""}},
    {"bool": {"filter": {}}},
    {"dis_max": {"queries": []}},
    {"boosting": {"positive": MATCH, "negative": MATCH, "negative_boost": -1}},
    scored(functions=True),
    scored(functions=[{"weight": 2, "filter": {}}]),
    scored(field_value_factor={"field": "year", "missing": "a"}),
    {"function_score": {"query": {}, "weight": 2}},
]
"""Queries that the server rejects too."""


@pytest.mark.parametrize("query", INVALID_QUERIES, ids=repr)
def test_queries_that_the_server_rejects_are_rejected(index: Any, query: dict[str, Any]) -> None:
    with pytest.raises(EngineRefused, match="invalid request"):
        list(index.search([body(query)]))


@pytest.mark.parametrize(
    "query",
    [
        scored(weight=-0.0),
        scored(field_value_factor={"field": "year", "missing": -0.0}),
        scored(field_value_factor={"field": "year", "factor": "-0"}),
    ],
    ids=repr,
)
def test_scores_of_minus_zero_are_rejected(index: Any, query: dict[str, Any]) -> None:
    with pytest.raises(EngineRefused, match=re.escape("-0.0 as")):
        list(index.search([body(query)]))


def test_field_values_of_minus_zero_are_rejected_as_factors(embedded: EmbeddedEngine) -> None:
    documents = [Document("1", "a", {"weight": -0.0}), Document("2", "a", {"weight": 0.0})]
    embedded.build("zeros", spec_of(documents), documents)
    with pytest.raises(EngineRefused, match=re.escape("is -0.0")):
        list(embedded.open("zeros").search([body(scored(field_value_factor={"field": "weight"}))]))


@pytest.mark.parametrize(
    "parameters",
    [
        {"_source": None},
        {"_source": 1},
        {"_source": {"includes": True}},
        {"explain": "no"},
        {"highlight": True},
        {"highlight": {"type": "plain", "number_of_fragments": 0, "fields": ["text"]}},
        {"highlight": {"type": "plain", "number_of_fragments": 0, "fields": {"text": None}}},
        {"highlight": {"type": "plain", "number_of_fragments": 0, "fields": {"text": {}}, "pre_tags": ["<"]}},
    ],
    ids=repr,
)
def test_invalid_bodies_are_rejected(index: Any, parameters: dict[str, Any]) -> None:
    with pytest.raises(EngineRefused, match="invalid request"):
        index.find(body(MATCH) | parameters)


@pytest.mark.parametrize(
    ("parameters", "piece"),
    [
        ({"aggs": {"best": {"top_hits": {}}}}, "the aggregation `top_hits`"),
        ({"sort": "_doc"}, "the sort by `_doc`"),
        ({"_source": "t**"}, "the pattern `t**` in `_source`"),
        ({"highlight": {"fields": {"text": {"type": "fvh"}}}}, "`type: fvh` of `highlight`"),
        ({"highlight": {"boundary_scanner": "chars", "fields": {"text": {}}}}, "`boundary_scanner: chars`"),
        ({"highlight": {"force_source": True, "fields": {}}}, "`force_source` in `highlight`"),
        (
            {"highlight": {"fields": {"year": {"matched_fields": ["text"]}}}},
            "highlights of year, which is integer,",
        ),
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
def test_unsupported_bodies_are_rejected(index: Any, parameters: dict[str, Any], piece: str) -> None:
    with pytest.raises(EngineRefused, match=re.escape(piece)) as refusal:
        index.find(body(MATCH) | parameters)
    assert str(refusal.value).endswith(ELSEWHERE)


def mapping_with(path: list[str], value: Any) -> dict[str, Any]:
    """Return a copy of `MAPPING` with another value at a path."""
    mapping = copy.deepcopy(MAPPING)
    parent = mapping
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return mapping


@pytest.mark.parametrize(
    ("path", "value", "piece"),
    [
        (["mappings", "properties", "text", "index_phrases"], True, "`index_phrases` in the field text"),
        (["mappings", "properties", "text", "similarity"], "LM", "the similarity `LM` of the field text"),
        (["mappings", "properties", "text", "copy_to"], "all", "`copy_to: all` of the field text"),
        (["mappings", "properties", "text", "copy_to"], "id", "`copy_to: id` of the field text"),
        (["mappings", "properties", "id", "doc_values"], False, "`doc_values: false` of the field id"),
        (["settings", "max_result_window"], 100, "`max_result_window: 100`, only 10,000 or more"),
        (["mappings", "properties", "year", "coerce"], False, "`coerce: false` of the field year"),
        (["mappings", "runtime"], {}, "`runtime` in `mappings`"),
        (["settings", "similarity", "flat"], {"type": "DFR"}, "the type `DFR` of the similarity flat"),
        (["aliases"], {}, "`aliases` in a mapping"),
    ],
)
def test_unsupported_mappings_are_rejected(
    embedded: EmbeddedEngine, path: list[str], value: Any, piece: str
) -> None:
    mapping = mapping_with(path, value)
    with pytest.raises(EngineRefused, match=re.escape(piece)) as refusal:
        embedded.build("refused", spec_of([], mapping), [])
    assert str(refusal.value).endswith(ELSEWHERE)
    assert embedded.index_info("refused") is None


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["settings"], None),
        (["mappings"], []),
        (["mappings", "properties"], ["text"]),
        (["mappings", "properties", "text"], "text"),
        (["mappings", "properties", "text", "fields"], ["gaps"]),
        (["mappings", "properties", "text", "analyzer"], ""),
        (["mappings", "properties", "text", "search_analyzer"], {}),
        (["mappings", "properties", "tag", "meta"], 1),
        (["mappings", "properties", "tag", "ignore_above"], -1),
        (["mappings", "properties", "other"], {"dynamic": False}),
        (["mappings", "properties", "year", "null_value"], "x"),
        (["mappings", "properties", "other"], {"type": "alias", "path": "nowhere"}),
        (["mappings", "dynamic"], "some"),
        (["mappings", "properties", ""], {"type": "keyword"}),
        (["settings", "analysis"], "words"),
        (["settings", "similarity", "flat"], "BM25"),
        (["settings", "similarity", "flat"], {"k1": 1}),
        (["settings", "similarity", "flat", "k1"], "much"),
        (["settings", "similarity", "flat", "b"], True),
    ],
    ids=repr,
)
def test_invalid_mappings_are_rejected(embedded: EmbeddedEngine, path: list[str], value: Any) -> None:
    mapping = mapping_with(path, value)
    with pytest.raises(EngineRefused, match="invalid request"):
        embedded.build("refused", spec_of([], mapping), [])


def test_all_problems_of_a_mapping_are_reported_with_their_paths(embedded: EmbeddedEngine) -> None:
    mapping = {
        "settings": {
            "analysis": {"filter": {"odd": {"type": "kstem"}}},
            "similarity": {"flat": {"type": "BM25", "b": 2}},
            "shards": 3,
        },
        "mappings": {
            "dynamic": "some",
            "properties": {
                "id": {"type": "keyword"},
                "text": {"type": "text", "analyzer": "englsh", "index_phrases": True, "boost": 2},
                "body": {"type": "text", "analyzer": "englsh", "fields": {"raw": {"type": "wildcard"}}},
                "place": {"type": "percolate"},
                "object": {"properties": {"inner": {"type": "text", "analyzer": "englsh"}}},
            },
        },
    }
    with pytest.raises(EngineRefused) as error:
        embedded.build("refused", spec_of([], mapping), [])
    assert [line.partition(": ")[0] for line in error.value.lines] == [
        "settings",
        "settings.similarity.flat",
        "mappings",
        "mappings.properties.text",
        "mappings.properties.body.fields.raw",
        "mappings.properties.place",
        "settings.analysis.filter.odd",
        "mappings.properties.body",
        "mappings.properties.object.properties.inner",
    ]
    assert "`index_phrases` and `boost` in the field text" in str(error.value)


def test_all_problems_of_a_search_body_are_reported_with_their_paths(embedded: EmbeddedEngine) -> None:
    embedded.build("body", spec_of([], MAPPING), [])
    query = {
        "bool": {
            "must": [{"match": {"text": "a"}}, {"intervals": {"text": "a"}}],
            "should": [
                {"dis_max": {"queries": [{"match": {"text": {"query": "a", "slop": 1}}}, {"nothing": {}}]}}
            ],
            "filter": {"span_term": {"text": "a"}},
        }
    }
    index = embedded.open("body")
    request = {"query": query, "sort": "_doc", "size": 10}
    for search in (index.find, lambda search_body: list(index.search([search_body]))):
        with pytest.raises(EngineRefused) as error:
            search(request)
        assert [line.partition(": ")[0] for line in error.value.lines][:4] == [
            "query.bool.must[1]",
            "query.bool.should[0].dis_max.queries[0]",
            "query.bool.should[0].dis_max.queries[1]",
            "query.bool.filter",
        ]
        assert len(error.value.lines) == 5 and "the sort by `_doc`" in error.value.lines[4]


def test_all_problems_outside_the_query_are_reported_with_their_paths(embedded: EmbeddedEngine) -> None:
    embedded.build("body", spec_of([], MAPPING), [])
    request = {
        "query": {"intervals": {"text": "a"}},
        "aggs": {
            "a": {"terms": {"field": 1}},
            "b": {"filter": {"match_all": {}}, "aggs": {"c": {"avg": {}}}},
        },
        "sort": "_doc",
        "from": -1,
        "size": "many",
        "search_after": [1],
        "track_scores": 2,
        "track_total_hits": "some",
        "_source": {"includes": ["t**"], "excludes": "a.**", "only": "text"},
        "explain": "no",
        "highlight": {
            "unknown": "score",
            "number_of_fragments": "many",
            "fields": {"text": {}, "body": {}, "te*": {"type": "plain", "pre_tags": "<"}},
            "highlight_query": {"bool": {"must": [{"nothing": {}}, {"span_term": {"text": "a"}}]}},
        },
    }
    index = embedded.open("body")
    for search in (index.find, lambda search_body: list(index.search([search_body]))):
        with pytest.raises(EngineRefused) as error:
            search(request)
        assert [line.partition(": ")[0] for line in error.value.lines] == [
            "the embedded engine does not support the query `intervals`; Elasticsearch does",
            "sort",
            "from",
            "size",
            "track_scores",
            "track_total_hits",
            "search_after",
            "_source",
            "_source.includes[0]",
            "_source.excludes",
            *["highlight"] * 2,
            "highlight.fields.te*",
            "explain",
            "aggs.a.terms",
            "aggs.b.aggs.c.avg",
            "highlight.highlight_query.bool.must[0]",
            "highlight.highlight_query.bool.must[1]",
        ]


def test_paths_of_problems_refer_to_the_original_body(index: Any) -> None:
    query = {"bool": {"must": [MATCH], "should": [{"intervals": {"text": "a"}}], "minimum_should_match": 1}}
    for search in (index.find, lambda search_body: list(index.search([search_body]))):
        with pytest.raises(EngineRefused, match=r"^query\.bool\.should\[0\]: "):
            search(body(query))


def test_an_unknown_search_analyzer_is_rejected_before_indexing(
    embedded: EmbeddedEngine,
) -> None:
    mapping = copy.deepcopy(MAPPING)
    mapping["mappings"]["properties"]["text"]["search_analyzer"] = "nowhere"
    with pytest.raises(UsageError, match="mappings.properties.text: unknown analyzer `nowhere`"):
        embedded.build("refused", spec_of([], mapping), [])


@pytest.mark.parametrize(
    "document",
    [Document("", "a"), Document("x" * 513, "a"), Document("1", "a", {"year": float("nan")})],
    ids=repr,
)
def test_documents_that_the_server_rejects_are_rejected(embedded: EmbeddedEngine, document: Document) -> None:
    with pytest.raises(EngineRefused, match="nothing was changed"):
        embedded.build("refused", spec_of([document]), [document])


def test_several_shards_are_rejected(embedded: EmbeddedEngine) -> None:
    spec = spec_of([])
    with pytest.raises(EngineRefused, match="3 shards, only 1"):
        embedded.build("sharded", type(spec)(spec.mapping, 0, "1", shards=3), [])
