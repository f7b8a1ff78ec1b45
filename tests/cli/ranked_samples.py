"""Ranks the samples, or the real data, by recipes that learn: `python -m tests.cli.ranked_samples`, see `main`.

`test_same_bytes` compares what comes of it in several processes and on both engines.
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
"""Of the real data; ranking every fact for every question takes minutes."""

SCORED_WITH = {"nlps": ["--cutoff", 50]}
"""The options by which the official scorer takes a sample, where it does not take it as it is: that of nlps needs 500
premises for each statement, and its sample has 70 in all."""


def split_of(task: Task) -> str:
    """The split that is ranked: one that others are solved for."""
    return next(one for one in ("dev", "fold0", "training") if one in task.info.splits)


def learning_recipes(task: Task) -> list[str]:
    """The recipes of a task that learn from solved topics, `best` before the others."""
    result = [name for name in recipes.names(task.name) if recipes.load(task.name, name).learns]
    return sorted(result, key=lambda name: (name != "best", name))


def rank(run: Run, task: Task, data: Path, recipe: str, workers: int, out: Path) -> None:
    """Train what is to be trained, with so many processes, and rank."""
    options = ["--data", data, "--split", split_of(task), "--recipe", recipe]
    if recipes.load(task.name, recipe).trained:
        run(["train", task.name, *options, "--workers", workers])
    depth = ["--depth", DEPTHS[task.name]] if task.name in DEPTHS else []
    run(["rank", task.name, *options, *depth, "--out", out])


def main(folder: Path, workers: int, wanted: Sequence[str]) -> None:
    """Rank `task:recipe:data` each into a run directory `task-recipe` of a folder, with so many processes."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:workers])

    def run(arguments: Sequence[object]) -> None:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exit_code:
            sys.exit(f"{arguments}: {result.stderr}")

    for name, recipe, data in (one.split(":", 2) for one in wanted):
        task = tasks.load(name)
        run(["index", name, "--data", data])
        rank(run, task, Path(data), recipe, workers, folder / f"{name}-{recipe}")


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Each file below a folder but manifests, which have times in them."""
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.name != "run.json":
            yield str(file.relative_to(folder)), file.read_bytes()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
