"""How often screens are drawn, and their panes given their looks."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot
from textual.screen import Screen

from scripts.at_rest import still
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.dialogs import Choose
from searchapp.tui.kit.widgets import OrderedScreen
from tests.tui.conftest import Judging, drive, press, settled, text_of, until


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done, in its order: a `turn` of a screen's timer, `drawn`, `looks` where all panes are given theirs."""
    done: list[str] = []
    refresh, update, turn = (
        Screen._compositor_refresh,
        Stylesheet.update_nodes,
        OrderedScreen._on_timer_update,
    )

    def take_turn(screen: OrderedScreen[Any]) -> None:
        done.append("turn")
        turn(screen)

    def draw(screen: Screen[Any]) -> None:
        if screen is screen.app.screen:
            done.append("drawn")
        refresh(screen)

    def give(sheet: Stylesheet, nodes: Any, animate: bool = False) -> None:
        every = list(nodes)
        if isinstance(every[0], JudgeScreen) and len(every) > 1:
            done.append("looks")
        update(sheet, every, animate)

    monkeypatch.setattr(Screen, "_compositor_refresh", draw)
    monkeypatch.setattr(Stylesheet, "update_nodes", give)
    monkeypatch.setattr(OrderedScreen, "_on_timer_update", take_turn)
    return done


def require_turns(draws: list[str]) -> None:
    """That what was drawn was drawn once in a turn, and something was."""
    assert {before for before, after in pairwise(["begin", *draws]) if after == "drawn"} == {"turn"}


def test_a_screen_is_drawn_once_it_is_laid_out_and_what_waits_for_that_comes_after_it(
    judging: Judging, draws: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = JudgeScreen.begun

    def begun(screen: JudgeScreen) -> None:
        begin(screen)
        draws.append("begun")
        screen.call_after_refresh(draws.append, "after")

    monkeypatch.setattr(JudgeScreen, "begun", begun)

    async def steps(pilot: Pilot[None], screen: JudgeScreen) -> None:
        await settled(pilot)
        require_turns(draws)
        assert draws.index("begun") < draws.index("drawn") < draws.index("after")
        assert "looks" not in draws

    drive(judging.app(), steps)


def test_another_size_of_the_terminal_is_drawn_with_all_that_comes_of_it(
    judging: Judging, draws: list[str]
) -> None:
    seen: list[str] = []

    async def wide(pilot: Pilot[None], screen: JudgeScreen) -> None:
        await press(pilot, "f1")
        seen.append(text_of(app))

    async def resized(pilot: Pilot[None], screen: JudgeScreen) -> None:
        await press(pilot, "f1")
        del draws[:]
        await pilot.resize_terminal(160, 45)
        await settled(pilot)
        require_turns(draws)
        seen.append(text_of(app))

    app = judging.app()
    drive(app, wide, (160, 45))
    app = judging.app()
    drive(app, resized, (80, 24))
    assert seen[0] == seen[1]


def test_what_is_put_off_when_a_batch_begins_is_drawn_after_it(judging: Judging, draws: list[str]) -> None:
    async def steps(pilot: Pilot[None], screen: JudgeScreen) -> None:
        await still(pilot)
        del draws[:]
        with app.batch_update():
            screen._compositor_refresh()
            while "turn" not in draws:
                await asyncio.sleep(0.01)
            assert "drawn" not in draws
        for _look in range(200):  # without a message to the screen, which would have it look
            if "drawn" in draws:
                break
            await asyncio.sleep(0.01)
        require_turns(draws)

    app = judging.app()
    drive(app, steps)


def test_what_is_put_off_below_a_dialog_and_what_comes_after_it_is_done(judging: Judging) -> None:
    async def steps(pilot: Pilot[None], screen: JudgeScreen) -> None:
        await still(pilot)
        done: list[str] = []
        screen.call_after_refresh(done.append, "with the dialog")
        screen.ranking.refresh(layout=True)
        app.push_screen(Choose("Is it covered?", []))
        await until(pilot, lambda: done)
        app.screen.refresh(layout=True)
        app.screen.dismiss(None)
        screen.call_after_refresh(done.append, "without it")
        screen.refresh(layout=True)
        app.push_screen(Choose("Again?", []))
        app.screen.dismiss(None)
        await until(pilot, lambda: done[1:])
        await still(pilot)
        assert screen.is_drawn and not screen._callbacks and app.screen is screen

    app = judging.app()
    drive(app, steps)
