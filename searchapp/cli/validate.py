"""`searchapp validate`: would the organisers accept this file?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.common import DataOption, JsonOption, command, data_of
from searchapp.cli.output import print_json, say, warn
from searchapp.settings import Settings


def register(app: typer.Typer) -> None:
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
        from searchapp.app.validate import ValidateRequest
        from searchapp.app.validate import validate as validated
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
