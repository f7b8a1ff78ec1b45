"""The judgment log: one SQLite file, to which events are appended and nothing else.

`append` returns once the events are on disk (write-ahead log, `synchronous=FULL`): whatever happens afterwards, they
are there. Several processes may append at the same time. An event whose id is in the log already is not written again,
so that whoever is unsure whether a write arrived may repeat it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from itertools import islice
from pathlib import Path
from types import TracebackType

from searchapp.errors import DataError, SearchappError
from searchapp.judging.events import Action, Channel, Event, Kind

FORMAT = 1
BUSY_SECONDS = 30.0
"""How long a write waits for other processes that write."""

_IDS_AT_ONCE = 500

_COLUMNS = tuple(field.name for field in fields(Event))
_TYPES = {"grade": "INTEGER", "rank": "INTEGER"}
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    {", ".join(f"{name} {_TYPES.get(name, 'TEXT NOT NULL')}" for name in _COLUMNS)},
    UNIQUE (id)
) STRICT;
CREATE INDEX IF NOT EXISTS events_by_task ON events (task, sequence);
CREATE TRIGGER IF NOT EXISTS never_updated BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER IF NOT EXISTS never_deleted BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
PRAGMA user_version = {FORMAT};
"""


class NotSaved(SearchappError):
    """Events could not be written; they are still with whoever wanted to write them."""


class JudgmentLog:
    """The log in a file, which is made if it is not there; a write waits `patience` seconds for others that write.

    Raises:
        DataError: the file is not a judgment log, is damaged, or a newer searchapp's.
        NotSaved: the file can't be made.
    """

    def __init__(self, path: Path, patience: float = BUSY_SECONDS) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=patience, isolation_level=None)
            self._prepare()
        except sqlite3.DatabaseError as error:
            self._tell(error)
        except OSError as error:
            raise NotSaved(f"{path} can't be made: {(error.strerror or str(error)).lower()}") from error

    def _prepare(self) -> None:
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        (tables,) = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version > FORMAT:
            raise DataError(f"{self.path} was written by a newer searchapp: update searchapp")
        if version == 0 and tables:
            raise DataError(f"{self.path} is a database, but no judgment log: name another file")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        if version < FORMAT:
            with self._transaction():
                for statement in _statements(_SCHEMA):
                    self._database.execute(statement)

    def append(self, events: Sequence[Event]) -> int:
        """Write events, all or none; returns how many of them were not in the log before.

        Raises:
            NotSaved: the disk is full, the file is read-only, or another process holds it: nothing was written.
        """
        marks = ", ".join("?" * len(_COLUMNS))
        try:
            with self._transaction():
                before = self._database.total_changes
                self._database.executemany(
                    f"INSERT INTO events ({', '.join(_COLUMNS)}) VALUES ({marks}) ON CONFLICT (id) DO NOTHING",
                    [astuple(event) for event in events],
                )
                written = self._database.total_changes - before
        except sqlite3.DatabaseError as error:
            self._tell(error)
        return written

    def events(self, task: str | None = None, after: int = 0) -> Iterator[tuple[int, Event]]:
        """The events after a place in the log, in the order in which they were written, each with its place."""
        if task is None:
            return self._read("sequence > ?", [after])
        return self._read("task = ? AND sequence > ?", [task, after])

    def _read(self, where: str, values: Sequence[object]) -> Iterator[tuple[int, Event]]:
        try:
            rows = self._database.execute(
                f"SELECT sequence, {', '.join(_COLUMNS)} FROM events WHERE {where} ORDER BY sequence", values
            )
            for sequence, *columns in rows:
                values_by_name = dict(zip(_COLUMNS, columns, strict=True))
                values_by_name["kind"] = Kind(values_by_name["kind"])
                values_by_name["channel"] = Channel(values_by_name["channel"])
                values_by_name["action"] = Action(values_by_name["action"])
                yield sequence, Event(**values_by_name)
        except sqlite3.DatabaseError as error:
            self._tell(error)

    def known(self, ids: Iterable[str]) -> dict[str, Event]:
        """Those events of the given ids that are in the log."""
        found: dict[str, Event] = {}
        waiting = iter(ids)
        while some := list(islice(waiting, _IDS_AT_ONCE)):
            marks = ", ".join("?" * len(some))
            found |= {event.id: event for _, event in self._read(f"id IN ({marks})", some)}
        return found

    def __len__(self) -> int:
        (count,) = self._database.execute("SELECT count(*) FROM events").fetchone()
        return int(count)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> JudgmentLog:
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

    def _tell(self, error: sqlite3.DatabaseError) -> None:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_FULL"):
            raise NotSaved(
                f"{self.path}: the disk is full: free some space; nothing is lost meanwhile"
            ) from error
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            raise NotSaved(f"{self.path} can't be written: check its permissions") from error
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise NotSaved(f"{self.path} is in use by another process for too long: try again") from error
        if name.startswith("SQLITE_IOERR"):
            raise NotSaved(f"{self.path} can't be read or written: {error}") from error
        raise DataError(
            f"{self.path} is no judgment log that can be read ({error}): restore it, or name another"
        ) from error


def _statements(script: str) -> list[str]:
    """The statements of a script; a trigger's own semicolons do not end it."""
    statements: list[str] = []
    rest = ""
    for piece in script.split(";"):
        rest += piece
        if sqlite3.complete_statement(rest + ";") and rest.strip():
            statements.append(rest)
            rest = ""
        elif rest.strip():
            rest += ";"
    return statements
