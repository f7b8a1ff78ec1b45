"""Figures, p-values and what must be known of a comparison, in the same words wherever it is shown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from searchapp.app.comparison import SMALLEST_P, number, p_value, signed
from searchapp.visible import visible_line

if TYPE_CHECKING:
    from searchapp.app.comparison import (
        ComparedBreakdown,
        Comparison,
        Doubt,
        Measured,
        Pair,
        TopicDifference,
    )
    from searchapp.evaluation.significance import Interval

LEVEL = 0.05
"""The level at which a sentence says that a difference can be told from chance."""


def effect(value: float) -> str:
    """An effect size, d_z."""
    return "–" if math.isnan(value) else f"{value:.2f}"


def between(interval: Interval | None, *, sign: bool = False) -> str:
    """The ends of an interval."""
    if interval is None or math.isnan(interval.low):
        return "–"
    shown = signed if sign else number
    return f"{shown(interval.low)} to {shown(interval.high)}"


def pairs(found: Comparison) -> Iterator[tuple[Measured, Pair]]:
    """Each measure with each pair of runs."""
    for measured in found.measures:
        for pair in measured.pairs:
            yield measured, pair


def tests_table(found: Comparison) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of the tests: a row a measure and pair of runs, the first two columns being words."""
    several = len(found.runs) > 2
    corrected = len(found.measures[0].pairs) > 1
    heading = ["measure", "runs", "first", "second", "difference", "95% interval", "won/tied/lost", "d_z"]
    heading += ["t-test", "Wilcoxon", "randomisation"]
    heading += ["Holm", "BH"] if corrected else []
    heading += ["Tukey", "randomised Tukey"] if several else []
    rows = []
    for measured, pair in pairs(found):
        tests, at_random = pair.tests, pair.corrected["randomisation"]
        won = tests.outcomes
        row = [
            measured.name,
            f"{found.runs[pair.first].name} → {found.runs[pair.second].name}",
            number(tests.first),
            number(tests.second),
            signed(tests.mean),
            between(tests.interval, sign=True),
            f"{won.wins}/{won.ties}/{won.losses}",
            effect(tests.effect),
            *map(p_value, (tests.t_test.p, tests.wilcoxon.p, at_random.p)),
        ]
        row += [p_value(at_random.holm), p_value(at_random.benjamini_hochberg)] if corrected else []
        row += [p_value(pair.tukey), p_value(pair.randomised_tukey)] if several else []
        rows.append(row)
    return heading, rows


def doubted(found: Comparison) -> list[tuple[Measured, Pair, Doubt]]:
    """What unjudged documents can do to each difference, where somebody has looked."""
    return [(measured, pair, pair.doubt) for measured, pair in pairs(found) if pair.doubt is not None]


def figures_of(breakdown: ComparedBreakdown) -> list[str]:
    """The names of the figures that any group of a breakdown has."""
    return list(dict.fromkeys(name for row in breakdown.rows for name in row.values))


def verdicts(found: Comparison) -> Iterator[str]:
    """A sentence a pair of runs: how far they are apart under the first measure, and whether that is chance."""
    measured = found.measures[0]
    for pair in measured.pairs:
        first, second = found.runs[pair.first].name, found.runs[pair.second].name
        tests, at_random = pair.tests, pair.corrected["randomisation"]
        if math.isnan(tests.mean):
            yield f"{first} and {second} have no topic in common that has a {measured.name}"
            continue
        if tests.outcomes.ties == tests.topics:
            yield f"{first} and {second} have the same {measured.name} on every topic"
            continue
        p, how = at_random.p, "by randomisation"
        if len(measured.pairs) > 1:
            p, how = at_random.holm, "by randomisation, Holm-corrected"
        told = "can be told" if p < LEVEL else "can't be told"
        yield (
            f"{second} less {first}: {signed(tests.mean)} {measured.name} "
            f"(95% interval {between(tests.interval, sign=True)}), which {told} from chance at {LEVEL:g} "
            f"(p {'' if p < SMALLEST_P else '= '}{p_value(p)} {how})"
        )


def legend(found: Comparison) -> Iterator[str]:
    """What must be known to read the figures, in sentences."""
    for one in found.differing:
        yield f"the runs are compared although {one}"
    tests = found.measures[0].pairs[0].tests
    drawn = [pair for _, pair in pairs(found) if not pair.tests.randomisation.exact]
    of = "all sign vectors"
    if drawn:
        error = max(pair.tests.randomisation.error for pair in drawn)
        of = (
            f"{found.permutations:,} sign vectors of seed {found.seed}, standard error of p up to {error:.1g}"
        )
    split = f" {found.split}" if found.split else ""
    yield f"{found.task}{split} against {found.against}; differences are the second less the first"
    yield (
        f"p-values are two-sided: paired t-test; Wilcoxon without ties; randomisation of the mean difference ({of})"
        f"; interval: {tests.interval.method} of {tests.interval.resamples:,} resamples"
    )
    yield found.treatment
    yield from found.notes


MOVES = 4
"""Documents of a topic that are named before the others are counted."""


def moves(topic: TopicDifference) -> Iterator[str]:
    """Its gained (+), lost (-) and moved documents with their ranks in both runs, – for none."""
    found = [("+", move) for move in topic.gained] + [("-", move) for move in topic.lost]
    found += [("", move) for move in topic.moved]
    for sign, move in found[:MOVES]:
        yield f"{sign}{visible_line(move.document_id)} ({move.first or '–'}→{move.second or '–'})"
    if len(found) > MOVES:
        yield f"{len(found) - MOVES} more"


DUE = {
    "yes": "can be due to them alone",
    "no": "not due to them",
    "unknown": "nobody can tell",
    "none": "–",
}
"""Whether a difference is due to documents that nobody has judged, see `comparison.Doubt`."""
