"""Panes: their widths, one of them alone, the lists hidden; on the judging and the adjudicating screen."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.judging import WorkScreen
from tests.tui.conftest import Judging, drive, settled

P = Pilot[None]


def seen(screen: WorkScreen, *names: str) -> list[str]:
    return [name for name in names or ("topics", "ranking", "topic", "document") if area(screen, name)]


def area(screen: WorkScreen, name: str) -> int:
    return screen.query_one(f"#{name}").region.area


@pytest.mark.parametrize("size", [(160, 45), (80, 24)], ids=["160x45", "80x24"])
def test_a_pane_is_alone_and_the_focus_takes_the_place_along(judging: Judging, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        before, full = seen(screen), screen.query_one("#body").size
        await pilot.press("z")
        assert seen(screen) == ["ranking"] and screen.query_one("#middle").size.width == full.width
        await pilot.press("tab")
        assert seen(screen) == ["topic"] and screen.query_one("#topic").region.height == full.height
        await pilot.press("tab", "1", "down")  # what is judged is the document that the cursor is on
        assert seen(screen) == ["document"] and len(judging.events()) == 1
        await pilot.press("t", "down", "enter")
        assert seen(screen) == ["ranking"] and screen.place_of_topic == 1
        await pilot.press("f", *"ring")
        assert seen(screen) == ["topics"] and screen.query_one("#filter").has_focus and area(screen, "filter")
        await pilot.press("escape", "z")
        assert seen(screen) == before

    drive(judging.app(), steps, size=size)


def test_the_lists_are_hidden_and_the_keys_move_on_in_them(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("b")
        assert seen(screen) == ["topic", "document"]
        await pilot.press("down", "j", "1", "pagedown", "home")
        assert screen.ranking.cursor == 0 and judging.events()[0].rank == 3
        await pilot.press("tab")
        assert screen.focused is screen.query_one("#topic")
        await pilot.press("b")
        assert seen(screen) == ["topics", "ranking", "topic", "document"] and screen.ranking.has_focus
        await pilot.press("b", "z")
        assert seen(screen) == ["ranking"]

    drive(judging.app(), steps)


def test_the_list_with_the_focus_gets_wider_and_narrower_within_bounds(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        def width(name: str) -> int:
            return screen.query_one(f"#{name}").outer_size.width

        before = width("middle")
        await pilot.press(">")
        assert width("middle") == before + 4
        await pilot.press("<", "<")
        assert width("middle") == before - 4
        await pilot.press(*["<"] * 40)
        assert width("middle") == 24 and area(screen, "document")  # the least that its looks leave it
        await pilot.press(*[">"] * 60)
        assert width("right") >= 18 and area(screen, "document")
        await pilot.press(*["<"] * 20)
        left = width("left")
        await pilot.press("t", ">", "z", "z")
        assert width("left") == left + 4  # also after another pane was alone
        await pilot.press("z", ">")  # a list that is out of sight comes back as it was
        assert width("left") == left + 4 and len(seen(screen)) == 4
        await pilot.press("b", ">")
        assert width("left") == left + 4 and len(seen(screen)) == 4
        await pilot.resize_terminal(100, 30)
        await settled(pilot)
        await pilot.resize_terminal(160, 45)
        await settled(pilot)
        assert (width("left"), width("middle")) == (left, before)  # the looks decide again

    drive(judging.app(), steps)


def test_the_panes_of_the_adjudicating_screen_do_the_same(judging: Judging) -> None:
    names = ("disputes", "opinions", "topic", "document")

    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        alone = []
        await pilot.press("z")
        for _ in names:
            alone += seen(screen, *names)
            await pilot.press("tab")
        assert alone == list(names)
        await pilot.press("z", "b")
        assert seen(screen, *names) == ["opinions", "topic", "document"]
        await pilot.press("1")
        assert screen.disputes.cursor == 1
        before = screen.query_one("#left").outer_size.width
        await pilot.press("b", ">")
        assert seen(screen, *names) == list(names)
        assert screen.query_one("#left").outer_size.width != before

    drive(judging.adjudicating(), steps)
    judging.close()


@pytest.mark.parametrize("size", [(20, 6), (300, 90)])
def test_no_size_breaks_them(judging: Judging, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("z", "tab", ">", "b", "<", "l", "escape", "z", "tab", "tab", "0", "z")
        await pilot.resize_terminal(100, 30)
        await pilot.press(">", "b", "0")
        assert len(judging.events()) == 2

    drive(judging.app(), steps, size=size)
