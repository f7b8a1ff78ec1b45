"""Write files for readers, and list the problems that they report."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from searchapp.errors import Problem
from searchapp.formats.problems import Problems


def write(folder: Path, content: Any, name: str) -> Path:
    """Write bytes, text, or a value as JSON into a file of a folder."""
    path = folder / name
    if not isinstance(content, bytes | str):
        content = json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def kinds(problems: Iterable[Problem]) -> list[tuple[str, str]]:
    """Return kind and position of problems."""
    return [(problem.kind, problem.where) for problem in problems]


def notes(problems: Problems) -> list[tuple[str, str]]:
    """Return kind and position of the notes among problems."""
    return kinds(problems.notes.problems) if problems.notes else []


def messages(problems: Iterable[Problem], path: Path) -> list[str]:
    """Return the messages of problems without the path of their file."""
    return [str(problem).removeprefix(f"{path}: ") for problem in problems]
