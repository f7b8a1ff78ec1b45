"""The signal `neighbours`: a query template over solved topics, whose gold answers vote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from searchapp.model import Explanation, Hits
from searchapp.progress import no_progress
from searchapp.ranking.signals.base import (
    Answer,
    Inputs,
    Need,
    Retriever,
    Scale,
    SignalRequest,
    SignalScorer,
    SolvedTopics,
    Vote,
    Voting,
)
from searchapp.text import counted

if TYPE_CHECKING:
    from searchapp.engines.base import Index
    from searchapp.model import Body, Topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours(Voting):
    """`query` finds the nearest `k` solved topics, whose answers vote, see `votes`."""

    kind: ClassVar[str] = "neighbours"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.examples})

    def prepare(self, inputs: Inputs) -> SignalScorer:
        """Index the solved topics, where that has not been done."""
        return _Voting(self, inputs.examples())


@dataclass(frozen=True, slots=True)
class _Voting(Retriever):
    signal: Neighbours
    solved: SolvedTopics

    @property
    def searched(self) -> Index:
        return self.solved.index

    def body(self, topic: Topic, asked: SignalRequest) -> Body:  # noqa: ARG002  # the nearest vote for any depth
        return self.solved.nearest(self.signal.query.body(topic, self.signal.k))

    def asks_as(self, other: Retriever) -> bool:
        if not isinstance(other, _Voting) or other.solved is not self.solved:
            return False
        mine, theirs = self.signal, other.signal
        return (mine.query.digest, mine.query.parameters, mine.k) == (
            theirs.query.digest,
            theirs.query.parameters,
            theirs.k,
        )

    def answer(self, topic: Topic, hits: Hits, asked: SignalRequest) -> Answer:
        return votes(hits, self.solved.gold, self.signal.power, without=topic.id, scale=asked.scale)

    def explain(self, asked: SignalRequest, document_id: str) -> Explanation | None:
        (topic,) = asked.topics
        (nearest,) = self.retrieved(asked, no_progress)
        gold = self.solved.gold
        power = self.signal.power
        total = votes(nearest, gold, power, without=topic.id, scale=asked.scale).get(document_id)
        if total is None:
            return None
        voting = weighing(nearest, power, without=topic.id)
        given = votes_for(document_id, voting, gold)
        scale = (
            "as a share of the greatest" if asked.scale is Scale.shares else "times the score of the nearest"
        )
        said = f"votes of {len(given)} of the {counted(len(voting), 'nearest solved topic')}, {scale}"
        return Explanation(total, said, explained(given, voting[0][1], power))

    def votes(self, asked: SignalRequest, document_id: str) -> Sequence[Vote]:
        (topic,) = asked.topics
        (nearest,) = self.retrieved(asked, no_progress)
        voting = weighing(nearest, self.signal.power, without=topic.id)
        return sorted(votes_for(document_id, voting, self.solved.gold), key=lambda one: -one.value)


def weighing(nearest: Hits, power: float, without: str | None = None) -> list[tuple[str, float, float]]:
    """The solved topics that vote, each with its score s and its weight (s / s1) ** power; s1 is that of the first.

    The solved topic `without` has no vote: a topic must not be ranked by its own answers.
    """
    if without in nearest.document_ids:
        nearest = Hits.of(*(hit for hit in nearest if hit.document_id != without))
    if not nearest or nearest.scores[0] <= 0:
        return []
    best = nearest.scores[0]
    return [(example, score, (score / best) ** power) for example, score in nearest]


def votes_for(
    document_id: str, voting: Sequence[tuple[str, float, float]], gold: Mapping[str, Mapping[str, float]]
) -> list[Vote]:
    """Return the votes for a document, in the order of those that vote, see `weighing`."""
    return [
        Vote(solved, document_id, grade, score, grade * weight)
        for solved, score, weight in voting
        if (grade := gold.get(solved, {}).get(document_id, 0.0))
    ]


def explained(given: Sequence[Vote], best: float, power: float) -> tuple[Explanation, ...]:
    """Return what each vote came of; `best` is the score of the nearest solved topic."""
    return tuple(
        Explanation(
            one.value,
            f"solved topic {one.topic_id}: its grade {one.grade:g} * ({one.score:g} / {best:g})^{power:g}",
        )
        for one in given
    )


def votes(
    nearest: Hits,
    gold: Mapping[str, Mapping[str, float]],
    power: float,
    without: str | None = None,
    *,
    scale: Scale = Scale.shares,
) -> dict[str, float]:
    """What the answers of solved topics come to; empty without a vote.

    `nearest` are solved topics, best first, `gold` has the graded answers of each. A solved topic's answer gets its
    grade times the topic's weight, see `weighing`. As shares these are shares of the greatest; as scores they are
    counted in scores, of which the first solved topic has s1.
    """
    summed: dict[str, float] = {}
    weights = weighing(nearest, power, without)
    for example, _, weight in weights:
        for document, grade in gold.get(example, {}).items():
            summed[document] = summed.get(document, 0.0) + grade * weight
    if scale is Scale.scores:
        return {document: weights[0][1] * vote for document, vote in summed.items()}
    greatest = max(summed.values(), default=0.0)
    return {document: vote / greatest for document, vote in summed.items()} if greatest > 0 else {}
