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


def test_a_weight_is_that_of_robertson_and_spaerck_jones() -> None:
    counts = counted(*TEXTS)
    # 2 of 2 relevant texts have "tax", and 1 of 7 others.
    assert counts.weight("tax") == pytest.approx(math.log((2.5 / 0.5) / (1.5 / 6.5)))
    assert counts.weight("the") < 0 < counts.weight("percent")


def test_terms_stand_in_the_query_as_often_as_they_weigh() -> None:
    counts = counted(*TEXTS)
    query = counts.query(10)
    assert set(query) == {"tax", "percent"}  # "the" is in one relevant text alone
    idf = math.log(1 + (9 - 2 + 0.5) / (2 + 0.5))
    assert query.count("percent") == round(COPIES * counts.weight("percent") / idf)
    assert query[0] == "percent" and set(counts.query(1)) == {"percent"}


def test_a_term_counts_once_a_text() -> None:
    assert counted(("tax tax", True)).containing_relevant["tax"] == 1


def test_counts_can_be_taken_away_and_added() -> None:
    one, other = counted(*TEXTS[:2]), counted(*TEXTS[2:])
    both = counted(*TEXTS[:2])
    both.include(other)
    assert both == counted(*TEXTS)
    assert both.without(other) == one


def test_a_negative_weight_adds_nothing() -> None:
    counts = counted(("a x", True), ("a x", True), ("x", True), *[("a", False)] * 20)
    assert counts.weight("a") < 0
    assert "a" not in counts.query(10)
