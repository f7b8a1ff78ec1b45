"""`searchapp browse`: the home of the terminal interface."""

from __future__ import annotations

from pathlib import Path

import typer

from searchapp.cli.common import command
from searchapp.cli.terminal import has_screen
from searchapp.config.sources import Resolution
from searchapp.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command."""

    @command(app, with_sources=True)
    def browse(resolution: Resolution) -> None:
        """Open the home of the terminal interface: tasks and runs, and what can be done with them.

        It lists what is indexed and how good the runs are, indexes a task, and opens searching, judging, the checks of
        `doctor` and the settings, each by a key; `ctrl+p` finds everything by words.
        """
        if not has_screen():
            raise UsageError(
                "the home screen needs a terminal: `searchapp tasks` lists the tasks without one"
            )
        from searchapp.tui.home.app import HomeApp

        app = HomeApp(resolution, Path.cwd())
        try:
            app.run()
        finally:
            app.home.opener.close()
        if app.return_code:
            raise typer.Exit(app.return_code)
