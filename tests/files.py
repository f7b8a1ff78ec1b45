"""Files that tests write, and the problems that readers report of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from searchapp.errors import Problem


def write(folder: Path, content: Any, name: str) -> Path:
    """Write bytes, text, or a value as JSON into a file of a folder."""
    path = folder / name
    if not isinstance(content, bytes | str):
        content = json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def kinds(problems: Iterable[Problem]) -> list[tuple[str, str]]:
    """Return kind and place of problems."""
    return [(problem.kind, problem.where) for problem in problems]
