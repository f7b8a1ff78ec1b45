"""The runs that are known with their tags, and the figures that were computed before."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchapp.app import known_runs
from searchapp.app.figures import Figure, Figures
from searchapp.app.known_runs import KnownRun
from searchapp.errors import SearchappError
from searchapp.runs import tags as of_runs
from searchapp.runs.directory import Manifest


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run directory with its tags: `shown` is its path as people see it, `figure` its official one if it is known."""

    path: Path
    shown: str
    manifest: Manifest
    tags: tuple[str, ...]
    figure: Figure | None

    @property
    def figure_shown(self) -> str:
        """The figure for people; nothing where there is none."""
        return "" if self.figure is None else f"{self.figure.measure} {self.figure.value:.4f}"

    def to_json(self) -> dict[str, Any]:
        """As `runs list --json` has it."""
        made = self.manifest
        return {
            "run": str(self.path),
            "task": made.task,
            "split": made.split,
            "made_by": made.system,
            "imported": bool(made.imported),
            "tag": made.tag,
            "tags": list(self.tags),
            "topics": made.topics,
            "hits": made.hits,
            "depth": made.depth,
            "created": made.created,
            "official": None
            if self.figure is None
            else {"measure": self.figure.measure, "value": self.figure.value},
            "digest": made.digest,
        }


def listed(home: Path, folder: Path, task: str | None = None, tags: Sequence[str] = ()) -> list[ListedRun]:
    """The known runs, and those in `folder`, the latest first: those of a task, and with all of some tags.

    A run whose tags can't be read has none here; `runs show` says why.
    """
    figures = Figures(home)
    found = []
    for run in known_runs.recent(home, folder):
        if task is not None and run.manifest.task != task:
            continue
        held: tuple[str, ...] = ()
        with suppress(SearchappError):
            held = of_runs.of(run.path)
        if set(tags) <= set(held):
            found.append(
                ListedRun(run.path, _shown(run.path, folder), run.manifest, held, _figure(figures, run))
            )
    return found


def _shown(path: Path, folder: Path) -> str:
    inside = folder.resolve()
    return str(path.relative_to(inside)) if path.is_relative_to(inside) else str(path)


def _figure(figures: Figures, run: KnownRun) -> Figure | None:
    try:
        return figures.known(run)
    except (SearchappError, OSError):
        return None
