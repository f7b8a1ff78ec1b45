"""Worked examples from the literature, and scikit-learn's and krippendorff's figures where they can be had."""

from __future__ import annotations

import math

import pytest

from searchapp.judging.agreement import Level, Weights, cohen_kappa, krippendorff_alpha, pairs_of

# K. Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011, section C: four observers, twelve units.
OBSERVERS: list[list[int | None]] = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
UNITS = [[grade for grade in column if grade is not None] for column in zip(*OBSERVERS, strict=True)]


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


def test_a_kappa_that_one_can_compute_by_hand() -> None:
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: agreement .7, by chance .5, kappa (.7 - .5) / (1 - .5).
    pairs = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    assert cohen_kappa(pairs) == pytest.approx(0.4, abs=1e-12)
    for weights in Weights:  # with two grades all weights are the same
        assert cohen_kappa(pairs, weights) == pytest.approx(0.4, abs=1e-12)


def test_nothing_can_be_said_without_opinions_or_without_differences() -> None:
    assert math.isnan(cohen_kappa([]))
    assert math.isnan(cohen_kappa([(1, 1), (1, 1)]))
    assert math.isnan(krippendorff_alpha([]))
    assert math.isnan(krippendorff_alpha([[1], [2]]))
    assert math.isnan(krippendorff_alpha([[1, 1], [1, 1]]))


def test_perfect_agreement_is_1() -> None:
    assert cohen_kappa([(0, 0), (3, 3)], Weights.quadratic) == 1
    assert krippendorff_alpha([[0, 0], [3, 3, 3]], Level.ordinal) == 1


def test_only_what_both_have_graded_is_paired() -> None:
    grades = {"b": {"d1": 1, "d2": 0}, "a": {"d2": 2, "d3": 1}}
    assert pairs_of(grades) == {("a", "b"): [(2, 0)]}
