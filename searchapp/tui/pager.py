"""A text in the program that a person reads texts with."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping

from textual.app import App, SuspendNotSupported

from searchapp.errors import SearchappError
from searchapp.visible import visible

DEFAULT = "less"


def show_in_pager(app: App[None], text: str, environment: Mapping[str, str] = os.environ) -> None:
    """Show a text with the program that PAGER names, and come back when it ends.

    Raises:
        SearchappError: there is no such program, or no terminal that could be given to it.
    """
    if app.is_web:
        raise SearchappError("a browser has no terminal for $PAGER: the document can be read in its pane")
    named = environment.get("PAGER") or DEFAULT
    try:
        command = shlex.split(named)
    except ValueError as error:
        raise SearchappError(f"PAGER is {named!r}, which is no command: {error}") from error
    try:
        with app.suspend():
            subprocess.run(
                command, input=visible(text).encode("utf-8", "replace"), check=False, env=dict(environment)
            )
    except SuspendNotSupported as error:
        raise SearchappError("this terminal can't be given to another program") from error
    except (OSError, IndexError) as error:
        raise SearchappError(f"{named!r} can't be run: set PAGER to a program that shows texts") from error
