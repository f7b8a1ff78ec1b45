"""What was searched for: kept in the home folder, to be searched for again.

    <home>/searches.jsonl       {"task": "nlps", "text": "normal subgroup"}

It is a convenience, see `kept`.
"""

from __future__ import annotations

from pathlib import Path

from searchapp.app.kept import KeptLines

FILE = "searches.jsonl"

MOST = 2_000
"""Searches that are kept, of all tasks; as many again are written before the oldest are taken out."""

LONGEST = 10_000
"""Longer texts are not kept."""


class Past:
    """The searches of a task, the latest first, each once."""

    def __init__(self, home: Path, task: str) -> None:
        self._kept = KeptLines(home / FILE, MOST)
        self._task = task
        self.texts: list[str] = []
        for described in self._kept.read():
            if described.get("task") == task and isinstance(described.get("text"), str):
                self._put(described["text"])

    def add(self, text: str) -> None:
        """Keep a search, if it is another one than the last."""
        text = text.strip()
        if not text or len(text) > LONGEST or self.texts[:1] == [text]:
            return
        self._put(text)
        self._kept.add({"task": self._task, "text": text})

    def _put(self, text: str) -> None:
        if text in self.texts:
            self.texts.remove(text)
        self.texts.insert(0, text)
