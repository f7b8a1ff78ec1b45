"""What a recipe ranks by, and how several signals make one ranking.

    direct       a query template over the documents
    neighbours   a query template over solved topics, whose gold answers vote

Whatever the engine, the scores that go in are the same float32 numbers; everything here is computed from them in
double and rounded once, so the rankings are the same too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from searchapp.errors import QueryRefused
from searchapp.model import Example, Hits, Topic, float32

if TYPE_CHECKING:
    from searchapp.engines.base import Advance, Body, Index

Scores = Mapping[str, float]
"""A score for each document that a signal speaks for."""


def searched(
    index: Index, topics: Sequence[Topic], body: Callable[[Topic], Body], advance: Advance
) -> Iterator[Hits]:
    """The hits of each topic's search body.

    Raises:
        QueryRefused: with the topic's id in the message.
    """
    try:
        yield from index.search(map(body, topics), advance)
    except QueryRefused as error:
        raise QueryRefused(f"topic {topics[error.place].id}: {error}", error.place) from error


def votes(
    nearest: Hits,
    gold: Mapping[str, Mapping[str, float]],
    power: float,
    without: str | None = None,
    *,
    scale: str = "shares",
) -> dict[str, float]:
    """What the answers of solved topics come to, as shares of the greatest; empty without a vote.

    `nearest` are solved topics, best first, `gold` has the graded answers of each. A solved topic's answer gets
    grade * (s / s1) ** power, where s is the topic's score and s1 that of the first. The solved topic `without`
    has no vote: a topic must not be ranked by its own answers. With the `scale` "scores" votes are not made shares
    but counted in scores, of which the first solved topic has s1.
    """
    if without in nearest.document_ids:
        nearest = Hits.of(*(hit for hit in nearest if hit.document_id != without))
    if not nearest or nearest.scores[0] <= 0:
        return {}
    best = nearest.scores[0]
    summed: dict[str, float] = {}
    for example, score in nearest:
        vote = (score / best) ** power
        for document, grade in gold.get(example, {}).items():
            summed[document] = summed.get(document, 0.0) + grade * vote
    if scale == "scores":
        return {document: best * vote for document, vote in summed.items()}
    greatest = max(summed.values(), default=0.0)
    return {document: vote / greatest for document, vote in summed.items()} if greatest > 0 else {}


def as_shares(hits: Hits) -> dict[str, float]:
    """Scores as shares of the greatest; all 0 when that is 0."""
    if not hits or hits.scores[0] <= 0:
        return dict.fromkeys(hits.document_ids, 0.0)
    return {document: score / hits.scores[0] for document, score in hits}


def added(weighted: Iterable[tuple[float, Scores]]) -> dict[str, float]:
    """The weighted sum of signals; where one says nothing of a document it adds nothing."""
    total: dict[str, float] = {}
    for weight, scores in weighted:
        for document, score in scores.items():
            total[document] = total.get(document, 0.0) + weight * score
    return total


def ranked(scores: Scores, depth: int, without: str | None = None) -> Hits:
    """The best `depth` documents, equal float32 scores by the bytes of their ids, as engines order them."""
    rounded = [(-float32(score), document) for document, score in scores.items() if document != without]
    rounded.sort(key=lambda entry: (entry[0], entry[1].encode()))
    return Hits([document for _, document in rounded[:depth]], [-score for score, _ in rounded[:depth]])


def gold_of(examples: Iterable[Example]) -> dict[str, Mapping[str, float]]:
    """The graded answers of solved topics by the topics' ids."""
    return {example.topic.id: example.gold for example in examples}
