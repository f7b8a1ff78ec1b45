"""Whether the organisers would accept an official file: its format, and what their scorer stops at."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from searchapp.app.scoring import official_figures
from searchapp.errors import NotScorable, UsageError
from searchapp.evaluation.base import GoldFiles, Scorer, ScorerOptions
from searchapp.formats.problems import Problems
from searchapp.tasks.base import Collection, OfficialFile, P, Part, Task


@dataclass(frozen=True, slots=True)
class ValidateRequest:
    """An official file of a task; `part` is the split that it answers, without which it is looked at by itself."""

    task: Task
    path: Path
    part: Part[Collection] | None = None
    options: ScorerOptions = field(default_factory=ScorerOptions)


def validate(request: ValidateRequest) -> Problems:
    """Everything that is wrong with an official file, as `OfficialFormat.validate` finds it.

    A file that their scorer stops on always has a problem: where nothing else is wrong with it, and the gold is
    there, it is scored, and what stops that is the problem.

    Raises:
        UsageError: the task's files show nothing alone, and it isn't said which split they answer.
        DataError: the file, or the task's own files, can't be read.
    """
    problems = Problems()
    path, part, official = request.path, request.part, request.task.official
    try:
        official.validate(OfficialFile(path, part, request.options), problems)
        if part is not None and not len(problems):
            _score(official.scorer, path, part, request.options)
    except NotScorable as error:
        detail = f"{error.problem.removeprefix(f'{path}: ')} (the official scorer: {error.official})"
        problems.add(path, "not scorable", detail=detail, skippable=False)
    return problems


def _score(scorer: Scorer[P], path: Path, part: Part[Collection], options: ScorerOptions) -> None:
    """Score a file that answers a split; where there is no gold, there is nothing to stop at.

    Raises:
        NotScorable: the official scorer stops.
    """
    if part.collection.is_masked(part.split):
        return
    try:
        gold = part.collection.gold_files(part.split)
    except UsageError:  # a split of a user's own task without gold
        return
    if scorer.files_make_one and len(gold) > 1:
        gold = [file for file in gold if file.name == path.name]
    official_figures(scorer, scorer.read([path]), GoldFiles(gold, replace(options, split=part.split)))
