"""State as chips in the first line, heads of columns, chips of grades, and sentences in empty lists."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from textual.app import ComposeResult
from textual.pilot import Pilot

from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.panes import RunDocumentRows
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.kit.descriptions import with_chip
from searchapp.tui.kit.keys import KeyMap
from searchapp.tui.kit.screen import Banner, KeyScreen
from searchapp.tui.kit.widgets import RowList, chip
from tests.tui.conftest import JudgingHarness, drive, screen_text

P = Pilot[None]


def head_of(screen: KeyScreen) -> str:
    return str(screen.head.render())


class EmptyScreen(KeyScreen):
    """A screen with a first line and no panes."""

    def __init__(self, title: str) -> None:
        super().__init__(KeyMap([]), Banner(title), {}, ("list",))

    def compose(self) -> ComposeResult:
        yield self.head

    def begin(self) -> None:
        pass


@pytest.mark.parametrize(
    ("cells", "status", "shown"),
    [
        (80, "saved", "the task   blind   shared   embedded   saved"),
        (36, "saved", "the task   blind   shared   saved"),
        (28, "saved", "the task   blind   saved"),
        (28, "saved: 1 relevant document", "the t…  saved: 1 relevant docum"),
        (16, "saved: 1 relevant document", "th…  saved: 1 rel"),
    ],
)
def test_a_narrow_first_line_omits_the_last_chips(cells: int, status: str, shown: str) -> None:
    screen = EmptyScreen("the task")

    async def steps(pilot: P, screen: EmptyScreen) -> None:
        screen.head.show_chips(chip("blind"), chip("shared"), chip("embedded"))
        screen.head.tell(status)
        await pilot.pause()
        assert head_of(screen).startswith(shown)
        await pilot.resize_terminal(200, 24)
        assert " embedded " in head_of(screen)

    drive(KeyApp(screen, "dark"), steps, (cells, 24))


def test_blind_judging_is_shown_all_the_time(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert " blind " in head_of(screen) and "hidden" in head_of(screen)
        await pilot.press("1", "0")
        assert " blind " in head_of(screen) and "saved" in head_of(screen)

    drive(judging.app(seed=1), steps)


def column(rows: RowList, head: str) -> int:
    return "".join(rows.head(rows.scrollable_content_region.width)).index(head)


@pytest.mark.parametrize(("size", "has_heads"), [((160, 45), True), ((120, 24), True), ((80, 24), False)])
def test_heads_are_above_their_columns_where_lists_are_long(
    judging: JudgingHarness, size: tuple[int, int], has_heads: bool
) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1")
        rows = screen.ranking
        lines = [line[rows.region.x : rows.region.right] for line in screen_text(pilot).splitlines()]
        top = rows.region.y + 1
        assert ("document" in lines[top]) == has_heads
        width = rows.scrollable_content_region.width
        assert sum(map(len, rows.head(width)[:-1])) == sum(
            len(text) for text, _look in rows.parts(0, width)[:-1]
        )
        if has_heads:
            assert lines[top].rstrip() == "".join(rows.head(width)).rstrip()
            assert lines[top + 1][column(rows, "me") + 1] == "1"
            assert lines[top + 1][column(rows, "#")] == "1"
            await pilot.click("#ranking", offset=(5, 1))  # on the heads
            assert rows.cursor == 1
            await pilot.click("#ranking", offset=(5, 2))
            assert rows.cursor == 0

    drive(judging.app(), steps, size)


def test_every_grade_is_a_chip_with_its_digit(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "0")
        rows = screen.ranking
        assert chips(rows) == ["1", "0"]
        await pilot.press("l")
        assert sorted(chips(screen.app.screen.query_one("#judged", RowList))) == [" 0", " 1"]

    drive(judging.app(), steps)
    labels = ("no", "partly", "yes")
    shown = [with_chip(f"{grade} {label}", grade, labels) for grade, label in enumerate(labels)]
    assert [content.plain for content in shown] == ["0 no", "1 partly", "2 yes"]
    assert len({str(content.spans[0].style) for content in shown}) == len(labels)
    assert all("reverse" in str(content.spans[0].style) and content.spans[0].end == 1 for content in shown)


def chips(rows: RowList) -> Sequence[str]:
    width = rows.scrollable_content_region.width
    return [
        text
        for index in rows.visible_rows
        for text, look in rows.parts(index, width)
        if look and rows.get_component_rich_style(look, partial=True).reverse
    ]


def test_decisions_and_opinions_have_chips(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        await pilot.press("1")
        assert chips(screen.disputes) == ["1"]
        screen.filtered("zzz")
        await pilot.pause()
        assert "No disagreement has these" in screen_text(pilot)

    drive(judging.adjudicating(), steps)


def test_a_list_of_documents_has_no_reversed_blanks(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "s", "x")
        assert isinstance(screen.ranking, RunDocumentRows)
        assert all(text.strip() for text in chips(screen.ranking))

    drive(judging.app(), steps)
