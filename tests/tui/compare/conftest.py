"""The compare screen on two or three runs of a sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from searchapp.app.compare import CompareRequest
from searchapp.app.evaluate import GoldSource, Judgments
from searchapp.app.inspection.topic_comparison import open_comparing
from searchapp.app.sessions import grading_session, judged_by_now
from searchapp.config.settings import Settings
from searchapp.evaluation.base import ScorerOptions
from searchapp.judging.events import Event
from searchapp.judging.log import JudgmentLog
from searchapp.progress import SilentProgress
from searchapp.tasks.base import Grades
from searchapp.tui.compare.screen import CompareScreen, compare_screen
from searchapp.tui.kit.screen import KeyApp
from tests.cli.conftest import EMBEDDED, run_command
from tests.tui.conftest import SAMPLES, Prepared, press, until

CUTOFF = 50
"""How deep the sample is scored, which has fewer documents than the official scorer wants."""

TASK = "nlps"
RECIPES = ("bm25", "neighbours", "tfidf")


class Runs:
    """Runs of the sample by recipes."""

    def __init__(self, prepared: Prepared, folder: Path) -> None:
        self.home = prepared.home
        self._folder = folder
        prepared.run(TASK)

    @cache  # noqa: B019  # there is one for all tests
    def made(self, recipe: str) -> Path:
        path = self._folder / recipe
        arguments = ["rank", TASK, "--data", SAMPLES / TASK, "--split", "dev", "--recipe", recipe]
        result = run_command(*arguments, "--out", path, "--home", self.home, environment=EMBEDDED)
        assert result.code == 0, result.stderr
        return path


@pytest.fixture(scope="session")
def runs(prepared: Prepared, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(prepared, tmp_path_factory.mktemp("compared"))


class Compared:
    """Opens the screen; what is judged goes into a log in `home`."""

    def __init__(self, runs: Runs, home: Path) -> None:
        self.runs = runs
        self.log = home / "judgments.sqlite"
        self.warned: list[str] = []
        self._opened = ExitStack()

    def request(self, recipes: Sequence[str] = RECIPES[:2], **asked: Any) -> CompareRequest:
        measures = asked.pop("measures", ())
        source = GoldSource(options=ScorerOptions(cutoff=CUTOFF), measures=measures)
        return CompareRequest(tuple(map(self.runs.made, recipes)), source, **asked)

    def judged(self) -> Grades:
        return judged_by_now(self.log, TASK)

    def app(
        self,
        recipes: Sequence[str] = RECIPES[:2],
        *,
        request: CompareRequest | None = None,
        start: str | None = None,
        follows: bool = False,
        **asked: Any,
    ) -> KeyApp:
        if follows:
            asked["judgments"] = Judgments(self.judged())
        settings = Settings(home=self.runs.home)
        comparing = open_comparing(
            self._opened,
            request or self.request(recipes, **asked),
            settings,
            SilentProgress(),
            self.warned.append,
            self.judged,
            follows=follows,
        )
        session = lambda: grading_session(self._opened, self.log, TASK, "ann")  # noqa: E731
        return KeyApp(compare_screen(comparing, settings, session, start), "dark")

    def events(self) -> list[Event]:
        with JudgmentLog(self.log) as log:
            return [event for _place, event in log.events()]

    def close(self) -> None:
        self._opened.close()


@pytest.fixture
def compared(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Compared]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    compared = Compared(runs, tmp_path)
    yield compared
    compared.close()


async def answered(pilot: Pilot[None], screen: CompareScreen) -> None:
    """Wait until nothing is asked any more, and everything that came is drawn."""

    def is_idle() -> bool:
        return all(side.is_idle for side in screen.sides) and screen.figure_queue.is_idle

    for _again in range(3):  # what came is shown, which may be a reason to ask for more
        await until(pilot, is_idle)
        await pilot.pause(0)
    await pilot.pause()


async def enter(pilot: Pilot[None], screen: CompareScreen, *keys: str) -> None:
    """Press keys, and wait for what comes of them."""
    await press(pilot, *keys)
    await answered(pilot, screen)
