"""What a run gives people to judge: its topics, its rankings and its documents, each fetched when it is looked at."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from searchapp.engines.base import Engine, Index
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.formats.problems import Problems
from searchapp.indexing import open_index
from searchapp.model import Topic
from searchapp.ranking import recipes, search
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.search import Span
from searchapp.runs.directory import Manifest, read_manifest
from searchapp.runs.rankings import RunRankings
from searchapp.tasks.base import Task

KEPT_SOURCES = 20_000
KEPT_PAGES = 500
"""Documents that are kept once they were fetched, as they are and with their matches."""

REACH = 3
"""How many neighbours a document is shown with on either side, where documents stand in a text."""

_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Page:
    """A document as it is judged.

    `matches` are the ranges of characters of `text` that match the topic; `fields` has everything else of the document;
    `before` and `behind` are its neighbours in the text that it stands in. With `is_missing` the index lacks it.
    """

    document_id: str
    text: str
    matches: tuple[Span, ...] = ()
    fields: tuple[tuple[str, Any], ...] = ()
    before: tuple[Mapping[str, Any], ...] = ()
    behind: tuple[Mapping[str, Any], ...] = ()
    is_missing: bool = False


class Material:
    """The topics, rankings and documents of a run; its methods may be called from several threads."""

    def __init__(
        self, task: Task, index: Index, path: Path, manifest: Manifest, topics: Mapping[str, Topic]
    ) -> None:
        self.task = task
        self.manifest = manifest
        self.name = f"{path.resolve().name}@{manifest.digest[:12]}"
        self.rankings = RunRankings(path)
        self.is_same_index = index.info.digest == manifest.index_digest
        self._topics = topics
        self._index = index
        self._recipe = _recipe(task, manifest)
        self._mapping = task.index_mapping()
        self._hits: tuple[str, dict[str, float]] = "", {}
        self._lock = threading.Lock()
        self._sources: OrderedDict[str, Mapping[str, Any] | None] = OrderedDict()
        self._pages: OrderedDict[tuple[str, str], Page] = OrderedDict()

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
    def topics(self) -> tuple[str, ...]:
        """The ids of the ranked topics."""
        return self.rankings.topics

    def topic(self, topic_id: str) -> Topic:
        """A topic; without words, if the data no longer has it."""
        return self._topics.get(topic_id) or Topic(topic_id, "")

    def ranking(self, topic_id: str) -> tuple[str, ...]:
        """The ids of a topic's documents, best first."""
        hits = self.rankings.ranking(topic_id).hits
        self._hits = topic_id, dict(hits)
        return hits.document_ids

    def score(self, topic_id: str, document_id: str) -> float | None:
        """The score of a document in a topic's ranking; None if it is not there."""
        if self._hits[0] != topic_id:
            self.ranking(topic_id)
        return self._hits[1].get(document_id)

    def texts(self, documents: Sequence[str]) -> list[str]:
        """What documents say; nothing for those that the index lacks."""
        with self._lock:
            found = self._fetched(documents)
        return [str((source or {}).get("text", "")) for source in found]

    def known_text(self, document_id: str) -> str | None:
        """What a document says, if it was fetched before."""
        source = self._sources.get(document_id)
        return None if source is None else str(source.get("text", ""))

    def is_fetched(self, document_id: str) -> bool:
        return document_id in self._sources

    def has_page(self, topic_id: str, document_id: str) -> bool:
        return (topic_id, document_id) in self._pages

    def page(self, topic_id: str, document_id: str) -> Page:
        """A document with what matches the topic in it."""
        key = topic_id, document_id
        page = self._pages.get(key)
        if page is None:
            with self._lock:
                self._fetch_pages(topic_id, [document_id])
                page = self._pages[key]
        return page

    def prepare(self, topic_id: str, documents: Iterable[str]) -> None:
        """Fetch documents that are likely to be looked at next, so that `page` has them at once."""
        missing = [document for document in documents if (topic_id, document) not in self._pages]
        if missing:
            with self._lock:
                self._fetch_pages(topic_id, missing)

    def _fetch_pages(self, topic_id: str, documents: Sequence[str]) -> None:
        topic = self.topic(topic_id)
        seen = (
            search.seen_by(self._index, self._mapping, self._recipe, topic, documents) if topic.text else {}
        )
        without = [document for document in documents if document not in seen]
        unmarked = search.sources(self._index, without) if without else {}
        for document in documents:
            if document in seen:
                page = self._page(document, seen[document].source, seen[document].matches)
            elif document in unmarked:
                page = self._page(document, unmarked[document], ())
            else:
                page = Page(document, "", is_missing=True)
            _keep(self._pages, (topic_id, document), page, KEPT_PAGES)
            if not page.is_missing:
                _keep(self._sources, document, {"text": page.text}, KEPT_SOURCES)

    def _page(self, document: str, source: Mapping[str, Any], matches: tuple[Span, ...]) -> Page:
        fields = tuple((name, value) for name, value in source.items() if name not in ("id", "text"))
        before: tuple[Mapping[str, Any], ...] = ()
        behind: tuple[Mapping[str, Any], ...] = ()
        context = self.task.context
        if context is not None and all(source.get(name) is not None for name in context):
            near = search.beside(self._index, source, context, REACH)
            here = source[context[1]]
            before = tuple(one for one in near if one[context[1]] < here)
            behind = tuple(one for one in near if one[context[1]] > here)
        return Page(document, str(source.get("text", "")), matches, fields, before, behind)

    def _fetched(self, documents: Sequence[str]) -> list[Mapping[str, Any] | None]:
        missing = [document for document in dict.fromkeys(documents) if document not in self._sources]
        for start in range(0, len(missing), _AT_ONCE):
            some = missing[start : start + _AT_ONCE]
            found = search.sources(self._index, some)
            for document in some:
                _keep(self._sources, document, found.get(document), KEPT_SOURCES + len(documents))
        return [self._sources[document] for document in documents]


def _keep(kept: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> None:
    kept[key] = value
    while len(kept) > most:
        kept.popitem(last=False)


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
