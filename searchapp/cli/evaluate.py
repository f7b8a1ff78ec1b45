"""`searchapp evaluate` and `validate`: the figures of a run, and whether the organisers would accept a file."""

from __future__ import annotations

from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.commands import DataOption, JsonOption, SpreadingCommand, command, data_of, files_named
from searchapp.cli.judgment_options import (
    AnnotatorsOption,
    ByOption,
    GoldOption,
    HierarchyOption,
    JudgmentsOption,
    KbOption,
    LenientOption,
    LogOption,
    NearestOption,
    RuleOption,
    UnjudgedOption,
    UnseenOption,
    judged_grades,
)
from searchapp.cli.output import print_json, say, warn
from searchapp.cli.tables import headings, print_evaluations
from searchapp.config.settings import Settings
from searchapp.errors import GateMissed, UsageError
from searchapp.judging.judgments import Folding, Rule, Unjudged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from searchapp.app.evaluate import Evaluation, Subject
    from searchapp.tasks.base import Grades


def register_evaluate(app: typer.Typer) -> None:
    """Add the command."""

    @command(app, cls=SpreadingCommand)
    def evaluate(
        settings: Settings,
        runs: Annotated[
            list[Path],
            typer.Argument(
                help="Run directories, official files, or folders of them; with --qrels or --judgments TREC runs.",
                show_default=False,
                autocompletion=complete.runs,
            ),
        ],
        task: Annotated[
            str | None,
            typer.Option(
                help="Task of an official file or a TREC run.",
                show_default=False,
                metavar="TASK",
                autocompletion=complete.tasks,
            ),
        ] = None,
        data: Annotated[
            Path | None,
            typer.Option(
                help="Folder with the task's official files; a run directory knows its own.",
                show_default=False,
            ),
        ] = None,
        split: Annotated[
            str | None,
            typer.Option(
                help="Split of an official file or a TREC run.",
                show_default=False,
                autocompletion=complete.splits,
            ),
        ] = None,
        gold: GoldOption = None,
        by: ByOption = None,
        measure: Annotated[
            list[str] | None,
            typer.Option(
                metavar="NAME",
                help="A measure beside the official figures, by default those that the task names: any measure that "
                "ir-measures knows, as AP, RR, P@5, nDCG@10, R(rel=2)@100. Can be given several times.",
                show_default=False,
                autocompletion=complete.measures,
            ),
        ] = None,
        nearest: NearestOption = None,
        hierarchy: HierarchyOption = None,
        kb: KbOption = None,
        lenient: LenientOption = False,
        judgments: JudgmentsOption = False,
        qrels: Annotated[
            Path | None,
            typer.Option(
                help="Score against the grades in a qrels file, TREC's or BEIR's, instead of gold; TREC runs without "
                "--task by the field's measures alone.",
                show_default=False,
            ),
        ] = None,
        unjudged: UnjudgedOption = Unjudged.nonrelevant,
        rule: RuleOption = Rule.majority,
        annotator: AnnotatorsOption = None,
        unseen: UnseenOption = False,
        log: LogOption = None,
        fail_under: Annotated[
            float | None,
            typer.Option(help="Exit with 5 if an official figure is below this.", show_default=False),
        ] = None,
        per_topic: Annotated[
            bool, typer.Option("--per-topic", help="With --json: the figures of each topic too.")
        ] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Score runs exactly as the task's organisers do, with an honest figure where theirs misleads.

        A file that their scorer stops on or refuses has no figure: that is an error with exit code 4.
        """
        from searchapp.app.evaluate import GoldSource
        from searchapp.app.evaluate import evaluate as score
        from searchapp.evaluation.base import ScorerOptions
        from searchapp.evaluation.measures import require_measures

        source = GoldSource(
            task=task,
            data=data,
            split=split,
            gold=files_named(gold or ()),
            home=settings.home,
            options=ScorerOptions(nearest, hierarchy, kb, lenient=lenient),
            by=tuple(by or ()),
            measures=tuple(dict.fromkeys(measure or ())),
        )
        require_measures(source.measures)
        if judgments or qrels is not None:
            from searchapp.app.evaluate import Judgments, Subject, evaluate_judged

            if source.gold or source.by:
                raise UsageError(
                    "--gold and --by need the organisers' gold: leave them out with --judgments or --qrels"
                )
            subjects = [Subject.of(run, source) for run in runs]
            grades = _grades(settings, subjects, qrels, Folding(rule, annotator), log)
            against = Judgments(grades, unjudged, unseen)
            evaluations = [evaluate_judged(subject, against, source) for subject in subjects]
        elif unseen:
            raise UsageError("--unseen is for --judgments and --qrels: the organisers' gold is scored whole")
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
            figures = (
                evaluation.official.values if evaluation.task is not None else evaluation.measures.values
            )
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


def _grades(
    settings: Settings,
    subjects: Sequence[Subject],
    qrels: Path | None,
    folding: Folding,
    log: Path | None,
) -> Grades:
    """The grades to score against: of a qrels file, or of the judgments of the runs' task."""
    from searchapp.formats import trec
    from searchapp.judging.exchange import read_grades

    if qrels is not None:
        # A negative grade says of a document that it is worse than not relevant, or that nobody knows: no grade of a
        # task does, but other people's qrels have them.
        of_no_task = all(subject.task is None for subject in subjects)
        return trec.read_qrels(qrels) if of_no_task else read_grades(qrels)
    task = subjects[0].task
    if task is None:
        raise UsageError(
            f"{subjects[0].path} is a TREC run, which does not name its task: name it with --task"
        )
    return judged_grades(settings, task.name, folding, log)


def register_validate(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def validate(
        settings: Settings,
        file: Annotated[Path, typer.Argument(help="An official file.", show_default=False)],
        task: Annotated[
            str,
            typer.Option(
                help="The task that it is for.",
                show_default=False,
                metavar="TASK",
                autocompletion=complete.tasks,
            ),
        ],
        split: Annotated[
            str | None,
            typer.Option(
                help="The split that it is for.", show_default=False, autocompletion=complete.splits
            ),
        ] = None,
        data: DataOption = None,
        nearest: Annotated[
            int | None,
            typer.Option(
                min=1, help="nlps: premises that each statement needs; 500 by default.", show_default=False
            ),
        ] = None,
        as_json: JsonOption = False,
    ) -> None:
        """Find everything in an official file that the organisers would not accept, with line numbers.

        With --split the file is compared with the questions, and, where their gold is there, with what the organisers'
        scorer stops at.
        """
        from searchapp.app.evaluate import ValidateRequest
        from searchapp.app.evaluate import validate as validated
        from searchapp.evaluation.base import ScorerOptions
        from searchapp.tasks import load
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
            say(
                settings, f"{file}: the organisers' format checker lets it pass, and their scorer stops on it"
            )
        else:
            say(
                settings, f"{file}: a valid {loaded.name} file" + (f" for the split {split}" if split else "")
            )


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    register_validate(app)
    register_evaluate(app)
