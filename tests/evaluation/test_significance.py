"""Significance tests equal SciPy and statsmodels, and have invariants that hold for all values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import assume, given
from hypothesis import strategies as st

from searchapp.evaluation.significance import (
    DECIMALS,
    Interval,
    Outcomes,
    PairTests,
    Values,
    bootstrap_interval,
    effect_size,
    outcomes,
    pair_tests,
    paired,
    randomisation_test,
    successful_runs,
    t_test,
    wilcoxon,
)
from tests.evaluation.conftest import exact

thousandths = st.integers(0, 1000).map(lambda number: number / 1000)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Values, Values]:
    first = draw(st.lists(thousandths, min_size=2, max_size=60))
    second = draw(st.lists(thousandths, min_size=len(first), max_size=len(first)))
    return np.array(first), np.array(second)


def drawn(count: int, seed: int = 7) -> tuple[Values, Values]:
    """Return values of two runs that resemble average precisions; some are 0 in both runs."""
    random = np.random.default_rng(seed)
    first = random.beta(0.6, 1.5, count)
    second = np.clip(first + random.normal(0.03, 0.2, count), 0, 1)
    second[::5], first[::5] = 0, 0
    return first, second


@given(pairs())
def test_the_t_test_equals_scipy_and_statsmodels(runs: tuple[Values, Values]) -> None:
    from statsmodels.stats.weightstats import DescrStatsW

    first, second = runs
    differences = second - first
    assume(np.ptp(differences) > 1e-6)
    result, expected = t_test(differences), scipy.stats.ttest_rel(second, first)
    assert (result.statistic, result.p) == exact((expected.statistic, expected.pvalue))
    assert result.degrees == expected.df
    statistic, p, degrees = DescrStatsW(differences).ttest_mean(0)
    assert (result.statistic, result.p, result.degrees) == exact((statistic, p, degrees))


@given(pairs())
def test_the_wilcoxon_test_equals_scipy_without_ties(runs: tuple[Values, Values]) -> None:
    differences = np.round(runs[1] - runs[0], DECIMALS)
    assume(differences.any())
    result = wilcoxon(runs[1] - runs[0])
    method = "exact" if result.exact else "asymptotic"
    expected = scipy.stats.wilcoxon(differences[differences != 0], zero_method="wilcox", method=method)
    assert (result.statistic, result.p) == exact((expected.statistic, expected.pvalue))
    assert result.counted == np.count_nonzero(differences)


def test_the_exact_wilcoxon_test_counts_all_sign_vectors() -> None:
    differences = [0.1, -0.25, 0.3, 0.42, 0.0, 0.5]
    sums = [sum(itertools.compress((1, 2, 3, 4, 5), signs)) for signs in itertools.product((0, 1), repeat=5)]
    result = wilcoxon(differences)
    assert (result.exact, result.statistic) == (True, 2)
    assert result.p == exact(2 * sum(rank_sum <= 2 for rank_sum in sums) / 32)


@given(st.lists(st.integers(-1000, 1000).map(lambda number: number / 1000), min_size=1, max_size=9))
def test_the_randomisation_test_of_few_topics_is_exact(differences: list[float]) -> None:
    total = abs(math.fsum(differences))
    sums = [
        math.fsum(sign * difference for sign, difference in zip(signs, differences, strict=True))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    result = randomisation_test(differences)
    assert result.exact and result.error == 0
    assert result.p == sum(abs(permuted) >= total - 1e-12 for permuted in sums) / len(sums)


def test_the_exact_randomisation_test_equals_scipy() -> None:
    first, second = drawn(14)
    differences = second - first
    result = randomisation_test(differences)
    nonzero = differences[differences != 0]
    expected = scipy.stats.permutation_test(
        (nonzero,),
        lambda sample, axis: sample.mean(axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert result.exact and result.permutations == 2 ** len(nonzero)
    assert result.p == exact(expected.pvalue)


@pytest.mark.parametrize("count", [17, 20, 23])
def test_sampled_permutations_approximate_all_permutations(count: int) -> None:
    random = np.random.default_rng(count)
    differences = random.normal(0.1, 0.3, count)
    complete = randomisation_test(differences, permutations=2**count)
    sampled = randomisation_test(differences)
    assert complete.exact and not sampled.exact and sampled.permutations == 100_000
    # A wrong test would be off by more than four standard errors; a right one with this seed is not.
    assert abs(sampled.p - complete.p) < 4 * sampled.error


def test_sampled_permutations_approximate_scipy() -> None:
    differences = np.subtract(*reversed(drawn(300)))
    result = randomisation_test(differences)
    expected = scipy.stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        n_resamples=20_000,
        rng=np.random.default_rng(3),
        batch=1000,
    )
    error = math.sqrt(expected.pvalue * (1 - expected.pvalue) / 20_000)
    assert abs(result.p - expected.pvalue) < 4 * math.hypot(result.error, error)


def test_a_p_value_of_sampled_permutations_is_never_0() -> None:
    assert randomisation_test(np.full(100, 0.5), 999).p == 1 / 1000


def test_the_interval_equals_scipy() -> None:
    for seed in range(3):
        first, second = drawn(120, seed)
        differences = np.sort(second - first)
        expected = scipy.stats.bootstrap(
            (differences,), np.mean, n_resamples=2_000, method="BCa", rng=np.random.default_rng(11), batch=100
        ).confidence_interval
        if differences.mean() < 0:
            continue
        result = bootstrap_interval(second - first, resamples=2_000, seed=11)
        assert (result.low, result.high) == exact((expected.low, expected.high))


def test_the_interval_covers_the_true_mean_at_about_its_level() -> None:
    random = np.random.default_rng(5)
    covered = 0
    for _ in range(300):
        interval = bootstrap_interval(random.normal(0.1, 0.3, 40), resamples=1_000)
        covered += interval.low <= 0.1 <= interval.high
    assert 0.90 < covered / 300 < 0.99


@given(pairs())
def test_swapped_runs_negate_statistics_and_keep_p_values(runs: tuple[Values, Values]) -> None:
    differences = runs[1] - runs[0]
    test, swapped_test = t_test(differences), t_test(-differences)
    assert (test.p, test.statistic) == exact((swapped_test.p, -swapped_test.statistic), nan_ok=True)
    assert wilcoxon(differences) == wilcoxon(-differences)
    assert randomisation_test(differences, 500).p == randomisation_test(-differences, 500).p
    assert effect_size(differences) == exact(-effect_size(-differences), nan_ok=True)
    counted, swapped = outcomes(differences), outcomes(-differences)
    assert (counted.wins, counted.ties, counted.losses) == (swapped.losses, swapped.ties, swapped.wins)
    assume(abs(math.fsum(differences)) > 1e-9)
    interval, swapped_interval = bootstrap_interval(differences, 200), bootstrap_interval(-differences, 200)
    assert (interval.low, interval.high) == exact((-swapped_interval.high, -swapped_interval.low))


def by_topic(runs: tuple[Values, Values]) -> list[dict[str, float]]:
    return [{str(topic): float(value) for topic, value in enumerate(values)} for values in runs]


def fast_tests(first: Mapping[str, float], second: Mapping[str, float]) -> PairTests:
    return pair_tests(paired(first, second), permutations=300, resamples=100)


@given(pairs(), st.randoms(use_true_random=False))
def test_the_order_of_the_topics_does_not_matter(runs: tuple[Values, Values], random: Any) -> None:
    first, second = by_topic(runs)
    topics = list(first)
    random.shuffle(topics)
    shuffled = ({topic: run[topic] for topic in topics} for run in (first, second))
    before, after = fast_tests(first, second), fast_tests(*shuffled)
    assert before.p_values == pytest.approx(after.p_values, nan_ok=True)
    assert before.mean == exact(after.mean)
    assert astuple(before.interval) == pytest.approx(astuple(after.interval), abs=1e-9)


@given(pairs(), st.integers(-500, 500))
def test_a_constant_added_to_both_runs_changes_no_p_value(runs: tuple[Values, Values], shift: int) -> None:
    shifted = ({topic: value + shift / 1000 for topic, value in run.items()} for run in by_topic(runs))
    before, after = fast_tests(*by_topic(runs)), fast_tests(*shifted)
    assert before.p_values == pytest.approx(after.p_values, nan_ok=True, rel=1e-6, abs=1e-9)
    assert before.outcomes == after.outcomes


def test_equal_runs_have_a_p_value_of_1() -> None:
    same = dict.fromkeys("abc", 0.5)
    result = pair_tests(paired(same, same))
    assert result.p_values == {"t-test": 1, "wilcoxon": 1, "randomisation": 1}
    assert (result.mean, result.effect, result.outcomes) == (0, 0, Outcomes(0, 3, 0))
    assert (result.interval.low, result.interval.high) == (0, 0)


def test_all_values_are_nan_without_topics() -> None:
    result = pair_tests(paired({}, {}))
    assert all(map(math.isnan, (*result.p_values.values(), result.mean, result.effect, result.interval.low)))
    assert result.outcomes == Outcomes(0, 0, 0)


def test_no_test_of_one_topic_is_significant() -> None:
    result = pair_tests(paired({"a": 0.25}, {"a": 0.75}))
    assert (result.mean, result.randomisation.p, result.wilcoxon.p) == (0.5, 1, 1)
    assert math.isnan(result.t_test.p) and math.isnan(result.effect) and math.isnan(result.interval.low)


def test_the_t_test_of_a_constant_difference_is_undefined() -> None:
    result = pair_tests(paired({"a": 0.0, "b": 0.25, "c": 0.5}, {"a": 0.5, "b": 0.75, "c": 1.0}))
    assert math.isnan(result.t_test.p) and math.isnan(result.effect)
    assert result.randomisation.p == 0.25
    assert result.interval == Interval(0.5, 0.5)


def test_topics_with_a_value_in_one_run_are_listed_and_excluded() -> None:
    result = paired(
        {"a": 0.5, "b": None, "c": math.nan, "d": 1.0, "e": 0.0}, {"a": 0.25, "b": 0.5, "e": 1.0, "f": 0.0}
    )
    assert (result.topics, result.only_first, result.only_second) == (("a", "e"), ("d",), ("b", "f"))
    assert result.differences.tolist() == [-0.25, 1.0]


def test_rounding_errors_are_ties() -> None:
    result = pair_tests(paired({"a": 0.1 + 0.2, "b": 0.5}, {"a": 0.3, "b": 0.75}))
    assert result.outcomes == Outcomes(1, 1, 0) and result.wilcoxon.counted == 1


def test_the_randomisation_test_needs_a_permutation() -> None:
    with pytest.raises(ValueError, match="at least one"):
        randomisation_test([0.5], 0)


def test_successful_runs_are_counted_for_each_topic() -> None:
    runs: list[dict[str, float | None]] = [{"a": 1.0, "b": 0.5, "c": None}, {"a": 0.5, "b": 0.49, "d": 1.0}]
    assert successful_runs(runs, 0.5) == {"a": 2, "b": 1, "c": 0, "d": 1}
