"""`searchapp evaluate`: the official figure of a run, and the honest ones beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli.common import JsonOption, command, print_json, stdout_console, visible, warn
from searchapp.cli.spreading import SpreadingCommand, files_named
from searchapp.errors import GateMissed
from searchapp.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.table import Table

    from searchapp.evaluation.base import Breakdown
    from searchapp.evaluation.evaluate import Evaluation


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app, cls=SpreadingCommand)
    def evaluate(
        settings: Settings,
        runs: Annotated[
            list[Path], typer.Argument(help="Run directories, or official files.", show_default=False)
        ],
        task: Annotated[
            str | None, typer.Option(help="Task of an official file.", show_default=False)
        ] = None,
        data: Annotated[
            Path | None,
            typer.Option(
                help="Folder with the task's official files; a run directory knows its own.",
                show_default=False,
            ),
        ] = None,
        split: Annotated[
            str | None, typer.Option(help="Split of an official file.", show_default=False)
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
                help="Break the figures down: see `searchapp tasks` for the groups of a task, or all.",
                show_default=False,
            ),
        ] = None,
        nearest: Annotated[
            int | None,
            typer.Option(min=1, help="nlps: the scorer's cut-off; 500 by default.", show_default=False),
        ] = None,
        hierarchy: Annotated[
            Path | None,
            typer.Option(help="smart-types-dbpedia: the type hierarchy, a TSV file.", show_default=False),
        ] = None,
        kb: Annotated[
            str | None,
            typer.Option(help="smart-relations: the scorer's option of this name.", show_default=False),
        ] = None,
        lenient: Annotated[
            bool,
            typer.Option(
                "--lenient",
                help="checkthat: leave out debates that the official scorer stops on, for they are too short.",
            ),
        ] = False,
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
        evaluations = score(runs, source)
        if as_json:
            described = [evaluation.to_json(per_topic=per_topic) for evaluation in evaluations]
            print_json(described[0] if len(described) == 1 else {"runs": described})
        else:
            print_evaluations(evaluations)
        for warning in dict.fromkeys(warning for each in evaluations for warning in each.warnings):
            warn(warning)
        for evaluation in evaluations:
            official = evaluation.official
            # Not `<`: a figure that is not a number has not reached the gate either.
            if fail_under is not None and not official.value >= fail_under:
                raise GateMissed(
                    f"{evaluation.source}: {official.measure} {official.value:.6f} is below {fail_under:g}"
                )


def print_evaluations(evaluations: Sequence[Evaluation]) -> None:
    """Print the figures of runs, a column a run."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("measure")
    for evaluation in evaluations:
        table.add_column(Text(visible(evaluation.source)), justify="right")
    table.add_row("topics", *(str(evaluation.topics) for evaluation in evaluations))
    official = _in_order(each.official.values for each in evaluations)
    for measure in official:
        figures = (_figure(each.official.values.get(measure)) for each in evaluations)
        table.add_row(f"{measure} (official)", *figures, style="bold")
    for measure in _in_order(each.official.honest for each in evaluations):
        figures = (_figure(each.official.honest.get(measure)) for each in evaluations)
        table.add_row(f"{measure} (honest)", *figures)
    for measure in _in_order(each.measures.values for each in evaluations):
        table.add_row(measure, *(_figure(each.measures.values.get(measure)) for each in evaluations))
    console = stdout_console()
    console.print(table)
    for evaluation in evaluations:
        for breakdown in evaluation.breakdowns:
            console.print()
            console.print(_breakdown(evaluation, breakdown))


def _breakdown(evaluation: Evaluation, breakdown: Breakdown) -> Table:
    from rich.table import Table
    from rich.text import Text

    title = Text(visible(f"{evaluation.source}: {breakdown.title}"), style="bold")
    table = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    table.add_column(breakdown.name)
    table.add_column(breakdown.counted, justify="right")
    measures = _in_order(row.values for row in breakdown.rows)
    for measure in measures:
        table.add_column(measure, justify="right")
    for row in breakdown.rows:
        table.add_row(
            Text(visible(row.group)), str(row.count), *(_figure(row.values.get(name)) for name in measures)
        )
    return table


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.6f}"  # a count, such as R, is a whole number


def _in_order(figures: Iterable[Mapping[str, float]]) -> list[str]:
    """The names of all figures, in the order in which they come first."""
    return list(dict.fromkeys(name for some in figures for name in some))
