from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from textual.pilot import Pilot
from typer.testing import CliRunner

import searchapp
from searchapp.cli import app as command_line
from searchapp.engines import open_engine
from searchapp.judging.desk import Desk
from searchapp.judging.events import Author, Event
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import Session
from searchapp.runs.material import Material
from searchapp.settings import Settings
from searchapp.tasks import load
from searchapp.tui import keys
from searchapp.tui.judge.app import JudgeApp
from searchapp.tui.judge.screen import JudgeScreen

SAMPLES = Path(searchapp.__file__).parent / "samples"
SPLITS = {"nlps": "dev", "explanation-2021": "dev", "checkthat": "training"}


@dataclass(frozen=True)
class Prepared:
    """A home folder with the indexes of some samples, and a run of each."""

    home: Path

    @cache  # noqa: B019  # there is one for all tests
    def run(self, task: str) -> Path:
        path = self.home / "runs" / task
        for command in (["index"], ["rank", "--split", SPLITS[task], "--out", str(path)]):
            arguments = [
                command[0],
                task,
                "--data",
                str(SAMPLES / task),
                *command[1:],
                "--home",
                str(self.home),
            ]
            result = CliRunner().invoke(
                command_line, arguments, env={"SEARCHAPP_URL": "", "SEARCHAPP_ENGINE": ""}
            )
            assert result.exit_code == 0, result.stderr
        return path


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return Prepared(tmp_path_factory.mktemp("judging"))


class Judging:
    """The judging screen on a sample, with a log of its own."""

    def __init__(self, prepared: Prepared, log: Path) -> None:
        self._prepared = prepared
        self.log = JudgmentLog(log)
        self.home = log.parent

    def session(self, name: str, task: str = "nlps") -> Session:
        return Session(self.log, task, Author(name))

    def app(
        self,
        task: str = "nlps",
        *,
        seed: int | None = None,
        depth: int | None = None,
        start: str | None = None,
    ) -> JudgeApp:
        path = self._prepared.run(task)
        loaded = load(task)
        material = Material.open(loaded, open_engine(Settings(home=self._prepared.home)), path)
        self.material = material
        session = self.session("ann", task)
        self.desk = Desk(
            session, material.topics, material.ranking, material.rankings.length, material.name, depth, seed
        )
        settings = keys.load(self.home, loaded.grades)
        return JudgeApp(self.desk, material, settings, f"{task} {SPLITS[task]} · ann", start)

    def events(self) -> list[Event]:
        return [event for _place, event in self.log.events()]


@pytest.fixture
def judging(prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Judging]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    judging = Judging(prepared, tmp_path / "judgments.sqlite")
    yield judging
    judging.log.close()


Driver = Callable[[Pilot[None], JudgeScreen], Awaitable[None]]


def drive(app: JudgeApp, steps: Driver, size: tuple[int, int] = (160, 45)) -> None:
    """Run an interface without a terminal, and do the steps in it."""

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await settled(pilot)
            screen = app.screen
            assert isinstance(screen, JudgeScreen)
            await steps(pilot, screen)

    asyncio.run(run())


async def settled(pilot: Pilot[None]) -> None:
    """Wait until everything that was begun is done and drawn."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def text_of(app: JudgeApp) -> str:
    """What stands on the screen."""
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in line) for line in lines)
