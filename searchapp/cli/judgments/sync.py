"""`searchapp judgments sync`: exchange judgments with a team."""

from __future__ import annotations

from contextlib import closing

import typer

from searchapp.cli.common import JsonOption, command
from searchapp.cli.judgments.options import LogOption
from searchapp.cli.output import print_json, say, warn
from searchapp.settings import Settings


def register(group: typer.Typer) -> None:
    """Add the command."""

    @command(group)
    def sync(settings: Settings, log: LogOption = None, as_json: JsonOption = False) -> None:
        """Exchange judgments of all tasks with everybody who uses the same Elasticsearch and prefix.

        Events that the server lacks are sent, events that the log lacks are fetched; a repetition changes nothing.
        """
        from searchapp.app.exchange import exchange
        from searchapp.engines import judgments_address
        from searchapp.judging.log import JudgmentLog

        address = judgments_address(settings)
        with closing(JudgmentLog(log or settings.judgments, report=warn)) as opened:
            found = exchange(settings, opened)
            waiting = opened.waiting(address)
        if as_json:
            print_json(
                {"index": address, "log": str(opened.path), "sent": found.sent, "fetched": found.fetched,
                 "waiting": waiting}
            )  # fmt: skip
        say(
            settings,
            f"{found.sent:,} judgments were sent to {address}, {found.fetched:,} new ones came from it"
            + (f"; {waiting:,} written since wait" if waiting else ""),
        )
