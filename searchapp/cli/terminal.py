"""Whether a screen can be shown: on a terminal, or in a browser."""

from __future__ import annotations

import os
import sys

DRIVER = "TEXTUAL_DRIVER"
"""The variable that names what draws a screen, where that is no terminal."""
IN_BROWSER = "searchapp.tui.browser:BrowserDriver"


def has_screen() -> bool:
    """Whether there is a person in front of a screen that keys come from."""
    return bool(os.environ.get(DRIVER)) or (sys.stdin.isatty() and sys.stdout.isatty())
