"""Checksums of the events in a judgment log: each covers an event's place and values, and the checksum before it.

    checksum = BLAKE2b-128(checksum before it + JSON of [place, value, value, ...])

The first one follows nothing at all. Checksums lie in a table of their own, and the `head` says how many events they
cover, up to which place, and what the last one is. So an event that was altered, and one that is gone, are both
noticed, wherever they are; and where a checksum itself was altered, the one after it proves the event all the same.

An event without a checksum behind the head was written by an earlier searchapp that still had the log open: it is not
covered. `seal` covers such events, as they are at that moment.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from searchapp.judging.events import Action, Channel, Event, Kind
from searchapp.judging.schema import COLUMNS, TYPES

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
        "(SELECT head.sequence FROM head)",
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

    __slots__ = ("before", "is_text", "own", "sealed_up_to", "sequence", "values")

    def __init__(self, row: Sequence[object]) -> None:
        self.sequence: int = row[0]  # type: ignore[assignment]  # the table's key is a number, whatever happens
        own, before, sealed_up_to = row[-3:]
        self.own = own if isinstance(own, bytes) else None
        self.before = before if isinstance(before, bytes) else START
        self.sealed_up_to = sealed_up_to if isinstance(sealed_up_to, int) else self.sequence
        given = row[1:-3]
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

    @property
    def is_covered(self) -> bool:
        """Whether it must have a checksum."""
        return self.sequence <= self.sealed_up_to

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
        return Head(*row) if row else Head(0, 0, START)

    def unsealed(self) -> bool:
        """Whether there are events that no checksum covers."""
        query = "SELECT coalesce((SELECT max(sequence) FROM events), 0) > ?"
        return bool(self._database.execute(query, (self._last()[0],)).fetchone()[0])

    def seal(self) -> None:
        """Cover all events that are not yet, within a transaction that writes."""
        head, (place, last) = self.head(), self._last()
        agrees = (head.sequence, head.checksum) == (place, last)
        count = head.events
        while some := self._rows("sequence > ?", [place], _SEALED_AT_ONCE):
            sums = []
            for stored in some:
                place, last = stored.sequence, stored.checksum(last)
                sums.append((place, last))
            count += len(sums)
            self._database.executemany("INSERT INTO checksums VALUES (?, ?)", sums)
        # A head that is damaged stays as it is, so that it goes on being noticed.
        if agrees and place > head.sequence:
            self._database.execute(
                "UPDATE head SET events = ?, sequence = ?, checksum = ?", (count, place, last)
            )

    def _last(self) -> tuple[int, bytes]:
        """The last checksum with its place."""
        query = "SELECT sequence, checksum FROM checksums ORDER BY sequence DESC LIMIT 1"
        return self._database.execute(query).fetchone() or (0, START)

    def is_sound(self, stored: Stored) -> bool:
        """Whether an event is as it was when it was covered; also where it is not its own checksum that says so."""
        if stored.own is None and not stored.is_covered:
            return True
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
        return row[0] if row else None

    def _rows(self, where: str, values: Sequence[object], limit: int, order: str = "ASC") -> list[Stored]:
        statement = f"SELECT {ROW} FROM events WHERE {where} ORDER BY sequence {order} LIMIT {limit:d}"
        return [Stored(row) for row in self._database.execute(statement, values)]
