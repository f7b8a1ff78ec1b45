"""Weights of characteristic terms of check-worthy lines."""

from __future__ import annotations

import math

import pytest

from searchapp.tasks.checkthat.task import COPIES, TermCounts


def counted(*texts: tuple[str, bool]) -> TermCounts:
    counts = TermCounts()
    for text, relevant in texts:
        counts.add(text.split(), relevant)
    return counts


TEXTS = [("tax percent", True), ("tax percent the", True), ("the tax", False), *[("the a", False)] * 6]


def test_weights_are_those_of_robertson_and_spaerck_jones() -> None:
    counts = counted(*TEXTS)
    # 2 of 2 relevant texts have "tax", and 1 of 7 others.
    assert counts.weight("tax") == pytest.approx(math.log((2.5 / 0.5) / (1.5 / 6.5)))
    assert counts.weight("the") < 0 < counts.weight("percent")


def test_terms_are_repeated_in_the_query_by_their_weight() -> None:
    counts = counted(*TEXTS)
    query = counts.query(10)
    assert set(query) == {"tax", "percent"}  # "the" is in only one relevant text
    idf = math.log(1 + (9 - 2 + 0.5) / (2 + 0.5))
    assert query.count("percent") == round(COPIES * counts.weight("percent") / idf)
    assert query[0] == "percent" and set(counts.query(1)) == {"percent"}


def test_a_term_counts_once_per_text() -> None:
    assert counted(("tax tax", True)).containing_relevant["tax"] == 1


def test_counts_can_be_added_and_subtracted() -> None:
    first, second = counted(*TEXTS[:2]), counted(*TEXTS[2:])
    both = counted(*TEXTS[:2])
    both.include(second)
    assert both == counted(*TEXTS)
    assert both.without(second) == first


def test_terms_with_a_negative_weight_are_not_in_the_query() -> None:
    counts = counted(("a x", True), ("a x", True), ("x", True), *[("a", False)] * 20)
    assert counts.weight("a") < 0
    assert "a" not in counts.query(10)
