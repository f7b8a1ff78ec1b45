"""Jump mode labels visible lines and keys, and a typed label goes there."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.kit.jump import LETTERS, MOST, Jumping, labels
from searchapp.tui.kit.widgets import KeyLine, TextLine
from tests.tui.conftest import JudgingHarness, drive, screen_text

P = Pilot[None]


@pytest.mark.parametrize("count", [0, 1, 25, 26, 27, 51, 52, 300, MOST])
def test_no_label_begins_another(count: int) -> None:
    all_labels = labels(count)
    assert len(set(all_labels)) == count
    assert all(len(label) in (1, 2) and set(label) <= set(LETTERS) for label in all_labels)
    singles = {label for label in all_labels if len(label) == 1}
    assert not any(label[0] in singles for label in all_labels if len(label) == 2)
    assert count > len(LETTERS) or len(singles) == count


def label_at(app: KeyApp, position: tuple[int, int]) -> str:
    """Return the label at a column and line of the screen."""
    assert isinstance(app.screen, Jumping)
    (label,) = [label for label, target in app.screen._targets.items() if target.at == position]
    return label


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
def test_a_label_puts_the_cursor_on_a_line(judging: JudgingHarness, size: tuple[int, int]) -> None:
    app = judging.app()

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        for position, key in ((2, "apostrophe"), (4, "ctrl+o")):
            before = screen_text(pilot)
            await pilot.press(key)
            ranking = screen.ranking
            x, y = ranking.content_region.offset
            label = label_at(app, (x, y + position))
            line = screen_text(pilot).splitlines()[y + position]
            assert line[x:].startswith(label) and before.splitlines()[y + position][x:][len(label) :] in line
            await pilot.press(*label)
            assert app.screen is screen and ranking.cursor == position and ranking.has_focus

    drive(app, steps, size)


def test_panes_input_lines_and_keys_have_labels(judging: JudgingHarness) -> None:
    app = judging.app()

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        document = screen.query_one("#document")
        await pilot.press("apostrophe")
        await pilot.press(*label_at(app, document.region.offset))
        assert document.has_focus
        line = screen.query_one("#filter", TextLine)
        await pilot.press("apostrophe")
        await pilot.press(*label_at(app, line.region.offset))
        assert line.has_focus
        await pilot.press(*"ring'", "ctrl+o")  # in an input line an apostrophe is text
        assert line.value == "ring'" and isinstance(app.screen, Jumping)
        grades = screen.query_one("#grades", KeyLine)
        await pilot.press(*label_at(app, (grades.region.x + 2, grades.region.y)))
        assert [event.grade for event in judging.events()] == [0]

    drive(app, steps)


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
def test_labels_leave_the_keys_of_the_footer_readable(judging: JudgingHarness, size: tuple[int, int]) -> None:
    app = judging.app()

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        footers = [screen.query_one(name, KeyLine) for name in ("#grades", "#keys")]
        await pilot.press("apostrophe")
        lines = screen_text(pilot).splitlines()
        for footer in footers:
            left, top = footer.content_region.offset
            for x, y, entry in footer.positions():
                shown = lines[top + y][left + x + 1 :]
                label = label_at(app, (left + x + 1 + len(entry.key), top + y))
                rest = f" {entry.shown}"[len(label) :]
                assert shown.startswith(f"{entry.key}{label}{rest}")

    drive(app, steps, size)


def test_other_keys_remove_the_labels_and_have_no_effect(judging: JudgingHarness) -> None:
    app = judging.app()

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        before = screen_text(pilot)
        for keys in (("escape",), ("1",), ("z", "backspace", "escape"), ("f1",)):
            await pilot.press("apostrophe")
            assert screen_text(pilot) != before
            await pilot.press(*keys)
            assert app.screen is screen and screen_text(pilot) == before and not judging.events()
        # A change of size moves their targets and removes them too.
        await pilot.press("apostrophe")
        await pilot.resize_terminal(90, 30)
        await pilot.pause()
        assert app.screen is screen

    drive(app, steps)
