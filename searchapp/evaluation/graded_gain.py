"""Normalised discounted cumulative gain of graded facts: as it is defined, and as TextGraphs-15 scores it.

Järvelin and Kekäläinen (2002) with the gain 2 ** grade - 1 of Burges et al. (2005), without cut-off.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from searchapp.evaluation.explanation_rankings import Ranked, ranks_of

FURTHER_RANKS = 1_000_000
"""How many ranks the official scorer appends to a ranking that lacks a rated fact."""

Grades = Mapping[str, float]


def gained(places: Iterable[tuple[int, float]]) -> float:
    """The discounted cumulative gain of grades at ranks."""
    return math.fsum((2.0**grade - 1.0) / math.log2(rank + 1) for rank, grade in places)


def ndcg(ranked: Ranked, grades: Grades) -> float:
    """The gain of a ranking as a share of the greatest that there can be; what is not ranked gains nothing.

    All grades must be above 0, and there must be some.
    """
    return ndcg_at(ranks_of(ranked, grades), grades)


def ndcg_at(ranks: Mapping[str, int], grades: Grades) -> float:
    """The same from the ranks of those graded facts that are ranked."""
    return gained((rank, grades[fact]) for fact, rank in ranks.items()) / gained(
        enumerate(sorted(grades.values(), reverse=True), 1)
    )


def official_ndcg_at(ranks: Mapping[str, int], length: int, grades: Grades) -> float:
    """What the organisers' script makes of a ranking of this length, in which those graded facts have these ranks.

    Of the facts that are not ranked, m0, m1, ... in the order of the gold, mj is put at rank n + 1,000,000 - j.
    There a negative grade counts; at the ranks proper it is 0. The greatest gain is that of the same grades in
    descending order, in which the negative ones are last, behind all ranks without a grade.
    """
    if not grades:
        return 1.0
    placed = [(rank, max(0.0, grades[fact])) for fact, rank in ranks.items()]
    missing = [grade for fact, grade in grades.items() if fact not in ranks]
    length += FURTHER_RANKS if missing else 0
    placed += [(length - number, grade) for number, grade in enumerate(missing)]
    in_order = sorted((grade for _rank, grade in placed), reverse=True)
    ideal = [
        (place if grade >= 0 else length - len(in_order) + place, grade)
        for place, grade in enumerate(in_order, 1)
    ]
    greatest = gained(ideal)
    return gained(placed) / greatest if greatest else 0.0
