"""Ranks topics: a recipe's search bodies, run on an index."""

from __future__ import annotations

from collections.abc import Sequence

from searchapp.engines.base import Advance, Index, no_progress
from searchapp.errors import DataError, QueryRefused
from searchapp.model import Ranking, Run, Topic
from searchapp.ranking.recipes import Recipe


def rank(
    index: Index,
    topics: Sequence[Topic],
    recipe: Recipe,
    depth: int,
    tag: str,
    advance: Advance = no_progress,
    *,
    topics_are_documents: bool = False,
) -> Run:
    """The first `depth` documents of the index for every topic, in the order of the topics.

    Raises:
        DataError: the template retrieves a topic for itself, although `topics_are_documents`.
        EngineError: the engine failed on the way.
    """
    bodies = (recipe.body(topic, depth) for topic in topics)
    answers = index.search(bodies, advance)
    try:
        rankings = tuple(Ranking(topic.id, hits) for topic, hits in zip(topics, answers, strict=True))
    except QueryRefused as error:
        raise QueryRefused(f"topic {topics[error.place].id}: {error}", error.place) from error
    if topics_are_documents:
        for ranking in rankings:
            if ranking.topic_id in ranking.document_ids():
                raise DataError(
                    f"{recipe.template.name} retrieves topic {ranking.topic_id} for itself: "
                    "exclude it in the template with must_not"
                )
    return Run(tag, rankings)
