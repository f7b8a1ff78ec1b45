"""Random keys with random pauses on every screen: no traceback, and every grade is for a document that was on screen.

What a screen does is watched from outside: when it is drawn, which document is current, which key came last.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual._time import get_time
from textual.app import App

from searchapp.judging.events import Action, Event
from searchapp.judging.log import JudgmentLog
from searchapp.tui.config.screen import GRADES, ConfigScreen
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.keys import load
from searchapp.tui.kit.screen import KeyApp, KeyScreen
from searchapp.tui.search.screen import SearchScreen
from tests.profile import FULL, SEED
from tests.tui.compare.conftest import Compared, Runs
from tests.tui.compare.conftest import runs as runs  # a fixture
from tests.tui.conftest import Judging, Prepared, key_event
from tests.tui.home.conftest import AtHome
from tests.tui.search.conftest import SearchingOn, answered
from tests.tui.search.test_judging import choose_topic
from tests.tui.topics.conftest import Walked

RUNS = 150 if FULL else 2
"""Sessions of each screen; 1,050 in all in the full profile."""

KEYS = 25
"""Keys of a session, of which one in twelve leaves."""

SCREENS = ("judge", "adjudicate", "topics", "compare", "search", "home", "config")

NOT_PRESSED = {"pager", "copy", "copy_id", "copy_text", "copy_command", "doctor"}
"""What starts other programs, or takes long."""

SAVED = {Action.grade, Action.skip, Action.cant_tell, Action.adjudicate}


class Watch:
    """What a session shows, and what it saves."""

    def __init__(self) -> None:
        self.painted: dict[KeyScreen, float] = {}
        """When each screen was drawn first since it was last covered by none but itself."""
        self.current: set[tuple[KeyScreen, str]] = set()
        self.key: events.Key | None = None
        self.front: object = None
        self.was_waiting = False
        self.is_left = False
        self.saved: list[str] = []

    def see(self, screen: object) -> None:
        """Note the document that a screen is on."""
        if isinstance(screen, KeyScreen):
            document = document_of(screen)
            selected = selected_on(screen)
            self.current |= {(screen, one) for one in [document, *selected] if one is not None}

    def require(self, event: Event) -> None:
        """Make sure that a grade is one that the annotator can have meant."""
        if event.action not in SAVED:
            return
        key, screen = self.key, self.front
        assert key is not None and not self.is_left, "saved after the screen was left"
        painted = [one for one, moment in self.painted.items() if moment <= key.time]
        assert painted, "the key was read before the first paint"
        shown = {document for one, document in self.current if one in painted}
        assert event.document_id in shown, f"{event.document_id} was not current"
        if isinstance(screen, KeyScreen):
            assert screen in painted, "the key was read before its screen was painted"
            assert not self.was_waiting, "saved while a dialog opens"
        self.saved.append(event.document_id)


def document_of(screen: object) -> str | None:
    """The document that the cursor of a screen is on."""
    if hasattr(screen, "dispute"):
        return None if screen.dispute is None else str(screen.dispute.document_id)
    if hasattr(screen, "hits"):
        return None if screen.hits.result is None else str(screen.hits.result.hit.document_id)
    return getattr(screen, "document_id", None)


def selected_on(screen: KeyScreen) -> list[str]:
    """The documents that are selected on the judging screen: a grade is for them, wherever the cursor is."""
    if not isinstance(screen, JudgeScreen):
        return []
    return [screen.ranking.documents[place] for place in screen.ranking.chosen]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Watch]]:
    """The watch of the session that runs, the last of the list."""
    watches: list[Watch] = []
    display, exit_, go_back, do = App._display, App.exit, KeyScreen.go_back, KeyScreen.do
    begin, append = KeyApp.__init__, JudgmentLog.append

    def displayed(app: App[Any], screen: Any, renderable: Any) -> None:
        display(app, screen, renderable)
        if app.screen is screen and isinstance(screen, KeyScreen) and not app._batch_count:
            watches[-1].painted.setdefault(screen, get_time())
            watches[-1].see(screen)

    def left(app: App[Any], *args: Any, **more: Any) -> None:
        watches[-1].is_left = True
        exit_(app, *args, **more)

    def gone_back(screen: KeyScreen, message: str | None = None) -> None:
        go_back(screen, message)
        watches[-1].painted.clear()  # the screen below is to be drawn again

    def done(screen: KeyScreen, name: str) -> None:
        watches[-1].see(
            screen
        )  # a key that waits for the hits of a search is for the hit that is current then
        do(screen, name)

    def appended(log: JudgmentLog, made: Any) -> Any:
        for event in made if watches else ():
            watches[-1].require(event)
        return append(log, made)

    class Noted(deque[events.Key]):
        """The keys that wait, each of which is noted when it is handled."""

        app: KeyApp

        def popleft(self) -> events.Key:
            seen, screen = watches[-1], self.app.screen
            seen.key, seen.front = super().popleft(), screen
            seen.was_waiting = isinstance(screen, KeyScreen) and screen.head.is_waiting
            seen.see(screen)
            return seen.key

    def begun(app: KeyApp, *args: Any, **more: Any) -> None:
        begin(app, *args, **more)
        app._keys = noted = Noted()
        noted.app = app

    monkeypatch.setattr(App, "_display", displayed)
    monkeypatch.setattr(App, "exit", left)
    monkeypatch.setattr(KeyScreen, "go_back", gone_back)
    monkeypatch.setattr(KeyScreen, "do", done)
    monkeypatch.setattr(JudgmentLog, "append", appended)
    monkeypatch.setattr(KeyApp, "__init__", begun)
    yield watches


def opened(name: str, prepared: Prepared, runs: Runs, folder: Path, held: ExitStack) -> KeyApp:
    """An app with a screen, whose log is in a folder of its own."""
    folder.mkdir()
    if name in ("judge", "adjudicate"):
        judging = Judging(prepared, folder / "judgments.sqlite")
        held.callback(judging.close)
        return judging.app() if name == "judge" else judging.adjudicating()
    if name == "topics":
        walked = Walked(prepared, folder)
        held.callback(walked.close)
        return walked.app()
    if name == "compare":
        compared = Compared(runs, folder)
        held.callback(compared.close)
        return compared.app()
    if name == "search":
        searching = SearchingOn(prepared, folder)
        held.callback(searching.close)
        return searching.app()
    if name == "home":
        (folder / "home").mkdir()
        (folder / "work").mkdir()
        at_home = AtHome(folder / "home", folder / "work", prepared)
        at_home.with_sample()
        app = at_home.app()
        held.callback(app.home.opener.close)
        return app
    home = AtHome(folder, folder, prepared).app().home
    return KeyApp(ConfigScreen(home._resolution, load(folder, GRADES).keys), "dark")


async def press_at_random(app: KeyApp, dice: random.Random) -> None:
    """Press keys, the first of which before anything is drawn."""
    actions = app.main.keys.actions
    every = [key for one in actions if one.name not in NOT_PRESSED for key in one.keys]
    judging = [key for one in actions if one.name in ("judge", "topic") for key in one.keys]
    others = ["enter", "escape", "tab", "down", "up", "y", "n", "space", *"ring", *judging]

    def key() -> events.Key:
        kind = dice.random()
        if kind < 1 / 12:
            return key_event("q")
        return key_event(dice.choice(["0", "1"] if kind < 0.5 else others if kind < 0.7 else every))

    main = app.main
    judges = isinstance(main, SearchScreen) and dice.random() < 0.7
    early = [] if judges else [key() for _ in range(dice.randrange(4))]
    async with app.run_test(size=dice.choice([(160, 45), (80, 24)])) as pilot:
        if judges and isinstance(
            main, SearchScreen
        ):  # a hit is graded for a topic only, and keys type words before
            await answered(pilot, main)
            await choose_topic(pilot, main)
        for one in early:
            app.post_message(one)
        for _ in range(KEYS):
            app.post_message(key())
            if dice.random() < 0.6:
                await asyncio.sleep(dice.choice([0, 0.005, 0.02, 0.08]))
            if not app.is_running:
                break
        while app.is_running and not app._exit and (app._keys or app.message_queue_size):
            await asyncio.sleep(0.01)
        await pilot.pause(0.05)


@pytest.mark.parametrize("name", SCREENS)
def test_random_keys_save_only_grades_of_documents_on_screen(
    name: str,
    prepared: Prepared,
    runs: Runs,
    tmp_path: Path,
    watch: list[Watch],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    saved = 0
    for number in range(RUNS):
        seed = SEED * 1_000_000 + number
        with ExitStack() as held:
            watch.clear()
            app = opened(name, prepared, runs, tmp_path / str(seed), held)
            watch.append(Watch())
            try:
                asyncio.run(press_at_random(app, random.Random(f"{name} {seed}")))
            except BaseException as error:
                error.add_note(f"{name}, seed {seed}")
                raise
            saved += len(watch[-1].saved)
    assert saved or not FULL or name in ("home", "config")
    print(f"{name}: {RUNS} sessions, {saved} grades")
