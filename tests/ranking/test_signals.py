from __future__ import annotations

import pytest

from searchapp.model import Hit, Hits
from searchapp.ranking import signals

GOLD = {"q1": {"a": 1.0, "b": 1.0}, "q2": {"b": 1.0}, "q3": {"c": 2.0}}


def test_answers_of_solved_topics_vote_by_how_near_the_topics_are() -> None:
    nearest = Hits.of(Hit("q1", 4.0), Hit("q2", 2.0), Hit("q3", 1.0))
    votes = signals.votes(nearest, GOLD, power=2.0)
    # a: 1, b: 1 + 1/4, c: 2/16; as shares of the greatest, b
    assert votes == pytest.approx({"a": 1 / 1.25, "b": 1.0, "c": 0.125 / 1.25})


def test_power_0_gives_each_solved_topic_the_same_vote() -> None:
    nearest = Hits.of(Hit("q1", 4.0), Hit("q2", 0.5))
    assert signals.votes(nearest, GOLD, power=0.0) == {"a": 0.5, "b": 1.0}


def test_votes_can_be_counted_in_scores_so_that_near_topics_weigh_more() -> None:
    nearest = Hits.of(Hit("q1", 4.0), Hit("q2", 2.0), Hit("q3", 1.0))
    votes = signals.votes(nearest, GOLD, power=2.0, scale="scores")
    assert votes == {"a": 4.0, "b": 4.0 + 1.0, "c": 0.5}


@pytest.mark.parametrize("nearest", [Hits(), Hits.of(Hit("q1", 0.0)), Hits.of(Hit("unknown", 1.0))])
def test_there_may_be_no_votes(nearest: Hits) -> None:
    assert signals.votes(nearest, GOLD, power=1.0) == {}


def test_a_topic_does_not_vote_for_its_own_answers() -> None:
    nearest = Hits.of(Hit("q1", 4.0), Hit("q2", 2.0), Hit("q3", 1.0))
    assert signals.votes(nearest, GOLD, power=1.0, without="q1") == signals.votes(
        nearest[1:], GOLD, power=1.0
    )


def test_signals_are_added_where_they_speak() -> None:
    total = signals.added([(1.0, {"a": 1.0}), (0.5, {"a": 0.5, "b": 1.0})])
    assert total == {"a": 1.25, "b": 0.5}


def test_equal_float32_scores_are_ordered_by_the_bytes_of_the_ids() -> None:
    scores = {"10": 0.1, "9": 0.1 + 1e-12, "é": 0.1, "z": 0.1, "a": 0.5}
    assert signals.ranked(scores, 5).document_ids == ("a", "10", "9", "z", "é")
    assert signals.ranked(scores, 2, without="a").document_ids == ("10", "9")


def test_shares_are_of_the_first_score() -> None:
    assert signals.as_shares(Hits.of(Hit("a", 8.0), Hit("b", 2.0))) == {"a": 1.0, "b": 0.25}
    assert signals.as_shares(Hits.of(Hit("a", 0.0))) == {"a": 0.0}
    assert signals.as_shares(Hits()) == {}
