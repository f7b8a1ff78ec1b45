"""Shared pieces of analyzers and patterns with word trees give the tokens of separate and plain ones."""

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
from searchapp.lucene.analysis.backtracking import search_limit
from searchapp.lucene.analysis.java_regex import with_first_characters, with_skipping_end, with_word_trees
from searchapp.lucene.analysis.syntax_tree import SyntaxTree
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
"""Texts that the shipped analyzers handle specially, and rare characters."""

hostile = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).map(
    lambda parts: "".join(part + " " * (len(part) % 2) for part in parts)
)


@cache
def _settings(mapping: Path) -> Mapping[str, Any]:
    analysis: Mapping[str, Any] = json.loads(mapping.read_text(encoding="utf-8"))["settings"]["analysis"]
    return analysis


@cache
def _shared_registry(mapping: Path) -> AnalysisRegistry:
    return AnalysisRegistry(_settings(mapping))


@cache
def _separate_analyzers(mapping: Path) -> dict[str, Analyzer]:
    """Return each analyzer from its own registry, with unchanged patterns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(java_regex, "with_word_trees", lambda source, _ignores_case: source)
        patch.setattr(java_regex, "with_first_characters", lambda source: source)
        patch.setattr(java_regex, "with_skipping_end", lambda source: source)
        analyzers = _settings(mapping)["analyzer"]
        registries = {
            name: AnalysisRegistry({**_settings(mapping), "analyzer": {name: definition}})
            for name, definition in analyzers.items()
        }
    return {name: registry.analyzer(name) for name, registry in registries.items()}


def _content(tokens: TokenStream) -> tuple[Any, ...]:
    return tokens.terms, tokens.positions, tokens.spans, tokens.lengths, tokens.trailing


@pytest.mark.parametrize("mapping", MAPPINGS, ids=[path.stem for path in MAPPINGS])
@hypothesis.given(st.lists(hostile, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_analyzers_with_shared_pieces_give_the_tokens_of_separate_ones(
    mapping: Path, texts: list[str], order: Any
) -> None:
    separate = _separate_analyzers(mapping)
    calls = [(name, text) for name in separate for text in texts] * 2
    order.shuffle(calls)
    for name, text in calls:
        analyzer = _shared_registry(mapping).analyzer(name)
        assert _content(analyzer.stream(text)) == _content(separate[name].stream(text))
        with_offsets = separate[name].stream(text, offsets=True)
        assert _content(analyzer.stream(text, offsets=True)) == _content(with_offsets)
        assert analyzer.terms(text) == list(zip(with_offsets.terms, with_offsets.positions, strict=True))


def test_a_text_is_tokenized_once_for_analyzers_with_the_same_tokenizer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokenized: list[str] = []
    registry = AnalysisRegistry(_settings(FACTS))
    tokenizer = registry._tokenizers["standard"]
    assert tokenizer is not None
    terms = tokenizer.terms

    def record(text: str) -> list[str]:
        tokenized.append(text)
        return terms(text)

    monkeypatch.setattr(tokenizer, "terms", record)
    for name in ("fact", "fact_query"):
        registry.analyzer(name).terms("Foxes are animals")
    assert len(tokenized) == 1


def test_long_texts_are_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "LONGEST_REMEMBERED", 3)
    registry = AnalysisRegistry(_settings(FACTS))
    for _ in range(2):
        assert registry.analyzer("fact").terms("fox foxes") == [("fox", 0), ("fox", 1)]
        assert registry.analyzer("fact_query").terms("fox foxes") == [("fox", 0)]


@pytest.mark.parametrize("mapping", MAPPINGS, ids=[path.stem for path in MAPPINGS])
@hypothesis.given(st.lists(hostile, min_size=1, max_size=3))
def test_distinct_terms_equal_those_of_the_complete_analysis(mapping: Path, texts: list[str]) -> None:
    for name, analyzer in _separate_analyzers(mapping).items():
        distinct_terms = _shared_registry(mapping).analyzer(name).distinct_terms
        if distinct_terms is None:
            continue
        for text in texts:
            stream = analyzer.stream(text)
            is_distinct = len(set(stream.terms)) == len(stream.terms)
            assert len(set(stream.positions)) == len(stream.terms)
            assert distinct_terms(text) == (tuple(stream.terms) if is_distinct else None)


def test_nearly_all_shipped_analyzers_with_unique_terms_have_distinct_terms() -> None:
    exceptions = {
        name
        for mapping in MAPPINGS
        for name, definition in _settings(mapping)["analyzer"].items()
        if "unique_terms" in definition["filter"]
        and not _shared_registry(mapping).analyzer(name).distinct_terms
    }
    assert exceptions == {"beginnings", "beginnings_query", "compounds"}


PAIRS = {"type": "shingle", "output_unigrams": False}


@pytest.mark.parametrize(
    ("filters", "text", "distinct"),
    [
        ([], "b a", ("b", "a")),
        ([], "b a b", None),
        (["stop"], "the b of c", ("b", "c")),
        (["lowercase"], "B a b", None),
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
def test_distinct_terms_of_few_filters(
    filters: list[str], text: str, distinct: tuple[str, ...] | None
) -> None:
    blank = {"type": "pattern_replace", "pattern": "x", "replacement": ""}
    definition = {"type": "custom", "tokenizer": "standard", "filter": filters}
    settings = {"filter": {"pairs": PAIRS, "blank": blank}, "analyzer": {"some": definition}}
    analyzer = AnalysisRegistry(settings).analyzer("some")
    assert analyzer.distinct_terms is not None
    assert analyzer.distinct_terms(text) == distinct
    if distinct is not None:
        assert analyzer.stream(text).terms == list(distinct)


@pytest.mark.parametrize(
    "filters",
    [
        ["unique", "lowercase"],
        ["unique", "pairs"],
        ["pairs", "lowercase", "unique"],
        ["shingle", "unique"],
        ["same_position"],
        ["pairs", "pairs", "unique"],
        ["halves", "unique"],
    ],
)
def test_other_analyzers_have_no_distinct_terms(filters: list[str]) -> None:
    pieces = {
        "pairs": PAIRS,
        "same_position": {"type": "unique", "only_on_same_position": True},
        "halves": {"type": "truncate", "length": 3},
    }
    definition = {"type": "custom", "tokenizer": "standard", "filter": filters}
    registry = AnalysisRegistry({"filter": pieces, "analyzer": {"some": definition}})
    assert registry.analyzer("some").distinct_terms is None


def test_halves_of_characters_that_can_join_need_the_complete_analysis() -> None:
    definition = {"type": "custom", "tokenizer": "whitespace", "filter": ["pairs", "unique"]}
    analyzer = AnalysisRegistry({"filter": {"pairs": PAIRS}, "analyzer": {"some": definition}}).analyzer(
        "some"
    )
    assert analyzer.distinct_terms is not None
    assert analyzer.distinct_terms("a \ud83d \ude00") is None


# Trees of words

words = st.lists(st.text("abAB1", min_size=1, max_size=4), min_size=2, max_size=12)
ends = st.sampled_from(["", "(?![a-z])", "b", "(?=a)", "+", "{2}", "$"])


@st.composite
def patterns(draw: st.DrawFn) -> tuple[str, bool]:
    """Return a pattern with words and other expressions as alternatives, and whether case is ignored."""
    opening = draw(st.sampled_from(["(?:", "(?i:", "(", "(?=", "(?!", "(?P<name>"]))
    expressions = draw(
        st.lists(st.sampled_from(["[ab]", "a?", "\\x20", "(?:a|b|ab)", "[|a]", "\\u00e9b"]), max_size=3)
    )
    alternatives = draw(st.permutations([*draw(words), *expressions]))
    return f"{opening}{'|'.join(alternatives)}){draw(ends)}", draw(st.booleans())


@hypothesis.given(patterns(), st.text("abAB1 é|K", max_size=20))
def test_word_trees_match_like_the_words(pattern: tuple[str, bool], text: str) -> None:
    source, ignores_case = pattern
    flags = re.ASCII | (re.IGNORECASE if ignores_case else 0)
    plain, tree = re.compile(source, flags), re.compile(with_word_trees(source, ignores_case), flags)
    assert list(_matches(tree, text)) == list(_matches(plain, text))


@hypothesis.given(patterns(), patterns(), st.text("abAB1 é|K", max_size=20))
def test_a_look_ahead_for_the_first_character_does_not_change_matches(
    first: tuple[str, bool], second: tuple[str, bool], text: str
) -> None:
    source = f"{first[0]}|{second[0].replace('(?P<name>', '(?P<other>')}"
    flags = re.ASCII | (re.IGNORECASE if first[1] else 0)
    plain, optimized = re.compile(source, flags), re.compile(with_first_characters(source), flags)
    assert list(_matches(optimized, text)) == list(_matches(plain, text))


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


@pytest.mark.parametrize("ignores_case", [False, True])
@pytest.mark.parametrize("start", ["", "(?:(?:\\A)|b)", "x|", "(a)"])
@pytest.mark.parametrize(
    ("end", "first"),
    [
        ("ab", "a"),
        ("\\x2d\\x2da", "\\x2d"),
        ("(?:aba|b|aa)", "ab"),
        ("(?:\\x2d\\x2d|(?:\\Z))", "\\x2d"),
        ("(?:\\u00e9|K)", "\\u00e9K"),
    ],
)
@hypothesis.given(st.text("abAB-é\n\u212ak😀", max_size=20))
def test_a_lazy_loop_before_the_end_skips_to_the_same_end(
    end: str, first: str, start: str, ignores_case: bool, text: str
) -> None:
    source = rf"{start}[\s\S]*?{end}"
    flags = re.ASCII | (re.IGNORECASE if ignores_case else 0)
    skipping = with_skipping_end(source)
    assert f"[^{first}]*+" in skipping
    assert list(_matches(re.compile(skipping, flags), text)) == list(
        _matches(re.compile(source, flags), text)
    )
    assert search_limit(SyntaxTree.of(skipping, flags)).longest > 0


@pytest.mark.parametrize(
    "source",
    ["[\\s\\S]*?", "[\\s\\S]*?a+", "[\\s\\S]*?(?:a|)", "([\\s\\S]*?a)", "[\\s\\S]*?(?:a|[bc])", "[^a]*?ab"],
)
def test_other_lazy_loops_stay(source: str) -> None:
    assert with_skipping_end(source) == source


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[tuple[Any, ...]]:
    for start in range(len(text) + 1):  # not only at the end of the last match
        if match := pattern.match(text, start):
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
