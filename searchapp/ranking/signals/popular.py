"""The signal `popular`: the number of training topics that a document answers, as a prior."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

from searchapp.lucene.dataclass import dataclass
from searchapp.model import Explanation, Topic
from searchapp.ranking.signals.base import (
    Inputs,
    Need,
    Normalization,
    Signal,
    SignalRequest,
    SignalScorer,
    TopicScorer,
    shares_of,
)


@dataclass(frozen=True, slots=True)
class Popular(Signal):
    """The number of training topics that have a document as an answer."""

    kind: ClassVar[str] = "popular"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.examples})

    def prepare(self, inputs: Inputs) -> SignalScorer:
        return _Counted(inputs.examples().gold)


class _Counted(TopicScorer):
    def __init__(self, gold: Mapping[str, Mapping[str, float]]) -> None:
        self._gold = gold
        counts = Counter(
            document for answers in gold.values() for document, grade in answers.items() if grade > 0
        )
        self._counts = {document: float(count) for document, count in counts.items()}
        self._shares = shares_of(self._counts)

    def scores(self, topic: Topic, request: SignalRequest) -> dict[str, float]:
        if topic.id not in self._gold:
            return self._shares if request.normalization is Normalization.max else self._counts
        counts = self._without(topic)
        return shares_of(counts) if request.normalization is Normalization.max else counts

    def _without(self, topic: Topic) -> dict[str, float]:
        own = self._gold.get(topic.id, {})
        counts = {document: count - (own.get(document, 0.0) > 0) for document, count in self._counts.items()}
        return {document: count for document, count in counts.items() if count > 0}

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (topic,) = request.topics
        counts = self._without(topic)
        if document_id not in counts:
            return None
        value = self.scores(topic, request)[document_id]
        return Explanation(value, f"in the gold of {counts[document_id]:g} training topics")
