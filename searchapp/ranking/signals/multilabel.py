"""The signal `multilabel`: a linear model predicts for each document whether it is an answer to a topic.

Each document that enough training topics have in their gold is a label. A document's score is the logistic function
of `steepness` times its margin: a probability, which is on the scale of shares.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document, Example, Explanation
from searchapp.ranking import learning
from searchapp.ranking.learning import KINDS, StoredModel, Vocabulary
from searchapp.ranking.signals.base import (
    Inputs,
    Scores,
    SignalRequest,
    SignalScorer,
    TrainedLinear,
    TrainedScorer,
    feature_details,
    require_labels,
)
from searchapp.ranking.templates import number


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiLabel(TrainedLinear):
    """One label for each document that answers at least `min_samples` training topics."""

    kind: ClassVar[str] = "multilabel"
    features: ClassVar[tuple[str, ...]] = KINDS
    ranking_only: ClassVar[frozenset[str]] = frozenset({"steepness"})
    steepness: float = number("steepness of the logistic function from margins to probabilities")

    def train(
        self,
        examples: Sequence[Example],
        documents: Iterable[Document],  # noqa: ARG002  # those of the gold are the labels
        workers: int,
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        learning.require_learn()
        rows: defaultdict[str, list[int]] = defaultdict(list)
        for row, example in enumerate(examples):
            for document, grade in example.gold.items():
                if grade > 0:
                    rows[document].append(row)
        labels = sorted(document for document, topics in rows.items() if len(topics) >= self.min_samples)
        require_labels(examples, labels, "a document in its gold")
        texts = [example.topic.text for example in examples]
        vocabulary, vectors = Vocabulary.of(texts, self.without)
        work = [learning.TrainingJob({column: rows[label]}, self.cost) for column, label in enumerate(labels)]
        linear = learning.train_linear(vocabulary, vectors, labels, work, self.seed, workers)
        return linear.header(), linear.arrays()

    def prepare(self, inputs: Inputs) -> SignalScorer:
        return _LabelProbabilities(self, inputs.model(self))


class _LabelProbabilities(TrainedScorer):
    def __init__(self, signal: MultiLabel, stored: StoredModel) -> None:
        super().__init__(stored)
        self._steepness = signal.steepness

    def scored(self, margins: Any) -> Iterator[Scores]:
        for scores in logistic(self._steepness * margins):
            yield dict(zip(self._linear.labels, scores.tolist(), strict=True))

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (topic,) = request.topics
        if document_id not in self._linear.labels:
            return None
        label = self._linear.labels.index(document_id)
        margin = float(self._linear.margins([topic.text])[0, label])
        value = float(logistic(self._steepness * margin))
        description = (
            f"probability by a linear model, the logistic function of {self._steepness:g} * its margin"
        )
        description += f"; its margin {margin:.4f} is the sum of"
        intercept = float(self._linear.intercepts[label])
        return Explanation(
            value, description, feature_details(self._linear.parts(topic.text, label), intercept)
        )


def logistic(values: Any) -> Any:
    """Return 1 / (1 + e^-x) for each value, without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * np.asarray(values)))
