"""Widgets escape texts of others, and texts are shown with or without markup."""

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
from searchapp.tui.search.hits import piece
from tests.test_visible import HOSTILE

MARKUP = "[/] [bold]x[/bold] [@click=app.quit]y[/]"


def is_harmless(content: Content) -> bool:
    return visible(content.plain) == content.plain


def test_content_is_escaped_by_every_constructor() -> None:
    contents = [
        Content(HOSTILE),
        Content.styled(HOSTILE, "bold"),
        Content.assemble(HOSTILE, (HOSTILE, "bold"), Content(HOSTILE)),
        Content(HOSTILE).join([HOSTILE, Content(HOSTILE)]),
        Content(HOSTILE).stylize("bold", 1, 4),
    ]
    assert all(map(is_harmless, contents))


def test_emoji_stay_whole() -> None:
    text = "a 👩\u200d🔬 ❤\ufe0f"
    assert Content(text).plain == one_line(text, AS_WRITTEN) == text
    assert (fitted(text, 4), fitted(text, 5)) == ("a  …", "a 👩\u200d🔬…")


def test_styles_stay_on_their_words() -> None:
    content = Content.assemble("\u200b\x1b", ("word", "bold"), "\u202e")
    (span,) = content.spans
    assert content.plain[span.start : span.end] == "word"


def test_lines_of_lists_are_escaped_and_cut() -> None:
    assert one_line(HOSTILE, AS_WRITTEN) == visible_line(" ".join(HOSTILE.split()))
    assert len(fitted("\u202e" * 40, 20)) == 20


class HostileRows(RowList):
    def parts(self, index: int, width: int) -> list[tuple[str, str]]:
        return [(HOSTILE, "rows--text"), (MARKUP, "rows--faint")]

    second_line = parts


class HostileApp(App[None]):
    """All widgets of the screens, with hostile text in each field."""

    def compose(self) -> ComposeResult:
        yield Plain(HOSTILE + MARKUP)
        yield TextPane(id="document")
        yield HostileRows(id="rows")
        yield KeyLine([KeyEntry("a", "a", HOSTILE), KeyEntry("b", "b", MARKUP)], 2, id="keys")
        yield TextLine(lambda _words: None, text=HOSTILE, hint=HOSTILE, id="line")

    def on_mount(self) -> None:
        self.query_one(TextPane).show(Content(HOSTILE + MARKUP))
        self.query_one(HostileRows).show(3, 0)
        self.query_one(HostileRows).set_row_height(2)
        for widget in self.query("*"):
            entitle(widget, HOSTILE + MARKUP)


async def draw_text() -> str:
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


def test_every_widget_escapes_hostile_text() -> None:
    text = asyncio.run(draw_text())
    assert "\u202e" not in text
    assert visible_line(text) == text
    assert "[bold]x[/bold]" in text


async def draw_keys(entries: list[KeyEntry]) -> str:
    class Keys(App[None]):
        def compose(self) -> ComposeResult:
            yield KeyLine(entries, 2, id="keys")

    app = Keys()
    async with app.run_test(size=(100, 5)) as pilot:
        await pilot.pause()
        return "".join(segment.text for strip in app.screen._compositor.render_strips() for segment in strip)


def test_all_keys_are_visible_beside_long_names_of_grades() -> None:
    entries = [KeyEntry(str(grade), str(grade), f"{grade}th grade " + "of all " * 40) for grade in range(3)]
    text = asyncio.run(draw_keys([*entries, KeyEntry("note", "n", "note")]))
    assert all(
        f" {key} {word}" in text for key, word in zip("012n", ("0th", "1th", "2th", "note"), strict=True)
    )


def test_a_text_set_during_layout_gets_its_own_height() -> None:
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
    """Return a text with its formulas as Unicode and the moved ranges of characters."""
    readable_text = with_formulas(text)
    return readable_text.text, readable_text.moved(spans)


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"$x \le y$", "x ≤ y"),
        (r"$x_{n+1}^2$", "xₙ₊₁²"),
        (r"$x^{2 m}$", "x^(2 m)"),
        (r"$\frac {a + b} c$", "(a + b)/c"),
        (r"$\dfrac{1}{2}$", "1/2"),
        (r"$\norm{\,\cdot\,}$", "‖ · ‖"),
        (r"$\norm {\mathbf x}^2 \le \norm y$", "‖𝐱‖² ≤ ‖y‖"),
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
def test_text_that_is_not_a_formula_stays(text: str) -> None:
    assert unicode_maths(text) == (text, [])


@pytest.mark.parametrize(
    "formula", ["$x_{$", r"$\frac$", "$}{$", r"$\left($", r"$\begin{x}$", "$^$", "$_{}^{}$"]
)
def test_broken_formulas_leave_the_other_text(formula: str) -> None:
    assert unicode_maths(f"a {formula} b")[0].startswith("a ")


def test_ranges_move_with_their_text() -> None:
    text = r"Let $x \le y$ hold, $\alpha$ too."
    spans = [(0, 3), (7, 10), (14, 18)]
    shown, moved = unicode_maths(text, spans)
    assert [shown[start:end] for start, end in sorted(moved)] == ["Let", "x ≤ y", "hold"]


@given(
    st.text(r"ab $\{}^_%&é" + "\n", max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)))
)
def test_ranges_stay_within_the_text(text: str, ranges: list[tuple[int, int]]) -> None:
    spans = [
        (min(bounds), max(bounds))
        for bounds in ranges
        if max(bounds) <= len(text) and min(bounds) < max(bounds)
    ]
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


def test_dollar_signs_in_plain_texts_are_not_formulas() -> None:
    text = "It costs $5 million, not $10 million."
    assert readable(text, (), Notation(Markup.plain)).text == text


@pytest.mark.parametrize(("markup", "forms"), [(Markup.wiki, 3), (Markup.latex, 3), (Markup.plain, 2)])
def test_next_cycles_through_all_forms(markup: Markup, forms: int) -> None:
    notations = [Notation(markup)]
    while notations[-1].next != notations[0]:
        notations.append(notations[-1].next)
    assert len(notations) == forms == len({notation.about for notation in notations})
    assert notations[1].form is Form.stored, "the raw text is one key away"
    assert Notation(markup, Form.written).next in notations


def test_matches_and_emphasis_stay_on_their_words() -> None:
    text = f"\x1b{TEXT}"
    start = text.index("set]]")
    readable_text = readable(text.replace("== A ==", "A"), [(start - 6, start - 3)], WIKI)
    assert [readable_text.text[a:b] for a, b in readable_text.spans] == ["set"]
    looks = {(style.name, readable_text.text[style.start : style.end]) for style in readable_text.styles}
    assert looks == {("bold", "Let"), ("link", "a set")}
    content = readable_text.content("reverse")
    assert {content.plain[span.start : span.end] for span in content.spans if span.style == "reverse"} == {
        "set"
    }


@given(TEXTS, st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=4))
def test_any_text_is_shown_harmlessly(text: str, spans: list[tuple[int, int]]) -> None:
    for form in Form:
        notation = Notation(Markup.wiki, form)
        readable_text = readable(text, [(min(bounds), max(bounds)) for bounds in spans], notation)
        assert visible(readable_text.text) == readable_text.text
        assert all(
            0 <= start < end <= len(readable_text.text) for start, end in readable_text.spans if start < end
        )
        assert readable_text.content("reverse").plain == readable_text.text
        assert all(word not in one_line(text, notation) for word in ("\x1b", "\u202e", "\u200b", "\n"))


@given(TEXTS)
def test_the_stored_form_keeps_all_white_space(text: str) -> None:
    assert readable(text, (), Notation(Markup.wiki, Form.stored)).text == visible(text)


def test_a_very_long_text_is_shown_with_its_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notation_module, "LONGEST", 20)
    text = "'''a''' " * 3
    assert readable(text, [(8, 11)], WIKI).text == text.rstrip()
    assert readable(text[:16], (), WIKI).text == "a a"


def test_lines_of_lists_have_no_markup() -> None:
    text = "{{begin-eqn}}\n{{eqn | l = x\n | r = \\alpha\n}}\n{{end-eqn}}\nA '''ring''' {{iff}}"
    assert one_line(text, WIKI) == "x = α A ring if and only if"
    start = text.index("ring")
    parts = piece(text, [(start, start + 4)], 60, WIKI)
    assert "".join(text for text, _look in parts).strip() == "x = α A ring if and only if"
    assert [text for text, look in parts if look == "rows--match"] == ["ring"]


def test_the_excerpt_of_a_long_text_contains_the_match() -> None:
    text = "'''a''' [[b|c]] {{iff}}\n" * 400 + "the '''needle''' here"
    start = text.index("needle")
    parts = piece(text, [(start, start + 6)], 50, WIKI)
    assert [text for text, look in parts if look == "rows--match"] == ["needle"]
    assert "'''" not in "".join(text for text, _look in parts)
