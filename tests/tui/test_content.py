"""What a widget shows of others' texts is harmless, however it is put together."""

from __future__ import annotations

import asyncio

from textual.app import App, ComposeResult

from searchapp.text import visible, visible_line
from searchapp.tui.kit.content import AS_WRITTEN, Content, Plain, entitle
from searchapp.tui.kit.widgets import KeyEntry, KeyLine, RowList, TextLine, TextPane, fitted, one_line
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
