"""`searchapp export`: write a run in the format that others read."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from searchapp.cli.common import command, say
from searchapp.errors import DataError
from searchapp.settings import Settings


class Format(StrEnum):
    """What a run can be exported as."""

    official = "official"
    trec = "trec"


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def export(
        settings: Settings,
        run: Annotated[Path, typer.Argument(help="A run directory.", show_default=False)],
        out: Annotated[Path, typer.Option(help="File to write.", show_default=False)],
        format_: Annotated[
            Format, typer.Option("--format", help="The task's official file, or a TREC run.")
        ] = Format.official,
        nearest: Annotated[
            int | None,
            typer.Option(
                min=1,
                help="nlps: premises that each statement needs in the official file; 500 by default.",
                show_default=False,
            ),
        ] = None,
        overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    ) -> None:
        """Write a run as the file that the task's organisers accept, or as a TREC run.

        The order of the rows is the ranking. In a TREC run equal scores may follow each other: tools that sort
        by score again, such as trec_eval, put those in another order.
        """
        from searchapp.files import whole_file
        from searchapp.formats import trec
        from searchapp.runs import directory
        from searchapp.tasks import load

        stored = directory.read(run)
        task = load(stored.manifest.task)
        if format_ is Format.official and (shortfall := task.official_shortfall(stored.run, nearest)):
            advice = "rank deeper with --depth, or name another cut-off with --nearest"
            raise DataError(f"{run}: {shortfall}: {advice}")
        with whole_file(out, replace=overwrite) as file:
            if format_ is Format.official:
                task.write_official(file, stored.run)
            else:
                trec.write_run(file, stored.run)
        say(settings, f"{len(stored.run):,} rankings of {run} are written to {out}")
