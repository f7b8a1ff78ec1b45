"""A cache file in the home folder with one JSON object per line.

Appends a line; drops the oldest lines above a limit. A line that can't be read is skipped, a failed write is
ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from searchapp.errors import SearchappError
from searchapp.files import parse_json, read_text, whole_file


class KeptLines:
    """A file of JSON objects; `most` of them are kept, and as many again before the oldest are taken out.

    With `file_names` they may hold names of files that are not UTF-8.
    """

    def __init__(self, path: Path, most: int, *, file_names: bool = False) -> None:
        self._path = path
        self._most = most
        self._file_names = file_names

    def read(self) -> Iterator[Mapping[str, Any]]:
        """The objects, the oldest first."""
        lines = self._lines()
        if len(lines) > 2 * self._most:
            lines = lines[-self._most :]
            self._write(lines)
        for line in lines:
            with suppress(ValueError):
                described = parse_json(line, file_names=self._file_names)
                if isinstance(described, Mapping):
                    yield described

    def add(self, described: Mapping[str, Any]) -> None:
        """Keep one more."""
        if self._path.exists() and not self._path.is_file():  # writing to a pipe would wait for who reads it
            return
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(described) + "\n")

    def _lines(self) -> list[str]:
        try:
            return read_text(self._path).splitlines()
        except (OSError, UnicodeDecodeError):
            return []

    def _write(self, lines: list[str]) -> None:
        with suppress(SearchappError), whole_file(self._path) as file:
            file.write("".join(f"{line}\n" for line in lines).encode())
