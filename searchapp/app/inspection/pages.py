"""Topics, rankings and documents of a run for annotators, each fetched when it is shown."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as AnyCollection
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from searchapp.app.index import index_task, open_index, replacement_news
from searchapp.app.pool import TAG as POOL
from searchapp.config.settings import Settings
from searchapp.engines import open_on_disk, open_server
from searchapp.engines.base import Engine, Index
from searchapp.errors import DataError, EngineRefused, EngineUnreachable, Replaced, SearchappError, UsageError
from searchapp.files import digest_text
from searchapp.formats.problems import Problems
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Topic
from searchapp.progress import Progress
from searchapp.ranking import paging, recipes, search_results
from searchapp.ranking.highlighting import Marker, TextAnalyzer
from searchapp.ranking.recipes import Recipe
from searchapp.runs import directory
from searchapp.runs.directory import Manifest, read_digests, read_manifest
from searchapp.runs.lookup import look_up_documents
from searchapp.runs.rankings import Rankings, RunRankings
from searchapp.tasks.base import Collection, Task
from searchapp.tasks.folders import data_folder
from searchapp.text import Span, be, counted

ATTEMPTS, TIMEOUT_SECONDS = 2, 10.0  # short: the user is waiting for the document


class LocalFirst:
    """Opens the index of the engine in the settings or, for a server, an equal index on disk.

    Args:
        warn: called with warnings for the user
        copy: index the task's files on disk if needed, so that judging needs no server
    """

    def __init__(
        self, settings: Settings, progress: Progress, warn: Callable[[str], None], *, copy: bool
    ) -> None:
        self._settings = settings
        self._progress = progress
        self._warn = warn
        self._copy = copy
        self._local = open_on_disk(settings)
        self._server: Engine | None = None

    def index(
        self, task: Task, folder: Path | None, name: str | None = None, digest: str | None = None
    ) -> Index:
        """Open an index of a task, by default the searched one.

        Args:
            task: the task of the index
            folder: the folder of the task's files
            name: the name of the index
            digest: the digest of the index that was ranked, if known

        Raises:
            EngineError: it can't be opened.
            DataError: it is damaged.
        """
        if not self._settings.uses_server:
            return open_index(task, self._local, name)
        error: EngineUnreachable | None = None
        remote: Index | None = None
        if digest is None:
            remote, error = self._from_server(task, name)
            digest = remote.info.digest if remote is not None else None
        local = self._on_disk(task, name)
        if local is None and self._copy and digest is not None:
            local = self._copy_to_disk(task, folder, name)
        if local is not None and local.info.digest == digest:
            return local
        if remote is None and error is None:
            remote, error = self._from_server(task, name)
        if remote is not None:
            return remote
        spare = self.spare(task, folder, name)
        if spare is None:
            raise EngineUnreachable(
                f"{error}; this machine has no copy of the documents: `searchapp index {task.reference} "
                "--engine embedded --data DIR` makes one"
            ) from error
        self._warn(f"{error}; until then documents come from {spare.info.version} on this machine")
        return spare

    def spare(self, task: Task, folder: Path | None, name: str | None = None) -> Index | None:
        """Return an index that replaces the server's when that fails, if there is any."""
        if not self._settings.uses_server:
            return None
        return self._on_disk(task, name) or self._copy_to_disk(task, folder, name)

    def close(self) -> None:
        self._local.close()
        if self._server is not None:
            self._server.close()

    def _from_server(self, task: Task, name: str | None) -> tuple[Index | None, EngineUnreachable | None]:
        try:
            if self._server is None:
                self._server = open_server(self._settings, attempts=ATTEMPTS, timeout=TIMEOUT_SECONDS)
            return open_index(task, self._server, name), None
        except EngineUnreachable as error:
            return None, error

    def _on_disk(self, task: Task, name: str | None) -> Index | None:
        with suppress(EngineRefused, DataError):
            return open_index(task, self._local, name)
        return None

    def _copy_to_disk(self, task: Task, folder: Path | None, name: str | None) -> Index | None:
        """Index the task's files on disk, if they exist and nothing of the task is indexed there."""
        names = task.info.index_names if name is None else (name,)
        if (
            folder is None
            or task.info.foreign is not None
            or any(self._local.index_info(index_name) for index_name in names)
        ):
            return None
        with suppress(SearchappError):  # then only the server has the documents
            index_task(task, self._local, task.collection(folder), self._progress)
        return self._on_disk(task, name)


CACHED_SOURCES = 20_000
CACHED_PAGES = 500
CACHED_QUERIES = 100

NEIGHBOURS = 3  # of a document in its text that are shown on either side

BATCH_SIZE = 200

CHECK_SECONDS = 30.0  # how often another program's index is checked for changes

T = TypeVar("T")

Query = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """A document as the annotator sees it."""

    document_id: str
    text: str
    matches: tuple[Span, ...] = ()  # the ranges of characters of `text` that match the topic
    fields: tuple[tuple[str, Any], ...] = ()  # the other fields
    before: tuple[Mapping[str, Any], ...] = ()  # neighbours in the text that contains the document
    behind: tuple[Mapping[str, Any], ...] = ()
    is_missing: bool = False  # whether the index lacks the document


class Pages:
    """The topics and documents of a task; thread-safe.

    Args:
        index: the documents; without it all are missing
        topics: the topics by their ids
        recipe: decides which words match, by default the recipe of searches
        spare: opens the index that replaces an unreachable server's
        newer: opens the version that has replaced the index's
    """

    def __init__(
        self,
        task: Task,
        index: Index | None,
        topics: Mapping[str, Topic],
        recipe: Recipe | None = None,
        spare: Callable[[], Index | None] | None = None,
        newer: Callable[[], Index] | None = None,
    ) -> None:
        self.task = task
        self._topics = topics
        self._index = index
        self._spare = spare
        self._newer = newer
        self.news: list[str] = []  # messages on changes, which the interface shows and removes
        self._recipe = recipe or recipes.load(task.recipe_book(), task.info.search_recipe)
        self._mapping = task.index_mapping()
        self._checked = time.monotonic()
        self._lock = threading.Lock()
        self._sources: OrderedDict[str, Mapping[str, Any] | None] = OrderedDict()
        self._pages: OrderedDict[tuple[str, str], Page] = OrderedDict()
        self._queries: OrderedDict[str, Query] = OrderedDict()
        self._marker: tuple[Index, Marker] | None = None

    def topic(self, topic_id: str) -> Topic:
        """Return a topic, without text if the data lacks it."""
        return self._topics.get(topic_id) or Topic(topic_id, "")

    def texts(self, documents: Sequence[str]) -> list[str]:
        return [str((source or {}).get("text", "")) for source in self.sources(documents)]

    def sources(self, documents: Sequence[str]) -> list[Mapping[str, Any] | None]:
        """Return the fields of documents, None for one that the index lacks."""
        with self._lock:
            return self._with_fallback(lambda: self._fetch_sources(documents))

    def known_text(self, document_id: str) -> str | None:
        source = self._sources.get(document_id)
        return None if source is None else str(source.get("text", ""))

    def require_as_ranked(self, document_id: str) -> None:
        """Accept every document: without a run there is no text to compare."""

    def is_fetched(self, document_id: str) -> bool:
        return document_id in self._sources

    def is_indexed(self, document_id: str) -> bool:
        return self._sources.get(document_id) is not None

    def has_page(self, topic_id: str, document_id: str) -> bool:
        return (topic_id, document_id) in self._pages

    def page(self, topic_id: str, document_id: str) -> Page:
        key = topic_id, document_id
        if (page := self._pages.get(key)) is None:
            with self._lock:
                self._with_fallback(lambda: self._fetch_pages(topic_id, [document_id]))
                page = self._pages[key]
        return page

    def prepare(self, topic_id: str, documents: Iterable[str]) -> None:
        """Fetch documents that are likely to be read next."""
        missing = [document for document in documents if (topic_id, document) not in self._pages]
        if missing:
            with self._lock:
                self._with_fallback(lambda: self._fetch_pages(topic_id, missing))

    def _with_fallback(self, fetch: Callable[[], T]) -> T:
        try:
            try:
                if self._newer is not None and self._index is not None and self._index.info.is_foreign:
                    self._check_for_changes(self._index, self._newer)
                return fetch()
            except Replaced:
                if self._newer is None:
                    raise
                self._take(self._newer())
                return fetch()
        except EngineUnreachable as error:
            spare, self._spare = self._spare, None
            other = None if spare is None else spare()
            if other is None:
                raise
            self.news.append(f"{error}; documents now come from {other.info.version} on this machine")
            self._index = other
            self._queries.clear()
            return fetch()

    def _check_for_changes(self, index: Index, newer: Callable[[], Index]) -> None:
        if (now := time.monotonic()) < self._checked + CHECK_SECONDS:
            return
        self._checked = now
        present = newer()
        if present.info.digest == index.info.digest:
            present.close()
        else:
            self._take(present)

    def _take(self, index: Index) -> None:
        before, self._index = self._index, index
        if before is None or before.info != index.info:
            self.news.append(replacement_news(index.info, "documents"))
        for cache in (self._queries, self._pages, self._sources):  # no page mixes two versions
            cache.clear()

    def _fetch_pages(self, topic_id: str, documents: Sequence[str]) -> None:
        topic, index = self.topic(topic_id), self._index
        results: Mapping[str, search_results.SearchResult] = {}
        unmarked: Mapping[str, Mapping[str, Any]] = {}
        if index is not None:
            if topic.text:
                if topic.id not in self._queries:
                    _put(self._queries, topic.id, self._recipe.body(topic, 1)["query"], CACHED_QUERIES)
                if self._marker is None or self._marker[0] is not index:
                    self._marker = index, Marker(index, TextAnalyzer(index, self._mapping), self._mapping)
                query = self._queries[topic.id]
                results = search_results.documents_with_matches(index, self._marker[1], documents, query)
            rest = [document for document in documents if document not in results]
            unmarked = paging.sources(index, rest)
        context = self.task.info.context
        for document in documents:
            result = results.get(document)
            source = unmarked.get(document) if result is None else result.source
            if source is None:
                page = Page(document, "", is_missing=True)
            else:
                page = page_of(document, source, () if result is None else result.matches)
                if index is not None and context is not None and stands_in_text(source, context):
                    page = with_neighbours(page, index, source, context)
                _put(self._sources, document, source, CACHED_SOURCES)
            _put(self._pages, (topic_id, document), page, CACHED_PAGES)

    def _fetch_sources(self, documents: Sequence[str]) -> list[Mapping[str, Any] | None]:
        missing = [document for document in dict.fromkeys(documents) if document not in self._sources]
        for start in range(0, len(missing), BATCH_SIZE):
            batch = missing[start : start + BATCH_SIZE]
            sources = paging.sources(self._index, batch) if self._index is not None else {}
            for document in batch:
                _put(self._sources, document, sources.get(document), CACHED_SOURCES + len(documents))
        return [self._sources[document] for document in documents]


def page_of(document_id: str, source: Mapping[str, Any], matches: tuple[Span, ...]) -> Page:
    """Return the page of an indexed document without its neighbours."""
    fields = tuple((name, value) for name, value in source.items() if name not in ("id", "text"))
    return Page(document_id, str(source.get("text", "")), matches, fields)


def stands_in_text(source: Mapping[str, Any], context: tuple[str, str]) -> bool:
    """Return whether a document is part of a text."""
    return all(source.get(name) is not None for name in context)


def with_neighbours(page: Page, index: Index, source: Mapping[str, Any], context: tuple[str, str]) -> Page:
    """Return a page with the document's neighbours in its text; `context` as in `search_results.documents_around`.

    Raises:
        EngineError: the engine failed.
    """
    number = context[1]
    neighbours = search_results.documents_around(index, source, context, NEIGHBOURS)
    return replace(
        page,
        before=tuple(neighbour for neighbour in neighbours if neighbour[number] < source[number]),
        behind=tuple(neighbour for neighbour in neighbours if neighbour[number] > source[number]),
    )


def _put(cache: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> None:
    cache[key] = value
    while len(cache) > most:
        cache.popitem(last=False)


def readable_topics(collection: Collection, split: str) -> dict[str, Topic]:
    """Return the topics of a split by id, as far as they can be read."""
    with suppress(SearchappError):
        return {topic.id: topic for topic in collection.topics(split, Problems(lenient=True))}
    return {}


def topics_of(task: Task, collection: Collection, wanted: AnyCollection[str]) -> dict[str, Topic]:
    """Return the wanted topics that any split has."""
    topics: dict[str, Topic] = {}
    for split in task.info.splits:
        if topics.keys() >= set(wanted):
            break
        topics |= {id_: topic for id_, topic in readable_topics(collection, split).items() if id_ in wanted}
    return topics


def every_topic(task: Task, collection: Collection) -> list[Topic]:
    """Return the topics of all splits, each once."""
    topics: dict[str, Topic] = {}
    for split in task.info.splits:
        topics |= readable_topics(collection, split)
    return list(topics.values())


@dataclass(frozen=True, slots=True)
class RunToJudge:
    """The rankings to judge: a run directory, a TREC run, or a live ranking."""

    rankings: Rankings
    manifest: Manifest | None  # of a run directory
    split: str | None  # of the topics, if known
    name: str  # of the run in the log
    notes: tuple[str, ...] = ()  # messages for the annotator
    recipe: Recipe | None = None  # of live rankings
    depth: int | None = None  # of live rankings
    # The known digests of the ranked texts, by document.
    digests: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, task: Task, path: Path, split: str | None) -> RunToJudge:
        """Read a run directory, or a TREC run of a split, if it is named.

        Raises:
            UsageError: there is no run, or it is of another task or split.
            DataError: it can't be read.
        """
        directory.require_exists(path)
        if path.is_dir():
            manifest = read_manifest(path)
            for noun, wanted, actual in (
                ("task", task.name, manifest.task),
                ("split", split, manifest.split),
            ):
                if wanted not in (None, actual):
                    raise UsageError(f"{path} is a run of the {noun} {actual}, not of {wanted}")
            name = f"{path.resolve().name}@{manifest.digest[:12]}"
            rankings, digests = RunRankings(path, empty=manifest.empty_topics), read_digests(path)
            return cls(rankings, manifest, manifest.split, name, digests=digests)
        given = directory.read_given(path)
        name = f"{path.name}@{given.digest[:12]}"
        notes = (given.note,) if given.note else ()
        return cls(RunRankings(path, given.run), None, split, name, notes)


class RunPages(Pages):
    """The topics, rankings and documents of a run; thread-safe."""

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
        super().__init__(task, index, topics, ranked.recipe or recipe_of(task, ranked.manifest), spare, newer)
        self.split = ranked.split
        self.name = ranked.name
        self.rankings = ranked.rankings
        self.manifest = ranked.manifest
        # The maximum of ranked documents for a topic, if known.
        self.depth = ranked.depth if ranked.manifest is None else ranked.manifest.depth
        self.collection = collection
        # Whether the run is a pool, all of whose documents are judged.
        self.is_pool = ranked.manifest is not None and ranked.manifest.recipe.get("name") == POOL
        mismatches = () if ranked.recipe is not None else _mismatches(task, index, ranked, topics, collection)
        self.notes = (*ranked.notes, *mismatches)  # messages for the annotator, for instance on another index
        self._hits: tuple[str, dict[str, float]] = "", {}
        self._digests = ranked.digests

    @classmethod
    def open(
        cls,
        task: Task,
        documents: LocalFirst,
        path: Path,
        data: Path | None = None,
        *,
        home: Path | None = None,
        split: str | None = None,
    ) -> RunPages:
        """Open the pages of a run directory or a TREC run, with the documents of an index.

        Args:
            task: the task of the run
            documents: the source of the documents
            path: the run directory or the TREC run
            data: the folder of the topics, by default the one of the run directory, or of the task in `home`
            home: the home directory
            split: the split of a TREC run's topics, by default any

        Raises:
            UsageError: there is no run, or it is of another task or split.
            DataError: the topics can't be read, or a TREC run ranks no topic of the task.
            EngineError: the documents can't be fetched.
        """
        ranked = RunToJudge.of(task, path, split)
        if ranked.manifest is not None:
            folder = data or Path(ranked.manifest.data)
            if not folder.is_dir():
                raise UsageError(
                    f"the folder of the run's topics, {folder}, does not exist: give its present path with --data"
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
        documents: LocalFirst,
        ranked: RunToJudge,
        topics: Mapping[str, Topic],
        collection: Collection,
        digest: str | None,
    ) -> RunPages:
        """Open the pages of rankings, with the documents of an index of a digest.

        Raises:
            EngineError: the documents can't be fetched.
        """
        name = None if ranked.split is None else collection.index_of(ranked.split)
        index = partial(documents.index, task, collection.folder, name, digest)
        spare = partial(documents.spare, task, collection.folder, name)
        return cls(task, index(), ranked, topics, collection, spare, newer=index)

    def require_as_ranked(self, document_id: str) -> None:
        """Check that a document may be graded: its text is the one that was ranked.

        Raises:
            DataError: the index lacks the document, or has another text for it.
            EngineError: the document can't be fetched.
        """
        text = self.known_text(document_id)
        if text is None:
            (text,) = self.texts([document_id])
            if not self.is_indexed(document_id):
                raise DataError(
                    f"document {document_id} is no longer in the index, so it was not graded: rank again"
                )
        if document_id in self._digests and self._digests[document_id] != digest_text(text):
            raise DataError(
                f"the text of document {document_id} has changed since it was ranked, so it was not graded: rank again"
            )

    @property
    def topics(self) -> tuple[str, ...]:
        return self.rankings.topics

    def ranking(self, topic_id: str) -> tuple[str, ...]:
        hits = self.rankings.ranking(topic_id).hits
        self._hits = topic_id, dict(hits)
        return hits.document_ids

    def scored(self, topic_id: str, at_most: int | None = None) -> int:
        """Return how many documents of a topic, up to `at_most`, have a score other than 0."""
        return self.rankings.scored(topic_id, at_most)

    def score(self, topic_id: str, document_id: str) -> float | None:
        if self._hits[0] != topic_id:
            self.ranking(topic_id)
        return self._hits[1].get(document_id)


def _topics(task: Task, ranked: RunToJudge, collection: Collection) -> dict[str, Topic]:
    """Return the topics of a run's split or, for a TREC run without one, of any split that it ranks."""
    if ranked.split is not None:
        topics = {topic.id: topic for topic in collection.topics(ranked.split, Problems(lenient=True))}
    else:
        topics = topics_of(task, collection, ranked.rankings.topics)
    if ranked.manifest is None and not any(topic in topics for topic in ranked.rankings.topics):
        of = f"{task.name} {ranked.split or ''}".rstrip()
        raise DataError(
            f"{ranked.rankings.path} ranks no topic of {of} in {collection.folder}: "
            "give the folder of its topics with --data, and their split with --split"
        )
    return topics


def _mismatches(
    task: Task, index: Index, ranked: RunToJudge, topics: Mapping[str, Topic], collection: Collection
) -> Iterator[str]:
    if ranked.manifest is not None:
        if index.info.digest != ranked.manifest.index_digest:
            yield "the index has changed since the run was ranked: documents may be missing or different"
        return
    path, rankings = ranked.rankings.path, ranked.rankings
    unknown = sum(topic not in topics for topic in rankings.topics)
    if unknown:
        yield (
            f"{unknown:,} of the {counted(len(rankings.topics), 'topic')} of {path} {be(unknown)} not of {task.name}"
        )
    firsts = [rankings.ranking(topic).hits.document_ids[0] for topic in rankings.topics]
    missing = look_up_documents(lambda: index, collection, firsts)
    if missing.unknown:
        yield f"{path}: among its documents at rank 1, {missing}: is it a run of {task.name}?"


def recipe_of(task: Task, manifest: Manifest | None) -> Recipe | None:
    """Return the recipe of a run, if searchapp ranked it and the task still has the recipe."""
    if manifest is None:
        return None
    with suppress(SearchappError, KeyError):
        parameters = manifest.recipe.get("parameters") or {}
        return recipes.load(task.recipe_book(), str(manifest.recipe["name"]), parameters)
    return None


def require_topic(run_pages: RunPages, topics: Sequence[str], topic_id: str | None) -> None:
    """Check that a run has topics to judge, and the given one, if any.

    Raises:
        UsageError: it lacks the topic.
        DataError: it has no topics.
    """
    if not topics:
        raise DataError(f"{run_pages.rankings.path} has no rankings to judge")
    if topic_id is not None and topic_id not in topics:
        if topic_id in run_pages.topics:
            raise UsageError(
                f"the topic {topic_id!r} is assigned to other annotators: your first topic is {topics[0]}"
            )
        raise UsageError(f"the run has no topic {topic_id!r}: its first topic is {topics[0]}")
