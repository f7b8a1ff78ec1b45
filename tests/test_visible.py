"""Control characters and invisible characters in texts are shown as visible signs."""

from __future__ import annotations

import json

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from searchapp.text import escaped, visible, visible_line, visible_spans

HOSTILE = (
    "\x1b]52;c;cHduZWQ=\x07 \x1b[2J \x9b2J \u202egnp\u2069 a\u200bb \U000e0041 \ufeff \u3164 \u2028 \x7f"
)
PROPERTIES = regex.compile(r"[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]")
VISIBLE_FORMAT = regex.compile(r"\p{Prepended_Concatenation_Mark}")
"""Format characters of Unicode that are visible."""


def texts() -> st.SearchStrategy[str]:
    hidden = st.sampled_from([*HOSTILE, "\n", "\t", "\r", "\ud800", "\u061c"])
    return st.text(st.one_of(st.characters(), hidden))


def test_exactly_the_control_and_invisible_characters_are_replaced() -> None:
    for code in range(0x110000):
        character = chr(code)
        hides = bool(PROPERTIES.fullmatch(character)) and not VISIBLE_FORMAT.fullmatch(character)
        assert (visible_line(character) != character) == hides, hex(code)
        assert (visible(character) != character) == (hides and character not in "\n\t"), hex(code)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "␛[31mred"),
        ("\x7f", "␡"),
        ("\x9b1m", "<U+009B>1m"),
        ("abc\u202ecba", "abc<U+202E>cba"),
        ("\U000e0041", "<U+E0041>"),
        ("sea\u200brch", "sea<U+200B>rch"),
        ("naïve ¬φ ∀x 日本 😀", "naïve ¬φ ∀x 日本 😀"),
    ],
)
def test_a_sign_identifies_its_character(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(texts())
def test_visible_texts_are_printable_and_not_changed_again(text: str) -> None:
    assert all(character.isprintable() or character in "\n\t" or not PROPERTIES.match(character)
               or VISIBLE_FORMAT.match(character) for character in visible(text))  # fmt: skip
    assert visible(visible(text)) == visible(text)
    assert visible_line(visible(text)) == visible_line(text)
    assert "\n" not in visible_line(text)


@given(texts(), st.data())
def test_spans_are_moved_to_the_shown_characters(text: str, data: st.DataObject) -> None:
    ends = st.integers(0, len(text))
    spans = [(min(pair), max(pair)) for pair in data.draw(st.lists(st.tuples(ends, ends), max_size=4))]
    shown, moved = visible_spans(text, spans)
    assert shown == visible(text)
    assert [shown[start:end] for start, end in moved] == [visible(text[start:end]) for start, end in spans]


@given(texts())
def test_escaped_json_keeps_all_characters_and_is_visible(text: str) -> None:
    written = escaped(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(written) == {"text": text}
    assert visible(written) == written
