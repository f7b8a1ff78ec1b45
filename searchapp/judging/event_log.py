"""The events of the judgment log: a SQLite file that only grows.

`append` returns once the events are on disk (write-ahead log, `synchronous=FULL`). Appending an event again has no
effect, so a write whose outcome is unknown can be repeated. A chain of checksums detects altered and missing events:

    checksum = BLAKE2b-128(previous checksum + JSON of [sequence, value, value, ...])

If only a checksum was altered, the next one still proves the event. The table `head` has the number of events, and the
sequence number and checksum of the last one.

The table `details` has side records of events. Versions before 0.4 ignore it, so it is made when it is first needed.
Each row has a checksum of its own; the rows are numbered from 1 without gaps.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, fields
from datetime import datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar

from searchapp.errors import DataError, SearchappError
from searchapp.files import reason
from searchapp.judging.events import Action, Channel, Detail, Event, Kind
from searchapp.lucene.dataclass import dataclass
from searchapp.text import be, counted

T = TypeVar("T")

# The parameters of an SQL statement, by number or by name.
Parameters = Sequence[object] | Mapping[str, object]


def checked(row: Sequence[Any], *types: type) -> Any:
    """Return a row whose values have the declared types of its columns.

    Raises:
        sqlite3.DatabaseError: a value has another type.
    """
    # SQLite does not check types when it reads, and a page of a damaged file may be another table's.
    if not all(map(isinstance, row, types)):
        raise sqlite3.DatabaseError("values of wrong types")
    return row


class NotSaved(SearchappError):
    """Events could not be written; the caller still has them."""


FORMAT = 8

COLUMNS = tuple(field.name for field in fields(Event))
TYPES = {"grade": "INTEGER", "rank": "INTEGER", "saw_others": "INTEGER"}

# Statements are separated by blank lines.
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    {", ".join(f"{name} {TYPES.get(name, 'TEXT NOT NULL')}" for name in COLUMNS)},
    UNIQUE (id)
) STRICT

CREATE TABLE IF NOT EXISTS mirrors (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    identity TEXT NOT NULL UNIQUE,
    sent INTEGER NOT NULL DEFAULT 0,
    received INTEGER NOT NULL DEFAULT -1
) STRICT

CREATE TABLE IF NOT EXISTS addresses (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    address TEXT NOT NULL UNIQUE,
    identity TEXT NOT NULL
) STRICT

CREATE TABLE IF NOT EXISTS arrivals (
    sequence INTEGER PRIMARY KEY,
    mirror INTEGER NOT NULL REFERENCES mirrors (number)
) STRICT

CREATE TABLE IF NOT EXISTS sent_of_tasks (
    mirror INTEGER NOT NULL REFERENCES mirrors (number),
    task TEXT NOT NULL,
    up_to INTEGER NOT NULL,
    PRIMARY KEY (mirror, task)
) STRICT

CREATE TABLE IF NOT EXISTS imports (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    task TEXT NOT NULL,
    file TEXT NOT NULL,
    format TEXT NOT NULL,
    events INTEGER NOT NULL
) STRICT

CREATE TABLE IF NOT EXISTS imported (
    sequence INTEGER PRIMARY KEY,
    import INTEGER NOT NULL REFERENCES imports (number)
) STRICT

CREATE TABLE IF NOT EXISTS windows (
    id TEXT PRIMARY KEY,
    annotator TEXT NOT NULL,
    task TEXT NOT NULL,
    host TEXT NOT NULL,
    process INTEGER NOT NULL,
    opened REAL NOT NULL,
    beat REAL NOT NULL
) STRICT

CREATE TABLE IF NOT EXISTS checksums (
    sequence INTEGER PRIMARY KEY,
    checksum BLOB NOT NULL
) STRICT

CREATE TABLE IF NOT EXISTS head (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    events INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    checksum BLOB NOT NULL
) STRICT

INSERT OR IGNORE INTO head VALUES (1, 0, 0, X'')

CREATE INDEX IF NOT EXISTS events_by_task ON events (task, sequence)

CREATE TRIGGER IF NOT EXISTS never_updated BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END

CREATE TRIGGER IF NOT EXISTS never_deleted BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END

CREATE TRIGGER IF NOT EXISTS checksums_never_updated BEFORE UPDATE ON checksums
    BEGIN SELECT RAISE(ABORT, 'checksums are never changed'); END

CREATE TRIGGER IF NOT EXISTS checksums_never_deleted BEFORE DELETE ON checksums
    BEGIN SELECT RAISE(ABORT, 'checksums are never deleted'); END

PRAGMA user_version = {FORMAT}
"""

# Statements are separated by blank lines.
_DETAILS = """
CREATE TABLE IF NOT EXISTS details (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    event TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    checksum BLOB NOT NULL,
    UNIQUE (event, name)
) STRICT

CREATE TRIGGER IF NOT EXISTS details_never_updated BEFORE UPDATE ON details
    BEGIN SELECT RAISE(ABORT, 'details are never changed'); END

CREATE TRIGGER IF NOT EXISTS details_never_deleted BEFORE DELETE ON details
    BEGIN SELECT RAISE(ABORT, 'details are never deleted'); END
"""

START = b""  # the checksum before the first event

_SEALED_AT_ONCE = 10_000
_IDS_AT_ONCE = 500

# The columns of a `StoredEvent`.
# Texts as bytes: invalid UTF-8 in one row would otherwise make all others unreadable.
_ROW = ", ".join(
    (
        "sequence",
        *(name if name in TYPES else f"CAST({name} AS BLOB)" for name in COLUMNS),
        "(SELECT own.checksum FROM checksums AS own WHERE own.sequence = events.sequence)",
        "(SELECT prior.checksum FROM checksums AS prior WHERE prior.sequence < events.sequence "
        "ORDER BY prior.sequence DESC LIMIT 1)",
    )
)

_WORDS: dict[str, dict[object, StrEnum]] = {
    "kind": {kind.value: kind for kind in Kind},
    "channel": {channel.value: channel for channel in Channel},
    "action": {action.value: action for action in Action},
}

Value = str | int | float | None


class UnknownWord(ValueError):
    """An event has a kind, channel or action that this version does not know."""


class NoEvent(ValueError):
    """A stored row is not a valid event."""


@dataclass(frozen=True, slots=True)
class LogHead:
    """The number of events, and the sequence number and checksum of the last one."""

    events: int
    sequence: int
    checksum: bytes


class StoredEvent:
    """A row of the columns `_ROW`: number and values of an event, its checksum and the previous one."""

    __slots__ = ("before", "is_text", "own", "sequence", "values")

    def __init__(self, row: Sequence[object]) -> None:
        self.sequence: int = row[0]  # type: ignore[assignment]  # the table's key is always a number
        own, before = row[-2:]
        self.own = own if isinstance(own, bytes) else None
        self.before = before if isinstance(before, bytes) else START
        self.is_text = True
        try:
            self.values: list[Value] = [
                value.decode() if value.__class__ is bytes else value  # type: ignore[misc]
                for value in row[1:-2]
            ]
        except UnicodeDecodeError:
            self.is_text = False
            self.values = [
                value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value  # type: ignore[misc]
                for value in row[1:-2]
            ]

    def checksum(self, before: bytes) -> bytes:
        content = json.dumps([self.sequence, *self.values])
        return hashlib.blake2b(before + content.encode(), digest_size=16).digest()

    def event(self) -> Event:
        """Return the event.

        Raises:
            UnknownWord: a newer version wrote it.
            NoEvent: it was altered before it had a checksum.
        """
        values: dict[str, Any] = dict(zip(COLUMNS, self.values, strict=True))
        for name, known in _WORDS.items():
            if values[name] not in known:
                raise UnknownWord(f"{values[name]!r} is not a valid {name}")
            values[name] = known[values[name]]
        if values["saw_others"] is not None:  # SQLite has no truth values, only 0 and 1
            values["saw_others"] = bool(values["saw_others"])
        try:
            has_zone = datetime.fromisoformat(values["time"]).tzinfo is not None
        except (TypeError, ValueError):
            has_zone = False
        if not has_zone or not self.is_text:
            raise NoEvent("its text or its time can't be read")
        return Event(**values)


def _detail_checksum(number: int, event: str, name: str, value: str) -> bytes:
    return hashlib.blake2b(json.dumps([number, event, name, value]).encode(), digest_size=16).digest()


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    return iter(lambda: list(islice(iterator, _IDS_AT_ONCE)), [])


REPORTED = 10  # how many damaged events are reported one by one


@dataclass(frozen=True, slots=True)
class Damage:
    """Damage of the log."""

    sequence: int | None
    words: str


class DamageReport:
    """The damage of a log; calls `report` once for each of the first `REPORTED` entries."""

    def __init__(self, report: Callable[[str], None] | None = None) -> None:
        self.report = report
        self._entries: dict[Damage, None] = {}

    def add(self, sequence: int | None, words: str) -> None:
        damage = Damage(sequence, words)
        if damage in self._entries:
            return
        self._entries[damage] = None
        if self.report is not None and len(self._entries) <= REPORTED:
            self.report(words)
        elif self.report is not None and len(self._entries) == REPORTED + 1:
            self.report("more events are damaged: `searchapp judgments verify` lists them all")

    @property
    def entries(self) -> tuple[Damage, ...]:
        return tuple(self._entries)

    @property
    def sequences(self) -> list[int]:
        return [damage.sequence for damage in self._entries if damage.sequence is not None]


_LENGTH = 96


class HeadFile:
    """A copy of the log's head in a small file beside it.

    Without it, the loss of SQLite's write-ahead log would go unnoticed: the rest is a valid log of an earlier time. The
    file is not synced: it may be behind the log, but never ahead.
    """

    def __init__(self, log: Path) -> None:
        self.path = log.with_name(f"{log.name}-head")

    def read(self) -> LogHead | None:
        """Return the head; None if the file is missing or damaged, or the log was empty."""
        try:
            content, _, check = self.path.read_bytes()[:_LENGTH].rstrip().rpartition(b" ")
            events, sequence, checksum = content.split(b" ")
            if int(check, 16) != zlib.crc32(content) or int(events) < 1:
                return None
            return LogHead(int(events), int(sequence), bytes.fromhex(checksum.decode()))
        except (OSError, ValueError):
            return None

    def write(self, head: LogHead) -> None:
        """Write the head; a failure has no effect."""
        content = b"%d %d %s" % (head.events, head.sequence, head.checksum.hex().encode())
        line = (b"%s %08x" % (content, zlib.crc32(content))).ljust(_LENGTH - 1) + b"\n"
        with suppress(OSError):
            # Overwritten at a fixed length: a concurrent reader gets the old or the new line, or an invalid one.
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)


BUSY_SECONDS = 30.0  # how long a write waits for other processes that write

_WRITE_ERRORS = (
    "SQLITE_FULL",
    "SQLITE_CANTOPEN",
    "SQLITE_READONLY",
    "SQLITE_IOERR_WRITE",
    "SQLITE_IOERR_TRUNCATE",
)

_ADVICE = "`searchapp judgments verify` reports details"


class EventLog:
    """The log in a file, which is created if it is missing.

    Reading skips damaged and missing events and records them in `damage`.

    Args:
        patience: how many seconds a write waits for other processes
        report: called with a message for each damaged or missing event

    Raises:
        DataError: the file is not a judgment log of this format, or is damaged.
        NotSaved: the file can't be created.
    """

    def __init__(
        self, path: Path, patience: float = BUSY_SECONDS, report: Callable[[str], None] | None = None
    ) -> None:
        self.path = path
        self.damage = DamageReport(report)
        self._head_file = HeadFile(path)
        # The sentence on events that disappeared with SQLite's write-ahead log.
        self._loss: str | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._reading():
                # A screen is opened in one thread, used in another and closed in a third, one after the other.
                self._database = sqlite3.connect(
                    path, timeout=patience, isolation_level=None, check_same_thread=False
                )
        except OSError as error:
            raise NotSaved(f"{path} can't be created: {reason(error)}") from error
        try:
            with self._reading():
                self._prepare(patience)
        except BaseException:
            self._database.close()
            raise

    def _prepare(self, patience: float) -> None:
        self._database.execute("PRAGMA synchronous = FULL")
        # Read before the database, which can only be further by then.
        remembered = self._head_file.read()
        if self._format() < FORMAT:
            # Checked again inside the transaction: another process may have made the log in between.
            with self._transaction():
                if self._format() < FORMAT:
                    self._make_tables()
        if self._format() > FORMAT:
            raise DataError(f"{self.path} was written by a newer version of searchapp: update searchapp")
        self._write_ahead(patience)
        if remembered is not None and self.checksum_at(remembered.sequence) != remembered.checksum:
            fewer = remembered.events - self.head.events
            loss = (
                f"its last {counted(fewer, 'event')} {be(fewer)} gone"
                if fewer > 0
                else "its last events have changed"
            )
            self._loss = (
                f"{self.path} has changed since the last event was saved: {loss}; if you restored or "
                f"replaced it on purpose, delete {self._head_file.path}"
            )
            self.damage.add(None, self._loss)

    def _format(self) -> int:
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        return int(version)

    def _make_tables(self) -> None:
        version = self._format()
        (tables,) = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if version == 0 and tables:
            raise DataError(f"{self.path} is a database, but not a judgment log: name another file")
        if version > 0:
            raise DataError(
                f"{self.path} is a judgment log of format {version}, and this searchapp reads format "
                f"{FORMAT}: export "
                "it with the searchapp that wrote it (`judgments export`), and import the file into a new log "
                "(`judgments import`)"
            )
        for statement in _SCHEMA.split("\n\n"):
            self._database.execute(statement)

    def _write_ahead(self, patience: float) -> None:
        # SQLite's own timeout does not apply to this statement.
        until = time.monotonic() + patience
        while True:
            try:
                self._database.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(0.01)

    # Writing

    def append(self, events: Sequence[Event], details: Sequence[Detail] = ()) -> int:
        """Append events and details, all or none; return how many of the events are new.

        A detail whose event has one of the same name already has no effect.

        Raises:
            NotSaved: the disk is full, the file is read-only, or another process locks it; nothing was written.
        """
        with self._writing():
            new = self._insert(events)
            self._insert_details(details)
        self._write_head_file()
        return new

    def _insert_details(self, details: Sequence[Detail]) -> int:
        """Insert the details that the log lacks; return how many."""
        if not details:
            return 0
        for statement in () if self.has_details else _DETAILS.split("\n\n"):
            self._database.execute(statement)
        number = before = self._last_detail()
        for detail in details:
            detail.check()
            key = (detail.event, detail.name)
            known = self._database.execute("SELECT 1 FROM details WHERE (event, name) = (?, ?)", key)
            if known.fetchone() is None:  # looked up, because a refused insertion would leave a gap
                number += 1
                value = json.dumps(detail.value, sort_keys=True)
                row = (number, *key, value)
                self._database.execute(
                    "INSERT INTO details VALUES (?, ?, ?, ?, ?)", (*row, _detail_checksum(*row))
                )
        return number - before

    def _last_detail(self) -> int:
        """Return the number of the last detail, 0 without details."""
        if not self.has_details:
            return 0
        (number,) = self._one("SELECT coalesce(max(number), 0) FROM details")
        return int(number)

    @property
    def has_details(self) -> bool:
        return self._one("SELECT 1 FROM sqlite_master WHERE name = 'details'") is not None

    def _insert(self, events: Sequence[Event]) -> int:
        before, sequence = self._database.total_changes, self._last_sequence()
        marks = ", ".join("?" * len(COLUMNS))
        self._database.executemany(
            f"INSERT INTO events ({', '.join(COLUMNS)}) VALUES ({marks}) ON CONFLICT (id) DO NOTHING",
            [astuple(event) for event in events],
        )
        new = self._database.total_changes - before
        self._seal(sequence)
        return new

    def _last_sequence(self) -> int:
        (sequence,) = self._database.execute("SELECT coalesce(max(sequence), 0) FROM events").fetchone()
        return int(sequence)

    def _seal(self, after: int) -> None:
        """Write the checksums of the events after a number; call within the transaction that writes the events."""
        head = self.head
        query = "SELECT sequence, checksum FROM checksums ORDER BY sequence DESC LIMIT 1"
        sealed, last = checked(self._database.execute(query).fetchone() or (0, START), int, bytes)
        is_consistent = (head.sequence, head.checksum) == (sealed, last)
        count, sequence = head.events, max(after, sealed)
        while rows := self._rows("sequence > ?", [sequence], _SEALED_AT_ONCE):
            checksums = []
            for stored in rows:
                sequence, last = stored.sequence, stored.checksum(last)
                checksums.append((sequence, last))
            count += len(checksums)
            self._database.executemany("INSERT INTO checksums VALUES (?, ?)", checksums)
        # A damaged head stays as it is, so that later checks detect it too.
        if is_consistent and count > head.events:
            self._database.execute(
                "UPDATE head SET events = ?, sequence = ?, checksum = ?", (count, sequence, last)
            )

    def _write_head_file(self) -> None:
        # A loss is reported until the user has deleted the file.
        if self._loss is None:
            self._head_file.write(self.head)

    # Reading

    def events(self, task: str | None = None, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Yield sequence numbers and events after a number."""
        # Filtered here: an index or the column of a damaged event could hide it.
        for sequence, event in self._read("sequence > ?", [after]):
            if task is None or event.task == task:
                yield sequence, event
        for sequence in self.missing(after):
            self.damage.add(sequence, f"{self.path}: event {sequence} is missing: {_ADVICE}")

    def _read(self, where: str, parameters: Parameters, limit: int = -1) -> Iterator[tuple[int, Event]]:
        statement = f"SELECT {_ROW} FROM events WHERE {where} ORDER BY sequence LIMIT {limit:d}"
        with self._reading():
            for row in self._database.execute(statement, parameters):
                stored = StoredEvent(row)
                try:
                    event = stored.event() if self.is_sound(stored) else None
                except UnknownWord as error:
                    raise DataError(
                        f"{self.path}: event {stored.sequence}: {error}: update searchapp, a newer "
                        "version may know it"
                    ) from error
                except NoEvent:
                    event = None
                if event is None:
                    sequence = stored.sequence
                    self.damage.add(
                        sequence, f"{self.path}: event {sequence} is damaged and left out: {_ADVICE}"
                    )
                else:
                    yield stored.sequence, event

    def details(self, task: str | None = None, name: str | None = None) -> Iterator[Detail]:
        """Yield the details of a task's events, or of all, in the order of their arrival."""
        where = (
            "(:name IS NULL OR name = :name) "
            "AND (:task IS NULL OR event IN (SELECT id FROM events WHERE task = :task))"
        )
        for _, detail in self._read_details(where, {"name": name, "task": task}):
            yield detail

    def known_details(self, ids: Iterable[str]) -> dict[str, Detail]:
        """Return the details with these ids, by id."""
        known: dict[str, Detail] = {}
        for batch in _batches(ids):
            keys = json.dumps([id_.split("/", 1) for id_ in batch])
            where = (
                "(event, name) IN "
                "(SELECT json_extract(value, '$[1]'), json_extract(value, '$[0]') FROM json_each(?))"
            )
            known |= {detail.id: detail for _, detail in self._read_details(where, [keys])}
        return known

    def _read_details(
        self, where: str, parameters: Parameters, limit: int = -1
    ) -> Iterator[tuple[int, Detail]]:
        if not self.has_details:
            return
        statement = (
            "SELECT number, CAST(event AS BLOB), CAST(name AS BLOB), CAST(value AS BLOB), checksum FROM details "
            f"WHERE {where} ORDER BY number LIMIT {limit:d}"
        )
        with self._reading():
            for number, *texts, checksum in self._database.execute(statement, parameters):
                try:
                    event, name, value = (text.decode() for text in texts)
                    if checksum != _detail_checksum(number, event, name, value):
                        raise ValueError("its content has changed")
                    yield number, Detail(event, name, json.loads(value))  # noqa: TID251  # the checksum was compared
                except (AttributeError, ValueError):
                    self.damage.add(None, f"{self.path}: detail {number} is damaged and left out: {_ADVICE}")

    def missing_details(self) -> int:
        """Return how many details have disappeared."""
        if not self.has_details:
            return 0
        (missing,) = self._one(
            "SELECT coalesce(max(seq), 0) - (SELECT count(*) FROM details) FROM sqlite_sequence WHERE name = 'details'"
        )
        return int(missing)

    def _rows(self, where: str, parameters: Parameters, limit: int, order: str = "ASC") -> list[StoredEvent]:
        statement = f"SELECT {_ROW} FROM events WHERE {where} ORDER BY sequence {order} LIMIT {limit:d}"
        return [StoredEvent(row) for row in self._database.execute(statement, parameters)]

    def known(self, ids: Iterable[str]) -> dict[str, Event]:
        return {event.id: event for _, event in self._with_ids(ids)}

    def events_with_ids(self, ids: Iterable[str]) -> Iterator[tuple[int, Event]]:
        """Yield sequence numbers and events of the ids, even if the index of ids is damaged."""
        wanted = dict.fromkeys(ids)
        for sequence, event in self._with_ids(list(wanted)):
            wanted.pop(event.id, None)
            yield sequence, event
        if wanted:
            yield from self._read("+id IN (SELECT value FROM json_each(?))", [json.dumps(list(wanted))])

    def _with_ids(self, ids: Iterable[str]) -> Iterator[tuple[int, Event]]:
        for batch in _batches(ids):
            yield from self._read("id IN (SELECT value FROM json_each(?))", [json.dumps(batch)])

    def at(self, sequences: Iterable[int]) -> list[Event]:
        """Return the events of these numbers; record missing ones as damage."""
        events: list[Event] = []
        for batch in _batches(sequences):
            rows = dict(self._read("sequence IN (SELECT value FROM json_each(?))", [json.dumps(batch)]))
            events += rows.values()
            for sequence in sorted(set(batch) - rows.keys() - set(self.damage.sequences)):
                self.damage.add(sequence, f"{self.path}: event {sequence} is missing: {_ADVICE}")
        return events

    def __len__(self) -> int:
        (count,) = self._one("SELECT count(*) FROM events")
        return int(count)

    # Verification

    @property
    def head(self) -> LogHead:
        with self._reading():
            row = self._database.execute("SELECT events, sequence, checksum FROM head").fetchone()
            return LogHead(*checked(row, int, int, bytes)) if row else LogHead(0, 0, START)

    def checksum_at(self, sequence: int) -> bytes | None:
        row = self._one("SELECT checksum FROM checksums WHERE sequence = ?", (sequence,))
        return row[0] if row and isinstance(row[0], bytes) else None

    def is_sound(self, stored: StoredEvent) -> bool:
        """Return whether an event is unaltered, even if its own checksum is damaged."""
        if stored.own == stored.checksum(stored.before):
            return True
        with self._reading():
            return any(self._is_confirmed(stored, candidate) for candidate in self._candidates(stored))

    def _candidates(self, stored: StoredEvent) -> Iterator[bytes]:
        """Yield an event's expected checksums, from the stored and from the expected previous one."""
        yield stored.checksum(stored.before)
        former = self._rows("sequence < ?", [stored.sequence], 1, "DESC")
        if former:
            yield stored.checksum(former[0].checksum(former[0].before))

    def _is_confirmed(self, stored: StoredEvent, candidate: bytes) -> bool:
        if candidate == stored.own:
            return True
        head = self.head
        if head.sequence == stored.sequence:
            return candidate == head.checksum
        later = self._rows("sequence > ?", [stored.sequence], 1)
        return bool(later) and later[0].own is not None and later[0].own == later[0].checksum(candidate)

    def missing(self, after: int = 0) -> list[int]:
        """Return the numbers after a number that have a checksum or are in the head, but no event."""
        rows = self._all(
            "SELECT sequence FROM checksums WHERE sequence > :after "
            "AND NOT EXISTS (SELECT 1 FROM events WHERE events.sequence = checksums.sequence) "
            "UNION SELECT sequence FROM head WHERE sequence > :after "
            "AND NOT EXISTS (SELECT 1 FROM events WHERE events.sequence = head.sequence) ORDER BY 1",
            {"after": after},
        )
        return [sequence for (sequence,) in rows]

    @contextmanager
    def at_one_moment(self) -> Iterator[None]:
        with self._reading():
            self._database.execute("BEGIN")
            try:
                yield
            finally:
                self._database.execute("ROLLBACK")

    def structure(self) -> list[str]:
        return [line for (line,) in self._all("PRAGMA integrity_check") if line != "ok"]

    def stored(self) -> Iterator[StoredEvent]:
        """Yield every event as it is stored, damaged or not."""
        with self._reading():
            for row in self._database.execute(f"SELECT {_ROW} FROM events ORDER BY sequence"):
                yield StoredEvent(row)

    def copy_to(self, path: Path) -> None:
        """Copy one state of the log, regardless of concurrent writes.

        Raises:
            sqlite3.DatabaseError: the copy can't be written.
            DataError: the log can't be read.
        """
        try:
            with closing(sqlite3.connect(path)) as copy:
                # In one step: with the write-ahead log it blocks no writer, and no write makes it start again.
                self._database.backup(copy)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorname", "").startswith(_WRITE_ERRORS):
                raise  # this log is only read
            self._raise(error)

    def keep_in_one_file(self) -> None:
        """Remove the write-ahead log until the log is opened again."""
        with self._reading():
            self._database.execute("PRAGMA journal_mode = DELETE")

    # The database

    def _one(self, statement: str, parameters: Parameters = ()) -> Any:
        return next(iter(self._all(statement, parameters)), None)

    def _all(self, statement: str, parameters: Parameters = ()) -> list[Any]:
        with self._reading():
            return self._database.execute(statement, parameters).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            self._raise(error)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._reading(), self._transaction():
            yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        # IMMEDIATE: of two processes that first read and then write, one would fail otherwise.
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    def _raise(self, error: sqlite3.DatabaseError) -> NoReturn:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_FULL"):
            raise NotSaved(f"{self.path}: the disk is full: free some space; nothing is lost") from error
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            raise NotSaved(f"{self.path} can't be written: check its permissions") from error
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise NotSaved(
                f"{self.path} has been in use by another process for too long: try again"
            ) from error
        if name.startswith("SQLITE_IOERR"):
            raise NotSaved(f"{self.path} can't be read or written: {error}") from error
        raise DataError(
            f"{self.path} is not a readable judgment log ({error}): restore it, or name another"
        ) from error

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
