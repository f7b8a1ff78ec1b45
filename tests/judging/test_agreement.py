"""Coefficients of agreement equal the printed digits of worked examples from the literature."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from searchapp.judging.agreement import Level, Weights, cohen_kappa, krippendorff_alpha, shared_grades

# J. Cohen, Weighted kappa, Psychological Bulletin 70(4), 1968, table 1: two judges diagnose 200 cases as personality
# disorder, neurosis or psychosis. He prints kappa .492 and weighted kappa .348; with asymmetric weights .353.
DIAGNOSES = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]
GRAVITY = [[0, 1, 3], [1, 0, 6], [3, 6, 0]]
GRAVITY_ONE_WAY = [[0, 1, 4], [1, 0, 6], [2, 2, 0]]

# N. F. Boyd et al., Journal of the National Cancer Institute 68(3), 1982: two radiologists read 85 mammograms in four
# categories. Stata's manual, [R] kappa, prints all three coefficients.
MAMMOGRAMS = [[21, 12, 0, 0], [4, 17, 1, 0], [3, 9, 15, 2], [0, 0, 0, 1]]

# A. Agresti, Categorical Data Analysis, 1990, section 10.5: 91 couples on one question with four answers. The
# documentation of R's package vcd, function Kappa, prints the coefficients.
COUPLES = [[7, 7, 2, 3], [2, 8, 3, 7], [1, 5, 4, 9], [2, 8, 9, 14]]

# K. Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011, section C: four observers, twelve units.
OBSERVERS: list[list[int | None]] = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
UNITS = [[grade for grade in column if grade is not None] for column in zip(*OBSERVERS, strict=True)]


def pairs(table: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return the pairs of grades that a table counts: a row per grade of the first annotator."""
    return [
        (first, second)
        for first, row in enumerate(table)
        for second, count in enumerate(row)
        for _ in range(count)
    ]


def test_cohens_own_example() -> None:
    assert len(pairs(DIAGNOSES)) == 200
    assert round(cohen_kappa(pairs(DIAGNOSES)), 3) == 0.492


@pytest.mark.parametrize(("gravity", "printed"), [(GRAVITY, 0.348), (GRAVITY_ONE_WAY, 0.353)])
def test_cohens_own_example_with_weights(gravity: list[list[int]], printed: float) -> None:
    kappa = cohen_kappa(pairs(DIAGNOSES), lambda first, second: float(gravity[first][second]))
    assert round(kappa, 3) == printed


@pytest.mark.parametrize(
    ("table", "weights", "printed"),
    [
        (MAMMOGRAMS, Weights.none, 0.4728),
        (MAMMOGRAMS, Weights.linear, 0.5684),
        (MAMMOGRAMS, Weights.quadratic, 0.6714),
        (COUPLES, Weights.none, 0.1293),
        (COUPLES, Weights.linear, 0.2374),
    ],
)
def test_examples_of_linear_and_quadratic_weights(
    table: list[list[int]], weights: Weights, printed: float
) -> None:
    assert round(cohen_kappa(pairs(table), weights), 4) == printed


@pytest.mark.parametrize(
    ("level", "printed"), [(Level.nominal, 0.743), (Level.ordinal, 0.815), (Level.interval, 0.849)]
)
def test_krippendorffs_own_example(level: Level, printed: float) -> None:
    assert round(krippendorff_alpha(UNITS, level), 3) == printed


def test_krippendorffs_binary_example() -> None:
    # The same text, section A: two observers, ten units, alpha 0.095.
    meg = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    owen = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    units = [list(unit) for unit in zip(meg, owen, strict=True)]
    assert round(krippendorff_alpha(units, Level.nominal), 3) == 0.095


def test_krippendorffs_nominal_example() -> None:
    # The same text, section B: two observers, twelve units, five values, alpha 0.692.
    ben, gerry = "aabbdcccedda", "babbbccceddd"
    units = [list(map(ord, unit)) for unit in zip(ben, gerry, strict=True)]
    assert round(krippendorff_alpha(units, Level.nominal), 3) == 0.692


def test_kappa_of_a_table_computed_by_hand() -> None:
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: agreement .7, by chance .5, kappa (.7 - .5) / (1 - .5).
    by_hand = pairs([[15, 10], [5, 20]])
    assert cohen_kappa(by_hand) == pytest.approx(0.4, abs=1e-12)
    for weights in Weights:  # with two grades all weights are equal
        assert cohen_kappa(by_hand, weights) == pytest.approx(0.4, abs=1e-12)


def test_agreement_is_undefined_without_shared_documents_or_without_differences() -> None:
    assert math.isnan(cohen_kappa([]))
    assert math.isnan(cohen_kappa([(1, 1), (1, 1)]))
    assert math.isnan(krippendorff_alpha([]))
    assert math.isnan(krippendorff_alpha([[1], [2]]))
    assert math.isnan(krippendorff_alpha([[1, 1], [1, 1]]))


def test_annotators_with_constant_and_different_grades_agree_by_chance() -> None:
    # Expected and observed disagreement are equal where one annotator always grades 0, the other 1.
    assert [cohen_kappa([(0, 1)] * 9, weights) for weights in Weights] == [0, 0, 0]


def test_perfect_agreement_is_1() -> None:
    assert cohen_kappa([(0, 0), (3, 3)], Weights.quadratic) == 1
    assert krippendorff_alpha([[0, 0], [3, 3, 3]], Level.ordinal) == 1


def test_only_documents_that_both_annotators_graded_are_paired() -> None:
    grades = {"b": {"d1": 1, "d2": 0}, "a": {"d2": 2, "d3": 1}}
    assert shared_grades(grades) == {("a", "b"): [(2, 0)]}
