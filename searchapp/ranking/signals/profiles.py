"""The signal `profiles`: each document expanded by the training topics that it answers.

    p(d) = v(d) + growth / √n(d) * Σ_h grade(h, d) q(h)        over the n(d) training topics h that d is an answer to
    score(d) = cosine of p(d) and the topic

v(d) and q(h) are unit vectors (see `searchapp.ranking.signals.terms`). Relevance feedback for documents: Brauen,
"Document vector modification", in Salton, The SMART Retrieval System, 1971.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from searchapp.lucene.dataclass import dataclass
from searchapp.model import Explanation, Topic
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
from searchapp.ranking.templates import boosts, number
from searchapp.text import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles(Signal):
    """Documents by their own words and those of topics that they answered."""

    kind: ClassVar[str] = "profiles"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.terms})
    topic_weight: float = number(
        "weight of the words of training topics with the document as gold", default=1.0
    )
    boosts: Mapping[str, float] = boosts()

    def prepare(self, inputs: Inputs) -> SignalScorer:
        return _ProfileScorer(
            self,
            inputs.terms().require_training_topics(self.name),
            topics_are_documents=inputs.topics_are_documents,
        )


class _ProfileScorer(TopicScorer):
    def __init__(self, signal: Profiles, space: TermSpace, *, topics_are_documents: bool) -> None:
        from scipy.sparse import csr_matrix, diags

        self._signal = signal
        self._space = space
        self._topics_are_documents = topics_are_documents
        self._asked = space.training_vectors({})
        rows, columns, grades = [], [], []
        for column, topic_id in enumerate(space.training_ids):
            for document, grade in sorted(space.gold[topic_id].items()):
                if grade > 0 and document in space.rows:
                    rows.append(space.rows[document])
                    columns.append(column)
                    grades.append(grade)
        shape = len(space.documents), len(space.training_ids)
        # Grades, (documents, training topics).
        self._gold = csr_matrix((np.array(grades, dtype=np.float64), (rows, columns)), shape=shape)
        self._cited = np.diff(self._gold.indptr)
        shares = signal.topic_weight / np.sqrt(np.maximum(self._cited, 1))
        self._profiles = (space.unit + diags(shares) @ (self._gold @ self._asked)).tocsr()
        squares = np.asarray(self._profiles.multiply(self._profiles).sum(axis=1)).ravel()
        self._lengths: Floats = np.sqrt(np.where(squares > 0, squares, 1.0))
        self._numbers = {topic_id: column for column, topic_id in enumerate(space.training_ids)}

    def scores(self, topic: Topic, request: SignalRequest) -> Answer:  # noqa: ARG002  # a cosine is on both scales
        vector = self._space.topic_vector(topic, self._signal.boosts)
        scores = (self._profiles @ vector) / self._lengths
        # A training topic must not be ranked by its own answers.
        for row, profile in self._without(topic).items():
            scores[row] = _cosine(profile, vector)
        if self._topics_are_documents and topic.id in self._space.rows:
            scores[self._space.rows[topic.id]] = 0.0
        return self._space.positive_scores(self._space.documents, scores)

    def explain(self, request: SignalRequest, document_id: str) -> Explanation | None:
        (topic,) = request.topics
        row = self._space.rows.get(document_id)
        if row is None:
            return None
        profile = self._without(topic).get(row, self._profiles[row])
        vector = self._space.topic_vector(topic, self._signal.boosts)
        value = _cosine(profile, vector)
        if value <= 0:
            return None
        number = self._numbers.get(topic.id)
        cited = int(self._cited[row]) - int(number is not None and self._gold[row, number] > 0)
        length = float(np.sqrt(profile.multiply(profile).sum()))
        topics = counted(cited, "training topic")
        description = f"cosine of the topic and the document, expanded by {topics} with it as gold"
        return Explanation(value, description, self._space.shared_terms(vector, profile, 1 / length))

    def _without(self, topic: Topic) -> dict[int, Any]:
        """Return the profiles of a training topic's own answers without the topic, by row."""
        number = self._numbers.get(topic.id)
        if number is None:
            return {}
        profiles = {}
        for row in self._gold[:, [number]].tocoo().row:
            cited = max(int(self._cited[row]) - 1, 1)
            grades = self._gold[row].copy()
            grades[0, number] = 0.0
            expansion = self._signal.topic_weight / cited**0.5 * (grades @ self._asked)
            profiles[int(row)] = (self._space.unit[row] + expansion).tocsr()
        return profiles


def _cosine(row: Any, vector: Floats) -> float:
    squares = float(row.multiply(row).sum())
    return float((row @ vector)[0]) / squares**0.5 if squares > 0 else 0.0
