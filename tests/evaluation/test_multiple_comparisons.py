from __future__ import annotations

import itertools
import math
from typing import Any
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


def exact(expected: Any, *, nan_ok: bool = False) -> Any:
    """What equals a value to 1e-12."""
    return pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=nan_ok)


p_values = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def drawn(topics: int, runs: int, seed: int = 3) -> Values:
    random = np.random.default_rng(seed)
    easy = random.beta(0.7, 1.2, (topics, 1))
    return np.clip(easy + random.normal(0, 0.2, (topics, runs)) + np.linspace(0, 0.1, runs), 0, 1)


@given(p_values)
def test_corrections_are_those_of_statsmodels(given_p: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    # Theirs searches for garbage each time: a third of a second among all that a process of the tests has read.
    with mock.patch("gc.collect"):
        theirs = [multipletests(given_p, method=method)[1].tolist() for method in ("holm", "fdr_bh")]
    assert [holm(given_p), benjamini_hochberg(given_p)] == [exact(theirs[0]), exact(theirs[1])]


@given(p_values)
def test_a_corrected_p_value_is_no_smaller_and_keeps_the_order(given_p: list[float]) -> None:
    for corrected in (holm(given_p), benjamini_hochberg(given_p)):
        assert all(one >= p - 1e-15 for one, p in zip(corrected, given_p, strict=True))
        by_p = [one for _, one in sorted(zip(given_p, corrected, strict=True))]
        assert by_p == sorted(by_p) and max(by_p) <= 1


def test_what_was_not_tested_counts_nowhere() -> None:
    with_gap = [0.01, math.nan, 0.04]
    for correct in (holm, benjamini_hochberg):
        found = correct(with_gap)
        assert math.isnan(found[1])
        assert [found[0], found[2]] == correct([0.01, 0.04])
    assert holm([]) == benjamini_hochberg([]) == []


@pytest.mark.parametrize(("topics", "runs"), [(2, 2), (10, 3), (50, 5)])
def test_tukey_is_that_of_a_two_way_analysis_of_variance(topics: int, runs: int) -> None:
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
    found = tukey(values)
    assert found.degrees == table.loc["Residual", "df"]
    assert found.error == pytest.approx(error, rel=1e-9)
    means = values.mean(axis=0)
    for (one, other), p in found.p.items():
        q = abs(means[one] - means[other]) / math.sqrt(found.error / topics)
        assert p == exact(float(scipy.stats.studentized_range.sf(q, runs, found.degrees)))
    # What the means must differ by is where the p-value is what is left of the level.
    assert float(
        scipy.stats.studentized_range.sf(found.margin / math.sqrt(found.error / topics), runs, found.degrees)
    ) == (pytest.approx(0.05, rel=1e-6))


def test_tukey_of_two_runs_is_the_paired_t_test() -> None:
    values = drawn(40, 2)
    found = tukey(values).p[0, 1]
    assert found == pytest.approx(float(scipy.stats.ttest_rel(values[:, 0], values[:, 1]).pvalue), rel=1e-6)


def test_randomised_tukey_of_few_topics_comes_near_to_all_permutations() -> None:
    values = drawn(4, 3)
    orders = list(itertools.permutations(range(3)))
    ranges = np.array(
        [
            np.ptp(np.mean([values[topic, list(order)] for topic, order in enumerate(chosen)], axis=0))
            for chosen in itertools.product(orders, repeat=4)
        ]
    )
    found = randomised_tukey(values)
    means = values.mean(axis=0)
    for (one, other), p in found.p.items():
        exact = float((ranges >= abs(means[one] - means[other]) - 1e-12).mean())
        assert abs(p - exact) < 4 * math.sqrt(exact * (1 - exact) / found.trials) + 1 / found.trials


def test_randomised_tukey_comes_near_to_tukey_where_its_assumptions_hold() -> None:
    random = np.random.default_rng(8)
    values = random.normal(0, 1, (200, 1)) + random.normal(0, 1, (200, 4)) + np.array([0, 0.05, 0.1, 0.3])
    parametric, randomised = tukey(values).p, randomised_tukey(values).p
    assert all(abs(parametric[pair] - randomised[pair]) < 0.03 for pair in parametric)


def test_the_order_of_runs_and_topics_does_not_matter_to_randomised_tukey() -> None:
    values = drawn(30, 3)
    found = randomised_tukey(values, 500).p
    swapped = randomised_tukey(values[::-1, ::-1], 500).p
    assert [found[0, 1], found[0, 2], found[1, 2]] == [swapped[1, 2], swapped[0, 2], swapped[0, 1]]


def test_runs_that_never_differ_have_a_p_value_of_1() -> None:
    values = np.repeat(np.array([[0.1], [0.5], [0.9]]), 3, axis=1)
    assert set(tukey(values).p.values()) == {1.0} == set(randomised_tukey(values, 50).p.values())


def test_too_few_topics_or_no_variance_have_no_tukey() -> None:
    assert all(map(math.isnan, tukey(np.array([[0.1, 0.5]])).p.values()))
    assert all(map(math.isnan, tukey(np.array([[0.1, 0.5], [0.2, 0.6]])).p.values()))
    assert all(map(math.isnan, randomised_tukey(np.empty((0, 2))).p.values()))
    with pytest.raises(ValueError, match="at least one"):
        randomised_tukey(np.zeros((2, 2)), 0)


def test_blocks_are_the_topics_that_every_run_has_a_value_for() -> None:
    topics, values = blocks([{"a": 0.5, "b": 1.0, "c": None}, {"b": 0.25, "a": 0.0, "c": 1.0}])
    assert topics == ("a", "b") and values.tolist() == [[0.5, 0.0], [1.0, 0.25]]
    assert blocks([])[1].shape == (0, 0)
