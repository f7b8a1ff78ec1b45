from __future__ import annotations

import itertools
import re

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
    places = sorted(draw(st.sets(st.integers(0, len(text)), max_size=8)))
    spans = [
        (a, b)
        for a, b in zip(places[::2], places[1::2], strict=False)
        if text[a:b].strip() == text[a:b] != ""
    ]
    return text, spans


def test_text_fields_are_found_at_every_depth() -> None:
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


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda span: tuple(sorted(span)))))
def test_a_union_has_the_same_characters_in_disjoint_ranges(spans: list[tuple[int, int]]) -> None:
    joined = merge_spans(spans)
    assert all(start < end for start, end in joined)
    assert {place for a, b in joined for place in range(a, b)} == {
        place for a, b in spans for place in range(a, b)
    }
    assert all(end < start for (_, end), (start, _) in itertools.pairwise(joined))


@given(texts_with_matches())
def test_squeezing_keeps_the_words_and_what_is_matched(case: tuple[str, list[tuple[int, int]]]) -> None:
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
    matched = "".join(text[a:b] for a, b in spans)
    assert len(piece) <= length + 2
    for start, end in inside:
        assert piece[start:end].strip("…")
        assert set(piece[start:end].replace(" ", "")) <= set(
            matched.replace("\n", "").replace("\t", "").replace(" ", "")
        )


def test_a_match_that_is_cut_at_a_blank_ends_before_the_ellipsis() -> None:
    assert snippet("a aaaa", [(0, 3)], 5) == ("a…", [(0, 1)])


def test_a_short_text_is_shown_whole() -> None:
    assert snippet("Every field\nis a ring.", [(6, 11)], 40) == ("Every field is a ring.", [(6, 11)])


def test_a_long_text_is_shown_where_the_matches_are() -> None:
    text = "word " * 50 + "normal subgroup" + " word" * 50
    start = text.index("normal")
    piece, inside = snippet(text, [(start, start + 6), (start + 7, start + 15)], 60)
    assert [piece[a:b] for a, b in inside] == ["normal", "subgroup"]
    assert piece.startswith("…") and piece.endswith("…")


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_an_empty_text_is_an_empty_snippet(text: str) -> None:
    assert snippet(text, [], 10) == ("", [])


def marked_by_braces(text: str) -> str:
    return text.replace("[", "\ue000").replace("]", "\ue001")


def tokens(_field: str, text: str) -> list[Token]:
    """Words, and for those with a hyphen their parts as well."""
    found = []
    for place, word in enumerate(re.finditer(r"[\w-]+", text)):
        parts = [*re.finditer(r"\w+", word[0])]
        found.append(Token(word[0].lower(), place, *word.span()))
        if len(parts) > 1:
            offset = word.start()
            found += [
                Token(part[0].lower(), place, offset + part.start(), offset + part.end()) for part in parts
            ]
    return found


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("[Every] [normal] subgroup", "Every [normal] subgroup"),
        ("[normal], [normal] and [every]", "[normal], [normal] and every"),
        ("[every] one", ""),
        ("no mark", ""),
        ("[every] semi-normal one", ""),
    ],
)
def test_marks_of_terms_that_are_not_chosen_are_taken_away(given: str, expected: str) -> None:
    weighty = MarkedTerms({"text": ["normal"], "other": ["every"]}, {}, tokens)
    left = weighty.narrow({"text": [marked_by_braces(given)]})
    assert left == ({"text": [marked_by_braces(expected)]} if expected else {})


@pytest.mark.parametrize(
    "given", ["[semi-normal] one", "semi-[normal] one", "[every normal]", "[sub]group", "𝔸 [every] one"]
)
def test_marks_are_left_to_the_engine_where_tokens_overlap(given: str) -> None:
    assert MarkedTerms({"text": ["normal"]}, {}, tokens).narrow({"text": [marked_by_braces(given)]}) is None


def test_words_of_a_phrase_keep_their_marks_where_it_stands() -> None:
    weighty = MarkedTerms({"text": ["ring"]}, {"text": [tokens("text", "every ideal")]}, tokens)
    marked = marked_by_braces("[Every] [ideal] of [every] [ring] is an [ideal]: [ideal] [every]")
    left = {"text": [marked_by_braces("[Every] [ideal] of every [ring] is an ideal: ideal every")]}
    assert weighty.narrow({"text": [marked]}) == left
