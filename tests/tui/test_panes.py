"""Panes of the judging and adjudication screens are resized, zoomed and hidden."""

from __future__ import annotations

from typing import Any

import pytest
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.judging import WorkScreen
from tests.tui.conftest import JudgingHarness, drive, press, screen_text, wait_until_idle

P = Pilot[None]


def visible_panes(screen: WorkScreen, *pane_names: str) -> list[str]:
    return [name for name in pane_names or ("topics", "ranking", "topic", "document") if area(screen, name)]


def area(screen: WorkScreen, name: str) -> int:
    return screen.query_one(f"#{name}").region.area


@pytest.mark.parametrize("size", [(160, 45), (80, 24)], ids=["160x45", "80x24"])
def test_the_zoomed_pane_follows_the_focus(judging: JudgingHarness, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        before, full = visible_panes(screen), screen.query_one("#body").size
        await pilot.press("z")
        assert visible_panes(screen) == ["ranking"] and screen.query_one("#middle").size.width == full.width
        await pilot.press("tab")
        assert visible_panes(screen) == ["topic"] and screen.query_one("#topic").region.height == full.height
        await pilot.press("tab", "1", "down")  # grades the document under the cursor
        assert visible_panes(screen) == ["document"] and len(judging.events()) == 1
        await pilot.press("t", "down", "enter")
        assert visible_panes(screen) == ["ranking"] and screen.topic_index == 1
        await pilot.press("f", *"ring")
        assert (
            visible_panes(screen) == ["topics"]
            and screen.query_one("#filter").has_focus
            and area(screen, "filter")
        )
        assert "one pane: z shows all" in screen_text(pilot)
        await pilot.press("escape", "z")
        assert visible_panes(screen) == before and "shows all" not in screen_text(pilot)

    drive(judging.app(), steps, size=size)


def test_keys_move_in_hidden_lists(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("b")
        assert visible_panes(screen) == ["topic", "document"]
        assert "no lists: b shows all" in screen_text(pilot)
        await pilot.press("down", "j", "1", "pagedown", "home")
        assert screen.ranking.cursor == 0 and judging.events()[0].rank == 3
        await pilot.press("tab")
        assert screen.focused is screen.query_one("#topic")
        await pilot.press("b")
        assert visible_panes(screen) == ["topics", "ranking", "topic", "document"]
        assert screen.ranking.has_focus
        await pilot.press("b", "z")
        assert visible_panes(screen) == ["ranking"]

    drive(judging.app(), steps)


def test_the_focused_list_is_resized_within_bounds(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        def width(name: str) -> int:
            return screen.query_one(f"#{name}").outer_size.width

        before = width("middle")
        await pilot.press(">")
        assert width("middle") == before + 4
        await pilot.press("<", "<")
        assert width("middle") == before - 4
        await pilot.press(*["<"] * 40)
        assert width("middle") == 24 and area(screen, "document")  # the minimum of the style sheet
        await pilot.press(*[">"] * 60)
        assert width("right") >= 18 and area(screen, "document")
        await pilot.press(*["<"] * 20)
        left = width("left")
        await pilot.press("t", ">", "z", "z")
        assert width("left") == left + 4  # also after another pane was zoomed
        await pilot.press("z", ">")  # a hidden list is shown with its earlier width
        assert width("left") == left + 4 and len(visible_panes(screen)) == 4
        await pilot.press("b", ">")
        assert width("left") == left + 4 and len(visible_panes(screen)) == 4
        await pilot.resize_terminal(100, 30)
        await wait_until_idle(pilot)
        await pilot.resize_terminal(160, 45)
        await wait_until_idle(pilot)
        # A change of size restores the widths of the style sheet.
        assert (width("left"), width("middle")) == (left, before)

    drive(judging.app(), steps)


def test_panes_of_the_adjudication_screen_are_zoomed_hidden_and_resized(judging: JudgingHarness) -> None:
    pane_names = ("disputes", "opinions", "topic", "document")

    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        zoomed = []
        await pilot.press("z")
        for _ in pane_names:
            zoomed += visible_panes(screen, *pane_names)
            await pilot.press("tab")
        assert zoomed == list(pane_names)
        await pilot.press("z", "b")
        assert visible_panes(screen, *pane_names) == ["opinions", "topic", "document"]
        await pilot.press("1")
        assert screen.disputes.cursor == 1
        before = screen.query_one("#left").outer_size.width
        await pilot.press("b", ">")
        assert visible_panes(screen, *pane_names) == list(pane_names)
        assert screen.query_one("#left").outer_size.width != before

    drive(judging.adjudicating(), steps)
    judging.close()


@pytest.mark.parametrize("size", [(20, 6), (300, 90)])
def test_panes_work_in_any_size(judging: JudgingHarness, size: tuple[int, int]) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("z", "tab", ">", "b", "<", "l", "escape", "z", "tab", "tab", "0", "z")
        await pilot.resize_terminal(100, 30)
        await pilot.press(">", "b", "0")
        assert len(judging.events()) == 2

    drive(judging.app(), steps, size=size)


def test_opening_a_screen_styles_its_panes_once(
    judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = Stylesheet.update_nodes
    styled: list[int] = []

    def record_styling(sheet: Stylesheet, nodes: Any, animate: bool = False) -> None:
        all_nodes = list(nodes)
        if isinstance(all_nodes[0], JudgeScreen) and len(all_nodes) > 1:
            styled.append(len(all_nodes))
        update(sheet, all_nodes, animate)

    monkeypatch.setattr(Stylesheet, "update_nodes", record_styling)

    async def steps(pilot: Pilot[None], screen: JudgeScreen) -> None:
        await wait_until_idle(pilot)
        assert not styled

    drive(judging.app(), steps)


def test_a_resized_terminal_shows_what_a_new_one_does(judging: JudgingHarness) -> None:
    texts: list[str] = []

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await press(pilot, "f1")
        if app.size.width != 160:
            await pilot.resize_terminal(160, 45)
            await wait_until_idle(pilot)
        texts.append(screen_text(pilot))

    for size in ((160, 45), (80, 24)):
        app = judging.app()
        drive(app, steps, size)
    assert texts[0] == texts[1]
