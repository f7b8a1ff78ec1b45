from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from searchapp.errors import QueryRefused
from searchapp.model import Hit, Hits, Topic
from searchapp.progress import Advance
from searchapp.ranking.recipes import load
from searchapp.ranking.signals.base import Inputs, Normalization, SignalRequest, TrainingTopics
from searchapp.ranking.signals.neighbours import vote_scores

GOLD = {"q1": {"a": 1.0, "b": 1.0}, "q2": {"b": 1.0}, "q3": {"c": 2.0}}


def test_answers_of_solved_topics_vote_by_how_near_the_topics_are() -> None:
    nearest = Hits.of(Hit("q1", 4.0), Hit("q2", 2.0), Hit("q3", 1.0))
    given = vote_scores(nearest, GOLD, power=2.0)
    # a: 1, b: 1 + 1/4, c: 2/16; as shares of the greatest, b
    assert given == pytest.approx({"a": 1 / 1.25, "b": 1.0, "c": 0.125 / 1.25})


def test_power_0_gives_each_solved_topic_the_same_vote() -> None:
    nearest = Hits.of(Hit("q1", 4.0), Hit("q2", 0.5))
    assert vote_scores(nearest, GOLD, power=0.0) == {"a": 0.5, "b": 1.0}


def test_votes_can_be_counted_in_scores_so_that_near_topics_weigh_more() -> None:
    nearest = Hits.of(Hit("q1", 4.0), Hit("q2", 2.0), Hit("q3", 1.0))
    given = vote_scores(nearest, GOLD, power=2.0, normalization=Normalization.none)
    assert given == {"a": 4.0, "b": 4.0 + 1.0, "c": 0.5}


@pytest.mark.parametrize("nearest", [Hits(), Hits.of(Hit("q1", 0.0)), Hits.of(Hit("unknown", 1.0))])
def test_there_may_be_no_votes(nearest: Hits) -> None:
    assert vote_scores(nearest, GOLD, power=1.0) == {}


def test_a_topic_does_not_vote_for_its_own_answers() -> None:
    nearest = Hits.of(Hit("q1", 4.0), Hit("q2", 2.0), Hit("q3", 1.0))
    assert vote_scores(nearest, GOLD, power=1.0, without="q1") == vote_scores(nearest[1:], GOLD, power=1.0)


class Index:
    """An index that answers every query with the same hits."""

    def search(self, bodies: Iterable[Any], advance: Advance) -> Iterator[Hits]:
        for body in bodies:
            if "refused" in str(body):
                raise QueryRefused("no", 0)
            advance(1)
            yield Hits.of(Hit("q1", 4.0), Hit("q2", 2.0), Hit("q3", 1.0))


def test_a_vote_is_explained_by_the_topics_that_gave_it() -> None:
    scorer = (
        load("nlps", "neighbours", {"power": 1})
        .signals[1]
        .prepare(
            Inputs(Index(), examples=lambda: TrainingTopics(Index(), GOLD))  # type: ignore[arg-type]
        )
    )
    asked = SignalRequest([Topic("q3", "x")], 10, Normalization.none)
    explained = scorer.explain(asked, "b")
    assert explained is not None
    assert (explained.value, [part.value for part in explained.details]) == (6.0, [1.0, 0.5])
    assert "votes of 2 of the 2 nearest training topics" in explained.description
    assert "q2" in explained.details[1].description
    assert scorer.explain(asked, "c") is None, "no topic votes for its own answers"
    (answer,) = scorer.answers(asked, lambda _done: None)
    assert dict(answer)["b"] == explained.value


def test_a_refused_query_names_the_topic() -> None:
    scorer = (
        load("nlps", "neighbours")
        .signals[1]
        .prepare(
            Inputs(Index(), examples=lambda: TrainingTopics(Index(), GOLD))  # type: ignore[arg-type]
        )
    )
    with pytest.raises(QueryRefused, match="topic 7: no"):
        list(
            scorer.answers(SignalRequest([Topic("7", "refused")], 10, Normalization.max), lambda _done: None)
        )
