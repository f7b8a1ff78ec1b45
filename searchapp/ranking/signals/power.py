"""The signal `power`, explanatory power: how often similar training topics use a document.

    score(d) = Σ_h s(h)^power * s1^(1 - power) * grade(h, d)        over the k most similar training topics h

s(h) is the cosine of both topics' vectors and s1 the greatest cosine (see `searchapp.ranking.signals.terms`). A fact
that explains many similar questions is likely to explain this one (Valentino, Thayaparan and Freitas,
"Unification-based reconstruction of multi-hop explanations for science questions", EACL 2021, where power is 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from searchapp.lucene.dataclass import dataclass
from searchapp.model import Hits, Topic
from searchapp.ranking.signals.base import (
    Inputs,
    Need,
    Signal,
    SignalRequest,
    SignalScorer,
    TopicScorer,
    ranked,
)
from searchapp.ranking.signals.neighbours import NeighbourScorer, vote_scores
from searchapp.ranking.signals.terms import TermSpace
from searchapp.ranking.templates import boosts, number, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanatoryPower(Signal):
    """The votes of the `k` nearest training topics."""

    kind: ClassVar[str] = "power"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.terms})
    k: int = whole("number of nearest training topics that vote")
    power: float = number(
        "how steeply votes fall with the cosine s: (s / s1) ** power, with the nearest topic's cosine s1"
    )
    boosts: Mapping[str, float] = boosts()

    def prepare(self, inputs: Inputs) -> SignalScorer:
        return SimilarTopics(self, inputs.terms().require_training_topics(self.name))


class SimilarTopics(NeighbourScorer, TopicScorer):
    """The training topics with the greatest cosines vote."""

    similarity = "cosine"
    votes_text = "used by", "most similar training topic"

    def __init__(self, signal: ExplanatoryPower, space: TermSpace) -> None:
        super().__init__(space.gold, signal.power)
        self._signal = signal
        self._space = space
        self._training_vectors = space.training_vectors(signal.boosts)

    def scores(self, topic: Topic, request: SignalRequest) -> dict[str, float]:
        nearest = self.nearest(topic)
        return vote_scores(
            nearest, self._gold, self._power, without=topic.id, normalization=request.normalization
        )

    def nearest_to(self, request: SignalRequest) -> Hits:
        (topic,) = request.topics
        return self.nearest(topic)

    def nearest(self, topic: Topic) -> Hits:
        """Return the most similar training topics except the topic itself, with their cosines as float32."""
        cosines = self._training_vectors @ self._space.topic_vector(topic, self._signal.boosts)
        return ranked(
            self._space.positive_scores(self._space.training_ids, cosines), self._signal.k, topic.id
        )
