"""Elasticsearch 8 produces the terms of version 9, with a token filter that searchapp adds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch.analysis import (
    ADDED,
    ADDED_AMONG_KEYWORDS,
    SHORT_STEMS,
    analysis_for,
    without_added,
)
from searchapp.engines.elasticsearch.client import Server as ServerVersion
from searchapp.lucene.analysis.stemmers import porter2
from tests.engines.conftest import GROUPS, MAPPING, spec_of
from tests.server.faults import FaultProxy, Request, Response
from tests.server.rest import Server

STEMS = [f"{first}{double}{double}" for first in "aeo" for double in "bdfgmnprt"]
ENDINGS = [
    "".join(parts)
    for parts in itertools.product(("ed", "ing"), ("", "ly"), ("", "s"), ("", "'", "'s", "'s'"))
]
OTHERS = [
    "added-up",
    "padding",
    "herring",
    "inning",
    "outing",
    "oddity",
    "eggs",
    "add",
    "ending",
    "aiding",
    "Adding",
]
PORTER2 = {"type": "stemmer", "language": "porter2"}


@pytest.mark.parametrize("name", SHORT_STEMS)
def test_both_versions_give_words_of_three_letters_the_same_stem(compared_url: str, name: str) -> None:
    words = [
        f"{before}{stem}{ending}" for before in ("", "'") for stem in STEMS for ending in ENDINGS
    ] + OTHERS
    request = {"tokenizer": "whitespace", "filter": [SHORT_STEMS[name], PORTER2], "text": " ".join(words)}
    answer = Server(compared_url).request("POST", "/_analyze", request).json()
    assert [token["token"] for token in answer["tokens"]] == [porter2(word) for word in words]


def test_both_versions_keep_the_endings_of_keywords(compared_url: str) -> None:
    marker = {"type": "keyword_marker", "keywords": ["added", "eggs"]}
    request = {
        "tokenizer": "whitespace",
        "filter": [marker, SHORT_STEMS[ADDED_AMONG_KEYWORDS], PORTER2],
        "text": "added adding eggs egged",
    }
    answer = Server(compared_url).request("POST", "/_analyze", request).json()
    assert [token["token"] for token in answer["tokens"]] == ["added", "add", "eggs", "egg"]


def test_the_filter_precedes_each_such_stemmer_only_on_the_older_version() -> None:
    analysis: dict[str, Any] = {
        "filter": {
            "porter2": PORTER2,
            "snow": {"type": "snowball", "language": "English"},
            "german": {"type": "snowball", "language": "German"},
            "light": {"type": "stemmer", "language": "light_english"},
            "marker": {"type": "keyword_marker", "keywords": ["added"]},
        },
        "analyzer": {
            "a": {"tokenizer": "standard", "filter": ["lowercase", "porter2", "snow"]},
            "b": {"tokenizer": "standard", "filter": ["german", "light"]},
            "c": {"tokenizer": "standard", "filter": "snowball"},
            "d": {"tokenizer": "standard"},
            "f": {"tokenizer": "standard", "filter": ["porter2", "keyword_repeat", "light", "porter2"]},
            "g": {"tokenizer": "standard", "filter": ["marker", "snowball"]},
            "e": {"type": "english"},
        },
    }
    assert analysis_for(ServerVersion("9.4.3"), analysis) == analysis
    assert analysis_for(ServerVersion("8.11.0", is_serverless=True), analysis) == analysis
    assert analysis_for(ServerVersion(), analysis) == analysis_for(ServerVersion("8.19.13"), analysis)
    adapted = analysis_for(ServerVersion("8.19.13"), analysis)
    assert adapted["filter"] == {**analysis["filter"], **SHORT_STEMS}
    assert adapted["analyzer"] == {
        **analysis["analyzer"],
        "a": {"tokenizer": "standard", "filter": ["lowercase", ADDED, "porter2", ADDED, "snow"]},
        "c": {"tokenizer": "standard", "filter": [ADDED, "snowball"]},
        "f": {
            "tokenizer": "standard",
            "filter": [ADDED, "porter2", "keyword_repeat", "light", ADDED_AMONG_KEYWORDS, "porter2"],
        },
        "g": {"tokenizer": "standard", "filter": ["marker", ADDED_AMONG_KEYWORDS, "snowball"]},
    }
    assert ADDED not in str(analysis)


@pytest.mark.parametrize(
    "analysis", [{}, {"analyzer": {"a": {"filter": ["lowercase"]}}}, {"filter": {"p": PORTER2}}]
)
def test_an_index_without_such_a_stemmer_gets_no_filter(analysis: dict[str, object]) -> None:
    assert analysis_for(ServerVersion("8.19.13"), analysis) == analysis


NODES = {"a": {"version": "9.4.3"}, "b": {"version": "8.19.13"}}


@pytest.mark.parametrize("nodes", [NODES, None], ids=["older nodes", "no right to see nodes"])
def test_an_index_in_a_cluster_with_older_nodes_gets_the_filter(
    settings_for: Callable[..., Settings],
    elasticsearch_url: str,
    index_prefix: str,
    nodes: dict[str, object] | None,
) -> None:
    """During an upgrade a node of version 9 answers for a cluster with older nodes."""

    class PartlyUpgraded(FaultProxy):
        def respond(self, request: Request) -> Response | None:
            if not request.path.startswith("/_nodes"):
                return super().respond(request)
            if nodes is None:
                return Response.error(
                    403, "security_exception", "action [cluster:monitor/nodes/info] is unauthorized"
                )
            return Response.of_json(200, {"nodes": nodes})

    analysis = {"filter": {"p": PORTER2}, "analyzer": {"words": {"tokenizer": "standard", "filter": ["p"]}}}
    mapping = {**MAPPING, "settings": {"analysis": analysis}}
    with PartlyUpgraded(elasticsearch_url) as proxy:
        with closing(ElasticsearchEngine.connect(settings_for(proxy.url))) as engine:
            engine.build("groups", spec_of(GROUPS, mapping), GROUPS)
    path = f"/{index_prefix}-groups/_settings?flat_settings=true"
    (index,) = Server(elasticsearch_url).request("GET", path).json().values()
    assert index["settings"]["index.analysis.analyzer.words.filter"] == [ADDED, "p"]


def test_the_added_filter_is_not_a_visible_analysis_step() -> None:
    assert without_added([{"name": "lowercase"}, {"name": ADDED}]) == [{"name": "lowercase"}]
