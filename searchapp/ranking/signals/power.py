"""The signal `power`, explanatory power: how often solved topics that are alike use a document.

    score(d) = Σ_h s(h)^power * s1^(1 - power) * grade(h, d)        over the k solved topics h that are most alike

s(h) is the cosine of the vectors of both topics and s1 that of the nearest, see `searchapp.ranking.signals.terms`. A
fact that explains many questions like this one unifies them, and is likely to explain it too (Valentino, Thayaparan and
Freitas, "Unification-based reconstruction of multi-hop explanations for science questions", EACL 2021, where power is
1). As shares the scores are those of the greatest. A cosine says how much alike two topics are whatever their lengths,
as the scores of the signal `neighbours` do not. A topic is not among those that vote for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from searchapp.model import Explanation
from searchapp.ranking.signals.base import (
    Inputs,
    Need,
    Scale,
    Signal,
    SignalRequest,
    SignalScorer,
    TopicScorer,
    Vote,
    ranked,
)
from searchapp.ranking.signals.neighbours import explained, votes, votes_for, weighing
from searchapp.ranking.templates import boosts, number, whole
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.model import Hits, Topic
    from searchapp.ranking.signals.terms import TermSpace


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanatoryPower(Signal):
    """The votes of the nearest `k` solved topics."""

    kind: ClassVar[str] = "power"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.terms})
    k: int = whole("how many of the nearest solved topics vote")
    power: float = number(
        "how steeply a vote falls with the cosine: (s / s1) ** power, s1 being that of the nearest"
    )
    boosts: Mapping[str, float] = boosts()

    def prepare(self, inputs: Inputs) -> SignalScorer:
        """Read all documents and solved topics."""
        return SimilarTopics(self, inputs.terms().require_solved(self.name))


class SimilarTopics(TopicScorer):
    """Lets the solved topics vote that are most alike."""

    def __init__(self, signal: ExplanatoryPower, space: TermSpace) -> None:
        self._signal = signal
        self._space = space
        self._solved = space.asked_by_solved(signal.boosts)

    def scores(self, topic: Topic, asked: SignalRequest) -> dict[str, float]:
        nearest, power = self.nearest(topic), self._signal.power
        return votes(nearest, self._space.gold, power, without=topic.id, scale=asked.scale)

    def nearest(self, topic: Topic) -> Hits:
        """The solved topics that are most alike, with their cosines as float32; not the topic itself."""
        cosines = self._solved @ self._space.asked(topic, self._signal.boosts)
        return ranked(self._space.positive(self._space.solved, cosines), self._signal.k, topic.id)

    def explain(self, asked: SignalRequest, document_id: str) -> Explanation | None:
        (topic,) = asked.topics
        total = self.scores(topic, asked).get(document_id)
        if total is None:
            return None
        given, nearest = self.votes(asked, document_id), self.nearest(topic)
        scale = (
            "as a share of the greatest" if asked.scale is Scale.shares else "times the cosine of the nearest"
        )
        said = f"used by {len(given)} of the {counted(len(nearest), 'most similar solved topic')}, {scale}"
        return Explanation(total, said, explained(given, nearest.scores[0], self._signal.power))

    def votes(self, asked: SignalRequest, document_id: str) -> Sequence[Vote]:
        (topic,) = asked.topics
        voting = weighing(self.nearest(topic), self._signal.power, without=topic.id)
        given = votes_for(document_id, voting, self._space.gold)
        return sorted(given, key=lambda one: -one.value)
