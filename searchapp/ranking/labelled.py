"""The signal of labelled documents: what is retrieved for a topic asks in its turn, for its like among solved topics.

A debate is a topic, its sentences are the documents, and whether a sentence is worth checking is seen from sentences
of other debates. So each document that the recipe's own template retrieves becomes a query, and the nearest `k`
documents of solved topics vote with their grades. Both rankings are fused by their ranks (Cormack, Clarke and
Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods", SIGIR 2009), for the
shares say nothing but an order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from searchapp.errors import QueryRefused
from searchapp.model import Document, Hits, Topic
from searchapp.ranking.signals import Scores, ranked

if TYPE_CHECKING:
    from searchapp.engines.base import Advance, Index
    from searchapp.ranking.recipes import Recipe


@dataclass(frozen=True, slots=True)
class Labels:
    """What is known of documents: the documents by their ids, and the graded answers of each solved topic."""

    documents: Mapping[str, Document]
    gold: Mapping[str, Mapping[str, float]]

    def without(self, topic: Topic) -> dict[str, float]:
        """The grades of all answers but the topic's own: no topic is ranked by its gold."""
        return {
            document: grade
            for solved, answers in self.gold.items()
            if solved != topic.id
            for document, grade in answers.items()
        }


def with_labels(
    index: Index,
    topics: Sequence[Topic],
    answers: Iterator[Hits],
    recipe: Recipe,
    depth: int,
    labels: Labels,
    advance: Advance,
) -> Iterator[Hits]:
    """The rankings of the recipe's template for each topic, fused with those by the votes of labelled documents.

    All documents of all topics ask in one batch.
    """
    signal = recipe.labelled
    assert signal is not None, "the recipe has this signal"
    direct = list(answers)
    asking = [
        (topic, labels.documents[document])
        for topic, hits in zip(topics, direct, strict=True)
        for document in hits.document_ids
    ]
    nearest = _nearest(index, asking, recipe)
    for topic, hits in zip(topics, direct, strict=True):
        grades = labels.without(topic)
        shares = {document: share(next(nearest), grades, signal.power) for document in hits.document_ids}
        yield ranked(fused([dict(hits), shares], signal.rank_constant), depth)
        advance(1)


def _nearest(index: Index, asking: Sequence[tuple[Topic, Document]], recipe: Recipe) -> Iterator[Hits]:
    try:
        yield from index.search(recipe.labelled_body(topic, document) for topic, document in asking)
    except QueryRefused as error:
        raise QueryRefused(f"document {asking[error.place][1].id}: {error}", error.place) from error


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


def fused(signals: Sequence[Scores], rank_constant: float) -> dict[str, float]:
    """The sum over the signals of 1 / (rank_constant + rank) for each document.

    Documents with equal scores have the rank of the first of them, so that a signal which can't tell them apart
    doesn't do so by their ids.
    """
    total: dict[str, float] = {}
    for scores in signals:
        previous, rank = None, 0
        best_first = sorted(scores.items(), key=lambda entry: -entry[1])
        for place, (document, score) in enumerate(best_first, start=1):
            if score != previous:
                previous, rank = score, place
            total[document] = total.get(document, 0.0) + 1 / (rank_constant + rank)
    return total
