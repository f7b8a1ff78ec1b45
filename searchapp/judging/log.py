"""The judgment log: one SQLite file, to which events are appended and nothing else.

`append` returns once the events are on disk (write-ahead log, `synchronous=FULL`): whatever happens afterwards, they
are there. Several processes may append at the same time. An event whose id is in the log already is not written again,
so that whoever is unsure whether a write arrived may repeat it.

The log also knows which of its events an index in a cluster has, and which of that index's it has itself, see
`shared`; which events came with which imported file, see `exchange`; and who has it open to judge, see `presence`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from searchapp.errors import DataError, SearchappError
from searchapp.judging.events import Action, Channel, Event, Kind

FORMAT = 5
BUSY_SECONDS = 30.0
"""How long a write waits for other processes that write."""

_IDS_AT_ONCE = 500

Values = Sequence[object] | Mapping[str, object]
"""The values of a statement's places, by number or by name."""

_COLUMNS = tuple(field.name for field in fields(Event))
_TYPES = {"grade": "INTEGER", "rank": "INTEGER", "saw_others": "INTEGER"}
_LATER = {5: ("saw_others",)}
"""Columns that events were given later, by the format that has them first."""

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    {", ".join(f"{name} {_TYPES.get(name, 'TEXT NOT NULL')}" for name in _COLUMNS)},
    UNIQUE (id)
) STRICT;
CREATE TABLE IF NOT EXISTS mirrors (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    address TEXT NOT NULL,
    identity TEXT NOT NULL,
    sent INTEGER NOT NULL DEFAULT 0,
    received INTEGER NOT NULL DEFAULT -1,
    UNIQUE (address, identity)
) STRICT;
CREATE TABLE IF NOT EXISTS arrivals (
    sequence INTEGER PRIMARY KEY,
    mirror INTEGER NOT NULL REFERENCES mirrors (number)
) STRICT;
CREATE TABLE IF NOT EXISTS sent_of_tasks (
    mirror INTEGER NOT NULL REFERENCES mirrors (number),
    task TEXT NOT NULL,
    up_to INTEGER NOT NULL,
    PRIMARY KEY (mirror, task)
) STRICT;
CREATE TABLE IF NOT EXISTS imports (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    task TEXT NOT NULL,
    file TEXT NOT NULL,
    format TEXT NOT NULL,
    events INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS imported (
    sequence INTEGER PRIMARY KEY,
    import INTEGER NOT NULL REFERENCES imports (number)
) STRICT;
CREATE TABLE IF NOT EXISTS windows (
    id TEXT PRIMARY KEY,
    annotator TEXT NOT NULL,
    task TEXT NOT NULL,
    host TEXT NOT NULL,
    process INTEGER NOT NULL,
    opened REAL NOT NULL,
    beat REAL NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS events_by_task ON events (task, sequence);
CREATE TRIGGER IF NOT EXISTS never_updated BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER IF NOT EXISTS never_deleted BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
PRAGMA user_version = {FORMAT};
"""


@dataclass(frozen=True, slots=True)
class Mirror:
    """An index in a cluster that holds the same events, as far as they have been exchanged.

    `identity` is another one when the index was deleted and made again, or set back to an older state. All events of
    the log up to the place `sent` are in the index, and all of the index up to its own place `received` in the log.
    """

    number: int
    address: str
    identity: str
    sent: int
    received: int


@dataclass(frozen=True, slots=True)
class Import:
    """A file whose judgments were taken in: when, from which file of which format, and how many events came with it.

    `number` is what the import is known by in this log.
    """

    number: int
    time: str
    task: str
    file: str
    format: str
    events: int


@dataclass(frozen=True, slots=True)
class Window:
    """Somebody who has the log open to judge, see `presence`; `opened` and `beat` are seconds since 1970."""

    id: str
    annotator: str
    task: str
    host: str
    process: int
    opened: float
    beat: float


class NotSaved(SearchappError):
    """Events could not be written; they are still with whoever wanted to write them."""


_NOT_THERE = (
    "sequence > :after AND NOT EXISTS "
    "(SELECT 1 FROM arrivals WHERE arrivals.sequence = events.sequence AND arrivals.mirror = :mirror) AND NOT EXISTS "
    "(SELECT 1 FROM sent_of_tasks AS sent WHERE sent.mirror = :mirror AND sent.task = events.task "
    "AND sent.up_to >= events.sequence) "
    "AND (:task IS NULL OR task = :task)"
)
"""Which events lie behind a place and are not in a mirror: neither have they come from it, nor were they sent with the
others of their task. Of one task, if it is named."""


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
            try:
                self._prepare(patience)
            except BaseException:
                self._database.close()
                raise
        except sqlite3.DatabaseError as error:
            self._tell(error)
        except OSError as error:
            raise NotSaved(f"{path} can't be made: {(error.strerror or str(error)).lower()}") from error

    def _prepare(self, patience: float) -> None:
        self._database.execute("PRAGMA synchronous = FULL")
        if self._version() < FORMAT:
            # Asked again inside: another process may have made the log in between.
            with self._transaction():
                if self._version() < FORMAT:
                    self._make()
        if self._version() > FORMAT:
            raise DataError(f"{self.path} was written by a newer searchapp: update searchapp")
        self._write_ahead(patience)

    def _version(self) -> int:
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        return int(version)

    def _make(self) -> None:
        (tables,) = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if self._version() == 0 and tables:
            raise DataError(f"{self.path} is a database, but no judgment log: name another file")
        added = [name for since, names in _LATER.items() if 0 < self._version() < since for name in names]
        for name in added:
            self._database.execute(f"ALTER TABLE events ADD COLUMN {name} {_TYPES[name]}")
        for statement in _statements(_SCHEMA):
            self._database.execute(statement)

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

    def append(self, events: Sequence[Event]) -> int:
        """Write events, all or none; returns how many of them were not in the log before.

        Raises:
            NotSaved: the disk is full, the file is read-only, or another process holds it: nothing was written.
        """
        before = self._database.total_changes
        with self._writing():
            self._insert(events)
        return self._database.total_changes - before

    def _insert(self, events: Sequence[Event]) -> None:
        marks = ", ".join("?" * len(_COLUMNS))
        self._database.executemany(
            f"INSERT INTO events ({', '.join(_COLUMNS)}) VALUES ({marks}) ON CONFLICT (id) DO NOTHING",
            [astuple(event) for event in events],
        )

    def events(self, task: str | None = None, after: int = 0) -> Iterator[tuple[int, Event]]:
        """The events after a place in the log, in the order in which they were written, each with its place."""
        if task is None:
            return self._read("sequence > ?", [after])
        return self._read("task = ? AND sequence > ?", [task, after])

    def _read(self, where: str, values: Values, limit: int = -1) -> Iterator[tuple[int, Event]]:
        columns = ", ".join(_COLUMNS)
        try:
            rows = self._database.execute(
                f"SELECT sequence, {columns} FROM events WHERE {where} ORDER BY sequence LIMIT {limit:d}",
                values,
            )
            for sequence, *columns in rows:
                values_by_name = dict(zip(_COLUMNS, columns, strict=True))
                values_by_name["kind"] = Kind(values_by_name["kind"])
                values_by_name["channel"] = Channel(values_by_name["channel"])
                values_by_name["action"] = Action(values_by_name["action"])
                if values_by_name["saw_others"] is not None:  # SQLite has no truth values, only 0 and 1
                    values_by_name["saw_others"] = bool(values_by_name["saw_others"])
                yield sequence, Event(**values_by_name)
        except sqlite3.DatabaseError as error:
            self._tell(error)
        except ValueError as error:
            raise DataError(
                f"{self.path}: event {sequence}: {error}: update searchapp, a newer one may know it"
            ) from error

    def known(self, ids: Iterable[str]) -> dict[str, Event]:
        """Those events of the given ids that are in the log."""
        found: dict[str, Event] = {}
        waiting = iter(ids)
        while some := list(islice(waiting, _IDS_AT_ONCE)):
            marks = ", ".join("?" * len(some))
            found |= {event.id: event for _, event in self._read(f"id IN ({marks})", some)}
        return found

    # What came with a file

    def take_in(self, events: Sequence[Event], task: str, file: str, format_: str) -> Import | None:
        """Append the events of a file, all or none; None when the log had all of them before.

        Raises:
            NotSaved: the log can't be written; nothing was.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._writing():
            (before,) = self._one("SELECT coalesce(max(sequence), 0) FROM events")
            self._insert(events)
            (new,) = self._one("SELECT count(*) FROM events WHERE sequence > ?", (before,))
            if not new:
                return None
            number = self._database.execute(
                "INSERT INTO imports (time, task, file, format, events) VALUES (?, ?, ?, ?, ?)",
                (now, task, file, format_, new),
            ).lastrowid
            self._database.execute(
                "INSERT INTO imported SELECT sequence, ? FROM events WHERE sequence > ?", (number, before)
            )
        assert number is not None  # a row was inserted
        return Import(number, now, task, file, format_, new)

    def imports(self, task: str) -> list[Import]:
        """The files of a task that were taken in, in this order."""
        columns = ", ".join(field.name for field in fields(Import))
        return [
            Import(*row)
            for row in self._all(f"SELECT {columns} FROM imports WHERE task = ? ORDER BY number", (task,))
        ]

    def events_of(self, number: int) -> list[Event]:
        """The events that came with an import."""
        where = "sequence IN (SELECT sequence FROM imported WHERE import = ?)"
        return [event for _, event in self._read(where, [number])]

    # What a cluster has

    def mirror(self, address: str, identity: str) -> Mirror:
        """What has been exchanged with an index: nothing, if it was never heard of.

        Raises:
            NotSaved: the log can't be written.
        """
        key = (address, identity)
        found = self._mirror("address = ? AND identity = ?", key)
        if found is None:
            insert = "INSERT INTO mirrors (address, identity) VALUES (?, ?) ON CONFLICT DO NOTHING"
            with self._writing():
                self._database.execute(insert, key)
            found = self._mirror("address = ? AND identity = ?", key)
        assert found is not None  # it has just been written, and nothing deletes it
        return found

    def unsent(
        self, mirror: Mirror, after: int, limit: int, task: str | None = None
    ) -> list[tuple[int, Event]]:
        """The first events behind a place that the index does not have, each with its place; of a task, if named."""
        wanted = {"after": after, "mirror": mirror.number, "task": task}
        return list(self._read(_NOT_THERE, wanted, limit))

    def waiting(self, address: str, task: str | None = None) -> int:
        """How many events, of a task if it is named, the index at an address is still to get, as far as is known."""
        mirror = self._mirror("address = ? ORDER BY number DESC LIMIT 1", (address,))
        after, number = (0, 0) if mirror is None else (mirror.sent, mirror.number)
        wanted = {"after": after, "mirror": number, "task": task}
        (count,) = self._one(f"SELECT count(*) FROM events WHERE {_NOT_THERE}", wanted)
        return int(count)

    def sent(self, mirror: Mirror, up_to: int, task: str | None = None) -> None:
        """Remember that the index has all events up to a place, or those of a task, if it is named.

        Raises:
            NotSaved: the log can't be written.
        """
        with self._writing():
            if task is None:
                self._database.execute(
                    "UPDATE mirrors SET sent = max(sent, ?) WHERE number = ?", (up_to, mirror.number)
                )
            else:
                self._database.execute(
                    "INSERT INTO sent_of_tasks (mirror, task, up_to) VALUES (?, ?, ?) "
                    "ON CONFLICT (mirror, task) DO UPDATE SET up_to = max(up_to, excluded.up_to)",
                    (mirror.number, task, up_to),
                )

    def receive(self, mirror: Mirror, events: Sequence[Event], up_to: int | None) -> int:
        """Append events of the index, and remember that these are all up to a place of its own, if it is given.

        Returns how many the log did not have.

        Raises:
            NotSaved: the log can't be written; nothing was.
        """
        with self._writing():
            (before,) = self._one("SELECT coalesce(max(sequence), 0) FROM events")
            self._insert(events)
            arrived = self._database.execute(
                "INSERT INTO arrivals SELECT sequence, ? FROM events WHERE sequence > ?",
                (mirror.number, before),
            )
            if up_to is not None:
                self._database.execute(
                    "UPDATE mirrors SET received = max(received, ?) WHERE number = ?", (up_to, mirror.number)
                )
            # So that nobody has to look at these again to find that nothing waits.
            self._database.execute(
                "UPDATE mirrors SET sent = (SELECT coalesce(max(sequence), 0) FROM events) WHERE number = :mirror "
                f"AND NOT EXISTS (SELECT 1 FROM events WHERE {_NOT_THERE.replace(':after', 'mirrors.sent')})",
                {"mirror": mirror.number, "task": None},
            )
        return arrived.rowcount

    # Who has it open

    def beat(self, window: Window, stale: float) -> None:
        """Write that a window is still open, and forget those that have not been heard of since a time.

        Raises:
            NotSaved: the log can't be written.
        """
        marks = ", ".join("?" * len(fields(Window)))
        with self._writing():
            self._database.execute("DELETE FROM windows WHERE beat < ?", (stale,))
            self._database.execute(f"INSERT OR REPLACE INTO windows VALUES ({marks})", astuple(window))

    def leave(self, window: Window) -> None:
        """Write that a window was closed.

        Raises:
            NotSaved: the log can't be written.
        """
        with self._writing():
            self._database.execute("DELETE FROM windows WHERE id = ?", (window.id,))

    def windows(self, task: str, annotator: str, since: float) -> list[Window]:
        """The windows in which an annotator judges a task, and that were heard of since a time."""
        try:
            rows = self._database.execute(
                "SELECT * FROM windows WHERE task = ? AND annotator = ? AND beat >= ? ORDER BY opened",
                (task, annotator, since),
            ).fetchall()
        except sqlite3.DatabaseError as error:
            self._tell(error)
        return [Window(*row) for row in rows]

    def _mirror(self, where: str, values: Sequence[object]) -> Mirror | None:
        row = self._one(
            f"SELECT number, address, identity, sent, received FROM mirrors WHERE {where}", values
        )
        return Mirror(*row) if row else None

    def _one(self, statement: str, values: Values = ()) -> Any:
        return next(iter(self._all(statement, values)), None)

    def _all(self, statement: str, values: Values = ()) -> list[Any]:
        try:
            return self._database.execute(statement, values).fetchall()
        except sqlite3.DatabaseError as error:
            self._tell(error)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with self._transaction():
                yield
        except sqlite3.DatabaseError as error:
            self._tell(error)

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

    def _tell(self, error: sqlite3.DatabaseError) -> NoReturn:
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


def annotators_in(path: Path, task: str) -> list[str]:
    """Who has judged a task, by name; the file is neither made nor written to, whatever state it is in.

    Raises:
        sqlite3.Error: it is not there, is no judgment log, or can't be read.
    """
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)) as database:
        rows = database.execute(
            "SELECT DISTINCT annotator FROM events WHERE task = ? ORDER BY annotator", [task]
        )
        return [str(name) for (name,) in rows]
