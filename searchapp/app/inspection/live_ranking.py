"""Rank topics with a recipe on demand, without a run."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any

from searchapp.app.index import open_index
from searchapp.app.inspection.pages import LocalFirst, RunPages, RunToJudge
from searchapp.app.models import signal_inputs
from searchapp.embeddings.reranking import Reranking
from searchapp.engines.base import Engine, Index
from searchapp.errors import DataError, SearchappError
from searchapp.formats.problems import Problems
from searchapp.model import Explanation, Hits, Ranking, Topic
from searchapp.progress import Progress
from searchapp.ranking import paging
from searchapp.ranking.ranker import RankedTopic, Ranker, SignalShare
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.base import one_document
from searchapp.tasks.base import Collection, Task

SEARCHED = "search"  # the name of live rankings in the log, before the name of their recipe

CACHED_TOPICS = 256

BATCH_SIZE = 64  # topics that are ranked together for a user who reads one after the other

# The same limits in hits, for deep rankings.
BATCH_HITS, CACHED_HITS = BATCH_SIZE * paging.WINDOW, CACHED_TOPICS * paging.WINDOW

DEPTH_FACTOR = 10  # how many times as deep a topic is ranked again if a document is missing


def seen_in(recipe: str) -> str:
    """Return the name of a live ranking in the log."""
    return f"{SEARCHED} {recipe}"


class TopicRanker:
    """A recipe that is ready to rank the topics of a split; thread-safe."""

    def __init__(self, ranker: Ranker, index: Index) -> None:
        self.recipe = ranker.recipe
        self.index = index
        self.lock = threading.Lock()  # guards the index, which answers one request at a time
        self._ranker = ranker
        self._last: dict[int, RankedTopic] = {}

    @classmethod
    def open(
        cls,
        task: Task,
        engine: Engine,
        collection: Collection,
        split: str,
        recipe: Recipe,
        progress: Progress,
        home: Path | None = None,
        reranking: Reranking | None = None,
    ) -> TopicRanker:
        """Prepare a recipe to rank a split, which may take long if it learns; store models in `home`.

        Raises:
            DataError: an input of a signal is missing or invalid.
            EngineError: there is no such index, or the engine failed.
        """
        index = open_index(task, engine, collection.index_of(split))
        inputs = signal_inputs(
            task,
            engine,
            index,
            lambda: (collection, split),
            progress,
            Problems(lenient=True),
            home=home,
            reranking=reranking,
        )
        return cls(Ranker(recipe, inputs), index)

    def rank(self, topics: Sequence[Topic], depth: int) -> list[Hits]:
        """Return the first `depth` documents for each topic.

        Raises:
            as `Ranker.rank` does.
        """
        with self.lock:
            return [ranking.hits for ranking in self._ranker.rank(topics, depth, SEARCHED)]

    def rank_topic(self, topic: Topic, depth: int) -> RankedTopic:
        """Return a topic's ranking with the answers of signals; caches the last topic.

        Raises:
            as `Ranker.rank` does.
        """
        with self.lock:
            if any(ranked.topic != topic for ranked in self._last.values()):
                self._last.clear()
            if depth not in self._last:
                self._last[depth] = self._ranker.rank_topic(topic, depth)
            return self._last[depth]

    def deep(self, topic: Topic, documents: Set[str], depth: int) -> RankedTopic:
        """Return a topic's ranking to a depth, or deep enough to include these documents.

        Raises:
            as `Ranker.rank` does.
        """
        ranked = self.rank_topic(topic, depth)
        missing = documents - set(ranked.hits.document_ids)
        if missing and _may_continue(ranked) and depth < paging.WINDOW:
            ranked = self.rank_topic(topic, paging.WINDOW)
            missing -= set(ranked.hits.document_ids)
        if missing and _may_continue(ranked):
            query = self.recipe.body(topic, 1)["query"]
            missing = {document for document in missing if self.score(document, query)}
        # Fusion reorders a deeper ranking, so that it can't be appended to a shorter one.
        while missing and _may_continue(ranked):
            ranked = self.rank_topic(topic, DEPTH_FACTOR * ranked.depth)
            missing -= set(ranked.hits.document_ids)
        return ranked

    def score(self, document_id: str, query: Mapping[str, Any]) -> float | None:
        """Return the score of a document for a query, None if it does not match.

        Raises:
            EngineError: the engine failed, or rejected the query.
        """
        with self.lock:
            results = self.index.find(one_document(document_id, query))
        return results[0].hit.score if results else None

    def explain(self, ranked: RankedTopic, document_id: str) -> Explanation | None:
        with self.lock:
            return self._ranker.explain(ranked, document_id)

    def shares(self, ranked: RankedTopic, document_id: str) -> tuple[SignalShare, ...]:
        with self.lock:
            return () if self.recipe.is_one_query else tuple(self._ranker.shares(ranked, document_id))


def _may_continue(ranked: RankedTopic) -> bool:
    """Return whether later documents may have a score."""
    return len(ranked.hits) == ranked.depth and ranked.hits.scores[-1] != 0


class LiveRankings:
    """The rankings of topics to a depth, as `runs.rankings.Rankings`; `path` is the folder of the topics."""

    def __init__(self, ranker: TopicRanker, topics: Sequence[Topic], depth: int, path: Path) -> None:
        self.path = path
        self.topics = tuple(topic.id for topic in topics)
        self._topics = {topic.id: topic for topic in topics}
        self._positions = {topic: position for position, topic in enumerate(self.topics)}
        self._ranker = ranker
        self._depth = depth
        self._batch_size = max(1, min(BATCH_SIZE, BATCH_HITS // depth))
        self._cache_size = max(1, min(CACHED_TOPICS, CACHED_HITS // depth))
        self._cache: OrderedDict[str, Ranking] = OrderedDict()
        self._following, self._ahead = 0, 1
        self._lock = threading.Lock()

    def ranking(self, topic_id: str) -> Ranking:
        """Return a topic's ranking; topics that are read in sequence are ranked ahead, more each time."""
        position = self._positions[topic_id]
        with self._lock:
            if topic_id in self._cache:
                return self._cache[topic_id]
            self._ahead = min(2 * self._ahead, self._batch_size) if position == self._following else 1
            self._following = position + self._ahead
            topics = [self._topics[topic] for topic in self.topics[position : self._following]]
        rankings = [
            Ranking(topic.id, hits)
            for topic, hits in zip(topics, self._ranker.rank(topics, self._depth), strict=True)
        ]
        with self._lock:
            for ranking in rankings:
                self._cache[ranking.topic_id] = ranking
            while len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)
        return rankings[0]

    def length(self, topic_id: str) -> int:
        return len(self.ranking(topic_id).hits)

    def scored(self, topic_id: str, at_most: int | None = None) -> int:
        scores = self.ranking(topic_id).hits.scores[:at_most]
        if not scores or min(scores) < 0:
            return len(scores)  # negative scores are not followed by zeros
        return sum(score > 0 for score in scores)


def open_live_pages(
    task: Task, documents: LocalFirst, collection: Collection, split: str, ranker: TopicRanker, depth: int
) -> RunPages:
    """Open the pages of a split's topics as a recipe ranks them now.

    Raises:
        DataError: the topics can't be read, or there are none.
        EngineError: the documents can't be fetched.
    """
    topics = collection.topics(split, Problems(lenient=True))
    if not topics:
        raise DataError(f"{collection.folder}: the split {split} has no topics to rank")
    ranked = RunToJudge(
        LiveRankings(ranker, topics, depth, collection.folder),
        None,
        split,
        seen_in(ranker.recipe.name),
        notes=tuple(ranker.recipe.raised(depth)),
        recipe=ranker.recipe,
        depth=depth,
    )
    topics_by_id = {topic.id: topic for topic in topics}
    return RunPages.over(task, documents, ranked, topics_by_id, collection, ranker.index.info.digest)


def usual_split(task: Task, collection: Collection) -> str:
    """Return the default split: dev, otherwise the first other one that exists, train and test last.

    Raises:
        DataError: no split has files.
    """
    order = sorted(
        task.info.splits, key=lambda split: (split != "dev", split.startswith("test"), split == "train")
    )
    for split in order:
        with suppress(SearchappError):  # the files of a split may not be listable
            if all(file.exists() for file in collection.split_files(split)):
                return split
    raise DataError(
        f"{collection.folder} has no topics of {task.reference}: give the folder that has them with --data"
    )
