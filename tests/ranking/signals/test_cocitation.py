"""Documents that solved topics have beside the leading candidates, on a few whose counts are plain."""

from __future__ import annotations

import pytest

from searchapp.model import Hit, Hits, Topic
from searchapp.progress import no_progress
from searchapp.ranking.signals.base import Inputs, Normalization, SignalRequest, SignalScorer, TrainingTopics
from searchapp.ranking.signals.cocitation import Cocitation

GOLD = {
    "q1": {"group": 1.0, "subgroup": 1.0},
    "q2": {"group": 1.0, "subgroup": 1.0, "coset": 1.0},
    "q3": {"group": 1.0, "ring": 0.0},
    "q4": {"ring": 1.0, "coset": 1.0},
}
LEADING = Hits.of(Hit("group", 4.0), Hit("ring", 2.0), Hit("coset", 1.0))


def scorer(top: int = 2, damping: float = 1.0) -> SignalScorer:
    inputs = Inputs(None, examples=lambda: TrainingTopics(None, GOLD))  # type: ignore[arg-type]
    return Cocitation("c", top=top, damping=damping).prepare(inputs)


def asked(
    topic: str = "new", hits: Hits = LEADING, normalization: Normalization = Normalization.none
) -> SignalRequest:
    return SignalRequest([Topic(topic, "x")], 10, normalization, [hits])


def scores(of: SignalScorer, asked: SignalRequest) -> dict[str, float]:
    (answer,) = of.answers(asked, no_progress)
    return dict(answer)


def test_documents_beside_the_leading_ones_count_by_how_often_they_are_there() -> None:
    # group has three citations, two with subgroup and one with coset; ring has one, with coset, and half the share.
    assert scores(scorer(), asked()) == pytest.approx({"subgroup": 2 / 4, "coset": 1 / 4 + 0.5 / 2})
    assert scores(scorer(top=1), asked()) == pytest.approx({"subgroup": 2 / 4, "coset": 1 / 4})
    assert scores(scorer(damping=0), asked())["subgroup"] == pytest.approx(2 / 3)


def test_shares_are_of_the_greatest() -> None:
    assert scores(scorer(), asked(normalization=Normalization.max)) == pytest.approx(
        {"subgroup": 1.0, "coset": 1.0}
    )


def test_a_topic_does_not_vote_for_its_own_answers() -> None:
    assert scores(scorer(), asked("q4")) == pytest.approx({"subgroup": 2 / 4, "coset": 1 / 4})


@pytest.mark.parametrize("hits", [Hits(), Hits.of(Hit("group", 0.0)), Hits.of(Hit("unknown", 1.0))])
def test_without_a_cited_candidate_nothing_is_said(hits: Hits) -> None:
    assert scores(scorer(), asked(hits=hits)) == {}
    assert scorer().explain(asked(hits=hits), "coset") is None


def test_the_explanation_and_the_votes_come_to_the_score() -> None:
    ready = scorer()
    found = ready.explain(asked(), "coset")
    assert found is not None and found.value == scores(ready, asked())["coset"]
    assert [part.value for part in found.details] == [0.25, 0.25]
    assert "together with 2 of the first 2 candidates" in found.description
    assert "beside ring, whose share is 0.5, in the training topics q4" in str(found.details[1])
    votes = ready.votes(asked(), "coset")
    assert {vote.topic_id for vote in votes} == {"q2", "q4"}
    assert sum(vote.value for vote in votes) == pytest.approx(found.value)
    assert ready.votes(asked(), "ring") == []
