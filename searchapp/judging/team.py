"""Judgments of a team that shares a cluster: the log in a file, and an index with the same events.

The file stays what a judgment is saved in. Everything in it that the index does not have yet is sent, and everything in
the index that it does not have yet is fetched, by `synchronize`. How far that has come is in the file too, and is
remembered after the fact: an interrupted exchange repeats some of it, and since an event is known by its id, that
changes nothing. A server that is gone is no harm: what it did not get waits in the file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from searchapp.errors import DataError, EngineError, SearchappError
from searchapp.judging.events import Event
from searchapp.judging.log import JudgmentLog

EVENTS_AT_ONCE = 1000
"""How many events one request sends or fetches."""
LOOK_SECONDS = 0.5
"""How often a synchronizer looks whether there is something to send."""
FETCH_SECONDS = 5.0
"""How often it looks for what others have sent, and how long it leaves a server alone that did not answer."""


@dataclass(frozen=True, slots=True)
class IndexState:
    """An index as it is now.

    `identity` is another one when it was deleted and made again, or set back to an older state. Every event up to
    `checkpoint`, which is its own count of what was written, is there to stay; -1 when there is none.
    """

    identity: str
    checkpoint: int


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some of an index's events.

    `up_to` is the place of the last one, None when there was none. `problems` are sentences on what is no event.
    """

    events: tuple[Event, ...]
    up_to: int | None
    problems: tuple[str, ...] = ()


class EventIndex(Protocol):
    """An index in a cluster that holds events. Every method raises `EngineError` when the cluster does not do it."""

    @property
    def address(self) -> str:
        """Where it is, and its name there."""

    def state(self) -> IndexState:
        """The index as it is now; it is made if it is not there."""

    def send(self, events: Sequence[Event]) -> tuple[int, tuple[str, ...]]:
        """Write those events that it does not have.

        Returns how many it did not have, and the ids that it has for other events. When it returns, all others are
        there to stay.
        """

    def fetch(self, after: int, up_to: int) -> EventPage:
        """The first events behind a place and up to another."""

    def close(self) -> None:
        """Let go of what it holds."""


@dataclass(frozen=True, slots=True)
class Exchanged:
    """How many events were sent that the index did not have, and how many came from it that the log did not have."""

    sent: int = 0
    fetched: int = 0


def synchronize(log: JudgmentLog, index: EventIndex, task: str | None = None) -> Exchanged:
    """Send what the index does not have, of one task if it is named, and fetch what the log does not have, of all.

    Raises:
        EngineError: the cluster is gone or refuses; nothing is lost, and the next exchange resumes here.
        NotSaved: the log can't be written.
        DataError: log and index have different events of the same id, or the index holds something that is no event.
            All others have been exchanged.
    """
    problems: dict[str, None] = {}  # sending and fetching may find the same one
    exchanged = Exchanged(_send(log, index, problems, task), _fetch(log, index, problems))
    _tell(problems)
    return exchanged


def send(log: JudgmentLog, index: EventIndex, task: str | None = None) -> int:
    """Send what the index does not have, of one task if it is named; returns how many it did not have.

    Raises:
        EngineError, NotSaved, DataError: as `synchronize`.
    """
    problems: dict[str, None] = {}
    sent = _send(log, index, problems, task)
    _tell(problems)
    return sent


def _tell(problems: dict[str, None]) -> None:
    if problems:
        more = f", and {len(problems) - 1} more like it" if len(problems) > 1 else ""
        raise DataError(f"{next(iter(problems))}{more}; everything else has been exchanged")


def _send(log: JudgmentLog, index: EventIndex, problems: dict[str, None], task: str | None) -> int:
    mirror = log.mirror(index.address, index.state().identity)
    sent, last = 0, mirror.sent
    while some := log.unsent(mirror, last, EVENTS_AT_ONCE, task):
        last = some[-1][0]
        new, refused = index.send([event for _, event in some])
        problems |= dict.fromkeys(_contradiction(log, index, id_) for id_ in refused)
        sent += new
        if not problems:  # else they are sent again, until somebody has looked into it
            log.sent(mirror, last, task)
    return sent


def _fetch(log: JudgmentLog, index: EventIndex, problems: dict[str, None]) -> int:
    state = index.state()
    mirror = log.mirror(index.address, state.identity)
    fetched, last, found = 0, mirror.received, False
    while last < state.checkpoint:
        page = index.fetch(last, state.checkpoint)
        last = state.checkpoint if page.up_to is None else page.up_to
        wrong = [*page.problems, *_contradictions(log, index, page.events)]
        found = found or bool(wrong)
        problems |= dict.fromkeys(wrong)
        fetched += log.receive(mirror, page.events, None if found else last)
    return fetched


def _contradictions(log: JudgmentLog, index: EventIndex, events: Sequence[Event]) -> list[str]:
    known = log.known(event.id for event in events)
    return [_contradiction(log, index, event.id) for event in events if known.get(event.id, event) != event]


def _contradiction(log: JudgmentLog, index: EventIndex, event_id: str) -> str:
    return f"{log.path} and {index.address} have different judgments of the id {event_id}"


def waiting_words(unsent: int) -> str:
    """What an annotator reads of judgments that are saved here, and that the cluster does not have yet."""
    return f"{'1 waits' if unsent == 1 else f'{unsent:,} wait'} for the cluster"


class Synchronizer:
    """Synchronizes in the background, so that judging never waits for a network.

    Args:
        path: the log's file, of which it opens a connection of its own
        connect: connects to the index
        address: the index's address
        task: whose judgments are sent; None means those of all tasks
    """

    def __init__(
        self, path: Path, connect: Callable[[], EventIndex], address: str, task: str | None = None
    ) -> None:
        self.address = address
        self.task = task
        self.trouble: str | None = None
        """Why the last attempt came to nothing; None when it did not."""
        self.fetched = 0
        """How many events have come from the index so far."""
        self._path = path
        self._connect = connect
        self._index: EventIndex | None = None
        self._leaving = threading.Event()
        self._tried = threading.Event()
        # A daemon: leaving does not wait for a server that does not answer. What it was at is done again next time.
        self._thread = threading.Thread(target=self._run, name="judgments to the cluster", daemon=True)

    def start(self, patience: float = 0.0) -> bool:
        """Begin, and wait at most some seconds for the first exchange; returns whether it is over, well or not."""
        self._thread.start()
        return self._tried.wait(patience)

    def stop(self, patience: float) -> None:
        """End, and wait at most some seconds for what is on its way."""
        self._leaving.set()
        if self._thread.ident is not None:
            self._thread.join(patience)

    def _run(self) -> None:
        try:
            with JudgmentLog(self._path) as log:
                self._work(log)
        except SearchappError as error:
            self.trouble = str(error)
        except Exception as error:
            self.trouble = f"judgments are exchanged no more: {type(error).__name__}: {error}"
        finally:
            self._tried.set()
            self._disconnect()

    def _work(self, log: JudgmentLog) -> None:
        looks = round(FETCH_SECONDS / LOOK_SECONDS)
        look = 0
        self._exchange(log, fetch=True)
        self._tried.set()
        while not self._leaving.wait(LOOK_SECONDS):
            look = (look + 1) % looks
            if look == 0 or (self.trouble is None and log.waiting(self.address, self.task)):
                self._exchange(log, fetch=look == 0)

    def _exchange(self, log: JudgmentLog, fetch: bool) -> None:
        try:
            if self._index is None:
                self._index = self._connect()
            if fetch:
                self.fetched += synchronize(log, self._index, self.task).fetched
            else:
                send(log, self._index, self.task)
            self.trouble = None
        except SearchappError as error:
            self.trouble = str(error)
            if isinstance(error, EngineError):
                self._disconnect()

    def _disconnect(self) -> None:
        if self._index is not None:
            with closing(self._index):
                self._index = None
