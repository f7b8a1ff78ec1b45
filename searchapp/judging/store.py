"""The SQLite file of a judgment log: transactions, tables, checksums, and the wording of SQLite's errors.

An index that holds the same events is one mirror, by whatever address it is reached, and has one row in `mirrors`;
`places` says what an address last led to. Each checksum covers an event's place and values and the previous checksum:

    checksum = BLAKE2b-128(checksum before it + JSON of [place, value, value, ...])

The first one follows nothing at all. Checksums lie in a table of their own, and the `head` says how many events they
cover, up to which place, and what the last one is. So an event that was altered, and one that is gone, are both
noticed, wherever they are; and where a checksum itself was altered, the one after it proves the event all the same.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from searchapp.errors import DataError, SearchappError
from searchapp.judging.events import Action, Channel, Event, Kind

Values = Sequence[object] | Mapping[str, object]
"""The values of a statement's places, by number or by name."""


def checked(row: Sequence[Any], *types: type) -> Any:
    """Return a row whose values have the types that its columns declare.

    SQLite does not check that where it reads. A page of a damaged file may be another table's.

    Raises:
        sqlite3.DatabaseError: they have other types.
    """
    if not all(map(isinstance, row, types)):
        raise sqlite3.DatabaseError("values of wrong types")
    return row


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


FORMAT = 7

COLUMNS = tuple(field.name for field in fields(Event))
TYPES = {"grade": "INTEGER", "rank": "INTEGER", "saw_others": "INTEGER"}

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    {", ".join(f"{name} {TYPES.get(name, 'TEXT NOT NULL')}" for name in COLUMNS)},
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
CREATE TABLE IF NOT EXISTS places (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    address TEXT NOT NULL UNIQUE,
    identity TEXT NOT NULL
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
CREATE TABLE IF NOT EXISTS checksums (
    sequence INTEGER PRIMARY KEY,
    checksum BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS head (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    events INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    checksum BLOB NOT NULL
) STRICT;
INSERT OR IGNORE INTO head VALUES (1, 0, 0, X'');
CREATE INDEX IF NOT EXISTS events_by_task ON events (task, sequence);
CREATE TRIGGER IF NOT EXISTS never_updated BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER IF NOT EXISTS never_deleted BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
CREATE TRIGGER IF NOT EXISTS checksums_never_updated BEFORE UPDATE ON checksums
    BEGIN SELECT RAISE(ABORT, 'checksums are never changed'); END;
CREATE TRIGGER IF NOT EXISTS checksums_never_deleted BEFORE DELETE ON checksums
    BEGIN SELECT RAISE(ABORT, 'checksums are never deleted'); END;
PRAGMA user_version = {FORMAT};
"""


def schema_version(database: sqlite3.Connection) -> int:
    """The format that a log has; 0 where nothing is made yet."""
    (found,) = database.execute("PRAGMA user_version").fetchone()
    return int(found)


def make_tables(database: sqlite3.Connection, name: str) -> None:
    """Make the tables that are not there; within a transaction. `name` is that of the file, for errors.

    Raises:
        DataError: the file holds something else, or a log of an earlier format.
    """
    made_as = schema_version(database)
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if made_as == 0 and tables:
        raise DataError(f"{name} is a database, but not a judgment log: name another file")
    if 0 < made_as < FORMAT:
        raise DataError(
            f"{name} is a judgment log of format {made_as}, and this searchapp reads format {FORMAT}: export it with "
            "the searchapp that wrote it (`judgments export`), and import the file into a new log (`judgments import`)"
        )
    for statement in _statements(_SCHEMA):
        database.execute(statement)


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


SIZE = 16
"""The bytes of a checksum."""

START = b""
"""What comes before the first checksum."""

_SEALED_AT_ONCE = 10_000

# Texts as bytes: one that is no UTF-8 any more would otherwise keep all others from being read.
ROW = ", ".join(
    (
        "sequence",
        *(name if name in TYPES else f"CAST({name} AS BLOB)" for name in COLUMNS),
        "(SELECT own.checksum FROM checksums AS own WHERE own.sequence = events.sequence)",
        "(SELECT prior.checksum FROM checksums AS prior WHERE prior.sequence < events.sequence "
        "ORDER BY prior.sequence DESC LIMIT 1)",
    )
)
"""The columns of a `Stored` in a query on `events`."""

_KINDS = {kind.value: kind for kind in Kind}
_CHANNELS = {channel.value: channel for channel in Channel}
_ACTIONS = {action.value: action for action in Action}

Value = str | int | float | None


class UnknownWord(ValueError):
    """An event has a kind, channel or action that this searchapp does not know."""


class NoEvent(ValueError):
    """What is stored has never been an event as searchapp writes them."""


@dataclass(frozen=True, slots=True)
class Head:
    """How many events the checksums cover, the place of the last of these, and its checksum."""

    events: int
    sequence: int
    checksum: bytes


class Stored:
    """An event as it is stored, by a row of the columns `ROW`: its place, its values, and the checksums around it."""

    __slots__ = ("before", "is_text", "own", "sequence", "values")

    def __init__(self, row: Sequence[object]) -> None:
        self.sequence: int = row[0]  # type: ignore[assignment]  # the table's key is a number, whatever happens
        own, before = row[-2:]
        self.own = own if isinstance(own, bytes) else None
        self.before = before if isinstance(before, bytes) else START
        given = row[1:-2]
        self.is_text = True
        try:
            self.values: list[Value] = [
                value.decode() if value.__class__ is bytes else value  # type: ignore[misc]
                for value in given
            ]
        except UnicodeDecodeError:
            self.is_text = False
            self.values = [
                value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value  # type: ignore[misc]
                for value in given
            ]

    def checksum(self, before: bytes) -> bytes:
        """Its checksum, after another one."""
        said = json.dumps([self.sequence, *self.values])
        return hashlib.blake2b(before + said.encode(), digest_size=SIZE).digest()

    def event(self) -> Event:
        """The event.

        Raises:
            UnknownWord: a newer searchapp has written it.
            NoEvent: nobody has: it was altered before it had a checksum.
        """
        values = dict(zip(COLUMNS, self.values, strict=True))
        for name, known in (("kind", _KINDS), ("channel", _CHANNELS), ("action", _ACTIONS)):
            word = values[name]
            if word not in known:
                raise UnknownWord(f"{word!r} is not a valid {name}")
            values[name] = known[word]  # type: ignore[index]
        if values["saw_others"] is not None:  # SQLite has no truth values, only 0 and 1
            values["saw_others"] = bool(values["saw_others"])
        try:
            is_of_a_zone = datetime.fromisoformat(values["time"]).tzinfo is not None  # type: ignore[arg-type]
        except (TypeError, ValueError):
            is_of_a_zone = False
        if not is_of_a_zone or not self.is_text:
            raise NoEvent("its text or its time can't be read")
        return Event(**values)  # type: ignore[arg-type]


class Chain:
    """The checksums of the log in a database."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def head(self) -> Head:
        """How far the checksums go."""
        row = self._database.execute("SELECT events, sequence, checksum FROM head").fetchone()
        return Head(*checked(row, int, int, bytes)) if row else Head(0, 0, START)

    def seal(self, after: int) -> None:
        """Cover the events behind a place, which are new, within the transaction that writes them."""
        head, (sealed, last) = self.head(), self._last()
        agrees = (head.sequence, head.checksum) == (sealed, last)
        count, place = head.events, max(after, sealed)
        while some := self._rows("sequence > ?", [place], _SEALED_AT_ONCE):
            sums = []
            for stored in some:
                place, last = stored.sequence, stored.checksum(last)
                sums.append((place, last))
            count += len(sums)
            self._database.executemany("INSERT INTO checksums VALUES (?, ?)", sums)
        # A head that is damaged stays as it is, so that it goes on being noticed.
        if agrees and count > head.events:
            self._database.execute(
                "UPDATE head SET events = ?, sequence = ?, checksum = ?", (count, place, last)
            )

    def _last(self) -> tuple[int, bytes]:
        """The last checksum with its place."""
        query = "SELECT sequence, checksum FROM checksums ORDER BY sequence DESC LIMIT 1"
        row = self._database.execute(query).fetchone() or (0, START)
        place, last = checked(row, int, bytes)
        return place, last

    def is_sound(self, stored: Stored) -> bool:
        """Whether an event is as it was when it was covered; also where it is not its own checksum that says so."""
        if stored.own == stored.checksum(stored.before):
            return True
        return any(self._follows(stored, candidate) for candidate in self._candidates(stored))

    def _candidates(self, stored: Stored) -> Iterator[bytes]:
        """What the event's checksum should be: by the one before it, and by what that should be."""
        yield stored.checksum(stored.before)
        former = self._rows("sequence < ?", [stored.sequence], 1, "DESC")
        if former:
            yield stored.checksum(former[0].checksum(former[0].before))

    def _follows(self, stored: Stored, candidate: bytes) -> bool:
        """Whether a checksum is confirmed: by its own place, by the head's, or by that of the next event."""
        if candidate == stored.own:
            return True
        head = self.head()
        if head.sequence == stored.sequence:
            return candidate == head.checksum
        later = self._rows("sequence > ?", [stored.sequence], 1)
        return bool(later) and later[0].own is not None and later[0].own == later[0].checksum(candidate)

    def missing(self, after: int = 0) -> list[int]:
        """The places behind a place that have a checksum, or the head's word, and no event."""
        rows = self._database.execute(
            "SELECT sequence FROM checksums WHERE sequence > :after "
            "AND NOT EXISTS (SELECT 1 FROM events WHERE events.sequence = checksums.sequence) "
            "UNION SELECT sequence FROM head WHERE sequence > :after "
            "AND NOT EXISTS (SELECT 1 FROM events WHERE events.sequence = head.sequence) ORDER BY 1",
            {"after": after},
        )
        return [place for (place,) in rows]

    def checksum_at(self, place: int) -> bytes | None:
        """The checksum of a place; None where there is none."""
        row = self._database.execute("SELECT checksum FROM checksums WHERE sequence = ?", (place,)).fetchone()
        return row[0] if row and isinstance(row[0], bytes) else None

    def _rows(self, where: str, values: Sequence[object], limit: int, order: str = "ASC") -> list[Stored]:
        statement = f"SELECT {ROW} FROM events WHERE {where} ORDER BY sequence {order} LIMIT {limit:d}"
        return [Stored(row) for row in self._database.execute(statement, values)]
