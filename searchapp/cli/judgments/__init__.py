"""`searchapp judgments`: what can be done with what people have judged."""

from __future__ import annotations

import typer

from searchapp.cli.commands import Group
from searchapp.cli.judgments import adjudicate, agreement, exchange, imports, listing, safety, sharing, sync


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(cls=Group, help="Manage judgments.", no_args_is_help=True)
    app.add_typer(group, name="judgments")

    @group.callback()
    def _group() -> None:
        """Manage judgments: share the work, measure agreement, adjudicate, import and export."""

    exchange.register(group)
    imports.register(group)
    agreement.register(group)
    listing.register(group)
    adjudicate.register(group)
    sharing.register(group)
    sync.register(group)
    safety.register(group)
