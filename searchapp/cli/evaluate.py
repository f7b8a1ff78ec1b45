"""`searchapp evaluate`: the official figure of a run, and the honest ones beside it."""

from __future__ import annotations

from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.common import JsonOption, command
from searchapp.cli.figures import print_evaluations
from searchapp.cli.judgments.options import AnnotatorsOption, LogOption, of_task, open_log, require_known
from searchapp.cli.output import print_json, warn
from searchapp.cli.spreading import SpreadingCommand, files_named
from searchapp.errors import GateMissed, UsageError
from searchapp.judging.fold import Folding, Rule
from searchapp.judging.treatment import Unjudged
from searchapp.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from searchapp.evaluation.evaluate import GoldSource
    from searchapp.tasks.base import Grades


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app, cls=SpreadingCommand)
    def evaluate(
        settings: Settings,
        runs: Annotated[
            list[Path],
            typer.Argument(
                help="Run directories, or official files.", show_default=False, autocompletion=complete.runs
            ),
        ],
        task: Annotated[
            str | None,
            typer.Option(
                help="Task of an official file.",
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
                help="Split of an official file.", show_default=False, autocompletion=complete.splits
            ),
        ] = None,
        gold: Annotated[
            list[Path] | None,
            typer.Option(
                help="Gold file, instead of --data and --split; several in the order of theirs, as `--gold A B`, "
                "`--gold A,B` or `--gold A --gold B`.",
                show_default=False,
            ),
        ] = None,
        by: Annotated[
            list[str] | None,
            typer.Option(
                metavar="GROUP",
                help="Break the figures down: `searchapp tasks show TASK` says by what; `all` by each. Can be given "
                "several times.",
                show_default=False,
                autocompletion=complete.breakdowns,
            ),
        ] = None,
        nearest: Annotated[
            int | None,
            typer.Option(min=1, help="nlps: the scorer's cut-off; 500 by default.", show_default=False),
        ] = None,
        hierarchy: Annotated[
            Path | None,
            typer.Option(
                help="smart-types-dbpedia: the TSV file of the type hierarchy, where it is not in --data.",
                show_default=False,
            ),
        ] = None,
        kb: Annotated[
            str | None,
            typer.Option(
                help="smart-relations: the knowledge base that the organisers' script is told, by default the task's.",
                show_default=False,
            ),
        ] = None,
        lenient: Annotated[
            bool,
            typer.Option(
                "--lenient",
                help="Go on, with a warning, where the official scorer stops. checkthat: leave out debates that are "
                "too short for it; smart-types-wikidata: compare whole labels. No effect on other tasks.",
            ),
        ] = False,
        judgments: Annotated[
            bool, typer.Option("--judgments", help="Score against what people have judged, instead of gold.")
        ] = False,
        qrels: Annotated[
            Path | None,
            typer.Option(
                help="Score against the grades in a TREC qrels file, instead of gold.", show_default=False
            ),
        ] = None,
        unjudged: Annotated[
            Unjudged, typer.Option(help="What retrieved documents without a grade count as.")
        ] = Unjudged.nonrelevant,
        rule: Annotated[
            Rule, typer.Option(help="--judgments: how several opinions become one, where nobody has decided.")
        ] = Rule.majority,
        annotator: AnnotatorsOption = None,
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
        """Score runs exactly as the task's organisers do, and honestly beside it.

        A file that their scorer stops on or refuses has no figure: that is an error with exit code 4.
        """
        from searchapp.evaluation.base import ScorerOptions
        from searchapp.evaluation.evaluate import GoldSource
        from searchapp.evaluation.evaluate import evaluate as score

        source = GoldSource(
            task=task,
            data=data,
            split=split,
            gold=files_named(gold or ()),
            home=settings.home,
            options=ScorerOptions(nearest, hierarchy, kb, lenient=lenient),
            by=tuple(by or ()),
        )
        if judgments or qrels is not None:
            from searchapp.evaluation.judged import evaluate_judged

            grades = _grades(settings, runs, source, qrels, Folding(rule, annotator), log)
            evaluations = [evaluate_judged(run, grades, unjudged, source.options, task) for run in runs]
        else:
            evaluations = score(runs, source)
        if as_json:
            described = [evaluation.to_json(per_topic=per_topic) for evaluation in evaluations]
            print_json(described[0] if len(described) == 1 else {"runs": described})
        else:
            print_evaluations(evaluations)
        for warning in dict.fromkeys(warning for each in evaluations for warning in each.warnings):
            warn(warning)
        for evaluation in evaluations:
            measure = evaluation.official.measure
            figure = evaluation.official.values.get(measure, nan)
            # Not `<`: a figure that is not a number has not reached the gate either.
            if fail_under is not None and not figure >= fail_under:
                raise GateMissed(f"{evaluation.source}: {measure} {figure:.6f} is below {fail_under:g}")


def _grades(
    settings: Settings,
    runs: Sequence[Path],
    source: GoldSource,
    qrels: Path | None,
    folding: Folding,
    log: Path | None,
) -> Grades:
    """The grades to score against: of a qrels file, or of the judgments of the runs' task."""
    from searchapp.evaluation.evaluate import task_of
    from searchapp.judging.exchange import read_grades
    from searchapp.judging.fold import judged
    from searchapp.runs import directory

    if source.gold or source.by:
        raise UsageError(
            "--gold and --by need the organisers' gold: leave them out with --judgments or --qrels"
        )
    for run in runs:
        if not run.is_dir():
            raise UsageError(
                f"{run} is no run directory: judgments are of documents, which a run directory names"
            )
    if qrels is not None:
        return read_grades(qrels)
    with open_log(settings, log) as opened:
        name = task_of(directory.read(runs[0]), source.task).name
        _, view = of_task(opened, name)
    require_known(folding.annotators, view, name)
    return judged(view, folding).grades
