"""Snippets and marks of search results."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.model import Token
from searchapp.ranking.highlighting import MarkedTerms, collapse_whitespace, remove_marks, snippet
from searchapp.ranking.search_results import text_fields
from searchapp.text import merge_spans

WORDS = st.text(alphabet="ab \n\t$", max_size=80)


@st.composite
def texts_with_matches(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]]]:
    text = draw(WORDS)
    offsets = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    spans = [
        (a, b)
        for a, b in zip(offsets[::2], offsets[1::2], strict=False)
        if text[a:b].strip() == text[a:b] != ""
    ]
    return text, spans


def test_text_fields_of_all_levels_are_listed() -> None:
    properties = {
        "id": {"type": "keyword"},
        "text": {"type": "text", "fields": {"prose": {"type": "text"}, "raw": {"type": "keyword"}}},
        "answer": {"properties": {"label": {"type": "text"}}},
    }
    assert text_fields(properties) == ["text", "text.prose", "answer.label"]


def test_marks_become_ranges_of_the_text() -> None:
    assert remove_marks("a \ue000normal\ue001 \ue000subgroup\ue001s") == (
        "a normal subgroups",
        [(2, 8), (9, 17)],
    )
    assert remove_marks("$\ue000\ue0015") == ("$5", [])


def offsets_in(spans: Iterable[tuple[int, int]]) -> set[int]:
    return {offset for start, end in spans for offset in range(start, end)}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda span: tuple(sorted(span)))))
def test_merged_spans_are_disjoint_and_cover_the_same_characters(spans: list[tuple[int, int]]) -> None:
    joined = merge_spans(spans)
    assert all(start < end for start, end in joined)
    assert offsets_in(joined) == offsets_in(spans)
    assert all(end < start for (_, end), (start, _) in itertools.pairwise(joined))


@given(texts_with_matches())
def test_collapsed_whitespace_keeps_words_and_matches(case: tuple[str, list[tuple[int, int]]]) -> None:
    text, spans = case
    line, moved = collapse_whitespace(text, spans)
    assert line.split() == text.split()
    assert "  " not in line and "\n" not in line
    assert [line[a:b].split() for a, b in moved] == [text[a:b].split() for a, b in spans]


@given(texts_with_matches(), st.integers(5, 40))
def test_a_snippet_marks_only_matched_characters(
    case: tuple[str, list[tuple[int, int]]], length: int
) -> None:
    text, spans = case
    piece, inside = snippet(text, spans, length)
    matched = set("".join(text[a:b] for a, b in spans)) - set(" \t\n")
    assert len(piece) <= length + 2
    for start, end in inside:
        assert piece[start:end].strip("…")
        assert set(piece[start:end]) - {" "} <= matched


def test_a_match_that_is_cut_at_a_blank_ends_before_the_ellipsis() -> None:
    assert snippet("a aaaa", [(0, 3)], 5) == ("a…", [(0, 1)])


def test_a_short_text_is_its_own_snippet() -> None:
    assert snippet("Every field\nis a ring.", [(6, 11)], 40) == ("Every field is a ring.", [(6, 11)])


def test_the_snippet_of_a_long_text_contains_the_matches() -> None:
    text = "word " * 50 + "normal subgroup" + " word" * 50
    start = text.index("normal")
    piece, inside = snippet(text, [(start, start + 6), (start + 7, start + 15)], 60)
    assert [piece[a:b] for a, b in inside] == ["normal", "subgroup"]
    assert piece.startswith("…") and piece.endswith("…")


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_text_has_an_empty_snippet(text: str) -> None:
    assert snippet(text, [], 10) == ("", [])


def with_marks(text: str) -> str:
    """Replace brackets by marks."""
    return text.replace("[", "\ue000").replace("]", "\ue001")


def tokens(_field: str, text: str) -> list[Token]:
    """Return words, and the parts of words with a hyphen."""
    result = []
    for position, word in enumerate(re.finditer(r"[\w-]+", text)):
        parts = [*re.finditer(r"\w+", word[0])]
        result.append(Token(word[0].lower(), position, *word.span()))
        if len(parts) > 1:
            start = word.start()
            result += [
                Token(part[0].lower(), position, start + part.start(), start + part.end()) for part in parts
            ]
    return result


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("[Every] [normal] subgroup", "Every [normal] subgroup"),
        ("[normal], [normal] and [every]", "[normal], [normal] and every"),
        ("[every] word", ""),
        ("no mark", ""),
        ("[every] semi-normal word", ""),
    ],
)
def test_marks_of_other_terms_are_removed(marked: str, expected: str) -> None:
    terms = MarkedTerms({"text": ["normal"], "other": ["every"]}, {}, tokens)
    narrowed = terms.narrow({"text": [with_marks(marked)]})
    assert narrowed == ({"text": [with_marks(expected)]} if expected else {})


@pytest.mark.parametrize(
    "marked", ["[semi-normal] word", "semi-[normal] word", "[every normal]", "[sub]group", "𝔸 [every] word"]
)
def test_marks_that_are_not_whole_tokens_are_not_narrowed(marked: str) -> None:
    assert MarkedTerms({"text": ["normal"]}, {}, tokens).narrow({"text": [with_marks(marked)]}) is None


def test_words_of_a_phrase_keep_their_marks_within_the_phrase() -> None:
    terms = MarkedTerms({"text": ["ring"]}, {"text": [tokens("text", "every ideal")]}, tokens)
    text = with_marks("[Every] [ideal] of [every] [ring] is an [ideal]: [ideal] [every]")
    narrowed = {"text": [with_marks("[Every] [ideal] of every [ring] is an ideal: ideal every")]}
    assert terms.narrow({"text": [text]}) == narrowed
