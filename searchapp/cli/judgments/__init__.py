"""`searchapp judgments`: the group of commands on what people have judged."""

from __future__ import annotations

import typer

from searchapp.cli.commands import Group
from searchapp.cli.judgments import assignment, exchange, log

app = typer.Typer()

group = typer.Typer(cls=Group, help="Manage judgments.", no_args_is_help=True)
app.add_typer(group, name="judgments")


@group.callback()
def _group() -> None:
    """Manage judgments: share the work, measure agreement, adjudicate, import and export."""


exchange.register_export_import(group)
exchange.register_imports(group)
log.register_agreement(group)
log.register_listing(group)
assignment.register_adjudicate(group)
assignment.register_sharing(group)
exchange.register_sync(group)
log.register_safety(group)
