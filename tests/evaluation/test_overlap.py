"""Overlap of rankings: RBO, Kendall's tau and Jaccard."""

from __future__ import annotations

import itertools
import math

import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from searchapp.evaluation.overlap import TAU_DEPTH, jaccard, kendall_tau, overlap, rbo

PUBLISHED = [
    ("abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz", 0.9, 1.0),
    ("abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwxyz", 0.95, 1.0),
    ("abcdefghijklmnopqrstuvwxyz", "abcdefg", 0.9, 1.0),
    ("abcdefghijklmnopqrstuvwxyz", "abcdefg", 0.95, 1.0),
    ("abcde", "fghij", 0.9, 0.0),
    ("abcde", "fghij", 0.95, 0.0),
    ("abcdefg", "zcavwxy", 0.9, 0.28821728571428573),
    ("abcdefg", "zcavwxy", 0.95, 0.29073043675595234),
    ("abcde", "bacde", 0.9, 0.9),
    ("abcde", "bacde", 0.95, 0.95),
    ("abcde", "abced", 0.9, 0.981775),
    ("abcde", "abced", 0.95, 0.9892828124999999),
    ("a", "a", 0.9, 1.0),
    ("a", "a", 0.95, 1.0),
    ("a", "b", 0.9, 0.0),
    ("a", "b", 0.95, 0.0),
    ("", "", 0.9, 1.0),
    ("", "", 0.95, 1.0),
    ("a", "", 0.9, 0.0),
    ("a", "", 0.95, 0.0),
    ("", "a", 0.9, 0.0),
    ("", "a", 0.95, 0.0),
    ("hsr", "eltpuscaw", 0.9, 0.0712419155357143),
    ("irhgpyuvmexk", "eqmxa", 0.9, 0.10049343980522729),
    ("vycfsbjaipmlqgnthxwz", "bepginjuqmlvtwsdfayhxzckor", 0.9, 0.33473219148795746),
    ("usijdcptzlrgyaeokbmqwhvnxf", "qhbjacdrxgnewouvfpistymlzk", 0.9, 0.34229482267289824),
    ("tqinuhjw", "iqjrkans", 0.9, 0.45089350714285714),
    ("k", "amtsuebkolqjpvnhzricgdfyxw", 0.9, 0.03565674717373142),
]
"""Results of `rbo_ext` of rbo 0.1.3 for the lists of its tests and some lists of unequal lengths.

They are recorded because the package can't be installed together with NumPy 2.
"""

rankings = st.lists(st.integers(0, 40).map(str), unique=True, max_size=30)


@pytest.mark.parametrize(("first", "second", "persistence", "expected"), PUBLISHED)
def test_rbo_equals_a_published_implementation(
    first: str, second: str, persistence: float, expected: float
) -> None:
    assert rbo(first, second, persistence) == pytest.approx(expected, abs=1e-12)


def by_definition(first: list[str], second: list[str], persistence: float) -> float:
    """Compute equation 32 of the paper term by term."""
    shorter, longer = sorted((first, second), key=len)
    s, l = len(shorter), len(longer)  # noqa: E741

    def shared(depth: int) -> int:
        return len(set(shorter[:depth]) & set(longer[:depth]))

    sums = sum(shared(d) / d * persistence**d for d in range(1, l + 1))
    sums += sum(shared(s) * (d - s) / (s * d) * persistence**d for d in range(s + 1, l + 1))
    rest = ((shared(l) - shared(s)) / l + shared(s) / s) * persistence**l
    return (1 - persistence) / persistence * sums + rest


@given(rankings, rankings, st.sampled_from([0.5, 0.9, 0.98]))
def test_rbo_equals_its_definition(first: list[str], second: list[str], persistence: float) -> None:
    result = rbo(first, second, persistence)
    assert result == rbo(second, first, persistence) and 0 <= result <= 1
    if first and second:
        assert result == pytest.approx(by_definition(first, second, persistence), abs=1e-12)


def test_rbo_rejects_repeated_documents_and_an_invalid_persistence() -> None:
    with pytest.raises(ValueError, match="twice"):
        rbo("aa", "ab")
    with pytest.raises(ValueError, match="between 0 and 1"):
        rbo("a", "a", 1.0)


@given(rankings, rankings)
def test_tau_compares_the_documents_in_both_rankings(first: list[str], second: list[str]) -> None:
    shared = [document for document in first if document in second]
    result = kendall_tau(first, second)
    if len(shared) < 2:
        assert math.isnan(result)
        return
    ranks = [second.index(document) for document in shared]
    pairs = list(itertools.combinations(ranks, 2))
    concordant = sum(a < b for a, b in pairs)
    assert result == pytest.approx((2 * concordant - len(pairs)) / len(pairs), abs=1e-12)
    assert result == pytest.approx(scipy.stats.kendalltau(range(len(shared)), ranks).statistic, abs=1e-12)


def test_jaccard_compares_the_first_documents() -> None:
    assert jaccard("abcd", "abxy", 2) == 1.0
    assert jaccard("abcd", "abxy", 4) == 2 / 6
    assert jaccard("", "", 10) == 1.0 and jaccard("a", "", 10) == 0.0


def test_runs_are_compared_on_the_topics_in_both() -> None:
    result = overlap({"1": ["a", "b"], "2": ["a"], "3": ["c"]}, {"2": ["b"], "1": ["b", "a"], "4": ["c"]})
    assert (result.topics, result.same, result.tau, result.tau_topics) == (2, 0, -1.0, 1)
    assert result.rbo == pytest.approx((rbo("ab", "ba") + 0) / 2)
    assert result.jaccard[10] == (1.0 + 0.0) / 2
    deep = [str(number) for number in range(TAU_DEPTH + 50)]
    swapped = [*deep[:TAU_DEPTH], *reversed(deep[TAU_DEPTH:])]
    assert overlap({"1": deep}, {"1": swapped}).tau == 1.0  # documents after the depth are ignored


def test_overlap_is_undefined_without_shared_topics() -> None:
    result = overlap({"1": ["a"]}, {"2": ["a"]})
    assert result.topics == 0 and math.isnan(result.rbo) and math.isnan(result.tau)
