"""What a widget shows of others' texts is harmless, however it is put together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from searchapp.model import Markup
from searchapp.text import Span, visible, visible_line
from searchapp.tui.kit import content as notation_module
from searchapp.tui.kit.content import (
    AS_WRITTEN,
    Content,
    Form,
    Notation,
    Plain,
    entitle,
    readable,
    with_formulas,
)
from searchapp.tui.kit.widgets import KeyEntry, KeyLine, RowList, TextLine, TextPane, fitted, one_line
from searchapp.tui.search.panes import piece
from tests.test_visible import HOSTILE

MARKUP = "[/] [bold]x[/bold] [@click=app.quit]y[/]"


def harmless(content: Content) -> bool:
    return visible(content.plain) == content.plain


def test_content_is_harmless_whatever_it_is_made_of() -> None:
    made = [
        Content(HOSTILE),
        Content.styled(HOSTILE, "bold"),
        Content.assemble(HOSTILE, (HOSTILE, "bold"), Content(HOSTILE)),
        Content(HOSTILE).join([HOSTILE, Content(HOSTILE)]),
        Content(HOSTILE).stylize("bold", 1, 4),
    ]
    assert all(map(harmless, made))


def test_styles_stay_on_their_words() -> None:
    content = Content.assemble("\u200b\x1b", ("word", "bold"), "\u202e")
    (span,) = content.spans
    assert content.plain[span.start : span.end] == "word"


def test_lines_of_lists_are_harmless_and_fit() -> None:
    assert one_line(HOSTILE, AS_WRITTEN) == visible_line(" ".join(HOSTILE.split()))
    assert len(fitted("\u202e" * 40, 20)) == 20


class HostileRows(RowList):
    def parts(self, place: int, width: int) -> list[tuple[str, str]]:
        return [(HOSTILE, "rows--text"), (MARKUP, "rows--faint")]


class HostileApp(App[None]):
    """Every widget of the screens, with hostile text in each of its fields."""

    def compose(self) -> ComposeResult:
        yield Plain(HOSTILE + MARKUP)
        yield TextPane(id="document")
        yield HostileRows(id="rows")
        yield KeyLine([KeyEntry("a", "a", HOSTILE), KeyEntry("b", "b", MARKUP)], 2, id="keys")
        yield TextLine(lambda _words: None, text=HOSTILE, hint=HOSTILE, id="line")

    def on_mount(self) -> None:
        self.query_one(TextPane).show(Content(HOSTILE + MARKUP))
        self.query_one(HostileRows).show(3, 0)
        for widget in self.query("*"):
            entitle(widget, HOSTILE + MARKUP)


async def drawn() -> str:
    app = HostileApp()
    async with app.run_test(size=(200, 40)) as pilot:
        line = app.query_one(TextLine)
        line.focus()
        line.insert_text_at_cursor(HOSTILE)
        line.replace(HOSTILE, 0, 3)
        app.query_one(Plain).update(HOSTILE + MARKUP)
        await pilot.pause()
        strips = app.screen._compositor.render_strips()
        return "".join(segment.text for strip in strips for segment in strip)


def test_every_widget_draws_others_text_harmlessly() -> None:
    text = asyncio.run(drawn())
    assert "\u202e" not in text
    assert visible_line(text) == text
    assert "[bold]x[/bold]" in text


async def keys_drawn(entries: list[KeyEntry]) -> str:
    class Keys(App[None]):
        def compose(self) -> ComposeResult:
            yield KeyLine(entries, 2, id="keys")

    app = Keys()
    async with app.run_test(size=(100, 5)) as pilot:
        await pilot.pause()
        return "".join(segment.text for strip in app.screen._compositor.render_strips() for segment in strip)


def test_long_names_of_grades_leave_all_keys_in_sight() -> None:
    entries = [KeyEntry(str(grade), str(grade), f"{grade}th grade " + "of all " * 40) for grade in range(3)]
    drawn = asyncio.run(keys_drawn([*entries, KeyEntry("note", "n", "note")]))
    assert all(
        f" {key} {word}" in drawn for key, word in zip("012n", ("0th", "1th", "2th", "note"), strict=True)
    )


def test_a_text_that_comes_while_the_screen_is_measured_has_its_own_height() -> None:
    class Measured(App[None]):
        def compose(self) -> ComposeResult:
            yield Plain("one line", id="text")

    async def run() -> int:
        app = Measured()
        async with app.run_test(size=(20, 10)) as pilot:
            text = app.query_one("#text", Plain)
            text.refresh(layout=True)
            app.screen._refresh_layout()
            text.update("one line\nand another")
            await pilot.pause()
            return text.size.height

    assert asyncio.run(run()) == 2


def unicode_maths(text: str, spans: Sequence[Span] = ()) -> tuple[str, list[Span]]:
    """A text with its formulas as Unicode, and where ranges of its characters are then."""
    found = with_formulas(text)
    return found.text, found.moved(spans)


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"$x \le y$", "x ≤ y"),
        (r"$x_{n+1}^2$", "xₙ₊₁²"),
        (r"$x^{2 m}$", "x^(2 m)"),
        (r"$\frac {a + b} c$", "(a + b)/c"),
        (r"$\dfrac{1}{2}$", "1/2"),
        (r"$\forall x \in \R: \map f x = \set {1, 2}$", "∀ x ∈ ℝ: f(x) = {1, 2}"),
        (r"$\left\{{a, b}\right\}$", "{a, b}"),
        (r"$\struct {R, +, \circ}$", "(R, +, ∘)"),
        (r"$\map \cos {x + y}$", "cos (x + y)"),
        (r"$\displaystyle \sum_{k \mathop = 1}^n k$", "∑_(k = 1)ⁿ k"),
        (r"$f: S \to T$", "f: S → T"),
        (r"\[ \alpha \to \beta \]", "α → β"),
        (r"$\unheardof + 1$", r"\unheardof + 1"),
    ],
)
def test_formulas_read_as_mathematics(latex: str, shown: str) -> None:
    assert unicode_maths(latex)[0] == shown


@pytest.mark.parametrize(
    "text", ["100% sure & more # here", "costs $5", r"C:\temp", "", "a_b^c", r"\$5 and \$6"]
)
def test_what_is_no_formula_stays(text: str) -> None:
    assert unicode_maths(text) == (text, [])


@pytest.mark.parametrize(
    "formula", ["$x_{$", r"$\frac$", "$}{$", r"$\left($", r"$\begin{x}$", "$^$", "$_{}^{}$"]
)
def test_broken_formulas_break_nothing(formula: str) -> None:
    assert unicode_maths(f"a {formula} b")[0].startswith("a ")


def test_ranges_move_with_the_text() -> None:
    text = r"Let $x \le y$ hold, $\alpha$ too."
    spans = [(0, 3), (7, 10), (14, 18)]
    shown, moved = unicode_maths(text, spans)
    assert [shown[start:end] for start, end in sorted(moved)] == ["Let", "x ≤ y", "hold"]


@given(
    st.text(r"ab $\{}^_%&é" + "\n", max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)))
)
def test_ranges_stay_within_the_text(text: str, ranges: list[tuple[int, int]]) -> None:
    spans = [(min(one), max(one)) for one in ranges if max(one) <= len(text) and min(one) < max(one)]
    shown, moved = unicode_maths(text, spans)
    assert all(0 <= start <= end <= len(shown) for start, end in moved)


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
    assert seen[1].form is Form.stored, "the raw text is one key away"
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
