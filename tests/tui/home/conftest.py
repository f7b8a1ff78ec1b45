"""The home screen on an own home directory, optionally with the index and a run of a sample."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.config.resolution import resolution
from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.engines.base import Engine
from searchapp.tui.home.screen import HomeScreen, RunRows, load
from searchapp.tui.kit.app import KeyApp
from searchapp.tui.kit.screen import front
from tests.tui.conftest import SampleRuns, drive, screen_text, wait_until

P = Pilot[None]
Steps = Callable[[P, HomeScreen], Awaitable[None]]


class HomeHarness:
    """Opens the home screen on a home directory of its own."""

    def __init__(self, home: Path, folder: Path, samples: SampleRuns) -> None:
        self.home = home
        self.folder = folder
        self._samples = samples

    def with_sample(self, task: str = "nlps") -> Path:
        """Add the index and a run of a sample to the home directory, and return the path of the run."""
        path = self._samples.run(task)
        (self.home / "indexes").symlink_to(self._samples.home / "indexes")
        (self.home / "runs").mkdir()
        (self.home / "runs" / "first").symlink_to(path)
        return path

    def engine(self) -> closing[Engine]:
        return closing(open_engine(Settings(home=self.home)))

    def app(self, environ: Mapping[str, str] | None = None) -> KeyApp:
        variables = {
            "SEARCHAPP_HOME": str(self.home),
            "SEARCHAPP_ANNOTATOR": "ann",
            "SEARCHAPP_DATA_MIRROR": "http://127.0.0.1:9",  # no test fetches from the network
            **(environ or {}),
        }
        own = load(self.home)
        screen = HomeScreen(resolution({}, variables, self.folder), self.folder, own.keys)
        return KeyApp(screen, own.theme, own.spacing)

    def drive(
        self, steps: Steps, size: tuple[int, int] = (120, 36), environ: Mapping[str, str] | None = None
    ) -> None:
        """Run the app and carry out the steps once the overview is complete."""
        app = self.app(environ)

        async def steps_after_overview(pilot: P, screen: HomeScreen) -> None:
            await wait_for_overview(pilot, screen)
            await steps(pilot, screen)

        try:
            drive(app, steps_after_overview, size)
        finally:
            app.main.opener.close()


@pytest.fixture
def home_harness(tmp_path: Path, samples: SampleRuns, monkeypatch: pytest.MonkeyPatch) -> HomeHarness:
    monkeypatch.delenv("NO_COLOR", raising=False)
    home, folder = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    folder.mkdir()
    return HomeHarness(home, folder, samples)


async def wait_for(pilot: P, condition: Callable[[], object]) -> None:
    """Wait until a condition is true and the screen is drawn."""
    await wait_until(pilot, condition)
    await pilot.pause()


async def wait_for_overview(pilot: P, screen: HomeScreen) -> None:
    """Wait until the overview is read and every run is scored."""
    monitor = screen.monitor
    await wait_for(
        pilot,
        lambda: (
            monitor.overview is not None and all(monitor.figure(run) != "…" for run in monitor.overview.runs)
        ),
    )


async def wait_for_text(pilot: P, text: str) -> None:
    """Wait until the screen contains a text."""
    await wait_for(pilot, lambda: text in screen_text(pilot))


async def wait_for_screen(pilot: P, kind: type[object]) -> None:
    """Wait until a screen of this class is the current one."""
    await wait_for(pilot, lambda: isinstance(front(pilot.app), kind))


async def go_to_run(pilot: P, screen: HomeScreen, name: str) -> None:
    """Move the cursor to a run."""
    names = [run.path.name for run in screen.runs.runs]
    if not isinstance(screen.focused, RunRows):
        await pilot.press("tab")
    await pilot.press("home", *["down"] * names.index(name))
