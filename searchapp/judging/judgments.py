"""Grades that hold for a task, lists of judgments, pace, and scores of a ranking."""

from __future__ import annotations

import itertools
import math
import statistics
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from searchapp.judging.events import Action, Event, Kind, is_timed
from searchapp.lucene.dataclass import dataclass

if TYPE_CHECKING:
    from searchapp.judging.view import JudgmentView, Key, Opinion


class Unjudged(StrEnum):
    """How a retrieved document without a judgment counts."""

    # Not relevant.
    nonrelevant = "nonrelevant"
    # Not retrieved.
    condensed = "condensed"
    # Both not relevant and of the best grade, which gives two figures.
    bounds = "bounds"


BREAK_SECONDS = 300.0  # a longer time between two judgments is a break, which does not count for the pace
AT_ONCE_SECONDS = 0.05  # a shorter time is between documents that one key graded
RECENT = 50  # number of judgments from which the present pace is computed


def seconds_each(times: Iterable[datetime]) -> float | None:
    """Return the median time between judgments in seconds, without breaks; None without two in a row."""
    return _median_gap(sorted(times, reverse=True))


def _median_gap(latest_first: Iterable[datetime], limit: int | None = None) -> float | None:
    gaps = ((later - earlier).total_seconds() for later, earlier in itertools.pairwise(latest_first))
    recent = itertools.islice((gap for gap in gaps if gap > AT_ONCE_SECONDS), limit)
    working = [gap for gap in recent if gap <= BREAK_SECONDS]
    return statistics.median(working) if working else None


class Pace:
    """The present speed of an annotator."""

    def __init__(self, times: Iterable[datetime] = ()) -> None:
        self._times = sorted(times)

    def add(self, event: Event) -> None:
        if is_timed(event):
            insort(self._times, event.order[0])

    @property
    def seconds(self) -> float | None:
        """The median time between the latest judgments, in seconds; None without two in a row."""
        return _median_gap(reversed(self._times), RECENT)


# A shorter time shows that a document was not read.
# J. Huang et al., Detecting and Deterring Insufficient Effort Responding to Surveys, Journal of Business and Psychology
# 27, 2012: an item that is read takes at least 2 seconds.
LEAST_SECONDS = 2.0
# R. Carver, Reading Rate: A Review of Research and Theory, 1990: the rate of skimming.
WORDS_PER_MINUTE = 450.0


@dataclass(frozen=True, slots=True)
class ReadingTime:
    """The least time in which a person can have read a document."""

    least_seconds: float = LEAST_SECONDS
    words_per_minute: float = WORDS_PER_MINUTE
    # The number of words of each document; for others `least_seconds` alone counts.
    words: Mapping[str, int] = field(default_factory=dict)

    def seconds(self, document_id: str) -> float:
        return max(self.least_seconds, 60 * self.words.get(document_id, 0) / self.words_per_minute)


def duration(seconds: float) -> str:
    """Return a time in one or two units, such as "1 h 7 min"."""
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


SCORE_CUT_OFF = 10  # the depth of nDCG and Judged


@dataclass(frozen=True, slots=True)
class TopicScores:
    """Scores of a topic's ranking as fractions; a grade above 0 is relevant, a document without a grade is not."""

    # Average precision.
    ap: float
    # Normalised discounted cumulative gain at `SCORE_CUT_OFF`.
    ndcg: float
    # The share of the first `SCORE_CUT_OFF` documents that has a grade: how reliable the other two are.
    judged: float


def topic_scores(ranks: Mapping[str, int], grades: Mapping[str, int]) -> TopicScores:
    """Return the scores of one ranking; `ranks` count from 1, `grades` may include documents that were not ranked.

    AP = 1/R sum over retrieved relevant documents of (number of relevant ones up to its rank / its rank)
    nDCG@10 = sum of grade / log2(rank + 1) up to rank 10, over the same sum of the best order of all grades
    """
    # Takes time in the number of grades, not of documents: scores are updated after every key.
    retrieved = sorted((ranks[document], grade) for document, grade in grades.items() if document in ranks)
    relevant = sum(grade > 0 for grade in grades.values())
    hits = [rank for rank, grade in retrieved if grade > 0]
    precisions = math.fsum(count / rank for count, rank in enumerate(hits, 1))
    best = sorted(grades.values(), reverse=True)[:SCORE_CUT_OFF]
    ideal = math.fsum(grade / math.log2(rank + 1) for rank, grade in enumerate(best, 1))
    gained = math.fsum(grade / math.log2(rank + 1) for rank, grade in retrieved if rank <= SCORE_CUT_OFF)
    first = min(SCORE_CUT_OFF, len(ranks))
    return TopicScores(
        ap=precisions / relevant if relevant else 0.0,
        ndcg=gained / ideal if ideal else 0.0,
        judged=sum(rank <= SCORE_CUT_OFF for rank, _grade in retrieved) / first if first else 0.0,
    )


def mean_topic_scores(scores: Collection[TopicScores]) -> TopicScores | None:
    """Return the means over topics; None without topics."""
    if not scores:
        return None
    n = len(scores)
    return TopicScores(
        math.fsum(score.ap for score in scores) / n,
        math.fsum(score.ndcg for score in scores) / n,
        math.fsum(score.judged for score in scores) / n,
    )


class Rule(StrEnum):
    """How grades of several annotators become one grade, unless they are adjudicated."""

    # The grade that most annotators give; the median, if several grades are equally frequent.
    majority = "majority"
    # The median, the lower one of two middle grades.
    median = "median"
    # Only adjudicated and unanimous grades count.
    unanimous = "unanimous"


@dataclass(frozen=True, slots=True)
class Aggregation:
    """How the opinions on a document become one grade; an adjudication overrides them."""

    rule: Rule = Rule.majority
    # Whose opinions and decisions count; None means all people. Models count only if named.
    annotators: Collection[str] | None = None

    def counts(self, opinion: Opinion) -> bool:
        if self.annotators is not None:
            return opinion.annotator in self.annotators
        return opinion.kind is Kind.person

    def grades(self, view: JudgmentView, key: Key) -> dict[str, int]:
        return {
            opinion.annotator: opinion.grade
            for opinion in view.opinions(*key)
            if opinion.grade is not None and self.counts(opinion)
        }


@dataclass(frozen=True, slots=True)
class AggregatedGrades:
    """The grades that hold, by topic and document, and the disputed documents without a decision."""

    grades: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    disputed: tuple[Key, ...] = ()


def aggregate(view: JudgmentView, aggregation: Aggregation | None = None) -> AggregatedGrades:
    """Return one grade for every graded document."""
    aggregation = aggregation or Aggregation()
    grades: defaultdict[str, dict[str, int]] = defaultdict(dict)
    disputed: list[Key] = []
    for topic_id, document_id in view.judged_documents():
        given = aggregation.grades(view, (topic_id, document_id)).values()
        decision = view.decision(topic_id, document_id, aggregation.annotators)
        if decision is None and len(set(given)) > 1:
            disputed.append((topic_id, document_id))
        grade = decision.grade if decision is not None else combine(given, aggregation.rule)
        if grade is not None:
            grades[topic_id][document_id] = grade
    return AggregatedGrades(dict(grades), tuple(disputed))


def combine(grades: Collection[int], rule: Rule) -> int | None:
    """Return one grade of several; None without grades, or if the rule leaves it open."""
    if not grades:
        return None
    if len(set(grades)) == 1:
        return next(iter(grades))
    if rule is Rule.unanimous:
        return None
    if rule is Rule.majority:
        (first, most), (_, next_most) = Counter(grades).most_common(2)
        if most > next_most:
            return first
    return statistics.median_low(grades)


@dataclass(frozen=True, slots=True)
class ListedJudgment:
    """A verdict, a decision or, without these, a note that holds for a document."""

    annotator: str
    kind: Kind
    topic_id: str
    document_id: str
    action: Action
    grade: int | None
    # The note or the reason.
    words: str
    # Of the event that makes the statement, like the next ones.
    time: str
    run: str
    rank: int | None
    saw_others: bool | None


@dataclass(frozen=True, slots=True)
class JudgmentFilter:
    """Which judgments are listed; None means all."""

    annotators: Collection[str] | None = None
    topics: Collection[str] | None = None
    actions: Collection[Action] | None = None
    grades: Collection[int] | None = None
    # Only judgments with words.
    with_notes: bool = False

    def accepts(self, judgment: ListedJudgment) -> bool:
        return (
            (self.annotators is None or judgment.annotator in self.annotators)
            and (self.topics is None or judgment.topic_id in self.topics)
            and (self.actions is None or judgment.action in self.actions)
            and (self.grades is None or judgment.grade in self.grades)
            and (not self.with_notes or bool(judgment.words))
        )


def list_judgments(view: JudgmentView, wanted: JudgmentFilter | None = None) -> list[ListedJudgment]:
    """Return the accepted judgments that hold, by time."""
    wanted = wanted or JudgmentFilter()
    judgments = [pair for pair in _all_judgments(view, wanted) if wanted.accepts(pair[1])]
    # Documents that one key graded come in the order of their ranks.
    judgments.sort(key=lambda pair: (pair[0].order[0], pair[1].rank or 0, pair[0].id))
    return [judgment for _, judgment in judgments]


def _all_judgments(view: JudgmentView, wanted: JudgmentFilter) -> Iterator[tuple[Event, ListedJudgment]]:
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
                yield (
                    event,
                    ListedJudgment(
                        annotator,
                        event.kind,
                        topic_id,
                        document_id,
                        event.action,
                        event.grade,
                        event.text if event.action is Action.adjudicate else words,
                        event.time,
                        event.run,
                        event.rank,
                        event.saw_others,
                    ),
                )
