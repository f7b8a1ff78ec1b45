"""Messages and states in the first line of every screen: how long they stay, and what replaces them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from textual.pilot import Pilot

from scripts.at_rest import wait_for_rest
from scripts.pictures import SPLITS, SampleScreens
from searchapp.errors import DataError
from searchapp.judging.log import JudgmentLog
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.kit.judging import GradingScreen, WorkScreen
from searchapp.tui.kit.screen import KeyScreen
from searchapp.tui.kit.widgets import TextLine
from tests.tui.conftest import SampleRuns, drive, fail_to_save, screen_text

P = Pilot[None]
Open = Callable[[SampleScreens], KeyApp]

SCREENS: dict[str, Open] = {
    "search": SampleScreens.search,
    "topics": SampleScreens.topics,
    "compare": SampleScreens.compare,
    "judge": SampleScreens.judge,
    "adjudicate": SampleScreens.adjudicate,
    "home": SampleScreens.home,
    "settings": SampleScreens.settings,
}
grading_screens = pytest.mark.parametrize(
    ("open_screen", "keys"),
    [
        (SampleScreens.search, ("escape", "t", "down", "enter", "down")),
        (SampleScreens.topics, ("J",)),
        (SampleScreens.compare, ("J",)),
        (SampleScreens.judge, ()),
        (SampleScreens.adjudicate, ()),
    ],
    ids=list(SCREENS)[:5],
)


@pytest.fixture
def screens(samples: SampleRuns, tmp_path: Path) -> closing[SampleScreens]:
    runs = {task: samples.run(task) for task in SPLITS}
    return closing(SampleScreens(samples.home, runs, tmp_path))


@pytest.mark.parametrize("open_screen", SCREENS.values(), ids=SCREENS)
def test_messages_end_with_the_next_action_and_states_with_their_condition(
    screens: closing[SampleScreens], open_screen: Open
) -> None:
    async def steps(pilot: P, screen: KeyScreen) -> None:
        await leave_line(pilot)

        # An error that comes without an action.
        screen.tell_error(DataError("the disk is full"))
        await wait_for_rest(pilot)
        await pilot.resize_terminal(150, 30)
        assert "the disk is full" in first_line(pilot)
        await act(pilot)
        assert "the disk is full" not in first_line(pilot)

        # An answer after a newer message.
        screen.head.wait("writing the file …")
        await pilot.pause()
        assert "writing the file …" in first_line(pilot)
        await pilot.press("f12")
        screen.head.tell("wrote the file", "$success")
        await pilot.pause()
        line = first_line(pilot)
        assert "f12 does nothing here" in line and "wrote the file" in line and "writing" not in line
        assert not screen.head.is_waiting
        await pilot.press("f11")
        line = first_line(pilot)
        assert "f11 does nothing here" in line and "f12" not in line and "wrote" not in line
        await pilot.press("f11")  # the same message again
        assert "f11 does nothing here" in first_line(pilot)

        # A state beside messages.
        is_broken = True
        screen.head.show_state("no server answers", "$error", holds=lambda: is_broken)
        await pilot.press("f12")
        line = first_line(pilot)
        assert line.index("f12 does nothing") < line.index("no server answers")
        await act(pilot)
        assert "f12" not in first_line(pilot) and "no server answers" in first_line(pilot)
        is_broken = False
        await act(pilot)
        assert "no server answers" not in first_line(pilot)

    with screens as opened:
        drive(open_screen(opened), steps)


def test_typing_and_the_mouse_end_a_message_but_not_selecting_it(screens: closing[SampleScreens]) -> None:
    async def steps(pilot: P, screen: KeyScreen) -> None:
        for act in (lambda: pilot.press("g"), lambda: pilot.click("#hits", (5, 3))):
            screen.tell_error(DataError("the disk is full"))
            await pilot.click("#head")
            assert "the disk is full" in first_line(pilot)
            await act()
            await wait_for_rest(pilot)
            assert "the disk is full" not in first_line(pilot)

    with screens as opened:
        drive(SampleScreens.search(opened), steps)


@grading_screens
def test_unsaved_grades_stay_visible_until_they_are_saved(
    screens: closing[SampleScreens], open_screen: Open, keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def steps(pilot: P, screen: GradingScreen) -> None:
        for key in keys:
            await pilot.press(key)
            await wait_for_rest(pilot)
        with monkeypatch.context() as patch:
            patch.setattr(JudgmentLog, "append", fail_to_save)
            await pilot.press("1", "down", "up")
            assert "1 judgment NOT SAVED, retrying: the disk is full" in first_line(pilot)
        assert screen.head.session is not None and screen.head.session.waiting
        control = screen.control if isinstance(screen, WorkScreen) else screen.judging  # type: ignore[attr-defined]
        control.refresh()
        await pilot.pause()
        assert "NOT SAVED" not in first_line(pilot) and "saved  all waiting judgments" in first_line(pilot)
        await pilot.press("down")
        assert "saved" not in first_line(pilot)

    with screens as opened:
        drive(open_screen(opened), steps)


async def leave_line(pilot: P) -> None:
    """Wait until the screen is complete, and leave the line of the query and the message of the start."""
    await wait_for_rest(pilot)
    if isinstance(pilot.app.screen.focused, TextLine):
        await pilot.press("escape")
    await wait_for_rest(pilot)
    await act(pilot)


async def act(pilot: P) -> None:
    """Press keys that do something and change nothing."""
    await pilot.press("question_mark", "escape")


def first_line(pilot: P) -> str:
    return screen_text(pilot).split("\n")[0]
