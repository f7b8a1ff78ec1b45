"""Scores on several segments and shards equal the scores of the embedded engine.

A segment or shard without the term of a clause drops the clause before scoring. Bodies with `must` and required
optional clauses once had differently rounded scores there.
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
"""Number of collections, and of bodies for each."""

COMMON = ["a", "b", "c", "d", "e", "f", "g", "h"]
RARE = ["p", "q", "r", "s", "t", "u", "v", "w"]


def documents(random: Random) -> list[Document]:
    """Return 40 documents; rare words and tags are in at most four of them, so that some segments lack them."""
    texts = [[random.choice(COMMON) for _ in range(random.randrange(4, 16))] for _ in range(40)]
    tags = [random.choice(["x", "y"]) for _ in texts]
    for word in RARE:
        for position in random.sample(range(len(texts)), random.randrange(1, 5)):
            texts[position].append(word)
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
    return bool_query(random, depth + 1)


def bool_query(random: Random, depth: int = 0) -> Json:
    """Return a `bool` with `must`, `should` and `minimum_should_match`, often with rare terms."""

    def clauses_between(low: int, high: int) -> list[Json]:
        return [_clause(random, depth) for _ in range(random.randrange(low, high + 1))]

    clauses: Json = {"must": clauses_between(0, 1), "should": clauses_between(1, 5)}
    if random.random() < 0.8:
        clauses["must"] += [_word(random, COMMON) for _ in range(random.randrange(1, 3))]
    clauses["minimum_should_match"] = random.choice([1, 1, 1, 2, 2, 3, "40%", "-1", "2<70%"])
    if random.random() < 0.2 or not clauses["must"]:
        clauses["filter"] = clauses_between(1, 2)
        if random.random() < 0.4:
            clauses["filter"] += random.sample(
                clauses["should"], random.randrange(len(clauses["should"]) + 1)
            )
    if random.random() < 0.1:
        clauses["must_not"] = clauses_between(1, 1)
    return {"bool": clauses}


def _of_version(index: Index, version: str) -> Index:
    """Return a handle on another index with the same mapping."""
    assert isinstance(index, ElasticsearchIndex)
    return ElasticsearchIndex(
        index._connection, replace(index.info, version=version), index._numbers, sorts_by_id=True
    )


@pytest.mark.parametrize("seed", range(INDEXES))
def test_required_optional_clauses_score_the_same_on_segments_and_shards(
    elasticsearch_url: str, index_prefix: str, tmp_path: Path, seed: int
) -> None:
    random = Random(f"segments {SEED} {seed}")
    collection = documents(random)
    bodies = [{"query": bool_query(random), "size": 50, "sort": ORDER} for _ in range(BODIES)]
    settings = Settings(home=tmp_path, url=elasticsearch_url, index_prefix=index_prefix)
    server = Server(elasticsearch_url)
    with (
        closing(ElasticsearchEngine.connect(settings)) as engine,
        closing(EmbeddedEngine.at(settings)) as embedded,
    ):
        for builder, name, shards in ((embedded, "one", 1), (engine, "one", 1), (engine, "three", 3)):
            builder.build(name, IndexSpec(MAPPING, len(collection), name, name, shards), collection)
        expected = list(embedded.open("one").search(bodies))
        one_shard, three_shards = engine.open("one"), engine.open("three")
        version = one_shard.info.version
        copy = copy_in_segments(server, version, [document.source() for document in collection])
        assert segment_count(server, version) == 1
        assert segment_count(server, copy) == SEGMENTS
        indexes = {
            "one segment": one_shard,
            f"{SEGMENTS} segments": _of_version(one_shard, copy),
            "three shards": three_shards,
        }
        differences = [
            f"{name}: {json.dumps(body['query'])}\n{list(hits)[:9]}\n{list(expected_hits)[:9]}"
            for name, index in indexes.items()
            for body, hits, expected_hits in zip(bodies, index.search(bodies), expected, strict=True)
            if hits != expected_hits
        ]
    assert sum(bool(hits) for hits in expected) > BODIES / 3
    assert not differences, f"{len(differences)} of {len(indexes) * len(bodies)}\n" + "\n".join(
        differences[:3]
    )
