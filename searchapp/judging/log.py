"""The judgment log with its side records: exchanged events, imported files, open windows."""

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
from dataclasses import astuple, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from searchapp.config.settings import addresses_in
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.files import beside, reason, sync_folder
from searchapp.judging.event_log import EventLog, NotSaved, StoredEvent, checked
from searchapp.judging.events import Detail, Event
from searchapp.lucene.dataclass import dataclass
from searchapp.text import be, counted


@dataclass(frozen=True, slots=True)
class Mirror:
    """An index in a cluster with which events are exchanged."""

    number: int
    # The same for every address of the index; another one when it was deleted and made again, or set back.
    identity: str
    # All events of the log up to this number are in the index.
    sent: int
    # All events of the index up to this number of its own are in the log.
    received: int


@dataclass(frozen=True, slots=True)
class Import:
    """A file whose judgments were imported."""

    # Identifies the import in this log.
    number: int
    time: str
    task: str
    file: str
    format: str
    # The number of events that the log did not have.
    events: int


@dataclass(frozen=True, slots=True)
class Window:
    """A window in which an annotator judges."""

    id: str
    annotator: str
    task: str
    host: str
    process: int
    opened: float  # seconds since 1970, like `beat`
    beat: float

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.opened).astimezone()
        return f"process {self.process} on {self.host}, since {since:%H:%M}"

    @property
    def has_ended(self) -> bool:
        if os.name != "posix" or self.host != platform.node():
            return False
        try:
            os.kill(self.process, 0)  # sends no signal
        except ProcessLookupError:
            return True
        except OSError:
            return False  # another user's
        return False


_UNSENT = (
    "sequence > :after AND NOT EXISTS "
    "(SELECT 1 FROM arrivals JOIN mirrors ON mirrors.number = arrivals.mirror "
    "WHERE arrivals.sequence = events.sequence AND identity = :identity) AND NOT EXISTS "
    "(SELECT 1 FROM sent_of_tasks AS sent JOIN mirrors ON mirrors.number = sent.mirror "
    "WHERE identity = :identity AND sent.task = events.task AND sent.up_to >= events.sequence) "
    "AND (:task IS NULL OR task = :task) AND sequence NOT IN (SELECT value FROM json_each(:damaged))"
)


_UNSENT_DETAILS = (
    "number > :after AND (:task IS NULL OR EXISTS "
    "(SELECT 1 FROM events WHERE id = details.event AND task = :task)) AND NOT EXISTS "
    "(SELECT 1 FROM sent_of_tasks AS sent JOIN events ON events.task = sent.task "
    "WHERE sent.mirror = :mirror AND events.id = details.event AND sent.up_to >= details.number)"
)


class JudgmentLog(EventLog):
    """The log of events with its side records.

    Raises:
        NotSaved: the log can't be written; nothing was written.
    """

    # Imports

    def import_events(
        self, events: Sequence[Event], task: str, file: str, format_: str, details: Sequence[Detail] = ()
    ) -> Import | None:
        """Append the events and details of a file, all or none; return None if all of the events are known."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._writing():
            before = self._last_sequence()
            new = self._insert(events)
            self._insert_details(details)
            if not new:
                return None
            number = self._database.execute(
                "INSERT INTO imports (time, task, file, format, events) VALUES (?, ?, ?, ?, ?)",
                (now, task, file, format_, new),
            ).lastrowid
            self._database.execute(
                "INSERT INTO imported SELECT sequence, ? FROM events WHERE sequence > ?", (number, before)
            )
        self._write_head_file()
        assert number is not None  # a row was inserted
        return Import(number, now, task, file, format_, new)

    def imports(self, task: str) -> list[Import]:
        columns = ", ".join(field.name for field in fields(Import))
        rows = self._all(f"SELECT {columns} FROM imports WHERE task = ? ORDER BY number", (task,))
        with self._reading():
            return [Import(*checked(row, int, str, str, str, str, int)) for row in rows]

    def events_of(self, number: int) -> list[Event]:
        where = "sequence IN (SELECT sequence FROM imported WHERE import = ?)"
        return [event for _, event in self._read(where, [number])]

    # Mirrors

    def mirror(self, address: str, identity: str) -> Mirror:
        """Return the state of the exchange with an index, and record its addresses.

        Args:
            address: addresses, separated by commas, and the index's name
            identity: the index's identity, the same for every address
        """
        addresses = _single_addresses(address)
        mirror, known = self._mirror(identity), self._identities(addresses)
        if mirror is not None and known == dict.fromkeys(addresses, identity):
            return mirror
        with self._writing():
            self._database.execute("INSERT OR IGNORE INTO mirrors (identity) VALUES (?)", (identity,))
            self._database.executemany(
                "INSERT OR REPLACE INTO addresses (address, identity) VALUES (?, ?)",
                [(single, identity) for single in addresses if known.get(single) != identity],
            )
        mirror = self._mirror(identity)
        assert mirror is not None  # it has just been written, and nothing deletes it
        return mirror

    def unsent(
        self, mirror: Mirror, after: int, limit: int, task: str | None = None
    ) -> list[tuple[int, Event]]:
        """Return the first sequence numbers and events after a number that the index lacks."""
        return list(self._read(_UNSENT, self._unsent_parameters(mirror.identity, after, task), limit))

    def waiting(self, address: str, task: str | None = None) -> int:
        """Return how many events the index that was last reached at an address is known to lack."""
        identity = next(reversed(self._identities(_single_addresses(address)).values()), "")
        mirror = self._mirror(identity)
        parameters = self._unsent_parameters(identity, 0 if mirror is None else mirror.sent, task)
        (count,) = self._one(f"SELECT count(*) FROM events WHERE {_UNSENT}", parameters)
        return int(count)

    def _unsent_parameters(self, identity: str, after: int, task: str | None) -> dict[str, object]:
        return {
            "identity": identity,
            "after": after,
            "task": task,
            "damaged": json.dumps(self.damage.sequences),
        }

    def sent(self, mirror: Mirror, up_to: int, task: str | None = None) -> None:
        """Record that the index has all events, or all of one task, up to a number."""
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
        """Append events of the index; return how many are new.

        Args:
            mirror: the team's index that sent the events
            events: events in the order of the index
            up_to: the index's number up to which these are all events
        """
        with self._writing():
            before = self._last_sequence()
            new = self._insert(events)
            self._database.execute(
                "INSERT INTO arrivals SELECT sequence, ? FROM events WHERE sequence > ?",
                (mirror.number, before),
            )
            if up_to is not None:
                self._database.execute(
                    "UPDATE mirrors SET received = max(received, ?) WHERE number = ?", (up_to, mirror.number)
                )
            # If nothing else is unsent, the new events need not be looked at again. Another process may have sent
            # more since the mirror was read.
            current = self._mirror(mirror.identity) or mirror
            self._database.execute(
                "UPDATE mirrors SET sent = (SELECT coalesce(max(sequence), 0) FROM events) WHERE number = :number "
                f"AND NOT EXISTS (SELECT 1 FROM events WHERE {_UNSENT})",
                self._unsent_parameters(mirror.identity, current.sent, None) | {"number": mirror.number},
            )
        self._write_head_file()
        return new

    def unsent_details(
        self, mirror: Mirror, after: int, limit: int, task: str | None = None
    ) -> list[tuple[int, Detail]]:
        """Return the first numbers and details after a number that the index of details lacks."""
        return list(
            self._read_details(
                _UNSENT_DETAILS, {"mirror": mirror.number, "after": after, "task": task}, limit
            )
        )

    def receive_details(self, mirror: Mirror, details: Sequence[Detail], up_to: int | None) -> int:
        """Append details of the index, as `receive` does with events; return how many are new."""
        with self._writing():
            sent = (self._mirror(mirror.identity) or mirror).sent
            last = self._last_detail()
            new = self._insert_details(details)
            self._database.execute(
                "UPDATE mirrors SET received = max(received, ?), sent = ? WHERE number = ?",
                # If nothing was unsent before, the new details need not be looked at again.
                (
                    mirror.received if up_to is None else up_to,
                    sent if sent < last else last + new,
                    mirror.number,
                ),
            )
        return new

    def _mirror(self, identity: str) -> Mirror | None:
        row = self._one("SELECT number, sent, received FROM mirrors WHERE identity = ?", (identity,))
        if row is None:
            return None
        with self._reading():
            number, sent, received = checked(row, int, int, int)
        return Mirror(number, identity, sent, received)

    def _identities(self, addresses: Sequence[str]) -> dict[str, str]:
        """Return the identities that the addresses last led to, the latest last."""
        marks = ", ".join("?" * len(addresses))
        rows = self._all(
            f"SELECT address, identity FROM addresses WHERE address IN ({marks}) ORDER BY number", addresses
        )
        with self._reading():
            known: list[tuple[str, str]] = [checked(row, str, str) for row in rows]
            return dict(known)

    # Windows

    def beat(self, window: Window, stale: float) -> None:
        """Record a heartbeat; delete the windows whose last one was before the time `stale`."""
        marks = ", ".join("?" * len(fields(Window)))
        with self._writing():
            self._database.execute("DELETE FROM windows WHERE beat < ?", (stale,))
            self._database.execute(f"INSERT OR REPLACE INTO windows VALUES ({marks})", astuple(window))

    def leave(self, window: Window) -> None:
        with self._writing():
            self._database.execute("DELETE FROM windows WHERE id = ?", (window.id,))

    def windows(self, task: str, annotator: str, since: float) -> list[Window]:
        rows = self._all(
            "SELECT * FROM windows WHERE task = ? AND annotator = ? AND beat >= ? ORDER BY opened",
            (task, annotator, since),
        )
        with self._reading():
            return [Window(*checked(row, str, str, str, str, int, float, float)) for row in rows]


def _single_addresses(address: str) -> tuple[str, ...]:
    """Return each address of an index with the index's name.

    >>> _single_addresses("https://a:9200, https://b:9200/searchapp-judgments")
    ('https://a:9200/searchapp-judgments', 'https://b:9200/searchapp-judgments')
    """
    addresses, _slash, name = address.rpartition("/")
    return tuple(f"{single}/{name}" for single in addresses_in(addresses))


def annotators_in(path: Path, task: str) -> list[str]:
    """Return the sorted annotators of a task in a log, without changing the file.

    Raises:
        sqlite3.Error: the file is missing, is no judgment log, or can't be read.
    """
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)) as database:
        rows = database.execute(
            "SELECT DISTINCT annotator FROM events WHERE task = ? ORDER BY annotator", [task]
        )
        return [str(name) for (name,) in rows]


@dataclass(frozen=True, slots=True)
class LogVerification:
    """The result of verifying a log."""

    # The number of events that are as they were written.
    events: int
    # The number of details of events that are as they were written.
    details: int
    # Sequence numbers, like `missing`.
    damaged: tuple[int, ...]
    missing: tuple[int, ...]
    # Messages on all damage, including damaged events.
    problems: tuple[str, ...]

    @property
    def is_sound(self) -> bool:
        return not self.problems


def verify(log: JudgmentLog) -> LogVerification:
    """Verify the structure, the checksum of every event, and the end of a log.

    Raises:
        NotSaved: the file can't be read.
    """
    details = sum(1 for _ in log.details())
    problems = [damage.words for damage in log.damage.entries if damage.sequence is None]
    if missing_details := log.missing_details():
        problems.append(f"{counted(missing_details, 'detail')} of events {be(missing_details)} missing")
    sound = 0
    damaged: list[int] = []
    missing: list[int] = []
    try:
        problems += (f"SQLite reports: {line}" for line in log.structure())
        with log.at_one_moment():
            for stored in log.stored():
                problem = _problem(log, stored)
                if problem is not None:
                    damaged.append(stored.sequence)
                    problems.append(f"event {stored.sequence} {problem}")
                    continue
                sound += 1
                if stored.own != stored.checksum(stored.before):
                    problems.append(
                        f"event {stored.sequence} is intact, but a checksum beside it has changed"
                    )
            missing = log.missing()
            problems += (f"event {sequence} is missing" for sequence in missing)
            covered, head = sound + len(damaged) + len(missing), log.head
            is_head_right = head.sequence == 0 or log.checksum_at(head.sequence) == head.checksum
            if not is_head_right or head.events != covered:
                problems.append(
                    f"the log has {counted(covered, 'event')} up to its last checksum, but records another end"
                )
    except DataError as error:
        problems.append(str(error))
    return LogVerification(sound, details, tuple(damaged), tuple(missing), tuple(problems))


def _problem(log: JudgmentLog, stored: StoredEvent) -> str | None:
    if not log.is_sound(stored):
        return "is damaged: its content has changed"
    try:
        stored.event().check()
    except (ValueError, DataError) as error:
        return f"can't be read: {error}"
    return None


def back_up(log: JudgmentLog, file: Path) -> LogVerification:
    """Copy one state of a log to a new file; return the verification of the copy.

    Raises:
        UsageError: the file exists, or its folder does not.
        SearchappError: it can't be written.
    """
    if file.exists() or file.is_symlink():
        raise UsageError(f"{file} exists already: choose another name")
    if not file.parent.is_dir():
        raise UsageError(f"there is no folder {file.parent}: create it, or choose another place")
    temporary = beside(file)
    try:
        log.copy_to(temporary)
        # A damaged copy is useful too: it may be the best one left.
        verification = _verify_copy(temporary)
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        _rename(temporary, file)
    except FileExistsError:
        raise UsageError(f"{file} exists already: choose another name") from None
    except (OSError, sqlite3.Error) as error:
        why = reason(error) if isinstance(error, OSError) else str(error).lower()
        raise SearchappError(f"{file} can't be written: {why}; no partial file remains") from error
    finally:
        # SQLite's files beside a log that was not closed.
        for end in ("", "-wal", "-shm", "-journal"):
            temporary.with_name(temporary.name + end).unlink(missing_ok=True)
    return verification


def _verify_copy(copy: Path) -> LogVerification:
    """Verify the copy of a log, and leave it in one file.

    Raises:
        sqlite3.Error: SQLite can't write beside it.
    """
    try:
        with closing(JudgmentLog(copy)) as log:
            verification = verify(log)
            log.keep_in_one_file()
    except NotSaved as error:  # which would name the temporary file
        raise error.__cause__ or error from None
    return verification


def _rename(temporary: Path, file: Path) -> None:
    """Rename a complete file without replacing another.

    Raises:
        FileExistsError: another process has created the file since.
    """
    try:
        file.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # not every file system has links
        temporary.rename(file)
    sync_folder(file.parent)


BEAT_SECONDS = 5.0
STALE_SECONDS = 3 * BEAT_SECONDS  # a window whose last heartbeat is older is considered closed
PATIENCE_SECONDS = 2.0  # how long a heartbeat waits for other writers; the next one follows anyway
LEAVING_SECONDS = 5.0


class Presence:
    """Heartbeats of a window in a background thread, and the detection of the annotator's other windows."""

    def __init__(self, path: Path, task: str, annotator: str) -> None:
        now = time.time()
        # The other open windows of the same annotator on the same task, as of the last heartbeat.
        self.others: tuple[Window, ...] = ()
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

    def __exit__(self, *_error: object) -> None:
        self._leaving.set()
        self._thread.join(LEAVING_SECONDS)

    def _run(self) -> None:
        while not self._leaving.wait(BEAT_SECONDS):
            self._beat()
        with suppress(SearchappError), JudgmentLog(self._path, PATIENCE_SECONDS) as log:
            log.leave(self._window)

    def _beat(self) -> None:
        # An obstacle such as a full disk is reported where judgments are written.
        with suppress(SearchappError), JudgmentLog(self._path, PATIENCE_SECONDS) as log:
            now = time.time()
            self._window = replace(self._window, beat=now)
            log.beat(self._window, now - STALE_SECONDS)
            windows = log.windows(self._window.task, self._window.annotator, now - STALE_SECONDS)
            self.others = tuple(
                window for window in windows if window.id != self._window.id and not window.has_ended
            )
