"""What people read who judge: topics, and documents with what matches a topic, each fetched when it is looked at."""

from __future__ import annotations

import threading
from collections import OrderedDict, abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from searchapp.engines.base import Index
from searchapp.errors import EngineUnreachable, Replaced, SearchappError
from searchapp.formats.problems import Problems
from searchapp.model import Topic
from searchapp.ranking import recipes, search
from searchapp.ranking.analyzed import Analyzed
from searchapp.ranking.marking import Marker
from searchapp.ranking.marks import Span
from searchapp.ranking.recipe import Recipe
from searchapp.tasks.base import Collection, Task

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
        seen: Mapping[str, search.SearchResult] = {}
        unmarked: Mapping[str, Mapping[str, Any]] = {}
        if index is not None:
            if topic.text:
                seen = search.seen_by(index, self._marker(index), documents, self._query(topic))
            without = [document for document in documents if document not in seen]
            unmarked = search.sources(index, without) if without else {}
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
            self._marked = index, Marker(index, Analyzed(index, self._mapping), self._mapping)
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
            found = search.sources(self._index, some) if self._index is not None else {}
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
    near = search.beside(index, source, context, REACH)
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
