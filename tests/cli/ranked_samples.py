"""Ranks samples or real data by recipes that learn: `python -m tests.cli.ranked_samples`, see `main`.

`test_same_bytes` compares the runs of several processes and of both engines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from typer.testing import CliRunner

from searchapp import tasks
from searchapp.cli import app
from searchapp.ranking import recipes
from searchapp.tasks.base import Task

Run = Callable[[Sequence[object]], None]

DEPTHS = {"explanation-2019": 200, "explanation-2021": 200}
"""The depths for the real data, since ranking every fact for every question takes minutes."""

SCORED_WITH = {"nlps": ["--cutoff", 50]}
"""Options with which the official scorer accepts a sample: for nlps it requires 500 premises for each statement, and
the sample has 70 in all."""


def split_of(task: Task) -> str:
    """Return a split of the task that has training topics."""
    return next(split for split in ("dev", "fold0", "training") if split in task.info.splits)


def indexed_split(task: str) -> str:
    """Return a split of a task whose files `searchapp index` and `searchapp validate` read."""
    splits = tasks.load(task).info.splits
    return next(split for split in ("dev", "fold0", "test_annotated") if split in splits)


def learning_recipes(task: Task) -> list[str]:
    """List the recipes of a task that learn from training topics, `best` first."""
    result = [name for name in recipes.names(task.name) if recipes.load(task.name, name).learns]
    return sorted(result, key=lambda name: (name != "best", name))


def rank(run: Run, task: Task, data: Path, recipe: str, workers: int, out: Path) -> None:
    """Train the models of a recipe, with this number of processes, and rank."""
    options = ["--data", data, "--split", split_of(task), "--recipe", recipe]
    if recipes.load(task.name, recipe).trained:
        run(["train", task.name, *options, "--workers", workers])
    depth = ["--depth", DEPTHS[task.name]] if task.name in DEPTHS else []
    run(["rank", task.name, *options, *depth, "--out", out])


def main(folder: Path, workers: int, wanted: Sequence[str]) -> None:
    """Rank each `task:recipe:data` into a run directory `task-recipe` of a folder, with this number of processes."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:workers])

    def run(arguments: Sequence[object]) -> None:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exit_code:
            sys.exit(f"{arguments}: {result.stderr}")

    for name, recipe, data in (text.split(":", 2) for text in wanted):
        task = tasks.load(name)
        run(["index", name, "--data", data])
        rank(run, task, Path(data), recipe, workers, folder / f"{name}-{recipe}")


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each file below a folder, except manifests, which contain times."""
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.name != "run.json":
            yield str(file.relative_to(folder)), file.read_bytes()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
