"""Tasks of a user's own."""

from __future__ import annotations

from pathlib import Path

from searchapp.errors import UsageError
from searchapp.tasks.base import Task


def load(path: Path) -> Task:
    """The task that a TOML file describes."""
    raise UsageError(f"there is no task {str(path)!r}: see `searchapp tasks`")
