"""How the answers of several signals become one score for each document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from searchapp.model import Hits
from searchapp.ranking.signals.base import Answer, Scale, Scores

if TYPE_CHECKING:
    from searchapp.ranking.tables import Table

Weighted = Sequence[tuple[float, Answer]]
"""The weight of each signal and what it says of a topic."""


class Fusion(Protocol):
    """One way to make one score of several."""

    by: ClassVar[str]
    """What a recipe calls it."""

    meanings: ClassVar[Mapping[str, str]]
    """What the keys of its table mean that can be set, in a clause for people."""

    @property
    def scale(self) -> Scale:
        """On what scale it wants the signals' scores."""

    def fused(self, answers: Weighted) -> dict[str, float]:
        """A score for each document that a signal speaks for."""

    def manifest(self) -> dict[str, Any]:
        """What a run records of it."""


@dataclass(frozen=True, slots=True)
class Sum:
    """The weighted sum of the signals; where one says nothing of a document it adds nothing."""

    by: ClassVar[str] = "sum"
    meanings: ClassVar[Mapping[str, str]] = {
        "scale": "what is added: scores as shares of the topic's greatest, or as they come"
    }

    scale: Scale = Scale.shares

    @classmethod
    def read(cls, table: Table) -> Sum:
        """A sum on the `scale` of a table."""
        return cls(Scale(table.choice("scale", [*Scale], Scale.shares)))

    def fused(self, answers: Weighted) -> dict[str, float]:
        """A score for each document that a signal speaks for."""
        return added((weight, scores_of(answer, self.scale)) for weight, answer in answers)

    def manifest(self) -> dict[str, Any]:
        """What a run records of it."""
        return {"by": self.by, "scale": self.scale.value}


@dataclass(frozen=True, slots=True)
class ReciprocalRanks:
    """The sum of weight / (`rank_constant` + rank), for signals whose scores say nothing but an order.

    Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods",
    SIGIR 2009. Documents with equal scores have the rank of the first of them, so that a signal which can't tell them
    apart doesn't do so by their ids.
    """

    by: ClassVar[str] = "ranks"
    meanings: ClassVar[Mapping[str, str]] = {
        "rank_constant": "what is added to each rank: the greater, the less the first ranks stand out"
    }

    rank_constant: float
    scale: Scale = Scale.shares

    @classmethod
    def read(cls, table: Table) -> ReciprocalRanks:
        """A fusion with the `rank_constant` of a table."""
        return cls(table.number("rank_constant"))

    def fused(self, answers: Weighted) -> dict[str, float]:
        """A score for each document that a signal speaks for."""
        total: dict[str, float] = {}
        for weight, answer in answers:
            previous, rank = None, 0
            best_first = sorted(scores_of(answer, Scale.scores).items(), key=lambda entry: -entry[1])
            for place, (document, score) in enumerate(best_first, start=1):
                if score != previous:
                    previous, rank = score, place
                total[document] = total.get(document, 0.0) + weight / (self.rank_constant + rank)
        return total

    def manifest(self) -> dict[str, Any]:
        """What a run records of it."""
        return {"by": self.by, "rank_constant": self.rank_constant}


KINDS: Mapping[str, type[Sum | ReciprocalRanks]] = {kind.by: kind for kind in (Sum, ReciprocalRanks)}


def scores_of(answer: Answer, scale: Scale) -> Scores:
    """A signal's answer as scores; hits are put on the scale here, scores are on it already."""
    if not isinstance(answer, Hits):
        return answer
    return as_shares(answer) if scale is Scale.shares else dict(answer)


def as_shares(hits: Hits) -> dict[str, float]:
    """Scores as shares of the greatest; all 0 when that is 0."""
    if not hits or hits.scores[0] <= 0:
        return dict.fromkeys(hits.document_ids, 0.0)
    return {document: score / hits.scores[0] for document, score in hits}


def added(weighted: Iterable[tuple[float, Scores]]) -> dict[str, float]:
    """The weighted sum of scores; where one says nothing of a document it adds nothing."""
    total: dict[str, float] = {}
    for weight, scores in weighted:
        for document, score in scores.items():
            total[document] = total.get(document, 0.0) + weight * score
    return total
