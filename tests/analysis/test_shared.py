"""Analyzers that share pieces, and patterns with trees of words, give what each piece gives by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from searchapp.lucene.analysis import AnalysisRegistry, Analyzer, java_regex
from searchapp.lucene.analysis import analyzer as shared
from searchapp.lucene.analysis.java_regex import with_first_characters, with_word_trees
from searchapp.lucene.analysis.token_filters import TokenStream

MAPPINGS = sorted((Path(__file__).parents[2] / "index_mappings").glob("*.json"))
FACTS = next(path for path in MAPPINGS if path.stem == "facts")

PIECES = [
    "'''Definition'''",
    "'''",
    "''",
    "$x^2$",
    "$",
    "$$",
    "\\frac",
    "\\left(",
    "\\begin{eqn}",
    "\\mathcal{A}",
    "\\",
    "{{begin-eqn}}",
    "| l = ",
    "[[Definition:Set|",
    "]]",
    "the",
    "There",
    "Defined",
    "matrices",
    "foxes'",
    "don't",
    "a",
    "A ",
    "a\n",
    "1,000",
    "5kg",
    "é",
    "e\u0301",
    "ﬁ",
    "≤",
    "İ",
    "K",
    "ſ",
    "😀",
    "\u200b",
    "\u00a0",
    "\r\n",
    "\0",
    "中文",
    "ไทย",
]
"""What the shipped analyzers look for, and what is seldom met."""

hostile = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).map(
    lambda parts: "".join(part + " " * (len(part) % 2) for part in parts)
)


@cache
def _settings(mapping: Path) -> Mapping[str, Any]:
    analysis: Mapping[str, Any] = json.loads(mapping.read_text(encoding="utf-8"))["settings"]["analysis"]
    return analysis


@cache
def _together(mapping: Path) -> AnalysisRegistry:
    return AnalysisRegistry(_settings(mapping))


@cache
def _alone(mapping: Path) -> dict[str, Analyzer]:
    """Each analyzer in a registry of its own, its patterns as they are written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(java_regex, "with_word_trees", lambda source, _ignores_case: source)
        patch.setattr(java_regex, "with_first_characters", lambda source: source)
        analyzers = _settings(mapping)["analyzer"]
        registries = {
            name: AnalysisRegistry({**_settings(mapping), "analyzer": {name: described}})
            for name, described in analyzers.items()
        }
    return {name: registry.analyzer(name) for name, registry in registries.items()}


def _said(tokens: TokenStream) -> tuple[Any, ...]:
    return tokens.terms, tokens.positions, tokens.spans, tokens.lengths, tokens.trailing


@pytest.mark.parametrize("mapping", MAPPINGS, ids=[path.stem for path in MAPPINGS])
@hypothesis.given(st.lists(hostile, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_what_is_shared_is_what_each_analyzer_gives_by_itself(
    mapping: Path, texts: list[str], order: Any
) -> None:
    alone = _alone(mapping)
    asked = [(name, text) for name in alone for text in texts] * 2
    order.shuffle(asked)
    for name, text in asked:
        analyzer = _together(mapping).analyzer(name)
        assert _said(analyzer.stream(text)) == _said(alone[name].stream(text))
        with_offsets = alone[name].stream(text, offsets=True)
        assert _said(analyzer.stream(text, offsets=True)) == _said(with_offsets)
        assert analyzer.terms(text) == list(zip(with_offsets.terms, with_offsets.positions, strict=True))


def test_a_text_is_cut_once_for_all_analyzers_that_begin_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    cut: list[str] = []
    registry = AnalysisRegistry(_settings(FACTS))
    tokenizer = registry._tokenizers["standard"]
    assert tokenizer is not None
    terms = tokenizer.terms

    def counted(text: str) -> list[str]:
        cut.append(text)
        return terms(text)

    monkeypatch.setattr(tokenizer, "terms", counted)
    for name in ("fact", "fact_query"):
        registry.analyzer(name).terms("Foxes are animals")
    assert len(cut) == 1


def test_long_texts_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "LONGEST_REMEMBERED", 3)
    registry = AnalysisRegistry(_settings(FACTS))
    for _ in range(2):
        assert registry.analyzer("fact").terms("fox foxes") == [("fox", 0), ("fox", 1)]
        assert registry.analyzer("fact_query").terms("fox foxes") == [("fox", 0)]


@pytest.mark.parametrize("mapping", MAPPINGS, ids=[path.stem for path in MAPPINGS])
@hypothesis.given(st.lists(hostile, min_size=1, max_size=3))
def test_different_terms_are_those_of_all_steps(mapping: Path, texts: list[str]) -> None:
    for name, alone in _alone(mapping).items():
        different = _together(mapping).analyzer(name).distinct_terms
        if different is None:
            continue
        for text in texts:
            stream = alone.stream(text)
            assert len(set(stream.terms)) == len(stream.terms) == len(set(stream.positions))
            assert different(text) == tuple(stream.terms)


def test_queries_by_all_shipped_mappings_ask_for_different_terms_alone() -> None:
    others = {
        name
        for mapping in MAPPINGS
        for name, described in _settings(mapping)["analyzer"].items()
        if "unique_terms" in described["filter"] and not _together(mapping).analyzer(name).distinct_terms
    }
    assert others == {"beginnings", "beginnings_query", "compounds"}


PAIRS = {"type": "shingle", "output_unigrams": False}


@pytest.mark.parametrize(
    ("filters", "text", "different"),
    [
        (["unique"], "b a b", ("b", "a")),
        (["lowercase", "unique"], "B a b A", ("b", "a")),
        (["stop", "unique"], "the b of c", ("b", "c")),
        (["unique"], "", ()),
        (["pairs", "unique"], "a b a b", ("a b", "b a")),
        (["pairs", "unique"], "a", ()),
        (["stop", "pairs", "unique"], "c b a", None),
        (["blank", "pairs", "unique"], "a x b", ("a ", " b")),
    ],
)
def test_different_terms_by_few_filters(
    filters: list[str], text: str, different: tuple[str, ...] | None
) -> None:
    blank = {"type": "pattern_replace", "pattern": "x", "replacement": ""}
    described = {"type": "custom", "tokenizer": "standard", "filter": filters}
    settings = {"filter": {"pairs": PAIRS, "blank": blank}, "analyzer": {"some": described}}
    analyzer = AnalysisRegistry(settings).analyzer("some")
    assert analyzer.distinct_terms is not None
    assert analyzer.distinct_terms(text) == different
    if different is not None:
        assert analyzer.stream(text).terms == list(different)


@pytest.mark.parametrize(
    "filters",
    [
        [],
        ["lowercase"],
        ["unique", "lowercase"],
        ["unique", "pairs"],
        ["pairs", "lowercase", "unique"],
        ["shingle", "unique"],
        ["same_position"],
        ["pairs", "pairs", "unique"],
        ["halves", "unique"],
    ],
)
def test_other_analyzers_tell_different_terms_by_all_steps_only(filters: list[str]) -> None:
    pieces = {
        "pairs": PAIRS,
        "same_position": {"type": "unique", "only_on_same_position": True},
        "halves": {"type": "truncate", "length": 3},
    }
    described = {"type": "custom", "tokenizer": "standard", "filter": filters}
    registry = AnalysisRegistry({"filter": pieces, "analyzer": {"some": described}})
    assert registry.analyzer("some").distinct_terms is None


def test_halves_of_characters_that_may_meet_in_a_pair_take_all_steps() -> None:
    described = {"type": "custom", "tokenizer": "whitespace", "filter": ["pairs", "unique"]}
    analyzer = AnalysisRegistry({"filter": {"pairs": PAIRS}, "analyzer": {"some": described}}).analyzer(
        "some"
    )
    assert analyzer.distinct_terms is not None
    assert analyzer.distinct_terms("a \ud83d \ude00") is None


# Trees of words

words = st.lists(st.text("abAB1", min_size=1, max_size=4), min_size=2, max_size=12)
ends = st.sampled_from(["", "(?![a-z])", "b", "(?=a)", "+", "{2}", "$"])


@st.composite
def patterns(draw: st.DrawFn) -> tuple[str, bool]:
    """Patterns with words among their alternatives, beside other things, and whether case is ignored."""
    opening = draw(st.sampled_from(["(?:", "(?i:", "(", "(?=", "(?!", "(?P<name>"]))
    others = draw(
        st.lists(st.sampled_from(["[ab]", "a?", "\\x20", "(?:a|b|ab)", "[|a]", "\\u00e9b"]), max_size=3)
    )
    alternatives = draw(st.permutations([*draw(words), *others]))
    return f"{opening}{'|'.join(alternatives)}){draw(ends)}", draw(st.booleans())


@hypothesis.given(patterns(), st.text("abAB1 é|K", max_size=20))
def test_a_tree_of_words_finds_what_the_words_find(pattern: tuple[str, bool], text: str) -> None:
    source, ignores_case = pattern
    flags = re.ASCII | (re.IGNORECASE if ignores_case else 0)
    plain, tree = re.compile(source, flags), re.compile(with_word_trees(source, ignores_case), flags)
    assert list(_found(tree, text)) == list(_found(plain, text))


@hypothesis.given(patterns(), patterns(), st.text("abAB1 é|K", max_size=20))
def test_behind_a_look_at_its_first_character_a_pattern_finds_the_same(
    first: tuple[str, bool], second: tuple[str, bool], text: str
) -> None:
    source = f"{first[0]}|{second[0].replace('(?P<name>', '(?P<other>')}"
    flags = re.ASCII | (re.IGNORECASE if first[1] else 0)
    plain, looking = re.compile(source, flags), re.compile(with_first_characters(source), flags)
    assert list(_found(looking, text)) == list(_found(plain, text))


@pytest.mark.parametrize(
    ("source", "first"),
    [
        ("[ab]|c", "[abc]"),
        ("(?:[a-c]|d+)x|\\x5c[ab]|(?P<name>e{2})", "[a-cd\\x5ce]"),
        ("(?i:ab|(?-i:c)|d)|[0-9]+(?:x|y)", "[AacDd0-9]"),
        ("(?>[a-c])|1", "[a-c1]"),
        ("a|b", ""),
        ("[ab]", ""),
        ("[ab]|", ""),
        ("[ab]|c?", ""),
        ("[ab]|c{0,2}d", ""),
        ("[ab]*c|d", ""),
        ("(?:[ab]|)c|d", ""),
        ("[ab]|[^c]", ""),
        ("(?i:[ab])|c", ""),
        ("[ab]|(?=c)d", ""),
        ("[ab]|(?<!c)d", ""),
        ("[ab]|(?:\\A)d", ""),
        ("[ab]|\ue000c", ""),
    ],
)
def test_the_first_characters_of_patterns(source: str, first: str) -> None:
    assert with_first_characters(source) == (f"(?={first})(?:{source})" if first else source)


def _found(pattern: re.Pattern[str], text: str) -> Iterator[tuple[Any, ...]]:
    for at in range(len(text) + 1):  # not just where the last match ended
        if match := pattern.match(text, at):
            yield match.span(), match.groups()


@pytest.mark.parametrize(
    ("source", "tree"),
    [
        ("the|there|which", "(?:the(?:|re)|which)"),
        ("(?:there|the|a)x", "(?:(?:the(?:re|)|a))x"),
        ("(?i:ab|Ac|b)", "(?i:(?-i:[Aa](?:[Bb]|[Cc])|[Bb]))"),
        ("a|b", "a|b"),
        ("(?<=(?:\ue002a)|(?:\ue002b)|(?:\ue002c))", "(?<=(?:\ue002a)|(?:\ue002b)|(?:\ue002c))"),
        ("[ab|cd|ef]", "[ab|cd|ef]"),
        ("ab|ac+|ad|ae|af", "ab|ac+|(?:a(?:d|e|f))"),
    ],
)
def test_runs_of_words_become_trees(source: str, tree: str) -> None:
    assert with_word_trees(source, ignores_case=False) == tree
