"""Copying to the clipboard: by the system's own program, and else by asking the terminal."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

TIMEOUT_SECONDS = 2.0

PROGRAMS: Sequence[tuple[Sequence[str], str]] = (
    (("wl-copy",), "WAYLAND_DISPLAY"),
    (("xclip", "-selection", "clipboard"), "DISPLAY"),
    (("xsel", "--clipboard", "--input"), "DISPLAY"),
    (("pbcopy",), ""),
)
"""What puts its standard input on the clipboard, the first one first, and the variable without which it can't work."""


def copy_with_program(text: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Copy a text with the first of the system's programs that does it; returns its name, None if none does."""
    for command, needed in PROGRAMS:
        path = shutil.which(command[0], path=environment.get("PATH"))
        if path is None or (needed and not environment.get(needed)):
            continue
        try:
            # Its output is not waited for: such a program stays in the background to serve what was copied.
            subprocess.run(
                [path, *command[1:]],
                input=text.encode("utf-8", "replace"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=TIMEOUT_SECONDS,
                check=True,
                env=dict(environment),
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return command[0]
    return None
