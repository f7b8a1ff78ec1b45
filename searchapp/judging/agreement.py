"""Progress and agreement of annotators.

    J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20, 1960.
    J. Cohen, Weighted kappa, Psychological Bulletin 70(4), 1968.
    K. Krippendorff, Content Analysis: An Introduction to Its Methodology, 3rd edition 2013, chapter 12.

Coefficients are 1 for perfect agreement, 0 for agreement by chance, and NaN if all grades are equal or no document has
two.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from searchapp.judging.events import Action, Event, Kind
from searchapp.judging.judgments import seconds_each
from searchapp.judging.view import JudgmentView, Key, is_standing
from searchapp.lucene.dataclass import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Unit = TypeVar("Unit", bound=Hashable)


class Weights(StrEnum):
    """The weight of a disagreement by d grades: 1, d, or d squared."""

    none = "none"
    linear = "linear"
    quadratic = "quadratic"


class Level(StrEnum):
    """The scale of grades: names, ranks, or numbers with equal steps."""

    nominal = "nominal"
    ordinal = "ordinal"
    interval = "interval"


# The weight of two annotators' grades of a document: not negative, 0 for equal grades.
Weight = Callable[[int, int], float]

_WEIGHTS: Mapping[Weights, Weight] = {
    Weights.none: lambda first, second: float(first != second),
    Weights.linear: lambda first, second: float(abs(first - second)),
    Weights.quadratic: lambda first, second: float((first - second) ** 2),
}


# The number of documents by the grades of two annotators.
GradeTable = Mapping[tuple[int, int], int]


def cohen_kappa(
    pairs: Iterable[tuple[int, int]] | GradeTable, weights: Weights | Weight = Weights.none
) -> float:
    """Return Cohen's kappa, given the two grades of each document that both annotators graded, or a table of them.

    1 - sum(w o) / sum(w e): o the observed and e the expected share of each pair of grades, w its weight.
    """
    table = Counter(pairs)
    if not table:
        return math.nan
    weight = _WEIGHTS[weights] if isinstance(weights, Weights) else weights
    total = table.total()
    first, second = Counter[int](), Counter[int]()
    for (one, other), count in table.items():
        first[one] += count
        second[other] += count
    observed = math.fsum(weight(*pair) * count for pair, count in table.items()) / total
    expected = math.fsum(weight(a, b) * first[a] * second[b] for a in first for b in second) / total**2
    return 1 - observed / expected if expected else math.nan


def share_of_equal(pairs: Collection[tuple[int, int]]) -> float:
    """Return the share of pairs of equal grades; NaN without pairs."""
    return sum(first == second for first, second in pairs) / len(pairs) if pairs else math.nan


def bias(pairs: Collection[tuple[int, int]]) -> float:
    """Return the mean of the second minus the first grade, above 0 for a lenient second one; NaN without pairs."""
    return sum(second - first for first, second in pairs) / len(pairs) if pairs else math.nan


def confusion(pairs: Iterable[tuple[int, int]]) -> dict[int, dict[int, int]]:
    """Return the number of pairs by their first and second grade, ascending."""
    rows: dict[int, dict[int, int]] = {}
    for first, second in sorted(pairs):
        row = rows.setdefault(first, {})
        row[second] = row.get(second, 0) + 1
    return rows


RESAMPLES = 2_000
LEVEL = 0.95


def percentile_interval(
    units: int,
    statistic: Callable[[NDArray[np.int64]], float],
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> tuple[float, float]:
    """Return the expanded percentile bootstrap interval of a statistic; NaN with fewer than two units.

    Percentiles at (1 ± level) / 2 are too near to each other with few units: as for a mean, the interval would have
    normal quantiles and the standard deviation with the divisor n. The percentiles are moved outwards to those with
    t quantiles and n − 1. Resamples in which the statistic is NaN are left out.

    T. Hesterberg, What Teachers Should Know About the Bootstrap, The American Statistician 69, 2015.

    Args:
        units: the number of units that are drawn with replacement, documents or topics
        statistic: returns the value of a resample, given how often it has each unit
        resamples: the number of resamples
        seed: determines them
        level: the confidence of the interval
    """
    import numpy as np
    from scipy.special import ndtr, stdtrit

    if units < 2:
        return math.nan, math.nan
    tail = float(ndtr(math.sqrt(units / (units - 1)) * stdtrit(units - 1, (1 - level) / 2)))
    random = np.random.default_rng(seed)
    draws = (random.integers(units, size=units) for _ in range(resamples))
    values = [statistic(np.bincount(draw, minlength=units)) for draw in draws]
    defined = [value for value in values if not math.isnan(value)]
    if not defined:
        return math.nan, math.nan
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(low), float(high)


def agreement_interval(
    tables: Sequence[GradeTable],
    coefficient: Callable[[GradeTable], float],
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> tuple[float, float]:
    """Return the interval of a coefficient of the sum of tables, which are the units of the bootstrap."""
    import numpy as np

    cells = sorted({pair for table in tables for pair in table})
    counts = np.array([[table.get(pair, 0) for pair in cells] for table in tables], dtype=np.int64)

    def of_resample(multiplicities: NDArray[np.int64]) -> float:
        drawn = (multiplicities @ counts).tolist()
        return coefficient({pair: count for pair, count in zip(cells, drawn, strict=True) if count})

    return percentile_interval(len(tables), of_resample, resamples, seed, level)


def kappa_interval(
    pairs: Sequence[tuple[int, int]],
    weights: Weights | Weight = Weights.none,
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> tuple[float, float]:
    """Return the bootstrap interval of Cohen's kappa over documents, see `percentile_interval`."""
    tables = [{pair: 1} for pair in sorted(pairs)]
    return agreement_interval(tables, lambda table: cohen_kappa(table, weights), resamples, seed, level)


def krippendorff_alpha(
    units: Iterable[Sequence[int]] | Mapping[tuple[int, ...], int], level: Level = Level.ordinal
) -> float:
    """Return Krippendorff's alpha, given the grades of each document, or the number of documents by their grades.

    1 - Do / De: observed disagreement within documents over expected disagreement. Single grades do not count.
    """
    documents = units if isinstance(units, Mapping) else Counter(map(tuple, units))
    paired = [(Counter(grades), number) for grades, number in documents.items() if len(grades) > 1]
    totals: Counter[int] = Counter()
    for counts, number in paired:
        for grade, count in counts.items():
            totals[grade] += count * number
    values = sorted(totals)
    n = totals.total()
    if n < 2:
        return math.nan
    distance = _distances(values, totals, level)
    within = math.fsum(
        number * counts[low] * counts[high] * distance[low, high] / (counts.total() - 1)
        for counts, number in paired
        for low, high in combinations(sorted(counts), 2)
    )
    expected = math.fsum(
        totals[low] * totals[high] * distance[low, high] for low, high in combinations(values, 2)
    )
    return 1 - (n - 1) * within / expected if expected else math.nan


def _distances(
    values: Sequence[int], totals: Mapping[int, int], level: Level
) -> dict[tuple[int, int], float]:
    """Return the squared difference of each two grades, the lower one first."""
    pairs = list(combinations(values, 2))
    if level is Level.nominal:
        return dict.fromkeys(pairs, 1.0)
    if level is Level.interval:
        return {(low, high): float((high - low) ** 2) for low, high in pairs}
    distances = {}
    for low, high in pairs:
        between = sum(totals[value] for value in values if low <= value <= high)
        distances[low, high] = (between - (totals[low] + totals[high]) / 2) ** 2
    return distances


def shared_grades(grades: Mapping[str, Mapping[Unit, int]]) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """Return for each two annotators the grades of the units that both graded; `grades` by annotator and unit."""
    return {
        (first, second): [
            (grade, grades[second][unit]) for unit, grade in grades[first].items() if unit in grades[second]
        ]
        for first, second in combinations(sorted(grades), 2)
    }


@dataclass(frozen=True, slots=True)
class AnnotatorProgress:
    """An annotator's work on a task; counts are of documents."""

    annotator: str
    kind: Kind
    topics: int
    graded: int
    cant_tell: int
    skipped: int
    # The median time from one judgment to the next, see `seconds_each`.
    seconds: float | None
    # The time of the first event, like `last`.
    first: str
    last: str
    # Number of documents by grade.
    grades: Mapping[int, int]


def progress(view: JudgmentView) -> list[AnnotatorProgress]:
    """Return the work of each annotator, by the time of the first event."""
    rows = []
    for annotator, work in sorted(view.work.items(), key=lambda item: item[1].first_time):
        judgments = [view.judgments(annotator, topic_id) for topic_id in view.topics_of(annotator)]
        actions = Counter(judgment.action for of_topic in judgments for judgment in of_topic.values())
        grades = Counter(
            judgment.grade
            for of_topic in judgments
            for judgment in of_topic.values()
            if judgment.grade is not None
        )
        rows.append(
            AnnotatorProgress(
                annotator,
                Kind(work.kind),
                topics=sum(map(bool, judgments)),
                graded=actions[Action.grade],
                cant_tell=actions[Action.cant_tell],
                skipped=actions[Action.skip],
                seconds=seconds_each(view.judging_times(annotator)),
                first=work.first,
                last=work.last,
                grades=dict(sorted(grades.items())),
            )
        )
    return rows


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Cohen's kappa of two annotators with each of `Weights`, over the documents that both graded."""

    annotators: tuple[str, str]
    documents: int
    kappa: float
    linear: float
    quadratic: float


@dataclass(frozen=True, slots=True)
class SightCounts:
    """How many grades were given with others' judgments in view, and for how many this is unknown."""

    grades: int
    saw_others: int
    unknown: int

    @classmethod
    def of(cls, counts: Counter[bool | None]) -> SightCounts:
        return cls(counts.total(), counts[True], counts[None])


@dataclass(frozen=True, slots=True)
class GuidelinesUse:
    """The grades that were given under one version of the guidelines."""

    # The digest of the guidelines; None if no guidelines are recorded.
    digest: str | None
    grades: int
    annotators: tuple[str, ...]
    # The time of the first grade, and of the last one.
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of all annotators, of each two, and on each topic, over the documents with at least two grades."""

    annotators: tuple[str, ...]
    documents: int
    # Krippendorff's, ordinal.
    alpha: float
    pairs: tuple[PairAgreement, ...]
    # The number of documents and alpha of each topic.
    topics: Mapping[str, tuple[int, float]]
    # The documents with different grades, by the difference of the extremes, the largest first.
    disputed: tuple[tuple[Key, Mapping[str, int]], ...]
    # The decisions on these documents, by any adjudicator.
    decisions: Mapping[Key, Event]
    saw_others: SightCounts
    # By annotator.
    saw_others_by: Mapping[str, SightCounts]
    # All grades by the version of the guidelines, the earliest first.
    guidelines: tuple[GuidelinesUse, ...]

    @property
    def guidelines_changed(self) -> bool:
        return sum(use.digest is not None for use in self.guidelines) > 1

    @property
    def warnings(self) -> list[str]:
        if not self.guidelines_changed:
            return []
        return [
            "the guidelines changed during the study: grades under different versions may mean different things; "
            "compare annotators on documents that they judged under the same one"
        ]


def agreement(
    view: JudgmentView,
    annotators: Collection[str] | None = None,
    guidelines: Mapping[str, str] | None = None,
) -> Agreement:
    """Return the agreement of these annotators, or of all, models included.

    `guidelines` has the digests of the guidelines by the ids of events.
    """
    by_guidelines: defaultdict[str | None, list[Event]] = defaultdict(list)
    by_annotator: defaultdict[str, dict[Key, int]] = defaultdict(dict)
    by_topic: defaultdict[str, list[list[int]]] = defaultdict(list)
    several: dict[Key, dict[str, int]] = {}
    sight: defaultdict[str, Counter[bool | None]] = defaultdict(Counter)
    for key in view.judged_documents():
        events: dict[str, Event] = {}
        grades: dict[str, int] = {}
        for opinion in view.opinions(*key):
            if opinion.grade is not None and (annotators is None or opinion.annotator in annotators):
                events[opinion.annotator] = opinion.event
                by_guidelines[(guidelines or {}).get(opinion.event.id)].append(opinion.event)
                grades[opinion.annotator] = by_annotator[opinion.annotator][key] = opinion.grade
        if len(grades) > 1:
            several[key] = grades
            by_topic[key[0]].append(list(grades.values()))
            for annotator, event in events.items():
                sight[annotator][event.saw_others] += 1
    pairs = tuple(
        PairAgreement(both, len(pairs), *(cohen_kappa(pairs, weights) for weights in Weights))
        for both, pairs in shared_grades(by_annotator).items()
        if pairs
    )
    disputed = sorted(
        ((key, grades) for key, grades in several.items() if len(set(grades.values())) > 1),
        key=lambda item: (min(item[1].values()) - max(item[1].values()), item[0]),
    )
    return Agreement(
        tuple(sorted(by_annotator)),
        len(several),
        krippendorff_alpha([list(grades.values()) for grades in several.values()]),
        pairs,
        {topic: (len(units), krippendorff_alpha(units)) for topic, units in by_topic.items()},
        tuple(disputed),
        {key: decision for key, _ in disputed if (decision := view.decision(*key)) is not None},
        SightCounts.of(sum(sight.values(), Counter())),
        {name: SightCounts.of(sight[name]) for name in sorted(sight)},
        _guidelines_uses(by_guidelines),
    )


def _guidelines_uses(by_digest: Mapping[str | None, Sequence[Event]]) -> tuple[GuidelinesUse, ...]:
    uses = []
    for digest, events in by_digest.items():
        in_order = sorted(events, key=lambda event: event.order)
        names = tuple(sorted({event.annotator for event in events}))
        uses.append(GuidelinesUse(digest, len(events), names, in_order[0].time, in_order[-1].time))
    return tuple(sorted(uses, key=lambda use: (use.first, use.digest or "")))


def judged_in(path: Path) -> dict[str, int]:
    """Return the number of graded documents of each task in a log, per annotator and topic; does not change the file.

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
            (event,) for event in retractions if not is_standing(event, lambda id_: retractions.get(id_, ()))
        ]
        database.execute("CREATE TEMP TABLE undone (id TEXT PRIMARY KEY)")
        database.executemany("INSERT INTO undone VALUES (?)", undone)
        rows = database.execute(
            "SELECT task, count(*) FROM (SELECT DISTINCT task, annotator, topic_id, document_id FROM events "
            "WHERE action = 'grade' AND id NOT IN (SELECT id FROM undone)) GROUP BY task"
        )
        return {str(task): int(count) for task, count in rows}
