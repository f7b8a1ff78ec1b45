"""Search a task's documents for typed words: hits, facets, and the solved topics whose answers the hits are.

A recipe of several signals ranks the first `FUSED_DEPTH` documents once; pages and explanations are read from
that ranking until the words, the recipe or the filters change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from searchapp.app.index import open_index
from searchapp.app.models import typed_inputs
from searchapp.engines.base import BEST_FIRST, Engine, Index, without_cancellation
from searchapp.errors import DataError, Replaced, SearchappError
from searchapp.formats.problems import Problems
from searchapp.model import Counts, Explanation, Hit, Hits, Topic
from searchapp.progress import Progress
from searchapp.ranking import paging, recipes, search_results
from searchapp.ranking.highlighting import Marker, TextAnalyzer
from searchapp.ranking.query_language import (
    CompiledQuery,
    FieldFilter,
    Occur,
    QueryClause,
    QueryCompiler,
    QueryGroup,
    QueryWord,
    SearchFields,
    parsed,
    require_text,
    without_signs,
)
from searchapp.ranking.ranker import RankedTopic, Ranker, SignalShare
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.search_results import ResultPage, SearchResult
from searchapp.ranking.signals.base import Inputs, one_document
from searchapp.tasks.base import Collection, DataSplit, Task
from searchapp.tasks.folders import data_folder

FUSED_DEPTH = 1000
"""How many documents are ranked where several signals are fused."""


class FusedRankings:
    """What recipes rank on one version of an index; `inputs` gives what their signals need, when one is asked first.

    Every method raises `EngineError` where the engine failed, and `DataError` where what a signal needs is missing.
    """

    def __init__(self, index: Index, inputs: Callable[[], Inputs]) -> None:
        self._index = index
        self._inputs = inputs
        self._rankers: dict[str, Ranker] = {}
        self._ranked: tuple[tuple[str, str], RankedTopic, Hits] | None = None
        self._chosen: tuple[tuple[str, CompiledQuery], Hits] | None = None

    def hits(self, recipe: Recipe, compiled: CompiledQuery) -> Hits:
        """The documents that a recipe ranks for words, without those that the rest of the query leaves out."""
        key = recipe.name, compiled
        if self._chosen is None or self._chosen[0] != key:
            hits, chosen = self._all(recipe, compiled), compiled.choosing()
            if chosen is not None and hits:
                only = {"bool": {"filter": [chosen, {"ids": {"values": hits.document_ids}}]}}
                body = {"query": only, "size": len(hits), "sort": BEST_FIRST, "_source": False}
                (left,) = self._index.search([body])
                kept = set(left.document_ids)
                hits = Hits.of(*(hit for hit in hits if hit.document_id in kept))
            self._chosen = key, hits
        return self._chosen[1]

    def is_cut(self, recipe: Recipe, compiled: CompiledQuery) -> bool:
        """Whether documents with the words may be behind those that the recipe ranks."""
        return len(self._all(recipe, compiled)) == FUSED_DEPTH

    def shares(self, recipe: Recipe, compiled: CompiledQuery, document_id: str) -> list[SignalShare]:
        """What each signal gives to a document's score; nothing where it is not ranked."""
        if document_id not in self.hits(recipe, compiled).document_ids:
            return []
        return self._ranker(recipe).shares(self._kept(recipe, compiled)[0], document_id)

    def explain(self, recipe: Recipe, compiled: CompiledQuery, document_id: str) -> Explanation | None:
        """Why a document has its score; None where it is not ranked."""
        if document_id not in self.hits(recipe, compiled).document_ids:
            return None
        return self._ranker(recipe).explain(self._kept(recipe, compiled)[0], document_id)

    def _all(self, recipe: Recipe, compiled: CompiledQuery) -> Hits:
        """The documents that a recipe ranks for words, whatever else was typed."""
        return self._kept(recipe, compiled)[1]

    def _kept(self, recipe: Recipe, compiled: CompiledQuery) -> tuple[RankedTopic, Hits]:
        """What a recipe ranks for words, and those of its hits that have a score."""
        key = recipe.name, compiled.words
        if self._ranked is None or self._ranked[0] != key:
            found = self._ranker(recipe).rank_topic(recipe.typed(compiled.words), FUSED_DEPTH)
            self._ranked = key, found, Hits.of(*(hit for hit in found.hits if hit.score > 0))
        return self._ranked[1:]

    def _ranker(self, recipe: Recipe) -> Ranker:
        if recipe.name not in self._rankers:
            with without_cancellation():  # prepared once for all that is typed
                self._rankers[recipe.name] = Ranker(recipe, self._inputs())
        return self._rankers[recipe.name]


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
    filters: tuple[FieldFilter, ...] = ()
    size: int = 10
    first: int = 0
    explain: bool = False
    literal: bool = False


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request, read: its recipe, the topic that the typed words are, and what else was typed."""

    request: SearchRequest
    recipe: Recipe
    compiled: CompiledQuery

    @property
    def topic(self) -> Topic:
        return self.recipe.typed(self.compiled.words)

    @property
    def is_one_query(self) -> bool:
        """Whether one query gives its hits: signals that are fused rank by words, and there may be none."""
        return self.recipe.is_one_query or not self.compiled.words


class Searcher:
    """A task's index, open to be searched again and again, from one thread at a time.

    With a `collection`, which is asked for when it is needed, recipes rank that learn from its solved topics; models
    are kept in `home`.
    """

    def __init__(
        self,
        task: Task,
        engine: Engine,
        index: Index,
        progress: Progress,
        collection: Callable[[], Collection] | None = None,
        home: Path | None = None,
    ) -> None:
        # All that is kept here is of this one version of the index: of a newer one another searcher is opened.
        self.task = task
        self.index = index
        self._engine = engine
        self._progress = progress
        self._collection = collection
        self._home = home
        self._mapping = task.index_mapping()
        self._analyzed = TextAnalyzer(index, self._mapping)
        self._marker = Marker(index, self._analyzed, self._mapping)
        self._fields: dict[str, SearchFields] = {}
        self._compilers: dict[str, QueryCompiler] = {}
        self._recipes: dict[str, Recipe] = {}
        self._fused = FusedRankings(index, self._inputs)

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

        return cls(task, engine, open_index(task, engine), progress, collection, home)

    def twin(self) -> Searcher:
        """Another searcher of the same version of the index, for another thread.

        Raises:
            Replaced: the version is gone.
        """
        return Searcher(
            self.task, self._engine, self.index.twin(), self._progress, self._collection, self._home
        )

    def require_serving(self) -> None:
        """Make sure that no newer version of the index serves: some engines answer from an old one as long as asked.

        Raises:
            Replaced: this version serves no more.
            EngineError: the engine does not answer, or refuses.
        """
        info = self.index.info
        serving = self._engine.index_info(info.name)
        # After a removal the numbers of versions begin again.
        if serving is None or (serving.version, serving.created) != (info.version, info.created):
            raise Replaced(info.version)

    def close(self) -> None:
        """Give back the files of the index; the searcher is asked for nothing any more."""
        self.index.close()

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

    def fields(self, recipe: str | None = None) -> SearchFields:
        """The fields that a query may name."""
        name = recipe or self.task.info.search_recipe
        if name not in self._fields:
            self._fields[name] = SearchFields.of(self._mapping, self.recipe(name).query.template.body)
        return self._fields[name]

    def warnings(self, recipe: str | None = None) -> tuple[str, ...]:
        """Why the hits may be others on another number of shards."""
        return tuple(recipes.shard_warnings(self.recipe(recipe), self.index.info.shards))

    def search(self, request: SearchRequest) -> list[SearchResult]:
        """The hits of a request, best first, with what matches in them.

        Raises:
            BrokenQuery: the text can't be read; the error says at which character.
            UsageError: there is no such recipe, or it can't rank words, or no such field.
            EngineError: the engine failed, or refused the query.
        """
        asked = self._read(request)
        if asked.is_one_query:
            placed = paging.from_rank(self.index, self._body(asked), request.first, request.size)
            return (
                search_results.find(self.index, self._marker, placed, request.first)
                if placed is not None
                else []
            )
        hits = self._fused.hits(asked.recipe, asked.compiled)[request.first : request.first + request.size]
        return self._shown(asked, hits)

    def first_page(self, request: SearchRequest) -> ResultPage:
        """The first hits of a request, whichever it asks for, and how many documents match: one request to a server.

        Raises:
            as `search` does.
        """
        asked = self._read(request)
        if asked.is_one_query:
            return search_results.page(self.index, self._marker, self._body(asked))
        hits = self._fused.hits(asked.recipe, asked.compiled)
        results = self._shown(asked, hits[: request.size])
        # Solved topics may vote for documents that the index no longer has.
        return ResultPage(results, len(results) if len(hits) <= request.size else self.counts(request).total)

    def counts(self, request: SearchRequest) -> Counts:
        """How many documents match, and the commonest values of the fields that documents are filtered by.

        Raises:
            as `search` does.
        """
        asked = self._read(request)
        fields = dict.fromkeys(self.fields(request.recipe).facets, VALUES)
        if asked.is_one_query:
            return self.index.counts(self._body(asked)["query"], fields)
        return self.index.counts(
            {"ids": {"values": self._fused.hits(asked.recipe, asked.compiled).document_ids}}, fields
        )

    def document(self, document_id: str, request: SearchRequest) -> SearchResult | None:
        """One document with what matches a request in it, whether it does or not; None if it is not indexed.

        Raises:
            as `search` does.
        """
        asked = self._read(request)
        query = self._body(asked)["query"]
        return search_results.seen_by(self.index, self._marker, [document_id], query).get(document_id)

    def ranking(self, request: SearchRequest) -> Iterator[Hit]:
        """Every hit of a request, best first, whatever part of them it asks for.

        Raises:
            as `search` does.
        """
        asked = self._read(request)
        pieces = (
            paging.windows(self.index, self._body(asked))
            if asked.is_one_query
            else [self._fused.hits(asked.recipe, asked.compiled)]
        )
        for hits in pieces:
            yield from hits

    def matches(self, request: SearchRequest, document_id: str, *, signs: bool = True) -> bool:
        """Whether a document is among the hits of a request; without `signs`, whether it would be without any + and -.

        Raises:
            as `search` does.
        """
        asked = self._read(request, signs=signs)
        if not asked.is_one_query:
            return document_id in self._fused.hits(asked.recipe, asked.compiled).document_ids
        return bool(self.index.find(one_document(document_id, self._body(asked)["query"])))

    def is_cut(self, request: SearchRequest) -> bool:
        """Whether documents with words of a request may be behind the `FUSED_DEPTH` that its recipe ranks.

        Raises:
            as `search` does.
        """
        asked = self._read(request)
        return not asked.is_one_query and self._fused.is_cut(asked.recipe, asked.compiled)

    def shares(self, request: SearchRequest, document_id: str) -> list[SignalShare]:
        """What each signal of a recipe of several gives to a document's score; nothing for a recipe of one query.

        Raises:
            as `search` does.
        """
        asked = self._read(request)
        return [] if asked.is_one_query else self._fused.shares(asked.recipe, asked.compiled, document_id)

    def explain(self, request: SearchRequest, document_id: str) -> Explanation | None:
        """Why a document has its score; None where it does not match.

        Raises:
            as `search` does.
        """
        asked = self._read(request)
        if asked.is_one_query:
            found = self.index.find(one_document(document_id, self._body(asked)["query"]) | {"explain": True})
            return found[0].explanation if found else None
        return self._fused.explain(asked.recipe, asked.compiled, document_id)

    def _read(self, request: SearchRequest, *, signs: bool = True) -> _Asked:
        name = request.recipe or self.task.info.search_recipe
        recipe = self.recipe(name)
        if name not in self._compilers:
            recipes.require_words(self.task.recipe_book(), recipe)
            self._compilers[name] = QueryCompiler(self.fields(name), self._analyzed)
        if request.literal:
            require_text(request.text)
            read = QueryGroup((QueryClause(Occur.may, QueryWord(request.text)),) if request.text else ())
        else:
            read = parsed(request.text, self.fields(name).kinds)
        if not signs:
            read = without_signs(read)
        return _Asked(request, recipe, self._compilers[name].compiled(read, request.filters))

    def _body(self, asked: _Asked) -> dict[str, Any]:
        """The search body of a request for a recipe of one query."""
        recipe, compiled = asked.recipe, asked.compiled
        body = recipe.body(asked.topic, asked.request.size)
        body["query"] = compiled.query(paging.matching_only(body["query"]) if compiled.words else None)
        if asked.request.explain:
            body["explain"] = True
        return body

    def _shown(self, asked: _Asked, hits: Hits) -> list[SearchResult]:
        """Hits as a person sees them, with what matches the recipe's query."""
        if not hits:
            return []
        query = asked.recipe.body(asked.topic, 1)["query"]
        seen = search_results.seen_by(self.index, self._marker, hits.document_ids, query)
        explained = {
            hit.document_id: self._fused.explain(asked.recipe, asked.compiled, hit.document_id)
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

    def _inputs(self) -> Inputs:
        """What the signals of a recipe may ask for.

        Raises:
            DataError: nobody has said where the task's files are.
        """
        if self._collection is None:
            raise DataError(
                f"the recipe learns from the files of {self.task.reference}, which are not at hand"
            )
        return typed_inputs(self.task, self._engine, self.index, self._collection, self._progress, self._home)


@dataclass(frozen=True, slots=True)
class Facet:
    """A field and its commonest values among the hits, each with their number, and the values that are chosen."""

    field: str
    values: Sequence[tuple[str, int]]
    chosen: frozenset[str] = frozenset()


def facets(searcher: Searcher, request: SearchRequest) -> list[Facet]:
    """The fields that a request can be filtered by.

    Of several values of a field any will do, so the values of a field are counted without the filters on it: the
    numbers say what a further value would bring. A value that is chosen is among them even if it brings nothing.

    Raises:
        as `Searcher.search` does.
    """
    chosen: dict[str, set[str]] = {}
    for one in request.filters:
        chosen.setdefault(one.field, set()).add(one.value)
    with_all = searcher.counts(request).values
    found = []
    for field, values in with_all.items():
        if field in chosen:
            others = tuple(one for one in request.filters if one.field != field)
            values = searcher.counts(replace(request, filters=others)).values[field]
        counted = {value for value, _count in values}
        left = [(value, 0) for value in sorted(chosen.get(field, set()) - counted)]
        found.append(Facet(field, [*left, *values], frozenset(chosen.get(field, ()))))
    return found


def toggled(filters: Sequence[FieldFilter], one: FieldFilter) -> tuple[FieldFilter, ...]:
    """The filters with one more, or without it if it is among them.

    >>> toggled((Filter("label", "1"),), Filter("label", "1"))
    ()
    """
    left = tuple(other for other in filters if other != one)
    return left if len(left) < len(filters) else (*filters, one)


@dataclass(frozen=True, slots=True)
class SolvedTopic:
    """A topic of a split, with the grade of each document that its gold has."""

    topic: Topic
    split: str
    gold: Mapping[str, float]

    @property
    def answers(self) -> list[tuple[str, float]]:
        """The documents that are relevant, the best grades first."""
        relevant = [(document, grade) for document, grade in self.gold.items() if grade > 0]
        return sorted(relevant, key=lambda one: -one[1])


class SolvedTopics:
    """Solved topics, each once, in the order in which they are given."""

    def __init__(self, solved: Iterable[SolvedTopic] = ()) -> None:
        self._topics: dict[str, SolvedTopic] = {}
        self._citing: defaultdict[str, list[tuple[float, SolvedTopic]]] = defaultdict(list)
        for one in solved:
            if one.topic.id not in self._topics:
                self._topics[one.topic.id] = one
                for document, grade in one.answers:
                    self._citing[document].append((grade, one))

    def __len__(self) -> int:
        return len(self._topics)

    def topic(self, topic_id: str) -> SolvedTopic | None:
        """A topic; None if it is not solved."""
        return self._topics.get(topic_id)

    def citing(self, document_id: str) -> Sequence[SolvedTopic]:
        """The topics that a document is an answer to, those first for which it has the best grade."""
        found = self._citing.get(document_id, [])
        return [one for _grade, one in sorted(found, key=lambda each: -each[0])]


def solved_topics(task: Task, collection: Collection) -> SolvedTopics:
    """The topics of all splits whose gold is at hand; what can't be read is left out."""
    return SolvedTopics(_solved(task, collection))


def _solved(task: Task, collection: Collection) -> Iterable[SolvedTopic]:
    for split in task.info.splits:
        with suppress(SearchappError):
            grades = task.official.grades(collection.gold_files(split), DataSplit(collection, split))
            topics = {one.id: one for one in collection.topics(split, Problems(lenient=True))}
            for topic_id, gold in grades.items():
                topic = topics.get(topic_id, Topic(topic_id, ""))
                yield SolvedTopic(topic, split, {name: float(grade) for name, grade in gold.items()})
