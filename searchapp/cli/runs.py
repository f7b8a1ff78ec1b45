"""`searchapp runs`: what can be done with run directories as such."""

from __future__ import annotations

import typer

from searchapp.cli.commands import Group
from searchapp.cli.common import JsonOption, RunArgument, command
from searchapp.cli.output import print_json, say, warn
from searchapp.errors import DataError
from searchapp.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(cls=Group, help="Manage run directories.", no_args_is_help=True)
    app.add_typer(group, name="runs")

    @group.callback()
    def _group() -> None:
        """Manage run directories."""

    @command(group)
    def verify(
        settings: Settings,
        run: RunArgument,
        as_json: JsonOption = False,
    ) -> None:
        """Check that the files of a run are those that were written, and its data unchanged since."""
        from searchapp.runs import directory

        found = directory.verify(run)
        if as_json:
            print_json(
                {
                    "run": str(run),
                    "intact": not found.problems,
                    "problems": found.problems,
                    "notes": found.notes,
                }
            )
        for note in found.notes:
            warn(note)
        if found.problems:
            head = f"{run} is not as it was written ({len(found.problems)}):"
            raise DataError(head, *found.problems)
        say(settings, f"{run}: every file is as it was written")
