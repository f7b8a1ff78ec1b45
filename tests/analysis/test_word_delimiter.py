"""The filters that split words, and paths, give the tokens, positions and lengths of Lucene's."""

from __future__ import annotations

from typing import Any

import pytest

from searchapp.lucene.analysis import AnalysisRegistry, Analyzer
from tests.analysis.parity import InlineOracle


def analyzer(**settings: Any) -> Analyzer:
    words = {"tokenizer": "whitespace", "filter": ["stop", "split"]}
    return AnalysisRegistry({"filter": {"split": settings}, "analyzer": {"words": words}}).analyzer("words")


def rows(kind: str, text: str, **settings: Any) -> list[tuple[str, int, int]]:
    stream = analyzer(type=kind, **settings).stream(text)
    return [(term, position, length) for term, position, length, _span, _mark in stream.rows()]


GRAPH, FLAT = "word_delimiter_graph", "word_delimiter"
TEXT = "the Wi-Fi500 O'Neil's -- PowerShot"


def test_words_are_split_at_delimiters_cases_and_numbers() -> None:
    parts = [("Wi", 1, 1), ("Fi", 2, 1), ("500", 3, 1), ("O", 4, 1), ("Neil", 5, 1)]
    assert rows(GRAPH, TEXT) == [*parts, ("Power", 7, 1), ("Shot", 8, 1)]  # -- leaves a hole
    assert rows(FLAT, TEXT) == [*parts, ("Power", 6, 1), ("Shot", 7, 1)]


def test_concatenations_span_their_subwords_in_a_graph_only() -> None:
    options = {"catenate_all": True, "preserve_original": True}
    assert rows(GRAPH, "Wi-Fi500", **options) == [
        ("Wi-Fi500", 0, 3),
        ("WiFi500", 0, 3),
        ("Wi", 0, 1),
        ("Fi", 1, 1),
        ("500", 2, 1),
    ]
    assert rows(FLAT, "Wi-Fi500", **options) == [
        ("Wi-Fi500", 0, 1),
        ("Wi", 0, 1),
        ("WiFi500", 0, 1),
        ("Fi", 1, 1),
        ("500", 2, 1),
    ]


def test_protected_words_and_types_of_characters() -> None:
    options = {"protected_words": ["Wi-Fi"], "type_table": ["- => ALPHA", "\\u0041 => SUBWORD_DELIM"]}
    assert rows(GRAPH, "Wi-Fi x-y bAd", **options) == [
        ("Wi-Fi", 0, 1),
        ("x-y", 1, 1),
        ("b", 2, 1),
        ("d", 3, 1),
    ]


def test_paths_are_divided_from_either_end() -> None:
    settings = {"type": "path_hierarchy", "replacement": "-", "skip": 1}
    for reverse, terms in ((False, ["-b", "-b-c", "-b-c-"]), (True, ["-a-b-", "a-b-", "b-"])):
        tokenizer = {"cut": {**settings, "reverse": reverse}}
        registry = AnalysisRegistry({"tokenizer": tokenizer, "analyzer": {"paths": {"tokenizer": "cut"}}})
        assert registry.analyzer("paths").terms("/a/b/c/") == [(term, i) for i, term in enumerate(terms)]


@pytest.mark.elasticsearch
@pytest.mark.parametrize("kind", [GRAPH, FLAT])
@pytest.mark.parametrize(
    "option", ["catenate_all", "catenate_words", "preserve_original", "split_on_numerics"]
)
def test_each_option_gives_the_tokens_of_the_server(oracle: InlineOracle, kind: str, option: str) -> None:
    for value in (True, False):
        definition = {
            "char_filter": [],
            "tokenizer": {"type": "whitespace"},
            "filter": [{"type": kind, option: value, "catenate_numbers": True}],
        }
        texts = [TEXT, "500-42's j2se --", "ÀÉb²½ ǅx😀y-1"]
        assert oracle.ours(definition, texts) == oracle.servers(definition, texts)
