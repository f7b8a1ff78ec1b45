"""The events of the judgment log: one SQLite file, to which events are appended and nothing else.

`append` returns once the events are on disk (write-ahead log, `synchronous=FULL`): whatever happens afterwards, they
are there. Several processes may append at the same time. An event whose id is in the log already is not written again,
so that a write whose outcome is unknown may be repeated.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple
from itertools import islice
from pathlib import Path

from searchapp.errors import DataError
from searchapp.files import reason
from searchapp.judging import schema
from searchapp.judging.chain import ROW, Chain, Head, NoEvent, Stored, UnknownWord
from searchapp.judging.damage import Damage, Damages
from searchapp.judging.events import Event
from searchapp.judging.headfile import HeadFile
from searchapp.judging.store import NotSaved as NotSaved
from searchapp.judging.store import Store, Values

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
        DataError: the file is not a judgment log, is damaged, or a newer searchapp's.
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
        if schema.version(self._database) < schema.FORMAT:
            # Asked again inside: another process may have made the log in between.
            with self._transaction():
                if schema.version(self._database) < schema.FORMAT:
                    schema.make(self._database, str(self.path))
                    self._chain.seal()
        if schema.version(self._database) > schema.FORMAT:
            raise DataError(f"{self.path} was written by a newer searchapp: update searchapp")
        self._write_ahead(patience)
        if self._chain.unsealed():
            # By an earlier searchapp that has it open still. Where nothing can be written, they are read all the same.
            with suppress(NotSaved), self._writing():
                self._chain.seal()
        self._lost = None if remembered is None else self._loss(remembered)
        if self._lost is not None:
            self.damage.add(Damage(None, self._lost))

    def _loss(self, remembered: Head) -> str | None:
        """What was saved once and is gone, by what was remembered apart from the log."""
        if self._chain.checksum_at(remembered.sequence) == remembered.checksum:
            return None
        fewer = remembered.events - self._chain.head().events
        what = f"its last {fewer:,} events are gone" if fewer > 0 else "its last events have changed"
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
        marks = ", ".join("?" * len(schema.COLUMNS))
        self._database.executemany(
            f"INSERT INTO events ({', '.join(schema.COLUMNS)}) VALUES ({marks}) ON CONFLICT (id) DO NOTHING",
            [astuple(event) for event in events],
        )
        new = self._database.total_changes - before
        self._chain.seal()
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
        (count,) = self._database.execute("SELECT count(*) FROM events").fetchone()
        return int(count)
