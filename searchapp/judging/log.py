"""The judgment log: its events (see `event_log`) and side records, verification and backup, open windows.

The log also records which of its events an index in a cluster has, and which of that index's events it has itself (see
`team`), which events were imported with which file (see `exchange`), and which windows are open.

`Presence` keeps an annotator from judging in two windows unawares. Every window beats in the log's file, in a table
of its own. A window that was killed beats no more, and is known to be gone: at once where its process can be asked
for, else once its last beat is old.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from searchapp.config.settings import addresses_in
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.files import beside, reason, sync_folder
from searchapp.judging.event_log import EventLog, NotSaved, Stored, checked
from searchapp.judging.events import Event
from searchapp.text import counted


@dataclass(frozen=True, slots=True)
class Mirror:
    """An index in a cluster that holds the same events, as far as they have been exchanged.

    `identity` is the same by whatever address the index is reached, and another one when it was deleted and made again,
    or set back to an older state. All events of the log up to the place `sent` are in the index, and all of the index
    up to its own place `received` in the log.
    """

    number: int
    identity: str
    sent: int
    received: int


@dataclass(frozen=True, slots=True)
class Import:
    """A file whose judgments were imported: when, from which file of which format, and how many events came with it.

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


_NOT_THERE = (
    "sequence > :after AND NOT EXISTS "
    "(SELECT 1 FROM arrivals JOIN mirrors ON mirrors.number = arrivals.mirror "
    "WHERE arrivals.sequence = events.sequence AND identity = :identity) AND NOT EXISTS "
    "(SELECT 1 FROM sent_of_tasks AS sent JOIN mirrors ON mirrors.number = sent.mirror "
    "WHERE identity = :identity AND sent.task = events.task AND sent.up_to >= events.sequence) "
    "AND (:task IS NULL OR task = :task) AND sequence NOT IN (SELECT value FROM json_each(:damaged))"
)
"""Which events lie behind a place and are not in a mirror: neither have they come from it, nor were they sent with the
others of their task. Of one task, if it is named; and none that is known to be damaged."""


class JudgmentLog(EventLog):
    """The log of events with what is kept besides them, see `records`; it is opened as `EventLog` says."""

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
        """The imported files of a task, in this order."""
        columns = ", ".join(field.name for field in fields(Import))
        rows = self._all(f"SELECT {columns} FROM imports WHERE task = ? ORDER BY number", (task,))
        with self._reading():
            return [Import(*checked(row, int, str, str, str, str, int)) for row in rows]

    def events_of(self, number: int) -> list[Event]:
        """The events that came with an import."""
        where = "sequence IN (SELECT sequence FROM imported WHERE import = ?)"
        return [event for _, event in self._read(where, [number])]

    # What a cluster has

    def mirror(self, address: str, identity: str) -> Mirror:
        """What has been exchanged with an index: nothing, if it was never heard of.

        `address` is what it is reached by now: one or several addresses with commas between them, and its name.

        Raises:
            NotSaved: the log can't be written.
        """
        places = _places(address)
        found, known = self._mirror(identity), self._led_to(places)
        if found is not None and known == dict.fromkeys(places, identity):
            return found
        with self._writing():
            if self._mirror(identity) is None:
                self._database.execute(
                    "INSERT INTO mirrors (address, identity) VALUES (?, ?)", (address, identity)
                )
            for place in places:
                if known.get(place) != identity:
                    self._database.execute(
                        "INSERT OR REPLACE INTO places (address, identity) VALUES (?, ?)", (place, identity)
                    )
        found = self._mirror(identity)
        assert found is not None  # it has just been written, and nothing deletes it
        return found

    def unsent(
        self, mirror: Mirror, after: int, limit: int, task: str | None = None
    ) -> list[tuple[int, Event]]:
        """The first events behind a place that the index does not have, each with its place; of a task, if named."""
        wanted = self._wanted(mirror.identity, after, task)
        return list(self._read(_NOT_THERE, wanted, limit))

    def waiting(self, address: str, task: str | None = None) -> int:
        """How many events, of a task if it is named, the index at an address is still to get, as far as is known.

        That is the index that one of the addresses in it last led to: others may have been added since.
        """
        mirror = self._mirror(self._last_identity(_places(address)))
        wanted = self._wanted(
            "" if mirror is None else mirror.identity, 0 if mirror is None else mirror.sent, task
        )
        (count,) = self._one(f"SELECT count(*) FROM events WHERE {_NOT_THERE}", wanted)
        return int(count)

    def _wanted(self, identity: str, after: int, task: str | None) -> dict[str, object]:
        return {"identity": identity, "after": after, "task": task, "damaged": json.dumps(self.damage.places)}

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
                "UPDATE mirrors SET sent = (SELECT coalesce(max(sequence), 0) FROM events) WHERE number = :number "
                f"AND NOT EXISTS (SELECT 1 FROM events WHERE {_NOT_THERE})",
                self._wanted(mirror.identity, self._sent(mirror), None) | {"number": mirror.number},
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
        with self._reading():
            return [Window(*checked(row, str, str, str, str, int, float, float)) for row in rows]

    def _sent(self, mirror: Mirror) -> int:
        """How far what was sent goes by now: somebody else may have sent more since the mirror was looked at."""
        now = self._mirror(mirror.identity)
        return mirror.sent if now is None else now.sent

    def _mirror(self, identity: str) -> Mirror | None:
        row = self._one(
            "SELECT min(number), max(sent), max(received) FROM mirrors WHERE identity = ?", (identity,)
        )
        if row[0] is None:
            return None
        with self._reading():
            number, sent, received = checked(row, int, int, int)
        return Mirror(number, identity, sent, received)

    def _led_to(self, places: Sequence[str]) -> dict[str, str]:
        """What some addresses last led to, the latest to be learned last."""
        marks = ", ".join("?" * len(places))
        rows = self._all(
            f"SELECT address, identity FROM places WHERE address IN ({marks}) ORDER BY number", places
        )
        with self._reading():
            known: list[tuple[str, str]] = [checked(row, str, str) for row in rows]
            return dict(known)

    def _last_identity(self, places: Sequence[str]) -> str:
        """What one of some addresses led to last; empty where none did."""
        return next(reversed(self._led_to(places).values()), "")


def _places(address: str) -> tuple[str, ...]:
    """Each of the addresses of an index, with its name.

    >>> _places("https://a:9200, https://b:9200/searchapp-judgments")
    ('https://a:9200/searchapp-judgments', 'https://b:9200/searchapp-judgments')
    """
    addresses, _slash, name = address.rpartition("/")
    return tuple(f"{one}/{name}" for one in addresses_in(addresses))


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


@dataclass(frozen=True, slots=True)
class LogVerification:
    """What a log turned out to be.

    `events` counts those that are as they were written. `damaged` and `missing` are places; `problems` are sentences on
    everything that is wrong, these events as well.
    """

    events: int
    damaged: tuple[int, ...]
    missing: tuple[int, ...]
    problems: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(log: JudgmentLog) -> LogVerification:
    """Look through a whole log: SQLite's own structure, every event and its checksum, and the end of the log.

    Raises:
        NotSaved: the file can't be read.
    """
    problems = [damage.words for damage in log.damage.found if damage.place is None]
    sound = 0
    damaged: list[int] = []
    missing: list[int] = []
    try:
        problems += (f"SQLite says: {line}" for line in log.structure())
        with log.at_one_moment():
            for stored in log.stored():
                wrong = _wrong(log, stored)
                if wrong is not None:
                    damaged.append(stored.sequence)
                    problems.append(f"event {stored.sequence} {wrong}")
                    continue
                sound += 1
                if stored.own != stored.checksum(stored.before):
                    problems.append(f"event {stored.sequence} is as it was, a checksum beside it is not")
            missing = log.missing()
            problems += (f"event {place} is gone" for place in missing)
            covered = sound + len(damaged) + len(missing)
            if not log.head_holds() or log.head.events != covered:
                problems.append(
                    f"the log has {counted(covered, 'event')} up to its last checksum, and says something else "
                    "of its end"
                )
    except DataError as error:
        problems.append(str(error))
    return LogVerification(sound, tuple(damaged), tuple(missing), tuple(problems))


def _wrong(log: JudgmentLog, stored: Stored) -> str | None:
    """What is wrong with an event; None if nothing is."""
    if not log.is_sound(stored):
        return "is damaged: it is not what was written"
    try:
        stored.event().check()
    except (ValueError, DataError) as error:
        return f"can't be read: {error}"
    return None


def back_up(log: JudgmentLog, file: Path) -> LogVerification:
    """Copy a log as it is at one moment to a new file, which needs none beside it; returns what the copy is.

    Others may write at the same time. A copy of a damaged log is kept as well: it may be all that there will be.

    Raises:
        UsageError: the file exists, or its folder does not.
        SearchappError: it can't be written.
    """
    if file.exists() or file.is_symlink():
        raise UsageError(f"{file} exists already: choose another name")
    if not file.parent.is_dir():
        raise UsageError(f"there is no folder {file.parent}: make it, or choose another place")
    temporary = beside(file)
    try:
        log.copy_to(temporary)
        verdict = _verified(temporary)
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        _put(temporary, file)
    except FileExistsError:
        raise UsageError(f"{file} exists already: choose another name") from None
    except (OSError, sqlite3.Error) as error:
        why = reason(error) if isinstance(error, OSError) else str(error).lower()
        raise SearchappError(f"{file} can't be written: {why}; nothing was left behind") from error
    finally:
        for end in (
            "",
            "-wal",
            "-shm",
            "-journal",
        ):  # what SQLite has beside a file that was not closed in order
            temporary.with_name(temporary.name + end).unlink(missing_ok=True)
    return verdict


def _verified(copy: Path) -> LogVerification:
    """What the copy of a log is, which needs no file beside it from then on.

    Raises:
        sqlite3.Error: SQLite can't write beside it.
    """
    try:
        with closing(JudgmentLog(copy)) as log:
            verdict = verify(log)
            log.keep_in_one_file()
    except NotSaved as error:  # which would name the copy as it is called until it is complete
        raise error.__cause__ or error from None
    return verdict


def _put(temporary: Path, file: Path) -> None:
    """Give a complete file its name, unless somebody else has taken it since."""
    try:
        file.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # not every file system has links
        temporary.rename(file)
    sync_folder(file.parent)


BEAT_SECONDS = 5.0
STALE_SECONDS = 3 * BEAT_SECONDS
"""A window whose last beat is older is gone."""
PATIENCE_SECONDS = 2.0
"""How long a beat waits for others that write the log; the next one comes anyway."""
LEAVING_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class OtherWindow:
    """Another window in which the same annotator judges the same task, on the same log."""

    host: str
    process: int
    opened: float

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.opened).astimezone()
        return f"process {self.process} on {self.host}, since {since:%H:%M}"


class Presence:
    """One window's beats, and what it hears of others; a context, in which it beats in the background."""

    def __init__(self, path: Path, task: str, annotator: str) -> None:
        now = time.time()
        self.others: tuple[OtherWindow, ...] = ()
        """The other windows of the same annotator on the same task that are open, as of the last beat."""
        self._path = path
        self._window = Window(
            uuid.uuid4().hex, annotator, task, platform.node(), os.getpid(), opened=now, beat=now
        )
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name="presence in the log", daemon=True)

    def __enter__(self) -> Presence:
        self._beat()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving.set()
        self._thread.join(LEAVING_SECONDS)

    def _run(self) -> None:
        while not self._leaving.wait(BEAT_SECONDS):
            self._beat()
        with suppress(SearchappError), JudgmentLog(self._path, PATIENCE_SECONDS) as log:
            log.leave(self._window)

    def _beat(self) -> None:
        # Whatever keeps a beat from being written, such as a full disk, is reported where judgments are written.
        with suppress(SearchappError), JudgmentLog(self._path, PATIENCE_SECONDS) as log:
            self._exchange(log)

    def _exchange(self, log: JudgmentLog) -> None:
        now = time.time()
        self._window = replace(self._window, beat=now)
        log.beat(self._window, now - STALE_SECONDS)
        self.others = tuple(
            OtherWindow(one.host, one.process, one.opened)
            for one in log.windows(self._window.task, self._window.annotator, now - STALE_SECONDS)
            if one.id != self._window.id and not _is_gone(one)
        )


def _is_gone(window: Window) -> bool:
    """Whether the window's process is known to have ended."""
    if os.name != "posix" or window.host != platform.node():
        return False
    try:
        os.kill(window.process, 0)  # asks, and sends nothing
    except ProcessLookupError:
        return True
    except OSError:
        return False  # another user's
    return False
