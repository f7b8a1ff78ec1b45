"""Ranks topics: a recipe's signals, run on an index and made one ranking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from searchapp.engines.base import Advance, Index, no_progress
from searchapp.errors import DataError
from searchapp.model import Hits, Ranking, Run, Topic
from searchapp.ranking import signals
from searchapp.ranking.labelled import Labels, with_labels
from searchapp.ranking.recipes import Recipe


@dataclass(frozen=True, slots=True)
class Solved:
    """Solved topics: an index of them, whose documents have the topics' ids, and the graded answers of each."""

    index: Index
    gold: Mapping[str, Mapping[str, float]]


def rank(
    index: Index,
    topics: Sequence[Topic],
    recipe: Recipe,
    depth: int,
    tag: str,
    advance: Advance = no_progress,
    *,
    solved: Solved | None = None,
    labels: Labels | None = None,
    topics_are_documents: bool = False,
) -> Run:
    """The first `depth` documents of the index for every topic, in the order of the topics.

    `solved` must be given when the recipe has the signal of neighbours, `labels` when it has that of labelled
    documents.

    Raises:
        DataError: the template retrieves a topic for itself, although `topics_are_documents`.
        EngineError: the engine failed on the way.
    """
    # With labelled documents the topics themselves are the small part of the work.
    direct = advance if recipe.labelled is None else no_progress
    answers = signals.searched(index, topics, lambda topic: recipe.body(topic, depth), direct)
    if recipe.neighbours is not None:
        assert solved is not None, "the recipe asks solved topics"
        answers = _with_votes(topics, answers, recipe, depth, solved, topics_are_documents)
    if recipe.labelled is not None:
        assert labels is not None, "the recipe asks labelled documents"
        answers = with_labels(index, topics, answers, recipe, depth, labels, advance)
    rankings = tuple(Ranking(topic.id, hits) for topic, hits in zip(topics, answers, strict=True))
    if topics_are_documents:
        for ranking in rankings:
            if ranking.topic_id in ranking.document_ids():
                raise DataError(
                    f"{recipe.template.name} retrieves topic {ranking.topic_id} for itself: "
                    "exclude it in the template with must_not"
                )
    return Run(tag, rankings)


def _with_votes(
    topics: Sequence[Topic],
    answers: Iterator[Hits],
    recipe: Recipe,
    depth: int,
    solved: Solved,
    topics_are_documents: bool,
) -> Iterator[Hits]:
    signal = recipe.neighbours
    assert signal is not None
    nearest = signals.searched(solved.index, topics, recipe.examples_body, no_progress)
    for topic, hits, examples in zip(topics, answers, nearest, strict=True):
        votes = signals.votes(examples, solved.gold, signal.power, without=topic.id, scale=signal.scale)
        direct = dict(hits) if signal.scale == "scores" else signals.as_shares(hits)
        scores = signals.added([(1.0, votes), (signal.direct, direct)])
        yield signals.ranked(scores, depth, without=topic.id if topics_are_documents else None)
