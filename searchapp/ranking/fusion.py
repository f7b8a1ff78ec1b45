"""Fusion: combines the answers of several signals into one score for each document.

    sum      the weighted sum of the scores
    mnz      the weighted sum times the number of signals that score the document
    rrf      reciprocal rank fusion: the sum of weight / (k + rank)
    learned  trees re-rank the first candidates of the weighted sum

Trees (see `learning`) give each of the first `candidates` of the weighted sum the log-odds that it is relevant, from
these features; other documents follow by the weighted sum:

    NAME share     its score in the signal NAME, as a share of the topic's greatest; 0 without a score
    NAME score     the score itself, not normalized
    NAME best      the greatest score that NAME gives to any document of the topic
    sum            the weighted sum
    signals        the number of signals that score it

The trees are trained by cross-fitting (Wolpert, "Stacked generalization", Neural Networks 5, 1992): training topics
are divided into `folds`, and the votes for the topics of one fold come from the other folds alone. Leaving out only a
topic's own vote would not suffice: how often all other topics cite a document reveals whether this topic cites it.
"""

from __future__ import annotations

import heapq
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from searchapp.errors import DataError
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Example, Explanation, Hits, Topic
from searchapp.ranking.signals.base import (
    SEED,
    SHOWN,
    Answer,
    Need,
    Normalization,
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


# The name of a fusion's model; models of signals have the signals' names.
FUSION = "fusion"

# The default k of reciprocal rank fusion.
RANK_CONSTANT = 60.0

# The weight of each signal and its answer to a topic.
Weighted = Sequence[tuple[float, Answer]]


class ScoreParts(NamedTuple):
    """The parts of a document's score, which add up to it."""

    signals: Sequence[float | None]  # None for a signal without a score
    other: float = 0.0  # other features of a model


class Fusion(ABC):
    """A way to combine the scores of several signals."""

    __slots__ = ()

    # Its name in recipes.
    method: ClassVar[str]

    needs: ClassVar[frozenset[Need]] = frozenset()

    # How the signals' scores are normalized.
    normalization: Normalization

    # The fewest documents of each signal that it needs at any depth.
    reach: ClassVar[int] = 0

    @classmethod
    def read(cls, table: RecipeTable) -> Self:
        """Return the fusion that a recipe's table describes.

        Raises:
            DataError: a key is missing or has a wrong type.
            UsageError: a number is out of range.
        """
        return cls(**table.parameters(cls))

    @property
    def unlearned(self) -> Fusion:
        return self

    def ready(self, signals: Sequence[str], model: Callable[[], StoredModel]) -> Fusion:  # noqa: ARG002
        """Return the fusion of the named signals; a learned fusion reads its `model`.

        Raises:
            DataError: the model is missing or invalid.
        """
        return self

    def require_unseen(self, topics: Sequence[Topic]) -> None:  # noqa: B027  # only learned fusions override it
        """Raise `DataError` if the model was trained on one of the topics."""

    @abstractmethod
    def fused(self, answers: Weighted) -> dict[str, float]:
        """Return the score of each document that a signal scores."""

    @abstractmethod
    def given(self, answers: Weighted, document: str) -> ScoreParts:
        """Return the parts of a document's score."""

    def explained(self, answers: Weighted, document: str) -> tuple[str, tuple[Explanation, ...]]:  # noqa: ARG002
        """Return how the signals' scores became a document's score, and further details."""
        return f"fused by {self.method}", ()

    def model(self) -> dict[str, Any]:
        """Return the record of the model in a run; empty without a model."""
        return {}

    def manifest(self) -> dict[str, Any]:
        return {"method": self.method, **written_parameters(self)}


@dataclass(frozen=True, slots=True)
class SumFusion(Fusion):
    """The weighted sum of the signals; a missing score adds nothing."""

    method: ClassVar[str] = "sum"
    normalization: Normalization = choice(
        [*Normalization],
        "normalization of scores before they are added: divided by the topic's greatest score, or none",
        default=Normalization.max,
    )

    def fused(self, answers: Weighted) -> dict[str, float]:
        return weighted_sum((weight, scores_of(answer, self.normalization)) for weight, answer in answers)

    def given(self, answers: Weighted, document: str) -> ScoreParts:
        scores = [(weight, scores_of(answer, self.normalization).get(document)) for weight, answer in answers]
        return ScoreParts([None if score is None else weight * score for weight, score in scores])


@dataclass(frozen=True, slots=True)
class CombMnzFusion(SumFusion):
    """The weighted sum times the number of signals that give a document a score above 0.

    CombMNZ: Fox and Shaw, "Combination of multiple searches", TREC-2, 1994. Signals of weight 0 do not count.
    """

    method: ClassVar[str] = "mnz"

    def fused(self, answers: Weighted) -> dict[str, float]:
        weighted = [(weight, scores_of(answer, self.normalization)) for weight, answer in answers]
        counts = Counter(
            document
            for weight, scores in weighted
            for document, score in scores.items()
            if weight * score > 0
        )
        return {document: counts[document] * score for document, score in weighted_sum(weighted).items()}

    def given(self, answers: Weighted, document: str) -> ScoreParts:
        weighted = SumFusion.given(self, answers, document).signals
        count = sum(1 for score in weighted if score is not None and score > 0)
        return ScoreParts([None if score is None else count * score for score in weighted])


@dataclass(frozen=True, slots=True)
class ReciprocalRankFusion(Fusion):
    """Reciprocal rank fusion: the sum of weight / (`k` + rank).

    Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods",
    SIGIR 2009, with k = 60 and without weights.
    """

    method: ClassVar[str] = "rrf"
    k: float = number(
        "constant added to each rank; a larger value favours the first ranks less", default=RANK_CONSTANT
    )
    normalization: Normalization = Normalization.max

    def fused(self, answers: Weighted) -> dict[str, float]:
        total: dict[str, float] = {}
        for weight, answer in answers:
            for document, rank in ranks_of(answer).items():
                total[document] = total.get(document, 0.0) + weight / (self.k + rank)
        return total

    def given(self, answers: Weighted, document: str) -> ScoreParts:
        ranks = [(weight, ranks_of(answer).get(document)) for weight, answer in answers]
        return ScoreParts([None if rank is None else weight / (self.k + rank) for weight, rank in ranks])


# The fusions without a model, by their names in recipes.
KINDS: Mapping[str, type[Fusion]] = {
    kind.method: kind for kind in (SumFusion, CombMnzFusion, ReciprocalRankFusion)
}


def scores_of(answer: Answer, normalization: Normalization) -> Scores:
    """Return a signal's answer as scores: hits are scaled, scores are unchanged."""
    if not isinstance(answer, Hits):
        return answer
    scores = dict(zip(answer.document_ids, answer.scores, strict=True))
    return shares_of(scores) if normalization is Normalization.max else scores


def ranks_of(answer: Answer) -> dict[str, int]:
    """Return the rank of each document, from 1, in a ranking by the signal alone."""
    hits = answer if isinstance(answer, Hits) else ranked(answer, len(answer))
    return {document: rank for rank, document in enumerate(hits.document_ids, start=1)}


def weighted_sum(weighted: Iterable[tuple[float, Scores]]) -> dict[str, float]:
    """Return the weighted sum of scores; a missing score adds nothing."""
    total: dict[str, float] = {}
    for weight, scores in weighted:
        for document, score in scores.items():
            total[document] = total.get(document, 0.0) + weight * score
    return total


if TYPE_CHECKING:
    Float64Array = NDArray[np.float64]

# The documents of each signal that candidates come from, at any depth of the run.
REACH = 500

# The weight of the weighted sum added to the log-odds: it breaks ties of the trees.
SUM_WEIGHT = 0.001

_SHARE, _SCORE, _BEST = "share", "score", "best"
_OTHER_FEATURES = ("sum", "signals")

# The training topics of each fold that are answered, and the ids of all its topics, whose votes are withheld.
TrainingFolds = Iterable[tuple[Sequence[Example], frozenset[str]]]

# Yields the answers of each signal to the training topics of folds.
AnswerFunction = Callable[[TrainingFolds], Iterator[tuple[Example, Sequence[Answer]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedFusion(Fusion):
    """Trees over the first `candidates` of the weighted sum, trained on at most `max_topics` topics in `folds`.

    Without its model it is the weighted sum.
    """

    method: ClassVar[str] = "learned"
    kind: ClassVar[str] = "fusion"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.model})
    reach: ClassVar[int] = REACH
    listed_first: ClassVar[tuple[str, ...]] = (
        "num_trees",
        "num_leaves",
        "min_samples",
        "learning_rate",
        "seed",
        "folds",
    )

    # The normalization of the weighted sum; the trees use both kinds of scores.
    added: Normalization = choice(
        [*Normalization],
        "normalization of scores before they are added: divided by the topic's greatest score, or none",
        key="normalization",
        default=Normalization.max,
    )

    candidates: int = whole("number of documents that the trees rank: the first ones of the weighted sum")
    max_topics: int = whole("maximum number of training topics for the trees")
    folds: int = whole("number of folds of training topics; the votes for a fold come from the other folds")
    num_trees: int = whole("number of trees")
    num_leaves: int = whole("maximum number of leaves of a tree")
    min_samples: int = whole("minimum number of candidates in a leaf")
    learning_rate: float = number("learning rate of the trees")
    seed: int = whole("seed of the folds and of the trees", default=SEED)
    normalization: Normalization = Normalization.none

    @classmethod
    def read(cls, table: RecipeTable) -> Self:
        """Read a table as `Fusion.read` does, with at least 2 folds and 2 leaves."""
        values = table.parameters(cls)
        if values["folds"] < 2:
            raise table.place.wrong(
                "has 1 fold in its fusion: it needs at least 2, because each fold is ranked by votes of the others"
            )
        if values["num_leaves"] < 2:
            raise table.place.wrong("has 1 leaf in its fusion: a tree needs at least 2")
        return cls(**values)

    @property
    def unlearned(self) -> LearnedFusion:
        return _WeightedSum(**{field.name: getattr(self, field.name) for field in fields(self)})

    def ready(self, signals: Sequence[str], model: Callable[[], StoredModel]) -> Fusion:
        return _TreeFusion(self, signals, model())

    def fused(self, answers: Weighted) -> dict[str, float]:
        return _normalized_sum(self.signal_scores(answers))

    def signal_scores(self, answers: Weighted) -> list[_SignalScores]:
        signal_scores = []
        for weight, answer in answers:
            scores = scores_of(answer, Normalization.none)
            greatest = max(scores.values(), default=0.0)
            unit = greatest if self.added is Normalization.max else 1.0
            signal_scores.append(_SignalScores(weight, scores, greatest, unit))
        return signal_scores

    def given(self, answers: Weighted, document: str) -> ScoreParts:
        return ScoreParts(
            [
                weight * scores[document] / unit if weight and unit > 0 and document in scores else None
                for weight, scores, _, unit in self.signal_scores(answers)
            ]
        )

    def train(
        self, signals: Sequence[tuple[str, float]], examples: Sequence[Example], answers_of: AnswerFunction
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return header and arrays of the model for signals of these names and weights.

        Raises:
            DataError: no candidate of a training topic is relevant, or all are.
        """
        import numpy as np

        from searchapp.ranking.learning import grow_trees  # slow to import

        names = feature_names([name for name, _ in signals])
        matrices: list[Float64Array] = []
        relevant: list[bool] = []
        topics_per_fold = -(-self.max_topics // self.folds)
        folds = [
            (fold[:topics_per_fold], frozenset(example.topic.id for example in fold))
            for fold in self.make_folds(examples)
        ]
        for example, answers in answers_of(folds):
            weighted = [(weight, answer) for (_, weight), answer in zip(signals, answers, strict=True)]
            documents, rows = self.rows(weighted, example.topic.id)
            matrices.append(rows)
            relevant += [example.gold.get(document, 0.0) > 0 for document in documents]
        relevant_rows = np.array(relevant, dtype=np.bool_)
        if not relevant_rows.any() or relevant_rows.all():
            raise DataError(
                f"the candidates of the {counted(len(examples), 'training topic')} are all relevant or "
                "all not relevant, so the fusion can't learn: choose another recipe"
            )
        trees = grow_trees(
            names,
            np.concatenate(matrices),
            relevant_rows,
            num_trees=self.num_trees,
            num_leaves=self.num_leaves,
            min_samples=self.min_samples,
            learning_rate=self.learning_rate,
            seed=self.seed,
        )
        return {"candidates": len(relevant_rows), "labels": ["relevant"], **trees.header()}, trees.arrays()

    def make_folds(self, examples: Sequence[Example]) -> list[list[Example]]:
        """Divide training topics into folds, by the seed and independent of their order."""
        shuffled = sorted(examples, key=lambda example: example.topic.id)
        random.Random(self.seed).shuffle(shuffled)  # no secret
        return [shuffled[fold :: self.folds] for fold in range(self.folds)]

    def rows(self, answers: Weighted, without: str | None = None) -> tuple[list[str], Float64Array]:
        """Return the candidates, `without` one document, and their features: float64 (candidates, features)."""
        by_signal = self.signal_scores([(weight, _truncated(answer)) for weight, answer in answers])
        return self.rows_of(by_signal, _normalized_sum(by_signal), without)

    def rows_of(
        self, by_signal: Sequence[_SignalScores], total: Scores, without: str | None = None
    ) -> tuple[list[str], Float64Array]:
        """Return the same as `rows`, from answers no deeper than `REACH` and their weighted sum."""
        import numpy as np

        best = heapq.nsmallest(self.candidates + 1, total.items(), key=lambda item: (-item[1], item[0]))
        documents = [document for document, _ in best if document != without][: self.candidates]
        matrix = np.zeros((len(documents), 3 * len(by_signal) + len(_OTHER_FEATURES)))
        for index, (_, scores, greatest, _) in enumerate(by_signal):
            signal_column = [scores.get(document, 0.0) for document in documents]
            matrix[:, 3 * index + 1] = signal_column
            matrix[:, 3 * index + 2] = greatest
            if greatest > 0:
                matrix[:, 3 * index] = matrix[:, 3 * index + 1] / greatest
        matrix[:, -2] = [total[document] for document in documents]
        matrix[:, -1] = (matrix[:, : 3 * len(by_signal) : 3] > 0).sum(axis=1)
        return documents, matrix


class _WeightedSum(LearnedFusion):
    __slots__ = ()

    def ready(self, signals: Sequence[str], model: Callable[[], StoredModel]) -> Fusion:  # noqa: ARG002  # it has no model
        return self


class _TreeFusion(Fusion):
    """The fusion with its model.

    The score of a candidate is the sum of its log-odds, `EQUALS` times its weighted sum, and a constant that places
    candidates above all other documents.
    """

    __slots__ = ("_recipe_fusion", "_stored", "_trees", "normalization")

    method = LearnedFusion.method
    needs = LearnedFusion.needs
    reach = REACH

    def __init__(self, described: LearnedFusion, signals: Sequence[str], stored: StoredModel) -> None:
        from searchapp.ranking.learning import Trees  # slow to import

        self._recipe_fusion = described
        self._stored = stored
        self._trees = Trees.read(stored.header, stored.arrays)
        self.normalization = described.normalization
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
        return self._recipe_fusion.manifest()

    def fused(self, answers: Weighted) -> dict[str, float]:
        by_signal = self._recipe_fusion.signal_scores(answers)
        total = _normalized_sum(by_signal)
        if all(_truncated(answer) is answer for _, answer in answers):
            documents, rows = self._recipe_fusion.rows_of(by_signal, total)
        else:
            documents, rows = self._recipe_fusion.rows(answers)
        scores = self._trees.scores(rows) + self._candidate_offset(answers)
        candidates = zip(documents, scores.tolist(), strict=True)
        return total | {document: score + SUM_WEIGHT * total[document] for document, score in candidates}

    def given(self, answers: Weighted, document: str) -> ScoreParts:
        row = self._row(answers, document)
        if row is None:
            return self._recipe_fusion.given(answers, document)
        parts = self._trees.parts(row)[0]
        shares = self._recipe_fusion.given(answers, document).signals
        signal_parts: list[float | None] = []
        for index, share in enumerate(shares):
            value = float(parts[3 * index : 3 * index + 3].sum()) + SUM_WEIGHT * (share or 0.0)
            signal_parts.append(value if value or share is not None else None)
        other = float(parts[3 * len(shares) :].sum()) + self._trees.bias + self._candidate_offset(answers)
        return ScoreParts(signal_parts, other)

    def explained(self, answers: Weighted, document: str) -> tuple[str, tuple[Explanation, ...]]:
        row = self._row(answers, document)
        if row is None:
            candidates = counted(self._recipe_fusion.candidates, "candidate")
            return f"fused by sum, below the {candidates} that {self.method} ranks", ()
        trees = self._trees
        log_odds = float(trees.scores(row)[0])
        parts = trees.parts(row)[0].tolist()
        parts_by_size = sorted(
            zip(parts, trees.features, row[0].tolist(), strict=True), key=lambda part: -abs(part[0])
        )
        details = [
            Explanation(part, f"{name} is {value:.4g}") for part, name, value in parts_by_size[:SHOWN] if part
        ]
        if other_sum := sum(part for part, _, _ in parts_by_size[SHOWN:]):
            details.append(Explanation(other_sum, counted(len(parts_by_size) - SHOWN, "further feature")))
        details.append(Explanation(trees.bias, "bias of the trees"))
        learned = Explanation(
            log_odds,
            f"log-odds of relevance by {counted(len(trees.roots), 'tree')}, sum of",
            tuple(details),
        )
        total = self._recipe_fusion.fused(answers)[document]
        parts_text = f"log-odds {log_odds:.4f}, {SUM_WEIGHT:g} * the weighted sum {total:.4f}"
        lifted = f"{self._candidate_offset(answers):.4f} for every candidate"
        return f"fused by {self.method}: {parts_text}, and {lifted}", (learned,)

    def _row(self, answers: Weighted, document: str) -> Float64Array | None:
        documents, rows = self._recipe_fusion.rows(answers)
        return rows[[documents.index(document)]] if document in documents else None

    def _candidate_offset(self, answers: Weighted) -> float:
        by_signal = self._recipe_fusion.signal_scores(answers)
        greatest = sum(weight * (best / unit) for weight, _, best, unit in by_signal if unit > 0)
        return greatest - self._trees.least


def feature_names(signals: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the features, in the order of the columns."""
    return (*(f"{name} {what}" for name in signals for what in (_SHARE, _SCORE, _BEST)), *_OTHER_FEATURES)


class _SignalScores(NamedTuple):
    weight: float
    scores: Scores
    greatest: float
    unit: float  # the weighted sum divides scores by it


def _normalized_sum(by_signal: Sequence[_SignalScores]) -> dict[str, float]:
    total: dict[str, float] = {}
    for weight, scores, _, unit in by_signal:
        if weight > 0:
            factor = weight / unit if unit > 0 else 0.0
            for document, score in scores.items():
                total[document] = total.get(document, 0.0) + factor * score
    return total


def _truncated(answer: Answer) -> Answer:
    return answer[:REACH] if isinstance(answer, Hits) and len(answer) > REACH else answer
