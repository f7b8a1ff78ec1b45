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
from searchapp.tasks import load
from searchapp.tasks.base import Grades
from searchapp.tui.compare.screen import CompareScreen, compare_screen
from searchapp.tui.kit.app import KeyApp
from tests.cli.conftest import EMBEDDED, run_command
from tests.tui.conftest import SAMPLES, SampleRuns, press, wait_until

CUTOFF = 50
"""The sample has fewer documents than the official scorer requires."""

TASK = "nlps"
RECIPES = ("bm25", "neighbours", "tfidf")


class Runs:
    """Runs of the sample, one for each recipe, made on first use."""

    def __init__(self, samples: SampleRuns, folder: Path) -> None:
        self.home = samples.home
        self._folder = folder
        samples.run(TASK)

    @cache  # noqa: B019  # one object serves all tests
    def path(self, recipe: str) -> Path:
        path = self._folder / recipe
        arguments = ["rank", TASK, "--data", SAMPLES / TASK, "--split", "dev", "--recipe", recipe]
        result = run_command(*arguments, "--out", path, "--home", self.home, environment=EMBEDDED)
        assert result.code == 0, result.stderr
        return path


@pytest.fixture(scope="session")
def runs(samples: SampleRuns, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(samples, tmp_path_factory.mktemp("compared"))


class CompareHarness:
    """Opens the compare screen, with a judgment log in `home`."""

    def __init__(self, runs: Runs, home: Path) -> None:
        self.runs = runs
        self.log = home / "judgments.sqlite"
        self.warnings: list[str] = []
        self._opened = ExitStack()

    def request(self, recipes: Sequence[str] = RECIPES[:2], **options: Any) -> CompareRequest:
        measures = options.pop("measures", ())
        source = GoldSource(options=ScorerOptions(cutoff=CUTOFF), measures=measures)
        return CompareRequest(tuple(map(self.runs.path, recipes)), source, **options)

    def judged(self) -> Grades:
        return judged_by_now(self.log, TASK)

    def app(
        self,
        recipes: Sequence[str] = RECIPES[:2],
        *,
        request: CompareRequest | None = None,
        start: str | None = None,
        follows: bool = False,
        **options: Any,
    ) -> KeyApp:
        if follows:
            options["judgments"] = Judgments(self.judged())
        settings = Settings(home=self.runs.home)
        comparing = open_comparing(
            self._opened,
            request or self.request(recipes, **options),
            settings,
            SilentProgress(),
            self.warnings.append,
            self.judged,
            follows=follows,
        )
        session = lambda: grading_session(self._opened, self.log, load(TASK), "ann")  # noqa: E731
        return KeyApp(compare_screen(comparing, settings, session, start), "dark")

    def events(self) -> list[Event]:
        with JudgmentLog(self.log) as log:
            return [event for _position, event in log.events()]

    def close(self) -> None:
        self._opened.close()


@pytest.fixture
def compare_harness(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CompareHarness]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    compare_harness = CompareHarness(runs, tmp_path)
    yield compare_harness
    compare_harness.close()


async def wait_until_answered(pilot: Pilot[None], screen: CompareScreen) -> None:
    """Wait until all requests are answered and the answers are drawn."""

    def is_idle() -> bool:
        return all(side.is_idle for side in screen.sides) and screen.figure_queue.is_idle

    for _attempt in range(3):  # showing an answer may cause further requests
        await wait_until(pilot, is_idle)
        await pilot.pause(0)
    await pilot.pause()


async def press_and_wait(pilot: Pilot[None], screen: CompareScreen, *keys: str) -> None:
    """Press keys and wait until their requests are answered."""
    await press(pilot, *keys)
    await wait_until_answered(pilot, screen)
