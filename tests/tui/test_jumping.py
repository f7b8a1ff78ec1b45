"""Jump mode: labels on what is in sight, and typing one goes there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.jump import LETTERS, MOST, Jumping, labels
from searchapp.tui.kit.screen import KeyApp
from searchapp.tui.kit.widgets import KeyLine, TextLine
from tests.tui.conftest import Judging, drive, text_of

P = Pilot[None]


@pytest.mark.parametrize("count", [0, 1, 25, 26, 27, 51, 52, 300, MOST])
def test_no_label_begins_another(count: int) -> None:
    every = labels(count)
    assert len(set(every)) == count
    assert all(len(one) in (1, 2) and set(one) <= set(LETTERS) for one in every)
    singles = {one for one in every if len(one) == 1}
    assert not any(one[0] in singles for one in every if len(one) == 2)
    assert count > len(LETTERS) or len(singles) == count


def label_at(app: KeyApp, is_there: Callable[[int, int], bool]) -> str:
    """The label whose place on the screen is the one."""
    assert isinstance(app.screen, Jumping)
    (found,) = [label for label, one in app.screen._targets.items() if is_there(one.at.x, one.at.y)]
    return found


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
def test_a_label_puts_the_cursor_on_a_line(judging: Judging, size: tuple[int, int]) -> None:
    app = judging.app()

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        for place, key in ((6, "apostrophe"), (12, "ctrl+o")):
            before = text_of(app)
            await pilot.press(key)
            ranking = screen.ranking
            x, y = ranking.content_region.offset
            label = label_at(app, lambda a, b, x=x, y=y, place=place: (a, b) == (x, y + place))  # type: ignore[misc]
            line = text_of(app).splitlines()[y + place]
            assert line[x:].startswith(label) and before.splitlines()[y + place][x:][len(label) :] in line
            await pilot.press(*label)
            assert app.screen is screen and ranking.cursor == place and ranking.has_focus

    drive(app, steps, size)


def test_panes_lines_for_words_and_keys_have_labels(judging: Judging) -> None:
    app = judging.app()

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        document = screen.query_one("#document")
        await pilot.press("apostrophe")
        await pilot.press(*label_at(app, lambda *at: at == document.region.offset))
        assert document.has_focus
        line = screen.query_one("#filter", TextLine)
        await pilot.press("apostrophe")
        await pilot.press(*label_at(app, lambda *at: at == line.region.offset))
        assert line.has_focus
        await pilot.press(*"ring'", "ctrl+o")  # the other key types itself
        assert line.value == "ring'" and isinstance(app.screen, Jumping)
        grades = screen.query_one("#grades", KeyLine)
        await pilot.press(*label_at(app, lambda *at: at == (grades.region.x + 1, grades.region.y)))
        assert [one.grade for one in judging.events()] == [0]

    drive(app, steps)


def test_what_begins_no_label_takes_them_away_and_does_nothing(judging: Judging) -> None:
    app = judging.app()

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        before = text_of(app)
        for keys in (("escape",), ("1",), ("z", "backspace", "escape"), ("f1",)):
            await pilot.press("apostrophe")
            assert text_of(app) != before
            await pilot.press(*keys)
            assert app.screen is screen and text_of(app) == before and not judging.events()
        # Nor do they stay when what they are on is elsewhere.
        await pilot.press("apostrophe")
        await pilot.resize_terminal(90, 30)
        await pilot.pause()
        assert app.screen is screen

    drive(app, steps)
