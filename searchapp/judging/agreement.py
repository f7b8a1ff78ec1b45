"""How far annotators agree beyond chance.

    J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20(1), 1960.
    J. Cohen, Weighted kappa, Psychological Bulletin 70(4), 1968.
    K. Krippendorff, Content Analysis: An Introduction to Its Methodology, 3rd edition 2013, chapter 12.

All coefficients are 1 for perfect agreement and 0 for agreement by chance. Where chance can't be computed, because
everybody gives one and the same grade or there are no two opinions on anything, they are not a number.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import StrEnum
from itertools import combinations
from typing import TypeVar

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
