"""Which run directories there are: those that `rank` has written, and those that lie where runs are looked for.

    <home>/runs.jsonl       {"run": "/home/ann/work/runs/dev"}

A run directory that is gone is forgotten. What is remembered is a convenience, see `kept`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from searchapp.app.kept import KeptLines
from searchapp.errors import SearchappError
from searchapp.runs.directory import MANIFEST, Manifest, read_manifest

FILE = "runs.jsonl"

MOST = 500
"""Directories that are remembered."""

RUNS = "runs"
"""The folder, in the home folder and in the one where one works, that people keep runs in."""

MOST_ENTRIES = 1_000
"""Of a folder that is looked through."""

RECENT = 100
"""Runs that are listed."""


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run directory and its manifest."""

    path: Path
    manifest: Manifest

    @property
    def recipe(self) -> str:
        """The name of the recipe that it was ranked with; of an imported run the tool."""
        return self.manifest.system

    @property
    def task(self) -> str:
        """What names its task: a name or, for a task of the user's own, a file."""
        varied = self.manifest.variant.get("path")
        if varied and not Path(varied).is_file():  # the task itself has the same files and gold
            return str(self.manifest.task_file.get("path") or self.manifest.task)
        return self.manifest.task_reference


def remember(home: Path, run: Path) -> None:
    """Let a run directory that was written be found again."""
    _kept(home).add({"run": str(run.resolve())})


def recent(home: Path, folder: Path) -> list[KnownRun]:
    """The run directories that are known, and those in `folder` and in the home folder, the latest first.

    What is no run directory, or can't be read, is left out.
    """
    found: dict[Path, KnownRun] = {}
    for path in (*_remembered(home), *_lying_in(home / RUNS), *_lying_in(folder), *_lying_in(folder / RUNS)):
        with suppress(SearchappError, OSError, ValueError):
            place = path.resolve()
            if place not in found and (place / MANIFEST).is_file():
                found[place] = KnownRun(place, read_manifest(place))
    latest = sorted(found.values(), key=lambda run: (run.manifest.created, str(run.path)), reverse=True)
    return latest[:RECENT]


def _kept(home: Path) -> KeptLines:
    return KeptLines(home / FILE, MOST, file_names=True)


def _remembered(home: Path) -> Sequence[Path]:
    """The latest ones that are remembered, each once."""
    paths = [described.get("run") for described in _kept(home).read()]
    return [Path(path) for path in dict.fromkeys(reversed(paths)) if isinstance(path, str)][:MOST]


def _lying_in(folder: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, MOST_ENTRIES):
            if not entry.name.startswith(".") and entry.is_dir():
                yield Path(entry.path)
