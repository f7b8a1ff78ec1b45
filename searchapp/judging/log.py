"""The judgment log: one SQLite file, to which events are appended and nothing else.

`append` returns once the events are on disk (write-ahead log, `synchronous=FULL`): whatever happens afterwards, they
are there. Several processes may append at the same time. An event whose id is in the log already is not written again,
so that whoever is unsure whether a write arrived may repeat it.

The log also knows which of its events an index in a cluster has, and which of that index's it has itself, see
`shared`; which events came with which imported file, see `exchange`; and who has it open to judge, see `presence`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, fields
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from searchapp.errors import DataError
from searchapp.judging import schema
from searchapp.judging.chain import ROW, Chain, Head, NoEvent, Stored, UnknownWord
from searchapp.judging.damage import Damage, Damages
from searchapp.judging.events import Event
from searchapp.judging.headfile import HeadFile
from searchapp.judging.records import Import, Mirror, Window
from searchapp.judging.store import NotSaved as NotSaved
from searchapp.judging.store import Store, Values

BUSY_SECONDS = 30.0
"""How long a write waits for other processes that write."""

_IDS_AT_ONCE = 500

_NOT_THERE = (
    "sequence > :after AND NOT EXISTS "
    "(SELECT 1 FROM arrivals WHERE arrivals.sequence = events.sequence AND arrivals.mirror = :mirror) AND NOT EXISTS "
    "(SELECT 1 FROM sent_of_tasks AS sent WHERE sent.mirror = :mirror AND sent.task = events.task "
    "AND sent.up_to >= events.sequence) "
    "AND (:task IS NULL OR task = :task) AND sequence NOT IN (SELECT value FROM json_each(:damaged))"
)
"""Which events lie behind a place and are not in a mirror: neither have they come from it, nor were they sent with the
others of their task. Of one task, if it is named; and none that is known to be damaged."""


_ADVICE = "`searchapp judgments verify` says more"


class JudgmentLog(Store):
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
            raise NotSaved(f"{path} can't be made: {(error.strerror or str(error)).lower()}") from error
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
        """What was saved once and is not there any more, by what was remembered apart from the log."""
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
        # What was lost is told until somebody has looked into it.
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
        """What is read within is the log of one moment, whoever writes meanwhile."""
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
        """Copy the log as it is at one moment; others may write meanwhile."""
        with self._reading(), closing(sqlite3.connect(path)) as copy:
            # All at once: with the write-ahead log this keeps nobody waiting, and no write makes it begin again.
            self._database.backup(copy)

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
        self._remember_head()
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
        wanted = self._wanted(mirror.number, after, task)
        return list(self._read(_NOT_THERE, wanted, limit))

    def waiting(self, address: str, task: str | None = None) -> int:
        """How many events, of a task if it is named, the index at an address is still to get, as far as is known."""
        mirror = self._mirror("address = ? ORDER BY number DESC LIMIT 1", (address,))
        after, number = (0, 0) if mirror is None else (mirror.sent, mirror.number)
        wanted = self._wanted(number, after, task)
        (count,) = self._one(f"SELECT count(*) FROM events WHERE {_NOT_THERE}", wanted)
        return int(count)

    def _wanted(self, mirror: int, after: int, task: str | None) -> dict[str, object]:
        return {"mirror": mirror, "after": after, "task": task, "damaged": json.dumps(self.damage.places)}

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
                self._wanted(mirror.number, 0, None),
            )
        self._remember_head()
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
        rows = self._all(
            "SELECT * FROM windows WHERE task = ? AND annotator = ? AND beat >= ? ORDER BY opened",
            (task, annotator, since),
        )
        return [Window(*row) for row in rows]

    def _mirror(self, where: str, values: Sequence[object]) -> Mirror | None:
        row = self._one(
            f"SELECT number, address, identity, sent, received FROM mirrors WHERE {where}", values
        )
        return Mirror(*row) if row else None

    def __len__(self) -> int:
        (count,) = self._database.execute("SELECT count(*) FROM events").fetchone()
        return int(count)


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
