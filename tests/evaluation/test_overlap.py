from __future__ import annotations

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
"""What `rbo_ext` of the package rbo 0.1.3 gives for the lists of its own test, and for some of unequal lengths.

It can't be installed beside NumPy 2, so that its answers are written down here.
"""

rankings = st.lists(st.integers(0, 40).map(str), unique=True, max_size=30)


@pytest.mark.parametrize(("first", "second", "persistence", "expected"), PUBLISHED)
def test_rbo_is_that_of_a_published_implementation(
    first: str, second: str, persistence: float, expected: float
) -> None:
    assert rbo(first, second, persistence) == pytest.approx(expected, abs=1e-12)


def by_definition(first: list[str], second: list[str], persistence: float) -> float:
    """Equation 32 of the paper, term by term."""
    shorter, longer = sorted((first, second), key=len)
    s, l = len(shorter), len(longer)  # noqa: E741

    def shared(depth: int) -> int:
        return len(set(shorter[:depth]) & set(longer[:depth]))

    sums = sum(shared(d) / d * persistence**d for d in range(1, l + 1))
    sums += sum(shared(s) * (d - s) / (s * d) * persistence**d for d in range(s + 1, l + 1))
    rest = ((shared(l) - shared(s)) / l + shared(s) / s) * persistence**l
    return (1 - persistence) / persistence * sums + rest


@given(rankings, rankings, st.sampled_from([0.5, 0.9, 0.98]))
def test_rbo_is_what_its_definition_says(first: list[str], second: list[str], persistence: float) -> None:
    found = rbo(first, second, persistence)
    assert found == rbo(second, first, persistence) and 0 <= found <= 1
    if first and second:
        assert found == pytest.approx(by_definition(first, second, persistence), abs=1e-12)


def test_rbo_refuses_what_is_no_ranking() -> None:
    with pytest.raises(ValueError, match="twice"):
        rbo("aa", "ab")
    with pytest.raises(ValueError, match="between 0 and 1"):
        rbo("a", "a", 1.0)


@given(rankings, rankings)
def test_tau_is_that_of_the_documents_in_both(first: list[str], second: list[str]) -> None:
    shared = [one for one in first if one in second]
    found = kendall_tau(first, second)
    if len(shared) < 2:
        assert math.isnan(found)
        return
    pairs = [(a, b) for place, a in enumerate(shared) for b in shared[place + 1 :]]
    alike = sum(second.index(a) < second.index(b) for a, b in pairs)
    assert found == pytest.approx((2 * alike - len(pairs)) / len(pairs), abs=1e-12)
    assert found == pytest.approx(
        scipy.stats.kendalltau(range(len(shared)), [second.index(one) for one in shared]).statistic, abs=1e-12
    )


def test_jaccard_is_the_shared_part_of_the_first_documents() -> None:
    assert jaccard("abcd", "abxy", 2) == 1.0
    assert jaccard("abcd", "abxy", 4) == 2 / 6
    assert jaccard("", "", 10) == 1.0 and jaccard("a", "", 10) == 0.0


def test_two_runs_are_compared_on_the_topics_that_both_rank() -> None:
    found = overlap({"1": ["a", "b"], "2": ["a"], "3": ["c"]}, {"2": ["b"], "1": ["b", "a"], "4": ["c"]})
    assert (found.topics, found.same, found.tau, found.tau_topics) == (2, 0, -1.0, 1)
    assert found.rbo == pytest.approx((rbo("ab", "ba") + 0) / 2)
    assert found.jaccard[10] == (1.0 + 0.0) / 2
    deep = [str(number) for number in range(TAU_DEPTH + 50)]
    swapped = [*deep[:TAU_DEPTH], *reversed(deep[TAU_DEPTH:])]
    assert overlap({"1": deep}, {"1": swapped}).tau == 1.0  # what is behind is not looked at


def test_without_a_shared_topic_there_is_nothing_to_say() -> None:
    found = overlap({"1": ["a"]}, {"2": ["a"]})
    assert found.topics == 0 and math.isnan(found.rbo) and math.isnan(found.tau)
