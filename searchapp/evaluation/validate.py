"""Whether the organisers would accept an official file: its format, and what their scorer stops at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from searchapp.errors import NotScorable, UsageError
from searchapp.evaluation.base import ScorerOptions
from searchapp.formats.problems import Problems
from searchapp.tasks.base import Task


def validate(
    task: Task, path: Path, data: Path | None, split: str | None, options: ScorerOptions
) -> Problems:
    """Everything that is wrong with an official file, as `Task.validate_official` finds it.

    A file that their scorer stops on always has a problem: where nothing else is wrong with it, and the gold is
    there, it is scored, and what stops that is the problem.

    Raises:
        UsageError: the task's files show nothing alone, and it isn't said which split they answer.
        DataError: the file, or the task's own files, can't be read.
    """
    problems = Problems()
    try:
        task.validate_official(path, data, split, options, problems)
        if data is not None and split is not None and not len(problems):
            _score(task, path, data, split, options)
    except NotScorable as error:
        detail = f"{error.problem.removeprefix(f'{path}: ')} (the official scorer: {error.official})"
        problems.add(path, "not scorable", detail=detail, skippable=False)
    return problems


def _score(task: Task, path: Path, data: Path, split: str, options: ScorerOptions) -> None:
    """Score a file that answers a split; where there is no gold, there is nothing to stop at.

    Raises:
        NotScorable: the official scorer stops.
    """
    if task.is_masked(data, split):
        return
    try:
        gold = task.gold_files(data, split)
    except UsageError:  # a split of a user's own task without gold
        return
    if task.scorer.files_make_one and len(gold) > 1:
        gold = [file for file in gold if file.name == path.name]
    task.scorer.score(task.scorer.read([path]), gold, replace(options, split=split))
