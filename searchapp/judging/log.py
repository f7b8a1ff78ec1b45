"""The judgment log: its events, see `event_log`, and what is kept besides them.

The log also knows which of its events an index in a cluster has, and which of that index's it has itself, see
`shared`; which events came with which imported file, see `exchange`; and who has it open to judge, see `presence`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import astuple, fields
from datetime import UTC, datetime
from pathlib import Path

from searchapp.judging.event_log import EventLog
from searchapp.judging.events import Event
from searchapp.judging.records import Import, Mirror, Window
from searchapp.judging.store import NotSaved as NotSaved
from searchapp.settings import addresses_in

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
        return [Window(*row) for row in rows]

    def _sent(self, mirror: Mirror) -> int:
        """How far what was sent goes by now: somebody else may have sent more since the mirror was looked at."""
        now = self._mirror(mirror.identity)
        return mirror.sent if now is None else now.sent

    def _mirror(self, identity: str) -> Mirror | None:
        number, sent, received = self._one(
            "SELECT min(number), max(sent), max(received) FROM mirrors WHERE identity = ?", (identity,)
        )
        return None if number is None else Mirror(number, identity, sent, received)

    def _led_to(self, places: Sequence[str]) -> dict[str, str]:
        """What some addresses last led to, the latest to be learned last."""
        marks = ", ".join("?" * len(places))
        rows = self._all(
            f"SELECT address, identity FROM places WHERE address IN ({marks}) ORDER BY number", places
        )
        return dict(rows)

    def _last_identity(self, places: Sequence[str]) -> str:
        """What one of some addresses led to last; empty where none did."""
        if known := self._led_to(places):
            return list(known.values())[-1]
        # Of an earlier searchapp, which kept the addresses as they were written.
        rows = self._all("SELECT address, identity FROM mirrors ORDER BY number DESC")
        return next((identity for address, identity in rows if {*_places(address)} & {*places}), "")


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
