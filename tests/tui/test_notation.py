"""The forms of a text, on the screens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.model import Markup
from searchapp.text import visible
from searchapp.tui.kit import content as notation_module
from searchapp.tui.kit.content import Form, Notation, readable
from searchapp.tui.kit.widgets import one_line
from searchapp.tui.search.panes import piece

WIKI = Notation(Markup.wiki)
TEXT = "== A ==\n\n\n\n'''Let''' $x \\le y$ {{iff}}:\n:[[Set|a set]]\n\n"
PIECES = st.sampled_from(
    ["'''", "''", "{{iff}}", "{{x|", "}}", "[[", "]]", "|", "$", "\\le ", "\n", "\n\n\n", " ", "word",
     "\x1b[2J", "\u202e", "\u200b", "[/", "é"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=25).map("".join)


@pytest.mark.parametrize(
    ("markup", "form", "shown"),
    [
        (Markup.wiki, Form.rendered, "A\n\nLet x ≤ y if and only if:\n  a set"),
        (Markup.wiki, Form.written, "A\n\nLet $x \\le y$ if and only if:\n  a set"),
        (Markup.wiki, Form.stored, TEXT),
        (Markup.latex, Form.rendered, "== A ==\n\n'''Let''' x ≤ y {{iff}}:\n:[[Set|a set]]"),
        (Markup.latex, Form.written, "== A ==\n\n'''Let''' $x \\le y$ {{iff}}:\n:[[Set|a set]]"),
        (Markup.plain, Form.rendered, "== A ==\n\n'''Let''' $x \\le y$ {{iff}}:\n:[[Set|a set]]"),
    ],
)
def test_a_text_is_shown_in_a_form(markup: Markup, form: Form, shown: str) -> None:
    assert readable(TEXT, (), Notation(markup, form)).text == shown


def test_money_is_no_formula_where_texts_have_no_markup() -> None:
    text = "It costs $5 million, not $10 million."
    assert readable(text, (), Notation(Markup.plain)).text == text


@pytest.mark.parametrize(("markup", "forms"), [(Markup.wiki, 3), (Markup.latex, 3), (Markup.plain, 2)])
def test_a_key_goes_through_all_forms(markup: Markup, forms: int) -> None:
    seen = [Notation(markup)]
    while seen[-1].next != seen[0]:
        seen.append(seen[-1].next)
    assert len(seen) == forms == len({one.about for one in seen})
    assert seen[1].form is Form.stored, "the text as it stands is one key away"
    assert Notation(markup, Form.written).next in seen


def test_what_is_marked_and_emphasized_stays_on_its_words() -> None:
    text = f"\x1b{TEXT}"
    start = text.index("set]]")
    found = readable(text.replace("== A ==", "A"), [(start - 6, start - 3)], WIKI)
    assert [found.text[a:b] for a, b in found.spans] == ["set"]
    looks = {(one.name, found.text[one.start : one.end]) for one in found.styles}
    assert looks == {("bold", "Let"), ("link", "a set")}
    content = found.content("reverse")
    assert {content.plain[one.start : one.end] for one in content.spans if one.style == "reverse"} == {"set"}


@given(TEXTS, st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=4))
def test_whatever_a_text_has_is_shown_harmlessly(text: str, spans: list[tuple[int, int]]) -> None:
    for form in Form:
        notation = Notation(Markup.wiki, form)
        found = readable(text, [(min(one), max(one)) for one in spans], notation)
        assert visible(found.text) == found.text
        assert all(0 <= start < end <= len(found.text) for start, end in found.spans if start < end)
        assert found.content("reverse").plain == found.text
        assert all(word not in one_line(text, notation) for word in ("\x1b", "\u202e", "\u200b", "\n"))


@given(TEXTS)
def test_the_text_as_it_stands_has_every_blank(text: str) -> None:
    assert readable(text, (), Notation(Markup.wiki, Form.stored)).text == visible(text)


def test_a_very_long_text_is_shown_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notation_module, "LONGEST", 20)
    text = "'''a''' " * 3
    assert readable(text, [(8, 11)], WIKI).text == text.rstrip()
    assert readable(text[:16], (), WIKI).text == "a a"


def test_lines_of_lists_have_no_markup() -> None:
    text = "{{begin-eqn}}\n{{eqn | l = x\n | r = \\alpha\n}}\n{{end-eqn}}\nA '''ring''' {{iff}}"
    assert one_line(text, WIKI) == "x = α A ring if and only if"
    start = text.index("ring")
    parts = piece(text, [(start, start + 4)], 60, WIKI)
    assert "".join(words for words, _look in parts).strip() == "x = α A ring if and only if"
    assert [words for words, look in parts if look == "rows--match"] == ["ring"]


def test_the_piece_of_a_long_text_has_what_matches_in_it() -> None:
    text = "'''a''' [[b|c]] {{iff}}\n" * 400 + "the '''needle''' here"
    start = text.index("needle")
    parts = piece(text, [(start, start + 6)], 50, WIKI)
    assert [words for words, look in parts if look == "rows--match"] == ["needle"]
    assert "'''" not in "".join(words for words, _look in parts)
