"""Progress and agreement of annotators: judgments, pace, disagreements, and coefficients of agreement beyond chance.

    J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20(1), 1960.
    J. Cohen, Weighted kappa, Psychological Bulletin 70(4), 1968.
    K. Krippendorff, Content Analysis: An Introduction to Its Methodology, 3rd edition 2013, chapter 12.

All coefficients are 1 for perfect agreement and 0 for agreement by chance. Where chance can't be computed, because
everybody gives one and the same grade or there are no two opinions on anything, they are not a number.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import TypeVar

from searchapp.judging.events import Action, Kind
from searchapp.judging.judgments import Key, View, seconds_each, standing
from searchapp.judging.snapshot import Compact

Unit = TypeVar("Unit", bound=Hashable)


class Weights(StrEnum):
    """How much a disagreement by d grades weighs: 1, d, or d squared."""

    none = "none"
    linear = "linear"
    quadratic = "quadratic"


class Level(StrEnum):
    """What grades are taken for: mere names, ranks, or numbers with equal steps."""

    nominal = "nominal"
    ordinal = "ordinal"
    interval = "interval"


Weight = Callable[[int, int], float]
"""How much it weighs that the one says this grade and the other that; not negative, 0 for the same grade."""


def cohen_kappa(pairs: Sequence[tuple[int, int]], weights: Weights | Weight = Weights.none) -> float:
    """Cohen's kappa of two annotators, given the two grades of each document that both have graded.

    1 - sum(w o) / sum(w e): o the observed and e the expected share of each pair of grades, w its weight.
    """
    if not pairs:
        return math.nan
    weight = _WEIGHTS[weights] if isinstance(weights, Weights) else weights
    first, second = Counter(one for one, _ in pairs), Counter(two for _, two in pairs)
    observed = math.fsum(weight(one, two) for one, two in pairs) / len(pairs)
    expected = math.fsum(weight(one, two) * first[one] * second[two] for one in first for two in second) / (
        len(pairs) ** 2
    )
    return 1 - observed / expected if expected else math.nan


_WEIGHTS: Mapping[Weights, Weight] = {
    Weights.none: lambda one, two: float(one != two),
    Weights.linear: lambda one, two: float(abs(one - two)),
    Weights.quadratic: lambda one, two: float((one - two) ** 2),
}


def krippendorff_alpha(units: Sequence[Sequence[int]], level: Level = Level.ordinal) -> float:
    """Krippendorff's alpha of any number of annotators, given the grades that each document got.

    1 - Do / De: the observed disagreement within documents over the one expected if grades were dealt at random. A
    document with fewer than two grades says nothing and is left out, so annotators need not grade everything.
    """
    paired = [Counter(grades) for grades in units if len(grades) > 1]
    totals: Counter[int] = Counter()
    for counts in paired:
        totals.update(counts)
    values = sorted(totals)
    n = totals.total()
    if n < 2:
        return math.nan
    distance = _distances(values, totals, level)
    within = math.fsum(
        counts[one] * counts[two] * distance[one, two] / (counts.total() - 1)
        for counts in paired
        for one, two in combinations(sorted(counts), 2)
    )
    expected = math.fsum(
        totals[one] * totals[two] * distance[one, two] for one, two in combinations(values, 2)
    )
    return 1 - (n - 1) * within / expected if expected else math.nan


def _distances(
    values: Sequence[int], totals: Mapping[int, int], level: Level
) -> dict[tuple[int, int], float]:
    """The squared difference of each two grades, the lower one first."""
    if level is Level.nominal:
        return dict.fromkeys(combinations(values, 2), 1.0)
    if level is Level.interval:
        return {(one, two): float((two - one) ** 2) for one, two in combinations(values, 2)}
    return {
        (one, two): (
            sum(totals[value] for value in values if one <= value <= two) - (totals[one] + totals[two]) / 2
        )
        ** 2
        for one, two in combinations(values, 2)
    }


def pairs_of(grades: Mapping[str, Mapping[Unit, int]]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """For each two annotators the grades of what both have graded; `grades` by annotator and document."""
    return {
        (one, two): [(grade, grades[two][unit]) for unit, grade in grades[one].items() if unit in grades[two]]
        for one, two in combinations(sorted(grades), 2)
    }


@dataclass(frozen=True, slots=True)
class AnnotatorProgress:
    """One annotator's work on a task, as it stands now.

    `seconds` is the median time from one judgment to the next, breaks left out; None without two in a row. `grades`
    counts the documents that have each grade.
    """

    annotator: str
    kind: Kind
    topics: int
    graded: int
    cant_tell: int
    skipped: int
    seconds: float | None
    first: str
    last: str
    grades: Mapping[int, int]


def progress(folded: Compact, view: View) -> list[AnnotatorProgress]:
    """The work of each annotator, in the order in which they began; `view` is that of the same events."""
    by_annotator = sorted(folded.works.items(), key=lambda one: one[1].began)
    topics: defaultdict[str, set[str]] = defaultdict(set)
    actions: defaultdict[str, Counter[Action]] = defaultdict(Counter)
    grades: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for topic_id in view.topics():
        for annotator in folded.works:
            for said in view.said(annotator, topic_id).values():
                topics[annotator].add(topic_id)
                actions[annotator][said.action] += 1
                if said.grade is not None:
                    grades[annotator][said.grade] += 1
    return [
        AnnotatorProgress(
            annotator,
            Kind(work.kind),
            topics=len(topics[annotator]),
            graded=actions[annotator][Action.grade],
            cant_tell=actions[annotator][Action.cant_tell],
            skipped=actions[annotator][Action.skip],
            seconds=seconds_each(folded.moments(annotator)),
            first=work.first,
            last=work.last,
            grades=dict(sorted(grades[annotator].items())),
        )
        for annotator, work in by_annotator
    ]


@dataclass(frozen=True, slots=True)
class Pair:
    """How two annotators agree on the documents that both have graded."""

    annotators: tuple[str, str]
    documents: int
    kappa: float
    linear: float
    quadratic: float


@dataclass(frozen=True, slots=True)
class InSight:
    """How many of some grades were given in view of others' judgments, and of how many that is not known."""

    grades: int
    in_sight: int
    unknown: int

    @classmethod
    def of(cls, counts: Counter[bool | None]) -> InSight:
        """Of grades counted by what their events say of it."""
        return cls(counts.total(), counts[True], counts[None])


@dataclass(frozen=True, slots=True)
class Agreement:
    """How annotators agree: all together, two by two, and on each topic.

    `alpha` is Krippendorff's, ordinal, over all documents with at least two grades; `topics` has it for each topic with
    the number of such documents. `disputed` are documents by how far their grades lie apart, the farthest first.
    `in_sight` says how many of the grades on documents with several were given in view of others', and `in_sight_by`
    how many of each annotator's.
    """

    annotators: tuple[str, ...]
    documents: int
    alpha: float
    pairs: tuple[Pair, ...]
    topics: Mapping[str, tuple[int, float]]
    disputed: tuple[tuple[Key, Mapping[str, int]], ...]
    in_sight: InSight
    in_sight_by: Mapping[str, InSight]


def agreement(view: View, annotators: Collection[str] | None = None) -> Agreement:
    """The agreement of these annotators, or of all; models are annotators like others here."""
    grades: defaultdict[Key, dict[str, int]] = defaultdict(dict)
    seen: defaultdict[str, Counter[bool | None]] = defaultdict(Counter)
    for key in view.judged_documents():
        opinions = [
            opinion
            for opinion in view.opinions(*key)
            if opinion.grade is not None and (annotators is None or opinion.annotator in annotators)
        ]
        for opinion in opinions:
            assert opinion.grade is not None  # or it would not be among them
            grades[key][opinion.annotator] = opinion.grade
            if len(opinions) > 1:
                seen[opinion.annotator][opinion.event.saw_others] += 1
    several = {key: given for key, given in grades.items() if len(given) > 1}
    by_annotator: defaultdict[str, dict[Key, int]] = defaultdict(dict)
    by_topic: defaultdict[str, list[list[int]]] = defaultdict(list)
    for key, given in grades.items():
        for annotator, grade in given.items():
            by_annotator[annotator][key] = grade
    for (topic_id, _), given in several.items():
        by_topic[topic_id].append(list(given.values()))
    pairs = tuple(
        Pair(both, len(pairs), *(cohen_kappa(pairs, weights) for weights in Weights))
        for both, pairs in pairs_of(by_annotator).items()
        if pairs
    )
    disputed = sorted(
        ((key, given) for key, given in several.items() if len(set(given.values())) > 1),
        key=lambda one: (min(one[1].values()) - max(one[1].values()), one[0]),
    )
    return Agreement(
        tuple(sorted(by_annotator)),
        len(several),
        krippendorff_alpha([list(given.values()) for given in several.values()], Level.ordinal),
        pairs,
        {topic: (len(units), krippendorff_alpha(units, Level.ordinal)) for topic, units in by_topic.items()},
        tuple(disputed),
        InSight.of(sum(seen.values(), Counter())),
        {name: InSight.of(seen[name]) for name in sorted(seen)},
    )


def judged_in(path: Path) -> dict[str, int]:
    """How many documents were graded for each task: once for each annotator and topic, without what was undone.

    The file is neither made nor written to.

    Raises:
        sqlite3.Error: it is no judgment log, or can't be read.
    """
    if not path.exists():
        return {}
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)) as database:
        retractions: dict[str, list[str]] = {}
        for own, refers in database.execute("SELECT id, refers FROM events WHERE action = 'retract'"):
            retractions.setdefault(refers, []).append(own)
        undone = [
            (event,) for event in retractions if not standing(event, lambda one: retractions.get(one, ()))
        ]
        database.execute("CREATE TEMP TABLE undone (id TEXT PRIMARY KEY)")
        database.executemany("INSERT INTO undone VALUES (?)", undone)
        rows = database.execute(
            "SELECT task, count(*) FROM (SELECT DISTINCT task, annotator, topic_id, document_id FROM events "
            "WHERE action = 'grade' AND id NOT IN (SELECT id FROM undone)) GROUP BY task"
        )
        return {str(task): int(count) for task, count in rows}
