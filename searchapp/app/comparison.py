"""Score the runs of one split and test their differences; the result of a comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any, TypeVar

from searchapp.app.evaluate import (
    JUDGED,
    Evaluation,
    GoldSource,
    Judgments,
    Subject,
    evaluate_judged,
    evaluate_rankings,
    evaluate_run,
    gold_files,
)
from searchapp.app.topic_figures import topic_ids
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.overlap import Overlap
from searchapp.evaluation.significance import (
    PairTests,
    RandomisedTukey,
    Tukey,
    benjamini_hochberg,
    blocks,
    holm,
    mean,
    pair_tests,
    paired,
    randomised_tukey,
    tukey,
)
from searchapp.formats import frames
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Run
from searchapp.processes import map_in_processes
from searchapp.runs.directory import GivenRun, StoredRun
from searchapp.tasks.base import DataSplit, Grades, Task
from searchapp.text import choices_hint, html_table

Values = Mapping[str, float | None]  # the value of each topic, None if it has none

RunPair = tuple[int, int]  # two runs by their numbers

SMALLEST_P = 1e-4  # lower p-values are shown as less than this: randomisation tests are not more exact

RANDOMISATION = "randomisation"  # the test that marks a difference: it assumes least


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the compared runs."""

    name: str  # the part of the path that distinguishes it
    path: str
    tag: str
    system: str  # the recipe, or the tool of an imported run
    digest: str
    official: float | None  # the official figure, over the topics of the official scorer
    judged: Mapping[str, float] = field(default_factory=dict)  # Judged@k, if judgments or qrels are the gold
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Corrected:
    """A p-value, uncorrected and corrected for all pairs that are tested under the measure."""

    p: float
    holm: float
    benjamini_hochberg: float


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two means, second − first, with its tests; nan if undefined."""

    mean: float
    low: float  # lower end of the bootstrap interval
    high: float
    wins: int
    ties: int
    losses: int
    effect: float  # the effect size d_z
    corrected: Mapping[str, Corrected]  # the p-values of t-test, wilcoxon and randomisation

    @classmethod
    def of(cls, tests: PairTests, corrected: Mapping[str, Corrected] | None = None) -> Difference:
        """Return the tested difference; without `corrected` p-values it is the only one."""
        if corrected is None:
            corrected = {name: Corrected(p, p, p) for name, p in tests.p_values.items()}
        return cls(
            mean=tests.mean,
            low=tests.interval.low,
            high=tests.interval.high,
            **asdict(tests.outcomes),
            effect=tests.effect,
            corrected=dict(corrected),
        )

    @property
    def p(self) -> float:
        return self.corrected[RANDOMISATION].holm


@dataclass(frozen=True, slots=True)
class Doubt:
    """The possible influence of unjudged documents on a difference."""

    # The figures of either run with all its unjudged documents not relevant, and all as relevant as possible.
    bounds: tuple[tuple[float, float], tuple[float, float]]
    low: float  # the least possible difference within the bounds
    high: float
    # The difference if documents are relevant that only the worse run ranks, or ranks higher.
    reversed: float
    # "no" if `low` and `high` have the same sign, "yes" if `reversed` is 0 or has another sign, otherwise
    # "unknown"; "none" without a difference.
    due: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs under a measure, by their numbers; a difference is second − first."""

    first: int
    second: int
    only_first: int  # number of topics for which only the first run has a value
    only_second: int
    tests: PairTests
    corrected: Mapping[str, Corrected]  # the p-values of each test
    tukey: float | None = None  # the p-value among all runs; None with two runs
    randomised_tukey: float | None = None
    unjudged: Doubt | None = None

    @property
    def difference(self) -> Difference:
        return Difference.of(self.tests, self.corrected)


@dataclass(frozen=True, slots=True)
class Measured:
    """The runs under one measure."""

    name: str
    is_official: bool
    topics: int  # number of topics for which every run has a value
    means: tuple[float, ...]  # the mean of each run over these topics
    values: tuple[Values, ...]  # the values of each run by topic
    pairs: tuple[Pair, ...]
    tukey: Tukey | None = None
    randomised_tukey: RandomisedTukey | None = None
    complete: bool = True  # whether the means equal the figures of `evaluate`

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        return {
            "measure": self.name,
            "official": self.is_official,
            "topics": self.topics,
            "complete": self.complete,
            "means": dict(zip(names, self.means, strict=True)),
            "pairs": [asdict(pair) | _named(pair, names) for pair in self.pairs],
            "tukey": None
            if self.tukey is None
            else {"margin": self.tukey.margin, "error": self.tukey.error, "degrees": self.tukey.degrees},
            "randomised_tukey": None
            if self.randomised_tukey is None
            else {"trials": self.randomised_tukey.trials},
            "per_topic": {name: dict(values) for name, values in zip(names, self.values, strict=True)},
        }


@dataclass(frozen=True, slots=True)
class Move:
    """A relevant document of a topic, and its rank in each of two rankings, None if it is not ranked."""

    document_id: str
    grade: int
    first: int | None
    second: int | None


@dataclass(frozen=True, slots=True)
class TopicDifference:
    """A topic in two runs: its value in each, and the ranks of its relevant documents in both."""

    topic_id: str
    first: float
    second: float
    documents: tuple[Move, ...]
    depth: int  # number of documents that count for `gained`, `lost` and `moved`

    @property
    def gained(self) -> list[Move]:
        return [move for move in self.documents if not self._is_in(move.first) and self._is_in(move.second)]

    @property
    def lost(self) -> list[Move]:
        return [move for move in self.documents if self._is_in(move.first) and not self._is_in(move.second)]

    @property
    def moved(self) -> list[Move]:
        in_both = (move for move in self.documents if self._is_in(move.first) and self._is_in(move.second))
        return [move for move in in_both if move.first != move.second]

    def _is_in(self, rank: int | None) -> bool:
        return rank is not None and rank <= self.depth

    @property
    def difference(self) -> float:
        return self.second - self.first

    def to_json(self) -> dict[str, Any]:
        moves = {"gained": self.gained, "lost": self.lost, "moved": self.moved}
        return {
            "id": self.topic_id,
            "first": self.first,
            "second": self.second,
            "difference": self.difference,
            **{kind: [asdict(move) for move in of_kind] for kind, of_kind in moves.items()},
        }


@dataclass(frozen=True, slots=True)
class TopicDifferences:
    """The topics of two runs under the first measure, the greatest gain first."""

    first: int
    second: int
    topics: tuple[TopicDifference, ...]

    def ends(self, count: int) -> list[TopicDifference]:
        gains = [topic for topic in self.topics if topic.difference > 0][:count]
        losses = [topic for topic in self.topics if topic.difference < 0][-count:]
        return [*gains, *losses]


@dataclass(frozen=True, slots=True)
class Difficulty:
    """The topics that a number of runs solve, the hardest first."""

    successful_runs: int
    topics: tuple[str, ...]
    means: tuple[float, ...]  # the mean of each run over these topics


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A group of a breakdown, and each figure in each run, None if a run has none."""

    group: str
    count: int
    values: Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True, slots=True)
class ComparedBreakdown:
    """A `Breakdown` in all runs."""

    name: str
    title: str
    counted: str
    rows: tuple[ComparedRow, ...]


@dataclass(frozen=True, slots=True)
class RunOverlap:
    """The similarity of the rankings of two runs."""

    first: int
    second: int
    overlap: Overlap


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Runs of one split side by side; a single run has no pairs, and is compared with itself in `topics`."""

    task: str
    split: str | None
    runs: tuple[ComparedRun, ...]
    baseline: int | None  # the number of the baseline; None if every pair is compared
    measures: tuple[Measured, ...]  # `topics` and `difficulty` are under the first one
    against: str  # the kind of gold
    treatment: str  # how documents without gold count
    topics: tuple[TopicDifferences, ...]
    difficulty: tuple[Difficulty, ...]
    breakdowns: tuple[ComparedBreakdown, ...]
    overlaps: tuple[RunOverlap, ...]
    depth: int  # number of documents that count for gained and lost ones
    success_threshold: float  # the smallest value of a successful topic
    permutations: int
    seed: int
    differing: tuple[str, ...] = ()  # clauses on differences between runs that are compared nevertheless
    notes: tuple[str, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()  # the figures of each run

    @property
    def warnings(self) -> list[str]:
        systems: dict[str, list[str]] = {}
        for run in self.runs:
            for warning in run.warnings:
                systems.setdefault(warning, []).append(run.name)
        return [f"the runs are compared although {clause}" for clause in self.differing] + [
            warning if any(run.path in warning for run in self.runs) else f"{', '.join(names)}: {warning}"
            for warning, names in systems.items()
        ]

    def __repr__(self) -> str:
        return f"<searchapp.Comparison of {', '.join(run.name for run in self.runs)}>"

    def _repr_html_(self) -> str:
        names = [run.name for run in self.runs]
        means = (
            (name, *(f"{measured.means[number]:.4f}" for measured in self.measures))
            for number, name in enumerate(names)
        )
        pairs = (
            (
                names[pair.second],
                names[pair.first],
                measured.name,
                f"{pair.difference.mean:+.4f}",
                f"{pair.difference.low:+.4f} to {pair.difference.high:+.4f}",
                f"{pair.difference.p:.4f}",
            )
            for measured in self.measures
            for pair in measured.pairs
        )
        return html_table(("run", *(measured.name for measured in self.measures)), means) + html_table(
            ("run", "compared with", "measure", "difference", "95 % interval", "p"), pairs
        )

    def to_frame(self, rows: str = "runs", *, library: str = "pandas") -> Any:
        """Return the comparison as a data frame.

        Args:
            rows: `runs` (run, tag, system, and the mean under each measure), `topics` (measure, run, topic, value) or
                `pairs` (measure, first, second, the difference of their means, second − first, with its interval,
                outcomes and effect size, and the p-values of each test: uncorrected, Holm, Benjamini-Hochberg)
            library: `pandas` or `polars`

        Raises:
            UsageError: there are no such rows, or the library is not installed.
        """
        kinds = {"runs": self._run_rows, "topics": self._topic_rows, "pairs": self._pair_rows}
        if rows not in kinds:
            raise UsageError(f"unknown rows of a comparison {choices_hint(rows, kinds)}")
        records = list(kinds[rows]())
        return frames.make_frame(
            {name: [record[name] for record in records] for name in (records[0] if records else ())}, library
        )

    def _run_rows(self) -> Iterator[dict[str, Any]]:
        for number, run in enumerate(self.runs):
            means = {measured.name: measured.means[number] for measured in self.measures}
            yield {"run": run.name, "tag": run.tag, "system": run.system, **means}

    def _topic_rows(self) -> Iterator[dict[str, Any]]:
        for measured in self.measures:
            for run, values in zip(self.runs, measured.values, strict=True):
                for topic, value in values.items():
                    yield {"measure": measured.name, "run": run.name, "topic": topic, "value": value}

    def _pair_rows(self) -> Iterator[dict[str, Any]]:
        names = [run.name for run in self.runs]
        for measured in self.measures:
            for pair in measured.pairs:
                tested = asdict(pair.difference)
                corrected = tested.pop("corrected")
                yield {
                    "measure": measured.name,
                    **_named(pair, names),
                    "difference": tested.pop("mean"),
                    **tested,
                    **{
                        test if kind == "p" else f"{test} {kind}": value
                        for test, values in corrected.items()
                        for kind, value in values.items()
                    },
                }

    def to_json(self) -> dict[str, Any]:
        names = [run.name for run in self.runs]

        def by_run(values: Sequence[float | None]) -> dict[str, float | None]:
            return dict(zip(names, values, strict=True))

        return {
            "task": self.task,
            "split": self.split,
            "comparable": not self.differing,
            "differences": list(self.differing),
            "against": self.against,
            "unjudged": self.treatment,
            "baseline": None if self.baseline is None else names[self.baseline],
            "runs": [asdict(run) for run in self.runs],
            "permutations": self.permutations,
            "seed": self.seed,
            "measures": [measured.to_json(names) for measured in self.measures],
            "overlap": [_named(pair, names) | pair.overlap.to_json() for pair in self.overlaps],
            "topics": {
                "measure": self.measures[0].name,
                "depth": self.depth,
                "pairs": [
                    {**_named(pair, names), "topics": [topic.to_json() for topic in pair.topics]}
                    for pair in self.topics
                ],
            },
            "difficulty": {
                "success_threshold": self.success_threshold,
                "groups": [
                    {
                        "successful_runs": group.successful_runs,
                        "share": group.successful_runs / len(names),
                        "topics": list(group.topics),
                        "means": by_run(group.means),
                    }
                    for group in self.difficulty
                ],
            },
            "breakdowns": {
                breakdown.name: {
                    "title": breakdown.title,
                    "rows": [
                        {
                            "group": row.group,
                            breakdown.counted: row.count,
                            "values": {figure: by_run(values) for figure, values in row.values.items()},
                        }
                        for row in breakdown.rows
                    ],
                }
                for breakdown in self.breakdowns
            },
            "notes": list(self.notes),
        }


def _named(pair: Pair | TopicDifferences | RunOverlap, names: Sequence[str]) -> dict[str, Any]:
    return {"first": names[pair.first], "second": names[pair.second]}


def number(value: float | None) -> str:
    """Return a figure with four digits, – for none."""
    return "–" if value is None or math.isnan(value) else f"{value:.4f}"


def signed(value: float) -> str:
    """Return a difference with its sign, which is + if it rounds to 0."""
    return "–" if math.isnan(value) else f"{value:+z.4f}"


def p_value(value: float | None) -> str:
    """Return a p-value with four digits."""
    return f"<{SMALLEST_P:.4f}" if value is not None and value < SMALLEST_P else number(value)


USUAL_MEASURES = 3  # how many of the task's measures are tested by default, without the official one

ROUNDING = 1e-12  # the largest difference from summing values in another order

LARGE = 100_000  # runs with this many documents are scored in several processes

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Scoring:
    """The gold against which runs are scored: a source, or judgments instead; the source has the measures."""

    source: GoldSource
    judgments: Judgments | None = None

    def measures(self, task: Task) -> tuple[str, ...]:
        """Return the measures without the official one, regardless of its cut-off."""
        official = task.info.official_measure.partition("@")[0]
        return tuple(name for name in self.source.measures if name.partition("@")[0] != official)

    def grades(self, task: Task, gold: GoldSource) -> Grades:
        """Return the grades of the gold by topic and document; `gold` is the source with the runs' split and folder.

        Raises:
            as `evaluate` does.
        """
        if self.judgments is not None:
            return self.judgments.grades
        files = gold_files(task, gold)
        if gold.split is None:
            raise UsageError(f"give the split of {task.reference} with --split")
        collection = task.collection(gold.folder(task) or Path())
        return task.official.grades(files, DataSplit(collection, gold.split, self.source.options))


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A scored run."""

    evaluation: Evaluation
    values: Mapping[str, Values]  # the values of topics by id, for each figure that has such values

    def figure(self, name: str) -> float | None:
        figure = self.evaluation.official.values.get(name, self.evaluation.measures.values.get(name))
        return None if figure is None else float(figure)


def score_run(stored: StoredRun, scoring: Scoring, task: Task, grades: Grades) -> ScoredRun:
    """Score a run directory that has been read; `grades` are the result of `Scoring.grades`.

    Raises:
        as `evaluate` does.
    """
    source = _source(scoring, task)
    if scoring.judgments is None:
        return _with_values(evaluate_run(stored, source), grades)
    return _with_values(evaluate_judged(Subject.stored(stored, source), scoring.judgments, source), grades)


def score_rankings(name: str, run: Run, scoring: Scoring, task: Task, grades: Grades) -> ScoredRun:
    """Score rankings without a run directory; the source has their split.

    Raises:
        as `evaluate` does.
    """
    source = _source(scoring, task)
    if scoring.judgments is None:
        return _with_values(evaluate_rankings(name, run, task, source), grades)
    subject = Subject(GivenRun(Path(name), run, None, ""), task, source.split, source.folder(task))
    return _with_values(evaluate_judged(subject, scoring.judgments, source), grades)


def _source(scoring: Scoring, task: Task) -> GoldSource:
    measures = scoring.measures(task)
    if measures and scoring.judgments is not None:
        measures = tuple(dict.fromkeys((*measures, *JUDGED)))
    return replace(scoring.source, measures=measures)


def _with_values(evaluation: Evaluation, grades: Grades) -> ScoredRun:
    measures = evaluation.measures.per_topic
    topics = list(next(iter(measures.values()), {}))
    ids = topic_ids(topics, grades)
    # The official scorer may have other names for topics than the measures, in the same order.
    official_names = topic_ids(list(evaluation.official.per_topic), topics) if topics else {}
    values: dict[str, Values] = {
        name: {ids.get(official_names.get(topic, topic), topic): value for topic, value in of_topics.items()}
        for name in evaluation.official.values
        if (of_topics := evaluation.of_topics(name))
    }
    for name, of_topics in measures.items():
        values.setdefault(name, {ids.get(topic, topic): value for topic, value in of_topics.items()})
    return ScoredRun(evaluation, values)


def import_tests() -> None:
    """Import the slow packages of scoring and tests before processes are forked."""
    import ir_measures  # noqa: F401
    from scipy import stats  # noqa: F401


def spread_if_large(work: Callable[[int], R], count: int, ranked: int) -> list[R]:
    """Return `work` of 0, 1, …, `count` - 1, from several processes if many documents are `ranked`."""
    numbers = range(count)
    if ranked < LARGE:
        return list(map(work, numbers))
    import_tests()
    return list(map_in_processes(work, numbers, worth_it=2))


def measure_names(scored: Sequence[ScoredRun], wanted: Sequence[str]) -> list[str]:
    """Return the wanted measures, if any, and the official one, with values for each topic in every run.

    Raises:
        UsageError: a wanted measure has no such values.
        DataError: no measure has.
    """
    official = scored[0].evaluation.official.measure
    known = [name for name in scored[0].values if all(name in run.values for run in scored)]
    wanted = list(dict.fromkeys(wanted))
    for name in wanted:
        if name not in known:
            raise UsageError(
                f"the runs have no per-topic values of the measure {name!r}: choose from {', '.join(known)}"
            )
    of_task = [name for name in scored[0].evaluation.measures.values if name in known and name not in JUDGED]
    candidates = [*wanted, official] if wanted else [official, *of_task[:USUAL_MEASURES]]
    names = [name for name in dict.fromkeys(candidates) if name in known]
    if not names:
        raise DataError("the runs have no measure with per-topic values: choose one with --measure")
    # A measure that equals the official one, as AP equals CheckThat's MAP, is not tested twice.
    return [
        name
        for name in names
        if name in wanted
        or name == official
        or official not in names
        or not all(_equal(run.values[name], run.values[official]) for run in scored)
    ]


def _equal(values: Values, others: Values) -> bool:
    both = paired(values, others)
    return len(both.topics) == len(values) == len(others) and bool((abs(both.differences) < ROUNDING).all())


def list_pairs(runs: int, baseline: int | None) -> list[RunPair]:
    """Return the pairs that are compared: with the baseline, or all of them."""
    if baseline is not None:
        return [(baseline, other) for other in range(runs) if other != baseline]
    return [(first, second) for first in range(runs) for second in range(first + 1, runs)]


def measured(
    name: str,
    scored: Sequence[ScoredRun],
    pairs: Sequence[RunPair],
    permutations: int,
    seed: int,
    *,
    jointly: bool = False,
    doubts: Mapping[tuple[str, RunPair], Doubt] | None = None,
    topics: Collection[str] | None = None,
) -> Measured:
    """Return runs under one measure with the tests of these pairs, over all topics or some.

    Args:
        name: the measure, such as nDCG@10
        scored: the runs with their scores per topic
        pairs: the pairs to test
        permutations: the number of permutations of each test
        seed: the seed of the permutations
        jointly: test more than two runs at once too, by Tukey's tests
        doubts: the influences of unjudged documents, by measure and pair
        topics: the ids of the topics that count; all by default
    """
    values = tuple(
        run.values[name]
        if topics is None
        else {topic: value for topic, value in run.values[name].items() if topic in topics}
        for run in scored
    )
    both = [paired(values[first], values[second]) for first, second in pairs]
    tests = [pair_tests(pair, permutations=permutations, seed=seed) for pair in both]
    corrected = _corrected(tests)
    shared, table = blocks(values)
    several = len(scored) > 2 and jointly
    of_all = tukey(table) if several else None
    randomised = randomised_tukey(table, seed=seed) if several else None
    means = tuple(mean(column) for column in table.T)
    figures = [figure for run in scored if (figure := run.figure(name)) is not None]
    complete = (
        topics is None
        and len(figures) == len(means)
        and all(abs(figure - value) <= 1e-9 for figure, value in zip(figures, means, strict=True))
    )
    if complete:
        # Another order of summation may change the last digit: show the figure of `evaluate`.
        means = tuple(figures)
        tests = [
            replace(test, first=means[first], second=means[second])
            for (first, second), test in zip(pairs, tests, strict=True)
        ]
    return Measured(
        name=name,
        is_official=name == scored[0].evaluation.official.measure,
        topics=len(shared),
        means=means,
        values=values,
        pairs=tuple(
            Pair(
                *pair,
                only_first=len(both[index].only_first),
                only_second=len(both[index].only_second),
                tests=tests[index],
                corrected=corrected[index],
                tukey=None if of_all is None else of_all.p[min(pair), max(pair)],
                randomised_tukey=None if randomised is None else randomised.p[min(pair), max(pair)],
                unjudged=None if doubts is None else doubts.get((name, pair)),
            )
            for index, pair in enumerate(pairs)
        ),
        tukey=of_all,
        randomised_tukey=randomised,
        complete=complete,
    )


def _corrected(tests: Sequence[PairTests]) -> list[dict[str, Corrected]]:
    corrected: list[dict[str, Corrected]] = [{} for _ in tests]
    for name in tests[0].p_values if tests else ():
        p_values = [test.p_values[name] for test in tests]
        rows = zip(p_values, holm(p_values), benjamini_hochberg(p_values), strict=True)
        for of_pair, row in zip(corrected, rows, strict=True):
            of_pair[name] = Corrected(*row)
    return corrected
