"""Fusion: how the answers of several signals become one score for each document.

    sum      the weighted sum of the scores
    mnz      that, times the number of signals that speak for the document
    rrf      reciprocal rank fusion: the sum of weight / (k + rank)
    learned  trees rank the candidates that the weighted sum puts first, by what each signal says of them

Every score can be taken apart again into what each signal gave to it, see `Fusion.given`.

The `candidates` of `learned` are the first documents of the weighted sum. Trees, see `learning`, say for each
the log-odds that it is relevant, from these features:

    NAME share     its score in the signal NAME, as a share of the topic's greatest; 0 where that is silent
    NAME score     the score itself, on the scale `scores`
    NAME best      the greatest score that NAME gives to any document: how sure it is of the topic
    sum            the weighted sum
    signals        how many signals speak for it

A document that is no candidate keeps its place behind them, by the weighted sum. The trees are grown on solved topics.
A topic must not be ranked by its own answers there either, and it is not enough to leave out its own vote: how often
all others cite a document tells whether the topic does. So the solved topics are dealt into `parts`, and the votes for
the topics of one part come from the others alone (cross-fitting; Wolpert, "Stacked generalization", Neural Networks 5,
1992).
"""

from __future__ import annotations

import heapq
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from searchapp.errors import DataError
from searchapp.model import Example, Explanation, Hits, Topic
from searchapp.ranking import learning
from searchapp.ranking.learning import Trees
from searchapp.ranking.signals.base import (
    SEED,
    SHOWN,
    Answer,
    Need,
    Scale,
    Scores,
    model_record,
    ranked,
    require_unseen,
    shares_of,
)
from searchapp.ranking.templates import RecipeTable, choice, number, whole, written_parameters
from searchapp.text import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from searchapp.ranking.learning import StoredModel


FUSION = "fusion"
"""What the model of a fusion goes by, where those of signals go by the signals' names."""

RANK_CONSTANT = 60.0
"""The k of reciprocal rank fusion where a recipe names none."""

Weighted = Sequence[tuple[float, Answer]]
"""The weight of each signal and what it says of a topic."""


class ScoreParts(NamedTuple):
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

    needs: ClassVar[frozenset[Need]] = frozenset()

    scale: Scale
    """On what scale it wants the signals' scores."""

    reach: ClassVar[int] = 0
    """How many documents of each signal it wants at least, whatever depth is ranked."""

    @property
    def unlearned(self) -> Fusion:
        """What fuses signals on the same scale, without a model: itself, where nothing is learned."""
        return self

    def ready(self, signals: Sequence[str], model: Callable[[], StoredModel]) -> Fusion:  # noqa: ARG002
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
    def given(self, answers: Weighted, document: str) -> ScoreParts:
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
    def read(cls, table: RecipeTable) -> Self:
        """The fusion that a table of a recipe describes.

        Raises:
            DataError: a key is missing or not what it should be.
            UsageError: a number is not what it should be.
        """
        return cls(**table.parameters(cls))

    def manifest(self) -> dict[str, Any]:
        """What a run records of it."""
        return {"by": self.by, **written_parameters(self)}


@dataclass(frozen=True, slots=True)
class SumFusion(RecipeFusion):
    """The weighted sum of the signals; where one says nothing of a document it adds nothing."""

    by: ClassVar[str] = "sum"
    scale: Scale = choice(
        [*Scale],
        "what is added: scores as shares of the topic's greatest, or as they come",
        default=Scale.shares,
    )

    def fused(self, answers: Weighted) -> dict[str, float]:
        """A score for each document that a signal speaks for."""
        return added((weight, scores_of(answer, self.scale)) for weight, answer in answers)

    def given(self, answers: Weighted, document: str) -> ScoreParts:
        """The weighted score of each."""
        found = (scores_of(answer, self.scale).get(document) for _, answer in answers)
        return ScoreParts(
            [None if one is None else weight * one for (weight, _), one in zip(answers, found, strict=True)]
        )


@dataclass(frozen=True, slots=True)
class CombMnzFusion(SumFusion):
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

    def given(self, answers: Weighted, document: str) -> ScoreParts:
        """The weighted score of each, times the number of them that give something."""
        weighted = SumFusion.given(self, answers, document).signals
        speaking = sum(1 for one in weighted if one is not None and one > 0)
        return ScoreParts([None if one is None else speaking * one for one in weighted])


@dataclass(frozen=True, slots=True)
class ReciprocalRankFusion(RecipeFusion):
    """Reciprocal rank fusion: the sum of weight / (`k` + rank).

    Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods",
    SIGIR 2009, with k = 60 and without weights. Ranks are those of the signal's ranking: 1, 2, 3, …, equal scores in
    the order of their ids.
    """

    by: ClassVar[str] = "rrf"
    k: float = number(
        "what is added to each rank: the greater, the less the first ranks stand out", default=RANK_CONSTANT
    )
    scale: Scale = Scale.shares

    def fused(self, answers: Weighted) -> dict[str, float]:
        """A score for each document that a signal speaks for."""
        total: dict[str, float] = {}
        for weight, answer in answers:
            for document, rank in ranks_of(answer).items():
                total[document] = total.get(document, 0.0) + weight / (self.k + rank)
        return total

    def given(self, answers: Weighted, document: str) -> ScoreParts:
        """What the rank of each comes to."""
        ranks = [(weight, ranks_of(answer).get(document)) for weight, answer in answers]
        return ScoreParts([None if rank is None else weight / (self.k + rank) for weight, rank in ranks])


KINDS: Mapping[str, type[RecipeFusion]] = {
    kind.by: kind for kind in (SumFusion, CombMnzFusion, ReciprocalRankFusion)
}
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
    """The rank of each document, from 1, as a ranking by the signal alone has it."""
    hits = answer if isinstance(answer, Hits) else ranked(answer, len(answer))
    return {document: rank for rank, document in enumerate(hits.document_ids, start=1)}


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


if TYPE_CHECKING:
    Floats = NDArray[np.float64]

REACH = 500
"""How many documents of each signal are looked at, so that candidates are the same whatever depth is ranked."""

EQUALS = 0.001
"""What the weighted sum counts beside the log-odds: it orders candidates between which the trees see no difference."""

_SHARE, _SCORE, _BEST = "share", "score", "best"
_OF_ALL = ("sum", "signals")

Asking = Callable[[Sequence[Example], frozenset[str]], Iterator[tuple[Example, Sequence[Answer]]]]
"""What each signal says of some solved topics, if those of these ids had no votes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedFusion(RecipeFusion):
    """Trees over the first `candidates` of the weighted sum, grown on at most `topics` solved ones in `parts`.

    Without its model it is the weighted sum.
    """

    by: ClassVar[str] = "learned"
    kind: ClassVar[str] = "fusion"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.model})
    reach: ClassVar[int] = REACH
    listed_first: ClassVar[tuple[str, ...]] = ("trees", "leaves", "fewest", "rate", "seed", "parts")

    added: Scale = choice(
        [*Scale],
        "what the weighted sum adds: scores as shares of the topic's greatest, or as they come",
        key="scale",
        default=Scale.shares,
    )
    """On what scale the weighted sum adds what signals say; the trees look at it on both."""

    candidates: int = whole("how many documents the trees rank: the first ones of the weighted sum")
    topics: int = whole("how many solved topics the trees are grown on at most")
    parts: int = whole("into how many parts solved topics are dealt, each ranked by the votes of the others")
    trees: int = whole("how many trees are grown")
    leaves: int = whole("how many leaves a tree has at most")
    fewest: int = whole("how many candidates a leaf must have")
    rate: float = number("how much of what a tree says counts")
    seed: int = whole("the seed by which solved topics are dealt", default=SEED)
    scale: Scale = Scale.scores

    @classmethod
    def read(cls, table: RecipeTable) -> Self:
        """The fusion of a table; its topics are dealt into 2 parts at least, its trees have 2 leaves at least."""
        values = table.parameters(cls)
        if values["parts"] < 2:
            raise table.place.wrong("has 1 part in its fusion, whose topics nobody could vote for")
        if values["leaves"] < 2:
            raise table.place.wrong("has 1 leaf in its fusion, which asks for nothing")
        return cls(**values)

    @property
    def unlearned(self) -> LearnedFusion:
        """The weighted sum by itself, which needs no model."""
        return _WeightedSum(**{one.name: getattr(self, one.name) for one in fields(self)})

    def ready(self, signals: Sequence[str], model: Callable[[], StoredModel]) -> Fusion:
        return _Ranking(self, signals, model())

    def fused(self, answers: Weighted) -> dict[str, float]:
        """The weighted sum; a signal of weight 0 says something to the trees alone."""
        return _summed(self.heard(answers))

    def heard(self, answers: Weighted) -> list[_Heard]:
        """What each signal says, for the weighted sum and for the trees."""
        found = []
        for weight, answer in answers:
            scores = scores_of(answer, Scale.scores)
            greatest = max(scores.values(), default=0.0)
            found.append(_Heard(weight, scores, greatest, greatest if self.added is Scale.shares else 1.0))
        return found

    def given(self, answers: Weighted, document: str) -> ScoreParts:
        return ScoreParts(
            [
                weight * scores[document] / unit if weight and unit > 0 and document in scores else None
                for weight, scores, _, unit in self.heard(answers)
            ]
        )

    def train(
        self, signals: Sequence[tuple[str, float]], examples: Sequence[Example], asking: Asking
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Header and arrays of the model for signals of these names and weights, which solved topics make.

        Raises:
            DataError: no candidate of a solved topic is relevant, or all are.
        """
        import numpy as np

        names = feature_names([name for name, _ in signals])
        found: list[Floats] = []
        relevant: list[bool] = []
        of_each = -(-self.topics // self.parts)
        for part in self.dealt(examples):
            for example, answers in asking(part[:of_each], frozenset(one.topic.id for one in part)):
                weighted = [(weight, answer) for (_, weight), answer in zip(signals, answers, strict=True)]
                documents, rows = self.rows(weighted, example.topic.id)
                found.append(rows)
                relevant += [example.gold.get(document, 0.0) > 0 for document in documents]
        wanted = np.array(relevant, dtype=np.bool_)
        if not wanted.any() or wanted.all():
            raise DataError(
                f"the candidates of the {counted(len(examples), 'solved topic')} are all alike relevant, so that "
                "nothing tells one "
                "from another: choose another recipe"
            )
        trees = learning.grown(
            names,
            np.concatenate(found),
            wanted,
            trees=self.trees,
            leaves=self.leaves,
            fewest=self.fewest,
            rate=self.rate,
            seed=self.seed,
        )
        return {"candidates": len(wanted), "labels": ["relevant"], **trees.header()}, trees.arrays()

    def dealt(self, examples: Sequence[Example]) -> list[list[Example]]:
        """Solved topics dealt into parts, by the seed and whatever their order."""
        shuffled = sorted(examples, key=lambda one: one.topic.id)
        random.Random(self.seed).shuffle(shuffled)  # no secret
        return [shuffled[part :: self.parts] for part in range(self.parts)]

    def rows(self, answers: Weighted, without: str | None = None) -> tuple[list[str], Floats]:
        """The candidates, `without` one document, and what the trees look at: (candidates, features) float64."""
        heard = self.heard([(weight, _reached(answer)) for weight, answer in answers])
        return self.rows_of(heard, _summed(heard), without)

    def rows_of(
        self, heard: Sequence[_Heard], total: Scores, without: str | None = None
    ) -> tuple[list[str], Floats]:
        """The same, of answers that reach no deeper than they should, and their weighted sum."""
        import numpy as np

        best = heapq.nsmallest(self.candidates + 1, total.items(), key=lambda one: (-one[1], one[0]))
        documents = [document for document, _ in best if document != without][: self.candidates]
        found = np.zeros((len(documents), 3 * len(heard) + len(_OF_ALL)))
        for place, (_, scores, greatest, _) in enumerate(heard):
            of_signal = [scores.get(document, 0.0) for document in documents]
            found[:, 3 * place + 1] = of_signal
            found[:, 3 * place + 2] = greatest
            if greatest > 0:
                found[:, 3 * place] = found[:, 3 * place + 1] / greatest
        found[:, -2] = [total[document] for document in documents]
        found[:, -1] = (found[:, : 3 * len(heard) : 3] > 0).sum(axis=1)
        return documents, found


class _WeightedSum(LearnedFusion):
    """The fusion without its model."""

    __slots__ = ()

    def ready(self, signals: Sequence[str], model: Callable[[], StoredModel]) -> Fusion:  # noqa: ARG002  # it takes none
        return self


class _Ranking(Fusion):
    """The fusion with its model.

    A candidate's score is the log-odds, `EQUALS` of the weighted sum, and as much for all as it takes to be above
    whatever the weighted sum gives to others: the weighted sum of the greatest of each signal, less the least that the
    trees can say.
    """

    __slots__ = ("_described", "_stored", "_trees", "scale")

    by = LearnedFusion.by
    needs = LearnedFusion.needs
    reach = REACH

    def __init__(self, described: LearnedFusion, signals: Sequence[str], stored: StoredModel) -> None:
        self._described = described
        self._stored = stored
        self._trees = Trees.read(stored.header, stored.arrays)
        self.scale = described.scale
        if self._trees.features != feature_names(signals):
            raise DataError(
                "the model of the fusion has features of other signals: train again with "
                "`searchapp train TASK --rebuild`"
            )

    def require_unseen(self, topics: Sequence[Topic]) -> None:
        require_unseen(self._stored, topics)

    def model(self) -> dict[str, Any]:
        return model_record(self._stored)

    def manifest(self) -> dict[str, Any]:
        return self._described.manifest()

    def fused(self, answers: Weighted) -> dict[str, float]:
        heard = self._described.heard(answers)
        total = _summed(heard)
        if all(_reached(answer) is answer for _, answer in answers):
            documents, rows = self._described.rows_of(heard, total)
        else:
            documents, rows = self._described.rows(answers)
        scores = self._trees.scores(rows) + self._lifted(answers)
        found = zip(documents, scores.tolist(), strict=True)
        return total | {document: score + EQUALS * total[document] for document, score in found}

    def given(self, answers: Weighted, document: str) -> ScoreParts:
        row = self._row(answers, document)
        if row is None:
            return self._described.given(answers, document)
        parts = self._trees.parts(row)[0]
        added = self._described.given(answers, document).signals
        of_signals: list[float | None] = []
        for place, share in enumerate(added):
            value = float(parts[3 * place : 3 * place + 3].sum()) + EQUALS * (share or 0.0)
            of_signals.append(value if value or share is not None else None)
        rest = float(parts[3 * len(added) :].sum()) + self._trees.bias + self._lifted(answers)
        return ScoreParts(of_signals, rest)

    def explained(self, answers: Weighted, document: str) -> tuple[str, tuple[Explanation, ...]]:
        row = self._row(answers, document)
        if row is None:
            said = f"fused by sum, behind the {counted(self._described.candidates, 'candidate')} that {self.by} ranks"
            return said, ()
        trees = self._trees
        log_odds = float(trees.scores(row)[0])
        parts = trees.parts(row)[0].tolist()
        every = sorted(zip(parts, trees.features, row[0].tolist(), strict=True), key=lambda one: -abs(one[0]))
        details = [Explanation(part, f"{name} is {value:.4g}") for part, name, value in every[:SHOWN] if part]
        if others := sum(part for part, _, _ in every[SHOWN:]):
            details.append(Explanation(others, counted(len(every) - SHOWN, "further feature")))
        details.append(Explanation(trees.bias, "what the trees say of any candidate"))
        learned = Explanation(
            log_odds,
            f"log-odds of being relevant, by {counted(len(trees.roots), 'tree')}, the sum of",
            tuple(details),
        )
        total = self._described.fused(answers)[document]
        said = f"log-odds {log_odds:.4f}, {EQUALS:g} * the weighted sum {total:.4f}, and {self._lifted(answers):.4f}"
        return f"fused by {self.by}: {said}, which every candidate has", (learned,)

    def _row(self, answers: Weighted, document: str) -> Floats | None:
        documents, rows = self._described.rows(answers)
        return rows[[documents.index(document)]] if document in documents else None

    def _lifted(self, answers: Weighted) -> float:
        """As much as the weighted sum gives to any document at most, and the trees take from a candidate."""
        heard = self._described.heard(answers)
        greatest = sum(one.weight * (one.greatest / one.unit) for one in heard if one.unit > 0)
        return greatest - self._trees.least


def feature_names(signals: Sequence[str]) -> tuple[str, ...]:
    """What the trees look at, in the order of the columns."""
    return (*(f"{name} {what}" for name in signals for what in (_SHARE, _SCORE, _BEST)), *_OF_ALL)


class _Heard(NamedTuple):
    """What a signal says of a topic, on the scale of scores: its weight, the scores, and the greatest of them.

    `unit` is what a score is divided by in the weighted sum.
    """

    weight: float
    scores: Scores
    greatest: float
    unit: float


def _summed(heard: Sequence[_Heard]) -> dict[str, float]:
    """The weighted sum of the signals that have a weight."""
    total: dict[str, float] = {}
    for weight, scores, _, unit in heard:
        if weight > 0:
            factor = weight / unit if unit > 0 else 0.0
            for document, score in scores.items():
                total[document] = total.get(document, 0.0) + factor * score
    return total


def _reached(answer: Answer) -> Answer:
    return answer[:REACH] if isinstance(answer, Hits) and len(answer) > REACH else answer
