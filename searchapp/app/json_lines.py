"""A file in the home directory with one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from searchapp.errors import SearchappError
from searchapp.files import atomic_file, file_lock, parse_json, read_bytes, unreadable

Described: TypeAlias = Mapping[str, Any]


class JsonLines:
    """A file of JSON objects; a cache has up to twice `most` lines, then it is cut to the latest `most`.

    With `file_names` texts may be file names that are not UTF-8.
    """

    def __init__(self, path: Path, most: int | None = None, *, file_names: bool = False) -> None:
        self._path = path
        self._most = most
        self._file_names = file_names

    def read(self) -> Iterator[Described]:
        """Return the objects, the oldest first; none if the file can't be read."""
        lines: list[bytes] = []
        with suppress(SearchappError):
            lines = self._lines()
        if self._most is not None and len(lines) > 2 * self._most:
            lines = lines[-self._most :]
            with suppress(SearchappError):
                self._write(lines)
        return filter(None, map(self._described, lines))

    def add(self, described: Described) -> None:
        """Append an object; a failed write is ignored."""
        if self._path.exists() and not self._path.is_file():  # writing to a pipe would wait for who reads it
            return
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(described) + "\n")

    def replace(self, is_replaced: Callable[[Described], bool], by: Sequence[Described]) -> None:
        """Replace objects by others at the end.

        Raises:
            SearchappError: the file can't be read or written.
        """
        with file_lock(self._path):
            # An unreadable line stays: a newer version may have written it.
            lines = [line for line in self._lines() if not is_replaced(self._described(line))]
            lines += [json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace") for entry in by]
            self._write(lines)

    def _lines(self) -> list[bytes]:
        try:
            content = read_bytes(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise unreadable(self._path, error) from error
        return [line for line in content.splitlines() if line.strip()]

    def _described(self, line: bytes) -> Described:
        described: object = None
        with suppress(ValueError):
            described = parse_json(line.decode("utf-8"), file_names=self._file_names)
        return described if isinstance(described, dict) else {}

    def _write(self, lines: Sequence[bytes]) -> None:
        with atomic_file(self._path) as file:
            file.writelines(line + b"\n" for line in lines)
