"""How the answers of several signals become one score for each document.

    sum      the weighted sum of the scores
    mnz      that, times the number of signals that speak for the document
    ranks    the sum of weights over ranks

Every score can be taken apart again into what each signal gave to it, see `Fusion.given`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from searchapp.model import Hits, Topic
from searchapp.ranking.signals.base import Answer, Need, Scale, Scores, shares_of

if TYPE_CHECKING:
    from searchapp.engines.base import Explanation
    from searchapp.ranking.learning.files import Stored
    from searchapp.ranking.tables import Table

FUSION = "fusion"
"""What the model of a fusion goes by, where those of signals go by the signals' names."""

Weighted = Sequence[tuple[float, Answer]]
"""The weight of each signal and what it says of a topic."""


class Given(NamedTuple):
    """What makes up a document's score: `signals` in their order, None where one does not speak for it, and the `rest`.

    Together they are the score. The rest is what no signal gave; a fusion without a model has none.
    """

    signals: Sequence[float | None]
    rest: float = 0.0


class Fusion(ABC):
    """One way to make one score of several."""

    __slots__ = ()

    by: ClassVar[str]
    """What a recipe calls it."""

    meanings: ClassVar[Mapping[str, str]] = {}
    """What the keys of its table mean that can be set, in a clause for people."""

    needs: ClassVar[frozenset[Need]] = frozenset()

    scale: Scale
    """On what scale it wants the signals' scores."""

    reach: ClassVar[int] = 0
    """How many documents of each signal it wants at least, whatever depth is ranked."""

    @property
    def unlearned(self) -> Fusion:
        """What fuses signals on the same scale, without a model: itself, where nothing is learned."""
        return self

    def ready(self, signals: Sequence[str], model: Callable[[], Stored]) -> Fusion:  # noqa: ARG002
        """What fuses the signals of these names; one that is learned reads its `model`.

        Raises:
            DataError: what it needs is missing, or not what it should be.
        """
        return self

    def require_unseen(self, topics: Sequence[Topic]) -> None:  # noqa: B027  # what has no model knows no topic
        """Make sure that no topic is ranked by its own answers.

        Raises:
            DataError: a model knows one of them.
        """

    @abstractmethod
    def fused(self, answers: Weighted) -> dict[str, float]:
        """A score for each document that a signal speaks for."""

    @abstractmethod
    def given(self, answers: Weighted, document: str) -> Given:
        """What makes up a document's score."""

    def explained(self, answers: Weighted, document: str) -> tuple[str, tuple[Explanation, ...]]:  # noqa: ARG002
        """How a document's score was made of those of the signals, with details of its own if it has any."""
        return f"fused by {self.by}", ()

    def model(self) -> dict[str, Any]:
        """What a run records of the model that it fuses by; nothing without one."""
        return {}

    @abstractmethod
    def manifest(self) -> dict[str, Any]:
        """What a run records of it."""


class RecipeFusion(Fusion):
    """A fusion as a recipe describes it."""

    __slots__ = ()

    @classmethod
    @abstractmethod
    def read(cls, table: Table) -> Self:
        """The fusion that a table of a recipe describes.

        Raises:
            DataError: a key is missing or not what it should be.
            UsageError: a number is not what it should be.
        """


@dataclass(frozen=True, slots=True)
class Sum(RecipeFusion):
    """The weighted sum of the signals; where one says nothing of a document it adds nothing."""

    by: ClassVar[str] = "sum"
    meanings: ClassVar[Mapping[str, str]] = {
        "scale": "what is added: scores as shares of the topic's greatest, or as they come"
    }

    scale: Scale = Scale.shares

    @classmethod
    def read(cls, table: Table) -> Self:
        """A sum on the `scale` of a table."""
        return cls(Scale(table.choice("scale", [*Scale], Scale.shares)))

    def fused(self, answers: Weighted) -> dict[str, float]:
        """A score for each document that a signal speaks for."""
        return added((weight, scores_of(answer, self.scale)) for weight, answer in answers)

    def given(self, answers: Weighted, document: str) -> Given:
        """The weighted score of each."""
        found = (scores_of(answer, self.scale).get(document) for _, answer in answers)
        return Given(
            [None if one is None else weight * one for (weight, _), one in zip(answers, found, strict=True)]
        )

    def manifest(self) -> dict[str, Any]:
        """What a run records of it."""
        return {"by": self.by, "scale": self.scale.value}


@dataclass(frozen=True, slots=True)
class CombMnz(Sum):
    """The weighted sum times the number of signals that give a document more than nothing.

    Fox and Shaw, "Combination of multiple searches", TREC-2, 1994: CombMNZ. A signal of weight 0 is not counted.
    """

    by: ClassVar[str] = "mnz"

    def fused(self, answers: Weighted) -> dict[str, float]:
        """A score for each document that a signal speaks for."""
        scores = [scores_of(answer, self.scale) for _, answer in answers]
        weighted = [(weight, one) for (weight, _), one in zip(answers, scores, strict=True)]
        speaking = Counter(
            document for weight, one in weighted for document, score in one.items() if weight * score > 0
        )
        return {document: speaking[document] * score for document, score in added(weighted).items()}

    def given(self, answers: Weighted, document: str) -> Given:
        """The weighted score of each, times the number of them that give something."""
        weighted = Sum.given(self, answers, document).signals
        speaking = sum(1 for one in weighted if one is not None and one > 0)
        return Given([None if one is None else speaking * one for one in weighted])


@dataclass(frozen=True, slots=True)
class ReciprocalRanks(RecipeFusion):
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
    def read(cls, table: Table) -> Self:
        """A fusion with the `rank_constant` of a table."""
        return cls(table.number("rank_constant"))

    def fused(self, answers: Weighted) -> dict[str, float]:
        """A score for each document that a signal speaks for."""
        total: dict[str, float] = {}
        for weight, answer in answers:
            for document, rank in ranks_of(answer).items():
                total[document] = total.get(document, 0.0) + weight / (self.rank_constant + rank)
        return total

    def given(self, answers: Weighted, document: str) -> Given:
        """What the rank of each comes to."""
        ranks = [(weight, ranks_of(answer).get(document)) for weight, answer in answers]
        return Given(
            [None if rank is None else weight / (self.rank_constant + rank) for weight, rank in ranks]
        )

    def manifest(self) -> dict[str, Any]:
        """What a run records of it."""
        return {"by": self.by, "rank_constant": self.rank_constant}


KINDS: Mapping[str, type[RecipeFusion]] = {kind.by: kind for kind in (Sum, CombMnz, ReciprocalRanks)}
"""The fusions that need no model, by what recipes call them."""


def scores_of(answer: Answer, scale: Scale) -> Scores:
    """A signal's answer as scores; hits are put on the scale here, scores are on it already."""
    if not isinstance(answer, Hits):
        return answer
    return (
        as_shares(answer)
        if scale is Scale.shares
        else dict(zip(answer.document_ids, answer.scores, strict=True))
    )


def ranks_of(answer: Answer) -> dict[str, int]:
    """The rank of each document, from 1; those with equal scores have the rank of the first of them."""
    ranks: dict[str, int] = {}
    previous, rank = None, 0
    best_first = sorted(scores_of(answer, Scale.scores).items(), key=lambda entry: -entry[1])
    for place, (document, score) in enumerate(best_first, start=1):
        if score != previous:
            previous, rank = score, place
        ranks[document] = rank
    return ranks


def as_shares(hits: Hits) -> dict[str, float]:
    """Scores as shares of the greatest, the first one; all 0 when that is 0."""
    return shares_of(hits, hits.scores[0] if hits else 0.0)


def added(weighted: Iterable[tuple[float, Scores]]) -> dict[str, float]:
    """The weighted sum of scores; where one says nothing of a document it adds nothing."""
    total: dict[str, float] = {}
    for weight, scores in weighted:
        for document, score in scores.items():
            total[document] = total.get(document, 0.0) + weight * score
    return total
