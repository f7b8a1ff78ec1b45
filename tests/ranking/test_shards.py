"""Queries that rank equally on several shards, and warnings for other queries."""

from __future__ import annotations

import copy
import json
import secrets
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.base import Index, IndexSpec
from searchapp.engines.elasticsearch import ElasticsearchEngine, searching
from searchapp.engines.elasticsearch.searching import shard_safe
from searchapp.model import Document
from searchapp.ranking import recipes
from searchapp.ranking.signals.direct import Direct
from searchapp.ranking.templates import Template, TopicQuery
from searchapp.tasks import load, names
from tests.engines.embedded.conftest import MAPPING, body
from tests.profile import FULL, SEED

Json = dict[str, Any]

VARIANTS = 20 if FULL else 5
"""The number of variants of each query, with other words and years."""

WORDS = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
MATCH = {"match": {"text": "a b"}}
YEARS = {"range": {"year": {"gte": 3}}}
DATES = {"range": {"when": {"gte": "2003", "lt": "2006"}}}
PHRASE = {"match_phrase": {"text": "a b"}}

INDEPENDENT: list[Json] = [
    MATCH,
    {"bool": {"should": [MATCH, YEARS]}},
    {"bool": {"should": [MATCH, PHRASE]}},
    {"bool": {"must": [MATCH, PHRASE]}},
    {"bool": {"must": MATCH, "filter": PHRASE}},
    {"bool": {"must": MATCH, "must_not": PHRASE}},
    {"bool": {"must": MATCH, "filter": {"term": {"tag": "x"}}}},
    {"bool": {"must": MATCH, "filter": {"terms": {"tag": ["x", "nowhere"]}}}},
    {"bool": {"must": MATCH, "filter": {"prefix": {"tag": "q"}}}},
    {"bool": {"must": MATCH, "must_not": {"ids": {"values": ["1", "2"]}}}},
    {"boosting": {"positive": MATCH, "negative": YEARS, "negative_boost": 0.5}},
    {"function_score": {"query": MATCH, "functions": [{"filter": YEARS, "weight": 2}]}},
    {"dis_max": {"queries": [MATCH, YEARS]}},
    {"multi_match": {"query": "a c", "fields": ["text", "text.gaps^2"]}},
]
DROPPED: list[Json] = [
    {"bool": {"must": MATCH, "filter": YEARS}},
    {"bool": {"must": [MATCH, YEARS]}},
    {"bool": {"must": MATCH, "must_not": [YEARS]}},
    {"bool": {"must": MATCH, "filter": DATES}},
    {"bool": {"must": [MATCH, {"range": {"when": {"lt": "2002-01-01||/y"}}}]}},
    {"bool": {"must": MATCH, "must_not": {"range": {"when": {"gte": "now-100y/y"}}}}},
    {"bool": {"must": MATCH, "must_not": {"term": {"year": 3}}}},
    {"bool": {"must": MATCH, "filter": {"bool": {"must_not": YEARS}}}},
    {"bool": {"must": [MATCH, {"constant_score": {"filter": YEARS}}]}},
    {"bool": {"should": [MATCH, YEARS], "minimum_should_match": 2}},
    {"function_score": {"query": {"bool": {"must": MATCH, "filter": YEARS}}}},
    {"bool": {"must": MATCH, "filter": {"exists": {"field": "ratio"}}}},
    {"bool": {"must": MATCH, "must_not": {"exists": {"field": "long"}}}},
    PHRASE,
    {"match_phrase": {"text": {"query": "a b", "slop": 2, "boost": 3}}},
    {"bool": {"must": [{"term": {"tag": "x"}}, PHRASE]}},
    {"dis_max": {"queries": [PHRASE, {"match": {"text.gaps": "a"}}]}},
]
"""Queries of which a shard alone drops a clause before statistics are collected."""

LEAVES: list[Json] = [
    MATCH,
    YEARS,
    PHRASE,
    DATES,
    {"range": {"when": {"gte": "2007"}}},
    {"range": {"when": {"gte": "2000", "lt": "2004"}}},
    {"term": {"when": "2003"}},
    {"terms": {"when": ["2001", "2003"]}},
    {"exists": {"field": "when"}},
    {"range": {"year": {"lt": 2}}},
    {"term": {"tag": "x"}},
    {"term": {"year": 3}},
    {"terms": {"year": [1, 3]}},
    {"match": {"year": 3}},
    {"match": {"text.gaps": "a c"}},
    {"match_phrase": {"text.gaps": "a c"}},
    {"exists": {"field": "ratio"}},
    {"exists": {"field": "long"}},
    {"exists": {"field": "tag"}},
    {"prefix": {"tag": "x"}},
    {"wildcard": {"tag": "?"}},
    {"range": {"tag": {"gte": "x"}}},
    {"regexp": {"tag": "[xz]|y.+"}},
    {"match_bool_prefix": {"text": "a c"}},
    {"multi_match": {"query": "a c", "fields": ["text", "text.gaps"], "type": "bool_prefix"}},
    {"ids": {"values": ["1", "2"]}},
    {"match_all": {}},
]

DEPENDENT: list[tuple[Json, str]] = [
    ({"more_like_this": {"fields": ["text"], "like": "a"}}, "`more_like_this`"),
    ({"bool": {"should": [MATCH, {"fuzzy": {"text": "a"}}]}}, "`fuzzy`"),
    ({"bool": {"must": {"match": {"text": {"query": "a", "fuzziness": 1}}}}}, "fuzzy `match`"),
    ({"multi_match": {"query": "a", "fields": ["text"], "fuzziness": 1}}, "fuzzy `multi_match`"),
    ({"match_bool_prefix": {"text": {"query": "a b", "fuzziness": 1}}}, "fuzzy `match_bool_prefix`"),
    ({"multi_match": {"query": "a", "type": "phrase"}}, "`multi_match` of the type phrase"),
    ({"multi_match": {"query": "a", "type": "cross_fields"}}, "`multi_match` of the type cross_fields"),
    ({"combined_fields": {"query": "a", "fields": ["text"]}}, "`combined_fields`"),
    ({"dis_max": {"queries": [{"match_phrase_prefix": {"text": "a"}}]}}, "`match_phrase_prefix`"),
    ({"constant_score": {"filter": {"query_string": {"query": "a"}}}}, "`query_string`"),
    ({"boosting": {"positive": MATCH, "negative": {"span_term": {"tag": "x"}}}}, "`span_term`"),
    ({"function_score": {"query": MATCH, "random_score": {}}}, "`random_score`"),
    ({"function_score": {"functions": [{"script_score": {}}]}}, "`script_score`"),
    ({"function_score": {"functions": [{"filter": {"span_term": {"tag": "x"}}}]}}, "`span_term`"),
]


@pytest.mark.parametrize("query", INDEPENDENT + DROPPED + LEAVES, ids=json.dumps)
def test_queries_with_complete_statistics_do_not_depend_on_shards(query: Json) -> None:
    assert recipes.shard_dependence(query) is None


@pytest.mark.parametrize(("query", "part"), DEPENDENT, ids=lambda value: json.dumps(value)[:80])
def test_the_part_of_a_query_that_depends_on_shards_is_named(query: Json, part: str) -> None:
    reason = recipes.shard_dependence(query)
    assert reason is not None
    assert part in reason


def documents(seed: int) -> list[Document]:
    random = Random(seed)
    result = []
    for number in range(random.choice([6, 9, 14])):
        text = " ".join(random.choice(WORDS) for _ in range(random.randrange(1, 9)))
        fields: Json = {"tag": random.choice("xyz"), "year": random.randrange(8)}
        fields |= {"ratio": 1.0} if random.random() < 0.3 else {}
        fields |= {"when": str(2000 + fields["year"])} if random.random() < 0.7 else {}
        result.append(Document(str(number), text, fields | ({"long": 1} if random.random() < 0.1 else {})))
    return result


@pytest.fixture(scope="module")
def triples(
    elasticsearch_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[tuple[Index, Index, Index]]]:
    """Indexes of the same documents on one, three and seven shards."""
    home = tmp_path_factory.mktemp("shards")
    mapping = copy.deepcopy(MAPPING)
    mapping["mappings"]["properties"]["when"] = {"type": "date"}
    settings = Settings(home=home, url=elasticsearch_url, index_prefix=f"test-{secrets.token_hex(4)}")
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        opened = []
        for seed in range(3):
            batch = documents(seed)
            for count in (1, 3, 7):
                name = f"s{seed}-{count}"
                engine.build(name, IndexSpec(mapping, len(batch), name, name, count), batch)
                opened.append(engine.open(name))
        yield list(zip(opened[::3], opened[1::3], opened[2::3], strict=True))
        for index in opened:
            engine.remove(index.info.name)


def variant(query: Json, random: Random) -> Json:
    """Return the query with other words and years."""
    text = json.dumps(query)
    for word in ("a b", "a c", '"a"'):
        words = f"{random.choice(WORDS)} {random.choice(WORDS)}"
        text = text.replace(word, words if word != '"a"' else f'"{words[0]}"')
    return dict(json.loads(text.replace('"gte": 3', f'"gte": {random.randrange(9)}')))


@pytest.mark.parametrize("query", INDEPENDENT + DROPPED, ids=json.dumps)
def test_several_shards_rank_like_one(triples: list[tuple[Index, Index, Index]], query: Json) -> None:
    random = Random(1)
    for single, *several in triples:
        bodies = [body(variant(query, random)) for _ in range(VARIANTS)]
        expected = list(single.search(bodies))
        for index in several:
            assert list(index.search(bodies)) == expected


def compound(random: Random, depth: int = 0) -> Json:
    """Return a random compound query."""
    if depth == 2 or random.random() < 0.25:
        return variant(random.choice(LEAVES), random)
    inner = [compound(random, depth + 1) for _ in range(random.randrange(2, 5))]
    match random.randrange(9):
        case 0:
            return {"dis_max": {"queries": inner, "tie_breaker": random.choice([0, 0.3])}}
        case 1:
            return {"constant_score": {"filter": inner[0]}}
        case 2:
            return {"function_score": {"query": inner[0], "functions": [{"filter": inner[1], "weight": 2}]}}
        case 3:
            return {"boosting": {"positive": inner[0], "negative": inner[1], "negative_boost": 0.5}}
    clauses: Json = {}
    for query in inner:
        clauses.setdefault(random.choice(["must", "should", "filter", "must_not"]), []).append(query)
    if random.random() < 0.3:
        clauses["minimum_should_match"] = random.choice([0, 1, 2, -1, "50%"])
    return {"bool": clauses}


def test_several_shards_rank_random_queries_like_one(triples: list[tuple[Index, Index, Index]]) -> None:
    random = Random(SEED)
    for single, *several in triples:
        for _ in range(50 if FULL else 2):
            bodies = [body(compound(random)) for _ in range(60)]
            expected = list(single.search(bodies))
            for index in several:
                for request, hits, wanted in zip(bodies, index.search(bodies), expected, strict=True):
                    assert hits == wanted, json.dumps(request["query"])


def test_unchanged_queries_rank_differently_on_several_shards(
    triples: list[tuple[Index, Index, Index]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "shard_safe", lambda body, *_: body)
    random = Random(1)
    bodies = [body(variant(query, random)) for query in DROPPED for _ in range(10)]
    different = [list(three.search(bodies)) != list(single.search(bodies)) for single, three, _ in triples]
    assert any(different), "the engine would not need to change queries"


@pytest.mark.parametrize("query", DROPPED, ids=json.dumps)
def test_changed_queries_rank_like_the_original_on_one_shard(
    triples: list[tuple[Index, Index, Index]], monkeypatch: pytest.MonkeyPatch, query: Json
) -> None:
    random = Random(1)
    for single, *_several in triples:
        bodies = [body(variant(query, random)) for _ in range(VARIANTS)]
        expected = list(single.search(bodies))
        changed = [shard_safe(request, frozenset({"year"})) for request in bodies]
        assert changed != bodies
        assert list(single.search(changed)) == expected


def test_marks_do_not_depend_on_shards(triples: list[tuple[Index, Index, Index]]) -> None:
    for single, *several in triples:
        request = body(PHRASE) | {"highlight": {"fields": {"text": {"number_of_fragments": 0}}}}
        marks = {result.hit.document_id: result.highlights for result in single.find(request)}
        for index in several:
            assert {result.hit.document_id: result.highlights for result in index.find(request)} == marks


@pytest.mark.parametrize(
    "query",
    [
        None,
        [],
        "text",
        {"match_phrase": "text"},
        {"match_phrase": {}},
        {"match_phrase": {"text": {}}},
        {"bool": []},
    ],
    ids=json.dumps,
)
def test_invalid_queries_are_sent_unchanged(query: Any) -> None:
    assert shard_safe({"query": query}, frozenset()) == {"query": query}


def test_a_recipe_that_depends_on_shards_has_a_warning_on_several_shards() -> None:
    task = load("nlps")
    recipe = recipes.load(task.recipe_book(), "words")
    assert not list(recipes.shard_warnings(recipe, task.index_mapping(), 3))
    template = Template({"query": DEPENDENT[0][0]}, "mine.json")
    signal = Direct("direct", query=TopicQuery(template, "digest", {}))
    dependent = replace(recipe, signals=(signal,))
    assert not list(recipes.shard_warnings(dependent, EMPTY, 1))
    (warning,) = recipes.shard_warnings(dependent, EMPTY, 3)
    assert warning.startswith(
        "mine.json may rank differently on these 3 shards than on one, because of its `more_like_this`"
    )
    aggregations = {"a": {"filter": {"match_all": {}}, "aggs": {"b": {"terms": {"field": "tag"}}}}}
    sent = {"query": MATCH, "post_filter": DEPENDENT[0][0], "aggs": aggregations, "suggest": {"s": {}}}
    warnings = list(recipes.body_shard_warnings("mine.json", sent, EMPTY, 3))
    assert [warning.partition("mine.json may ")[2].partition(" on ")[0] for warning in warnings] == [
        "rank differently",
        "suggest other terms",
        "count differently",
    ]
    assert not list(recipes.body_shard_warnings("mine.json", {"query": NESTED}, EMPTY, 3))
    analysis = {
        "filter": {"same": {"type": "synonym", "synonyms": ["a, b"]}},
        "analyzer": {"alike": {"tokenizer": "standard", "filter": ["lowercase", "same"]}},
    }
    for analyzer, count in (("standard", 0), ("alike", 1)):
        fields = {"text": {"type": "text", "analyzer": "alike", "search_analyzer": analyzer}}
        mapping = {"settings": {"analysis": analysis}, "mappings": {"properties": fields}}
        warnings = list(recipes.body_shard_warnings("mine.json", {"query": NESTED}, mapping, 3))
        assert len(warnings) == count
        assert all("because of the analyzer `alike`" in warning for warning in warnings)


EMPTY: Json = {"mappings": {}}

NESTED: Json = {"nested": {"path": "part", "query": {"bool": {"must": MATCH, "filter": YEARS}}}}


def test_clauses_inside_nested_queries_are_protected_as_outside() -> None:
    inner = NESTED["nested"]["query"]
    safe = shard_safe({"query": NESTED}, frozenset())["query"]
    assert safe["nested"]["query"] == shard_safe({"query": inner}, frozenset())["query"] != inner


@pytest.mark.parametrize("name", names())
def test_shipped_recipes_depend_on_shards_only_by_words_written_together(name: str) -> None:
    task = load(name)
    for recipe in recipes.names(task.recipe_book()):
        loaded = recipes.load(task.recipe_book(), recipe)
        warnings = list(recipes.shard_warnings(loaded, task.index_mapping(), 3))
        assert all("the analyzer `compounds`" in warning for warning in warnings)
        assert bool(warnings) == name.startswith("smart-relations")
