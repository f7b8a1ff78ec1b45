"""The screen of topics on a sample."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from searchapp.app.inspection.topics import TopicsRequest, open_topics
from searchapp.app.topic_figures import Order
from searchapp.config.settings import Settings
from searchapp.judging.events import Author, Event
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import Session
from searchapp.progress import SilentProgress
from searchapp.tasks import load
from searchapp.tui.kit.screen import KeyApp
from searchapp.tui.topics.screen import TopicsScreen, topics_screen
from tests.tui.conftest import SAMPLES, Prepared, press, until


class Walked:
    """Opens the screen on a sample; what is judged goes into a log in `home`."""

    def __init__(self, prepared: Prepared, home: Path) -> None:
        self._prepared = prepared
        self._opened = ExitStack()
        self.home = home

    def app(
        self, task: str = "nlps", *, run: Path | None = None, start: str | None = None, **asked: Any
    ) -> KeyApp:
        made = self._prepared.run(task)
        order, failing = asked.pop("order", None), asked.pop("failing", False)
        wanted = None if "recipe" in asked else run or made
        request = TopicsRequest(run=wanted, data=SAMPLES / task, **asked)
        settings = Settings(home=self._prepared.home)
        topics = open_topics(
            self._opened, load(task), request, settings, SilentProgress(), self.warned.append
        )
        for note in topics.pages.notes:
            self.warned.append(note)
        session = lambda: self._session(task)  # noqa: E731
        screen = topics_screen(
            topics, request, settings, session, start, order or Order.file, failing=failing
        )
        return KeyApp(screen, "dark")

    warned: list[str] = []  # noqa: RUF012  # a fresh one is set by the fixture

    def _session(self, task: str) -> Session:
        self.log = self._opened.enter_context(JudgmentLog(self.home / "judgments.sqlite"))
        return Session(self.log, task, Author("ann"))

    def events(self) -> list[Event]:
        with JudgmentLog(self.home / "judgments.sqlite") as log:
            return [event for _place, event in log.events()]

    def close(self) -> None:
        self._opened.close()


@pytest.fixture
def walked(prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Walked]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    walked = Walked(prepared, tmp_path)
    walked.warned = []
    yield walked
    walked.close()


async def answered(pilot: Pilot[None], screen: TopicsScreen) -> None:
    """Wait until nothing is asked any more, and everything that came is drawn."""

    def is_idle() -> bool:
        return screen.side.is_idle and screen.figure_queue.is_idle

    await until(pilot, is_idle)
    await pilot.pause(0)  # what came is shown, which may be a reason to ask for more
    await until(pilot, is_idle)
    await pilot.pause()


async def enter(pilot: Pilot[None], screen: TopicsScreen, *keys: str) -> None:
    """Press keys, and wait for what comes of them."""
    await press(pilot, *keys)
    await answered(pilot, screen)
