"""The signal `labelled`: each candidate is a query for similar documents of training topics, which vote.

A debate is a topic, its sentences are the documents, and sentences of other debates show whether a sentence is worth
checking. The `k` nearest graded documents of each candidate, a document of the recipe's first signal, vote with their
grades.

With `position_decay`, votes are multiplied by e ** -(`position_decay` * distance): the beginning of a speech is
rarely like its end. A document's position is the number in the field `position_field` over the greatest one with the
same `group_field`, from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from searchapp.engines.base import Index
from searchapp.errors import QueryRefused
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document, Explanation, Hits, Topic
from searchapp.progress import Advance
from searchapp.ranking.signals.base import (
    Answer,
    GradedDocuments,
    Inputs,
    Need,
    SignalRequest,
    SignalScorer,
    Vote,
    Voting,
    number_in,
)
from searchapp.ranking.templates import number, text, whole
from searchapp.text import counted


def _uses_position(read: Mapping[str, Any]) -> bool:
    return bool(read["position_decay"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled(Voting):
    """`query` retrieves the `k` documents nearest to a candidate, whose grades vote."""

    kind: ClassVar[str] = "labelled"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.labels, Need.candidates})
    listed_first: ClassVar[tuple[str, ...]] = (
        "k",
        "power",
        "position_decay",
        "group_field",
        "position_field",
        "candidates",
    )

    candidates: int | None = whole(
        "number of the first signal's documents that are used; omitted: all", default=None
    )
    position_decay: float = number("how steeply votes fall with the distance of positions", default=0.0)
    group_field: str | None = text(
        "the field that names the text of a document, for its position", required=_uses_position, default=None
    )
    position_field: str | None = text(
        "the field with a document's number, for its position", required=_uses_position, default=None
    )

    def parameters(self) -> dict[str, Any]:
        """Return the record of the signal in a run, with positions only if they count."""
        # super() fails in a dataclass with slots: the decorator creates a new class.
        described = Voting.parameters(self)
        of_position = () if self.position_decay else ("position_decay", "group_field", "position_field")
        return {key: value for key, value in described.items() if key not in of_position}

    def prepare(self, inputs: Inputs) -> SignalScorer:
        labels = inputs.labels()
        return _LabelledScorer(self, inputs.index, labels, self._positions(labels.documents.values()))

    def _positions(self, documents: Iterable[Document]) -> Mapping[str, float]:
        """Return the position of each document, from 0 to 1; empty if positions do not count."""
        if not self.position_decay or self.group_field is None or self.position_field is None:
            return {}
        numbers: dict[str, tuple[object, float]] = {}
        last: dict[object, float] = {}
        for document in documents:
            of, number = document.fields.get(self.group_field), number_in(document, self.position_field)
            numbers[document.id] = of, number
            last[of] = max(number, last.get(of, number))
        return {
            document_id: number / last[of] if last[of] else 0.0
            for document_id, (of, number) in numbers.items()
        }


@dataclass(frozen=True, slots=True)
class _LabelledScorer(SignalScorer):
    signal: Labelled
    index: Index
    labels: GradedDocuments
    positions: Mapping[str, float]

    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Answer]:
        queries = [
            (topic, self.labels.documents[document])
            for topic, candidates in zip(request.topics, request.candidates, strict=True)
            for document in self._queries_of(candidates)
        ]
        nearest = self._nearest(queries)
        for topic, candidates in zip(request.topics, request.candidates, strict=True):
            grades = self.labels.without(topic)
            yield {
                document: share(grades, self._weights(document, next(nearest)))
                for document in self._queries_of(candidates)
            }
            advance(1)

    def _queries_of(self, candidates: Hits) -> Sequence[str]:
        # Each candidate costs a query, and votes rarely bring one with a low rank to the top.
        return candidates.document_ids[: self.signal.candidates]

    def _is_query(self, request: SignalRequest, document_id: str) -> bool:
        is_candidate = all(document_id in self._queries_of(candidates) for candidates in request.candidates)
        return is_candidate and document_id in self.labels.documents

    def _weights(self, document: str, nearest: Hits) -> list[tuple[str, float]]:
        if not nearest or nearest.scores[0] <= 0:
            return []
        best, power = nearest.scores[0], self.signal.power
        weights = [(other, (score / best) ** power) for other, score in nearest]
        if not self.positions:
            return weights
        position, steepness = self.positions[document], self.signal.position_decay
        return [
            (other, weight * math.exp(-steepness * abs(self.positions[other] - position)))
            for other, weight in weights
        ]

    def _nearest(self, queries: Sequence[tuple[Topic, Document]]) -> Iterator[Hits]:
        query, k = self.signal.query, self.signal.k
        try:
            yield from self.index.search(query.body(topic, k, document) for topic, document in queries)
        except QueryRefused as error:
            topic, document = queries[error.place]
            prefix = f"topic {topic.id}, document {document.id}: "
            raise QueryRefused.of(error, error.place, prefix) from error

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (topic,) = request.topics
        if not self._is_query(request, document_id):
            return None
        (nearest,) = self._nearest([(topic, self.labels.documents[document_id])])
        grades = self.labels.without(topic)
        value = share(grades, self._weights(document_id, nearest))
        graded = [(document, score) for document, score in nearest if grades.get(document, 0.0)]
        details = tuple(
            Explanation(grades[document], f"grade of {document}, which has the score {score:g}")
            for document, score in graded
        )
        return Explanation(
            value,
            f"mean grade of the {counted(len(nearest), 'document')} most like it; {len(graded)} have one",
            details,
        )

    def votes(self, request: SignalRequest, document_id: str) -> Sequence[Vote]:
        (topic,) = request.topics
        if not self._is_query(request, document_id):
            return ()
        (nearest,) = self._nearest([(topic, self.labels.documents[document_id])])
        grades = self.labels.without(topic)
        return [
            Vote("", document, grade, score, grade * weight)
            for (document, score), (_, weight) in zip(
                nearest, self._weights(document_id, nearest), strict=False
            )
            if (grade := grades.get(document, 0.0))
        ]


def share(grades: Mapping[str, float], weights: Sequence[tuple[str, float]]) -> float:
    """Return the weighted mean grade of documents, in which a missing grade is 0; 0 without documents."""
    if not weights:
        return 0.0
    total = sum(weight * grades.get(document, 0.0) for document, weight in weights)
    return float(total / sum(weight for _document, weight in weights))
