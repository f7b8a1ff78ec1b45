"""`searchapp config`: every setting, its value and where it comes from."""

from __future__ import annotations

from typing import Annotated

import typer

from searchapp.cli.common import JsonOption, command
from searchapp.cli.output import print_json, show
from searchapp.cli.terminal import has_screen
from searchapp.config.found import Found
from searchapp.config.sources import Resolution
from searchapp.errors import UsageError
from searchapp.visible import visible_line


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app, with_sources=True)
    def config(
        resolution: Resolution,
        screen: Annotated[
            bool, typer.Option("--screen", help="Go through the settings on a screen, with what each is for.")
        ] = False,
        as_json: JsonOption = False,
    ) -> None:
        """Show every setting, its value, and the flag, variable, file or default that it comes from.

        The files are checked on the way, as by every other command: an error names file, line and key. Of passwords
        and keys only that they are set is shown.
        """
        if screen and as_json:
            raise UsageError("--screen shows what --json prints: choose one of them")
        if screen:
            _go_through(resolution)
        elif as_json:
            settings = [_described(one) for one in resolution.found.values()]
            print_json({"settings": settings, "files": _files(resolution)})
        else:
            _print(resolution)


def _print(resolution: Resolution) -> None:
    from searchapp.cli.judgments.tables import print_table

    rows = [(name, one.shown, str(one.source.origin), one.where) for name, one in resolution.found.items()]
    print_table(("setting", "value", "from", "where"), rows, left=(0, 1, 2, 3))
    show("")
    for line in resolution.about_files:
        show(visible_line(line))


def _described(found: Found) -> dict[str, object]:
    return {
        "name": found.setting.name,
        "value": found.plain,
        "secret": found.setting.secret,
        "from": str(found.source.origin),
        "where": found.place or None,
        "line": found.line,
        "about": found.setting.about,
    }


def _files(resolution: Resolution) -> dict[str, object]:
    project = resolution.project_file
    return {
        "user": {"path": str(resolution.user_file), "exists": resolution.is_user_file_there},
        "project": None
        if project is None
        else {"path": str(project), "used": resolution.is_project_file_used},
    }


def _go_through(resolution: Resolution) -> None:
    if not has_screen():
        raise UsageError("the screen for the settings needs a terminal: leave --screen out")
    from searchapp.tui.config.app import ConfigApp

    app = ConfigApp(resolution)
    app.run()
    if app.return_code:
        raise typer.Exit(app.return_code)
