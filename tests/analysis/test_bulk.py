"""Texts that are analyzed together give what each of them gives by itself."""

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

from searchapp.lucene.analysis import AnalysisRegistry, Analyzer, bulk
from searchapp.lucene.analysis.tokenizers import _RULES
from tests.analysis.test_shared import MAPPINGS, hostile

Found = tuple[list[str], list[int]]

CUSTOM: dict[str, Any] = {
    "tokenizer": {
        "maybe": {"type": "pattern", "pattern": "[a-z]*"},
        "halves": {"type": "simple_pattern", "pattern": "a[^a]"},
    },
    "filter": {
        "short": {"type": "truncate", "length": 3},
        "small": {"type": "stop", "stopwords": ["the", "a"]},
        "pairs": {"type": "shingle", "output_unigrams": False},
        "joined": {"type": "shingle", "output_unigrams": False, "token_separator": ""},
        "foxes": {"type": "keyword_marker", "keywords": ["foxes"]},
    },
    "analyzer": {
        "whole": {"tokenizer": "keyword"},
        "maybe": {"tokenizer": "maybe", "filter": ["lowercase"]},
        "truncated": {"tokenizer": "whitespace", "filter": ["short"]},
        "truncated_pairs": {"tokenizer": "whitespace", "filter": ["short", "joined"]},
        "holes": {"tokenizer": "standard", "filter": ["lowercase", "small", "pairs"]},
        "marked": {"tokenizer": "standard", "filter": ["foxes", "lowercase", "porter_stem"]},
        "joined": {"tokenizer": "letter", "filter": ["joined"]},
    },
}


def one_by_one(analyzer: Analyzer, texts: Sequence[str]) -> list[Found]:
    return [analyzer.joined([text]) for text in texts]


def together(analyzer: Analyzer, texts: Sequence[str]) -> list[Found] | None:
    """The terms and positions of each text, None where they are not found together."""
    assert analyzer.bulk is not None
    found = analyzer.bulk.tokens(texts)
    if found is None:
        return None
    assert len(set(found.vocabulary)) == len(found.vocabulary)
    assert len(found.counts) == len(texts)
    ends = np.cumsum(found.counts)[:-1]
    pieces = zip(np.split(found.terms, ends), np.split(found.positions, ends), strict=True)
    return (
        [([found.vocabulary[term] for term in terms], positions.tolist()) for terms, positions in pieces]
        if texts
        else []
    )


@cache
def registry(mapping: Path) -> AnalysisRegistry:
    return AnalysisRegistry(json.loads(mapping.read_text(encoding="utf-8"))["settings"]["analysis"])


@pytest.mark.parametrize("mapping", MAPPINGS, ids=[path.stem for path in MAPPINGS])
@hypothesis.given(st.lists(hostile, max_size=4))
def test_texts_together_give_what_each_gives_in_shipped_mappings(mapping: Path, texts: list[str]) -> None:
    for name in registry(mapping)._analyzers:
        analyzer = registry(mapping).analyzer(name)
        if analyzer.bulk:
            found = together(analyzer, texts)
            assert found is None or found == one_by_one(analyzer, texts)


CUSTOM_REGISTRY = AnalysisRegistry(CUSTOM)


@hypothesis.given(st.lists(hostile | st.text("ab😀 \U0001f98a", max_size=8), max_size=4))
def test_texts_together_give_what_each_gives_in_others(texts: list[str]) -> None:
    for name in CUSTOM["analyzer"]:
        analyzer = CUSTOM_REGISTRY.analyzer(name)
        found = together(analyzer, texts)
        assert found is None or found == one_by_one(analyzer, texts)


def test_the_analyzers_of_the_premises_take_texts_together() -> None:
    texts = ["'''Definition''': the $x^2$ of foxes", "", "[[Set|A set]] is 😀 what it is"]
    premises = registry(next(path for path in MAPPINGS if path.stem == "premises"))
    for name in premises._analyzers:
        if not name.endswith("_query"):
            analyzer = premises.analyzer(name)
            assert together(analyzer, texts) == one_by_one(analyzer, texts), name


def test_pairs_around_holes_and_halves_of_characters_are_left_to_the_filter() -> None:
    holes = CUSTOM_REGISTRY.analyzer("holes")
    assert together(holes, ["red foxes run"]) == [(["red foxes", "foxes run"], [0, 1])]
    assert together(holes, ["red foxes run", "red the foxes"]) is None
    halves = CUSTOM_REGISTRY.analyzer("truncated_pairs")
    assert together(halves, ["ab😀 ab"]) is None
    assert together(halves, ["abc ab"]) == [(["abcab"], [0])]


def test_pairs_of_other_terms_may_be_the_same_term() -> None:
    analyzer = CUSTOM_REGISTRY.analyzer("joined")
    texts = ["ab c", "a bc"]
    assert together(analyzer, texts) == one_by_one(analyzer, texts) == [(["abc"], [0]), (["abc"], [0])]


@pytest.mark.parametrize(("terms", "characters"), [(3, 10**9), (10**9, 12)])
def test_terms_are_forgotten_and_found_again(
    monkeypatch: pytest.MonkeyPatch, terms: int, characters: int
) -> None:
    monkeypatch.setattr(bulk, "NUMBERED_TERMS", terms)
    monkeypatch.setattr(bulk, "NUMBERED_CHARACTERS", characters)
    analyzer = AnalysisRegistry(CUSTOM).analyzer("marked")
    for number in range(10):
        texts = [f"Running foxes number{number}", "the fox runs"]
        assert together(analyzer, texts) == one_by_one(analyzer, texts)
        assert analyzer.bulk is not None
        assert len(analyzer.bulk.work.terms) < 10


def test_texts_are_cut_once_for_all_analyzers_that_begin_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    cut: list[str] = []
    own = AnalysisRegistry(
        {
            "analyzer": {
                name: {"tokenizer": "whitespace", "filter": some}
                for name, some in [("plain", ["lowercase"]), ("stemmed", ["porter_stem"])]
            }
        }
    )
    tokenizer = own.analyzer("plain")._tokenizer
    assert own.analyzer("stemmed")._tokenizer is tokenizer
    terms = tokenizer.terms

    def counted(text: str) -> list[str]:
        cut.append(text)
        return terms(text)

    monkeypatch.setattr(tokenizer, "terms", counted)
    for name in ("plain", "stemmed"):
        together(own.analyzer(name), ["Foxes run", "Foxes"])
    assert cut == ["Foxes run", "Foxes"]


ascii_parts = st.sampled_from(
    ["fox", "a", "Fox's", "12", "3.5", ".", "'", ":", "_", ",", ";", '"', "-", " ", "x"]
)


@hypothesis.given(st.lists(ascii_parts, max_size=12).map("".join) | st.text("ab1'.:_,; \"", max_size=12))
def test_plain_words_of_ascii_are_what_the_rules_for_all_text_find(text: str) -> None:
    classes = text.translate(_RULES.classes)
    for_all = [match.span(1) for match in _RULES.scan.finditer(classes) if match[1]]
    assert [match.span(1) for match in _RULES.scan_ascii.finditer(text) if match[1]] == for_all
