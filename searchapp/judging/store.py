"""A SQLite file of events: how it is opened, written to in transactions, and what its errors mean to people."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from searchapp.errors import DataError, SearchappError

Values = Sequence[object] | Mapping[str, object]
"""The values of a statement's places, by number or by name."""


class NotSaved(SearchappError):
    """Events could not be written; the caller still has them."""


class Store:
    """The database in a file; a context that closes it at its end."""

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self.path = path
        self._database = database

    def _write_ahead(self, patience: float) -> None:
        """Switch to a write-ahead log, for which SQLite does not wait as it does for a write."""
        until = time.monotonic() + patience
        while True:
            try:
                self._database.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.01)

    def _one(self, statement: str, values: Values = ()) -> Any:
        return next(iter(self._all(statement, values)), None)

    def _all(self, statement: str, values: Values = ()) -> list[Any]:
        with self._reading():
            return self._database.execute(statement, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._reading(), self._transaction():
            yield

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            self._tell(error)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        # IMMEDIATE: two that first read and then write at once would otherwise make one of them fail.
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    def _tell(self, error: sqlite3.DatabaseError) -> NoReturn:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_FULL"):
            raise NotSaved(f"{self.path}: the disk is full: free some space; nothing is lost") from error
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            raise NotSaved(f"{self.path} can't be written: check its permissions") from error
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise NotSaved(f"{self.path} is in use by another process for too long: try again") from error
        if name.startswith("SQLITE_IOERR"):
            raise NotSaved(f"{self.path} can't be read or written: {error}") from error
        raise DataError(
            f"{self.path} is not a readable judgment log ({error}): restore it, or name another"
        ) from error
