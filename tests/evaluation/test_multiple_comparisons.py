"""Tests of several runs equal statsmodels and SciPy."""

from __future__ import annotations

import itertools
import math
from unittest import mock

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from searchapp.evaluation.significance import (
    Values,
    benjamini_hochberg,
    blocks,
    holm,
    randomised_tukey,
    tukey,
)
from tests.evaluation.conftest import exact

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def drawn(topics: int, runs: int, seed: int = 3) -> Values:
    random = np.random.default_rng(seed)
    easy = random.beta(0.7, 1.2, (topics, 1))
    return np.clip(easy + random.normal(0, 0.2, (topics, runs)) + np.linspace(0, 0.1, runs), 0, 1)


@given(p_values)
def test_corrections_equal_statsmodels(uncorrected: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    # The library collects garbage on each call, which takes a third of a second with all test modules loaded.
    with mock.patch("gc.collect"):
        expected = [multipletests(uncorrected, method=method)[1].tolist() for method in ("holm", "fdr_bh")]
    assert [holm(uncorrected), benjamini_hochberg(uncorrected)] == list(map(exact, expected))


@given(p_values)
def test_corrected_p_values_are_not_smaller_and_keep_their_order(uncorrected: list[float]) -> None:
    for corrected in (holm(uncorrected), benjamini_hochberg(uncorrected)):
        assert all(after >= before - 1e-15 for after, before in zip(corrected, uncorrected, strict=True))
        by_p = [p for _, p in sorted(zip(uncorrected, corrected, strict=True))]
        assert by_p == sorted(by_p) and max(by_p) <= 1


def test_missing_p_values_are_ignored() -> None:
    with_gap = [0.01, math.nan, 0.04]
    for correct in (holm, benjamini_hochberg):
        result = correct(with_gap)
        assert math.isnan(result[1])
        assert [result[0], result[2]] == correct([0.01, 0.04])
    assert holm([]) == benjamini_hochberg([]) == []


@pytest.mark.parametrize(("topics", "runs"), [(2, 2), (10, 3), (50, 5)])
def test_tukey_equals_a_two_way_analysis_of_variance(topics: int, runs: int) -> None:
    import pandas as pd
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    values = drawn(topics, runs)
    rows = [
        {"value": values[topic, run], "topic": f"t{topic}", "run": f"r{run}"}
        for topic in range(topics)
        for run in range(runs)
    ]
    table = anova_lm(ols("value ~ C(topic) + C(run)", data=pd.DataFrame(rows)).fit())
    error = float(table.loc["Residual", "sum_sq"] / table.loc["Residual", "df"])
    result = tukey(values)
    assert result.degrees == table.loc["Residual", "df"]
    assert result.error == pytest.approx(error, rel=1e-9)
    means = values.mean(axis=0)
    for (first, second), p in result.p.items():
        q = abs(means[first] - means[second]) / math.sqrt(result.error / topics)
        assert p == exact(float(scipy.stats.studentized_range.sf(q, runs, result.degrees)))
    # Means that differ by the margin have a p-value of .05.
    margin = result.margin / math.sqrt(result.error / topics)
    p = float(scipy.stats.studentized_range.sf(margin, runs, result.degrees))
    assert p == pytest.approx(0.05, rel=1e-6)


def test_tukey_of_two_runs_equals_the_paired_t_test() -> None:
    values = drawn(40, 2)
    expected = float(scipy.stats.ttest_rel(values[:, 0], values[:, 1]).pvalue)
    assert tukey(values).p[0, 1] == pytest.approx(expected, rel=1e-6)


def test_randomised_tukey_approximates_all_permutations_of_few_topics() -> None:
    values = drawn(4, 3)
    orders = list(itertools.permutations(range(3)))
    ranges = np.array(
        [
            np.ptp(np.mean([values[topic, list(order)] for topic, order in enumerate(permutation)], axis=0))
            for permutation in itertools.product(orders, repeat=4)
        ]
    )
    result = randomised_tukey(values)
    means = values.mean(axis=0)
    for (first, second), p in result.p.items():
        expected = float((ranges >= abs(means[first] - means[second]) - 1e-12).mean())
        assert (
            abs(p - expected) < 4 * math.sqrt(expected * (1 - expected) / result.trials) + 1 / result.trials
        )


def test_randomised_tukey_approximates_tukey_where_its_assumptions_hold() -> None:
    random = np.random.default_rng(8)
    values = random.normal(0, 1, (200, 1)) + random.normal(0, 1, (200, 4)) + np.array([0, 0.05, 0.1, 0.3])
    parametric, randomised = tukey(values).p, randomised_tukey(values).p
    assert all(abs(parametric[pair] - randomised[pair]) < 0.03 for pair in parametric)


def test_randomised_tukey_is_independent_of_the_order_of_runs_and_topics() -> None:
    values = drawn(30, 3)
    result = randomised_tukey(values, 500).p
    swapped = randomised_tukey(values[::-1, ::-1], 500).p
    assert [result[0, 1], result[0, 2], result[1, 2]] == [swapped[1, 2], swapped[0, 2], swapped[0, 1]]


def test_equal_runs_have_a_p_value_of_1() -> None:
    values = np.repeat(np.array([[0.1], [0.5], [0.9]]), 3, axis=1)
    assert set(tukey(values).p.values()) == {1.0} == set(randomised_tukey(values, 50).p.values())


def test_tukey_is_undefined_for_too_few_topics_or_no_variance() -> None:
    assert all(map(math.isnan, tukey(np.array([[0.1, 0.5]])).p.values()))
    assert all(map(math.isnan, tukey(np.array([[0.1, 0.5], [0.2, 0.6]])).p.values()))
    assert all(map(math.isnan, randomised_tukey(np.empty((0, 2))).p.values()))
    with pytest.raises(ValueError, match="at least one"):
        randomised_tukey(np.zeros((2, 2)), 0)


def test_blocks_are_the_topics_with_a_value_in_every_run() -> None:
    topics, values = blocks([{"a": 0.5, "b": 1.0, "c": None}, {"b": 0.25, "a": 0.0, "c": 1.0}])
    assert topics == ("a", "b") and values.tolist() == [[0.5, 0.0], [1.0, 0.25]]
    assert blocks([])[1].shape == (0, 0)
