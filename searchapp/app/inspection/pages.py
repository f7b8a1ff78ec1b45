"""Pages that annotators read: topics, rankings and documents of a run, each fetched when it is shown.

Documents come from an embedded index of the digest that was ranked, if there is one, else from the server:
two indexes of one digest give the same answers on either engine.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from searchapp.app.index import index_task, open_index
from searchapp.app.pool import TAG as POOL
from searchapp.config.settings import Settings
from searchapp.engines import open_on_disk, open_server
from searchapp.engines.base import Engine, Index
from searchapp.errors import DataError, EngineRefused, EngineUnreachable, Replaced, SearchappError, UsageError
from searchapp.files import digest_text
from searchapp.formats.problems import Problems
from searchapp.model import Topic
from searchapp.progress import Progress
from searchapp.ranking import recipes, search_results
from searchapp.ranking.highlighting import Marker, Span, TextAnalyzer
from searchapp.ranking.recipes import Recipe
from searchapp.runs import directory
from searchapp.runs.directory import Manifest, read_digests, read_manifest
from searchapp.runs.lookup import look_up_documents
from searchapp.runs.rankings import Rankings, RunRankings
from searchapp.tasks.base import Collection, Task
from searchapp.tasks.folders import data_folder
from searchapp.text import counted

ATTEMPTS = 2
TIMEOUT_SECONDS = 10.0
"""How often, and how long, a server is asked for what somebody is waiting to read."""


class LocalFirst:
    """The documents of the engine that the settings select or, where that is a server, of an equal index on disk.

    With `copy` one is made from the task's files where there is none of the task yet, so that judging needs the server
    no more. `warn` is called with what people must know.
    """

    def __init__(
        self, settings: Settings, progress: Progress, warn: Callable[[str], None], *, copy: bool
    ) -> None:
        self._settings = settings
        self._progress = progress
        self._warn = warn
        self._copy = copy
        self._here = open_on_disk(settings)
        self._server: Engine | None = None

    def index(
        self, task: Task, folder: Path | None, name: str | None = None, digest: str | None = None
    ) -> Index:
        """The index of a name, or the one that people search, of a task whose files are in a folder.

        `digest` is that of the index that was ranked, where it is known.

        Raises:
            EngineError: it can't be had.
            DataError: it is damaged.
        """
        if not self._settings.uses_server:
            return open_index(task, self._here, name)
        gone: EngineUnreachable | None = None
        there: Index | None = None
        if digest is None:
            there, gone = self._from_server(task, name)
            digest = there.info.digest if there is not None else None
        here = self._equal(task, name, digest)
        if here is None and self._copy and digest is not None:
            self._make(task, folder, name)
            here = self._equal(task, name, digest)
        if here is not None:
            return here
        if there is None and gone is None:
            there, gone = self._from_server(task, name)
        if there is not None:
            return there
        spare = self.spare(task, folder, name)
        if spare is None:
            raise EngineUnreachable(
                f"{gone}; the documents are not on this machine either: `searchapp index {task.reference} --engine "
                "embedded --data DIR` puts them there"
            ) from gone
        self._warn(f"{gone}; until then documents come from {spare.info.version}, on this machine")
        return spare

    def spare(self, task: Task, folder: Path | None, name: str | None = None) -> Index | None:
        """An index to go on with when the server that `index` came from is gone; None if there is none."""
        if not self._settings.uses_server:
            return None
        found = self._on_disk(task, name)
        if found is None:
            self._make(task, folder, name)
            found = self._on_disk(task, name)
        return found

    def close(self) -> None:
        """Let go of both engines."""
        self._here.close()
        if self._server is not None:
            self._server.close()

    def _from_server(self, task: Task, name: str | None) -> tuple[Index | None, EngineUnreachable | None]:
        try:
            if self._server is None:
                self._server = open_server(self._settings, attempts=ATTEMPTS, timeout=TIMEOUT_SECONDS)
            return open_index(task, self._server, name), None
        except EngineUnreachable as error:
            return None, error

    def _equal(self, task: Task, name: str | None, digest: str | None) -> Index | None:
        found = self._on_disk(task, name)
        return found if found is not None and found.info.digest == digest else None

    def _on_disk(self, task: Task, name: str | None) -> Index | None:
        with suppress(EngineRefused, DataError):
            return open_index(task, self._here, name)
        return None

    def _make(self, task: Task, folder: Path | None, name: str | None) -> None:
        """Index the task's files here, unless they are not there or something of the task is indexed already."""
        names = task.info.index_names if name is None else (name,)
        if folder is None or any(self._here.index_info(one) for one in names):
            return
        with suppress(SearchappError):  # then the server has what this machine has not
            index_task(task, self._here, task.collection(folder), self._progress)


KEPT_SOURCES = 20_000
KEPT_PAGES = 500
"""Documents that are kept once they were fetched, as they are and with their matches."""

KEPT_QUERIES = 100
"""Topics whose query is kept, with what it marks."""

REACH = 3
"""How many neighbours a document is shown with on either side, where documents stand in a text."""

_AT_ONCE = 200

T = TypeVar("T")

Query = Mapping[str, Any]
"""A query, and the `highlight` of a search body that marks what matches it."""


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


class Pages:
    """The topics and documents of a task; its methods may be called from several threads.

    `recipe` decides what matches, by default that of searches. Without an `index` all documents are missing. When the
    index's server is gone, documents come from that which `spare` gives from then on, if it gives any; when its version
    was replaced, from that which `newer` gives.
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
        self.news: list[str] = []
        """Sentences on what has changed since: the interface shows them and removes them."""
        self._recipe = recipe or recipes.load(task.recipe_book(), task.info.search_recipe)
        self._mapping = task.index_mapping()
        self._lock = threading.Lock()
        self._sources: OrderedDict[str, Mapping[str, Any] | None] = OrderedDict()
        self._pages: OrderedDict[tuple[str, str], Page] = OrderedDict()
        self._queries: OrderedDict[str, Query] = OrderedDict()
        self._marked: tuple[Index, Marker] | None = None

    def topic(self, topic_id: str) -> Topic:
        """A topic; without words, if the data does not have it."""
        return self._topics.get(topic_id) or Topic(topic_id, "")

    def texts(self, documents: Sequence[str]) -> list[str]:
        """What documents say; nothing for those that the index lacks."""
        with self._lock:
            found = self._surely(lambda: self._fetched(documents))
        return [str((source or {}).get("text", "")) for source in found]

    def known_text(self, document_id: str) -> str | None:
        """What a document says, if it was fetched before."""
        source = self._sources.get(document_id)
        return None if source is None else str(source.get("text", ""))

    def require_as_ranked(self, document_id: str) -> None:
        """Make sure that a document may be graded; without a run there is nothing to compare it with."""

    def is_fetched(self, document_id: str) -> bool:
        return document_id in self._sources

    def is_indexed(self, document_id: str) -> bool:
        """Whether a document that was fetched before is in the index."""
        return self._sources.get(document_id) is not None

    def has_page(self, topic_id: str, document_id: str) -> bool:
        return (topic_id, document_id) in self._pages

    def page(self, topic_id: str, document_id: str) -> Page:
        """A document with what matches the topic in it."""
        key = topic_id, document_id
        page = self._pages.get(key)
        if page is None:
            with self._lock:
                self._surely(lambda: self._fetch_pages(topic_id, [document_id]))
                page = self._pages[key]
        return page

    def prepare(self, topic_id: str, documents: Iterable[str]) -> None:
        """Fetch documents that are likely to be looked at next, so that `page` has them at once."""
        missing = [document for document in documents if (topic_id, document) not in self._pages]
        if missing:
            with self._lock:
                self._surely(lambda: self._fetch_pages(topic_id, missing))

    def _surely(self, fetch: Callable[[], T]) -> T:
        """Fetch something from the index or, when that is gone, from the one that takes its place."""
        try:
            try:
                return fetch()
            except Replaced:
                if self._newer is None:
                    raise
                self._go_on_with(self._newer())
                return fetch()
        except EngineUnreachable as error:
            spare, self._spare = self._spare, None
            other = None if spare is None else spare()
            if other is None:
                raise
            self.news.append(
                f"{error}; documents come from {other.info.version}, on this machine, from now on"
            )
            self._index = other
            self._queries.clear()
            return fetch()

    def _go_on_with(self, index: Index) -> None:
        """Take the version that serves now, and forget what came from the one before: no page is made of two."""
        self.news.append(
            f"the index was built again meanwhile: documents come from {index.info.version} from now on"
        )
        self._index = index
        for kept in (self._queries, self._pages, self._sources):
            kept.clear()

    def _fetch_pages(self, topic_id: str, documents: Sequence[str]) -> None:
        topic, index = self.topic(topic_id), self._index
        seen: Mapping[str, search_results.SearchResult] = {}
        unmarked: Mapping[str, Mapping[str, Any]] = {}
        if index is not None:
            if topic.text:
                seen = search_results.seen_by(index, self._marker(index), documents, self._query(topic))
            without = [document for document in documents if document not in seen]
            unmarked = search_results.sources(index, without) if without else {}
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

    def _query(self, topic: Topic) -> Query:
        """A topic's query."""
        if topic.id not in self._queries:
            _keep(self._queries, topic.id, self._recipe.body(topic, 1)["query"], KEPT_QUERIES)
        return self._queries[topic.id]

    def _marker(self, index: Index) -> Marker:
        if self._marked is None or self._marked[0] is not index:
            self._marked = index, Marker(index, TextAnalyzer(index, self._mapping), self._mapping)
        return self._marked[1]

    def _page(self, document: str, source: Mapping[str, Any], matches: tuple[Span, ...]) -> Page:
        page = page_of(document, source, matches)
        context = self.task.info.context
        if self._index is None or context is None or not stands_in_text(source, context):
            return page
        return with_neighbours(page, self._index, source, context)

    def _fetched(self, documents: Sequence[str]) -> list[Mapping[str, Any] | None]:
        missing = [document for document in dict.fromkeys(documents) if document not in self._sources]
        for start in range(0, len(missing), _AT_ONCE):
            some = missing[start : start + _AT_ONCE]
            found = search_results.sources(self._index, some) if self._index is not None else {}
            for document in some:
                _keep(self._sources, document, found.get(document), KEPT_SOURCES + len(documents))
        return [self._sources[document] for document in documents]


def page_of(document_id: str, source: Mapping[str, Any], matches: tuple[Span, ...]) -> Page:
    """A document as it was indexed, without its neighbours."""
    fields = tuple((name, value) for name, value in source.items() if name not in ("id", "text"))
    return Page(document_id, str(source.get("text", "")), matches, fields)


def stands_in_text(source: Mapping[str, Any], context: tuple[str, str]) -> bool:
    """Whether a document has neighbours, in a text that it stands in."""
    return all(source.get(name) is not None for name in context)


def with_neighbours(page: Page, index: Index, source: Mapping[str, Any], context: tuple[str, str]) -> Page:
    """A page with the document's neighbours in the text that it stands in; `context` as `search.beside` takes it.

    Raises:
        EngineError: the engine failed.
    """
    number = context[1]
    near = search_results.beside(index, source, context, REACH)
    return replace(
        page,
        before=tuple(one for one in near if one[number] < source[number]),
        behind=tuple(one for one in near if one[number] > source[number]),
    )


def _keep(kept: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> None:
    kept[key] = value
    while len(kept) > most:
        kept.popitem(last=False)


def topics_of(task: Task, collection: Collection, wanted: abc.Collection[str]) -> dict[str, Topic]:
    """Those of the wanted topics that are in any split of a collection; what can't be read has none."""
    found: dict[str, Topic] = {}
    for split in task.info.splits:
        if found.keys() >= set(wanted):
            break
        with suppress(SearchappError):
            topics = collection.topics(split, Problems(lenient=True))
            found |= {topic.id: topic for topic in topics if topic.id in wanted}
    return found


def every_topic(task: Task, collection: Collection) -> list[Topic]:
    """The topics of all splits of a task that can be read, each once."""
    found: dict[str, Topic] = {}
    for split in task.info.splits:
        with suppress(SearchappError):
            found |= {topic.id: topic for topic in collection.topics(split, Problems(lenient=True))}
    return list(found.values())


@dataclass(frozen=True, slots=True)
class RunToJudge:
    """What is judged: the rankings of a run directory, or those of a TREC run, which has no manifest.

    `split` is that of the topics, None where nobody has said it. `name` is what the log calls the run. `notes` are
    sentences that the annotator should know. Rankings that are made now, of the index that there is, have their
    `recipe` and `depth` instead of a manifest. `digests` are those of the texts of documents when they were ranked, by
    their ids, as far as they are known.
    """

    rankings: Rankings
    manifest: Manifest | None
    split: str | None
    name: str
    notes: tuple[str, ...] = ()
    recipe: Recipe | None = None
    depth: int | None = None
    digests: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, task: Task, path: Path, split: str | None) -> RunToJudge:
        """A run directory, or a TREC run with topics of a split, if it is named.

        Raises:
            UsageError: there is no run, or it is another task's or split's.
            DataError: it can't be read.
        """
        directory.require_there(path)
        if path.is_dir():
            manifest = read_manifest(path)
            for what, wanted, found in (("task", task.name, manifest.task), ("split", split, manifest.split)):
                if wanted not in (None, found):
                    raise UsageError(f"{path} is a run of the {what} {found}, not of {wanted}")
            name = f"{path.resolve().name}@{manifest.digest[:12]}"
            rankings, digests = RunRankings(path, empty=manifest.empty), read_digests(path)
            return cls(rankings, manifest, manifest.split, name, digests=digests)
        read = directory.read_given(path)
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
        self.is_pool = ranked.manifest is not None and ranked.manifest.recipe.get("name") == POOL
        """Whether the run is a pool, which was made to be judged whole."""
        doubts = () if ranked.recipe is not None else _doubts(task, index, ranked, topics, collection)
        self.notes = (*ranked.notes, *doubts)
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
        documents: LocalFirst,
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
        index = partial(documents.index, task, collection.folder, name, digest)
        spare = partial(documents.spare, task, collection.folder, name)
        return cls(task, index(), ranked, topics, collection, spare, newer=index)

    def require_as_ranked(self, document_id: str) -> None:
        """Make sure that a document may be graded: the annotator reads what was ranked.

        Raises:
            DataError: the index lacks the document, or has another text for it.
            EngineError: the document can't be had.
        """
        text = self.known_text(document_id)
        if text is None:
            (text,) = self.texts([document_id])
            if not self.is_indexed(document_id):
                raise DataError(
                    f"document {document_id} is not in the index any more, so it is not graded: rank again"
                )
        if document_id in self._digests and self._digests[document_id] != digest_text(text):
            raise DataError(
                f"the text of document {document_id} has changed since it was ranked, so it is not graded: rank again"
            )

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
        yield (
            f"{unknown:,} of the {counted(len(rankings.topics), 'topic')} of {path} {are} not among those of "
            f"{task.name}"
        )
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
