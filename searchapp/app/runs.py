"""List run directories with their tags and official figures.

    <home>/runs.jsonl       {"run": "/home/ann/work/runs/dev"}                      runs that `rank` has written
    <home>/figures.jsonl    {"key": "9f2c…", "measure": "MAP@500", "value": 0.359}  by digest of run and gold

Both files are caches. Runs in the working directory are listed too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import searchapp
from searchapp.app.evaluate import Evaluation, GoldSource, evaluate
from searchapp.app.json_lines import JsonLines
from searchapp.errors import SearchappError
from searchapp.files import digest_json, file_states
from searchapp.lucene.dataclass import dataclass
from searchapp.runs import directory as of_runs
from searchapp.runs.directory import MANIFEST, RANKINGS, Manifest, read_manifest
from searchapp.tasks import load

RUNS_FILE = "runs.jsonl"

MOST_RUNS = 500  # number of remembered directories, see `JsonLines`

RUNS = "runs"  # the default folder of runs, in the home directory and in the working directory

MOST_ENTRIES = 1_000  # entries of a folder that are checked

RECENT = 100  # listed runs


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run directory and its manifest."""

    path: Path
    manifest: Manifest

    @property
    def recipe(self) -> str:
        return self.manifest.system

    @property
    def task(self) -> str:
        varied = self.manifest.variant
        if varied and not Path(varied).is_file():  # the task itself has the same files and gold
            return self.manifest.task_file or self.manifest.task
        return self.manifest.task_reference


def remember_run(home: Path, run: Path) -> None:
    """Remember a run directory that was written."""
    _runs_file(home).add({"run": str(run.resolve())})


def recent_runs(home: Path, folder: Path) -> list[KnownRun]:
    """Return the remembered run directories, and those in `folder` and in the home directory, the latest first."""
    known: dict[Path, KnownRun] = {}
    for path in (
        *_remembered(home),
        *_folders_in(home / RUNS),
        *_folders_in(folder),
        *_folders_in(folder / RUNS),
    ):
        with suppress(SearchappError, OSError, ValueError):
            path = path.resolve()
            if path not in known and (path / MANIFEST).is_file():
                known[path] = KnownRun(path, read_manifest(path))
    latest = sorted(known.values(), key=lambda run: (run.manifest.created, str(run.path)), reverse=True)
    return latest[:RECENT]


def _runs_file(home: Path) -> JsonLines:
    return JsonLines(home / RUNS_FILE, MOST_RUNS, file_names=True)


def _remembered(home: Path) -> Sequence[Path]:
    paths = [described.get("run") for described in _runs_file(home).read()]
    return [Path(path) for path in dict.fromkeys(reversed(paths)) if isinstance(path, str)][:MOST_RUNS]


def _folders_in(folder: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, MOST_ENTRIES):
            if not entry.name.startswith(".") and entry.is_dir():
                yield Path(entry.path)


FIGURES_FILE = "figures.jsonl"

MOST_FIGURES = 2_000


@dataclass(frozen=True, slots=True)
class Figure:
    """An official figure, as a fraction."""

    measure: str
    value: float


class FigureCache:
    """A cache of the figures of runs; threads may use it in turn."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._file = JsonLines(home / FIGURES_FILE, MOST_FIGURES)
        self._known: dict[str, Figure] = {}
        for line in self._file.read():
            key, measure, value = line.get("key"), line.get("measure"), line.get("value")
            if isinstance(key, str) and isinstance(measure, str) and isinstance(value, int | float):
                self._known[key] = Figure(measure, float(value))

    def known(self, run: KnownRun) -> Figure | None:
        """Return the cached official figure of a run, if there is one.

        Raises:
            SearchappError: the gold of the run is unknown.
            OSError: a file can't be accessed.
        """
        return self._known.get(self._key(run))

    def evaluated(self, run: KnownRun) -> Evaluation:
        """Score a run and cache its official figure.

        Raises:
            as `evaluate` does.
        """
        (evaluation,) = evaluate([run.path], GoldSource(home=self._home))
        official = evaluation.official
        value = official.values.get(official.measure)
        if value is not None and math.isfinite(value):
            key = self._key(run)
            self._known[key] = Figure(official.measure, value)
            self._file.add({"key": key, "measure": official.measure, "value": value})
        return evaluation

    def _key(self, run: KnownRun) -> str:
        collection = load(run.task).collection(Path(run.manifest.data))
        states = file_states([run.path / RANKINGS, *collection.gold_files(run.manifest.split)])
        return digest_json([searchapp.__version__, run.manifest.digest, states])


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run directory with its tags."""

    path: Path
    shown: str  # the displayed path
    manifest: Manifest
    tags: tuple[str, ...]
    figure: Figure | None  # the cached official figure

    @property
    def figure_shown(self) -> str:
        return "" if self.figure is None else f"{self.figure.measure} {self.figure.value:.4f}"

    def to_json(self) -> dict[str, Any]:
        made = self.manifest
        return {
            "run": str(self.path),
            "task": made.task,
            "split": made.split,
            "system": made.system,
            "imported": bool(made.imported),
            "tag": made.tag,
            "tags": list(self.tags),
            "topics": made.topics,
            "hits": made.hits,
            "depth": made.depth,
            "created": made.created,
            "official": None if self.figure is None else asdict(self.figure),
            "digest": made.digest,
        }


def list_runs(home: Path, folder: Path, task: str | None = None, tags: Sequence[str] = ()) -> list[ListedRun]:
    """Return the known runs, and those in `folder`, of one task or all and with these tags, the latest first."""
    figures = FigureCache(home)
    inside = folder.resolve()
    listed = []
    for run in recent_runs(home, folder):
        if task is not None and run.manifest.task != task:
            continue
        tags_of_run: tuple[str, ...] = ()
        with suppress(SearchappError):
            tags_of_run = of_runs.tags_of(run.path)
        if not set(tags) <= set(tags_of_run):
            continue
        figure = None
        with suppress(SearchappError, OSError):
            figure = figures.known(run)
        path = run.path
        shown = str(path.relative_to(inside)) if path.is_relative_to(inside) else str(path)
        listed.append(ListedRun(path, shown, run.manifest, tags_of_run, figure))
    return listed
