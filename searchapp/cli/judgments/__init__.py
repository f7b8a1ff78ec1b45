"""`searchapp judgments`: the group of commands on what people have judged."""

from __future__ import annotations

import typer

from searchapp.cli.commands import Group
from searchapp.cli.judgments import assignment, exchange, log

app = typer.Typer()
group = typer.Typer(cls=Group, help="Manage judgments.", no_args_is_help=True)
app.add_typer(group, name="judgments")
for commands in (exchange.app, log.app, assignment.app, exchange.syncing, log.safety):
    group.add_typer(commands)


@group.callback()
def _group() -> None:
    """Manage judgments: share the work, measure agreement, adjudicate, import and export."""
