"""Scores are those of the embedded engine on one shard of one segment or of several, and on several shards.

A clause of which a segment or a shard has no term is dropped there before anything is scored. Bodies whose optional
clauses are required, besides clauses that must match, were added up in another way then.
"""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.base import Index, IndexSpec
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch.searching import ElasticsearchIndex
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.model import Document
from tests.engines.embedded.conftest import MAPPING, ORDER
from tests.profile import FULL, SEED
from tests.search.segments import SEGMENTS, copy_in_segments, segment_count
from tests.server.rest import Server

Json = dict[str, Any]

INDEXES, BODIES = (20, 250) if FULL else (2, 150)
"""How many collections, and how many bodies each is asked."""

COMMON = ["a", "b", "c", "d", "e", "f", "g", "h"]
RARE = ["p", "q", "r", "s", "t", "u", "v", "w"]


def documents(random: Random) -> list[Document]:
    """Forty documents: each rare word and each rare tag is in one to four of them, and so absent from some segments."""
    texts = [[random.choice(COMMON) for _ in range(random.randrange(4, 16))] for _ in range(40)]
    tags = [random.choice(["x", "y"]) for _ in texts]
    for word in RARE:
        for place in random.sample(range(len(texts)), random.randrange(1, 5)):
            texts[place].append(word)
    for number in range(4):
        tags[random.randrange(len(tags))] = f"rare{number}"
    return [
        Document(f"{number:02}", " ".join(words), _fields(random, tag))
        for number, (words, tag) in enumerate(zip(texts, tags, strict=True))
    ]


def _fields(random: Random, tag: str) -> Json:
    fields: Json = {"tag": tag, "year": random.randrange(30)}
    return fields | ({"ratio": random.random()} if random.random() < 0.1 else {})


def _word(random: Random, words: list[str]) -> Json:
    return {"match": {"text": {"query": random.choice(words), "boost": random.choice([1, 1, 0.3, 1.7])}}}


def _leaf(random: Random) -> Json:
    word = random.choice(COMMON if random.random() < 0.5 else RARE)
    match random.randrange(14):
        case number if number > 7:
            return _word(random, [word])
        case 0:
            return {"term": {"tag": random.choice(["x", "rare0", "rare1", "absent"])}}
        case 1:
            return {"match": {"text": f"{word} {random.choice(COMMON)} {random.choice(RARE)}"}}
        case 2:
            return {"match": {"text": {"query": f"{word} {random.choice(RARE)}", "operator": "and"}}}
        case 3:
            return {"match_phrase": {"text": f"{random.choice(COMMON)} {word}"}}
        case 4:
            return {"range": {"year": {"gte": random.randrange(30), "boost": 0.7}}}
        case 5:
            return {"exists": {"field": "ratio"}}
        case 6:
            return {
                "multi_match": {"query": f"{word} {random.choice(RARE)}", "fields": ["text", "text.gaps^2"]}
            }
    return {"constant_score": {"filter": {"terms": {"tag": ["rare2", "absent"]}}, "boost": 1.3}}


def _clause(random: Random, depth: int) -> Json:
    if depth == 2 or random.random() < 0.75:
        return _leaf(random)
    inner = [_clause(random, depth + 1) for _ in range(2)]
    match random.randrange(4):
        case 0:
            return {"dis_max": {"queries": inner, "tie_breaker": random.choice([0, 0.3])}}
        case 1:
            return {"boosting": {"positive": inner[0], "negative": inner[1], "negative_boost": 0.4}}
        case 2:
            return {"function_score": {"query": inner[0], "functions": [{"filter": inner[1], "weight": 1.9}]}}
    return targeted(random, depth + 1)


def targeted(random: Random, depth: int = 0) -> Json:
    """A `bool` with `must`, `should` and `minimum_should_match`, whose clauses often have rare terms."""

    def several(low: int, high: int) -> list[Json]:
        return [_clause(random, depth) for _ in range(random.randrange(low, high + 1))]

    clauses: Json = {"must": several(0, 1), "should": several(1, 5)}
    if random.random() < 0.8:
        clauses["must"] += [_word(random, COMMON) for _ in range(random.randrange(1, 3))]
    clauses["minimum_should_match"] = random.choice([1, 1, 1, 2, 2, 3, "40%", "-1", "2<70%"])
    if random.random() < 0.2 or not clauses["must"]:
        clauses["filter"] = several(1, 2)
        if random.random() < 0.4:
            clauses["filter"] += random.sample(
                clauses["should"], random.randrange(len(clauses["should"]) + 1)
            )
    if random.random() < 0.1:
        clauses["must_not"] = several(1, 1)
    return {"bool": clauses}


def _of_version(index: Index, version: str) -> Index:
    """A handle on another index of the same mapping."""
    assert isinstance(index, ElasticsearchIndex)
    return ElasticsearchIndex(
        index._connection, replace(index.info, version=version), index._numbers, sorts_by_id=True
    )


@pytest.mark.parametrize("seed", range(INDEXES))
def test_optional_clauses_that_are_required_score_the_same_on_segments_and_shards(
    elasticsearch_url: str, index_prefix: str, tmp_path: Path, seed: int
) -> None:
    random = Random(f"segments {SEED} {seed}")
    collection = documents(random)
    bodies = [{"query": targeted(random), "size": 50, "sort": ORDER} for _ in range(BODIES)]
    settings = Settings(home=tmp_path, url=elasticsearch_url, index_prefix=index_prefix)
    server = Server(elasticsearch_url)
    with (
        closing(ElasticsearchEngine.connect(settings)) as engine,
        closing(EmbeddedEngine.at(settings)) as embedded,
    ):
        for builder, name, shards in ((embedded, "one", 1), (engine, "one", 1), (engine, "three", 3)):
            builder.build(name, IndexSpec(MAPPING, len(collection), name, name, shards), collection)
        expected = list(embedded.open("one").search(bodies))
        one, three = engine.open("one"), engine.open("three")
        copy = copy_in_segments(server, one.info.version, [document.source() for document in collection])
        assert segment_count(server, one.info.version) == 1
        assert segment_count(server, copy) == SEGMENTS
        indexes = {"one segment": one, f"{SEGMENTS} segments": _of_version(one, copy), "three shards": three}
        different = [
            f"{where}: {json.dumps(body['query'])}\n{list(found)[:9]}\n{list(wanted)[:9]}"
            for where, index in indexes.items()
            for body, found, wanted in zip(bodies, index.search(bodies), expected, strict=True)
            if found != wanted
        ]
    assert sum(bool(hits) for hits in expected) > BODIES / 3
    assert not different, f"{len(different)} of {len(indexes) * len(bodies)}\n" + "\n".join(different[:3])
