"""What holds now: the log's events folded into each annotator's opinion, and the opinions into one grade."""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from searchapp.judging.events import GRADED, Action, Event, Kind

Key = tuple[str, str]
"""A topic's id and a document's id."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one annotator says of a document now: a grade, or `skip` or `cant_tell`, which are no grades.

    `event` is the event that says so; `note` the annotator's last words on the document.
    """

    annotator: str
    kind: Kind
    action: Action
    grade: int | None
    event: Event
    note: str = ""


SAYING = (Action.grade, Action.skip, Action.cant_tell)
"""What an annotator says of a document, in contrast to words on it and decisions between others."""

KEPT_TOPICS = 64
"""Topics whose events are kept once they were read, by a view that can read them again."""


class Judgment(NamedTuple):
    """What an annotator says of a document now, and the grade if it is one."""

    action: Action
    grade: int | None


class Base(Protocol):
    """What a view's earlier events add up to, without all of them having been read."""

    def retractions(self, event_id: str) -> Sequence[str]:
        """The ids of the retractions of an event, whether they stand or not."""

    def topic_ids(self) -> Sequence[str]:
        """The topics, in the order of the time when something was first said of them."""

    def events(self, topic_id: str) -> Sequence[Event]:
        """The events on a topic, in their order, but for retractions."""

    def said(self, annotator: str, topic_id: str) -> Mapping[str, Judgment] | None:
        """What an annotator says of each document of a topic; None where only the events tell."""

    def topics_of(self, annotator: str) -> Sequence[str]:
        """The topics that an annotator ever said something of."""

    def annotators(self) -> Sequence[str]:
        """Everybody who said something of a document."""

    def topic_of(self, event_id: str) -> str | None:
        """The topic of an event or, if it is a retraction, of what that takes back in the end; None: not known."""


class _TopicEvents:
    """The events on a topic, by annotator and document, and who said something of each document."""

    __slots__ = ("annotators", "of")

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.of: defaultdict[tuple[str, str], list[Event]] = defaultdict(list)
        self.annotators: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        insort(self.of[event.annotator, event.document_id], event, key=_order)
        self.annotators[event.document_id].setdefault(event.annotator)


_NOTHING = _TopicEvents()
"""A topic of which nobody said anything."""


class View:
    """The state that a log's events add up to, in whatever order they come: judgments of a team that shares a cluster
    reach every member in another one, and must add up to the same everywhere. What was said last is what has the
    latest time (see `latest`).

    An event that was retracted counts as if it had never been, and the one before it holds again; retracting a
    retraction brings the event back.

    With a `base`, what came before is read from there topic by topic, when it is looked at.
    """

    def __init__(self, events: Iterable[Event] = (), base: Base | None = None) -> None:
        self._base = base
        self._retracted_by: defaultdict[str, list[str]] = defaultdict(list)
        self._topics: OrderedDict[str, _TopicEvents] = OrderedDict()
        self._later: defaultdict[str, list[Event]] = defaultdict(list)
        self._later_topics: dict[str, str] = {}
        self._changed: set[str] | None = set()
        """Topics of which more is known than in the base; None: it could be any."""
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Add one more event."""
        if event.action is Action.retract:
            self._retracted_by[event.refers].append(event.id)
        if self._base is not None:
            self._note_change(event, self._base)
        if event.action is Action.retract:
            return
        topic = self._topics.get(event.topic_id)
        if topic is None and self._base is None:
            topic = self._topics[event.topic_id] = _TopicEvents()
        if topic is not None:
            topic.add(event)

    def _note_change(self, event: Event, base: Base) -> None:
        topic: str | None = event.topic_id
        if event.action is not Action.retract:
            self._later[event.topic_id].append(event)
        else:
            topic = self._later_topics.get(event.refers) or base.topic_of(event.refers)
        if topic is None or event.id in self._retracted_by:
            self._changed = None  # of what is not there yet, or what came after its retraction
        else:
            self._later_topics[event.id] = topic
            if self._changed is not None:
                self._changed.add(topic)

    def _topic(self, topic_id: str) -> _TopicEvents:
        """What was said of a topic; it is read if it is not in memory."""
        found = self._topics.get(topic_id)
        if self._base is None:
            return found or _NOTHING
        if found is None:
            found = _TopicEvents((*self._base.events(topic_id), *self._later.get(topic_id, ())))
            self._topics[topic_id] = found
            if len(self._topics) > KEPT_TOPICS:
                self._topics.popitem(last=False)
        else:
            self._topics.move_to_end(topic_id)
        return found

    def _events(self, annotator: str, topic_id: str, document_id: str) -> Sequence[Event]:
        return self._topic(topic_id).of.get((annotator, document_id), ())

    def _retractions(self, event_id: str) -> Sequence[str]:
        own = self._retracted_by.get(event_id, ())
        return own if self._base is None else (*self._base.retractions(event_id), *own)

    def holds(self, event_id: str) -> bool:
        """Whether an event stands, that is no retraction of it stands."""
        return standing(event_id, self._retractions)

    def retractions(self, event_id: str) -> list[str]:
        """The ids of the retractions of an event that stand."""
        return [other for other in self._retractions(event_id) if self.holds(other)]

    def latest(self, topic_id: str, document_id: str) -> datetime | None:
        """The time of the latest event on a document.

        What is said in sight of it gets a later time, because the clocks of two machines differ.
        """
        of_all = (
            self._events(name, topic_id, document_id)[-1]
            for name in self.annotators_of(topic_id, document_id)
        )
        return max((event.order[0] for event in of_all), default=None)

    def opinion(self, annotator: str, topic_id: str, document_id: str) -> Opinion | None:
        """What an annotator says of a document; decisions between annotators are no opinions."""
        said, note = None, ""
        for event in self._events(annotator, topic_id, document_id):
            if event.action is Action.adjudicate or not self.holds(event.id):
                continue
            if event.action is Action.note:
                note = event.text
            else:
                said = event
        if said is None:
            return None
        return Opinion(annotator, said.kind, said.action, said.grade, said, note or said.text)

    def said(self, annotator: str, topic_id: str) -> Mapping[str, Judgment]:
        """What an annotator says of each document of a topic, as far as they do."""
        if self._base is not None and self._changed is not None and topic_id not in self._changed:
            found = self._base.said(annotator, topic_id)
            if found is not None:
                return found
        opinions = (
            (document, self.opinion(annotator, topic_id, document))
            for document in list(self._topic(topic_id).annotators)
        )
        return {document: Judgment(one.action, one.grade) for document, one in opinions if one is not None}

    def words(self, annotator: str, topic_id: str, document_id: str) -> str:
        """An annotator's last words on a document: a note, else the reason of what they say of it."""
        opinion = self.opinion(annotator, topic_id, document_id)
        if opinion is not None:
            return opinion.note
        notes = [
            event.text
            for event in self._events(annotator, topic_id, document_id)
            if event.action is Action.note and self.holds(event.id)
        ]
        return notes[-1] if notes else ""

    def decision(self, topic_id: str, document_id: str, among: Collection[str] | None = None) -> Event | None:
        """The last standing decision between annotators, of those that the annotators `among` have made."""
        decisions = [
            event
            for annotator in self.annotators_of(topic_id, document_id)
            if among is None or annotator in among
            for event in self._events(annotator, topic_id, document_id)
            if event.action is Action.adjudicate and self.holds(event.id)
        ]
        return max(decisions, key=_order, default=None)

    def opinions(self, topic_id: str, document_id: str) -> list[Opinion]:
        """What every annotator says of a document, in the order in which they first said something."""
        found = (
            self.opinion(annotator, topic_id, document_id)
            for annotator in self.annotators_of(topic_id, document_id)
        )
        return [opinion for opinion in found if opinion is not None]

    def topics(self) -> list[str]:
        """Every topic that somebody said something of, in the order in which that was."""
        if self._base is None:
            return list(self._topics)
        return list(dict.fromkeys((*self._base.topic_ids(), *self._later)))

    def topics_of(self, annotator: str) -> list[str]:
        """The topics that an annotator ever said something of."""
        if self._base is None:
            return [
                topic_id
                for topic_id, topic in self._topics.items()
                if any(name == annotator for name, _document in topic.of)
            ]
        later = (
            topic_id
            for topic_id, events in self._later.items()
            if any(event.annotator == annotator for event in events)
        )
        return list(dict.fromkeys((*self._base.topics_of(annotator), *later)))

    def judged_documents(self, topics: Iterable[str] | None = None) -> Iterator[Key]:
        """Every topic and document that somebody said something of, topic by topic; of these topics only, if given."""
        for topic_id in self.topics() if topics is None else topics:
            for document_id in list(self._topic(topic_id).annotators):
                yield topic_id, document_id

    def standing(self, annotator: str, topic_id: str, document_id: str) -> list[Event]:
        """The events that say what an annotator says of a document now.

        The one that holds the opinion or, where there is none, the last note; and the annotator's own decision.
        """
        own = [event for event in self._events(annotator, topic_id, document_id) if self.holds(event.id)]
        opinions = [event for event in own if event.action in SAYING]
        notes = [event for event in own if event.action is Action.note]
        decisions = [event for event in own if event.action is Action.adjudicate]
        return [*(opinions or notes)[-1:], *decisions[-1:]]

    def said_by(self, annotator: str, topic_id: str, document_id: str) -> Sequence[Event]:
        """Everything that an annotator ever said of a document, in its order, also what was taken back."""
        return self._events(annotator, topic_id, document_id)

    def annotators_of(self, topic_id: str, document_id: str) -> list[str]:
        """Everybody who ever said something of a document, by name."""
        return sorted(self._topic(topic_id).annotators.get(document_id, ()))

    def annotators(self) -> list[str]:
        """Everybody who ever said something of a document, by name."""
        if self._base is None:
            of_topics = (topic.annotators.values() for topic in self._topics.values())
            return sorted({name for documents in of_topics for names in documents for name in names})
        later = {event.annotator for events in self._later.values() for event in events}
        return sorted({*self._base.annotators(), *later})


def standing(event_id: str, retractions: Callable[[str], Sequence[str]]) -> bool:
    """Whether an event stands, that is no retraction of it stands; `retractions` gives an event's own ones."""
    if not retractions(event_id):
        return True
    # Not by calling itself: a file may have a thousand retractions, each of the one before.
    chain, reached = [event_id], {event_id}
    for one in chain:
        others = [other for other in retractions(one) if other not in reached]
        chain += others
        reached.update(others)
    found: dict[str, bool] = {}
    for one in reversed(chain):
        found[one] = not any(found.get(other) for other in retractions(one))
    return found[event_id]


class Rule(StrEnum):
    """How the opinions of several annotators become one grade, where no decision between them stands.

    `majority`: the grade that more annotators give than any other, else the median. `median`: the median of the grades,
    the lower one of two middle ones. `decided`: only decisions count, and grades on which all agree.
    """

    majority = "majority"
    median = "median"
    decided = "decided"


@dataclass(frozen=True, slots=True)
class Folding:
    """Whose opinions count, and the rule that makes one grade of them.

    A decision between annotators comes first. With `annotators` only what these say counts, their decisions too: one
    name alone gives that annotator's own grades. Models do not count unless they are named.
    """

    rule: Rule = Rule.majority
    annotators: Collection[str] | None = None

    def counts(self, opinion: Opinion) -> bool:
        if self.annotators is not None:
            return opinion.annotator in self.annotators
        return opinion.kind is Kind.person


@dataclass(frozen=True, slots=True)
class Judged:
    """The grades that hold, by topic and document, and the documents whose annotators disagree."""

    grades: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    disputed: tuple[Key, ...] = ()


def judged(view: View, folding: Folding | None = None) -> Judged:
    """One grade for every document that has been graded."""
    folding = folding or Folding()
    grades: defaultdict[str, dict[str, int]] = defaultdict(dict)
    disputed: list[Key] = []
    for topic_id, document_id in view.judged_documents():
        given = [
            opinion.grade
            for opinion in view.opinions(topic_id, document_id)
            if opinion.grade is not None and folding.counts(opinion)
        ]
        decision = view.decision(topic_id, document_id, folding.annotators)
        if decision is None and len(set(given)) > 1:
            disputed.append((topic_id, document_id))
        grade = decision.grade if decision is not None else combined(given, folding.rule)
        if grade is not None:
            grades[topic_id][document_id] = grade
    return Judged(dict(grades), tuple(disputed))


def combined(grades: Collection[int], rule: Rule) -> int | None:
    """One grade of several; None when there is none, or the rule leaves it open.

    >>> [combined([2, 0, 2], rule) for rule in Rule], combined([0, 3], Rule.majority)
    ([2, 2, None], 0)
    """
    if not grades:
        return None
    if len(set(grades)) == 1:
        return next(iter(grades))
    if rule is Rule.decided:
        return None
    if rule is Rule.majority:
        (first, most), (_, next_most) = Counter(grades).most_common(2)
        if most > next_most:
            return first
    return sorted(grades)[math.ceil(len(grades) / 2) - 1]


def _order(event: Event) -> tuple[datetime, str]:
    return event.order


def graded(events: Iterable[Event]) -> int:
    """How many of the events give a grade."""
    return sum(event.action in GRADED for event in events)
