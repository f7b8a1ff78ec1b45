"""What a run gives people to judge: its topics, its rankings and its documents, each fetched when it is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from searchapp.engines.base import Engine, Index
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.formats.problems import Problems
from searchapp.indexing import open_index
from searchapp.model import Topic
from searchapp.ranking import recipes
from searchapp.ranking.recipes import Recipe
from searchapp.runs.directory import Manifest, read_manifest
from searchapp.runs.pages import Pages
from searchapp.runs.pooling import TAG as POOL
from searchapp.runs.rankings import RunRankings
from searchapp.tasks.base import Task


class Material(Pages):
    """The topics, rankings and documents of a run; its methods may be called from several threads."""

    def __init__(
        self, task: Task, index: Index, path: Path, manifest: Manifest, topics: Mapping[str, Topic]
    ) -> None:
        super().__init__(task, index, topics, _recipe(task, manifest))
        self.manifest = manifest
        self.name = f"{path.resolve().name}@{manifest.digest[:12]}"
        self.rankings = RunRankings(path)
        self.is_same_index = index.info.digest == manifest.index_digest
        self._hits: tuple[str, dict[str, float]] = "", {}

    @classmethod
    def open(cls, task: Task, engine: Engine, path: Path, data: Path | None = None) -> Material:
        """The material of the run directory `path`; `data` is the folder of its topics, if they were moved.

        Raises:
            UsageError: there is no run there, or it is another task's.
            DataError: the topics can't be read.
            EngineError: the documents can't be had.
        """
        manifest = read_manifest(path)
        if manifest.task != task.name:
            raise UsageError(f"{path} is a run of the task {manifest.task}, not of {task.name}")
        folder = data or Path(manifest.data)
        if not folder.is_dir():
            raise UsageError(
                f"there is no folder {folder}, where the run's topics are from: say where with --data"
            )
        topics = task.topics(folder, manifest.split, Problems(lenient=True))
        index = open_index(task, engine)
        return cls(task, index, path, manifest, {topic.id: topic for topic in topics})

    @property
    def is_pool(self) -> bool:
        """Whether the run is a pool, which was made to be judged whole."""
        return self.manifest.recipe.get("name") == POOL

    @property
    def topics(self) -> tuple[str, ...]:
        """The ids of the ranked topics."""
        return self.rankings.topics

    def ranking(self, topic_id: str) -> tuple[str, ...]:
        """The ids of a topic's documents, best first."""
        hits = self.rankings.ranking(topic_id).hits
        self._hits = topic_id, dict(hits)
        return hits.document_ids

    def scored(self, topic_id: str, at_most: int | None = None) -> int:
        """How many documents of a topic's ranking have a score other than 0, or `at_most`: the first ones."""
        return self.rankings.scored(topic_id, at_most)

    def score(self, topic_id: str, document_id: str) -> float | None:
        """The score of a document in a topic's ranking; None if it is not there."""
        if self._hits[0] != topic_id:
            self.ranking(topic_id)
        return self._hits[1].get(document_id)


def _recipe(task: Task, manifest: Manifest) -> Recipe:
    """The recipe of a run, or that of searches where it is no longer as it was: only matches depend on it."""
    book = task.recipe_book()
    try:
        return recipes.load(book, str(manifest.recipe["name"]), manifest.recipe.get("parameters") or {})
    except (SearchappError, KeyError):
        return recipes.load(book, task.search_recipe)


def require_topic(material: Material, topics: Sequence[str], topic_id: str | None) -> None:
    """Make sure that there is something to judge, and that a topic is among what is, if one is named.

    Raises:
        UsageError: it is not.
        DataError: there is nothing at all.
    """
    if not topics:
        raise DataError(f"{material.rankings.path} has no rankings to judge")
    if topic_id is not None and topic_id not in topics:
        if topic_id in material.topics:
            raise UsageError(
                f"the topic {topic_id!r} is assigned to others: the first one here is {topics[0]}"
            )
        raise UsageError(f"the run has no topic {topic_id!r}: the first one is {topics[0]}")
