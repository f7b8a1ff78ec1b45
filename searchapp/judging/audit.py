"""How the judgments of a task were made: agreement over time, pace, and revised grades."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypedDict

from searchapp.judging.agreement import bias, confusion, krippendorff_alpha, share_of_equal
from searchapp.judging.calibration import Concordance
from searchapp.judging.events import Action, Event, Kind, is_timed
from searchapp.judging.judgments import (
    AT_ONCE_SECONDS,
    BREAK_SECONDS,
    Aggregation,
    ReadingTime,
    Rule,
    combine,
    seconds_each,
)
from searchapp.judging.view import JudgmentView, Key
from searchapp.lucene.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class JudgingPace:
    """How fast an annotator judged; counts are of documents, by their first judgment."""

    # The median time from one judgment to the next, see `seconds_each`.
    seconds: float | None
    # The documents whose time is known: it follows another judgment without a break.
    timed: int
    # Those of them that took less than their `ReadingTime`.
    too_fast: int
    # The documents that one key graded together with others.
    at_once: int


@dataclass(frozen=True, slots=True)
class Revisions:
    """The grades that an annotator replaced by another grade; undone grades do not count."""

    documents: int
    # Revisions after the annotator could see others' judgments.
    saw_others: int
    # Number of revisions by earlier and later grade.
    grades: Mapping[int, Mapping[int, int]]


@dataclass(frozen=True, slots=True)
class AnnotatorAudit:
    """The work of an annotator, compared with the others'."""

    annotator: str
    kind: Kind
    graded: int
    # With the decision of another annotator on the document, otherwise the majority of the others' grades.
    others: Concordance
    # The mean of the own minus the others' grade: above 0 for a lenient annotator.
    bias: float
    # The share of equal grades in the earlier and in the later half of these documents, NaN with fewer than two.
    earlier: float
    later: float
    revisions: Revisions
    # None for a model, which does not read.
    pace: JudgingPace | None


@dataclass(frozen=True, slots=True)
class AgreementWindow:
    """Documents with several grades, whose last grades follow each other."""

    # The time of the first and of the last of these grades.
    first: str
    last: str
    documents: int
    # The share of documents whose grades are equal.
    share: float
    # Krippendorff's, ordinal.
    alpha: float


@dataclass(frozen=True, slots=True)
class JudgingAudit:
    """How the judgments of a task were made."""

    # People first.
    annotators: tuple[AnnotatorAudit, ...]
    # The agreement of the people, or of the named annotators, by time.
    windows: tuple[AgreementWindow, ...]


def audit(
    view: JudgmentView,
    annotators: Collection[str] | None,
    reading: ReadingTime,
    window: int,
) -> JudgingAudit:
    """Return how judgments were made.

    Args:
        view: the judgments of a task
        annotators: whose judgments count. None means those of people; models are then audited, too, against people
        reading: the time below which a judgment is too fast
        window: number of documents of each window of the agreement over time
    """
    aggregation = Aggregation(Rule.majority, annotators)
    audited = [name for name in view.annotators() if annotators is None or name in annotators]
    events: defaultdict[str, list[Event]] = defaultdict(list)
    compared: defaultdict[str, list[tuple[Event, int]]] = defaultdict(list)
    graded: Counter[str] = Counter()
    several: list[tuple[Event, list[int]]] = []
    for key in view.judged_documents():
        opinions = [opinion for opinion in view.opinions(*key) if opinion.grade is not None]
        counting = [opinion for opinion in opinions if aggregation.counts(opinion)]
        if len(counting) > 1:
            latest = max((opinion.event for opinion in counting), key=lambda event: event.order)
            several.append((latest, [opinion.grade or 0 for opinion in counting]))
        decision = view.decision(*key, annotators)
        for opinion in opinions:
            others = [other.grade or 0 for other in counting if other.annotator != opinion.annotator]
            if decision is not None and decision.annotator != opinion.annotator:
                others = [decision.grade or 0]
            expected = combine(others, Rule.majority)
            if expected is not None:
                compared[opinion.annotator].append((opinion.event, expected))
            graded[opinion.annotator] += 1
        for name in view.annotators_of(*key):
            events[name] += view.events_on(name, *key)
    rows = []
    for name in audited:
        kind = Kind(view.work[name].kind)
        grades = [event for event in events[name] if event.action is Action.grade and view.holds(event.id)]
        rows.append(
            AnnotatorAudit(
                name,
                kind,
                graded[name],
                **_comparison(compared[name]),
                revisions=_revisions(grades),
                pace=_pace(events[name], reading) if kind is Kind.person else None,
            )
        )
    return JudgingAudit(
        tuple(sorted(rows, key=lambda row: (row.kind is Kind.model, row.annotator))),
        tuple(_windows(several, window)),
    )


class _Comparison(TypedDict):
    others: Concordance
    bias: float
    earlier: float
    later: float


def _comparison(compared: Sequence[tuple[Event, int]]) -> _Comparison:
    in_order = sorted(compared, key=lambda item: item[0].order)
    pairs = [(event.grade or 0, other) for event, other in in_order]
    half = len(pairs) // 2
    return {
        "others": Concordance.of(pairs),
        "bias": bias([(other, own) for own, other in pairs]),
        "earlier": share_of_equal(pairs[:half]),
        "later": share_of_equal(pairs[half:] if half else ()),
    }


def _pace(events: Sequence[Event], reading: ReadingTime) -> JudgingPace:
    timed = sorted(filter(is_timed, events), key=lambda event: event.order)
    known = too_fast = at_once = 0
    judged: set[Key] = set()
    for index, event in enumerate(timed):
        key = event.topic_id, event.document_id
        if index and key not in judged:
            seconds = (event.order[0] - timed[index - 1].order[0]).total_seconds()
            if seconds <= AT_ONCE_SECONDS:
                at_once += 1
            elif seconds <= BREAK_SECONDS:
                known += 1
                too_fast += seconds < reading.seconds(event.document_id)
        judged.add(key)
    return JudgingPace(seconds_each(event.order[0] for event in timed), known, too_fast, at_once)


def _revisions(grades: Sequence[Event]) -> Revisions:
    by_document: defaultdict[Key, list[Event]] = defaultdict(list)
    for event in grades:
        by_document[event.topic_id, event.document_id].append(event)
    revisions = [
        (key, before.grade, after)
        for key, events in by_document.items()
        for before, after in itertools.pairwise(sorted(events, key=lambda event: event.order))
        if before.grade != after.grade
    ]
    return Revisions(
        len({key for key, _, _ in revisions}),
        sum(after.saw_others is True for _, _, after in revisions),
        confusion((before or 0, after.grade or 0) for _, before, after in revisions),
    )


def _windows(several: Sequence[tuple[Event, list[int]]], size: int) -> Iterator[AgreementWindow]:
    in_order = sorted(several, key=lambda item: item[0].order)
    for start in range(0, len(in_order), size):
        part = in_order[start : start + size]
        units = [grades for _, grades in part]
        yield AgreementWindow(
            part[0][0].time,
            part[-1][0].time,
            len(part),
            sum(len(set(grades)) == 1 for grades in units) / len(units),
            krippendorff_alpha(units),
        )
