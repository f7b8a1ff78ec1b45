"""Tests against SciPy and statsmodels, which others have checked, and against what must hold whatever the values."""

from __future__ import annotations

import itertools
import math
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


def exact(expected: Any, *, nan_ok: bool = False) -> Any:
    """What equals a value to 1e-12."""
    return pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=nan_ok)


values = st.lists(st.integers(0, 1000).map(lambda number: number / 1000), min_size=2, max_size=60)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Values, Values]:
    first = draw(values)
    second = draw(
        st.lists(st.integers(0, 1000).map(lambda one: one / 1000), min_size=len(first), max_size=len(first))
    )
    return np.array(first), np.array(second)


def drawn(count: int, seed: int = 7) -> tuple[Values, Values]:
    """Values of two runs on so many topics, as average precisions may be: some of them 0 for both."""
    random = np.random.default_rng(seed)
    first = random.beta(0.6, 1.5, count)
    second = np.clip(first + random.normal(0.03, 0.2, count), 0, 1)
    second[::5], first[::5] = 0, 0
    return first, second


@given(pairs())
def test_the_t_test_is_that_of_scipy_and_of_statsmodels(both: tuple[Values, Values]) -> None:
    from statsmodels.stats.weightstats import DescrStatsW

    first, second = both
    differences = second - first
    assume(np.ptp(differences) > 1e-6)
    found, expected = t_test(differences), scipy.stats.ttest_rel(second, first)
    assert (found.statistic, found.p) == exact((expected.statistic, expected.pvalue))
    assert found.degrees == expected.df
    statistic, p, degrees = DescrStatsW(differences).ttest_mean(0)
    assert (found.statistic, found.p, found.degrees) == exact((statistic, p, degrees))


@given(pairs())
def test_the_wilcoxon_test_is_that_of_scipy_without_the_topics_that_tie(both: tuple[Values, Values]) -> None:
    differences = np.round(both[1] - both[0], DECIMALS)
    assume(differences.any())
    found = wilcoxon(both[1] - both[0])
    method = "exact" if found.exact else "asymptotic"
    expected = scipy.stats.wilcoxon(differences[differences != 0], zero_method="wilcox", method=method)
    assert (found.statistic, found.p) == exact((expected.statistic, expected.pvalue))
    assert found.counted == np.count_nonzero(differences)


def test_the_exact_wilcoxon_test_goes_through_all_sign_vectors() -> None:
    differences = [0.1, -0.25, 0.3, 0.42, 0.0, 0.5]
    ranks = [1, 2, 3, 4, 5]
    sums = [sum(itertools.compress(ranks, signs)) for signs in itertools.product((0, 1), repeat=5)]
    found = wilcoxon(differences)
    assert (found.exact, found.statistic) == (True, 2)
    assert found.p == exact(2 * sum(one <= 2 for one in sums) / 32)


@given(st.lists(st.integers(-1000, 1000).map(lambda one: one / 1000), min_size=1, max_size=9))
def test_the_randomisation_test_of_few_topics_is_exact(differences: list[float]) -> None:
    seen = abs(math.fsum(differences))
    sums = [
        math.fsum(sign * one for sign, one in zip(signs, differences, strict=True))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    found = randomisation_test(differences)
    assert found.exact and found.error == 0
    assert found.p == sum(abs(one) >= seen - 1e-12 for one in sums) / len(sums)


def test_the_exact_randomisation_test_is_that_of_scipy() -> None:
    first, second = drawn(14)
    differences = second - first
    found = randomisation_test(differences)
    moving = differences[differences != 0]
    expected = scipy.stats.permutation_test(
        (moving,),
        lambda one, axis: one.mean(axis),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    )
    assert found.exact and found.permutations == 2 ** len(moving)
    assert found.p == exact(expected.pvalue)


@pytest.mark.parametrize("count", [17, 20, 23])
def test_drawn_permutations_come_near_to_all_of_them(count: int) -> None:
    random = np.random.default_rng(count)
    differences = random.normal(0.1, 0.3, count)
    exact = randomisation_test(differences, permutations=2**count)
    near = randomisation_test(differences)
    assert exact.exact and not near.exact and near.permutations == 100_000
    # Four standard errors: a wrong test is much further off, a right one of this seed is not.
    assert abs(near.p - exact.p) < 4 * near.error


def test_drawn_permutations_come_near_to_those_of_scipy() -> None:
    differences = np.subtract(*reversed(drawn(300)))
    found = randomisation_test(differences)
    expected = scipy.stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        n_resamples=20_000,
        rng=np.random.default_rng(3),
        batch=1000,
    )
    error = math.sqrt(expected.pvalue * (1 - expected.pvalue) / 20_000)
    assert abs(found.p - expected.pvalue) < 4 * math.hypot(found.error, error)


def test_a_p_value_of_drawn_permutations_is_never_0() -> None:
    assert randomisation_test(np.full(100, 0.5), 999).p == 1 / 1000


def test_the_interval_is_that_of_scipy() -> None:
    for seed in range(3):
        first, second = drawn(120, seed)
        differences = np.sort(second - first)
        expected = scipy.stats.bootstrap(
            (differences,), np.mean, n_resamples=2_000, method="BCa", rng=np.random.default_rng(11), batch=100
        ).confidence_interval
        if differences.mean() < 0:
            continue
        found = bootstrap_interval(second - first, resamples=2_000, seed=11)
        assert (found.low, found.high) == exact((expected.low, expected.high))


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(5)
    covered = 0
    for _ in range(300):
        interval = bootstrap_interval(random.normal(0.1, 0.3, 40), resamples=1_000)
        covered += interval.low <= 0.1 <= interval.high
    assert 0.90 < covered / 300 < 0.99


@given(pairs())
def test_swapping_the_runs_negates_what_has_a_sign_and_leaves_the_rest(both: tuple[Values, Values]) -> None:
    differences = both[1] - both[0]
    one, other = t_test(differences), t_test(-differences)
    assert (one.p, one.statistic) == exact((other.p, -other.statistic), nan_ok=True)
    assert wilcoxon(differences) == wilcoxon(-differences)
    assert randomisation_test(differences, 500).p == randomisation_test(-differences, 500).p
    assert effect_size(differences) == exact(-effect_size(-differences), nan_ok=True)
    counted, swapped = outcomes(differences), outcomes(-differences)
    assert (counted.wins, counted.ties, counted.losses) == (swapped.losses, swapped.ties, swapped.wins)
    assume(abs(math.fsum(differences)) > 1e-9)
    interval, mirrored = bootstrap_interval(differences, 200), bootstrap_interval(-differences, 200)
    assert (interval.low, interval.high) == exact((-mirrored.high, -mirrored.low))


@given(pairs(), st.randoms(use_true_random=False))
def test_the_order_of_the_topics_does_not_matter(both: tuple[Values, Values], random: Any) -> None:
    names = [str(number) for number in range(len(both[0]))]
    first, second = (dict(zip(names, map(float, one), strict=True)) for one in both)
    random.shuffle(names)
    mixed = paired({name: first[name] for name in names}, {name: second[name] for name in names})
    one = pair_tests(paired(first, second), permutations=300, resamples=100)
    other = pair_tests(mixed, permutations=300, resamples=100)
    assert one.p_values == pytest.approx(other.p_values, nan_ok=True)
    assert one.mean == exact(other.mean)
    assert (one.interval.low, one.interval.high) == pytest.approx(
        (other.interval.low, other.interval.high), abs=1e-9
    )


@given(pairs(), st.integers(-500, 500))
def test_what_is_added_to_both_runs_changes_nothing(both: tuple[Values, Values], shift: int) -> None:
    names = [str(number) for number in range(len(both[0]))]
    first, second = (dict(zip(names, map(float, one), strict=True)) for one in both)
    moved = [{name: value + shift / 1000 for name, value in one.items()} for one in (first, second)]
    one = pair_tests(paired(first, second), permutations=300, resamples=100)
    other = pair_tests(paired(*moved), permutations=300, resamples=100)
    assert one.p_values == pytest.approx(other.p_values, nan_ok=True, rel=1e-6, abs=1e-9)
    assert one.outcomes == other.outcomes


def test_runs_that_differ_on_no_topic_have_a_p_value_of_1() -> None:
    same = dict.fromkeys("abc", 0.5)
    found = pair_tests(paired(same, same))
    assert found.p_values == {"t-test": 1, "wilcoxon": 1, "randomisation": 1}
    assert (found.mean, found.effect, found.outcomes) == (0, 0, Outcomes(0, 3, 0))
    assert (found.interval.low, found.interval.high) == (0, 0)


def test_without_topics_nothing_has_a_value_and_nothing_fails() -> None:
    found = pair_tests(paired({}, {}))
    assert all(map(math.isnan, (*found.p_values.values(), found.mean, found.effect, found.interval.low)))
    assert found.outcomes == Outcomes(0, 0, 0)


def test_one_topic_tells_nothing() -> None:
    found = pair_tests(paired({"a": 0.25}, {"a": 0.75}))
    assert (found.mean, found.randomisation.p, found.wilcoxon.p) == (0.5, 1, 1)
    assert math.isnan(found.t_test.p) and math.isnan(found.effect) and math.isnan(found.interval.low)


def test_a_difference_that_never_varies_has_no_t_test() -> None:
    found = pair_tests(paired({"a": 0.0, "b": 0.25, "c": 0.5}, {"a": 0.5, "b": 0.75, "c": 1.0}))
    assert math.isnan(found.t_test.p) and math.isnan(found.effect)
    assert found.randomisation.p == 0.25
    assert found.interval == Interval(0.5, 0.5)


def test_topics_that_only_one_run_has_a_value_for_are_named_and_left_out() -> None:
    found = paired(
        {"a": 0.5, "b": None, "c": math.nan, "d": 1.0, "e": 0.0}, {"a": 0.25, "b": 0.5, "e": 1.0, "f": 0.0}
    )
    assert (found.topics, found.only_first, found.only_second) == (("a", "e"), ("d",), ("b", "f"))
    assert found.differences.tolist() == [-0.25, 1.0]


def test_differences_of_rounding_alone_are_ties() -> None:
    found = pair_tests(paired({"a": 0.1 + 0.2, "b": 0.5}, {"a": 0.3, "b": 0.75}))
    assert found.outcomes == Outcomes(1, 1, 0) and found.wilcoxon.counted == 1


def test_the_randomisation_test_needs_a_permutation() -> None:
    with pytest.raises(ValueError, match="at least one"):
        randomisation_test([0.5], 0)


def test_difficulty_is_by_how_many_runs_a_topic_is_solved() -> None:
    runs: list[dict[str, float | None]] = [{"a": 1.0, "b": 0.5, "c": None}, {"a": 0.5, "b": 0.49, "d": 1.0}]
    assert successful_runs(runs, 0.5) == {"a": 2, "b": 1, "c": 0, "d": 1}
