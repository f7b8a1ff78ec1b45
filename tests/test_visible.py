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
# Emoji, whose joiners and selectors are shown unchanged.
EMOJI_SEQUENCE = regex.compile(
    r"(?:[\p{Emoji}--[0-9#*]]\ufe0f?\u200d)*[\p{Emoji}--[0-9#*]][\ufe0e\ufe0f]?", regex.V1
)

VISIBLE_FORMAT = regex.compile(r"\p{Prepended_Concatenation_Mark}")
"""Format characters of Unicode that are visible."""


def texts() -> st.SearchStrategy[str]:
    hidden = st.sampled_from([*HOSTILE, *"\n\t\r\ud800\u061c", *"👩🏽❤\u200d\ufe0f1\u20e3"])
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


EMOJI = [
    *("👩\u200d🔬", "👨\u200d👩\u200d👧", "❤\ufe0f", "❤\ufe0f\u200d🔥", "👍🏽", "👩🏽\u200d🔬"),
    *("🏳\ufe0f\u200d🌈", "1\ufe0f\u20e3", "☂\ufe0e", "🇩🇪", "🧑\u200d⚕\ufe0f", "©\ufe0f"),
]


@pytest.mark.parametrize("emoji", EMOJI)
def test_emoji_keep_their_joiners_and_selectors(emoji: str) -> None:
    text = f"a {emoji} b{emoji}"
    assert visible(text) == visible_line(text) == text
    assert visible_spans(text, [(2, 2 + len(emoji))]) == (text, [(2, 2 + len(emoji))])


def test_every_emoji_keeps_its_selector() -> None:
    emoji = regex.compile(r"[\p{Emoji}--[0-9#*]]", regex.V1)
    for character in filter(emoji.fullmatch, map(chr, range(0x110000))):
        assert visible(f"{character}\ufe0f") == f"{character}\ufe0f", hex(ord(character))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u200db", "a<U+200D>b"),
        ("👩\u200d", "👩<U+200D>"),
        ("\u200d👩", "<U+200D>👩"),
        ("👩\u200d\u200d🔬", "👩<U+200D><U+200D>🔬"),
        ("a\ufe0f\u200d👩", "a<U+FE0F><U+200D>👩"),
        ("👩\ufe0f\ufe0f", "👩\ufe0f<U+FE0F>"),
        ("a\ufe0f", "a<U+FE0F>"),
        ("1\ufe0f", "1<U+FE0F>"),
        ("👩\u202e\u200d🔬", "👩<U+202E><U+200D>🔬"),
        ("👩\x1b\u200b🔬", "👩␛<U+200B>🔬"),
        ("🏴\U000e0067\U000e007f", "🏴<U+E0067><U+E007F>"),
    ],
)
def test_joiners_and_selectors_elsewhere_are_signs(text: str, shown: str) -> None:
    assert visible(text) == visible_line(text) == visible(shown) == shown


@given(texts())
def test_visible_texts_are_printable_and_not_changed_again(text: str) -> None:
    assert all(character.isprintable() or character in "\n\t\u200d\ufe0e\ufe0f" or not PROPERTIES.match(character)
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
    for (start, end), (first, last) in zip(spans, moved, strict=True):
        pieces = [visible(text[:start]), visible(text[start:end]), visible(text[end:])]
        if "".join(pieces) == shown:  # the span does not begin or end within an emoji
            assert (first, shown[first:last]) == (len(pieces[0]), pieces[1])


@given(texts())
def test_escaped_json_keeps_all_characters_and_is_visible(text: str) -> None:
    written = escaped(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(written) == {"text": text}
    assert visible(written) == written
