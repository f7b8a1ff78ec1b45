"""What was searched for: kept in the home folder, to be searched for again.

    <home>/searches.jsonl       {"task": "nlps", "text": "normal subgroup"}

A search is one more line at the end; when there are too many, the oldest go. It is a convenience: what can't be read
is left out, and what can't be written is not kept.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from searchapp.errors import SearchappError
from searchapp.files import whole_file
from searchapp.inputs import parse_json, read_text

FILE = "searches.jsonl"

MOST = 2_000
"""Searches that are kept, of all tasks; as many again are written before the oldest are taken out."""

LONGEST = 10_000
"""Longer texts are not kept."""


class Past:
    """The searches of a task, the latest first, each once."""

    def __init__(self, home: Path, task: str) -> None:
        self._path = home / FILE
        self._task = task
        self.texts: list[str] = []
        lines = self._lines()
        if len(lines) > 2 * MOST:
            lines = lines[-MOST:]
            self._write(lines)
        for line in lines:
            self._take(line)

    def add(self, text: str) -> None:
        """Keep a search, if it is another one than the last."""
        text = text.strip()
        if not text or len(text) > LONGEST or self.texts[:1] == [text]:
            return
        self._put(text)
        if self._path.exists() and not self._path.is_file():  # writing to a pipe would wait for who reads it
            return
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"task": self._task, "text": text}) + "\n")

    def _take(self, line: str) -> None:
        with suppress(ValueError, KeyError, TypeError):
            described = parse_json(line)
            if described["task"] == self._task and isinstance(described["text"], str):
                self._put(described["text"])

    def _put(self, text: str) -> None:
        if text in self.texts:
            self.texts.remove(text)
        self.texts.insert(0, text)

    def _lines(self) -> list[str]:
        try:
            return read_text(self._path).splitlines()
        except (OSError, UnicodeDecodeError):
            return []

    def _write(self, lines: list[str]) -> None:
        with suppress(SearchappError), whole_file(self._path) as file:
            file.write("".join(f"{line}\n" for line in lines).encode())
