"""Searches a task's documents for what a person types.

A recipe ranks the words as the text of a topic; the query language (`searchapp.ranking.language`) and filters choose
among what it finds. Recipes of one query are asked as such, whose hits come page by page to any depth. Of recipes that
fuse several signals, or learn from solved topics, the first `FUSED_DEPTH` documents are ranked; where there are no
words to rank by, phrases, values and filters are asked for as a query of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from searchapp.app.index import index_examples, open_index, read_examples
from searchapp.engines.base import BEST_FIRST, Counts, Engine, Explanation, Index
from searchapp.errors import DataError
from searchapp.formats.problems import Problems
from searchapp.model import Document, Hit, Hits, Topic
from searchapp.progress import Progress
from searchapp.ranking import marking, recipes, search, shards
from searchapp.ranking.language import Compiler, Fields, Filter, parsed, require_text, without_signs
from searchapp.ranking.language.compiled import Compiled
from searchapp.ranking.language.syntax import Clause, Group, Occur, Word
from searchapp.ranking.rank import Ranker
from searchapp.ranking.recipe import Recipe
from searchapp.ranking.search import SearchResult
from searchapp.ranking.signals.base import Inputs, Labels, Solved, gold_of
from searchapp.tasks.base import Collection, Task
from searchapp.tasks.folders import data_folder

FUSED_DEPTH = 1000
"""How many documents are ranked where several signals are fused."""

WINDOW = 10_000
"""The last rank that an engine gives by itself; what lies behind is asked for from there on."""

VALUES = 50
"""How many values of a field are counted."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What a person looks for: the hits behind the `first` ones, `size` of them.

    `recipe` is by default that of the task's searches. Of filters on one field any may hold. A `literal` text is words
    alone, whatever signs are in it.
    """

    text: str
    recipe: str | None = None
    filters: tuple[Filter, ...] = ()
    size: int = 10
    first: int = 0
    explain: bool = False
    literal: bool = False


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request, read: its recipe, the topic that the typed words are, and what else was typed."""

    request: SearchRequest
    recipe: Recipe
    compiled: Compiled

    @property
    def topic(self) -> Topic:
        return self.recipe.typed(self.compiled.words)

    @property
    def is_one_query(self) -> bool:
        """Whether one query gives its hits: signals that are fused rank by words, and there may be none."""
        return self.recipe.is_one_query or not self.compiled.words


class Searcher:
    """A task's index, open to be searched again and again, from one thread at a time.

    With a `collection`, which is asked for when it is needed, recipes rank that learn from its solved topics.
    """

    def __init__(
        self,
        task: Task,
        engine: Engine,
        index: Index,
        progress: Progress,
        collection: Callable[[], Collection] | None = None,
    ) -> None:
        self.task = task
        self.index = index
        self._engine = engine
        self._progress = progress
        self._collection = collection
        self._mapping = task.index_mapping()
        self._compilers: dict[str, Compiler] = {}
        self._rankers: dict[str, Ranker] = {}
        self._recipes: dict[str, Recipe] = {}
        self._ranked: tuple[tuple[str, str], Hits] | None = None
        self._chosen: tuple[tuple[str, Compiled], Hits] | None = None

    @classmethod
    def open(
        cls, task: Task, engine: Engine, progress: Progress, home: Path, data: Path | None = None
    ) -> Searcher:
        """The searcher of a task that is indexed; its files are in `data` or, without, where `home` has them.

        They are looked for when a recipe needs them: to search an index takes no files.

        Raises:
            EngineError: there is no such index, or it can't be had.
        """

        def collection() -> Collection:
            folder = data_folder(task, home, data)
            if not folder.is_dir():
                raise DataError(
                    f"the recipe learns from the files of {task.reference}, and there is no folder {folder}: "
                    "say where they are with --data"
                )
            return task.collection(folder)

        return cls(task, engine, open_index(task, engine), progress, collection)

    @property
    def collection(self) -> Collection | None:
        """The task's files; None where they are not to be found."""
        try:
            return self._collection() if self._collection is not None else None
        except DataError:
            return None

    @property
    def recipes(self) -> tuple[str, ...]:
        """The names of the recipes that rank what a person types, that of searches first."""
        book = self.task.recipe_book()
        first = self.task.info.search_recipe
        suited = [name for name in recipes.names(book) if self.recipe(name).takes_words]
        return tuple(sorted(suited, key=lambda name: (name != first, name)))

    def recipe(self, name: str | None = None) -> Recipe:
        """A recipe of the task, by default that of searches.

        Raises:
            UsageError: there is none of that name.
        """
        name = name or self.task.info.search_recipe
        if name not in self._recipes:
            self._recipes[name] = recipes.load(self.task.recipe_book(), name)
        return self._recipes[name]

    def fields(self, recipe: str | None = None) -> Fields:
        """The fields that a query may name."""
        return Fields.of(self._mapping, self.recipe(recipe).query.template.body)

    def warnings(self, recipe: str | None = None) -> tuple[str, ...]:
        """Why the hits may be others on another number of shards."""
        return tuple(shards.warnings(self.recipe(recipe), self._mapping, self.index.info.shards))

    def search(self, request: SearchRequest) -> list[SearchResult]:
        """The hits of a request, best first, with what matches in them.

        Raises:
            BrokenQuery: the text can't be read; the error says at which character.
            UsageError: there is no such recipe, or it can't rank words, or no such field.
            EngineError: the engine failed, or refused the query.
        """
        asked = self._read(request)
        if asked.is_one_query:
            body = self._body(asked)
            marks = marking.highlight(self.index, self._mapping, body["query"])
            placed = self._placed(body, request)
            return search.find(self.index, marks, placed, request.first) if placed is not None else []
        hits = self._fused_hits(asked)[request.first : request.first + request.size]
        return self._shown(asked, hits)

    def counts(self, request: SearchRequest) -> Counts:
        """How many documents match, and the commonest values of the fields that documents are filtered by.

        Raises:
            as `search` does.
        """
        asked = self._read(request)
        fields = dict.fromkeys(self.fields(request.recipe).facets, VALUES)
        if asked.is_one_query:
            return self.index.counts(self._body(asked)["query"], fields)
        return self.index.counts({"ids": {"values": self._fused_hits(asked).document_ids}}, fields)

    def document(self, document_id: str, request: SearchRequest) -> SearchResult | None:
        """One document with what matches a request in it, whether it does or not; None if it is not indexed.

        Raises:
            as `search` does.
        """
        asked = self._read(request)
        query = self._body(asked)["query"]
        marks = marking.highlight(self.index, self._mapping, query)
        return search.seen_by(self.index, [document_id], query, marks).get(document_id)

    def ranking(self, request: SearchRequest) -> Iterator[Hit]:
        """Every hit of a request, best first, whatever part of them it asks for.

        Raises:
            as `search` does.
        """
        asked = self._read(request)
        pieces = self._windows(self._body(asked)) if asked.is_one_query else [self._fused_hits(asked)]
        for hits in pieces:
            yield from hits

    def matches(self, request: SearchRequest, document_id: str, *, signs: bool = True) -> bool:
        """Whether a document is among the hits of a request; without `signs`, whether it would be without any + and -.

        Raises:
            as `search` does.
        """
        asked = self._read(request, signs=signs)
        if not asked.is_one_query:
            return document_id in self._fused_hits(asked).document_ids
        return bool(self.index.find(_only(self._body(asked)["query"], document_id)))

    def is_cut(self, request: SearchRequest) -> bool:
        """Whether documents with words of a request may be behind the `FUSED_DEPTH` that its recipe ranks.

        Raises:
            as `search` does.
        """
        asked = self._read(request)
        return not asked.is_one_query and len(self._all_fused(asked)) == FUSED_DEPTH

    def explain(self, request: SearchRequest, document_id: str) -> Explanation | None:
        """Why a document has its score; None where it does not match.

        Raises:
            as `search` does.
        """
        asked = self._read(request)
        if asked.is_one_query:
            found = self.index.find(_only(self._body(asked)["query"], document_id) | {"explain": True})
            return found[0].explanation if found else None
        if document_id not in self._fused_hits(asked).document_ids:
            return None
        return self._ranker(asked.recipe).explain(asked.topic, document_id, FUSED_DEPTH)

    def _read(self, request: SearchRequest, *, signs: bool = True) -> _Asked:
        name = request.recipe or self.task.info.search_recipe
        recipe = self.recipe(name)
        if name not in self._compilers:
            recipes.require_words(self.task.recipe_book(), recipe)
            self._compilers[name] = Compiler(self.fields(name), self.index)
        if request.literal:
            require_text(request.text)
            read = Group((Clause(Occur.may, Word(request.text)),) if request.text else ())
        else:
            read = parsed(request.text, self.fields(name).kinds)
        if not signs:
            read = without_signs(read)
        return _Asked(request, recipe, self._compilers[name].compiled(read, request.filters))

    def _body(self, asked: _Asked) -> dict[str, Any]:
        """The search body of a request for a recipe of one query."""
        recipe, compiled = asked.recipe, asked.compiled
        body = recipe.body(asked.topic, asked.request.size)
        body["query"] = compiled.query(matching_only(body["query"]) if compiled.words else None)
        if asked.request.explain:
            body["explain"] = True
        return body

    def _placed(self, body: dict[str, Any], request: SearchRequest) -> dict[str, Any] | None:
        """A body that begins behind the first hits of a request; None where there are no more."""
        placed = body | {"size": request.size}
        if request.first == 0 or request.first + request.size <= WINDOW:
            return placed | {"from": request.first}
        left = request.first
        for hits in self._windows(body, request.first):
            left -= len(hits)
            if left == 0:
                last = hits[len(hits) - 1]
                return placed | {"search_after": [last.score, last.document_id]}
        return None

    def _windows(self, body: Mapping[str, Any], most: int | None = None) -> Iterator[Hits]:
        """The first `most` hits of a body, or all, in pieces as large as an engine gives them."""
        asked = {key: value for key, value in body.items() if key != "explain"} | {"_source": False}
        while most is None or most > 0:
            size = WINDOW if most is None else min(WINDOW, most)
            (hits,) = self.index.search([asked | {"size": size}])
            if hits:
                yield hits
            if len(hits) < size:
                return
            last = hits[len(hits) - 1]
            asked["search_after"] = [last.score, last.document_id]
            most = None if most is None else most - size

    def _fused_hits(self, asked: _Asked) -> Hits:
        """The hits of a recipe of several signals, without those that the rest of the query leaves out."""
        key = asked.recipe.name, asked.compiled
        if self._chosen is None or self._chosen[0] != key:
            hits, chosen = self._all_fused(asked), asked.compiled.choosing()
            if chosen is not None and hits:
                only = {"bool": {"filter": [chosen, {"ids": {"values": hits.document_ids}}]}}
                body = {"query": only, "size": len(hits), "sort": BEST_FIRST, "_source": False}
                (left,) = self.index.search([body])
                kept = set(left.document_ids)
                hits = Hits.of(*(hit for hit in hits if hit.document_id in kept))
            self._chosen = key, hits
        return self._chosen[1]

    def _all_fused(self, asked: _Asked) -> Hits:
        """The hits of a recipe of several signals for the words of a request, whatever else was typed."""
        key = asked.recipe.name, asked.compiled.words
        if self._ranked is None or self._ranked[0] != key:
            (ranking,) = self._ranker(asked.recipe).rank([asked.topic], FUSED_DEPTH, "search")
            self._ranked = key, Hits.of(*(hit for hit in ranking.hits if hit.score > 0))
        return self._ranked[1]

    def _shown(self, asked: _Asked, hits: Hits) -> list[SearchResult]:
        """Hits as a person sees them, with what matches the recipe's query."""
        if not hits:
            return []
        query = asked.recipe.body(asked.topic, 1)["query"]
        marks = marking.highlight(self.index, self._mapping, query)
        seen = search.seen_by(self.index, hits.document_ids, query, marks)
        explained = {
            hit.document_id: self._ranker(asked.recipe).explain(asked.topic, hit.document_id, FUSED_DEPTH)
            for hit in (hits if asked.request.explain else ())
        }
        return [
            SearchResult(
                rank,
                hit,
                seen[hit.document_id].text,
                seen[hit.document_id].source,
                seen[hit.document_id].matches,
                explained.get(hit.document_id),
            )
            for rank, hit in enumerate(hits, start=asked.request.first + 1)
            if hit.document_id in seen
        ]

    def _ranker(self, recipe: Recipe) -> Ranker:
        if recipe.name not in self._rankers:
            self._rankers[recipe.name] = Ranker(recipe, self._inputs())
        return self._rankers[recipe.name]

    def _inputs(self) -> Inputs:
        """What signals may ask for: the solved topics are those that the task's last split is ranked by."""

        if self._collection is None:
            raise DataError(
                f"the recipe learns from the files of {self.task.reference}, which are not at hand"
            )
        collection = cache(self._collection)

        def documents() -> Iterable[Document]:
            return collection().documents.read(Problems(lenient=True))

        def examples() -> Solved:
            problems = Problems(lenient=True)
            index, found = index_examples(
                self.task,
                self._engine,
                collection(),
                _split(self.task, collection()),
                self._progress,
                (),
                problems,
            )
            return Solved(index, gold_of(found))

        def labels() -> Labels:
            problems = Problems(lenient=True)
            found = read_examples(
                self.task, collection(), _split(self.task, collection()), self._progress, (), problems
            )
            return Labels({document.id: document for document in documents()}, gold_of(found))

        return Inputs(self.index, self.task.info.topics_are_documents, examples, labels, documents)


def _split(task: Task, collection: Collection) -> str:
    """The last split whose solved topics are all there."""
    for split in reversed(task.info.splits):
        files = collection.example_files(split)
        if files and all(file.exists() for file in files):
            return split
    raise DataError(f"{collection.folder} has no solved topics for {task.reference}: choose another recipe")


def _only(query: Mapping[str, Any], document_id: str) -> dict[str, Any]:
    """The search body that finds one document, if a query matches it."""
    only = {"bool": {"must": [query], "filter": [{"ids": {"values": [document_id]}}]}}
    return {"query": only, "size": 1, "sort": BEST_FIRST, "_source": False}


def matching_only(query: Mapping[str, Any]) -> Mapping[str, Any]:
    """A template's query without the clause that fills its ranking up with documents that match nothing.

    >>> matching_only({"bool": {"must": [{"match_all": {"boost": 0}}], "should": [{"match": {"text": "a"}}]}})
    {'bool': {'should': [{'match': {'text': 'a'}}], 'minimum_should_match': 1}}
    """
    described = query.get("bool")
    if not isinstance(described, Mapping) or not described.get("should"):
        return query
    filling = {"match_all": {"boost": 0}}
    if described.get("must") not in (filling, [filling]):
        return query
    rest = {name: value for name, value in described.items() if name != "must"}
    minimum = described.get("minimum_should_match", 0)
    return {"bool": rest | {"minimum_should_match": 1 if minimum in (0, "0") else minimum}}
