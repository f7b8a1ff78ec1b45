"""The signal `cosine`: the similarity of topic and document by terms of the index, without an engine.

    score(d) = Σ_t q(t) idf(t) / (L(d)^length_norm * L^(1 - length_norm))

over the common terms t, with the topic's vector q of length 1, the length L(d) of the document's vector and the mean
L of these lengths (see `searchapp.ranking.signals.terms`). With `length_norm` 1 it is the cosine; less favours longer
documents (pivoted normalisation: Singhal, Buckley and Mitra, SIGIR 1996).

With `kind_field`, a field of documents such as the table of a fact, a document's score is multiplied by

    (a(kind) / a)^kind_prior        a(kind) = (Σ_h Σ_d grade(h, d)^3 + 5a) / (n(kind) + 5)

over the training topics h, except the topic itself, and the n(kind) documents d of its kind; a is that sum over all
documents, divided by their number. The cube is close to the gain of ratings in NDCG.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from searchapp.lucene.dataclass import dataclass
from searchapp.model import Explanation, Hits, Topic
from searchapp.ranking.signals.base import (
    Answer,
    Inputs,
    Need,
    Signal,
    SignalRequest,
    SignalScorer,
    TopicScorer,
)
from searchapp.ranking.signals.terms import Floats, TermSpace
from searchapp.ranking.templates import boosts, number, text, window

# How many documents of average use are added to each kind.
SMOOTHED = 5


def _has_kinds(read: Mapping[str, Any]) -> bool:
    return read["kind_field"] is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosine(Signal):
    """Documents by their common terms with a topic."""

    kind: ClassVar[str] = "cosine"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.terms})
    listed_first: ClassVar[tuple[str, ...]] = ("length_norm", "boosts", "kind_field", "kind_prior")

    window: int = window()
    length_norm: float = number(
        "exponent of the document's length in the normalization, 1 for a cosine", default=1.0
    )
    boosts: Mapping[str, float] = boosts()
    kind_field: str | None = text("the field with the kind of a document", default=None)
    kind_prior: float = number(
        "how strongly kinds are preferred that are often gold",
        when=_has_kinds,
        required=_has_kinds,
        default=0.0,
    )

    def prepare(self, inputs: Inputs) -> SignalScorer:
        space = (
            inputs.terms() if self.kind_field is None else inputs.terms().require_training_topics(self.name)
        )
        return _Matching(self, space, topics_are_documents=inputs.topics_are_documents)


class _Matching(TopicScorer):
    def __init__(self, signal: Cosine, space: TermSpace, *, topics_are_documents: bool) -> None:
        self._space = space
        self._boosts = signal.boosts
        self._window = signal.window
        self._topics_are_documents = topics_are_documents
        mean = float(space.lengths.mean()) if len(space.lengths) else 1.0
        self._norms: Floats = space.lengths**signal.length_norm * mean ** (1 - signal.length_norm)
        self._kinds = (
            None if signal.kind_field is None else Kinds(space, signal.kind_field, signal.kind_prior)
        )

    def scores(self, topic: Topic, request: SignalRequest) -> Answer:
        scores = self._scores(topic).astype(np.float32)
        if self._topics_are_documents and topic.id in self._space.rows:
            scores[self._space.rows[topic.id]] = -np.inf
        best = np.argsort(-scores, kind="stable")[: max(self._window, request.depth)]
        best = best[scores[best] >= 0]
        return Hits([self._space.documents[row] for row in best], scores[best].tolist())

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (topic,) = request.topics
        row = self._space.rows.get(document_id)
        if row is None:
            return None
        value = float(self._scores(topic)[row])
        vector = self._space.topic_vector(topic, self._boosts)
        factor, description = 1.0, "term weights of topic and document, normalized by both lengths"
        if self._kinds is not None:
            factor = float(self._kinds.factors(topic)[row])
            description += f", times {factor:.3g} for {self._kinds.name(document_id)}"
        details = self._space.shared_terms(vector, self._space.matrix[row], factor / float(self._norms[row]))
        return Explanation(value, description, details)

    def _scores(self, topic: Topic) -> Floats:
        scores: Floats = (self._space.matrix @ self._space.topic_vector(topic, self._boosts)) / self._norms
        return scores if self._kinds is None else scores * self._kinds.factors(topic)


class Kinds:
    """How often documents of a kind are answers; `field` has the kind of a document."""

    def __init__(self, space: TermSpace, field: str, lean: float) -> None:
        self._space = space
        self._field = field
        self._lean = lean
        numbers: dict[str, int] = {}
        kinds = [
            numbers.setdefault(str(space.fields[id_].get(field, "")), len(numbers)) for id_ in space.documents
        ]
        self._kinds = np.array(kinds, dtype=np.int64)  # of each document, (documents,)
        self._counts = np.bincount(self._kinds, minlength=len(numbers))
        self._training_answers = {topic_id: self._answers(topic_id) for topic_id in space.training_ids}
        self._all = sum(self._training_answers.values(), np.zeros(len(numbers)))

    def factors(self, topic: Topic) -> Floats:
        """Return the factor of each document's score, (documents,)."""
        answers = self._all - self._training_answers.get(topic.id, 0.0)
        mean = answers.sum() / max(len(self._kinds), 1)
        if mean <= 0:
            return np.ones(len(self._kinds))
        rates = (answers + SMOOTHED * mean) / (self._counts + SMOOTHED)
        factors: Floats = ((rates / mean) ** self._lean)[self._kinds]
        return factors

    def name(self, document_id: str) -> str:
        return f"{self._field} {self._space.fields[document_id].get(self._field, '')}".strip()

    def _answers(self, topic_id: str) -> Floats:
        """Return the sum of cubed grades in a training topic for each kind, (kinds,)."""
        totals = np.zeros(len(self._counts))
        for document, grade in sorted(self._space.gold[topic_id].items()):
            if document in self._space.rows and grade > 0:
                totals[self._kinds[self._space.rows[document]]] += grade**3
        return totals
