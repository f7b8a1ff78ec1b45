"""Panes: their widths, one of them alone, the lists hidden; on the judging and the adjudicating screen."""

from __future__ import annotations

from typing import Any

import pytest
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.judging import WorkScreen
from tests.tui.conftest import Judging, drive, press, settled, text_of

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
        assert seen(screen) == ["ranking"] and screen.topic_index == 1
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


def test_opening_a_screen_styles_its_panes_once(judging: Judging, monkeypatch: pytest.MonkeyPatch) -> None:
    update = Stylesheet.update_nodes
    styled: list[int] = []

    def give(sheet: Stylesheet, nodes: Any, animate: bool = False) -> None:
        every = list(nodes)
        if isinstance(every[0], JudgeScreen) and len(every) > 1:
            styled.append(len(every))
        update(sheet, every, animate)

    monkeypatch.setattr(Stylesheet, "update_nodes", give)

    async def steps(pilot: Pilot[None], screen: JudgeScreen) -> None:
        await settled(pilot)
        assert not styled

    drive(judging.app(), steps)


def test_another_size_of_the_terminal_is_drawn_with_all_that_comes_of_it(judging: Judging) -> None:
    seen: list[str] = []

    async def wide(pilot: Pilot[None], screen: JudgeScreen) -> None:
        await press(pilot, "f1")
        seen.append(text_of(app))

    async def resized(pilot: Pilot[None], screen: JudgeScreen) -> None:
        await press(pilot, "f1")
        await pilot.resize_terminal(160, 45)
        await settled(pilot)
        seen.append(text_of(app))

    app = judging.app()
    drive(app, wide, (160, 45))
    app = judging.app()
    drive(app, resized, (80, 24))
    assert seen[0] == seen[1]
