"""The official figures of runs, each computed once: as long as a run and its gold stay the same, so does its figure.

    <home>/figures.jsonl        {"key": "9f2c…", "measure": "MAP@500", "value": 0.359}

It is a convenience, see `kept`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import searchapp
from searchapp.app.evaluate import Evaluation, GoldSource, evaluate
from searchapp.app.kept import KeptLines
from searchapp.app.known_runs import KnownRun
from searchapp.digests import digest_json
from searchapp.tasks import load

FILE = "figures.jsonl"

MOST = 2_000
"""Figures that are kept."""


@dataclass(frozen=True, slots=True)
class Figure:
    """An official figure, as a fraction, and what it is called."""

    measure: str
    value: float


class Figures:
    """The figures of runs that are known; its methods may be called from several threads, one after the other."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._kept = KeptLines(home / FILE, MOST)
        self._known: dict[str, Figure] = {}
        for one in self._kept.read():
            key, measure, value = one.get("key"), one.get("measure"), one.get("value")
            if isinstance(key, str) and isinstance(measure, str) and isinstance(value, int | float):
                self._known[key] = Figure(measure, float(value))

    def known(self, run: KnownRun) -> Figure | None:
        """The official figure of a run, if it was computed before.

        Raises:
            SearchappError: nobody can say what the gold of the run is.
            OSError: one of its files can't be looked at.
        """
        return self._known.get(self._key(run))

    def evaluated(self, run: KnownRun) -> Evaluation:
        """A run scored as the organisers do; its figure is kept.

        Raises:
            as `evaluate` does.
        """
        (found,) = evaluate([run.path], GoldSource(home=self._home))
        official = found.official
        value = official.values.get(official.measure)
        if value is not None and math.isfinite(value):
            key = self._key(run)
            self._known[key] = Figure(official.measure, value)
            self._kept.add({"key": key, "measure": official.measure, "value": value})
        return found

    def _key(self, run: KnownRun) -> str:
        """What the figure depends on: the run, and the files with its rankings and its gold as they are now."""
        collection = load(run.task).collection(Path(run.manifest.data))
        files = [run.path / run.manifest.rankings, *collection.gold_files(run.manifest.split)]
        stamps = [(str(file), (seen := file.stat()).st_size, seen.st_mtime_ns) for file in files]
        return digest_json([searchapp.__version__, run.manifest.digest, stamps])
