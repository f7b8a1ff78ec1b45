"""A screen above another one looks and works as it does alone, and leaving it shows the one below."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot

from scripts.at_rest import wait_for_rest
from searchapp.config.resolution import resolution
from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import Adjudication, Session
from searchapp.tasks import load
from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.config.screen import ConfigScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit import keys
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.kit.dialogs import Help
from searchapp.tui.kit.palette import Palette
from searchapp.tui.kit.screen import KeyScreen, front
from searchapp.tui.kit.widgets import TextLine
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import JudgingHarness, SampleRuns, drive, fail_to_save, screen_text, wait_until_idle
from tests.tui.search.conftest import SearchHarness, wait_until_answered

P = Pilot[None]

SCREEN_NAMES = ("judge", "search", "adjudicate", "config")


class ScreenFactory:
    """Makes screens of all kinds on the same sample."""

    def __init__(self, judging: JudgingHarness, search_harness: SearchHarness) -> None:
        self._judging = judging
        self._search_harness = search_harness
        judging.adjudicating()  # writes the disagreements to decide

    def app(self, name: str) -> KeyApp:
        """Return an app with this screen alone."""
        return KeyApp(self.screen(name), "dark")

    def screen(self, name: str) -> KeyScreen:
        screen: KeyScreen
        if name == "judge":
            screen = self._judging.app().main
            return screen
        if name == "adjudicate":
            session = Session(self._judging.log, "nlps", Author("kim"), (Action.adjudicate,))
            key_bindings = keys.load(self._judging.home, load("nlps").info.grades).keys
            return AdjudicateScreen(
                Adjudication(session), self._judging.run_pages, key_bindings, "nlps · kim decides"
            )
        if name == "search":
            screen = self._search_harness.app().main
            return screen
        home = self._judging.home
        settings = resolution({}, {"SEARCHAPP_HOME": str(home)}, home)
        return ConfigScreen(settings, self._judging.app().main.keys)


@pytest.fixture
def screens(judging: JudgingHarness, samples: SampleRuns) -> Iterator[ScreenFactory]:
    harness = SearchHarness(samples, judging.home)
    yield ScreenFactory(judging, harness)
    harness.close()


async def take_picture(pilot: P) -> str:
    """Return a picture of the idle screen without names and times that change from picture to picture."""
    screen = front(pilot.app)
    if isinstance(screen, SearchScreen):
        await wait_until_answered(pilot, screen)
    await wait_until_idle(pilot)
    await wait_for_rest(pilot)
    picture = re.sub(r"terminal-\d+", "terminal", pilot.app.export_screenshot())
    return re.sub(r"\d\d:\d\d", "time", picture)


@pytest.mark.parametrize(("below", "size"), [("judge", (80, 24)), ("search", (140, 36))])
def test_a_screen_above_another_one_looks_as_it_does_alone(
    screens: ScreenFactory, below: str, size: tuple[int, int]
) -> None:
    pictures_alone: dict[str, str] = {}
    for name in SCREEN_NAMES:

        async def save_picture(pilot: P, _screen: KeyScreen, name: str = name) -> None:
            pictures_alone[name] = await take_picture(pilot)

        drive(screens.app(name), save_picture, size)

    async def steps(pilot: P, lowest: KeyScreen) -> None:
        for name in SCREEN_NAMES:
            if name == below:
                continue
            await pilot.app.push_screen(screens.screen(name))
            assert await take_picture(pilot) == pictures_alone[name], name
            front(pilot.app).leave()  # type: ignore[union-attr]
            await pilot.pause()
            assert pilot.app.screen is lowest and not pilot.app._exit
            assert await take_picture(pilot) == pictures_alone[below], name

    drive(screens.app(below), steps, size)


def test_keys_apply_to_the_current_screen(screens: ScreenFactory) -> None:
    async def steps(pilot: P, lowest: JudgeScreen) -> None:
        app, before = pilot.app, lowest.ranking.cursor
        for name, kind in (("config", ConfigScreen), ("adjudicate", AdjudicateScreen)):
            await app.push_screen(screens.screen(name))
            assert isinstance(app.screen, kind)
        await pilot.press("q")
        assert front(app).__class__ is ConfigScreen
        await pilot.press("end", "escape")
        assert front(app) is lowest and lowest.ranking.cursor == before
        await pilot.press("down")
        assert lowest.ranking.cursor == before + 1
        await pilot.press("q")
        assert app._exit

    drive(screens.app("judge"), steps)


@pytest.mark.parametrize("name", SCREEN_NAMES)
def test_early_keys_wait_for_the_screen_unless_they_could_save_grades(
    screens: ScreenFactory, name: str
) -> None:
    class AppWithEarlyKeys(KeyApp):
        def on_load(self) -> None:
            for key in ("home", "f1"):
                self.post_message(events.Key(key, None))

    def screen_of_help(pilot: P) -> KeyScreen | None:
        """Return the screen whose help is open."""
        return front(pilot.app) if isinstance(pilot.app.screen, Help) else None

    async def steps(pilot: P, lowest: KeyScreen) -> None:
        await pilot.pause()
        discards = lowest.SAVES_GRADES and not isinstance(lowest.focused, TextLine)
        assert screen_of_help(pilot) is (None if discards else lowest)
        if not discards:
            await pilot.press("escape")
        assert screen_of_help(pilot) is None
        pilot.app.push_screen(screens.screen("config"))
        await pilot.press("home", "f1")
        assert isinstance(screen_of_help(pilot), ConfigScreen)

    drive(AppWithEarlyKeys(screens.screen(name), "dark"), steps)


@pytest.mark.parametrize("keys", [("f1", "end", "escape"), ("ctrl+p", "down", "escape")])
def test_early_keys_wait_for_a_dialog(screens: ScreenFactory, keys: tuple[str, ...]) -> None:
    async def steps(pilot: P, lowest: KeyScreen) -> None:
        await pilot.press("escape")  # from the query to the hits, where keys are actions
        for key in keys:
            await pilot.app.on_event(events.Key(key, None))  # without pauses, as from a script
        await pilot.pause()
        assert pilot.app.screen is lowest and pilot.app.is_running

    drive(screens.app("search"), steps)


def test_a_click_beside_a_closed_palette_does_not_close_the_screen(screens: ScreenFactory) -> None:
    async def steps(pilot: P, lowest: KeyScreen) -> None:
        await pilot.press("ctrl+p")
        palette = pilot.app.screen
        assert isinstance(palette, Palette)
        pilot.app.post_message(events.Key("escape", None))
        palette.post_message(events.Click(palette, 0, 0, 0, 0, 1, False, False, False, 0, 0))
        await pilot.pause()
        assert pilot.app.screen is lowest and pilot.app.is_running

    drive(screens.app("judge"), steps)


def test_the_current_screen_reports_copying(screens: ScreenFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    async def steps(pilot: P, lowest: JudgeScreen) -> None:
        await pilot.app.push_screen(screens.screen("config"))
        pilot.app.copy_to_clipboard("abc")
        await wait_until_idle(pilot)
        assert "sent 3 characters to the terminal" in screen_text(pilot)
        await pilot.press("q")
        assert "sent 3" not in screen_text(pilot)

    drive(screens.app("judge"), steps)


def test_the_screen_below_reports_the_file_of_unsaved_judgments(
    screens: ScreenFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(JudgmentLog, "append", fail_to_save)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def steps(pilot: P, lowest: ConfigScreen) -> None:
        app = pilot.app
        await app.push_screen(screens.screen("judge"))
        await pilot.press("1", "q")
        assert "1 judgment is not saved" in screen_text(pilot)
        await pilot.press("w")
        assert app.screen is lowest and not app._exit
        assert "1 judgment is in " in screen_text(pilot)

    drive(screens.app("config"), steps)


def test_a_signal_saves_waiting_judgments_of_every_screen(
    screens: ScreenFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JudgmentLog, "append", fail_to_save)
    app = screens.app("judge")

    async def steps(pilot: P, lowest: JudgeScreen) -> None:
        await pilot.press("1")
        await app.push_screen(screens.screen("config"))
        await app.push_screen(screens.screen("judge"))
        await wait_until_idle(pilot)
        await pilot.press("1", "0")
        exits: list[tuple[int, str]] = []
        monkeypatch.setattr(
            app, "exit", lambda **arguments: exits.append((arguments["return_code"], arguments["message"]))
        )
        app._leave(15)
        ((code, message),) = exits
        assert code == 143
        assert [line.split()[0] for line in message.splitlines()] == ["2", "1"]

    drive(app, steps)
