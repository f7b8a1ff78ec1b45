"""What a run gives people to judge: its topics, its rankings and its documents, each fetched when it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from searchapp.app.index_sources import IndexSource
from searchapp.app.pages import Pages, topics_of
from searchapp.app.pool import TAG as POOL
from searchapp.engines.base import Index
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.formats.problems import Problems
from searchapp.model import Topic
from searchapp.ranking import recipes
from searchapp.ranking.recipe import Recipe
from searchapp.runs import given
from searchapp.runs.directory import Manifest, read_manifest
from searchapp.runs.known import look_up_documents
from searchapp.runs.rankings import Rankings, RunRankings
from searchapp.tasks.base import Collection, Task
from searchapp.tasks.folders import data_folder


@dataclass(frozen=True, slots=True)
class RunToJudge:
    """What is judged: the rankings of a run directory, or those of a TREC run, which has no manifest.

    `split` is that of the topics, None where nobody has said it. `name` is what the log calls the run. `notes` are
    sentences that the annotator should know. Rankings that are made now, of the index that there is, have their
    `recipe` and `depth` instead of a manifest.
    """

    rankings: Rankings
    manifest: Manifest | None
    split: str | None
    name: str
    notes: tuple[str, ...] = ()
    recipe: Recipe | None = None
    depth: int | None = None

    @classmethod
    def of(cls, task: Task, path: Path, split: str | None) -> RunToJudge:
        """A run directory, or a TREC run with topics of a split, if it is named.

        Raises:
            UsageError: there is no run, or it is another task's or split's.
            DataError: it can't be read.
        """
        given.require_there(path)
        if path.is_dir():
            manifest = read_manifest(path)
            for what, wanted, found in (("task", task.name, manifest.task), ("split", split, manifest.split)):
                if wanted not in (None, found):
                    raise UsageError(f"{path} is a run of the {what} {found}, not of {wanted}")
            name = f"{path.resolve().name}@{manifest.digest[:12]}"
            return cls(RunRankings(path, empty=manifest.empty), manifest, manifest.split, name)
        read = given.read(path)
        name = f"{path.name}@{read.digest[:12]}"
        notes = (read.note,) if read.note else ()
        return cls(RunRankings(path, read.run), None, split, name, notes)


class RunPages(Pages):
    """The topics, rankings and documents of a run; its methods may be called from several threads.

    `notes` are sentences that the annotator should know, such as that the index is another one than that which was
    ranked.
    """

    def __init__(
        self,
        task: Task,
        index: Index,
        ranked: RunToJudge,
        topics: Mapping[str, Topic],
        collection: Collection,
        spare: Callable[[], Index | None] | None = None,
        newer: Callable[[], Index] | None = None,
    ) -> None:
        super().__init__(task, index, topics, ranked.recipe or _recipe(task, ranked.manifest), spare, newer)
        self.split = ranked.split
        self.name = ranked.name
        self.rankings = ranked.rankings
        self.manifest = ranked.manifest
        self.depth = ranked.depth if ranked.manifest is None else ranked.manifest.depth
        """How many documents at most were ranked for a topic; None where nobody knows."""
        self.collection = collection
        self._is_pool = ranked.manifest is not None and ranked.manifest.recipe.get("name") == POOL
        doubts = () if ranked.recipe is not None else _doubts(task, index, ranked, topics, collection)
        self.notes = (*ranked.notes, *doubts)
        self._hits: tuple[str, dict[str, float]] = "", {}

    @classmethod
    def open(
        cls,
        task: Task,
        documents: IndexSource,
        path: Path,
        data: Path | None = None,
        *,
        home: Path | None = None,
        split: str | None = None,
    ) -> RunPages:
        """The pages of a run directory or a TREC run, with the documents of an index that `documents` opens.

        `data` is the folder of the topics, if they are not where a run directory had them, or not with the files of
        the task in searchapp's folder `home`. `split` is that of the topics, of any split if a TREC run is given
        without.

        Raises:
            UsageError: there is no run, or it is another task's or split's.
            DataError: the topics can't be read, or a TREC run ranks none of the task's.
            EngineError: the documents can't be had.
        """
        ranked = RunToJudge.of(task, path, split)
        if ranked.manifest is not None:
            folder = data or Path(ranked.manifest.data)
            if not folder.is_dir():
                raise UsageError(
                    f"there is no folder {folder}, where the run's topics are from: name it with --data"
                )
        else:
            folder = data_folder(task, home or Path(), data)
        collection = task.collection(folder)
        topics = _topics(task, ranked, collection)
        digest = None if ranked.manifest is None else ranked.manifest.index_digest
        return cls.over(task, documents, ranked, topics, collection, digest)

    @classmethod
    def over(
        cls,
        task: Task,
        documents: IndexSource,
        ranked: RunToJudge,
        topics: Mapping[str, Topic],
        collection: Collection,
        digest: str | None,
    ) -> RunPages:
        """The pages of rankings with the documents of an index of a digest that `documents` opens.

        Raises:
            EngineError: the documents can't be had.
        """
        name = None if ranked.split is None else collection.index_of(ranked.split)
        folder = collection.folder

        def index() -> Index:
            return documents.index(task, folder, name, digest)

        def spare() -> Index | None:
            return documents.spare(task, folder, name)

        return cls(task, index(), ranked, topics, collection, spare, newer=index)

    @property
    def is_pool(self) -> bool:
        """Whether the run is a pool, which was made to be judged whole."""
        return self._is_pool

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


def _topics(task: Task, ranked: RunToJudge, collection: Collection) -> dict[str, Topic]:
    """The topics of a run's split or, for a TREC run without one, those of any split that it ranks."""
    if ranked.split is not None:
        found = collection.topics(ranked.split, Problems(lenient=True))
        topics = {topic.id: topic for topic in found}
    else:
        topics = topics_of(task, collection, ranked.rankings.topics)
    if ranked.manifest is None and not any(topic in topics for topic in ranked.rankings.topics):
        of = f"{task.name} {ranked.split or ''}".rstrip()
        raise DataError(
            f"{ranked.rankings.path} ranks no topic of {of} in {collection.folder}: "
            "name the folder that its topics are in with --data, and their split with --split"
        )
    return topics


def _doubts(
    task: Task, index: Index, ranked: RunToJudge, topics: Mapping[str, Topic], collection: Collection
) -> Iterator[str]:
    """What may be wrong with the topics and documents of a run."""
    if ranked.manifest is not None:
        if index.info.digest != ranked.manifest.index_digest:
            yield "the index is not the one that was ranked: documents may be missing or have changed"
        return
    path, rankings = ranked.rankings.path, ranked.rankings
    unknown = sum(topic not in topics for topic in rankings.topics)
    if unknown:
        are = "is" if unknown == 1 else "are"
        yield f"{unknown:,} of the {len(rankings.topics):,} topics of {path} {are} not among those of {task.name}"
    firsts = [rankings.ranking(topic).hits.document_ids[0] for topic in rankings.topics]
    missing = look_up_documents(lambda: index, collection, firsts)
    if missing.unknown:
        yield f"{path}: of the first documents of its topics, {missing}: is it a run of {task.name}?"


def _recipe(task: Task, manifest: Manifest | None) -> Recipe:
    """The recipe of a run, or that of searches where it is none of searchapp's, or no longer as it was.

    Only what is marked depends on it.
    """
    book = task.recipe_book()
    if manifest is None:
        return recipes.load(book, task.info.search_recipe)
    try:
        return recipes.load(book, str(manifest.recipe["name"]), manifest.recipe.get("parameters") or {})
    except (SearchappError, KeyError):
        return recipes.load(book, task.info.search_recipe)


def require_topic(run_pages: RunPages, topics: Sequence[str], topic_id: str | None) -> None:
    """Make sure that there is something to judge, and that a topic is among what is, if one is named.

    Raises:
        UsageError: it is not.
        DataError: there is nothing at all.
    """
    if not topics:
        raise DataError(f"{run_pages.rankings.path} has no rankings to judge")
    if topic_id is not None and topic_id not in topics:
        if topic_id in run_pages.topics:
            raise UsageError(
                f"the topic {topic_id!r} is assigned to others: the first one here is {topics[0]}"
            )
        raise UsageError(f"the run has no topic {topic_id!r}: the first one is {topics[0]}")
