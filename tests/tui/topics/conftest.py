"""The topics screen on a sample."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from searchapp.app.inspection.topics import AnnotatorGold, TopicsRequest, open_topics
from searchapp.app.sessions import judged_by_now
from searchapp.app.topic_figures import Order
from searchapp.config.settings import Settings
from searchapp.judging.events import Author, Event
from searchapp.judging.judgments import Aggregation
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import Session
from searchapp.progress import SilentProgress
from searchapp.tasks import load
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.topics.screen import TopicsScreen, topics_screen
from tests.tui.conftest import SAMPLES, SampleRuns, press, wait_until


class TopicsHarness:
    """Opens the topics screen on a sample, with a judgment log in `home`."""

    def __init__(self, samples: SampleRuns, home: Path) -> None:
        self._samples = samples
        self._opened = ExitStack()
        self.home = home
        self.warnings: list[str] = []

    def app(
        self, task: str = "nlps", *, run: Path | None = None, start: str | None = None, **options: Any
    ) -> KeyApp:
        sample_run = self.run(task)
        order, failing = options.pop("order", None), options.pop("failing", False)
        ranked_run = None if "recipe" in options else run or sample_run
        request = TopicsRequest(run=ranked_run, data=SAMPLES / task, **options)
        settings = Settings(home=self._samples.home)
        log, by = self.home / "judgments.sqlite", Aggregation(annotators=(request.annotator or "",))
        gold = None if request.annotator is None else AnnotatorGold(lambda: judged_by_now(log, task, by))
        topics = open_topics(
            self._opened, load(task), request, settings, SilentProgress(), self.warnings.append, gold
        )
        self.warnings.extend(topics.pages.notes)
        session = lambda: self._session(task)  # noqa: E731
        screen = topics_screen(
            topics, request, settings, session, start, order or Order.file, failing=failing
        )
        return KeyApp(screen, "dark")

    def run(self, task: str = "nlps") -> Path:
        return self._samples.run(task)

    def _session(self, task: str) -> Session:
        self.log = self._opened.enter_context(JudgmentLog(self.home / "judgments.sqlite"))
        return Session(self.log, task, Author("ann"))

    def events(self) -> list[Event]:
        with JudgmentLog(self.home / "judgments.sqlite") as log:
            return [event for _position, event in log.events()]

    def close(self) -> None:
        self._opened.close()


@pytest.fixture
def topics_harness(
    samples: SampleRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TopicsHarness]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    topics_harness = TopicsHarness(samples, tmp_path)
    yield topics_harness
    topics_harness.close()


async def wait_until_answered(pilot: Pilot[None], screen: TopicsScreen) -> None:
    """Wait until all requests are answered and the answers are drawn."""

    def is_idle() -> bool:
        return screen.side.is_idle and screen.figure_queue.is_idle

    await wait_until(pilot, is_idle)
    await pilot.pause(0)  # showing an answer may cause further requests
    await wait_until(pilot, is_idle)
    await pilot.pause()


async def press_and_wait(pilot: Pilot[None], screen: TopicsScreen, *keys: str) -> None:
    """Press keys and wait until their requests are answered."""
    await press(pilot, *keys)
    await wait_until_answered(pilot, screen)
