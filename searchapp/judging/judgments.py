"""The judgments that hold now: events folded into each annotator's opinion, and opinions into one grade.

Also lists of judgments by what was said, the annotators' pace, the treatment of unjudged documents, and the scores of a
ranking by the grades given so far. A topic's scores (AP, nDCG@10 and Judged@10 of ir-measures) take time proportional
to its grades, not to its ranking, so that they follow every key.
"""

from __future__ import annotations

import itertools
import math
import statistics
from bisect import insort
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from searchapp.judging.events import GRADED, Action, Event, Kind


class Unjudged(StrEnum):
    """What a retrieved document that nobody has judged counts as.

    `nonrelevant`: as one without relevance. `condensed`: as if it had not been retrieved. `bounds`: as both extremes,
    without relevance and with the best grade, which gives two figures.
    """

    nonrelevant = "nonrelevant"
    condensed = "condensed"
    bounds = "bounds"


BREAK_SECONDS = 300.0
"""A longer time between two judgments is a break, and says nothing about pace."""
AT_ONCE_SECONDS = 0.05
"""What comes faster was given to several documents by one key."""
RECENT = 50
"""How many judgments the pace of this moment goes by."""


def seconds_each(moments: Iterable[datetime]) -> float | None:
    """The median time from one judgment to the next, in seconds; None without two in a row.

    Breaks are left out, and what was given to several documents at once counts once.
    """
    working = [gap for gap in _gaps(sorted(moments, reverse=True)) if gap <= BREAK_SECONDS]
    return statistics.median(working) if working else None


def _gaps(moments: Iterable[datetime]) -> Iterator[float]:
    """The seconds between what was not said at once, the latest moment first."""
    gaps = ((later - earlier).total_seconds() for later, earlier in itertools.pairwise(moments))
    return (gap for gap in gaps if gap > AT_ONCE_SECONDS)


def tells_pace(event: Event) -> bool:
    """Whether an event is a judgment of somebody who had the document before them."""
    return event.action in (Action.grade, Action.cant_tell) and event.rank is not None


class Pace:
    """How fast somebody judges at the moment, after what they judged at some moments before."""

    def __init__(self, moments: Iterable[datetime] = ()) -> None:
        self._moments = sorted(moments)

    def add(self, event: Event) -> None:
        """Add an event, whenever it was."""
        if tells_pace(event):
            insort(self._moments, event.order[0])

    @property
    def seconds(self) -> float | None:
        """The median time from one of the latest judgments to the next, in seconds; None without two in a row."""
        recent = itertools.islice(_gaps(reversed(self._moments)), RECENT)
        working = [gap for gap in recent if gap <= BREAK_SECONDS]
        return statistics.median(working) if working else None


def duration(seconds: float) -> str:
    """A time as people say it, in one or two units.

    >>> [duration(seconds) for seconds in (4.44, 59.9, 61, 3599, 3600, 4000, 36_000, 200_000)]
    ['4.4 s', '60 s', '1 min', '60 min', '1 h', '1 h 7 min', '10 h', '2 days']
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours} h {minutes} min" if minutes and hours < 10 else f"{hours} h"
    return f"{seconds / 86_400:.0f} days"


SCORE_CUT_OFF = 10
"""The depth of nDCG and Judged."""


@dataclass(frozen=True, slots=True)
class TopicScores:
    """Average precision, normalised discounted cumulative gain, and the share of the first documents that is graded.

    All are fractions. A grade above 0 is relevant, and what has no grade is not, so the first two grow more reliable
    as the third one grows.
    """

    ap: float
    ndcg: float
    judged: float


def topic_scores(ranks: Mapping[str, int], grades: Mapping[str, int]) -> TopicScores:
    """The scores of one ranking; `ranks` counts from 1, `grades` may have documents that are not in the ranking.

    AP = 1/R sum over relevant documents found of (relevant ones up to its rank / its rank)
    nDCG@10 = sum of grade / log2(rank + 1) up to rank 10, over the same sum of the best order of all grades
    """
    found = sorted((ranks[document], grade) for document, grade in grades.items() if document in ranks)
    relevant = sum(grade > 0 for grade in grades.values())
    hits = [rank for rank, grade in found if grade > 0]
    precisions = math.fsum(count / rank for count, rank in enumerate(hits, 1))
    best = sorted(grades.values(), reverse=True)[:SCORE_CUT_OFF]
    ideal = math.fsum(grade / math.log2(rank + 1) for rank, grade in enumerate(best, 1))
    gained = math.fsum(grade / math.log2(rank + 1) for rank, grade in found if rank <= SCORE_CUT_OFF)
    first = min(SCORE_CUT_OFF, len(ranks))
    return TopicScores(
        ap=precisions / relevant if relevant else 0.0,
        ndcg=gained / ideal if ideal else 0.0,
        judged=sum(rank <= SCORE_CUT_OFF for rank, _grade in found) / first if first else 0.0,
    )


def mean_topic_scores(scores: Collection[TopicScores]) -> TopicScores | None:
    """The means over topics; None when there are none."""
    if not scores:
        return None
    n = len(scores)
    return TopicScores(
        math.fsum(one.ap for one in scores) / n,
        math.fsum(one.ndcg for one in scores) / n,
        math.fsum(one.judged for one in scores) / n,
    )


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


class Base:
    """What a view's earlier events add up to, without all of them having been read; by itself nothing."""

    def retractions(self, event_id: str) -> Sequence[str]:  # noqa: ARG002
        """The ids of the retractions of an event, whether they stand or not."""
        return ()

    def topic_ids(self) -> Sequence[str]:
        """The topics, in the order of the time when something was first said of them."""
        return ()

    def events(self, topic_id: str) -> Sequence[Event]:  # noqa: ARG002
        """The events on a topic, in their order, but for retractions."""
        return ()

    def said(self, annotator: str, topic_id: str) -> Mapping[str, Judgment] | None:  # noqa: ARG002
        """What an annotator says of each document of a topic; None where only the events tell."""
        return {}

    def topics_of(self, annotator: str) -> Sequence[str]:  # noqa: ARG002
        """The topics that an annotator ever said something of."""
        return ()

    def annotators(self) -> Sequence[str]:
        """Everybody who said something of a document."""
        return ()

    def topic_of(self, event_id: str) -> str | None:  # noqa: ARG002
        """The topic of an event or, if it is a retraction, of what that takes back in the end; None: not known."""
        return None


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


class View:
    """The state that a log's events add up to, in whatever order they come: judgments of a team that shares a cluster
    reach every member in another one, and must add up to the same everywhere. What was said last is what has the
    latest time (see `latest`).

    An event that was retracted counts as if it had never been, and the one before it holds again; retracting a
    retraction brings the event back.

    With a `base`, what came before is read from there topic by topic, when it is looked at.
    """

    def __init__(self, events: Iterable[Event] = (), base: Base | None = None) -> None:
        self._base = base or Base()
        self._most_kept = None if base is None else KEPT_TOPICS
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
        self._note_change(event)
        if event.action is not Action.retract and event.topic_id in self._topics:
            self._topics[event.topic_id].add(event)

    def _note_change(self, event: Event) -> None:
        topic: str | None = event.topic_id
        if event.action is not Action.retract:
            self._later[event.topic_id].append(event)
        else:
            topic = self._later_topics.get(event.refers) or self._base.topic_of(event.refers)
        if topic is None or event.id in self._retracted_by:
            self._changed = None  # of what is not there yet, or what came after its retraction
        else:
            self._later_topics[event.id] = topic
            if self._changed is not None:
                self._changed.add(topic)

    def _topic(self, topic_id: str) -> _TopicEvents:
        """What was said of a topic; it is read if it is not in memory."""
        found = self._topics.get(topic_id)
        if found is None:
            found = _TopicEvents((*self._base.events(topic_id), *self._later.get(topic_id, ())))
            self._topics[topic_id] = found
            if self._most_kept is not None and len(self._topics) > self._most_kept:
                self._topics.popitem(last=False)
        else:
            self._topics.move_to_end(topic_id)
        return found

    def _events(self, annotator: str, topic_id: str, document_id: str) -> Sequence[Event]:
        return self._topic(topic_id).of.get((annotator, document_id), ())

    def _retractions(self, event_id: str) -> Sequence[str]:
        return (*self._base.retractions(event_id), *self._retracted_by.get(event_id, ()))

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
        if self._changed is not None and topic_id not in self._changed:
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
        return list(dict.fromkeys((*self._base.topic_ids(), *self._later)))

    def topics_of(self, annotator: str) -> list[str]:
        """The topics that an annotator ever said something of."""
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


@dataclass(frozen=True, slots=True)
class ListedJudgment:
    """What somebody says of a document now.

    `action` is grade, skip, cant_tell or adjudicate, or note where words are all there is; `words` are the note or
    the reason. `time`, `run`, `rank` and `saw_others` are those of the event that says it.
    """

    annotator: str
    kind: Kind
    topic_id: str
    document_id: str
    action: Action
    grade: int | None
    words: str
    time: str
    run: str
    rank: int | None
    saw_others: bool | None


@dataclass(frozen=True, slots=True)
class Filter:
    """Which of it is listed; None, and nothing, leave out nothing."""

    annotators: Collection[str] | None = None
    topics: Collection[str] | None = None
    actions: Collection[Action] | None = None
    grades: Collection[int] | None = None
    noted: bool = False
    """Only what has words."""

    def takes(self, said: ListedJudgment) -> bool:
        """Whether something is listed."""
        return (
            (self.annotators is None or said.annotator in self.annotators)
            and (self.topics is None or said.topic_id in self.topics)
            and (self.actions is None or said.action in self.actions)
            and (self.grades is None or said.grade in self.grades)
            and (not self.noted or bool(said.words))
        )


def listed(view: View, wanted: Filter | None = None) -> list[ListedJudgment]:
    """What holds now of everything that was said, in the order of the time when it was said."""
    wanted = wanted or Filter()
    found = [(event.order, said) for event, said in _everything(view, wanted) if wanted.takes(said)]
    # What was said at once of several documents comes in the order of their ranks.
    found.sort(key=lambda one: (one[0][0], one[1].rank or 0, one[0][1]))
    return [said for _, said in found]


def _everything(view: View, wanted: Filter) -> Iterator[tuple[Event, ListedJudgment]]:
    """Whatever was said; topics and annotators that can't be wanted are passed over."""
    topics: Iterable[str] = view.topics()
    if wanted.annotators is not None:
        topics = dict.fromkeys(topic for name in wanted.annotators for topic in view.topics_of(name))
    if wanted.topics is not None:
        topics = [topic for topic in topics if topic in wanted.topics]
    for topic_id, document_id in view.judged_documents(topics):
        for annotator in view.annotators_of(topic_id, document_id):
            if wanted.annotators is not None and annotator not in wanted.annotators:
                continue
            words = view.words(annotator, topic_id, document_id)
            for event in view.standing(annotator, topic_id, document_id):
                own_words = event.text if event.action is Action.adjudicate else words
                said = ListedJudgment(
                    annotator,
                    event.kind,
                    topic_id,
                    document_id,
                    event.action,
                    event.grade,
                    own_words,
                    event.time,
                    event.run,
                    event.rank,
                    event.saw_others,
                )
                yield event, said
