"""`searchapp evaluate`: the official figure of a run, and the honest ones beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli.common import JsonOption, command, print_json, stdout_console, visible, warn
from searchapp.errors import GateMissed
from searchapp.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from searchapp.evaluation.evaluate import Evaluation


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
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
            Path | None, typer.Option(help="Gold file, instead of --data and --split.", show_default=False)
        ] = None,
        nearest: Annotated[
            int | None,
            typer.Option(min=1, help="nlps: the scorer's cut-off; 500 by default.", show_default=False),
        ] = None,
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
        from searchapp.evaluation.evaluate import GoldSource
        from searchapp.evaluation.evaluate import evaluate as score

        source = GoldSource(task=task, data=data, split=split, gold=gold, home=settings.home)
        evaluations = [score(run, source, nearest) for run in runs]
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
    official = evaluations[0].official.measure
    table.add_row(
        f"{official} (official)", *(f"{each.official.value:.6f}" for each in evaluations), style="bold"
    )
    for measure in evaluations[0].measures.values:
        table.add_row(measure, *(f"{each.measures.values[measure]:.6f}" for each in evaluations))
    stdout_console().print(table)
