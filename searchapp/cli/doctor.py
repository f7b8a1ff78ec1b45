"""`searchapp doctor`: can searchapp work here?"""

from __future__ import annotations

from typing import Annotated

import typer

from searchapp.cli.common import JsonOption, command
from searchapp.cli.output import print_json, stdout_console
from searchapp.engines import server_roles
from searchapp.errors import SearchappError
from searchapp.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app)
    def doctor(
        settings: Settings,
        roles: Annotated[
            bool,
            typer.Option(
                "--roles",
                help="Print the least role for each use of an Elasticsearch instead, as JSON that its "
                "`POST _security/role` accepts; each value is the body of `PUT _security/role/NAME`.",
            ),
        ] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Check versions, folder, disk, engine, the files of indexes, and that both engines agree where a server is.

        On an Elasticsearch it also says what this user may do there, and which rights are missing.
        """
        if roles:
            print_json({"roles": server_roles(settings)})
            return
        from rich.text import Text

        from searchapp.app.doctor import Verdict, examine
        from searchapp.cli.progress import for_person

        marks = {
            Verdict.ok: ("ok", "green"),
            Verdict.warning: ("!", "yellow"),
            Verdict.failed: ("FAILED", "red"),
        }
        console = stdout_console()
        checks = []
        for check in examine(settings, for_person(settings)):
            checks.append(check)
            if not as_json:
                mark, style = marks[check.verdict]
                line = Text.assemble((f"{mark:>6}  ", style), (f"{check.name}: ", "bold"), check.finding)
                console.print(line, soft_wrap=True)
        failed = [check.name for check in checks if check.verdict is Verdict.failed]
        if as_json:
            described = [
                {"name": check.name, "verdict": check.verdict, "finding": check.finding} for check in checks
            ]
            print_json({"well": not failed, "checks": described})
        if failed:
            raise SearchappError(f"{len(failed)} of {len(checks)} checks failed: {', '.join(failed)}")
