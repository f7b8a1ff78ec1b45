"""Ids and sources of documents in SQLite, by document number.

SQLite has no checksums that Python can verify, so each row has one. Other alterations of the file lead to a wrong or
missing row, or to an error.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from searchapp.lucene.errors import UnreadableFile
from searchapp.lucene.index.layout import reading, refuted

FILE = "documents.sqlite"
BATCH = 1000

stored_text = json.JSONEncoder(ensure_ascii=False).encode

_IMMUTABLE = "?mode=ro&immutable=1"

_SELECT = "SELECT source, checksum FROM document WHERE number = ?"

# A copied row needs a new checksum, which covers its number.
_COPY = """
INSERT INTO document
SELECT number + ?1, id, source, CASE ?1 WHEN 0 THEN checksum ELSE crc32(CAST(source AS BLOB), number + ?1) END
FROM merged.document WHERE number >= ?2 AND number < ?3
"""


def _uri(folder: Path) -> str:
    return f"file:{quote(os.fsencode(folder / FILE))}"


def _checksum(number: int, source: bytes) -> int:
    return zlib.crc32(source, number)


@contextmanager
def _writing() -> Iterator[None]:
    """Raise errors of SQLite as OSError, like those of other files."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise OSError(errno.EIO, str(error)) from error


class DocumentWriter:
    """Writes the documents of a segment, numbered from 0."""

    def __init__(self, folder: Path) -> None:
        with _writing():
            self._connection = sqlite3.connect(_uri(folder), uri=True)
        try:
            with _writing():
                # An incomplete version is deleted, so its database needs no journal.
                self._connection.executescript(
                    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA page_size = 8192"
                )
                self._connection.execute(
                    "CREATE TABLE document (number INTEGER PRIMARY KEY, id TEXT NOT NULL, source TEXT NOT NULL, "
                    "checksum INTEGER NOT NULL)"
                )
                self._connection.create_function("crc32", 2, zlib.crc32, deterministic=True)
        except BaseException:
            self._connection.close()
            raise
        self._pending: list[tuple[int, str, str, int]] = []
        self.count = 0

    def add(self, document_id: str, text: str) -> None:
        """Add a document with its `stored_text`.

        Raises:
            UnicodeEncodeError: the text has a lone surrogate.
        """
        self._pending.append((self.count, document_id, text, _checksum(self.count, text.encode())))
        self.count += 1
        if len(self._pending) == BATCH:
            self._write()

    @contextmanager
    def copying(self, merged: Path) -> Iterator[Callable[[int, int], int]]:
        """Yield a function that copies the documents from one number to another of a verified segment.

        The function returns the number of copied documents.
        """
        self._write()
        with _writing():
            self._connection.commit()
            self._connection.execute("ATTACH ? AS merged", (f"{_uri(merged)}{_IMMUTABLE}",))

        def copy(first: int, end: int) -> int:
            with _writing():
                copied = self._connection.execute(_COPY, (self.count - first, first, end)).rowcount
            self.count += copied
            return copied

        yield copy
        with _writing():
            self._connection.commit()
            self._connection.execute("DETACH merged")

    def close(self) -> None:
        self._write()
        with _writing():
            self._connection.commit()
        self._connection.close()

    def abandon(self) -> None:
        """Close the file without writing the pending documents."""
        self._connection.close()

    def _write(self) -> None:
        with _writing():
            self._connection.executemany("INSERT INTO document VALUES (?, ?, ?, ?)", self._pending)
        self._pending = []


class DocumentStore:
    """The documents of a segment, readable even after the file was removed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._require_readable()
        try:
            self._connection = sqlite3.connect(
                f"{_uri(folder)}{_IMMUTABLE}", uri=True, check_same_thread=False
            )
        except sqlite3.OperationalError as error:
            self._require_readable()  # another process may have removed it
            raise UnreadableFile(folder / FILE, str(error)) from error
        self._connection.text_factory = bytes
        self._lock = threading.Lock()
        try:
            with self._damage_reported():
                # The first query opens the file, while it still exists.
                query = "SELECT coalesce(max(number) + 1, 0) FROM document"
                self.count: int = self._connection.execute(query).fetchone()[0]
        except BaseException:
            self._connection.close()
            raise

    def _require_readable(self) -> None:
        # SQLite does not report why it can't open a file.
        with reading(self._folder, FILE), (self._folder / FILE).open("rb"):
            pass

    def sources(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        with self._lock, self._damage_reported():
            return [self._source(number) for number in numbers]

    def _source(self, number: int) -> dict[str, Any]:
        text, checksum = self._connection.execute(_SELECT, (number,)).fetchone() or (None, None)
        if not isinstance(text, bytes) or checksum != _checksum(number, text):
            raise refuted(self._folder, f"document {number} in {FILE} was altered")
        source: dict[str, Any] = json.loads(text)
        return source

    @contextmanager
    def _damage_reported(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError) as error:
            raise refuted(self._folder, f"{FILE}: {error}") from error

    def close(self) -> None:
        self._connection.close()
