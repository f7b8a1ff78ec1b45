"""Screens that stand on each other: each looks and works as it does alone, and is left for the one below."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.pilot import Pilot

from scripts.at_rest import wait_for_rest
from searchapp.config.resolution import resolution
from searchapp.judging.event_log import NotSaved
from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import Adjudication, Session
from searchapp.tasks import load
from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.config.screen import ConfigScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit import keys
from searchapp.tui.kit.dialogs import Help
from searchapp.tui.kit.palette import Palette
from searchapp.tui.kit.screen import KeyApp, KeyScreen, front
from searchapp.tui.kit.widgets import TextLine
from searchapp.tui.search.screen import SearchScreen
from tests.tui.conftest import Judging, Prepared, drive, settled, text_of
from tests.tui.search.conftest import SearchingOn, answered

P = Pilot[None]

KINDS = ("judge", "search", "adjudicate", "config")


class Screens:
    """One screen of each kind, on the same sample."""

    def __init__(self, judging: Judging, searching: SearchingOn) -> None:
        self._judging = judging
        self._searching = searching
        judging.adjudicating()  # writes what there is to decide on

    def app(self, name: str) -> KeyApp:
        """An app with nothing but the screen of a kind."""
        return KeyApp(self.screen(name), "dark")

    def screen(self, name: str) -> KeyScreen:
        if name == "judge":
            return self._judging.app().main
        if name == "adjudicate":
            session = Session(self._judging.log, "nlps", Author("kim"), (Action.adjudicate,))
            own = keys.load(self._judging.home, load("nlps").info.grades).keys
            return AdjudicateScreen(Adjudication(session), self._judging.run_pages, own, "nlps · kim decides")
        if name == "search":
            return self._searching.app().main
        home = self._judging.home
        found = resolution({}, {"SEARCHAPP_HOME": str(home)}, home)
        return ConfigScreen(found, self._judging.app().main.keys)


@pytest.fixture
def screens(judging: Judging, prepared: Prepared) -> Iterator[Screens]:
    searching = SearchingOn(prepared, judging.home)
    yield Screens(judging, searching)
    searching.close()


def seen(pilot: P) -> str:
    """What stands on the screen."""
    assert isinstance(pilot.app, KeyApp)
    return text_of(pilot.app)


async def draw(pilot: P) -> str:
    """A picture of the screen once all is there, without the names that differ from picture to picture."""
    screen = front(pilot.app)
    if isinstance(screen, SearchScreen):
        await answered(pilot, screen)
    await settled(pilot)
    await wait_for_rest(pilot)
    picture = re.sub(r"terminal-\d+", "terminal", pilot.app.export_screenshot())
    return re.sub(r"\d\d:\d\d", "time", picture)


@pytest.mark.parametrize(("below", "size"), [("judge", (80, 24)), ("search", (140, 36))])
def test_a_screen_looks_on_another_one_as_it_does_alone(
    screens: Screens, below: str, size: tuple[int, int]
) -> None:
    alone: dict[str, str] = {}
    for name in KINDS:

        async def look(pilot: P, _screen: KeyScreen, name: str = name) -> None:
            alone[name] = await draw(pilot)

        drive(screens.app(name), look, size)

    async def steps(pilot: P, lowest: KeyScreen) -> None:
        for name in KINDS:
            if name == below:
                continue
            await pilot.app.push_screen(screens.screen(name))
            assert await draw(pilot) == alone[name], name
            front(pilot.app).leave()  # type: ignore[union-attr]
            await pilot.pause()
            assert pilot.app.screen is lowest and not pilot.app._exit
            assert await draw(pilot) == alone[below], name

    drive(screens.app(below), steps, size)


def test_keys_are_those_of_the_screen_in_front(screens: Screens) -> None:
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


@pytest.mark.parametrize("name", KINDS)
def test_keys_that_come_before_the_screen_wait_for_it_unless_they_could_save_grades(
    screens: Screens, name: str
) -> None:
    class Early(KeyApp):
        def on_load(self) -> None:
            for key in ("home", "f1"):
                self.post_message(events.Key(key, None))

    def helped(pilot: P) -> KeyScreen | None:
        """The screen whose help is shown."""
        return front(pilot.app) if isinstance(pilot.app.screen, Help) else None

    async def steps(pilot: P, lowest: KeyScreen) -> None:
        await pilot.pause()
        discards = lowest.SAVES_GRADES and not isinstance(lowest.focused, TextLine)
        assert helped(pilot) is (None if discards else lowest)
        if not discards:
            await pilot.press("escape")
        assert helped(pilot) is None
        pilot.app.push_screen(screens.screen("config"))
        await pilot.press("home", "f1")
        assert isinstance(helped(pilot), ConfigScreen)

    drive(Early(screens.screen(name), "dark"), steps)


@pytest.mark.parametrize("keys", [("f1", "end", "escape"), ("ctrl+p", "down", "escape")])
def test_keys_that_come_before_a_dialog_wait_for_it(screens: Screens, keys: tuple[str, ...]) -> None:
    async def steps(pilot: P, lowest: KeyScreen) -> None:
        await pilot.press("escape")  # from the words to the hits, where keys are no letters
        for key in keys:
            await pilot.app.on_event(events.Key(key, None))  # at once, as from a script
        await pilot.pause()
        assert pilot.app.screen is lowest and pilot.app.is_running

    drive(screens.app("search"), steps)


def test_a_click_beside_a_palette_that_a_key_has_closed_closes_nothing_else(screens: Screens) -> None:
    async def steps(pilot: P, lowest: KeyScreen) -> None:
        await pilot.press("ctrl+p")
        palette = pilot.app.screen
        assert isinstance(palette, Palette)
        pilot.app.post_message(events.Key("escape", None))
        palette.post_message(events.Click(palette, 0, 0, 0, 0, 1, False, False, False, 0, 0))
        await pilot.pause()
        assert pilot.app.screen is lowest and pilot.app.is_running

    drive(screens.app("judge"), steps)


def test_what_is_copied_is_told_in_front(screens: Screens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    async def steps(pilot: P, lowest: JudgeScreen) -> None:
        await pilot.app.push_screen(screens.screen("config"))
        pilot.app.copy_to_clipboard("abc")
        await settled(pilot)
        assert "sent 3 characters to the terminal" in seen(pilot)
        await pilot.press("q")
        assert "sent 3" not in seen(pilot)

    drive(screens.app("judge"), steps)


def no_room(_log: JudgmentLog, _events: Any) -> int:
    raise NotSaved("the disk is full")


def test_unsaved_judgments_are_written_to_a_file_and_the_screen_below_says_which(
    screens: Screens, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(JudgmentLog, "append", no_room)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def steps(pilot: P, lowest: ConfigScreen) -> None:
        app = pilot.app
        await app.push_screen(screens.screen("judge"))
        await pilot.press("1", "q")
        assert "1 judgment is not saved" in seen(pilot)
        await pilot.press("w")
        assert app.screen is lowest and not app._exit
        assert "1 judgment is in " in seen(pilot)

    drive(screens.app("config"), steps)


def test_a_signal_saves_what_waits_on_every_screen(screens: Screens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JudgmentLog, "append", no_room)
    app = screens.app("judge")

    async def steps(pilot: P, lowest: JudgeScreen) -> None:
        await pilot.press("1")
        await app.push_screen(screens.screen("config"))
        await app.push_screen(screens.screen("judge"))
        await settled(pilot)
        await pilot.press("1", "0")
        said: list[tuple[int, str]] = []
        monkeypatch.setattr(app, "exit", lambda **how: said.append((how["return_code"], how["message"])))
        app._leave(15)
        ((code, words),) = said
        assert code == 143
        assert [line.split()[0] for line in words.splitlines()] == ["2", "1"]

    drive(app, steps)
