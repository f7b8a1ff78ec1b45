"""What holds now: the log's events folded into each annotator's opinion, and the opinions into one grade."""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

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

    @property
    def is_grade(self) -> bool:
        return self.grade is not None


class View:
    """The state that a log's events add up to, in whatever order they come: judgments of a team that shares a cluster
    reach every member in another one, and must add up to the same everywhere. What was said last is what has the
    latest time (see `latest`).

    An event that was retracted counts as if it had never been, and the one before it holds again; retracting a
    retraction brings the event back.
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._retracted_by: defaultdict[str, list[str]] = defaultdict(list)
        self._of: defaultdict[tuple[str, str, str], list[Event]] = defaultdict(list)
        self._annotators: defaultdict[Key, dict[str, None]] = defaultdict(dict)
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Take in one more event."""
        if event.action is Action.retract:
            self._retracted_by[event.refers].append(event.id)
            return
        insort(self._of[event.annotator, event.topic_id, event.document_id], event, key=_order)
        self._annotators[event.topic_id, event.document_id].setdefault(event.annotator)

    def holds(self, event_id: str) -> bool:
        """Whether an event stands, that is no retraction of it stands."""
        if event_id not in self._retracted_by:
            return True
        # Not by calling itself: a file may have a thousand retractions, each of the one before.
        chain, reached = [event_id], {event_id}
        for one in chain:
            others = [other for other in self._retracted_by.get(one, ()) if other not in reached]
            chain += others
            reached.update(others)
        standing: dict[str, bool] = {}
        for one in reversed(chain):
            standing[one] = not any(standing.get(other) for other in self._retracted_by.get(one, ()))
        return standing[event_id]

    def retractions(self, event_id: str) -> list[str]:
        """The ids of the retractions of an event that stand."""
        return [other for other in self._retracted_by.get(event_id, ()) if self.holds(other)]

    def latest(self, topic_id: str, document_id: str) -> datetime | None:
        """The time of the latest event on a document.

        What is said in sight of it gets a later time, for the clocks of two machines differ.
        """
        of_all = (
            self._of[name, topic_id, document_id][-1]
            for name in self._annotators.get((topic_id, document_id), ())
        )
        return max((event.order[0] for event in of_all), default=None)

    def opinion(self, annotator: str, topic_id: str, document_id: str) -> Opinion | None:
        """What an annotator says of a document; decisions between annotators are no opinions."""
        said, note = None, ""
        for event in self._of.get((annotator, topic_id, document_id), ()):
            if event.action is Action.adjudicate or not self.holds(event.id):
                continue
            if event.action is Action.note:
                note = event.text
            else:
                said = event
        if said is None:
            return None
        return Opinion(annotator, said.kind, said.action, said.grade, said, note or said.text)

    def words(self, annotator: str, topic_id: str, document_id: str) -> str:
        """An annotator's last words on a document: a note, else the reason of what they say of it."""
        opinion = self.opinion(annotator, topic_id, document_id)
        if opinion is not None:
            return opinion.note
        notes = [
            event.text
            for event in self._of.get((annotator, topic_id, document_id), ())
            if event.action is Action.note and self.holds(event.id)
        ]
        return notes[-1] if notes else ""

    def decision(self, topic_id: str, document_id: str, among: Collection[str] | None = None) -> Event | None:
        """The last standing decision between annotators, of those that the annotators `among` have made."""
        decisions = [
            event
            for annotator in self._annotators.get((topic_id, document_id), ())
            if among is None or annotator in among
            for event in self._of[annotator, topic_id, document_id]
            if event.action is Action.adjudicate and self.holds(event.id)
        ]
        return max(decisions, key=_order, default=None)

    def opinions(self, topic_id: str, document_id: str) -> list[Opinion]:
        """What every annotator says of a document, in the order in which they first said something."""
        found = (
            self.opinion(annotator, topic_id, document_id)
            for annotator in self._annotators.get((topic_id, document_id), ())
        )
        return [opinion for opinion in found if opinion is not None]

    def judged_documents(self) -> list[Key]:
        """Every topic and document that somebody said something of."""
        return list(self._annotators)

    def standing(self, annotator: str, topic_id: str, document_id: str) -> list[Event]:
        """The events that say what an annotator says of a document now.

        The one that holds the opinion or, where there is none, the last note; and the annotator's own decision.
        """
        own = [
            event for event in self._of.get((annotator, topic_id, document_id), ()) if self.holds(event.id)
        ]
        opinions = [event for event in own if event.action in (Action.grade, Action.skip, Action.cant_tell)]
        notes = [event for event in own if event.action is Action.note]
        decisions = [event for event in own if event.action is Action.adjudicate]
        return [*(opinions or notes)[-1:], *decisions[-1:]]

    def said_by(self, annotator: str, topic_id: str, document_id: str) -> Sequence[Event]:
        """Everything that an annotator ever said of a document, in its order, also what was taken back."""
        return self._of.get((annotator, topic_id, document_id), ())

    def annotators_of(self, topic_id: str, document_id: str) -> list[str]:
        """Everybody who ever said something of a document."""
        return list(self._annotators.get((topic_id, document_id), ()))

    def annotators(self) -> list[str]:
        return list(dict.fromkeys(name for names in self._annotators.values() for name in names))


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
