"""The signal `expansion`: the topic expanded by terms of the preceding signals' first documents.

Two methods, `method`:

    greedy   document by document, in their order r = 1, 2, ... `feedback_documents`: a term that the topic lacks
             weighs its weight in the document's unit vector / r, the maximum over documents (after Cartuyvels, Spinks
             and Moens, "Autoregressive reasoning over chains of facts with transformers", COLING 2020)
    rm3      the relevance model (Lavrenko and Croft, "Relevance-based language models", SIGIR 2001) of the documents:
             P(t) = Σ_d P(t|d) s(d) / Σ_d s(d), with P(t|d) a document's share of each of its terms and s(d) its
             score; the `feedback_terms` greatest weigh `feedback_weight`, the topic's own 1 - `feedback_weight`
             (Abdul-Jaleel et al., "UMass at TREC 2004")

A document's score is the product of its unit vector and the expanded vector (see `searchapp.ranking.signals.terms`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from searchapp.lucene.dataclass import dataclass
from searchapp.model import Explanation, Hits, Topic
from searchapp.progress import Advance
from searchapp.ranking.signals.base import LEADERS, Answer, Inputs, Need, Signal, SignalRequest, SignalScorer
from searchapp.ranking.signals.terms import Floats, TermSpace
from searchapp.ranking.templates import RecipeTable, boosts, choice, number, whole
from searchapp.text import counted

GREEDY, RM3 = "greedy", "rm3"

# How many terms an explanation lists: those with the greatest weight.
SHOWN = 8


def _is_model(read: Mapping[str, Any]) -> bool:
    return bool(read["method"] == RM3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion(Signal):
    """Documents by the terms of first documents."""

    kind: ClassVar[str] = "expansion"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.terms, Need.leaders})
    listed_first: ClassVar[tuple[str, ...]] = (
        "feedback_documents",
        "method",
        "feedback_terms",
        "feedback_weight",
    )

    method: str = choice((GREEDY, RM3), "expansion method", default=GREEDY)
    feedback_documents: int = whole("number of first documents that expand the topic")
    feedback_terms: int = whole("number of terms of the relevance model", when=_is_model, default=20)
    feedback_weight: float = number("their weight relative to the topic", when=_is_model, default=0.5)
    boosts: Mapping[str, float] = boosts()

    @classmethod
    def read(cls, table: RecipeTable) -> Expansion:
        """Read a table as `Signal.read` does, with at most `LEADERS` documents."""
        values = table.parameters(cls)
        documents = values["feedback_documents"]
        if documents > LEADERS:
            raise table.place.wrong(
                f"expands by {documents} documents in {table.name!r}: the maximum is {LEADERS}"
            )
        return cls(name=table.name, **values)

    def prepare(self, inputs: Inputs) -> SignalScorer:
        return _ExpansionScorer(self, inputs.terms())


class _ExpansionScorer(SignalScorer):
    def __init__(self, signal: Expansion, space: TermSpace) -> None:
        self._signal = signal
        self._space = space

    def answers(self, request: SignalRequest, advance: Advance) -> Iterator[Answer]:
        for topic, leaders in zip(request.topics, request.leaders, strict=True):
            yield self._space.positive_scores(
                self._space.documents, self._space.unit @ self._expanded(topic, leaders)
            )
            advance(1)

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (topic,) = request.topics
        (leaders,) = request.leaders
        row = self._space.rows.get(document_id)
        if row is None:
            return None
        vector, document_vector = self._expanded(topic, leaders), self._space.unit[row]
        value = float((document_vector @ vector)[0])
        if value <= 0:
            return None
        sources = {
            id_: {*self._space.unit[self._space.rows[id_]].indices}
            for id_ in self._feedback_documents(leaders)
        }
        details = []
        for term, weight in zip(document_vector.indices, document_vector.data, strict=True):
            if vector[term] > 0:
                origin = next((id_ for id_, terms in sources.items() if term in terms), None)
                description = f"{self._space.names[term]}, " + (
                    "of the topic" if origin is None else f"from {origin}"
                )
                details.append(Explanation(float(vector[term] * weight), description))
        details.sort(key=lambda part: -part.value)
        count = len(self._feedback_documents(leaders))
        description = (
            f"terms of the {counted(count, 'document')} that the preceding signals rank highest, expanded by "
            f"{self._signal.method}"
        )
        return Explanation(value, description, tuple(details[:SHOWN]))

    def _feedback_documents(self, leaders: Hits) -> list[str]:
        first = leaders[: self._signal.feedback_documents].document_ids
        return [id_ for id_ in first if id_ in self._space.rows]

    def _expanded(self, topic: Topic, leaders: Hits) -> Floats:
        """Return the vector that scores the documents, (terms,)."""
        topic_vector = self._space.topic_vector(topic, self._signal.boosts)
        if self._signal.method == RM3:
            return self._relevance_model(topic_vector, leaders)
        weights = np.zeros(len(topic_vector))
        for rank, id_ in enumerate(self._feedback_documents(leaders), start=1):
            row = self._space.unit[self._space.rows[id_]]
            weights[row.indices] = np.maximum(weights[row.indices], row.data / rank)
        weights[topic_vector > 0] = 0.0
        return weights

    def _relevance_model(self, topic_vector: Floats, leaders: Hits) -> Floats:
        scores = dict(leaders)
        total = sum(max(scores[id_], 0.0) for id_ in self._feedback_documents(leaders))
        model = np.zeros(len(topic_vector))
        for id_ in self._feedback_documents(leaders) if total > 0 else ():
            columns = self._space.matrix[self._space.rows[id_]].indices
            if len(columns):
                model[columns] += max(scores[id_], 0.0) / total / len(columns)
        model[np.argsort(-model, kind="stable")[self._signal.feedback_terms :]] = 0.0
        model *= self._space.idf
        length = float(np.sqrt(model @ model))
        if not length:
            return topic_vector
        return (
            1 - self._signal.feedback_weight
        ) * topic_vector + self._signal.feedback_weight * model / length
