"""The events of the judgment log: one SQLite file, to which events are appended and nothing else.

`append` returns once the events are on disk (write-ahead log, `synchronous=FULL`): whatever happens afterwards, they
are there. Several processes may append at the same time. An event whose id is in the log already is not written again,
so that a write whose outcome is unknown may be repeated.

`HeadFile` remembers the end of the log in a small file beside it, so that lost events are noticed there.
A log whose last events are gone, with all that it says of them, is a sound one of an earlier time. That happens to what
is still in SQLite's write-ahead log (`-wal`): if that file is damaged, or left behind when the log is copied, SQLite
goes by what is before the damage, and says nothing.

The file is written after the events, and not waited for: it may be behind the log, never ahead of it. One that is
missing or makes no sense says nothing, and is written again with the next event.

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
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from searchapp.errors import DataError, SearchappError
from searchapp.files import reason
from searchapp.judging.events import Action, Channel, Event, Kind
from searchapp.text import counted

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


TOLD = 10
"""How many damaged events are reported one by one."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is wrong: the place of the event, None where it is none's, and a sentence."""

    place: int | None
    words: str


class Damages:
    """Everything that was found in a log so far; each thing is reported once, and no more than some of them.

    `report` is called with a sentence. It may be replaced at any time.
    """

    def __init__(self, report: Callable[[str], None] | None = None) -> None:
        self.report = report
        self._found: dict[Damage, None] = {}

    def add(self, damage: Damage) -> None:
        """Take note of something, and report it unless that was done before."""
        if damage in self._found:
            return
        self._found[damage] = None
        if self.report is not None and len(self._found) <= TOLD:
            self.report(damage.words)
        elif self.report is not None and len(self._found) == TOLD + 1:
            self.report("more events are damaged: `searchapp judgments verify` lists them all")

    @property
    def found(self) -> tuple[Damage, ...]:
        """Everything that was found, in the order in which it was."""
        return tuple(self._found)

    @property
    def places(self) -> list[int]:
        """The places of damaged events."""
        return [damage.place for damage in self._found if damage.place is not None]


_LENGTH = 96


class HeadFile:
    """The file beside the log in `log`."""

    def __init__(self, log: Path) -> None:
        self.path = log.with_name(f"{log.name}-head")

    def read(self) -> Head | None:
        """What is remembered; None if nothing is, or the log was empty."""
        try:
            said, _, check = self.path.read_bytes()[:_LENGTH].rstrip().rpartition(b" ")
            events, sequence, checksum = said.split(b" ")
            if int(check, 16) != zlib.crc32(said) or int(events) < 1:
                return None
            return Head(int(events), int(sequence), bytes.fromhex(checksum.decode()))
        except (OSError, ValueError):
            return None

    def write(self, head: Head) -> None:
        """Remember the end of the log, if that is possible."""
        said = b"%d %d %s" % (head.events, head.sequence, head.checksum.hex().encode())
        line = (b"%s %08x" % (said, zlib.crc32(said))).ljust(_LENGTH - 1) + b"\n"
        with suppress(OSError):
            # Always as long, and in its place: a reader meanwhile sees one or the other, or an invalid value.
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)


BUSY_SECONDS = 30.0
"""How long a write waits for other processes that write."""

_IDS_AT_ONCE = 500

_OF_WRITING = (
    "SQLITE_FULL",
    "SQLITE_CANTOPEN",
    "SQLITE_READONLY",
    "SQLITE_IOERR_WRITE",
    "SQLITE_IOERR_TRUNCATE",
)
"""How SQLite calls what goes wrong with a file that is written."""

_ADVICE = "`searchapp judgments verify` says more"


class EventLog:
    """The log in a file, which is made if it is not there; a write waits `patience` seconds for others that write.

    `report` is called with a sentence for each event that turns out to be damaged or gone: such an event is left out.

    Raises:
        DataError: the file is not a judgment log of this format, or is damaged.
        NotSaved: the file can't be made.
    """

    def __init__(
        self, path: Path, patience: float = BUSY_SECONDS, report: Callable[[str], None] | None = None
    ) -> None:
        self.path = path
        self.damage = Damages(report)
        self._head_file = HeadFile(path)
        self._lost: str | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._reading():
                self._database = sqlite3.connect(path, timeout=patience, isolation_level=None)
        except OSError as error:
            raise NotSaved(f"{path} can't be made: {reason(error)}") from error
        self._chain = Chain(self._database)
        try:
            with self._reading():
                self._prepare(patience)
        except BaseException:
            self._database.close()
            raise

    def _prepare(self, patience: float) -> None:
        self._database.execute("PRAGMA synchronous = FULL")
        # Asked before the database is looked at, which can only be further by then.
        remembered = self._head_file.read()
        if schema_version(self._database) < FORMAT:
            # Asked again inside: another process may have made the log in between.
            with self._transaction():
                if schema_version(self._database) < FORMAT:
                    make_tables(self._database, str(self.path))
        if schema_version(self._database) > FORMAT:
            raise DataError(f"{self.path} was written by a newer searchapp: update searchapp")
        self._write_ahead(patience)
        self._lost = None if remembered is None else self._loss(remembered)
        if self._lost is not None:
            self.damage.add(Damage(None, self._lost))

    def _loss(self, remembered: Head) -> str | None:
        """What was saved once and is gone, by what was remembered apart from the log."""
        if self._chain.checksum_at(remembered.sequence) == remembered.checksum:
            return None
        fewer = remembered.events - self._chain.head().events
        what = (
            f"its last {counted(fewer, 'event')} {'is' if fewer == 1 else 'are'} gone"
            if fewer > 0
            else "its last events have changed"
        )
        return (
            f"{self.path} is not as it was when the last event was saved: {what}; if it was restored, or replaced by "
            f"another log, on purpose, delete {self._head_file.path}"
        )

    def append(self, events: Sequence[Event]) -> int:
        """Write events, all or none; returns how many of them were not in the log before.

        Raises:
            NotSaved: the disk is full, the file is read-only, or another process holds it: nothing was written.
        """
        with self._writing():
            new = self._insert(events)
        self._remember_head()
        return new

    def _insert(self, events: Sequence[Event]) -> int:
        before = self._database.total_changes
        (place,) = self._database.execute("SELECT coalesce(max(sequence), 0) FROM events").fetchone()
        marks = ", ".join("?" * len(COLUMNS))
        self._database.executemany(
            f"INSERT INTO events ({', '.join(COLUMNS)}) VALUES ({marks}) ON CONFLICT (id) DO NOTHING",
            [astuple(event) for event in events],
        )
        new = self._database.total_changes - before
        self._chain.seal(place)
        return new

    def _remember_head(self) -> None:
        # A loss is reported until somebody has looked into it.
        if self._lost is None:
            with self._reading():
                self._head_file.write(self._chain.head())

    def events(self, task: str | None = None, after: int = 0) -> Iterator[tuple[int, Event]]:
        """The events after a place in the log, in the order in which they were written, each with its place.

        What is damaged or missing there is left out, see `damage`.
        """
        # Not by an index, nor by what an event says of its task: an event could be passed over that way.
        for place, event in self._read("sequence > ?", [after]):
            if task is None or event.task == task:
                yield place, event
        with self._reading():
            for place in self._chain.missing(after):
                self.damage.add(Damage(place, f"{self.path}: event {place} is gone: {_ADVICE}"))

    def _read(self, where: str, values: Values, limit: int = -1) -> Iterator[tuple[int, Event]]:
        """Those events of a condition that are as they were written."""
        statement = f"SELECT {ROW} FROM events WHERE {where} ORDER BY sequence LIMIT {limit:d}"
        with self._reading():
            for row in self._database.execute(statement, values):
                stored = Stored(row)
                try:
                    event = stored.event() if self._chain.is_sound(stored) else None
                except UnknownWord as error:
                    raise DataError(
                        f"{self.path}: event {stored.sequence}: {error}: update searchapp, a newer one may know it"
                    ) from error
                except NoEvent:
                    event = None
                if event is None:
                    place = stored.sequence
                    self.damage.add(
                        Damage(place, f"{self.path}: event {place} is damaged and left out: {_ADVICE}")
                    )
                else:
                    yield stored.sequence, event

    # What it is worth

    @property
    def head(self) -> Head:
        """How many events are covered by checksums, and the last of these."""
        with self._reading():
            return self._chain.head()

    @contextmanager
    def at_one_moment(self) -> Iterator[None]:
        """Everything read within is from one moment, whatever other processes write meanwhile."""
        with self._reading():
            self._database.execute("BEGIN")
            try:
                yield
            finally:
                self._database.execute("ROLLBACK")

    def structure(self) -> list[str]:
        """What SQLite finds wrong with the file."""
        return [line for (line,) in self._all("PRAGMA integrity_check") if line != "ok"]

    def stored(self) -> Iterator[Stored]:
        """Every event as it is stored, damaged or not, in the order of the places."""
        with self._reading():
            for row in self._database.execute(f"SELECT {ROW} FROM events ORDER BY sequence"):
                yield Stored(row)

    def is_sound(self, stored: Stored) -> bool:
        """Whether an event is as it was written, as far as checksums cover it."""
        with self._reading():
            return self._chain.is_sound(stored)

    def missing(self) -> list[int]:
        """The places of events that are gone."""
        with self._reading():
            return self._chain.missing()

    def head_holds(self) -> bool:
        """Whether what the log says of its end agrees with its last checksum."""
        with self._reading():
            head = self._chain.head()
            return head.sequence == 0 or self._chain.checksum_at(head.sequence) == head.checksum

    def copy_to(self, path: Path) -> None:
        """Copy the log as it is at one moment; others may write at the same time.

        Raises:
            sqlite3.DatabaseError: the copy can't be written.
            DataError: the log can't be read.
        """
        try:
            with closing(sqlite3.connect(path)) as copy:
                # All at once: with the write-ahead log this keeps nobody waiting, and no write makes it begin again.
                self._database.backup(copy)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorname", "").startswith(_OF_WRITING):
                raise  # this log is only read
            self._tell(error)

    def keep_in_one_file(self) -> None:
        """Leave no other files beside this one, until somebody opens it again."""
        with self._reading():
            self._database.execute("PRAGMA journal_mode = DELETE")

    def known(self, ids: Iterable[str]) -> dict[str, Event]:
        """Those events of the given ids that are in the log."""
        found: dict[str, Event] = {}
        waiting = iter(ids)
        while some := list(islice(waiting, _IDS_AT_ONCE)):
            marks = ", ".join("?" * len(some))
            found |= {event.id: event for _, event in self._read(f"id IN ({marks})", some)}
        return found

    def places_of(self, ids: Iterable[str]) -> Iterator[tuple[int, Event]]:
        """Those events of the given ids that are in the log, each with its place."""
        wanted = list(ids)
        found: set[str] = set()
        for start in range(0, len(wanted), _IDS_AT_ONCE):
            some = json.dumps(wanted[start : start + _IDS_AT_ONCE])
            for place, event in self._read("id IN (SELECT value FROM json_each(?))", [some]):
                found.add(event.id)
                yield place, event
        if rest := [one for one in wanted if one not in found]:
            # Few, if any. Not by the index once more, which may be what is damaged.
            yield from self._read("+id IN (SELECT value FROM json_each(?))", [json.dumps(rest)])

    def at(self, places: Iterable[int]) -> list[Event]:
        """The events at places that have one."""
        wanted, found = list(places), list[Event]()
        for start in range(0, len(wanted), _IDS_AT_ONCE):
            some = set(wanted[start : start + _IDS_AT_ONCE])
            where = "sequence IN (SELECT value FROM json_each(?))"
            read = dict(self._read(where, [json.dumps(list(some))]))
            found += read.values()
            for place in sorted(some - read.keys() - set(self.damage.places)):
                self.damage.add(Damage(place, f"{self.path}: event {place} is gone: {_ADVICE}"))
        return found

    def checksum_at(self, place: int) -> bytes | None:
        """The checksum of the event at a place; None where there is none."""
        with self._reading():
            return self._chain.checksum_at(place)

    def __len__(self) -> int:
        (count,) = self._one("SELECT count(*) FROM events")
        return int(count)

    # The database

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
