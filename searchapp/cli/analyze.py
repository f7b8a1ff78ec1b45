"""`searchapp analyze`: what an analyzer makes of a text, step by step."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from searchapp.cli import complete
from searchapp.cli.common import JsonOption, TaskArgument, command
from searchapp.cli.output import print_json, stdout_console
from searchapp.settings import Settings
from searchapp.visible import visible

if TYPE_CHECKING:
    from rich.text import Text


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def analyze(
        settings: Settings,
        task: TaskArgument,
        text: Annotated[str, typer.Argument(help="The text to analyze.", show_default=False)],
        field: Annotated[
            str | None,
            typer.Option(
                help="Field whose analyzer is used; every text field by default.",
                show_default=False,
                autocompletion=complete.fields,
            ),
        ] = None,
        analyzer: Annotated[
            str | None,
            typer.Option(
                help="An analyzer of the mapping, by name.",
                show_default=False,
                autocompletion=complete.analyzers,
            ),
        ] = None,
        as_json: JsonOption = False,
    ) -> None:
        """Show each step from a text to the terms that are indexed."""
        from dataclasses import asdict

        from searchapp.app import analyze as use_case
        from searchapp.app.index import open_index
        from searchapp.engines import open_engine
        from searchapp.tasks import load

        loaded = load(task)
        use_case.require(loaded, field, analyzer)
        with closing(open_engine(settings)) as engine:
            analyses = use_case.analyze(
                loaded, open_index(loaded, engine), text, field=field, analyzer=analyzer
            )
        if as_json:
            described = [
                {one.kind: one.name, "steps": [asdict(step) for step in one.steps]} for one in analyses
            ]
            print_json({"task": loaded.name, "text": text, "analyses": described})
            return
        from rich.table import Table

        console = stdout_console()
        for one in analyses:
            table = Table(title=f"{one.kind} {one.name}", title_justify="left", box=None, pad_edge=False)
            table.add_column("step", style="cyan", overflow="fold")
            table.add_column("gives", overflow="fold")
            for step in one.steps:
                shown = (
                    step.text if step.text is not None else " · ".join(token.term for token in step.tokens)
                )
                table.add_row(f"{step.kind} {step.name}", _plain(shown))
            console.print(table)
            console.print()


def _plain(text: str) -> Text:
    """Text that is shown as it is."""
    from rich.text import Text

    return Text(visible(text))
