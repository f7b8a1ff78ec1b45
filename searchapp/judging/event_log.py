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
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass
from itertools import islice
from pathlib import Path

from searchapp.errors import DataError
from searchapp.files import reason
from searchapp.judging import store
from searchapp.judging.events import Event
from searchapp.judging.store import ROW, Chain, Head, NoEvent, NotSaved, Store, Stored, UnknownWord, Values
from searchapp.text import counted

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


class EventLog(Store):
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
                super().__init__(path, sqlite3.connect(path, timeout=patience, isolation_level=None))
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
        if store.schema_version(self._database) < store.FORMAT:
            # Asked again inside: another process may have made the log in between.
            with self._transaction():
                if store.schema_version(self._database) < store.FORMAT:
                    store.make_tables(self._database, str(self.path))
        if store.schema_version(self._database) > store.FORMAT:
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
        marks = ", ".join("?" * len(store.COLUMNS))
        self._database.executemany(
            f"INSERT INTO events ({', '.join(store.COLUMNS)}) VALUES ({marks}) ON CONFLICT (id) DO NOTHING",
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
