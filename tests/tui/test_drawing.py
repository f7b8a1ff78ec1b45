"""Screens are styled once when they open, and drawn as a whole after another size of the terminal."""

from __future__ import annotations

from typing import Any

import pytest
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from searchapp.tui.judge.screen import JudgeScreen
from tests.tui.conftest import Judging, drive, press, settled, text_of


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
