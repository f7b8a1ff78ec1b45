"""The signal `labelled`: what is retrieved for a topic asks in its turn, for its like among solved topics.

A debate is a topic, its sentences are the documents, and whether a sentence is worth checking is seen from sentences
of other debates. So each candidate, which is a document that the recipe's first signal retrieves, becomes a query, and
the nearest `k` documents of solved topics vote with their grades.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from searchapp.engines.base import Explanation
from searchapp.errors import QueryRefused
from searchapp.model import Document, Hits, Topic
from searchapp.ranking.signals.base import Answer, Asked, Inputs, Labels, Need, Scorer, Vote
from searchapp.ranking.signals.voting import Voting

if TYPE_CHECKING:
    from searchapp.engines.base import Index
    from searchapp.progress import Advance


@dataclass(frozen=True, slots=True)
class Labelled(Voting):
    """`query` finds the `k` documents nearest to a candidate, whose grades vote, see `share`."""

    kind: ClassVar[str] = "labelled"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.labels, Need.candidates})

    def prepare(self, inputs: Inputs) -> Scorer:
        """Read the documents and their grades."""
        return _Asking(self, inputs.index, inputs.labels())


@dataclass(frozen=True, slots=True)
class _Asking(Scorer):
    signal: Labelled
    index: Index
    labels: Labels

    def answers(self, asked: Asked, advance: Advance) -> Iterator[Answer]:
        """All candidates of all topics ask in one batch."""
        asking = [
            (topic, self.labels.documents[document])
            for topic, candidates in zip(asked.topics, asked.candidates, strict=True)
            for document in candidates.document_ids
        ]
        nearest = self._nearest(asking)
        for topic, candidates in zip(asked.topics, asked.candidates, strict=True):
            grades = self.labels.without(topic)
            yield {
                document: share(next(nearest), grades, self.signal.power)
                for document in candidates.document_ids
            }
            advance(1)

    def _nearest(self, asking: Sequence[tuple[Topic, Document]]) -> Iterator[Hits]:
        query, k = self.signal.query, self.signal.k
        try:
            yield from self.index.search(query.body(topic, k, document) for topic, document in asking)
        except QueryRefused as error:
            topic, document = asking[error.place]
            raise QueryRefused(f"topic {topic.id}, document {document.id}: {error}", error.place) from error

    def explain(self, asked: Asked, document_id: str) -> Explanation | None:
        (topic,) = asked.topics
        if document_id not in self.labels.documents:
            return None
        (nearest,) = self._nearest([(topic, self.labels.documents[document_id])])
        grades = self.labels.without(topic)
        value = share(nearest, grades, self.signal.power)
        graded = [(document, score) for document, score in nearest if grades.get(document, 0.0)]
        details = tuple(
            Explanation(grades[document], f"grade of {document}, which has the score {score:g}")
            for document, score in graded
        )
        return Explanation(
            value, f"mean grade of the {len(nearest)} documents most like it; {len(graded)} have one", details
        )

    def votes(self, asked: Asked, document_id: str) -> Sequence[Vote]:
        (topic,) = asked.topics
        if document_id not in self.labels.documents:
            return ()
        (nearest,) = self._nearest([(topic, self.labels.documents[document_id])])
        if not nearest or nearest.scores[0] <= 0:
            return ()
        grades = self.labels.without(topic)
        best, power = nearest.scores[0], self.signal.power
        return [
            Vote("", document, grade, score, grade * (score / best) ** power)
            for document, score in nearest
            if (grade := grades.get(document, 0.0))
        ]


def share(nearest: Hits, grades: Mapping[str, float], power: float) -> float:
    """The mean grade of the nearest documents, each weighing (s / s1) ** power; 0 when there is none.

    s is the score of a document, s1 that of the first; a document without a grade has grade 0.
    """
    if not nearest or nearest.scores[0] <= 0:
        return 0.0
    best = nearest.scores[0]
    weights: list[float] = [(score / best) ** power for score in nearest.scores]
    found = sum(
        weight * grades.get(document, 0.0)
        for document, weight in zip(nearest.document_ids, weights, strict=True)
    )
    return float(found / sum(weights))
