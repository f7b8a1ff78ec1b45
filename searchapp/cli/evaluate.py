"""`searchapp evaluate` and `validate`: the figures of a run, and whether the organisers would accept a file."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from searchapp.cli.commands import DataOption, JsonOption, SpreadingCommand, command, data_of, files_named
from searchapp.cli.judgment_options import (
    ByOption,
    GoldOption,
    JudgedOptions,
    judged_grades,
)
from searchapp.cli.output import print_json, say, warn
from searchapp.cli.tables import headings, print_evaluations
from searchapp.config.settings import Settings
from searchapp.errors import GateMissed, UsageError
from searchapp.evaluation.base import ScorerOptions
from searchapp.options import REQUIRED, argument, flag, option
from searchapp.tasks import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from searchapp.app.evaluate import Evaluation, Subject
    from searchapp.tasks.base import Grades


@dataclass(frozen=True, slots=True)
class EvaluatingOptions(JudgedOptions):
    """Whether judgments take the place of gold; TREC runs need no task."""

    qrels: Path | None = option(
        "Score against the grades in a qrels file, TREC's or BEIR's, instead of gold; TREC runs without "
        "--task by the field's measures alone."
    )


app = typer.Typer()


@command(app, cls=SpreadingCommand)
def evaluate(
    settings: Settings,
    *,
    runs: list[Path] = argument(
        "Run directories, official files, or folders of them; with --qrels or --judgments TREC runs.",
        completes="runs",
    ),
    task: str | None = option("Task of an official file or a TREC run.", metavar="TASK", completes="tasks"),
    data: Path | None = option("Folder with the task's official files; a run directory knows its own."),
    split: str | None = option("Split of an official file or a TREC run.", completes="splits"),
    gold: GoldOption = None,
    by: ByOption = None,
    measure: list[str] | None = option(
        "A measure beside the official figures, by default those that the task names: any measure that "
        "ir-measures knows, as AP, RR, P@5, nDCG@10, R(rel=2)@100. Can be given several times.",
        metavar="NAME",
        completes="measures",
    ),
    scorer: ScorerOptions,
    judged: EvaluatingOptions,
    fail_under: float | None = option("Exit with 5 if an official figure is below this."),
    per_topic: bool = flag("With --json: the figures of each topic too."),
    as_json: JsonOption = False,
) -> None:
    """Score runs exactly as the task's organisers do, with an honest figure where theirs misleads.

    A file that their scorer stops on or refuses has no figure: that is an error with exit code 4.
    """
    from searchapp.app.evaluate import GoldSource, Judgments, Subject, evaluate_judged
    from searchapp.app.evaluate import evaluate as score
    from searchapp.evaluation.measures import require_measures

    source = GoldSource(
        task=task,
        data=data,
        split=split,
        gold=files_named(gold or ()),
        home=settings.home,
        options=scorer,
        by=tuple(by or ()),
        measures=tuple(dict.fromkeys(measure or ())),
    )
    require_measures(source.measures)
    if judged.replace_gold(source):
        subjects = [Subject.of(run, source) for run in runs]
        grades = _grades(settings, subjects, judged)
        against = Judgments(grades, judged.unjudged, judged.unseen)
        evaluations = [evaluate_judged(subject, against, source) for subject in subjects]
    else:
        evaluations = score(runs, source)
    if as_json:
        described = [evaluation.to_json(per_topic=per_topic) for evaluation in evaluations]
        print_json(described[0] if len(described) == 1 else {"runs": described})
    else:
        print_evaluations(evaluations)
    for warning in _named(evaluations):
        warn(warning)
    for heading, evaluation in zip(headings(evaluations), evaluations, strict=True):
        gate = evaluation.official.measure
        # Without a task there is no official figure, and the first measure takes its place.
        figures = evaluation.official.values if evaluation.task is not None else evaluation.measures.values
        figure = figures.get(gate, nan)
        # Not `<`: a figure that is not a number has not reached the gate either.
        if fail_under is not None and not figure >= fail_under:
            raise GateMissed(f"{heading}: {gate} {figure:.6f} is below {fail_under:g}")


def _named(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """The warnings of all runs, each once; with the names of the runs that it is about, where there are several."""
    about: dict[str, list[str]] = {}
    for evaluation in evaluations:
        for warning in evaluation.warnings:
            about.setdefault(warning, []).append(evaluation.source)
    for warning, sources in about.items():
        if len(evaluations) == 1 or any(source in warning for source in sources):
            yield warning
        else:
            yield f"{', '.join(dict.fromkeys(sources))}: {warning}"


def _grades(settings: Settings, subjects: Sequence[Subject], judged: JudgedOptions) -> Grades:
    """The grades to score against: of a qrels file, or of the judgments of the runs' task."""
    from searchapp.formats import trec
    from searchapp.judging.exchange import read_grades

    if judged.qrels is not None:
        # A negative grade says of a document that it is worse than not relevant, or that nobody knows: no grade of a
        # task does, but other people's qrels have them.
        of_no_task = all(subject.task is None for subject in subjects)
        return trec.read_qrels(judged.qrels) if of_no_task else read_grades(judged.qrels)
    task = subjects[0].task
    if task is None:
        raise UsageError(
            f"{subjects[0].path} is a TREC run, which does not name its task: name it with --task"
        )
    return judged_grades(settings, task.name, judged.folding, judged.log)


@command(app)
def validate(
    settings: Settings,
    file: Path = argument("An official file."),
    task: str = option("The task that it is for.", default=REQUIRED, metavar="TASK", completes="tasks"),
    split: str | None = option("The split that it is for.", completes="splits"),
    data: DataOption = None,
    nearest: int | None = option("nlps: premises that each statement needs; 500 by default.", min=1),
    as_json: JsonOption = False,
) -> None:
    """Find everything in an official file that the organisers would not accept, with line numbers.

    With --split the file is compared with the questions, and, where their gold is there, with what the organisers'
    scorer stops at.
    """
    from searchapp.app.evaluate import ValidateRequest
    from searchapp.app.evaluate import validate as validated
    from searchapp.tasks.base import Part

    loaded = load(task)
    folder = None if split is None and data is None else data_of(settings, loaded, data)
    part = None if folder is None or split is None else Part(loaded.collection(folder), split)
    problems = validated(ValidateRequest(loaded, file, part, ScorerOptions(nearest)))
    warnings = [str(note) for note in problems.notes.problems] if problems.notes else []
    if as_json:
        found = [
            {"file": problem.file, "kind": problem.kind, "where": problem.where, "detail": problem.detail}
            for problem in problems
        ]
        print_json(
            {
                "task": loaded.name,
                "split": split,
                "file": str(file),
                "valid": not found and not warnings,
                "problems": found,
                "warnings": warnings,
            }
        )
    problems.raise_if_any()
    for warning in warnings:
        warn(warning)
    if warnings:
        say(settings, f"{file}: the organisers' format checker lets it pass, and their scorer stops on it")
    else:
        say(settings, f"{file}: a valid {loaded.name} file" + (f" for the split {split}" if split else ""))
