"""The judgments that hold now: a fold of a task's events, and its snapshot in a file beside the log.

A view has a few numbers of each event; it reads a topic's events, and verifies their checksums, on first use. The
snapshot has the numbers up to an event and the log's checksum there; an invalid snapshot is ignored and written
again. Layout:

    one line of JSON: format, task, sequence number, the log's checksum there, byte order, digest of the rest
    one line of JSON: annotators, retractions, topics and the sizes of the following parts
    the documents of each topic, as JSON
    the columns of `COLUMNS`, each of all topics in sequence
"""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from bisect import insort
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from searchapp.errors import SearchappError, UsageError
from searchapp.files import atomic_file, parse_json
from searchapp.judging.events import Action, Event, Kind, is_timed
from searchapp.lucene.dataclass import dataclass
from searchapp.text import suggestion

if TYPE_CHECKING:
    from searchapp.judging.log import JudgmentLog

Key = tuple[str, str]  # the ids of a topic and of a document

# The actions that state an annotator's opinion, unlike notes and decisions.
VERDICTS = (Action.grade, Action.skip, Action.cant_tell)

CACHED_TOPICS = 64  # topics whose events stay in memory

# Array types of the events' numbers. Times are microseconds since 1970; for codes see `_code`.
COLUMNS = {"sequences": "q", "times": "q", "codes": "q", "documents": "i", "annotators": "i"}

_ACTIONS = tuple(Action)
_NUMBERS = {action: number for number, action in enumerate(_ACTIONS)}
_PACE, _GRADE = 8, 16
_VERDICT_NUMBERS = frozenset(_NUMBERS[action] for action in VERDICTS)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Opinion:
    """An annotator's present verdict on a document."""

    annotator: str
    kind: Kind
    # One of `VERDICTS`.
    action: Action
    grade: int | None
    # The event that states the verdict.
    event: Event
    # The annotator's last words on the document.
    note: str = ""


def has_verdict(opinion: Opinion | None) -> TypeGuard[Opinion]:
    """Return whether an opinion is a grade or "can't tell", not only a skip."""
    return opinion is not None and opinion.action is not Action.skip


class Judgment(NamedTuple):
    """An annotator's present verdict on a document, without its event."""

    action: Action
    grade: int | None


def is_standing(event_id: str, retractions: Callable[[str], Sequence[str]]) -> bool:
    """Return whether no standing event retracts an event; `retractions` returns the ids that retract an id."""
    if not retractions(event_id):
        return True
    # No recursion: a file may have a thousand retractions, each of the one before.
    chain, reached = [event_id], {event_id}
    for id_ in chain:
        others = [other for other in retractions(id_) if other not in reached]
        chain += others
        reached.update(others)
    standing: dict[str, bool] = {}
    for id_ in reversed(chain):
        standing[id_] = not any(standing.get(other) for other in retractions(id_))
    return standing[event_id]


def _code(event: Event) -> int:
    """Return action, grade and `is_timed` in one number."""
    grade = 0 if event.grade is None else event.grade + 1
    return grade * _GRADE + _PACE * is_timed(event) + _NUMBERS[event.action]


def _event_order(event: Event) -> tuple[datetime, str]:
    return event.order


class _TopicColumns:
    """The numbers of a topic's events, without retractions."""

    __slots__ = ("_documents", "_documents_json", "columns")

    def __init__(self, columns: dict[str, array[int]] | None = None, documents_json: bytes = b"[]") -> None:
        self.columns = columns or {name: array(type_) for name, type_ in COLUMNS.items()}
        self._documents_json = documents_json
        self._documents: dict[str, int] | None = None

    @property
    def documents(self) -> dict[str, int]:
        if self._documents is None:
            ids = json.loads(self._documents_json)  # noqa: TID251  # the snapshot's digest was compared
            self._documents = {document: number for number, document in enumerate(ids)}
        return self._documents

    @property
    def documents_json(self) -> bytes:
        return self._documents_json if self._documents is None else json.dumps(list(self._documents)).encode()

    def add(self, event: Event, sequence: int, time: int, annotator: int) -> None:
        columns, documents = self.columns, self.documents
        columns["sequences"].append(sequence)
        columns["times"].append(time)
        columns["codes"].append(_code(event))
        columns["documents"].append(documents.setdefault(event.document_id, len(documents)))
        columns["annotators"].append(annotator)

    def judgments(self, annotator: int, retracted: Collection[int]) -> dict[str, Judgment] | None:
        """Return an annotator's verdict on each document; None if two events have the same time."""
        last: dict[int, tuple[int, int]] = {}
        for number, code, time, document, sequence in zip(
            *(self.columns[name] for name in ("annotators", "codes", "times", "documents", "sequences")),
            strict=True,
        ):
            if number != annotator or code % _PACE not in _VERDICT_NUMBERS or sequence in retracted:
                continue
            before = last.get(document)
            if before is not None and before[0] == time:
                return None
            if before is None or time > before[0]:
                last[document] = time, code
        names = list(self.documents)
        return {
            names[document]: Judgment(_ACTIONS[code % _PACE], code // _GRADE - 1 if code >= _GRADE else None)
            for document, (_time, code) in last.items()
        }


class _TopicEvents:
    __slots__ = ("annotators", "of")

    def __init__(self, events: Iterable[Event]) -> None:
        self.of: defaultdict[tuple[str, str], list[Event]] = defaultdict(list)
        self.annotators: defaultdict[str, set[str]] = defaultdict(set)
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        insort(self.of[event.annotator, event.document_id], event, key=_event_order)
        self.annotators[event.document_id].add(event.annotator)


@dataclass(slots=True)
class AnnotatorWork:
    """The first and the last event of an annotator by time, and the annotator's kind."""

    number: int
    first: str
    last: str
    kind: str
    # Microseconds since 1970, like `last_time`.
    first_time: int
    last_time: int


def people_first(opinions: Iterable[Opinion]) -> list[Opinion]:
    """Return the opinions of people before those of models, each in the order of their names."""
    return sorted(opinions, key=lambda opinion: (opinion.kind is Kind.model, opinion.annotator))


class JudgmentView:
    """The state of a task's events, independent of the order in which they are added.

    The latest standing verdict of an annotator holds; retracting a retraction restores the event.

    Args:
        events: events that are in no log
        log: the log from which saved events are read
        task: the task of the log's events
    """

    def __init__(
        self, events: Iterable[Event] = (), *, log: JudgmentLog | None = None, task: str = ""
    ) -> None:
        self.task = task
        # The sequence number of the last added event of the log.
        self.last = 0
        # The number of events.
        self.count = 0
        # By annotator, in the order of addition.
        self.work: dict[str, AnnotatorWork] = {}
        self._log = log
        # Events that are not in the log, numbered -1, -2, ….
        self._unsaved: list[Event] = []
        self._columns: dict[str, _TopicColumns] = {}
        self._topics_of: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._retracted_by: dict[str, list[str]] = {}
        # The id that each retraction takes back.
        self._refers: dict[str, str] = {}
        # Sequence numbers of events that were retracted or are in no log.
        self._sequences: dict[str, int] = {}
        # The sequence numbers of retracted events, as of the last `_settle`.
        self._retracted: set[int] = set()
        self._unsettled: set[str] = set()
        self._cache: OrderedDict[str, _TopicEvents] = OrderedDict()
        for event in events:
            self.add(event)

    def add(self, event: Event, sequence: int | None = None) -> None:
        """Add an event; `sequence` is its number in the log, None if it is in none."""
        if sequence is None:
            self._unsaved.append(event)
            sequence = self._sequences[event.id] = -len(self._unsaved)
        self.count += 1
        time = (event.order[0] - _EPOCH) // _MICROSECOND
        work = self.work.get(event.annotator)
        if work is None:
            number = len(self.work)
            work = AnnotatorWork(number, event.time, event.time, event.kind.value, time, time)
            self.work[event.annotator] = work
        if time < work.first_time:
            work.first_time, work.first = time, event.time
        if time >= work.last_time:
            work.last_time, work.last, work.kind = time, event.time, event.kind.value
        if event.action is Action.retract:
            self._refers[event.id] = event.refers
            self._retracted_by.setdefault(event.refers, []).append(event.id)
            self._unsettled.add(event.refers)
            return
        if event.id in self._retracted_by:
            self._sequences[event.id] = sequence
            self._unsettled.add(event.id)
        columns = self._columns.get(event.topic_id)
        if columns is None:
            columns = self._columns[event.topic_id] = _TopicColumns()
        columns.add(event, sequence, time, work.number)
        self._topics_of[event.annotator][event.topic_id] = None
        if event.topic_id in self._cache:
            self._cache[event.topic_id].add(event)

    def _settle(self) -> None:
        unsettled, self._unsettled = self._unsettled, set()
        targets = [id_ for id_ in unsettled if id_ not in self._sequences and id_ not in self._refers]
        if self._log is not None:
            for sequence, event in self._log.events_with_ids(targets):
                if event.task == self.task:
                    self._sequences[event.id] = sequence
        settled: set[str] = set()
        for id_ in unsettled:
            reached: str | None = id_
            while reached is not None and reached not in settled:
                settled.add(reached)
                sequence_of_target = self._sequences.get(reached)
                if sequence_of_target is not None and self.holds(reached):
                    self._retracted.discard(sequence_of_target)
                elif sequence_of_target is not None:
                    self._retracted.add(sequence_of_target)
                reached = self._refers.get(reached)

    def _events_at(self, sequences: Iterable[int]) -> list[Event]:
        saved, events = list[int](), list[Event]()
        for sequence in sequences:
            if sequence < 0:
                events.append(self._unsaved[-sequence - 1])
            else:
                saved.append(sequence)
        if saved and self._log is not None:
            events += self._log.at(saved)
        return events

    def _topic(self, topic_id: str) -> _TopicEvents:
        topic = self._cache.get(topic_id)
        if topic is None:
            columns = self._columns.get(topic_id)
            sequences = () if columns is None else columns.columns["sequences"]
            topic = _TopicEvents(sorted(self._events_at(sequences), key=_event_order))
            self._cache[topic_id] = topic
            if len(self._cache) > CACHED_TOPICS:
                self._cache.popitem(last=False)
        else:
            self._cache.move_to_end(topic_id)
        return topic

    def _retractions(self, event_id: str) -> Sequence[str]:
        return self._retracted_by.get(event_id, ())

    def holds(self, event_id: str) -> bool:
        return is_standing(event_id, self._retractions)

    def retractions(self, event_id: str) -> list[str]:
        return [other for other in self._retractions(event_id) if self.holds(other)]

    # One document

    def events_on(self, annotator: str, topic_id: str, document_id: str) -> Sequence[Event]:
        """Return an annotator's events on a document by time, with retracted ones, without retractions."""
        return self._topic(topic_id).of.get((annotator, document_id), ())

    def _standing_events(self, annotator: str, topic_id: str, document_id: str) -> list[Event]:
        events = self.events_on(annotator, topic_id, document_id)
        return [event for event in events if self.holds(event.id)]

    def annotators_of(self, topic_id: str, document_id: str) -> list[str]:
        return sorted(self._topic(topic_id).annotators.get(document_id, ()))

    def latest(self, topic_id: str, document_id: str) -> datetime | None:
        names = self.annotators_of(topic_id, document_id)
        times = (self.events_on(name, topic_id, document_id)[-1].order[0] for name in names)
        return max(times, default=None)

    def opinion(self, annotator: str, topic_id: str, document_id: str) -> Opinion | None:
        """Return an annotator's verdict on a document; adjudications do not count."""
        verdict, note = None, ""
        for event in self._standing_events(annotator, topic_id, document_id):
            if event.action is Action.note:
                note = event.text
            elif event.action is not Action.adjudicate:
                verdict = event
        if verdict is None:
            return None
        return Opinion(annotator, verdict.kind, verdict.action, verdict.grade, verdict, note or verdict.text)

    def opinions(self, topic_id: str, document_id: str) -> list[Opinion]:
        names = self.annotators_of(topic_id, document_id)
        opinions = (self.opinion(name, topic_id, document_id) for name in names)
        return [opinion for opinion in opinions if opinion is not None]

    def words(self, annotator: str, topic_id: str, document_id: str) -> str:
        """Return an annotator's last note on a document, otherwise the reason of the verdict."""
        opinion = self.opinion(annotator, topic_id, document_id)
        if opinion is not None:
            return opinion.note
        events = self._standing_events(annotator, topic_id, document_id)
        notes = [event.text for event in events if event.action is Action.note]
        return notes[-1] if notes else ""

    def decision(self, topic_id: str, document_id: str, among: Collection[str] | None = None) -> Event | None:
        """Return the last standing decision, by the annotators `among` if given."""
        decisions = [
            event
            for annotator in self.annotators_of(topic_id, document_id)
            if among is None or annotator in among
            for event in self._standing_events(annotator, topic_id, document_id)
            if event.action is Action.adjudicate
        ]
        return max(decisions, key=_event_order, default=None)

    def standing(self, annotator: str, topic_id: str, document_id: str) -> list[Event]:
        """Return an annotator's present verdict on a document (otherwise the last note), and last decision."""
        own = self._standing_events(annotator, topic_id, document_id)
        verdicts = [event for event in own if event.action in VERDICTS]
        notes = [event for event in own if event.action is Action.note]
        decisions = [event for event in own if event.action is Action.adjudicate]
        return [*(verdicts or notes)[-1:], *decisions[-1:]]

    # Topics and annotators

    def judgments(self, annotator: str, topic_id: str) -> Mapping[str, Judgment]:
        columns, work = self._columns.get(topic_id), self.work.get(annotator)
        if columns is None or work is None:
            return {}
        self._settle()
        judgments = columns.judgments(work.number, self._retracted)
        if judgments is not None:
            return judgments
        documents = list(self._topic(topic_id).annotators)
        opinions = ((document, self.opinion(annotator, topic_id, document)) for document in documents)
        return {
            document: Judgment(opinion.action, opinion.grade)
            for document, opinion in opinions
            if opinion is not None
        }

    def judged_documents(self, topics: Iterable[str] | None = None) -> Iterator[Key]:
        for topic_id in self.topics() if topics is None else topics:
            for document_id in list(self._topic(topic_id).annotators):
                yield topic_id, document_id

    def topics(self) -> list[str]:
        return sorted(self._columns, key=lambda name: (min(self._columns[name].columns["times"]), name))

    def topics_of(self, annotator: str) -> list[str]:
        return list(self._topics_of.get(annotator, ()))

    def annotators(self) -> list[str]:
        return sorted(self._topics_of)

    # One annotator

    def judging_times(self, annotator: str) -> list[datetime]:
        own = self._own(annotator, lambda code: code & _PACE)
        return [_EPOCH + timedelta(microseconds=time) for time, _sequence in own]

    def own_sequences(self, annotator: str, actions: Collection[Action]) -> list[int]:
        numbers = {_NUMBERS[action] for action in actions}
        return [
            sequence for _, sequence in sorted(self._own(annotator, lambda code: code % _PACE in numbers))
        ]

    def _own(self, annotator: str, is_wanted: Callable[[int], object]) -> Iterator[tuple[int, int]]:
        for topic_id in self.topics_of(annotator):
            own, columns = self.work[annotator].number, self._columns[topic_id].columns
            for number, code, time, sequence in zip(
                *(columns[name] for name in ("annotators", "codes", "times", "sequences")), strict=True
            ):
                if number == own and is_wanted(code):
                    yield time, sequence

    # The snapshot

    def snapshot(self) -> bytes:
        self._settle()
        documents = [columns.documents_json for columns in self._columns.values()]
        state = {
            "count": self.count,
            "work": {name: asdict(work) for name, work in self.work.items()},
            "refers": self._refers,
            "retracted_by": self._retracted_by,
            "sequences": self._sequences,
            "retracted": sorted(self._retracted),
            "topics": [
                (name, len(columns.columns["sequences"]), len(ids))
                for (name, columns), ids in zip(self._columns.items(), documents, strict=True)
            ],
        }
        arrays = (of.columns[name].tobytes() for name in COLUMNS for of in self._columns.values())
        return b"".join((json.dumps(state).encode(), b"\n", *documents, *arrays))

    def restore(self, body: bytes, last: int) -> None:
        """Restore the state that `snapshot` returned for the events up to the number `last`."""
        end = body.index(b"\n")
        state: dict[str, Any] = json.loads(body[:end])  # noqa: TID251  # the digest was compared
        self.last, self.count = last, state["count"]
        self.work = {name: AnnotatorWork(**work) for name, work in state["work"].items()}
        self._refers, self._retracted_by = state["refers"], state["retracted_by"]
        self._sequences, self._retracted = state["sequences"], set(state["retracted"])
        offset = end + 1
        documents: list[bytes] = []
        for _name, _count, size in state["topics"]:
            documents.append(body[offset : offset + size])
            offset += size
        columns: list[dict[str, array[int]]] = [{} for _ in documents]
        view = memoryview(body)
        for column, type_ in COLUMNS.items():
            for own, (_name, count, _size) in zip(columns, state["topics"], strict=True):
                own[column] = array(type_)
                size = count * own[column].itemsize
                own[column].frombytes(view[offset : offset + size])
                offset += size
        names = list(self.work)
        for (name, _count, _size), own, ids in zip(state["topics"], columns, documents, strict=True):
            self._columns[name] = _TopicColumns(own, ids)
            for number in set(own["annotators"]):
                self._topics_of[names[number]][name] = None


FORMAT = 3
# At each opening, up to FEW events, or one in SHARE of the snapshot's, are read from the log.
FEW = 2_000
SHARE = 10


def require_annotators(view: JudgmentView, task: str, names: Iterable[str]) -> None:
    """Check that annotators have judged a task.

    Raises:
        UsageError: one has not.
    """
    known = view.annotators()
    for name in names:
        if name not in known:
            listed = f"choose from {', '.join(known)}" if known else "there are no judgments yet"
            raise UsageError(f"{task} has no annotator {name!r}{suggestion(name, known)}: {listed}")


def open_view(log: JudgmentLog, task: str) -> JudgmentView:
    """Return the view of a task's events in a log; write a snapshot if many events are new.

    Raises:
        DataError: the log can't be read.
    """
    view = read_snapshot(log, task) or JudgmentView(log=log, task=task)
    snapshot_size, later = view.count, 0
    for sequence, event in log.events(after=view.last):
        later += 1
        view.last = sequence
        if event.task == task:
            view.add(event, sequence)
    if later > max(FEW, snapshot_size // SHARE) and not log.damage.entries:
        write_snapshot(log, view)
    return view


def snapshot_path(log: Path, task: str) -> Path:
    """Return the snapshot's file; a digest, because a task's name may contain any character."""
    return log.with_name(f"{log.name}-view-{hashlib.blake2b(task.encode(), digest_size=4).hexdigest()}")


def _header(task: str, body: bytes) -> dict[str, object]:
    digest = hashlib.blake2b(body, digest_size=16).hexdigest()
    return {"format": FORMAT, "task": task, "order": sys.byteorder, "digest": digest}


def write_snapshot(log: JudgmentLog, view: JudgmentView) -> None:
    """Write the snapshot of a view whose events are all in the log; a failure has no effect."""
    checksum = log.checksum_at(view.last)
    if checksum is None:
        return  # its checksum is damaged
    body = view.snapshot()
    header = {**_header(view.task, body), "last": view.last, "checksum": checksum.hex()}
    with suppress(SearchappError), atomic_file(snapshot_path(log.path, view.task)) as file:
        file.write(json.dumps(header).encode() + b"\n" + body)


def read_snapshot(log: JudgmentLog, task: str) -> JudgmentView | None:
    """Return the view of the snapshot; None if there is no snapshot of this log."""
    try:
        header_line, _, body = snapshot_path(log.path, task).read_bytes().partition(b"\n")
        header = parse_json(header_line.decode())
        if any(header[name] != value for name, value in _header(task, body).items()):
            return None
        if log.checksum_at(header["last"]) != bytes.fromhex(header["checksum"]):
            return None
        view = JudgmentView(log=log, task=task)
        view.restore(body, header["last"])
        return view
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
