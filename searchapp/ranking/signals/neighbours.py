"""The signal `neighbours`: the answers of the nearest training topics get votes.

A template retrieves the `k` nearest training topics. A topic with the score s votes with the weight (s / s1) **
`power`, where s1 is the first topic's score; each of its answers gets its grade times the weight.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from searchapp.engines.base import Index
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Body, Explanation, Hits, Topic
from searchapp.progress import no_progress
from searchapp.ranking.signals.base import (
    Answer,
    Inputs,
    Need,
    Normalization,
    Retriever,
    SignalRequest,
    SignalScorer,
    TrainingTopics,
    Vote,
    Voting,
)
from searchapp.text import counted

# The graded answers of each training topic.
Gold = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours(Voting):
    """`query` retrieves the `k` nearest training topics, whose answers get votes."""

    kind: ClassVar[str] = "neighbours"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.examples})

    def prepare(self, inputs: Inputs) -> SignalScorer:
        return _RetrievedVotes(self, inputs.examples())


def topic_weights(nearest: Hits, power: float, without: str | None = None) -> list[tuple[str, float, float]]:
    """Return the voting topics, each with its score s and weight (s / s1) ** power.

    The topic `without` has no vote: a topic must not be ranked by its own answers.
    """
    if without in nearest.document_ids:
        nearest = Hits.of(*(hit for hit in nearest if hit.document_id != without))
    if not nearest or nearest.scores[0] <= 0:
        return []
    best = nearest.scores[0]
    return [(topic_id, score, (score / best) ** power) for topic_id, score in nearest]


def vote_scores(
    nearest: Hits,
    gold: Gold,
    power: float,
    without: str | None = None,
    *,
    normalization: Normalization = Normalization.max,
) -> dict[str, float]:
    """Return the sum of votes for each answer of training topics, best topic first; empty without a vote.

    Shares are relative to the greatest sum; scores are multiples of the first topic's score.
    """
    totals: dict[str, float] = {}
    weights = topic_weights(nearest, power, without)
    for topic_id, _, weight in weights:
        for document, grade in gold.get(topic_id, {}).items():
            totals[document] = totals.get(document, 0.0) + grade * weight
    if normalization is Normalization.none:
        return {document: weights[0][1] * total for document, total in totals.items()}
    greatest = max(totals.values(), default=0.0)
    return {document: total / greatest for document, total in totals.items()} if greatest > 0 else {}


class NeighbourScorer(SignalScorer):
    """A signal in which the nearest training topics vote.

    Args:
        gold: graded answers of training topics
        power: how steeply votes fall with the score
    """

    similarity: ClassVar[str] = "score"
    votes_text: ClassVar[tuple[str, str]] = "votes of", "nearest training topic"

    def __init__(self, gold: Gold, power: float) -> None:
        self._gold = gold
        self._power = power

    @abstractmethod
    def nearest_to(self, request: SignalRequest) -> Hits:
        """Return the training topics nearest to the only topic, with their scores."""

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (topic,) = request.topics
        nearest = self.nearest_to(request)
        totals = vote_scores(
            nearest, self._gold, self._power, without=topic.id, normalization=request.normalization
        )
        if document_id not in totals:
            return None
        weights = topic_weights(nearest, self._power, without=topic.id)
        votes = self._votes_for(document_id, weights)
        is_share = request.normalization is Normalization.max
        scale = "as a share of the greatest" if is_share else f"times the {self.similarity} of the nearest"
        verb, noun = self.votes_text
        description = f"{verb} {len(votes)} of the {counted(len(weights), noun)}, {scale}"
        best, power = weights[0][1], self._power
        details = [
            Explanation(
                vote.value,
                f"training topic {vote.topic_id}: its grade {vote.grade:g} * ({vote.score:g} / {best:g})^{power:g}",
            )
            for vote in votes
        ]
        return Explanation(totals[document_id], description, tuple(details))

    def votes(self, request: SignalRequest, document_id: str) -> Sequence[Vote]:
        (topic,) = request.topics
        weights = topic_weights(self.nearest_to(request), self._power, without=topic.id)
        return sorted(self._votes_for(document_id, weights), key=lambda vote: -vote.value)

    def _votes_for(self, document_id: str, weights: Sequence[tuple[str, float, float]]) -> list[Vote]:
        return [
            Vote(topic_id, document_id, grade, score, grade * weight)
            for topic_id, score, weight in weights
            if (grade := self._gold.get(topic_id, {}).get(document_id, 0.0))
        ]


class _RetrievedVotes(NeighbourScorer, Retriever):
    def __init__(self, signal: Neighbours, training: TrainingTopics) -> None:
        super().__init__(training.gold, signal.power)
        self._signal = signal
        self._training = training

    @property
    def searched(self) -> Index:
        return self._training.index

    def body(self, topic: Topic, request: SignalRequest) -> Body:  # noqa: ARG002  # the nearest vote for any depth
        return self._training.nearest(self._signal.query.body(topic, self._signal.k))

    def asks_as(self, other: Retriever) -> bool:
        if not isinstance(other, _RetrievedVotes) or other._training is not self._training:
            return False
        signal, other_signal = self._signal, other._signal
        return signal.k == other_signal.k and signal.query.is_same(other_signal.query)

    def answer(self, topic: Topic, hits: Hits, request: SignalRequest) -> Answer:
        return vote_scores(
            hits, self._gold, self._power, without=topic.id, normalization=request.normalization
        )

    def nearest_to(self, request: SignalRequest) -> Hits:
        (nearest,) = self.retrieved(request, no_progress)
        return nearest
