from __future__ import annotations

import pytest

from searchapp.model import Topic
from searchapp.progress import no_progress
from searchapp.ranking.signals.base import Inputs, Normalization, SignalRequest, SignalScorer, TrainingTopics
from searchapp.ranking.signals.popular import Popular

GOLD = {"q1": {"a": 1.0, "b": 1.0}, "q2": {"a": 2.0, "c": 0.0}}


def scorer() -> SignalScorer:
    return Popular("p", 1.0).prepare(Inputs(None, examples=lambda: TrainingTopics(None, GOLD)))  # type: ignore[arg-type]


def asked(topic: str, normalization: Normalization = Normalization.none) -> SignalRequest:
    return SignalRequest([Topic(topic, "x")], 10, normalization)


@pytest.mark.parametrize(
    ("topic", "normalization", "expected"),
    [
        ("new", Normalization.none, {"a": 2.0, "b": 1.0}),
        ("new", Normalization.max, {"a": 1.0, "b": 0.5}),
        ("q1", Normalization.none, {"a": 1.0}),  # no topic counts for its own answers
        ("q1", Normalization.max, {"a": 1.0}),
    ],
)
def test_documents_count_by_the_solved_topics_that_have_them(
    topic: str, normalization: Normalization, expected: dict[str, float]
) -> None:
    (answer,) = scorer().answers(asked(topic, normalization), no_progress)
    assert dict(answer) == expected
    found = scorer().explain(asked(topic, normalization), "a")
    assert found is not None and found.value == expected["a"]
    assert scorer().explain(asked(topic, normalization), "c") is None
