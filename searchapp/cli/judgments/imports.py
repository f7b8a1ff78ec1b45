"""`searchapp judgments imports` and `retract`: what came with files, and taking it back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli.common import JsonOption, TaskArgument, command
from searchapp.cli.figures import Column, print_columns
from searchapp.cli.judgments.options import LogOption, name_of, of_task, open_log
from searchapp.cli.output import print_json, say, stdout_console
from searchapp.errors import UsageError
from searchapp.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from searchapp.judging.records import Import


def register(group: typer.Typer) -> None:
    """Add the commands."""

    @command(group)
    def imports(
        settings: Settings, task: TaskArgument, log: LogOption = None, as_json: JsonOption = False
    ) -> None:
        """List the files that judgments were imported from: number, time, and how many judgments still hold.

        Judgments from the team's cluster are not imports, and each machine lists its own.
        """
        task = name_of(task)
        with open_log(settings, log, task) as opened:
            _, view = of_task(opened, task)
            found = [
                (one, sum(view.holds(event.id) for event in opened.events_of(one.number)))
                for one in opened.imports(task)
            ]
        if as_json:
            print_json({"task": task, "imports": [{**asdict(one), "hold": hold} for one, hold in found]})
        elif not found:
            say(settings, f"no judgments of {task} came from a file")
        else:
            _print_imports(found)

    @command(group)
    def retract(
        settings: Settings,
        task: TaskArgument,
        number: Annotated[
            int,
            typer.Option(
                "--import", help="The import's number, see `judgments imports`.", show_default=False
            ),
        ],
        log: LogOption = None,
        as_json: JsonOption = False,
    ) -> None:
        """Retract the judgments of an import that still hold; earlier judgments hold again.

        Nothing is deleted: the log gets a retraction for each judgment. Importing the file again restores them.
        """
        from searchapp.judging.exchange import take_back

        task = name_of(task)
        with open_log(settings, log, task) as opened:
            _, view = of_task(opened, task)
            known = {one.number: one for one in opened.imports(task)}
            if number not in known:
                listed = ", ".join(map(str, known)) or "none"
                raise UsageError(f"there is no import {number} of {task} in {opened.path}: it has {listed}")
            retracted = take_back(opened, number, view)
        if as_json:
            print_json({"task": task, "import": number, "retracted": retracted})
        file = known[number].file
        if not retracted:
            say(settings, f"nothing of import {number} ({file}) holds any more: nothing is retracted")
        else:
            say(settings, f"{retracted:,} judgments of import {number} ({file}) are retracted")


def _print_imports(found: Sequence[tuple[Import, int]]) -> None:
    imports = [one for one, _hold in found]
    print_columns(
        stdout_console(),
        Column("import", [str(one.number) for one in imports]),
        [
            Column("when", [one.time for one in imports], is_text=True),
            Column("format", [one.format for one in imports], is_text=True),
            Column("judgments", [f"{one.events:,}" for one in imports]),
            Column("still hold", [f"{hold:,}" for _one, hold in found]),
            Column("file", [one.file for one in imports], is_text=True),
        ],
    )
