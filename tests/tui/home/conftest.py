"""The home screen on a home folder of its own, which may have the index and the run of a sample."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.config.resolution import resolution
from searchapp.tui.home.screen import HomeApp, HomeScreen, RunRows
from searchapp.tui.kit.screen import front
from tests.tui.conftest import Prepared, drive, text_of, until

P = Pilot[None]
Steps = Callable[[P, HomeScreen], Awaitable[None]]


class AtHome:
    """Opens the home screen."""

    def __init__(self, home: Path, folder: Path, prepared: Prepared) -> None:
        self.home = home
        self.folder = folder
        self._prepared = prepared

    def with_sample(self, task: str = "nlps") -> Path:
        """Let the home folder have the index of a sample; returns a run of it, which lies in its folder of runs."""
        path = self._prepared.run(task)
        (self.home / "indexes").symlink_to(self._prepared.home / "indexes")
        (self.home / "runs").mkdir()
        (self.home / "runs" / "first").symlink_to(path)
        return path

    def app(self, environ: Mapping[str, str] | None = None) -> HomeApp:
        named = {"SEARCHAPP_HOME": str(self.home), "SEARCHAPP_ANNOTATOR": "ann", **(environ or {})}
        return HomeApp(resolution({}, named, self.folder), self.folder)

    def drive(
        self, steps: Steps, size: tuple[int, int] = (120, 36), environ: Mapping[str, str] | None = None
    ) -> None:
        """Run it, and do the steps once everything was looked at."""
        app = self.app(environ)

        async def begun(pilot: P, screen: HomeScreen) -> None:
            await looked(pilot, screen)
            await steps(pilot, screen)

        try:
            drive(app, begun, size)
        finally:
            app.home.opener.close()


@pytest.fixture
def at_home(tmp_path: Path, prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> AtHome:
    monkeypatch.delenv("NO_COLOR", raising=False)
    home, folder = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    folder.mkdir()
    return AtHome(home, folder, prepared)


async def comes(pilot: P, holds: Callable[[], object]) -> None:
    """Wait until something holds, and is drawn."""
    await until(pilot, holds)
    await pilot.pause()


async def looked(pilot: P, screen: HomeScreen) -> None:
    """Wait until everything was looked at, and every run is scored."""
    watching = screen.monitor
    await comes(
        pilot,
        lambda: (
            watching.overview is not None
            and all(watching.figure(run) != "…" for run in watching.overview.runs)
        ),
    )


async def shows(pilot: P, words: str) -> None:
    """Wait until something stands on the screen."""
    await comes(pilot, lambda: words in seen(pilot))


async def in_front(pilot: P, kind: type[object]) -> None:
    """Wait until a screen is in front."""
    await comes(pilot, lambda: isinstance(front(pilot.app), kind))


def seen(pilot: P) -> str:
    """What stands on the screen, a line broken in two in one piece."""
    assert isinstance(pilot.app, HomeApp)
    return text_of(pilot.app)


async def to_run(pilot: P, screen: HomeScreen, name: str) -> None:
    """Put the cursor on a run."""
    names = [run.path.name for run in screen.runs.runs]
    if not isinstance(screen.focused, RunRows):
        await pilot.press("tab")
    await pilot.press("home", *["down"] * names.index(name))
