"""Rankings of the real data that several tests look at, made once for all of them and in whatever process they run."""

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
    """The folder of a task's real data; skips the test where there is none."""
    root = os.environ.get("SEARCHAPP_TEST_DATA")
    if not root:
        pytest.skip("set SEARCHAPP_TEST_DATA to the folder that holds the tasks' data")
    return Path(root) / FOLDERS[task]


class RealRuns:
    """Indexes and runs of the real data on the embedded engine, which tests read and leave as they are.

    Args:
        folder: where all test processes keep them; the first that wants one makes it, while the others wait
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def home(self, task: str) -> Path:
        """A home folder of searchapp in which the task's documents are indexed."""
        home = self._home(task)
        with self._alone(task):
            if not (done := home.with_name("indexed")).exists():
                self._command(home, "index", task, "--data", real_data(task))
                done.touch()
        return home

    def run(self, task: str, split: str, recipe: str, *options: object) -> Path:
        """The run directory of a split, ranked by a recipe and with these options of `searchapp rank`."""
        home = self.home(task)
        name = "-".join([split, recipe, *map(str, options)])
        out = self._folder / task / name
        with self._alone(task):
            if not (done := out.with_name(f"{name}.done")).exists():
                chosen = ["--split", split, "--recipe", recipe, *options, "--out", out]
                self._command(home, "rank", task, "--data", real_data(task), *chosen)
                done.touch()
        return out

    def scored(self, task: str, split: str, recipe: str, *options: object, lenient: bool = False) -> Any:
        """What `searchapp evaluate --json --per-topic` says of such a run."""
        run = self.run(task, split, recipe, *options)
        how = ["--lenient"] if lenient else []
        said = run.with_name("".join([run.name, *how, ".json"]))
        with self._alone(task):
            if not said.exists():
                result = self._command(self._home(task), "evaluate", run, "--json", "--per-topic", *how)
                said.write_text(result, encoding="utf-8")
        return json.loads(said.read_text(encoding="utf-8"))

    def _home(self, task: str) -> Path:
        return self._folder / task / "home"

    def _command(self, home: Path, *arguments: object) -> str:
        elsewhere = {f"SEARCHAPP_{name}": None for name in ("URL", "ENGINE", "INDEX_PREFIX", "SHARED")}
        result = run_command(*arguments, environment={**elsewhere, "SEARCHAPP_HOME": str(home)})
        assert result.code == 0, result.stderr
        return result.stdout

    @contextmanager
    def _alone(self, task: str) -> Iterator[None]:
        """Be the only process that makes something of a task."""
        (self._folder / task).mkdir(parents=True, exist_ok=True)
        with (self._folder / task / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield  # closing the file gives the lock back, as does the end of the process
