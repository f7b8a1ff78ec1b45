"""Elasticsearch 8 makes the same terms as 9, with what it is told besides."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from searchapp.analysis.porter2 import porter2
from searchapp.engines.elasticsearch.older import ADDED, SHORT_STEMS, analysis_for, without_added
from searchapp.engines.elasticsearch.servers import Server as Answering
from tests.server.rest import Server

STEMS = [f"{first}{twice}{twice}" for first in "aeo" for twice in "bdfgmnprt"]
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


def test_words_of_three_letters_have_the_stems_of_version_9_on_either(compared_url: str) -> None:
    words = [
        f"{before}{stem}{ending}" for before in ("", "'") for stem in STEMS for ending in ENDINGS
    ] + OTHERS
    request = {"tokenizer": "whitespace", "filter": [SHORT_STEMS, PORTER2], "text": " ".join(words)}
    answer = Server(compared_url).request("POST", "/_analyze", request).json()
    assert [token["token"] for token in answer["tokens"]] == [porter2(word) for word in words]


def test_the_filter_stands_before_each_stemmer_of_its_kind_on_the_older_version_only() -> None:
    analysis: dict[str, Any] = {
        "filter": {
            "porter2": PORTER2,
            "snow": {"type": "snowball", "language": "English"},
            "german": {"type": "snowball", "language": "German"},
            "light": {"type": "stemmer", "language": "light_english"},
        },
        "analyzer": {
            "a": {"tokenizer": "standard", "filter": ["lowercase", "porter2", "snow"]},
            "b": {"tokenizer": "standard", "filter": ["german", "light"]},
            "c": {"tokenizer": "standard", "filter": "snowball"},
            "d": {"tokenizer": "standard"},
            "e": {"type": "english"},
        },
    }
    assert analysis_for(Answering("9.4.3"), analysis) == analysis
    assert analysis_for(Answering("8.11.0", is_serverless=True), analysis) == analysis
    adapted = analysis_for(Answering("8.19.13"), analysis)
    assert adapted["filter"] == {**analysis["filter"], ADDED: SHORT_STEMS}
    assert adapted["analyzer"] == {
        **analysis["analyzer"],
        "a": {"tokenizer": "standard", "filter": ["lowercase", ADDED, "porter2", ADDED, "snow"]},
        "c": {"tokenizer": "standard", "filter": [ADDED, "snowball"]},
    }
    assert ADDED not in str(analysis)


@pytest.mark.parametrize(
    "analysis", [{}, {"analyzer": {"a": {"filter": ["lowercase"]}}}, {"filter": {"p": PORTER2}}]
)
def test_an_index_without_such_a_stemmer_is_told_nothing(analysis: dict[str, object]) -> None:
    assert analysis_for(Answering("8.19.13"), analysis) == analysis


def test_the_filter_is_no_step_that_people_see() -> None:
    assert without_added([{"name": "lowercase"}, {"name": ADDED}]) == [{"name": "lowercase"}]
