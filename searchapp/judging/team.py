"""Exchange of judgments between the log and an index in a cluster.

Judgments are saved in the file first. An interrupted exchange may repeat events, which has no effect. The details of
events are exchanged after them, with an index of their own, because versions before 0.4 reject events with unknown
fields.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from searchapp.errors import DataError, EngineError, SearchappError
from searchapp.judging.events import Detail, Event
from searchapp.judging.log import JudgmentLog, Mirror
from searchapp.lucene.dataclass import dataclass

EVENTS_AT_ONCE = 1000  # number of events in one request
LOOK_SECONDS = 0.5  # interval in which a synchronizer looks for events to send
FETCH_SECONDS = 5.0  # interval in which it fetches others' events, and retries after a failure


@dataclass(frozen=True, slots=True)
class IndexState:
    """The present state of an index."""

    # Another one when the index was deleted and made again, or set back to an older state.
    identity: str
    # Every event up to this sequence number of the index is durable; -1 if it is empty.
    checkpoint: int


R = TypeVar("R", Event, Detail)


@dataclass(frozen=True, slots=True)
class RecordPage(Generic[R]):
    """Some of an index's events or details."""

    records: tuple[R, ...]
    # The sequence number of the last record; None without records.
    up_to: int | None
    # Sentences on documents that are no such records.
    problems: tuple[str, ...] = ()


class RecordIndex(Protocol[R]):
    """An index in a cluster that stores events or details. Every method raises `EngineError` if the cluster fails."""

    @property
    def address(self) -> str: ...

    def state(self) -> IndexState:
        """Return the present state; create the index if it is missing."""

    def send(self, records: Sequence[R]) -> tuple[int, tuple[str, ...]]:
        """Write the records that the index lacks; return their number, and the ids that it has for other records."""

    def fetch(self, after: int, up_to: int) -> RecordPage[R]:
        """Return the first records after a sequence number and up to another."""


class EventIndex(RecordIndex[Event], Protocol):
    """An index of events, with the index of their details."""

    @property
    def details(self) -> RecordIndex[Detail]: ...

    def has_details(self) -> bool:
        """Return whether the index of details exists, without creating it."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Exchanged:
    """The numbers of events that were new to the index and to the log."""

    sent: int = 0
    fetched: int = 0


def synchronize(
    log: JudgmentLog, index: EventIndex, task: str | None = None, *, fetch: bool = True
) -> Exchanged:
    """Send the events that the index lacks, and fetch the events of all tasks that the log lacks.

    Raises:
        EngineError: the cluster fails; the next exchange resumes here.
        NotSaved: the log can't be written.
        DataError: log and index have different events of one id, or the index has invalid events. All others have been
            exchanged.
    """
    problems: dict[str, None] = {}  # sending and fetching may detect the same one
    exchanged = Exchanged(
        _send(log, index, log.unsent, problems, task),
        _fetch(log, index, log.known, log.receive, problems) if fetch else 0,
    )
    # Without details of its own, a member needs no privilege to create their index.
    if log.has_details or (fetch and index.has_details()):
        _send(log, index.details, log.unsent_details, problems, task)
        if fetch:
            _fetch(log, index.details, log.known_details, log.receive_details, problems)
    if problems:
        more = f", and {len(problems) - 1} similar problems" if len(problems) > 1 else ""
        raise DataError(f"{next(iter(problems))}{more}; everything else has been exchanged")
    return exchanged


def _send(
    log: JudgmentLog,
    index: RecordIndex[R],
    unsent: Callable[[Mirror, int, int, str | None], list[tuple[int, R]]],
    problems: dict[str, None],
    task: str | None,
) -> int:
    mirror = log.mirror(index.address, index.state().identity)
    sent, last = 0, mirror.sent
    while batch := unsent(mirror, last, EVENTS_AT_ONCE, task):
        last = batch[-1][0]
        new, refused = index.send([record for _, record in batch])
        problems |= dict.fromkeys(_contradiction(log, index, id_) for id_ in refused)
        sent += new
        if not problems:  # else they are sent again
            log.sent(mirror, last, task)
    return sent


def _fetch(
    log: JudgmentLog,
    index: RecordIndex[R],
    known: Callable[[Iterable[str]], dict[str, R]],
    receive: Callable[[Mirror, Sequence[R], int | None], int],
    problems: dict[str, None],
) -> int:
    state = index.state()
    mirror = log.mirror(index.address, state.identity)
    fetched, last, has_problems = 0, mirror.received, False
    while last < state.checkpoint:
        page: RecordPage[R] = index.fetch(last, state.checkpoint)
        last = state.checkpoint if page.up_to is None else page.up_to
        in_log = known(record.id for record in page.records)
        different: list[str] = [
            record.id for record in page.records if in_log.get(record.id, record) != record
        ]
        of_page = [*page.problems, *(_contradiction(log, index, id_) for id_ in different)]
        has_problems = has_problems or bool(of_page)
        problems |= dict.fromkeys(of_page)
        fetched += receive(mirror, page.records, None if has_problems else last)
    return fetched


def _contradiction(log: JudgmentLog, index: RecordIndex[R], record_id: str) -> str:
    return f"{log.path} and {index.address} have different judgments with the id {record_id}"


def waiting_label(unsent: int) -> str:
    """Return the label of judgments that are not sent to the cluster yet."""
    return f"{'1 waits' if unsent == 1 else f'{unsent:,} wait'} for the cluster"


class Synchronizer:
    """A background thread that synchronizes, so that judging never waits for a network.

    Args:
        path: the log's file
        connect: connects to the index
        address: the index's address
        task: the task whose judgments are sent; None means all
    """

    def __init__(
        self, path: Path, connect: Callable[[], EventIndex], address: str, task: str | None = None
    ) -> None:
        self.address = address
        self.task = task
        # Why the last attempt failed; None when it did not.
        self.trouble: str | None = None
        # Number of events fetched so far.
        self.fetched = 0
        self._path = path
        self._connect = connect
        self._index: EventIndex | None = None
        self._leaving = threading.Event()
        self._first_done = threading.Event()
        # A daemon: leaving does not wait for a server that does not answer. The next exchange repeats its work.
        self._thread = threading.Thread(target=self._run, name="judgments to the cluster", daemon=True)

    def start(self, patience: float = 0.0) -> bool:
        """Start, and wait at most `patience` seconds for the first exchange; return whether it has ended."""
        self._thread.start()
        return self._first_done.wait(patience)

    def stop(self, patience: float) -> None:
        """Stop, and wait at most `patience` seconds for the present exchange."""
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
            self.trouble = f"judgments are no longer exchanged: {type(error).__name__}: {error}"
        finally:
            self._first_done.set()
            self._disconnect()

    def _work(self, log: JudgmentLog) -> None:
        looks = round(FETCH_SECONDS / LOOK_SECONDS)
        look = 0
        self._exchange(log, fetch=True)
        self._first_done.set()
        while not self._leaving.wait(LOOK_SECONDS):
            look = (look + 1) % looks
            if look == 0 or (self.trouble is None and log.waiting(self.address, self.task)):
                self._exchange(log, fetch=look == 0)

    def _exchange(self, log: JudgmentLog, fetch: bool) -> None:
        try:
            if self._index is None:
                self._index = self._connect()
            self.fetched += synchronize(log, self._index, self.task, fetch=fetch).fetched
            self.trouble = None
        except SearchappError as error:
            self.trouble = str(error)
            if isinstance(error, EngineError):
                self._disconnect()

    def _disconnect(self) -> None:
        if self._index is not None:
            with closing(self._index):
                self._index = None
