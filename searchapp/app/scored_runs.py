"""Runs of one split, scored: the figures of each, the values of the topics behind them, and the tests of differences.

Nothing is measured here either: the figures, and the value of each topic that they are means of, are those of
`evaluate_run` and `evaluate_judged`, which `searchapp evaluate` prints. `compare` and `bench` show what comes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from searchapp.app.comparison import Corrected, Doubt, Measured, Pair, Values
from searchapp.app.evaluate import Evaluation, GoldSource, evaluate_rankings, evaluate_run, gold_files
from searchapp.app.judged import JUDGED, Judgments, Subject, evaluate_judged
from searchapp.app.topic_figures import topic_ids
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.multiple_comparisons import (
    benjamini_hochberg,
    blocks,
    holm,
    randomised_tukey,
    tukey,
)
from searchapp.evaluation.significance import PERMUTATIONS, SEED, PairTests, mean, pair_tests, paired
from searchapp.model import Run
from searchapp.processes import spread
from searchapp.runs.directory import StoredRun
from searchapp.runs.given import GivenRun
from searchapp.tasks.base import Grades, Part, Task

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
        return task.official.grades(files, Part(task.collection(gold.folder(task) or Path()), gold.split))


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
    return list(spread(work, numbers, worth_it=2))


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
