"""Compact numbers for the events of a task, and a snapshot of them in a file: a log of a million events opens at once.

Of each event there are numbers: its place in the log, its time, who did what with which document. The events of a topic
are read from the log when somebody looks at it, and their checksums are checked then; what an annotator says of its
documents follows from the numbers alone. A `View` of it is the same as one of all events.

The file has what the events up to a place add up to, and the log's checksum at that place. Only later
events are read from the log. A file that is missing, damaged, of another format, or does not go with the log is made
again without a word: to delete it is always safe.

    one line of JSON: format, task, place, the log's checksum there, byte order, digest of the rest
    one line of JSON: annotators, retractions, topics and the sizes of what follows
    the documents of each topic, as JSON
    the columns of `COLUMNS`, each of all topics one after the other
"""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from searchapp.errors import SearchappError
from searchapp.files import atomic_file, parse_json
from searchapp.judging.events import Action, Event
from searchapp.judging.judgments import SAYING, Base, Judgment, standing, tells_pace
from searchapp.judging.log import JudgmentLog

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_ACTIONS = tuple(Action)
_NUMBER = {action: number for number, action in enumerate(_ACTIONS)}
_PACE, _GRADE = 8, 16
_SAYING = frozenset(_NUMBER[action] for action in SAYING)

COLUMNS = {"places": "q", "times": "q", "whats": "q", "documents": "i", "annotators": "i"}
"""The numbers of events and the types of their arrays: place, microseconds since 1970, what was done, which document
of the topic, which annotator."""


def microseconds(moment: datetime) -> int:
    """A moment as a number."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(number: int) -> datetime:
    """The moment of a number."""
    return _EPOCH + timedelta(microseconds=number)


def _what(event: Event) -> int:
    grade = 0 if event.grade is None else event.grade + 1
    return grade * _GRADE + _PACE * tells_pace(event) + _NUMBER[event.action]


class TopicEvents:
    """The events of a topic as numbers, but for retractions."""

    __slots__ = ("_known", "_listed", "columns")

    def __init__(self, columns: dict[str, array[int]] | None = None, listed: bytes = b"[]") -> None:
        self.columns = columns or {name: array(type_) for name, type_ in COLUMNS.items()}
        self._listed = listed
        self._known: dict[str, int] | None = None

    @property
    def documents(self) -> dict[str, int]:
        """The documents' numbers; read when they are asked for."""
        if self._known is None:
            self._known = {document: number for number, document in enumerate(json.loads(self._listed))}  # noqa: TID251  # as it was written here
        return self._known

    @property
    def listed(self) -> bytes:
        """The documents as JSON."""
        return self._listed if self._known is None else json.dumps(list(self._known)).encode()

    @property
    def begun(self) -> int:
        """When the first event was."""
        return min(self.columns["times"])

    def add(self, place: int, event: Event, annotator: int) -> None:
        """Add an event."""
        columns, documents = self.columns, self.documents
        columns["places"].append(place)
        columns["times"].append(microseconds(event.order[0]))
        columns["whats"].append(_what(event))
        columns["documents"].append(documents.setdefault(event.document_id, len(documents)))
        columns["annotators"].append(annotator)

    def said(self, annotator: int, gone: Collection[int]) -> dict[str, Judgment] | None:
        """What an annotator says of each document; None where times don't tell which event is the last."""
        last: dict[int, tuple[int, int]] = {}
        columns = self.columns
        for who, what, time, document, place in zip(
            columns["annotators"],
            columns["whats"],
            columns["times"],
            columns["documents"],
            columns["places"],
            strict=True,
        ):
            if who != annotator or what % _PACE not in _SAYING or place in gone:
                continue
            before = last.get(document)
            if before is not None and before[0] == time:
                return None
            if before is None or time > before[0]:
                last[document] = time, what
        names = list(self.documents)
        return {
            names[document]: Judgment(_ACTIONS[what % _PACE], what // _GRADE - 1 if what >= _GRADE else None)
            for document, (_time, what) in last.items()
        }


@dataclass(slots=True)
class Work:
    """What an annotator has done: the time of the first event and of the last, with its moment, and the kind."""

    began: int
    first: str
    ended: int
    last: str
    kind: str

    def add(self, moment: int, event: Event) -> None:
        """Add an event."""
        if moment < self.began:
            self.began, self.first = moment, event.time
        if moment >= self.ended:
            self.ended, self.last, self.kind = moment, event.time, event.kind.value


class Compact(Base):
    """The events of a task up to the place `last` of a log.

    Events are added in the order of their places, and `settle` is called when no more come for now.
    """

    def __init__(self, log: JudgmentLog, task: str) -> None:
        self.task = task
        self.last = 0
        self.count = 0
        self.topics: dict[str, TopicEvents] = {}
        self.works: dict[str, Work] = {}
        self.retracted_by: dict[str, list[str]] = {}
        self.refers: dict[str, str] = {}
        """What each retraction takes back."""
        self.places: dict[str, int] = {}
        """The places of events that a retraction names."""
        self.gone: set[int] = set()
        """The places of events that don't stand."""
        self._log = log
        self._numbers: dict[str, int] = {}
        self._unsettled: set[str] = set()
        self._topics_of: dict[str, list[str]] = {}

    def restore_numbers(self) -> None:
        """Number the annotators in their order."""
        self._numbers = {name: number for number, name in enumerate(self.works)}

    def add(self, place: int, event: Event) -> None:
        """Add an event."""
        self.count += 1
        self._topics_of.clear()
        moment = microseconds(event.order[0])
        work = self.works.get(event.annotator)
        if work is None:
            self._numbers[event.annotator] = len(self.works)
            self.works[event.annotator] = Work(moment, event.time, moment, event.time, event.kind.value)
        else:
            work.add(moment, event)
        if event.action is Action.retract:
            self.refers[event.id] = event.refers
            self.retracted_by.setdefault(event.refers, []).append(event.id)
            self._unsettled.add(event.refers)
            return
        if event.id in self.retracted_by:
            self.places[event.id] = place
            self._unsettled.add(event.id)
        topic = self.topics.get(event.topic_id)
        if topic is None:
            topic = self.topics[event.topic_id] = TopicEvents()
        topic.add(place, event, self._numbers[event.annotator])

    def settle(self) -> None:
        """Find out which events don't stand any more, or stand again."""
        unsettled, self._unsettled = self._unsettled, set()
        targets = [one for one in unsettled if one not in self.places and one not in self.refers]
        for place, event in self._log.places_of(targets):
            if event.task == self.task:
                self.places[event.id] = place
        settled: set[str] = set()
        for one in unsettled:
            reached: str | None = one
            while reached is not None and reached not in settled:
                settled.add(reached)
                place_of = self.places.get(reached)
                if place_of is not None and standing(reached, self._retractions):
                    self.gone.discard(place_of)
                elif place_of is not None:
                    self.gone.add(place_of)
                reached = self.refers.get(reached)

    def _retractions(self, event_id: str) -> Sequence[str]:
        return self.retracted_by.get(event_id, ())

    # What a view is made of

    def retractions(self, event_id: str) -> Sequence[str]:
        """The ids of the retractions of an event, whether they stand or not."""
        return self._retractions(event_id)

    def topic_ids(self) -> list[str]:
        """The topics, in the order of the time when something was first said of them."""
        return sorted(self.topics, key=lambda name: (self.topics[name].begun, name))

    def events(self, topic_id: str) -> list[Event]:
        """The events on a topic, in their order, but for retractions."""
        topic = self.topics.get(topic_id)
        if topic is None:
            return []
        return sorted(self._log.at(topic.columns["places"]), key=lambda event: event.order)

    def said(self, annotator: str, topic_id: str) -> dict[str, Judgment] | None:
        """What an annotator says of each document of a topic; None where only the events tell."""
        topic, number = self.topics.get(topic_id), self._numbers.get(annotator)
        if topic is None or number is None:
            return {}
        return topic.said(number, self.gone)

    def topics_of(self, annotator: str) -> list[str]:
        """The topics that an annotator ever said something of."""
        if annotator not in self._topics_of:
            number = self._numbers.get(annotator)
            self._topics_of[annotator] = [
                name for name in self.topic_ids() if number in self.topics[name].columns["annotators"]
            ]
        return self._topics_of[annotator]

    def annotators(self) -> list[str]:
        """Everybody who said something of a document."""
        used: set[int] = set()
        for topic in self.topics.values():
            used.update(topic.columns["annotators"])
        return [name for name, number in self._numbers.items() if number in used]

    def topic_of(self, event_id: str) -> str | None:
        """The topic of an event or, if it is a retraction, of what that takes back in the end; None: not known."""
        reached: set[str] = set()
        while event_id not in reached:
            reached.add(event_id)
            if event_id in self.refers:
                event_id = self.refers[event_id]
                continue
            for _place, event in self._log.places_of([event_id]):
                if event.action is not Action.retract:
                    return event.topic_id
                event_id = event.refers
        return None

    # What else a session and statistics need

    def moments(self, annotator: str) -> list[datetime]:
        """When an annotator judged a document that was before them, in no order."""
        return [moment_of(time) for time, _place in self._own(annotator, lambda what: what & _PACE)]

    def own_places(self, annotator: str, actions: Collection[Action]) -> list[int]:
        """The places of an annotator's events of some kinds, in the order of their times."""
        wanted = {_NUMBER[action] for action in actions}
        return [place for _, place in sorted(self._own(annotator, lambda what: what % _PACE in wanted))]

    def _own(self, annotator: str, wanted: Callable[[int], object]) -> Iterator[tuple[int, int]]:
        number = self._numbers.get(annotator)
        for topic in self.topics.values():
            columns = topic.columns
            if number in columns["annotators"]:
                for who, what, time, place in zip(
                    columns["annotators"], columns["whats"], columns["times"], columns["places"], strict=True
                ):
                    if who == number and wanted(what):
                        yield time, place


FORMAT = 1
FEW = 2_000
"""This many events are read from the log rather than computed again."""
SHARE = 10
"""Or this share of those that are remembered: one in this many."""


def compact(log: JudgmentLog, task: str) -> Compact:
    """What all events of a task in a log add up to.

    Raises:
        DataError: the log can't be read.
    """
    found = read(log, task) or Compact(log, task)
    known, later = found.count, 0
    for place, event in log.events(after=found.last):
        later += 1
        found.last = place
        if event.task == task:
            found.add(place, event)
    found.settle()
    if later > max(FEW, known // SHARE) and not log.damage.found:
        write(log, found)
    return found


def path_of(log: Path, task: str) -> Path:
    """The file that remembers a task, whatever it is called."""
    return log.with_name(f"{log.name}-view-{hashlib.blake2b(task.encode(), digest_size=4).hexdigest()}")


def write(log: JudgmentLog, found: Compact) -> None:
    """Remember what was found, if that is possible."""
    checksum = log.checksum_at(found.last)
    if checksum is None:
        return  # its checksum is damaged
    topics = list(found.topics.items())
    listed = [topic.listed for _, topic in topics]
    meta = {
        "count": found.count,
        "works": {name: asdict(work) for name, work in found.works.items()},
        "refers": found.refers,
        "retracted_by": found.retracted_by,
        "places": found.places,
        "gone": sorted(found.gone),
        "topics": [
            (name, len(topic.columns["places"]), len(documents))
            for (name, topic), documents in zip(topics, listed, strict=True)
        ],
    }
    body = b"".join(
        (
            json.dumps(meta).encode(),
            b"\n",
            *listed,
            *(topic.columns[column].tobytes() for column in COLUMNS for _, topic in topics),
        )
    )
    head = {
        "format": FORMAT,
        "task": found.task,
        "last": found.last,
        "checksum": checksum.hex(),
        "order": sys.byteorder,
        "digest": _digest(body),
    }
    with suppress(SearchappError), atomic_file(path_of(log.path, found.task)) as file:
        file.write(json.dumps(head).encode() + b"\n" + body)


def read(log: JudgmentLog, task: str) -> Compact | None:
    """What is remembered of a task; None if nothing is that goes with the log."""
    try:
        head_line, _, body = path_of(log.path, task).read_bytes().partition(b"\n")
        head = parse_json(head_line.decode())
        wanted = {"format": FORMAT, "task": task, "order": sys.byteorder, "digest": _digest(body)}
        if any(head[name] != value for name, value in wanted.items()):
            return None
        if log.checksum_at(head["last"]) != bytes.fromhex(head["checksum"]):
            return None
        return _restored(Compact(log, task), head["last"], memoryview(body))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _restored(found: Compact, last: int, body: memoryview) -> Compact:
    end = bytes(body).index(b"\n")
    # Its digest has been compared: it is as it was written here.
    meta: dict[str, Any] = json.loads(bytes(body[:end]))  # noqa: TID251
    found.last, found.count = last, meta["count"]
    found.works = {name: Work(**work) for name, work in meta["works"].items()}
    found.refers, found.retracted_by = meta["refers"], meta["retracted_by"]
    found.places, found.gone = meta["places"], set(meta["gone"])
    found.restore_numbers()
    at = end + 1
    listed: list[bytes] = []
    for _name, _count, size in meta["topics"]:
        listed.append(bytes(body[at : at + size]))
        at += size
    columns: list[dict[str, array[int]]] = [{} for _ in listed]
    for column, type_ in COLUMNS.items():
        for own, (_name, count, _size) in zip(columns, meta["topics"], strict=True):
            values = array(type_)
            size = count * values.itemsize
            values.frombytes(body[at : at + size])
            own[column] = values
            at += size
    found.topics = {
        name: TopicEvents(own, documents)
        for (name, _count, _size), own, documents in zip(meta["topics"], columns, listed, strict=True)
    }
    return found


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=16).hexdigest()
