"""Correlation of system rankings: tau-b equals SciPy's, tau-AP its definition, with ties the mean over their orders."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from searchapp.evaluation.rank_correlation import kendall_tau_b, tau_ap

few_values = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=5)


def orders(values: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield every ranking of the positions by descending values, with each order of equal values."""
    for order in itertools.permutations(range(len(values))):
        if all(values[above] >= values[below] for above, below in itertools.pairwise(order)):
            yield order


def by_definition(reference: Sequence[int], estimate: Sequence[int]) -> float:
    """Return tau-AP of two rankings without ties: equation 3 of Yilmaz, Aslam and Robertson."""
    correct = sum(
        sum(reference.index(above) < reference.index(estimate[rank]) for above in estimate[:rank]) / rank
        for rank in range(1, len(estimate))
    )
    return 2 * correct / (len(estimate) - 1) - 1


@given(few_values)
def test_both_equal_their_definitions(pairs: list[tuple[int, int]]) -> None:
    reference, estimate = zip(*pairs, strict=True)
    assume(len({*reference}) > 1 and len({*estimate}) > 1)
    both = [
        by_definition(first, second)
        for first, second in itertools.product(list(orders(reference)), list(orders(estimate)))
    ]
    assert tau_ap(reference, estimate) == pytest.approx(sum(both) / len(both), abs=1e-12)
    # Rounding of means must make no order of equal systems.
    noisy = [value / 10 + 1e-12 * place for place, value in enumerate(estimate)]
    assert tau_ap(reference, noisy) == pytest.approx(tau_ap(reference, estimate), abs=1e-12)
    assert kendall_tau_b(reference, noisy) == pytest.approx(stats.kendalltau(reference, estimate).statistic)


def test_errors_at_the_top_count_more_and_degenerate_rankings_have_no_value() -> None:
    truth = [5, 4, 3, 2, 1]
    top, bottom = [4, 5, 3, 2, 1], [5, 4, 3, 1, 2]
    assert (tau_ap(truth, truth), tau_ap(truth, truth[::-1])) == (1.0, -1.0)
    assert tau_ap(truth, top) == 0.5 and tau_ap(truth, bottom) == 0.875
    assert kendall_tau_b(truth, top) == kendall_tau_b(truth, bottom) == pytest.approx(0.8)
    for correlation in (tau_ap, kendall_tau_b):
        assert all(
            math.isnan(correlation(*pair)) for pair in (([1], [2]), ([1, 1], [1, 2]), ([1, 2], [1, 1]))
        )
