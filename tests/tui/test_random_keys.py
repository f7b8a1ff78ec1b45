"""Random keys with random pauses cause no traceback, and every grade is for a document that was on screen.

A monitor records when each screen is drawn, which document is current and which key came last.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, closing
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
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.kit.keys import load
from searchapp.tui.kit.screen import KeyScreen
from searchapp.tui.search.screen import SearchScreen
from tests.profile import FULL, SEED
from tests.tui.compare.conftest import CompareHarness, Runs
from tests.tui.compare.conftest import runs as runs  # a fixture
from tests.tui.conftest import JudgingHarness, SampleRuns, key_event
from tests.tui.home.conftest import HomeHarness
from tests.tui.search.conftest import SearchHarness, wait_until_answered
from tests.tui.search.test_judging import choose_topic
from tests.tui.topics.conftest import TopicsHarness

RUNS = 150 if FULL else 2
"""Sessions of each screen; 1,050 in all in the full profile."""

KEYS = 25
"""Keys in a session; one in twelve leaves the screen."""

SCREENS = ("judge", "adjudicate", "topics", "compare", "search", "home", "config")

NOT_PRESSED = {"pager", "copy", "copy_id", "copy_text", "copy_command", "doctor", "export"}
"""Actions that start other programs or take long."""

SAVED = {Action.grade, Action.skip, Action.cant_tell, Action.adjudicate}


class SessionMonitor:
    """Records what a session shows and what it saves."""

    def __init__(self) -> None:
        self.painted: dict[KeyScreen, float] = {}
        """When each screen was first drawn after it last became the current one."""
        self.current: set[tuple[KeyScreen, str]] = set()
        self.key: events.Key | None = None
        self.front: object = None
        self.was_waiting = False
        self.is_left = False
        self.saved: list[str] = []

    def see(self, screen: object) -> None:
        """Record the current document of a screen and its selected ones."""
        if isinstance(screen, KeyScreen):
            documents = [document_of(screen), *selected_on(screen)]
            self.current |= {(screen, document) for document in documents if document is not None}

    def require(self, event: Event) -> None:
        """Require that the annotator can have meant a grade."""
        if event.action not in SAVED:
            return
        key, screen = self.key, self.front
        assert key is not None and not self.is_left, "saved after the screen was left"
        painted = [screen for screen, moment in self.painted.items() if moment <= key.time]
        assert painted, "the key was read before the first paint"
        shown = {document for screen, document in self.current if screen in painted}
        assert event.document_id in shown, f"{event.document_id} was not current"
        if isinstance(screen, KeyScreen):
            assert screen in painted, "the key was read before its screen was painted"
            assert not self.was_waiting, "saved while a dialog opens"
        self.saved.append(event.document_id)


def document_of(screen: object) -> str | None:
    """Return the document under the cursor of a screen."""
    if hasattr(screen, "dispute"):
        return None if screen.dispute is None else str(screen.dispute.document_id)
    if hasattr(screen, "hits"):
        return None if screen.hits.result is None else str(screen.hits.result.hit.document_id)
    return getattr(screen, "document_id", None)


def selected_on(screen: KeyScreen) -> list[str]:
    """Return the selected documents of the judging screen, which a grade applies to wherever the cursor is."""
    if not isinstance(screen, JudgeScreen):
        return []
    return [screen.ranking.documents[position] for position in screen.ranking.chosen]


@pytest.fixture
def monitors(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[SessionMonitor]]:
    """Record the running session in the last monitor of the returned list."""
    monitors: list[SessionMonitor] = []
    display, exit_, go_back, do = App._display, App.exit, KeyScreen.go_back, KeyScreen.do
    begin, append = KeyApp.__init__, JudgmentLog.append

    def record_display(app: App[Any], screen: Any, renderable: Any) -> None:
        display(app, screen, renderable)
        if app.screen is screen and isinstance(screen, KeyScreen) and not app._batch_count:
            monitors[-1].painted.setdefault(screen, get_time())
            monitors[-1].see(screen)

    def record_exit(app: App[Any], *args: Any, **more: Any) -> None:
        monitors[-1].is_left = True
        exit_(app, *args, **more)

    def record_back(screen: KeyScreen, message: str | None = None) -> None:
        go_back(screen, message)
        monitors[-1].painted.clear()  # the screen below must be drawn again

    def record_action(screen: KeyScreen, name: str) -> None:
        # A key that waits for the hits of a search applies to the hit that is current after it.
        monitors[-1].see(screen)
        do(screen, name)

    def require_events(log: JudgmentLog, new_events: Any, details: Any = ()) -> Any:
        for event in new_events if monitors else ():
            monitors[-1].require(event)
        return append(log, new_events, details)

    class RecordedKeys(deque[events.Key | events.Paste]):
        """The queue of keys, which records each key when it is handled."""

        app: KeyApp

        def popleft(self) -> events.Key | events.Paste:
            monitor, screen = monitors[-1], self.app.screen
            event = super().popleft()
            assert isinstance(event, events.Key)
            monitor.key, monitor.front = event, screen
            monitor.was_waiting = isinstance(screen, KeyScreen) and screen.head.is_waiting
            monitor.see(screen)
            return event

    def start_app(app: KeyApp, *args: Any, **more: Any) -> None:
        begin(app, *args, **more)
        app._keys = keys = RecordedKeys()
        keys.app = app

    monkeypatch.setattr(App, "_display", record_display)
    monkeypatch.setattr(App, "exit", record_exit)
    monkeypatch.setattr(KeyScreen, "go_back", record_back)
    monkeypatch.setattr(KeyScreen, "do", record_action)
    monkeypatch.setattr(JudgmentLog, "append", require_events)
    monkeypatch.setattr(KeyApp, "__init__", start_app)
    yield monitors


def open_screen(name: str, samples: SampleRuns, runs: Runs, folder: Path, resources: ExitStack) -> KeyApp:
    """Return an app with a screen whose judgment log is in a new folder."""
    folder.mkdir()
    if name in ("judge", "adjudicate"):
        judging = resources.enter_context(closing(JudgingHarness(samples, folder / "judgments.sqlite")))
        return judging.app() if name == "judge" else judging.adjudicating()
    if name == "topics":
        return resources.enter_context(closing(TopicsHarness(samples, folder))).app()
    if name == "compare":
        return resources.enter_context(closing(CompareHarness(runs, folder))).app()
    if name == "search":
        return resources.enter_context(closing(SearchHarness(samples, folder))).app()
    if name == "home":
        (folder / "home").mkdir()
        (folder / "work").mkdir()
        harness = HomeHarness(folder / "home", folder / "work", samples)
        harness.with_sample()
        app = harness.app()
        resources.callback(app.main.opener.close)
        return app
    home = HomeHarness(folder, folder, samples).app().main
    return KeyApp(ConfigScreen(home._resolution, load(folder, GRADES).keys), "dark")


async def press_at_random(app: KeyApp, random_source: random.Random) -> None:
    """Press random keys, some of them before the first paint."""
    actions = app.main.keys.actions
    all_keys = [key for action in actions if action.name not in NOT_PRESSED for key in action.keys]
    judging_keys = [key for action in actions if action.name in ("judge", "topic") for key in action.keys]
    others = ["enter", "escape", "tab", "down", "up", "y", "n", "space", *"ring", *judging_keys]

    def key() -> events.Key:
        kind = random_source.random()
        if kind < 1 / 12:
            return key_event("q")
        return key_event(
            random_source.choice(["0", "1"] if kind < 0.5 else others if kind < 0.7 else all_keys)
        )

    main = app.main
    judges = isinstance(main, SearchScreen) and random_source.random() < 0.7
    early = [] if judges else [key() for _ in range(random_source.randrange(4))]
    async with app.run_test(size=random_source.choice([(160, 45), (80, 24)])) as pilot:
        if judges and isinstance(main, SearchScreen):
            # Hits are graded for a topic only; before one is chosen, keys edit the query.
            await wait_until_answered(pilot, main)
            await choose_topic(pilot, main)
        for early_key in early:
            app.post_message(early_key)
        for _ in range(KEYS):
            app.post_message(key())
            if random_source.random() < 0.6:
                await asyncio.sleep(random_source.choice([0, 0.005, 0.02, 0.08]))
            if not app.is_running:
                break
        while app.is_running and not app._exit and (app._keys or app.message_queue_size):
            await asyncio.sleep(0.01)
        await pilot.pause(0.05)


@pytest.mark.parametrize("name", SCREENS)
def test_random_keys_save_only_grades_of_documents_on_screen(
    name: str,
    samples: SampleRuns,
    runs: Runs,
    tmp_path: Path,
    monitors: list[SessionMonitor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    saved = 0
    for number in range(RUNS):
        seed = SEED * 1_000_000 + number
        with ExitStack() as resources:
            monitors.clear()
            app = open_screen(name, samples, runs, tmp_path / str(seed), resources)
            monitors.append(SessionMonitor())
            try:
                asyncio.run(press_at_random(app, random.Random(f"{name} {seed}")))
            except BaseException as error:
                error.add_note(f"{name}, seed {seed}")
                raise
            saved += len(monitors[-1].saved)
    assert saved or not FULL or name in ("home", "config")
    print(f"{name}: {RUNS} sessions, {saved} grades")
