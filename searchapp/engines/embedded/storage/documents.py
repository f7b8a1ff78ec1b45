"""The ids and sources of documents, in SQLite, by document number."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

FILE = "documents.sqlite"
BATCH = 1000


class DocumentsWriter:
    """Writes the documents of a version; they count from 0."""

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(folder / FILE)
        # Nobody reads it before it is complete, and a version that is not complete is thrown away.
        self._connection.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 8192"
        )
        self._connection.execute(
            "CREATE TABLE document (number INTEGER PRIMARY KEY, id TEXT NOT NULL, source TEXT NOT NULL)"
        )
        self._waiting: list[tuple[int, str, str]] = []
        self.count = 0

    def add(self, document_id: str, source: dict[str, Any]) -> int:
        """Keep a document and return its number."""
        number = self.count
        text = json.dumps(source, ensure_ascii=False)
        text.encode()  # raises UnicodeEncodeError now rather than when the batch is written
        self._waiting.append((number, document_id, text))
        self.count += 1
        if len(self._waiting) == BATCH:
            self._write()
        return number

    def close(self) -> None:
        self._write()
        self._connection.commit()
        self._connection.close()

    def abandon(self) -> None:
        self._connection.close()

    def _write(self) -> None:
        self._connection.executemany("INSERT INTO document VALUES (?, ?, ?)", self._waiting)
        self._waiting = []


class Documents:
    """The documents of a version; it stays readable after the file was removed."""

    def __init__(self, folder: Path) -> None:
        address = f"file:{quote(str(folder / FILE))}?mode=ro&immutable=1"
        self._connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        self._lock = threading.Lock()
        # SQLite opens the file at the first question: ask one while it is sure to be there.
        question = "SELECT coalesce(max(number) + 1, 0) FROM document"
        try:
            self.count: int = self._connection.execute(question).fetchone()[0]
        except sqlite3.Error:
            self._connection.close()
            raise

    def sources(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """The sources of documents, in the order of their numbers."""
        question = "SELECT source FROM document WHERE number = ?"
        with self._lock:
            rows = [self._connection.execute(question, (int(number),)).fetchone() for number in numbers]
        return [json.loads(row[0]) for row in rows]

    def close(self) -> None:
        self._connection.close()
