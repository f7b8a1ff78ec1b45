"""The ids and sources of documents, in SQLite, by document number.

SQLite has no checksums of its own that Python could ask for: each row has one. What else may be altered in the file
leads to another row, to none, or to an error.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from searchapp.errors import Damaged, SearchappError
from searchapp.lucene.index.layout import reading, refuted

FILE = "documents.sqlite"
BATCH = 1000

_JSON = json.JSONEncoder(ensure_ascii=False)

_IMMUTABLE = "?mode=ro&immutable=1"

_COPY = """
INSERT INTO document
SELECT number + ?1, id, source, CASE ?1 WHEN 0 THEN checksum ELSE crc32(CAST(source AS BLOB), number + ?1) END
FROM merged.document WHERE number >= ?2 AND number < ?3
"""
"""Under another number a document has another checksum, see `_checksum`."""


class DocumentsWriter:
    """Writes the documents of a segment; they count from 0.

    Raises:
        OSError: the disk is full, or can't be written to for another reason.
    """

    def __init__(self, folder: Path) -> None:
        with _writing():
            self._connection = sqlite3.connect(_address(folder), uri=True)
        try:
            with _writing():
                # Nobody reads it before it is complete, and a version that is not complete is thrown away.
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
        self._waiting: list[tuple[int, str, str, int]] = []
        self.count = 0

    def add(self, document_id: str, text: str) -> None:
        """Keep a document, whose source is given as it is stored, see `stored_text`.

        Raises:
            UnicodeEncodeError: the text has half of a surrogate pair.
        """
        self._waiting.append((self.count, document_id, text, _checksum(self.count, text.encode())))
        self.count += 1
        if len(self._waiting) == BATCH:
            self._write()

    @contextmanager
    def copying(self, merged: Path) -> Iterator[Callable[[int, int], int]]:
        """Copy documents of the segment in a folder, where nothing was altered.

        What is given keeps the documents from one number to another, and returns how many there are of them.
        """
        self._write()
        with _writing():
            self._connection.commit()
            self._connection.execute("ATTACH ? AS merged", (f"{_address(merged)}{_IMMUTABLE}",))

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
        self._connection.close()

    def _write(self) -> None:
        with _writing():
            self._connection.executemany("INSERT INTO document VALUES (?, ?, ?, ?)", self._waiting)
        self._waiting = []


@contextmanager
def _writing() -> Iterator[None]:
    """Tell what SQLite could not write as other files tell it: by an OSError."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise OSError(errno.EIO, str(error)) from error


class Documents:
    """The documents of a version; it stays readable after the file was removed."""

    def __init__(self, folder: Path) -> None:
        """Open the file.

        Raises:
            DataError: it is missing or was altered.
            SearchappError: it can't be read.
        """
        self._folder = folder
        self._question = "SELECT source, checksum FROM document WHERE number = ?"
        _require_readable(folder)
        address = f"{_address(folder)}{_IMMUTABLE}"
        try:
            self._connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        except sqlite3.OperationalError as error:
            _require_readable(folder)  # another process may have removed it just now
            raise SearchappError(f"{folder / FILE} can't be read: {error}") from error
        self._connection.text_factory = bytes
        self._lock = threading.Lock()
        # SQLite opens the file at the first question: ask one while it is sure to be there.
        question = "SELECT coalesce(max(number) + 1, 0) FROM document"
        try:
            with self._asking():
                self.count: int = self._connection.execute(question).fetchone()[0]
        except BaseException:
            self._connection.close()
            raise

    def sources(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """The sources of documents, in the order of their numbers.

        Raises:
            DataError: one was altered.
        """
        with self._lock, self._asking():
            return [self._source(number) for number in numbers]

    def _source(self, number: int) -> dict[str, Any]:
        text, checksum = self._connection.execute(self._question, (number,)).fetchone() or (None, None)
        if not isinstance(text, bytes) or checksum != _checksum(number, text):
            raise self._altered(f"document {number} in {FILE} was altered")
        source: dict[str, Any] = json.loads(text)
        return source

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError) as error:
            raise self._altered(f"{FILE}: {error}") from error

    def _altered(self, problem: str) -> Damaged:
        return refuted(self._folder, problem)

    def close(self) -> None:
        self._connection.close()


def stored_text(source: Mapping[str, Any]) -> str:
    """The text that is stored of a source."""
    return _JSON.encode(source)


def _address(folder: Path) -> str:
    return f"file:{quote(os.fsencode(folder / FILE))}"


def _checksum(number: int, source: bytes) -> int:
    return zlib.crc32(source, number)


def _require_readable(folder: Path) -> None:
    """Make sure that the file can be opened: SQLite does not say why it can't open one.

    Raises:
        DataError: it is missing.
        SearchappError: it can't be read.
    """
    with reading(folder, FILE), (folder / FILE).open("rb"):
        pass
