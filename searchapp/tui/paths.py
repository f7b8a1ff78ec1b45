"""Paths as people write them."""

from __future__ import annotations

import re
from pathlib import Path


def with_tilde(text: str) -> str:
    """A text in which each path in the user's own folder begins with ~.

    >>> with_tilde(f"user file: {Path.home() / 'settings.toml'} (there is none)")
    'user file: ~/settings.toml (there is none)'
    """
    try:
        own = str(Path.home())
    except RuntimeError:  # nobody knows where that is
        return text
    if own == str(Path(own).parent):
        return text
    return re.sub(rf"(?<![\w/.~-]){re.escape(own)}(?![\w.~-])", "~", text)
