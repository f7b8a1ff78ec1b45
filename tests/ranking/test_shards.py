"""Which queries rank the same on several shards, and that whoever asks others is warned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from searchapp.engines.base import Index, IndexSpec
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.model import Document
from searchapp.ranking import recipes, shards
from searchapp.ranking.signals.direct import Direct
from searchapp.ranking.templates import Template, TopicQuery
from searchapp.settings import Settings
from searchapp.tasks import load, names
from tests.engines.embedded.conftest import MAPPING, body

Json = dict[str, Any]

WORDS = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
MATCH = {"match": {"text": "a b"}}
YEARS = {"range": {"year": {"gte": 3}}}
PHRASE = {"match_phrase": {"text": "a b"}}

INSIDE: list[Json] = [
    MATCH,
    {"bool": {"should": [MATCH, YEARS]}},
    {"bool": {"should": [MATCH, PHRASE]}},
    {"bool": {"must": [MATCH, PHRASE]}},
    {"bool": {"must": MATCH, "filter": PHRASE}},
    {"bool": {"must": MATCH, "must_not": PHRASE}},
    {"bool": {"must": MATCH, "filter": {"term": {"tag": "x"}}}},
    {"bool": {"must": MATCH, "filter": {"terms": {"tag": ["x", "nowhere"]}}}},
    {"bool": {"must": MATCH, "filter": {"prefix": {"tag": "q"}}}},
    {"bool": {"must": MATCH, "filter": {"exists": {"field": "ratio"}}}},
    {"bool": {"must": MATCH, "must_not": {"exists": {"field": "long"}}}},
    {"bool": {"must": MATCH, "must_not": {"ids": {"values": ["1", "2"]}}}},
    {"boosting": {"positive": MATCH, "negative": YEARS, "negative_boost": 0.5}},
    {"function_score": {"query": MATCH, "functions": [{"filter": YEARS, "weight": 2}]}},
    {"dis_max": {"queries": [MATCH, YEARS]}},
    {"multi_match": {"query": "a c", "fields": ["text", "text.gaps^2"]}},
]
OUTSIDE: list[tuple[Json, str]] = [
    ({"bool": {"must": MATCH, "filter": YEARS}}, "`range` on year"),
    ({"bool": {"must": [MATCH, YEARS]}}, "`range` on year"),
    ({"bool": {"must": MATCH, "must_not": [YEARS]}}, "`range` on year"),
    ({"bool": {"must": MATCH, "must_not": {"term": {"year": 3}}}}, "`term` on year"),
    ({"bool": {"must": MATCH, "filter": {"bool": {"must_not": YEARS}}}}, "`range` on year"),
    ({"bool": {"must": [MATCH, {"constant_score": {"filter": YEARS}}]}}, "`range` on year"),
    ({"bool": {"should": [MATCH, YEARS], "minimum_should_match": 2}}, "`range` on year"),
    ({"function_score": {"query": {"bool": {"must": MATCH, "filter": YEARS}}}}, "`range` on year"),
    (PHRASE, "`match_phrase` on text"),
    ({"bool": {"must": [{"term": {"tag": "x"}}, PHRASE]}}, "`match_phrase` on text"),
    ({"dis_max": {"queries": [PHRASE, {"match": {"text.gaps": "a"}}]}}, "`match_phrase` on text"),
]


@pytest.mark.parametrize("query", INSIDE, ids=json.dumps)
def test_a_query_whose_statistics_are_collected_whole_is_within_the_promise(query: Json) -> None:
    assert shards.outside(query, MAPPING) is None


@pytest.mark.parametrize(("query", "named"), OUTSIDE, ids=lambda it: json.dumps(it)[:80])
def test_a_query_that_a_shard_may_simplify_is_named(query: Json, named: str) -> None:
    why = shards.outside(query, MAPPING)
    assert why is not None
    assert named in why


def documents(seed: int) -> list[Document]:
    random = Random(seed)
    found = []
    for number in range(random.choice([6, 9, 14])):
        text = " ".join(random.choice(WORDS) for _ in range(random.randrange(1, 9)))
        more: Json = {"tag": random.choice("xyz"), "year": random.randrange(8)}
        more |= {"ratio": 1.0} if random.random() < 0.3 else {}
        found.append(Document(str(number), text, more | ({"long": 1} if random.random() < 0.1 else {})))
    return found


@pytest.fixture(scope="module")
def pairs(
    elasticsearch_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[tuple[Index, Index]]]:
    """Indexes of the same documents on one shard and on three."""
    home = tmp_path_factory.mktemp("shards")
    settings = Settings(home=home, url=elasticsearch_url, index_prefix=f"test-{home.name}")
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        built = [(seed, f"s{seed}-{count}", count) for seed in range(3) for count in (1, 3)]
        for seed, name, count in built:
            some = documents(seed)
            engine.build(name, IndexSpec(MAPPING, len(some), name, name, count), some)
        opened = [engine.open(name) for _seed, name, _count in built]
        yield list(zip(opened[::2], opened[1::2], strict=True))
        for _seed, name, _count in built:
            engine.remove(name)


def varied(query: Json, random: Random) -> Json:
    """The query with other words and years."""
    text = json.dumps(query)
    for word in ("a b", "a c", '"a"'):
        some = f"{random.choice(WORDS)} {random.choice(WORDS)}"
        text = text.replace(word, some if word != '"a"' else f'"{some[0]}"')
    return dict(json.loads(text.replace('"gte": 3', f'"gte": {random.randrange(9)}')))


@pytest.mark.parametrize("query", INSIDE, ids=json.dumps)
def test_three_shards_rank_as_one_within_the_promise(pairs: list[tuple[Index, Index]], query: Json) -> None:
    random = Random(1)
    for one, three in pairs:
        bodies = [body(varied(query, random)) for _ in range(20)]
        assert list(three.search(bodies)) == list(one.search(bodies))


def test_three_shards_do_not_rank_as_one_outside_of_it(pairs: list[tuple[Index, Index]]) -> None:
    random = Random(1)
    bodies = [body(varied(query, random)) for query, _named in OUTSIDE for _ in range(10)]
    different = [list(three.search(bodies)) != list(one.search(bodies)) for one, three in pairs]
    assert any(different), "the warning would be for nothing"


def test_a_recipe_outside_of_it_is_warned_of_on_several_shards_only() -> None:
    task = load("nlps")
    recipe = recipes.load(task.recipe_book(), "words")
    assert not list(shards.warnings(recipe, MAPPING, 3))
    template = Template({"query": OUTSIDE[0][0]}, "mine.json")
    signal = Direct("direct", 1.0, TopicQuery(template, "digest", {}))
    outside = replace(recipe, signals=(signal,))
    assert not list(shards.warnings(outside, MAPPING, 1))
    (warning,) = shards.warnings(outside, MAPPING, 3)
    assert warning.startswith(
        "mine.json may rank differently on these 3 shards than on one, for its `range` on year"
    )


@pytest.mark.parametrize("name", names())
def test_the_recipes_that_come_with_searchapp_are_within_the_promise(name: str) -> None:
    task = load(name)
    for recipe in recipes.names(task.recipe_book()):
        assert not list(shards.warnings(recipes.load(task.recipe_book(), recipe), task.index_mapping(), 3))
