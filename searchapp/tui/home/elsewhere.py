"""Tasks and runs in the palette, on the home screen and on a search screen that stands alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from searchapp.app.known_runs import KnownRun
from searchapp.app.overview import Overview, TaskState, look
from searchapp.settings import Settings
from searchapp.tui.home.opener import Opener
from searchapp.tui.palette import Offer
from searchapp.tui.screen import KeyScreen


def tasks(overview: Overview, search: Callable[[TaskState], object]) -> Iterator[Offer]:
    """The tasks that are indexed."""
    for state in overview.tasks:
        if state.index is not None:
            yield Offer(f"search {state.task.name}", lambda state=state: search(state), "task")  # type: ignore[misc]


def runs(overview: Overview, verb: str, act: Callable[[KnownRun], object]) -> Iterator[Offer]:
    """The runs, and what is done with them."""
    for run in overview.runs:
        what = f"{run.path.name} ({run.manifest.task} {run.manifest.split} {run.recipe})"
        yield Offer(f"{verb} {what}", lambda run=run: act(run), "run")  # type: ignore[misc]


class Elsewhere:
    """Where one can go from a search screen that stands alone; runs are looked for in `folder` too."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._settings = settings
        self._folder = folder
        self._opener: Opener | None = None

    def offers(self, screen: KeyScreen) -> Iterator[Offer]:
        """The tasks and the runs; looking for them takes a while."""
        if self._opener is None:
            self._opener = Opener(screen, self._settings, screen.call_later)
        overview = look(self._settings, self._folder)
        yield from tasks(overview, self._opener.search)
        yield from runs(overview, "judge", self._opener.judge)

    def close(self) -> None:
        """Let go of what screens hold open that were never left."""
        if self._opener is not None:
            self._opener.close()
