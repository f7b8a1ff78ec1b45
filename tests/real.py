"""The real data, and indexes and runs of it that all test processes share."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import run_command

FOLDERS = {
    "nlps": "nlps",
    "checkthat": "checkthat",
    "explanation-2019": "worldtree2019",
    "explanation-2021": "worldtree2021",
    "smart-types-dbpedia": "smart",
    "smart-types-wikidata": "smart",
    "smart-relations-dbpedia": "smart",
}
"""The folder of the real data of each task."""


def real_data(task: str) -> Path:
    """Return the folder of a task's real data; skip the test without it."""
    root = os.environ.get("SEARCHAPP_TEST_DATA")
    if not root:
        pytest.skip("set SEARCHAPP_TEST_DATA to the folder that holds the tasks' data")
    return Path(root) / FOLDERS[task]


class RealRuns:
    """Indexes and runs of the real data on the embedded engine, which tests only read.

    Args:
        folder: their folder; the first test process that needs one makes it while the others wait
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def home(self, task: str) -> Path:
        """Return a home directory in which the task's documents are indexed."""
        home = self._home(task)
        with self._lock(task):
            if not (done := home.with_name("indexed")).exists():
                self._command(home, "index", task, "--data", real_data(task))
                done.touch()
        return home

    def run(self, task: str, split: str, recipe: str, *options: object) -> Path:
        """Return the run directory of a split, ranked by a recipe with these options of `searchapp rank`."""
        home = self.home(task)
        name = "-".join([split, recipe, *map(str, options)])
        out = self._folder / task / name
        with self._lock(task):
            if not (done := out.with_name(f"{name}.done")).exists():
                arguments = ["--split", split, "--recipe", recipe, *options, "--out", out]
                self._command(home, "rank", task, "--data", real_data(task), *arguments)
                done.touch()
        return out

    def scored(self, task: str, split: str, recipe: str, *options: object, lenient: bool = False) -> Any:
        """Return the output of `searchapp evaluate --json --per-topic` for such a run."""
        run = self.run(task, split, recipe, *options)
        flags = ["--lenient"] if lenient else []
        output = run.with_name("".join([run.name, *flags, ".json"]))
        with self._lock(task):
            if not output.exists():
                result = self._command(self._home(task), "evaluate", run, "--json", "--per-topic", *flags)
                output.write_text(result, encoding="utf-8")
        return json.loads(output.read_text(encoding="utf-8"))

    def _home(self, task: str) -> Path:
        return self._folder / task / "home"

    def _command(self, home: Path, *arguments: object) -> str:
        unset = {f"SEARCHAPP_{name}": None for name in ("URL", "ENGINE", "INDEX_PREFIX", "SHARED")}
        result = run_command(*arguments, environment={**unset, "SEARCHAPP_HOME": str(home)})
        assert result.code == 0, result.stderr
        return result.stdout

    @contextmanager
    def _lock(self, task: str) -> Iterator[None]:
        """Lock the indexes and runs of a task."""
        (self._folder / task).mkdir(parents=True, exist_ok=True)
        with (self._folder / task / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield  # closing the file, or the end of the process, releases the lock
