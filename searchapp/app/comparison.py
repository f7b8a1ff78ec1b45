"""Score the runs of one split, test their differences, and hold the result of a comparison.

`ScoredRun` has the figures of a run and the values of the topics behind them, which are those of
`app.evaluate`; `measured` tests pairs of runs under one measure. `compare`, `bench`, `ablate` and
`learning-curve` are made of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
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
    PERMUTATIONS,
    SEED,
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
from searchapp.model import Run
from searchapp.processes import map_in_processes
from searchapp.runs.directory import GivenRun, StoredRun
from searchapp.tasks.base import Grades, Part, Task

Values = Mapping[str, float | None]
"""A value a topic, None where it has none."""

SMALLEST_P = 1e-4
"""p-values below it are shown as such: no more is meant by them, and tests at random can't tell more."""


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the runs: what distinguishes it from the others, its tag and what made it, its digest.

    `official` is its official figure, over the topics that the scorer takes. `judged` has the share of its first
    documents that are judged, Judged@k, where judgments or qrels are the gold. `warnings` say where a figure misleads.
    """

    name: str
    path: str
    tag: str
    system: str
    digest: str
    official: float | None
    judged: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Corrected:
    """A p-value, and what it is among all pairs of runs that are tested under the measure."""

    p: float
    holm: float
    benjamini_hochberg: float


RANDOMISATION = "randomisation"
"""The test by which a difference is marked: it assumes least."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of a run less that of another one, with the tests of `searchapp compare`.

    `low` and `high` are the bootstrap interval of the mean difference, `effect` is d_z, `corrected` has the p-value of
    each test (t-test, wilcoxon, randomisation) by itself and among the other comparisons. What has no answer is nan.
    """

    mean: float
    low: float
    high: float
    wins: int
    ties: int
    losses: int
    effect: float
    corrected: Mapping[str, Corrected]

    @classmethod
    def of(cls, tests: PairTests, corrected: Mapping[str, Corrected] | None = None) -> Difference:
        """The difference that was tested; without `corrected` p-values it is the only one."""
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
        """The p-value by which the difference is marked: of the randomisation test, corrected by Holm."""
        return self.corrected[RANDOMISATION].holm


@dataclass(frozen=True, slots=True)
class Doubt:
    """What documents that nobody has judged can have to do with a difference.

    The figures of either run lie between its bounds: all of its unjudged documents not relevant, or all as relevant as
    can be. From them come `low` and `high`, between which the difference lies whatever these documents are. `reversed`
    is the difference where those are relevant that the run with the lower figure ranks higher, or alone: one that can
    be. `due` is "no" where the difference keeps its sign between `low` and `high`, "yes" where that one has another
    sign or is 0, and "unknown" in between.
    """

    bounds: tuple[tuple[float, float], tuple[float, float]]
    low: float
    high: float
    reversed: float
    due: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs under a measure, by their numbers; a difference is that of the second less the first.

    `corrected` has the p-value of each test. `tukey` and `randomised_tukey` are those of the pair among all runs, None
    of two runs alone. `only_first` and `only_second` count the topics that the other run has no value for.
    """

    first: int
    second: int
    tests: PairTests
    corrected: Mapping[str, Corrected]
    tukey: float | None = None
    randomised_tukey: float | None = None
    only_first: int = 0
    only_second: int = 0
    doubt: Doubt | None = None

    @property
    def difference(self) -> Difference:
        """The difference with its tests, as tables show it."""
        return Difference.of(self.tests, self.corrected)


@dataclass(frozen=True, slots=True)
class Measured:
    """The runs under one measure: a mean and the values of each, by the ids of topics, and the pairs that are tested.

    The means are those over the `topics` that every run has a value for. `complete` says that these are all that the
    figure of any run is a mean of.
    """

    name: str
    is_official: bool
    topics: int
    means: tuple[float, ...]
    values: tuple[Values, ...]
    pairs: tuple[Pair, ...]
    tukey: Tukey | None = None
    randomised_tukey: RandomisedTukey | None = None
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Move:
    """A relevant document of a topic: its grade, and its rank in each of two rankings, None where it is not in one."""

    document_id: str
    grade: int
    first: int | None
    second: int | None


@dataclass(frozen=True, slots=True)
class TopicDifference:
    """A topic in two runs: a value in each, and its relevant documents with their ranks in both.

    `gained` are those that only the second run has among its first `depth` documents, `lost` those that only the first
    has, `moved` those that both have at other ranks.
    """

    topic_id: str
    first: float
    second: float
    documents: tuple[Move, ...]
    depth: int

    @property
    def gained(self) -> list[Move]:
        return [one for one in self.documents if not self._in(one.first) and self._in(one.second)]

    @property
    def lost(self) -> list[Move]:
        return [one for one in self.documents if self._in(one.first) and not self._in(one.second)]

    @property
    def moved(self) -> list[Move]:
        there = (one for one in self.documents if self._in(one.first) and self._in(one.second))
        return [one for one in there if one.first != one.second]

    def _in(self, rank: int | None) -> bool:
        return rank is not None and rank <= self.depth

    @property
    def difference(self) -> float:
        """The second less the first."""
        return self.second - self.first


@dataclass(frozen=True, slots=True)
class TopicDifferences:
    """The topics of two runs under the first measure, the greatest gain first."""

    first: int
    second: int
    topics: tuple[TopicDifference, ...]

    def ends(self, count: int) -> list[TopicDifference]:
        """So many topics with the greatest gains and with the greatest losses, the greatest gain first."""
        gains = [topic for topic in self.topics if topic.difference > 0][:count]
        losses = [topic for topic in self.topics if topic.difference < 0][-count:]
        return [*gains, *losses]


@dataclass(frozen=True, slots=True)
class Difficulty:
    """Topics by the share of runs that solve them: `solved_by` is a number of runs, with its topics, the hardest first.

    `means` has the mean of each run over these topics.
    """

    solved_by: int
    topics: tuple[str, ...]
    means: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A group of a breakdown: how much it counts, and each figure in each run, None where a run has none."""

    group: str
    count: int
    values: Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True, slots=True)
class ComparedBreakdown:
    """A breakdown of the task in all runs; `name`, `title` and `counted` are those of `evaluation.base.Breakdown`."""

    name: str
    title: str
    counted: str
    rows: tuple[ComparedRow, ...]


@dataclass(frozen=True, slots=True)
class Alike:
    """How alike the rankings of two runs are, whatever is relevant."""

    first: int
    second: int
    overlap: Overlap


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two or more runs of one split beside each other.

    The first of `measures` is the one that topics are looked at by. `baseline` is the number of the run that all others
    are compared with, None where every pair is. `against` says what the gold is, `treatment` how documents count that
    it does not name. `differing` are sentences on what the runs do not share, which were compared all the same.
    `depth` is how many documents of a ranking count for `gained` and `lost`, `solved_from` the value from which on a
    topic is solved. `notes` are sentences on the comparison, `evaluations` what `evaluate` says of each run. One run
    alone has no pairs, and is beside itself in `topics`.
    """

    task: str
    split: str | None
    runs: tuple[ComparedRun, ...]
    baseline: int | None
    measures: tuple[Measured, ...]
    against: str
    treatment: str
    topics: tuple[TopicDifferences, ...]
    difficulty: tuple[Difficulty, ...]
    breakdowns: tuple[ComparedBreakdown, ...]
    alike: tuple[Alike, ...]
    depth: int
    solved_from: float
    permutations: int
    seed: int
    differing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()

    @property
    def warnings(self) -> list[str]:
        """What must not be missed: what the runs do not share, and where a figure misleads."""
        about: dict[str, list[str]] = {}
        for run in self.runs:
            for warning in run.warnings:
                about.setdefault(warning, []).append(run.name)
        found = [f"the runs are compared although {one}" for one in self.differing]
        for warning, names in about.items():
            found.append(
                warning if any(run.path in warning for run in self.runs) else f"{', '.join(names)}: {warning}"
            )
        return found

    def to_json(self) -> dict[str, Any]:
        """What `compare --json` prints."""
        names = [run.name for run in self.runs]
        return {
            "task": self.task,
            "split": self.split,
            "comparable": not self.differing,
            "differing": list(self.differing),
            "against": self.against,
            "unjudged": self.treatment,
            "baseline": None if self.baseline is None else names[self.baseline],
            "runs": [asdict(run) for run in self.runs],
            "permutations": self.permutations,
            "seed": self.seed,
            "measures": [_measured(one, names) for one in self.measures],
            "overlap": [
                {"first": names[one.first], "second": names[one.second], **one.overlap.to_json()}
                for one in self.alike
            ],
            "topics": {
                "measure": self.measures[0].name,
                "depth": self.depth,
                "pairs": [_differences(one, names) for one in self.topics],
            },
            "difficulty": {
                "solved_from": self.solved_from,
                "groups": [
                    {
                        "solved_by": one.solved_by,
                        "share": one.solved_by / len(names),
                        "topics": list(one.topics),
                        "means": dict(zip(names, one.means, strict=True)),
                    }
                    for one in self.difficulty
                ],
            },
            "breakdowns": {
                one.name: {
                    "title": one.title,
                    "rows": [
                        {
                            "group": row.group,
                            one.counted: row.count,
                            "values": {
                                figure: dict(zip(names, held, strict=True))
                                for figure, held in row.values.items()
                            },
                        }
                        for row in one.rows
                    ],
                }
                for one in self.breakdowns
            },
            "notes": list(self.notes),
        }


def number(value: float | None) -> str:
    """A figure with four digits, – where there is none."""
    return "–" if value is None or math.isnan(value) else f"{value:.4f}"


def signed(value: float) -> str:
    """A difference with its sign, which is + if it rounds to 0.

    >>> signed(-0.25), signed(-0.00001)
    ('-0.2500', '+0.0000')
    """
    return "–" if math.isnan(value) else f"{value:+z.4f}"


def p_value(value: float | None) -> str:
    """A p-value, which is not shown more exactly than anybody means it."""
    if value is None or math.isnan(value):
        return "–"
    return f"<{SMALLEST_P:.4f}" if value < SMALLEST_P else f"{value:.4f}"


def _measured(one: Measured, names: Sequence[str]) -> dict[str, Any]:
    return {
        "measure": one.name,
        "official": one.is_official,
        "topics": one.topics,
        "complete": one.complete,
        "means": dict(zip(names, one.means, strict=True)),
        "pairs": [
            {
                "first": names[pair.first],
                "second": names[pair.second],
                "only_first": pair.only_first,
                "only_second": pair.only_second,
                "tests": asdict(pair.tests),
                "corrected": {test: asdict(held) for test, held in pair.corrected.items()},
                "tukey": pair.tukey,
                "randomised_tukey": pair.randomised_tukey,
                "unjudged": None if pair.doubt is None else asdict(pair.doubt),
            }
            for pair in one.pairs
        ],
        "tukey": None
        if one.tukey is None
        else {"margin": one.tukey.margin, "error": one.tukey.error, "degrees": one.tukey.degrees},
        "randomised_tukey": None if one.randomised_tukey is None else {"trials": one.randomised_tukey.trials},
        "per_topic": {name: dict(held) for name, held in zip(names, one.values, strict=True)},
    }


def _differences(one: TopicDifferences, names: Sequence[str]) -> dict[str, Any]:
    return {
        "first": names[one.first],
        "second": names[one.second],
        "topics": [
            {
                "id": topic.topic_id,
                "first": topic.first,
                "second": topic.second,
                "difference": topic.difference,
                "gained": [asdict(move) for move in topic.gained],
                "lost": [asdict(move) for move in topic.lost],
                "moved": [asdict(move) for move in topic.moved],
            }
            for topic in one.topics
        ],
    }


USUAL_MEASURES = 3
"""How many of the measures that a task names are tested beside its official one, where nobody says which."""

ROUNDING = 1e-12
"""By which values may differ that were added up in two ways."""

LARGE = 100_000
"""Documents in the runs from which on they are scored in processes beside each other."""

R = TypeVar("R")

Numbers = tuple[int, int]
"""Two runs by their places in a list."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """By what runs are scored: the source of the gold with the measures that are asked for, or judgments instead."""

    source: GoldSource
    judgments: Judgments | None = None

    def measures(self, task: Task) -> tuple[str, ...]:
        """The measures that are asked for beside the official figures."""
        return tuple(name for name in self.source.measures if not _of_scorer(name, task))

    def grades(self, task: Task, gold: GoldSource) -> Grades:
        """The grades of what is gold, by the ids of topics and documents; `gold` says where that of the runs is.

        Raises:
            as `evaluate` does.
        """
        if self.judgments is not None:
            return self.judgments.grades
        files = gold_files(task, gold)
        if gold.split is None:
            raise UsageError(f"name the split of {task.reference} with --split")
        part = Part(task.collection(gold.folder(task) or Path()), gold.split)
        return task.official.grades(files, part, self.source.options)


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A run that has been scored; `values` has those of each topic by its id, for each figure that has such values."""

    evaluation: Evaluation
    values: Mapping[str, Values]

    def figure(self, name: str) -> float | None:
        """What `evaluate` says under a name."""
        found = self.evaluation.official.values.get(name, self.evaluation.measures.values.get(name))
        return None if found is None else float(found)


@dataclass(frozen=True, slots=True)
class Testing:
    """How differences are tested; with `jointly` all runs at once too, by Tukey's tests."""

    permutations: int = PERMUTATIONS
    seed: int = SEED
    jointly: bool = True


def _of_scorer(name: str, task: Task) -> bool:
    """Whether a name is that of the official figure, whatever its cut-off is: no measure of ir-measures."""
    return name.partition("@")[0] == task.info.official_measure.partition("@")[0]


def scored_run(stored: StoredRun, scoring: Scoring, task: Task, grades: Grades) -> ScoredRun:
    """Score a run directory that has been read; `grades` are those of `Scoring.grades`.

    Raises:
        as `evaluate` does.
    """
    source = _asked(scoring, task)
    if scoring.judgments is None:
        return _with_values(evaluate_run(stored, source), grades)
    return _with_values(evaluate_judged(Subject.stored(stored, source), scoring.judgments, source), grades)


def scored_rankings(name: str, run: Run, scoring: Scoring, task: Task, grades: Grades) -> ScoredRun:
    """Score rankings that stand in no run directory, as `scored_run` does; the source says of which split they are.

    Raises:
        as `evaluate` does.
    """
    source = _asked(scoring, task)
    if scoring.judgments is None:
        return _with_values(evaluate_rankings(name, run, task, source), grades)
    subject = Subject(GivenRun(Path(name), run, None, ""), task, source.split, source.folder(task))
    return _with_values(evaluate_judged(subject, scoring.judgments, source), grades)


def _asked(scoring: Scoring, task: Task) -> GoldSource:
    """The source with the measures that are computed."""
    measures = scoring.measures(task)
    if measures and scoring.judgments is not None:
        measures = tuple(dict.fromkeys((*measures, *JUDGED)))
    return replace(scoring.source, measures=measures)


def _with_values(found: Evaluation, grades: Grades) -> ScoredRun:
    topics = next(iter(found.measures.per_topic.values()), {})
    ids = topic_ids(list(topics), grades)
    official = {name: found.of_topics(name) for name in found.official.values}
    # Its own topics may be called otherwise than those of the measures, in the same order.
    named = topic_ids(list(found.official.per_topic), list(topics)) if topics else {}
    values: dict[str, Values] = {
        name: {ids.get(named.get(topic, topic), topic): value for topic, value in of_topics.items()}
        for name, of_topics in official.items()
        if of_topics
    }
    for name, of_measure in found.measures.per_topic.items():
        values.setdefault(name, {ids.get(topic, topic): value for topic, value in of_measure.items()})
    return ScoredRun(found, values)


def import_tests() -> None:
    """Import what scores and tests runs, which takes long, before processes are forked rather than in each of them."""
    import ir_measures  # noqa: F401
    from scipy import stats  # noqa: F401


def spread_if_large(work: Callable[[int], R], count: int, ranked: int) -> list[R]:
    """What `work` makes of 0, 1, ..., `count` - 1: in processes beside each other, if many documents are `ranked`."""
    numbers = range(count)
    if ranked < LARGE:
        return list(map(work, numbers))
    import_tests()
    return list(map_in_processes(work, numbers, worth_it=2))


def measure_names(scored: Sequence[ScoredRun], asked: Sequence[str]) -> list[str]:
    """The figures that every run has a value a topic for: those asked for, and the official one.

    Raises:
        UsageError: one that was asked for has none.
        DataError: there are none.
    """
    official = scored[0].evaluation.official.measure
    there = [name for name in scored[0].values if all(name in one.values for one in scored)]
    asked = list(dict.fromkeys(asked))
    for name in asked:
        if name not in there:
            raise UsageError(
                f"there is no measure {name!r} with a value for each topic: the runs have {', '.join(there)}"
            )
    measured = [name for name in scored[0].evaluation.measures.values if name in there and name not in JUDGED]
    wanted = [*asked, official] if asked else [official, *measured[:USUAL_MEASURES]]
    names = [name for name in dict.fromkeys(wanted) if name in there]
    if not names:
        raise DataError("the runs have no figure with a value for each topic: choose one with --measure")
    # A measure that the official one is, as AP is CheckThat's MAP, is not tested twice.
    same = [
        name
        for name in names
        if name != official
        and official in names
        and all(_same(one.values[name], one.values[official]) for one in scored)
    ]
    return [name for name in names if name not in same or name in asked]


def _same(values: Values, others: Values) -> bool:
    """Whether two measures have the same value for each topic."""
    both = paired(values, others)
    return len(both.topics) == len(values) == len(others) and bool((abs(both.differences) < ROUNDING).all())


def pairs_of(runs: int, baseline: int | None) -> list[Numbers]:
    """The pairs that are compared: with the baseline, or all of them."""
    if baseline is not None:
        return [(baseline, other) for other in range(runs) if other != baseline]
    return [(one, other) for one in range(runs) for other in range(one + 1, runs)]


def measured(
    name: str,
    scored: Sequence[ScoredRun],
    pairs: Sequence[Numbers],
    testing: Testing,
    doubtful: Mapping[tuple[str, Numbers], Doubt] | None = None,
    topics: Collection[str] | None = None,
) -> Measured:
    """Runs under one measure, and the tests of these pairs; over some of the topics, if these are given.

    `doubtful` says what unjudged documents have to do with a difference, where somebody has looked.
    """
    values = tuple(one.values[name] if topics is None else _of(one.values[name], topics) for one in scored)
    both = {pair: paired(values[pair[0]], values[pair[1]]) for pair in pairs}
    tests = {
        pair: pair_tests(one, permutations=testing.permutations, seed=testing.seed)
        for pair, one in both.items()
    }
    corrected = _corrected(list(tests.values()))
    shared, table = blocks(values)
    several = len(scored) > 2 and testing.jointly
    of_all = tukey(table) if several else None
    at_random = randomised_tukey(table, seed=testing.seed) if several else None
    official = scored[0].evaluation.official.measure
    means = tuple(mean(column) for column in table.T)
    figures = tuple(one.figure(name) for one in scored)
    complete = topics is None and _are(figures, means)
    if complete:
        # Added up in another order a figure may differ in the last digit: what is shown is that of `evaluate`.
        means = tuple(figure for figure in figures if figure is not None)
        tests = {
            pair: replace(one, first=means[pair[0]], second=means[pair[1]]) for pair, one in tests.items()
        }
    return Measured(
        name=name,
        is_official=name == official,
        topics=len(shared),
        means=means,
        values=values,
        pairs=tuple(
            Pair(
                first=pair[0],
                second=pair[1],
                tests=tests[pair],
                corrected=held,
                tukey=None if of_all is None else of_all.p[min(pair), max(pair)],
                randomised_tukey=None if at_random is None else at_random.p[min(pair), max(pair)],
                only_first=len(both[pair].only_first),
                only_second=len(both[pair].only_second),
                doubt=None if doubtful is None else doubtful.get((name, pair)),
            )
            for pair, held in zip(pairs, corrected, strict=True)
        ),
        tukey=of_all,
        randomised_tukey=at_random,
        complete=complete,
    )


def _are(figures: Sequence[float | None], means: Sequence[float]) -> bool:
    """Whether all figures are these means, but for rounding."""
    return all(
        figure is not None and abs(figure - one) <= 1e-9 for figure, one in zip(figures, means, strict=True)
    )


def _of(values: Values, topics: Collection[str]) -> Values:
    return {topic: value for topic, value in values.items() if topic in topics}


def _corrected(tests: Sequence[PairTests]) -> list[dict[str, Corrected]]:
    """The p-values of each pair, each test corrected for the number of pairs."""
    found: list[dict[str, Corrected]] = [{} for _ in tests]
    for name in tests[0].p_values if tests else ():
        p_values = [one.p_values[name] for one in tests]
        rows = zip(found, p_values, holm(p_values), benjamini_hochberg(p_values), strict=True)
        for one, p, by_holm, by_rate in rows:
            one[name] = Corrected(p, by_holm, by_rate)
    return found
