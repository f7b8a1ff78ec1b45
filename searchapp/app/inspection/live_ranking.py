"""Rank topics with a recipe on demand, without a run."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from searchapp.app.index import open_index
from searchapp.app.inspection.pages import LocalFirst, RunPages, RunToJudge
from searchapp.app.models import signal_inputs
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

SEARCHED = "search"
"""What the log calls rankings that are made now, before the name of their recipe."""

KEPT = 256
"""Topics whose ranking is kept."""

AT_ONCE = 64
"""Topics at most that are ranked together where one after the other is wanted."""

HITS_AT_ONCE, HITS_KEPT = AT_ONCE * paging.WINDOW, KEPT * paging.WINDOW
"""Hits at most of topics that are ranked together, and of those that are kept: rankings may be of any depth."""

FURTHER = 10
"""How many times as deep a ranking is made again in which a document is not found."""


def seen_in(recipe: str) -> str:
    """What the log calls a ranking that a recipe makes now, as other rankings go by the name of their run."""
    return f"{SEARCHED} {recipe}"


class Ranks:
    """A recipe that is ready to rank the topics of a split; its methods may be called from several threads."""

    def __init__(self, ranker: Ranker, index: Index) -> None:
        self.recipe = ranker.recipe
        self.index = index
        self.lock = threading.Lock()
        """Whoever asks the index beside it asks with this: an index takes one question at a time."""
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
    ) -> Ranks:
        """Make a recipe ready to rank a split, which may take a while where it learns from solved topics.

        Models are kept in `home`.

        Raises:
            DataError: what a signal needs is missing, or not what it should be.
            EngineError: there is no such index, or the engine failed.
        """
        index = open_index(task, engine, collection.index_of(split))
        inputs = signal_inputs(
            task, engine, index, lambda: (collection, split), progress, Problems(lenient=True), home=home
        )
        return cls(Ranker(recipe, inputs), index)

    def rank(self, topics: Sequence[Topic], depth: int) -> list[Hits]:
        """The first `depth` documents for each topic.

        Raises:
            as `Ranker.rank` does.
        """
        with self.lock:
            return [ranking.hits for ranking in self._ranker.rank(topics, depth, SEARCHED)]

    def rank_topic(self, topic: Topic, depth: int) -> RankedTopic:
        """A topic's ranking with what made it; that of the last topic is kept for each depth.

        Raises:
            as `Ranker.rank` does.
        """
        with self.lock:
            if any(kept.topic != topic for kept in self._last.values()):
                self._last.clear()
            if depth not in self._last:
                self._last[depth] = self._ranker.rank_topic(topic, depth)
            return self._last[depth]

    def deep(self, topic: Topic, documents: Set[str], depth: int) -> RankedTopic:
        """A topic's ranking to a depth, or as deep as it takes to have some documents in it.

        It goes on where more documents may have a score, ten times as deep each time: signals that are fused order the
        documents of a deeper ranking anew, so that no page of it can be added to a shorter one. Documents that don't
        match are not looked for behind the depth, or behind the first `paging.WINDOW` where that is more.

        Raises:
            as `Ranker.rank` does.
        """
        found = self.rank_topic(topic, depth)
        left = documents - set(found.hits.document_ids)
        if left and _goes_on(found) and depth < paging.WINDOW:
            found = self.rank_topic(topic, paging.WINDOW)
            left -= set(found.hits.document_ids)
        if left and _goes_on(found):
            query = self.recipe.body(topic, 1)["query"]
            left = {one for one in left if self.score(one, query)}
        while left and _goes_on(found):
            found = self.rank_topic(topic, FURTHER * found.depth)
            left -= set(found.hits.document_ids)
        return found

    def score(self, document_id: str, query: Mapping[str, Any]) -> float | None:
        """The score that a query gives a document; None where it does not match.

        Raises:
            EngineError: the engine failed, or refused the query.
        """
        with self.lock:
            found = self.index.find(one_document(document_id, query))
        return found[0].hit.score if found else None

    def explain(self, found: RankedTopic, document_id: str) -> Explanation | None:
        """Why a document has its score in a ranking; None where it has none."""
        with self.lock:
            return self._ranker.explain(found, document_id)

    def shares(self, found: RankedTopic, document_id: str) -> tuple[SignalShare, ...]:
        """What each signal gives to that score; nothing for a recipe of one query."""
        with self.lock:
            return () if self.recipe.is_one_query else tuple(self._ranker.shares(found, document_id))


def _goes_on(found: RankedTopic) -> bool:
    """Whether there may be documents with a score behind a ranking."""
    return len(found.hits) == found.depth and found.hits.scores[-1] != 0


class RankedNow:
    """The rankings of topics to a depth, as `runs.rankings.Rankings`; `path` is the folder of the topics."""

    def __init__(self, ranks: Ranks, topics: Sequence[Topic], depth: int, path: Path) -> None:
        self.path = path
        self.topics = tuple(topic.id for topic in topics)
        self._topics = {topic.id: topic for topic in topics}
        self._places = {topic: place for place, topic in enumerate(self.topics)}
        self._ranks = ranks
        self._depth = depth
        self._most_at_once = max(1, min(AT_ONCE, HITS_AT_ONCE // depth))
        self._most_kept = max(1, min(KEPT, HITS_KEPT // depth))
        self._kept: OrderedDict[str, Ranking] = OrderedDict()
        self._following, self._ahead = 0, 1
        self._lock = threading.Lock()

    def ranking(self, topic_id: str) -> Ranking:
        """A topic's ranking; to who asks for topics in their order also those behind it are made, more each time."""
        place = self._places[topic_id]
        with self._lock:
            if topic_id in self._kept:
                return self._kept[topic_id]
            self._ahead = min(2 * self._ahead, self._most_at_once) if place == self._following else 1
            self._following = place + self._ahead
            wanted = [self._topics[one] for one in self.topics[place : self._following]]
        made = [
            Ranking(topic.id, hits)
            for topic, hits in zip(wanted, self._ranks.rank(wanted, self._depth), strict=True)
        ]
        with self._lock:
            for ranking in made:
                self._kept[ranking.topic_id] = ranking
            while len(self._kept) > self._most_kept:
                self._kept.popitem(last=False)
        return made[0]

    def length(self, topic_id: str) -> int:
        """How many documents a topic's ranking has."""
        return len(self.ranking(topic_id).hits)

    def scored(self, topic_id: str, at_most: int | None = None) -> int:
        """How many documents of a topic's ranking have a score other than 0, or `at_most`: the first ones."""
        scores = self.ranking(topic_id).hits.scores[:at_most]
        if not scores or min(scores) < 0:
            return len(scores)  # a ranking whose scores are below 0 has no end without scores
        return sum(score > 0 for score in scores)


def now_pages(
    task: Task, documents: LocalFirst, collection: Collection, split: str, ranks: Ranks, depth: int
) -> RunPages:
    """The topics of a split, with what a recipe ranks for them now and the documents of the same index.

    Raises:
        DataError: the topics can't be read, or there are none.
        EngineError: the documents can't be had.
    """
    topics = collection.topics(split, Problems(lenient=True))
    if not topics:
        raise DataError(f"{collection.folder}: the split {split} has no topics to rank")
    ranked = RunToJudge(
        RankedNow(ranks, topics, depth, collection.folder),
        None,
        split,
        seen_in(ranks.recipe.name),
        notes=tuple(ranks.recipe.raised(depth)),
        recipe=ranks.recipe,
        depth=depth,
    )
    by_id = {topic.id: topic for topic in topics}
    return RunPages.over(task, documents, ranked, by_id, collection, ranks.index.info.digest)


def usual_split(task: Task, collection: Collection) -> str:
    """The split that is ranked where nobody names one: dev, else the first one that is there and not the test's.

    Raises:
        DataError: the files of no split are there.
    """
    splits = task.info.splits
    order = sorted(splits, key=lambda one: (one != "dev", one.startswith("test"), one == "train"))
    for split in order:
        try:
            if all(file.exists() for file in collection.split_files(split)):
                return split
        except SearchappError:  # such as one whose files nobody can list
            continue
    raise DataError(
        f"{collection.folder} has the topics of no split of {task.reference}: name the folder with --data"
    )
