"""The wording of figures, p-values, shades of a bench and learning curves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from searchapp.app.comparison import RANDOMISATION, SMALLEST_P, number, p_value, signed
from searchapp.text import counted, visible_line

if TYPE_CHECKING:
    from searchapp.app.comparison import (
        ComparedBreakdown,
        Comparison,
        Difference,
        Doubt,
        Measured,
        Pair,
        TopicDifference,
    )
    from searchapp.app.experiments.bench_result import BenchColumn, BenchMeasure, BenchResult
    from searchapp.app.experiments.learning_curve import LearningCurve
    from searchapp.evaluation.significance import Interval


LEVEL = 0.05  # the significance level of sentences


def effect(value: float) -> str:
    """Return an effect size, d_z, as text."""
    return "–" if math.isnan(value) else f"{value:.2f}"


def between(interval: Interval | Difference | None, *, sign: bool = False) -> str:
    """Return the ends of an interval as text."""
    if interval is None or math.isnan(interval.low):
        return "–"
    shown = signed if sign else number
    return f"{shown(interval.low)} to {shown(interval.high)}"


def tests_cells(difference: Difference) -> dict[str, str]:
    """Return a difference and its tests as the cells of a table, by heading."""
    at_random = difference.corrected[RANDOMISATION]
    return {
        "difference": signed(difference.mean),
        "95% interval": between(difference, sign=True),
        "won/tied/lost": f"{difference.wins}/{difference.ties}/{difference.losses}",
        "d_z": effect(difference.effect),
        "t-test": p_value(difference.corrected["t-test"].p),
        "Wilcoxon": p_value(difference.corrected["wilcoxon"].p),
        "randomisation": p_value(at_random.p),
        "Holm": p_value(at_random.holm),
        "BH": p_value(at_random.benjamini_hochberg),
    }


def pairs(comparison: Comparison) -> Iterator[tuple[Measured, Pair]]:
    """Yield each measure with each pair of runs."""
    for measured in comparison.measures:
        for pair in measured.pairs:
            yield measured, pair


def tests_table(comparison: Comparison) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of the tests, a row for each measure and pair."""
    left_out = () if len(comparison.measures[0].pairs) > 1 else ("Holm", "BH")
    heading: list[str] = []
    rows = []
    for measured, pair in pairs(comparison):
        cells = {
            "measure": measured.name,
            "runs": f"{comparison.runs[pair.first].name} → {comparison.runs[pair.second].name}",
            "first": number(pair.tests.first),
            "second": number(pair.tests.second),
            **{name: cell for name, cell in tests_cells(pair.difference).items() if name not in left_out},
        }
        if len(comparison.runs) > 2:
            cells |= {"Tukey": p_value(pair.tukey), "randomised Tukey": p_value(pair.randomised_tukey)}
        heading = list(cells)
        rows.append(list(cells.values()))
    return heading, rows


def doubted(comparison: Comparison) -> list[tuple[Measured, Pair, Doubt]]:
    """Return the influence of unjudged documents on each difference."""
    return [
        (measured, pair, pair.unjudged) for measured, pair in pairs(comparison) if pair.unjudged is not None
    ]


def figures_of(breakdown: ComparedBreakdown) -> list[str]:
    """Return the names of the figures that any group of a breakdown has."""
    return list(dict.fromkeys(name for row in breakdown.rows for name in row.values))


def verdicts(comparison: Comparison) -> Iterator[str]:
    """Yield a sentence on the difference of each pair of runs under the first measure."""
    measured = comparison.measures[0]
    for pair in measured.pairs:
        first, second = comparison.runs[pair.first].name, comparison.runs[pair.second].name
        tests, at_random = pair.tests, pair.corrected[RANDOMISATION]
        if math.isnan(tests.mean):
            yield f"{first} and {second} share no topic with a value of {measured.name}"
            continue
        if tests.outcomes.ties == tests.topics:
            yield f"{first} and {second} have the same {measured.name} on every topic"
            continue
        p, how = at_random.p, "by randomisation"
        if len(measured.pairs) > 1:
            p, how = at_random.holm, "by randomisation, Holm-corrected"
        significance = "significant" if p < LEVEL else "not significant"
        yield (
            f"{second} − {first}: {signed(tests.mean)} {measured.name} (95% interval "
            f"{between(tests.interval, sign=True)}), statistically {significance} at {LEVEL:g} (p "
            f"{'' if p < SMALLEST_P else '= '}{p_value(p)} {how})"
        )


def comparison_legend(comparison: Comparison) -> Iterator[str]:
    """Yield sentences on how to read the figures."""
    for clause in comparison.differing:
        yield f"the runs are compared although {clause}"
    tests = comparison.measures[0].pairs[0].tests
    drawn = [pair for _, pair in pairs(comparison) if not pair.tests.randomisation.exact]
    of = "all sign vectors"
    if drawn:
        error = max(pair.tests.randomisation.error for pair in drawn)
        of = (
            f"{comparison.permutations:,} sign vectors with seed {comparison.seed}, standard error of p up "
            f"to {error:.1g}"
        )
    split = f" {comparison.split}" if comparison.split else ""
    yield f"{comparison.task}{split} scored against {comparison.against}; difference = second − first"
    yield (
        "p-values are two-sided: paired t-test; Wilcoxon test without ties; randomisation test of the mean "
        f"difference ({of})"
        f"; interval: {tests.interval.method} with {tests.interval.resamples:,} resamples"
    )
    yield comparison.treatment
    yield from comparison.notes


MOVES = 4  # documents of a topic that are named


def moves(topic: TopicDifference) -> Iterator[str]:
    """Yield the gained (+), lost (-) and moved documents of a topic with their ranks in both runs."""
    all_moves = [("+", move) for move in topic.gained] + [("-", move) for move in topic.lost]
    all_moves += [("", move) for move in topic.moved]
    for sign, move in all_moves[:MOVES]:
        yield f"{sign}{visible_line(move.document_id)} ({move.first or '–'}→{move.second or '–'})"
    if len(all_moves) > MOVES:
        yield f"{len(all_moves) - MOVES} more"


# Whether a difference can be due to unjudged documents, see `comparison.Doubt`.
DUE = {
    "yes": "possibly due to them alone",
    "no": "not due to them",
    "unknown": "undecided",
    "none": "–",
}


LEVELS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))  # marks of a difference by its p-value

STEPS = 4  # shades of gains, and of losses


def lines_of(result: BenchResult) -> list[tuple[BenchColumn, BenchMeasure | None]]:
    """Return the lines of a table: the columns of the bench with each of their measures, or None."""
    lines: list[tuple[BenchColumn, BenchMeasure | None]] = []
    for column in result.columns:
        lines += [(column, measure) for measure in column.measures] or [(column, None)]
    return lines


def official(result: BenchResult) -> list[tuple[BenchColumn, BenchMeasure]]:
    """Return the columns that have figures, with the measure that ranks submissions."""
    return [(column, measure) for column in result.columns if (measure := column.official) is not None]


def greatest(result: BenchResult) -> float:
    """Return the greatest absolute difference to the baseline under the official measures."""
    differences = (
        difference
        for _, measure in official(result)
        for difference in measure.differences
        if difference is not None
    )
    return max((abs(difference.mean) for difference in differences), default=0.0)


def step(difference: Difference, greatest: float) -> int:
    """Return the absolute value of a difference in steps, `STEPS` for the greatest one."""
    share = abs(difference.mean) / greatest if greatest else 0.0
    return 0 if math.isnan(share) else math.ceil(STEPS * share - 1e-9)


def marks(difference: Difference) -> str:
    """Return stars for the p-value."""
    return next((marks for level, marks in LEVELS if difference.p < level), "")


def bench_legend(result: BenchResult) -> Iterator[str]:
    """Yield sentences on how to read the figures."""
    baseline = result.systems[result.baseline].name
    yield (
        f"figures equal those of `searchapp evaluate`; differences from {baseline} on the same topics: "
        f"{', '.join(f'{marks} p < {level:g}' for level, marks in reversed(LEVELS))} in the randomisation test "
        f"({result.permutations:,} sign vectors with seed {result.seed})"
    )
    if len(result.systems) > 1:
        yield "each block and each shade of the heatmap is a quarter of the largest difference in it"
    if len(result.systems) > 2:
        yield (
            f"p-values are Holm-corrected for the comparisons with {baseline} in one line, but not for the "
            "number of lines"
        )
    yield from result.notes


def curve_heading(curve: LearningCurve) -> str:
    """Return the heading of a learning curve."""
    official = " (official)" if curve.official else ""
    where = f"{curve.task} {curve.split}, recipe {curve.recipe['name']}"
    return f"{where}: {curve.measure}{official} of {counted(curve.test_topics, 'test topic')}"


def curve_legend(curve: LearningCurve) -> Iterator[str]:
    """Yield sentences on how to read the figures."""
    who = "people" if curve.judgments == "people" else "the official gold"
    yield (
        f"scored at every point: the same {counted(curve.test_topics, 'test topic')}; judged by {who}: "
        f"growing samples of {curve.pool_topics:,} other topics; training topics of the task: {curve.training_topics:,}"
    )
    if curve.repetitions > 1:
        yield (
            f"score: mean over {curve.repetitions:,} samples with seed {curve.seed} (one where all samples "
            "are equal); lowest and highest: scores of single samples"
        )
    yield (
        "gain: mean difference from the first point over topics; interval: BCa bootstrap over topics; "
        "p-values: two-sided randomisation test"
    )
