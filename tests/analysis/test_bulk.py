"""Bulk analysis gives the terms of analyzing each text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from searchapp.lucene import native
from searchapp.lucene.analysis import AnalysisRegistry, Analyzer, bulk
from searchapp.lucene.analysis.tokenizers import STANDARD_RULES
from tests.analysis.test_shared import MAPPINGS, hostile

pytestmark = pytest.mark.usefixtures("pieces_of_few_texts")

Terms = tuple[list[str], list[int]]

CUSTOM: dict[str, Any] = {
    "tokenizer": {
        "maybe": {"type": "pattern", "pattern": "[a-z]*"},
        "halves": {"type": "simple_pattern", "pattern": "a[^a]"},
        "brief": {"type": "standard", "max_token_length": 5},
        "groups": {"type": "char_group", "tokenize_on_chars": [".", "digit"], "max_token_length": 6},
        "separators": {"type": "pattern"},
        "marks": {"type": "pattern", "pattern": "[.,é]"},
        "run": {"type": "pattern", "pattern": "[^ '😀]+", "group": 0},
        "decimals": {"type": "pattern", "pattern": "([0-9]+(?:[.,][0-9]+)*)%?|[a-z]+", "group": 1},
    },
    "filter": {
        "short": {"type": "truncate", "length": 3},
        "small": {"type": "stop", "stopwords": ["the", "a"]},
        "pairs": {"type": "shingle", "output_unigrams": False},
        "joined": {"type": "shingle", "output_unigrams": False, "token_separator": ""},
        "foxes": {"type": "keyword_marker", "keywords": ["foxes"]},
        "shingles": {"type": "shingle", "min_shingle_size": 2, "max_shingle_size": 3},
        "triples": {
            "type": "shingle",
            "min_shingle_size": 3,
            "max_shingle_size": 4,
            "output_unigrams": False,
            "filler_token": "the",
        },
        "gaps": {"type": "shingle", "min_shingle_size": 3, "max_shingle_size": 3, "token_separator": ""},
        "prefixes": {"type": "edge_ngram", "min_gram": 2, "max_gram": 3},
        "grams": {"type": "ngram", "min_gram": 2, "max_gram": 3, "preserve_original": True},
    },
    "analyzer": {
        "whole": {"tokenizer": "keyword"},
        "maybe": {"tokenizer": "maybe", "filter": ["lowercase"]},
        "truncated": {"tokenizer": "whitespace", "filter": ["short"]},
        "truncated_pairs": {"tokenizer": "whitespace", "filter": ["short", "joined"]},
        "holes": {"tokenizer": "standard", "filter": ["lowercase", "small", "pairs"]},
        "marked": {"tokenizer": "standard", "filter": ["foxes", "lowercase", "porter_stem"]},
        "joined": {"tokenizer": "letter", "filter": ["joined"]},
        "standard": {"tokenizer": "standard"},
        "brief": {"tokenizer": "brief"},
        "addresses": {"tokenizer": "uax_url_email"},
        "classic": {"tokenizer": "classic"},
        "groups": {"tokenizer": "groups"},
        "separators": {"tokenizer": "separators"},
        "marks": {"tokenizer": "marks"},
        "run": {"tokenizer": "run", "filter": ["lowercase"]},
        "decimals": {"tokenizer": "decimals"},
        "small": {"tokenizer": "lowercase", "filter": ["small"]},
        "shingles": {"tokenizer": "whitespace", "filter": ["lowercase", "small", "asciifolding", "shingles"]},
        "triples": {"tokenizer": "standard", "filter": ["small", "triples"]},
        "gaps": {"tokenizer": "standard", "filter": ["lowercase", "small", "gaps"]},
        "prefixes": {"tokenizer": "standard", "filter": ["lowercase", "small", "prefixes"]},
        "truncated_prefixes": {"tokenizer": "whitespace", "filter": ["short", "prefixes"]},
        "grams": {"tokenizer": "standard", "filter": ["grams"]},
    },
}


def analyze_each(analyzer: Analyzer, texts: Sequence[str]) -> list[Terms]:
    return [analyzer.joined([text]) for text in texts]


def analyze_bulk(analyzer: Analyzer, texts: Sequence[str]) -> list[Terms] | None:
    """Return the terms and positions of each text, None if the texts need the analysis of each."""
    assert analyzer.bulk is not None
    tokens = analyzer.bulk.tokens(texts)
    if tokens is None:
        return None
    assert len(set(tokens.vocabulary)) == len(tokens.vocabulary)
    assert len(tokens.counts) == len(texts)
    ends = np.cumsum(tokens.counts)[:-1]
    assert (
        tokens.lengths.tolist()
        == [len(np.unique(positions)) for positions in np.split(tokens.positions, ends)][: len(texts)]
    )
    pieces = zip(np.split(tokens.terms, ends), np.split(tokens.positions, ends), strict=True)
    return (
        [([tokens.vocabulary[term] for term in terms], positions.tolist()) for terms, positions in pieces]
        if texts
        else []
    )


@cache
def registry(mapping: Path) -> AnalysisRegistry:
    return AnalysisRegistry(json.loads(mapping.read_text(encoding="utf-8"))["settings"]["analysis"])


@pytest.mark.parametrize("mapping", MAPPINGS, ids=[path.stem for path in MAPPINGS])
@hypothesis.given(st.lists(hostile, max_size=4))
def test_bulk_analysis_equals_single_analysis_in_shipped_mappings(mapping: Path, texts: list[str]) -> None:
    for name in registry(mapping)._analyzers:
        analyzer = registry(mapping).analyzer(name)
        if analyzer.bulk:
            terms = analyze_bulk(analyzer, texts)
            assert terms is None or terms == analyze_each(analyzer, texts)


CUSTOM_REGISTRY = AnalysisRegistry(CUSTOM)


# What joins letters and digits in words, mostly in ASCII, which compiled code divides.
words = st.text("aZ09_.,;:'\" -\té日😀\u0301\u200d", max_size=30) | st.lists(
    st.sampled_from(["ann@example.com", "http://example.com/a?b", "example.org", "a.b", "x-1", "I.B.M.", "é"])
).map(" ".join)


# Removed words, which leave empty positions.
holes = st.lists(st.sampled_from(["the", "a", "fox", "Dés", "the the", "bc"]), max_size=8).map(" ".join)


@hypothesis.given(st.lists(hostile | words | holes | st.text("ab😀 \U0001f98a", max_size=8), max_size=4))
def test_bulk_analysis_equals_single_analysis_of_other_analyzers(texts: list[str]) -> None:
    for name in CUSTOM["analyzer"]:
        analyzer = CUSTOM_REGISTRY.analyzer(name)
        terms = analyze_bulk(analyzer, texts)
        assert terms is None or terms == analyze_each(analyzer, texts)


def test_the_analyzers_of_the_premises_support_bulk_analysis() -> None:
    texts = ["'''Definition''': the $x^2$ of foxes", "", "[[Set|A set]] is 😀 what it is"]
    premises = registry(next(path for path in MAPPINGS if path.stem == "premises"))
    for name in premises._analyzers:
        if not name.endswith("_query"):
            analyzer = premises.analyzer(name)
            assert analyze_bulk(analyzer, texts) == analyze_each(analyzer, texts), name


def test_fillers_and_prefixes_keep_positions_and_halves_of_characters_need_the_filter() -> None:
    holes = CUSTOM_REGISTRY.analyzer("holes")
    expected = [(["red _", "_ foxes"], [0, 1]), (["_ fox", "fox _"], [0, 1]), ([], [])]
    assert analyze_bulk(holes, ["red the foxes", "the the fox a a", "the"]) == expected
    prefixes = CUSTOM_REGISTRY.analyzer("prefixes")
    assert analyze_bulk(prefixes, ["x the fox"]) == [(["fo", "fox"], [2, 2])]
    halves = CUSTOM_REGISTRY.analyzer("truncated_pairs")
    assert analyze_bulk(halves, ["ab😀 ab"]) is None
    assert analyze_bulk(halves, ["abc ab"]) == [(["abcab"], [0])]


def test_pairs_of_different_terms_can_be_the_same_term() -> None:
    analyzer = CUSTOM_REGISTRY.analyzer("joined")
    texts = ["ab c", "a bc"]
    assert analyze_bulk(analyzer, texts) == analyze_each(analyzer, texts) == [(["abc"], [0]), (["abc"], [0])]


@pytest.mark.parametrize(("terms", "characters"), [(3, 10**9), (10**9, 12)])
def test_numbered_terms_are_bounded_and_numbered_again(
    monkeypatch: pytest.MonkeyPatch, terms: int, characters: int
) -> None:
    monkeypatch.setattr(bulk, "NUMBERED_TERMS", terms)
    monkeypatch.setattr(bulk, "NUMBERED_CHARACTERS", characters)
    analyzer = AnalysisRegistry(CUSTOM).analyzer("marked")
    for number in range(10):
        texts = [f"Running foxes number{number}", "the fox runs"]
        assert analyze_bulk(analyzer, texts) == analyze_each(analyzer, texts)
        assert analyzer.bulk is not None
        assert len(analyzer.bulk.work.terms) < 10


def test_texts_are_tokenized_once_for_analyzers_with_the_same_tokenizer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokenized: list[str] = []
    custom_registry = AnalysisRegistry(
        {
            "analyzer": {
                name: {"tokenizer": "whitespace", "filter": filters}
                for name, filters in [("plain", ["lowercase"]), ("stemmed", ["porter_stem"])]
            }
        }
    )
    tokenizer = custom_registry.analyzer("plain")._tokenizer
    assert custom_registry.analyzer("stemmed")._tokenizer is tokenizer
    terms = tokenizer.terms

    def record(text: str) -> list[str]:
        tokenized.append(text)
        return terms(text)

    monkeypatch.setattr(tokenizer, "terms", record)
    with native.without():
        for name in ("plain", "stemmed"):
            analyze_bulk(custom_registry.analyzer(name), ["Foxes run", "Foxes"])
    assert tokenized == ["Foxes run", "Foxes"]


ascii_parts = st.sampled_from(
    ["fox", "a", "Fox's", "12", "3.5", ".", "'", ":", "_", ",", ";", '"', "-", " ", "x"]
)


@hypothesis.given(st.lists(ascii_parts, max_size=12).map("".join) | st.text("ab1'.:_,; \"", max_size=12))
def test_the_rules_for_ascii_find_the_words_of_the_general_rules(text: str) -> None:
    classes = text.translate(STANDARD_RULES.classes)
    general = [match.span(1) for match in STANDARD_RULES.scan.finditer(classes) if match[1]]
    assert [match.span(1) for match in STANDARD_RULES.scan_ascii.finditer(text) if match[1]] == general
