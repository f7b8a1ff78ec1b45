"""Search a task's documents for typed words: hits, facets, and the training topics that the hits answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from searchapp.app.index import open_index, serving_info
from searchapp.app.models import typed_inputs
from searchapp.embeddings.access import Access
from searchapp.engines.base import BEST_FIRST, Engine, Index, without_cancellation
from searchapp.errors import DataError, Replaced, SearchappError, UsageError
from searchapp.files import atomic_file
from searchapp.formats.problems import Problems
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Counts, Explanation, Hit, Hits, Ranking, Run, Token, Topic
from searchapp.progress import Progress
from searchapp.ranking import paging, recipes, search_results
from searchapp.ranking.highlighting import Marker, TextAnalyzer, displayed_fields
from searchapp.ranking.query_language import (
    CompiledQuery,
    FieldFilter,
    Occur,
    QueryClause,
    QueryCompiler,
    QueryGroup,
    QueryWord,
    SearchFields,
    parse_query,
    require_text,
    without_quotes,
    without_signs,
)
from searchapp.ranking.ranker import RankedTopic, Ranker, SignalShare
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.search_results import ResultPage, SearchResult
from searchapp.ranking.signals.base import Inputs, one_document
from searchapp.ranking.word_notes import WordChecker, WordNote, word_sentences
from searchapp.tasks.base import Collection, DataSplit, Task
from searchapp.tasks.folders import data_folder
from searchapp.text import counted

FUSED_DEPTH = 1000  # how many documents a recipe of several signals ranks


VALUES = 50  # how many values of a field are counted


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Typed words, and the part of the hits that is returned."""

    text: str
    recipe: str | None = None  # by default the task's recipe of searches
    filters: tuple[FieldFilter, ...] = ()  # filters on one field are alternatives
    size: int = 10
    first: int = 0  # how many hits are skipped
    explain: bool = False
    literal: bool = False  # whether the text is words without operators
    like: str | None = None  # the document that the text is from, which is not a hit
    offline: bool = False  # without signals that ask external models


@dataclass(frozen=True, slots=True)
class QueryNotes:
    """What finds nothing in a query."""

    words: tuple[WordNote, ...] = ()
    relaxed: str = ""  # a sentence about a query that would have hits, if this one has none

    @property
    def suggestion(self) -> WordNote | None:
        return next((note for note in self.words if note.suggestion), None)

    @property
    def asks(self) -> bool:
        """Whether the first sentence proposes another query."""
        return bool(self.relaxed) or self.suggestion is not None

    def sentences(self, accept: str = "") -> list[str]:
        """Return the notes in sentences; `accept` names the key that accepts the first suggestion."""
        return [*([self.relaxed] if self.relaxed else []), *word_sentences(self.words, accept)]


def _match(documents: int, without: str) -> str:
    return f"{counted(documents, 'document')} {'match' if documents != 1 else 'matches'} without {without}"


@dataclass(frozen=True, slots=True)
class _ParsedRequest:
    request: SearchRequest
    recipe: Recipe
    compiled: CompiledQuery

    @property
    def topic(self) -> Topic:
        return self.recipe.typed(self.compiled.words, self.request.like or "")

    @property
    def is_one_query(self) -> bool:
        """Whether one query gives the hits, as always without words."""
        return self.recipe.is_one_query or not self.compiled.words


class FusedRankings:
    """The rankings of recipes on one version of an index; `inputs` returns the inputs of their signals.

    Raises:
        EngineError: the engine failed.
        DataError: an input of a signal is missing.
    """

    def __init__(self, index: Index, inputs: Callable[[], Inputs]) -> None:
        self._index = index
        self._inputs = inputs
        self._rankers: dict[str, Ranker] = {}
        self._ranked: tuple[tuple[str, Topic], RankedTopic, Hits] | None = None
        self._chosen: tuple[tuple[str, CompiledQuery], Hits] | None = None

    def hits(self, search: _ParsedRequest) -> Hits:
        """Return the documents that a recipe ranks for words and the rest of the query does not exclude."""
        key = search.recipe.name, search.compiled
        if self._chosen is None or self._chosen[0] != key:
            hits, chosen = self._rank_words(search)[1], search.compiled.filter_query()
            if chosen is not None and hits:
                only = {"bool": {"filter": [chosen, {"ids": {"values": hits.document_ids}}]}}
                body = {"query": only, "size": len(hits), "sort": BEST_FIRST, "_source": False}
                (left,) = self._index.search([body])
                chosen_ids = set(left.document_ids)
                hits = Hits.of(*(hit for hit in hits if hit.document_id in chosen_ids))
            self._chosen = key, hits
        return self._chosen[1]

    def is_cut(self, search: _ParsedRequest) -> bool:
        """Return whether the recipe may have cut off documents with the words."""
        return len(self._rank_words(search)[1]) == FUSED_DEPTH

    def shares(self, search: _ParsedRequest, document_id: str) -> list[SignalShare]:
        """Return the share of each signal in a document's score; none for an unranked document."""
        if document_id not in self.hits(search).document_ids:
            return []
        return self._ranker(search.recipe).shares(self._rank_words(search)[0], document_id)

    def explain(self, search: _ParsedRequest, document_id: str) -> Explanation | None:
        if document_id not in self.hits(search).document_ids:
            return None
        return self._ranker(search.recipe).explain(self._rank_words(search)[0], document_id)

    def _rank_words(self, search: _ParsedRequest) -> tuple[RankedTopic, Hits]:
        key = search.recipe.name, search.topic
        if self._ranked is None or self._ranked[0] != key:
            ranked = self._ranker(search.recipe).rank_topic(search.topic, FUSED_DEPTH)
            self._ranked = key, ranked, Hits.of(*(hit for hit in ranked.hits if hit.score > 0))
        return self._ranked[1:]

    def _ranker(self, recipe: Recipe) -> Ranker:
        if recipe.name not in self._rankers:
            with without_cancellation():  # prepared once for all that is typed
                self._rankers[recipe.name] = Ranker(recipe, self._inputs())
        return self._rankers[recipe.name]


class TaskSearcher:
    """A task's open index, for one thread at a time.

    Args:
        collection: opens the task's files, from whose training topics recipes learn
        home: the directory that stores models, and vectors of words
        access: which models may embed words; by default those on this machine
    """

    def __init__(
        self,
        task: Task,
        engine: Engine,
        index: Index,
        progress: Progress,
        collection: Callable[[], Collection] | None = None,
        home: Path | None = None,
        access: Access | None = None,
    ) -> None:
        # Everything cached here is of this version of the index: a newer one gets another searcher.
        self.task = task
        self.index = index
        self._engine = engine
        self._progress = progress
        self._collection = collection
        self._home = home
        self._access = access
        self._mapping = task.index_mapping()
        self._analyzed = TextAnalyzer(index, self._mapping)
        self._marker = Marker(index, self._analyzed, self._mapping)
        self._fields: dict[str, SearchFields] = {}
        self._compilers: dict[str, QueryCompiler] = {}
        self._recipes: dict[str, Recipe] = {}
        self._fused = FusedRankings(index, self._inputs)

    @classmethod
    def open(
        cls,
        task: Task,
        engine: Engine,
        progress: Progress,
        home: Path,
        data: Path | None = None,
        access: Access | None = None,
    ) -> TaskSearcher:
        """Open the searcher of an indexed task.

        Args:
            task: the task to search
            engine: the engine that holds its index
            progress: receives the stages of the work
            home: the home directory
            data: the folder of the task's files for recipes that learn; by default the one in `home`
            access: which models may embed words; by default those on this machine

        Raises:
            EngineError: there is no such index, or it can't be opened.
        """

        def collection() -> Collection:
            folder = data_folder(task, home, data)
            if not folder.is_dir():
                raise DataError(
                    f"the recipe learns from the files of {task.reference}, but the folder {folder} does not "
                    "exist: give their folder with --data"
                )
            return task.collection(folder)

        return cls(task, engine, open_index(task, engine), progress, collection, home, access)

    def twin(self) -> TaskSearcher:
        """Return another searcher of the same version of the index, for another thread.

        Raises:
            Replaced: the version is gone.
        """
        return TaskSearcher(
            self.task,
            self._engine,
            self.index.twin(),
            self._progress,
            self._collection,
            self._home,
            self._access,
        )

    def require_serving(self) -> None:
        """Check that no newer version of the index serves: some engines answer from an old one.

        Raises:
            Replaced: this version does not serve any more.
            EngineError: the engine does not answer, or rejects the request.
        """
        info = self.index.info
        serving = serving_info(self.task, self._engine, info.name)
        # After a removal the numbers of versions begin again.
        if serving is None or (serving.version, serving.created, serving.digest) != (
            info.version,
            info.created,
            info.digest,
        ):
            raise Replaced(info.version)

    def close(self) -> None:
        self.index.close()

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def collection(self) -> Collection | None:
        try:
            return self._collection() if self._collection is not None else None
        except DataError:
            return None

    @property
    def recipes(self) -> tuple[str, ...]:
        """The names of the recipes that rank typed words, the one of searches first."""
        book = self.task.recipe_book()
        first = self.task.info.search_recipe
        suited = [name for name in recipes.names(book) if self.recipe(name).takes_words]
        return tuple(sorted(suited, key=lambda name: (name != first, name)))

    def recipe(self, name: str | None = None) -> Recipe:
        """Return a recipe of the task, by default the one of searches.

        Raises:
            UsageError: the name is unknown.
        """
        name = name or self.task.info.search_recipe
        if name not in self._recipes:
            self._recipes[name] = recipes.load(self.task.recipe_book(), name)
        return self._recipes[name]

    def recipe_of(self, request: SearchRequest) -> Recipe:
        """Return the recipe that ranks for a request, without external signals if that is offline.

        Raises:
            UsageError: the name is unknown.
        """
        recipe = self.recipe(request.recipe)
        return recipe.offline if request.offline else recipe

    def fields(self, recipe: str | None = None) -> SearchFields:
        name = recipe or self.task.info.search_recipe
        if name not in self._fields:
            self._fields[name] = SearchFields.of(self._mapping, self.recipe(name).query.template.body)
        return self._fields[name]

    def warnings(self, recipe: str | None = None) -> tuple[str, ...]:
        info = self.index.info
        return tuple(
            recipes.shard_warnings(
                self.recipe(recipe), self._mapping, info.shards, is_foreign=info.is_foreign
            )
        )

    def search(self, request: SearchRequest) -> list[SearchResult]:
        """Return the hits of a request, best first, with their matches.

        Raises:
            BrokenQuery: the text can't be parsed; the error has the character.
            UsageError: the recipe is unknown or can't rank words, or a field is unknown.
            EngineError: the engine failed, or rejected the query.
        """
        search = self._read(request)
        if search.is_one_query:
            placed = paging.from_rank(self.index, self._body(search), request.first, request.size)
            return (
                search_results.find(self.index, self._marker, placed, request.first)
                if placed is not None
                else []
            )
        hits = self._fused.hits(search)[request.first : request.first + request.size]
        return self._with_matches(search, hits)

    def ask_models(self, request: SearchRequest) -> None:
        """Ask the external models of the recipe, if any, what the ranking of a request needs of them.

        Raises:
            ModelUnavailable: a model fails.
            as `search` does.
        """
        if self.recipe_of(request).external:
            next(self.ranking(request, 1), None)

    def first_page(self, request: SearchRequest) -> ResultPage:
        """Return the first hits and the number of matching documents, in one request to a server.

        Raises:
            as `search` does.
        """
        search = self._read(request)
        if search.is_one_query:
            return search_results.page(self.index, self._marker, self._body(search))
        hits = self._fused.hits(search)
        results = self._with_matches(search, hits[: request.size])
        # Training topics may vote for documents that the index no longer has.
        return ResultPage(results, len(results) if len(hits) <= request.size else self.counts(request).total)

    def counts(self, request: SearchRequest, query: QueryGroup | None = None) -> Counts:
        """Count the matching documents, and the most frequent values of the filter fields.

        `query` replaces the parsed text of the request.

        Raises:
            as `search` does.
        """
        search = self._read(request, query)
        fields = dict.fromkeys(self.fields(request.recipe).facets, VALUES)
        if search.is_one_query:
            return self.index.counts(self._body(search)["query"], fields)
        return self.index.counts({"ids": {"values": self._fused.hits(search).document_ids}}, fields)

    def notes(self, request: SearchRequest, total: int) -> QueryNotes:
        """Explain which words find nothing, and why a request with a `total` of 0 has no hits.

        Raises:
            as `search` does.
        """
        query = self._parse(request)
        checker = WordChecker(self.index, self._analyzed, self.fields(request.recipe))
        words = checker.notes(query, request.text) if request.like is None else ()
        if total:
            return QueryNotes(words)
        unfiltered = replace(request, filters=())
        if request.filters and (count := self.counts(unfiltered).total):
            return QueryNotes(words, _match(count, "the filters"))
        for without, relaxed in (
            ("+ and -", without_signs(query)),
            ("quotation marks", without_quotes(query)),
        ):
            if relaxed != query and (count := self.counts(unfiltered, relaxed).total):
                return QueryNotes(words, _match(count, without))
        return QueryNotes(words)

    def is_ranked(self, request: SearchRequest) -> bool:
        """Return whether the documents have different scores; otherwise their order is that of their ids.

        Raises:
            as `search` does.
        """
        compiled = self._read(request).compiled
        return bool(compiled.words or compiled.should or compiled.must)

    def document(self, document_id: str, request: SearchRequest) -> SearchResult | None:
        """Return a document with its matches, None if it is not indexed.

        Raises:
            as `search` does.
        """
        search = self._read(request)
        query = self._body(search)["query"]
        return search_results.documents_with_matches(self.index, self._marker, [document_id], query).get(
            document_id
        )

    def text_tokens(self, text: str) -> Sequence[Token]:
        """Return the tokens of a document's text, as they are indexed; none if the field `text` is not analyzed.

        Raises:
            EngineError: the engine failed or rejected the text.
        """
        analyzer = self.fields().indexed_by.get(displayed_fields(self._mapping)[0])
        return () if analyzer is None else self._analyzed.tokens(analyzer, text)

    def ranking(self, request: SearchRequest, max_hits: int | None = None) -> Iterator[Hit]:
        """Yield the first `max_hits` hits of a request, or all, best first.

        Raises:
            as `search` does.
        """
        search = self._read(request)
        pieces = (
            paging.hits_in_windows(self.index, self._body(search), max_hits)
            if search.is_one_query
            else [self._fused.hits(search)[:max_hits]]
        )
        for hits in pieces:
            yield from hits

    def matches(self, request: SearchRequest, document_id: str, *, signs: bool = True) -> bool:
        """Return whether a document is among the hits of a request; without `signs` + and - are ignored.

        Raises:
            as `search` does.
        """
        search = self._read(request, None if signs else without_signs(self._parse(request)))
        if not search.is_one_query:
            return document_id in self._fused.hits(search).document_ids
        return bool(self.index.find(one_document(document_id, self._body(search)["query"])))

    def is_cut(self, request: SearchRequest) -> bool:
        """Return whether the recipe may have cut off documents with the words.

        Raises:
            as `search` does.
        """
        search = self._read(request)
        return not search.is_one_query and self._fused.is_cut(search)

    def shares(self, request: SearchRequest, document_id: str) -> list[SignalShare]:
        """Return the share of each signal in a document's score; empty for a recipe of one query.

        Raises:
            as `search` does.
        """
        search = self._read(request)
        return [] if search.is_one_query else self._fused.shares(search, document_id)

    def explain(self, request: SearchRequest, document_id: str) -> Explanation | None:
        """Explain the score of a document, None if it does not match.

        Raises:
            as `search` does.
        """
        search = self._read(request)
        if search.is_one_query:
            results = self.index.find(
                one_document(document_id, self._body(search)["query"]) | {"explain": True}
            )
            return results[0].explanation if results else None
        return self._fused.explain(search, document_id)

    def _read(self, request: SearchRequest, query: QueryGroup | None = None) -> _ParsedRequest:
        name = request.recipe or self.task.info.search_recipe
        recipe = self.recipe_of(request)
        if name not in self._compilers:
            recipes.require_words(self.task.recipe_book(), self.recipe(name))
            self._compilers[name] = QueryCompiler(self.fields(name), self._analyzed)
        compiled = self._compilers[name].compile(query or self._parse(request), request.filters)
        if request.like is not None:
            itself = {"ids": {"values": [request.like]}}
            compiled = replace(compiled, must_not=(*compiled.must_not, itself))
        return _ParsedRequest(request, recipe, compiled)

    def _parse(self, request: SearchRequest) -> QueryGroup:
        if not request.literal:
            return parse_query(request.text, self.fields(request.recipe).kinds)
        require_text(request.text)
        return QueryGroup((QueryClause(Occur.may, QueryWord(request.text)),) if request.text else ())

    def _body(self, search: _ParsedRequest) -> dict[str, Any]:
        recipe, compiled = search.recipe, search.compiled
        body = recipe.body(search.topic, search.request.size)
        body["query"] = compiled.query(paging.matching_only(body["query"]) if compiled.words else None)
        if search.request.explain:
            body["explain"] = True
        return body

    def _with_matches(self, search: _ParsedRequest, hits: Hits) -> list[SearchResult]:
        if not hits:
            return []
        query = search.recipe.body(search.topic, 1)["query"]
        seen = search_results.documents_with_matches(self.index, self._marker, hits.document_ids, query)
        explained = {
            hit.document_id: self._fused.explain(search, hit.document_id)
            for hit in (hits if search.request.explain else ())
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
            for rank, hit in enumerate(hits, start=search.request.first + 1)
            if hit.document_id in seen
        ]

    def _inputs(self) -> Inputs:
        if self._collection is None:
            raise DataError(
                f"the recipe learns from the files of {self.task.reference}, which are not available"
            )
        return typed_inputs(
            self.task, self._engine, self.index, self._collection, self._progress, self._home, self._access
        )


# Maximum characters of a document that similar documents are searched with.
LONGEST_LIKENESS = 4_000


def similar_request(searcher: TaskSearcher, request: SearchRequest, document_id: str) -> SearchRequest:
    """Return the request for documents similar to a document.

    Raises:
        UsageError: it is not indexed, or has no text.
        EngineError: the engine failed.
    """
    document = searcher.document(document_id, replace(request, text=""))
    if document is None:
        raise UsageError(f"no document of {searcher.task.name} has the id {document_id!r}")
    text = likeness(document.text)
    if not text.strip():
        raise UsageError(f"the document {document_id} has no text to compare others with: choose another one")
    return replace(request, text=text, like=document_id, literal=True)


def likeness(text: str) -> str:
    """Return the words of a document's text that similar documents are searched with."""
    cut = text[:LONGEST_LIKENESS]
    return cut if cut == text else cut.rpartition(" ")[0] or cut


# The topic of exported hits that are for no topic of the task.
QUERY_TOPIC = "query"


def export_hits(
    searcher: TaskSearcher,
    request: SearchRequest,
    path: Path,
    topic_id: str = QUERY_TOPIC,
    *,
    overwrite: bool = False,
) -> int:
    """Write the requested hits to a file atomically, as a run of one topic, and return their number.

    The suffix determines the format: `.jsonl`, `.csv`, or any other for a TREC run.

    Raises:
        UsageError: the file exists and `overwrite` is false, or its folder does not exist.
        SearchappError: there are no hits, or the file can't be written.
        as `TaskSearcher.search` does.
    """
    from searchapp.formats import run_files, trec

    hits = Hits.of(*islice(searcher.ranking(request), request.first, request.first + request.size))
    if not hits:
        raise SearchappError(f"no hits to write to {path}")
    run = Run(request.recipe or searcher.task.info.search_recipe, (Ranking(topic_id, hits),))
    writers = {".jsonl": run_files.write_jsonl, ".csv": run_files.write_csv}
    write = writers.get(path.suffix.lower())
    with atomic_file(path, replace=overwrite) as file:
        if write is None:
            trec.write_run(file, trec.with_distinct_scores(run))
        else:
            write(file, run)
    return len(hits)


@dataclass(frozen=True, slots=True)
class Facet:
    """A field and its most frequent values among the hits, each with their number."""

    field: str
    values: Sequence[tuple[str, int]]
    chosen: frozenset[str] = frozenset()


def facets(searcher: TaskSearcher, request: SearchRequest) -> list[Facet]:
    """Return the fields by which a request can be filtered; a chosen value is listed even with 0 hits.

    Raises:
        as `TaskSearcher.search` does.
    """
    chosen: dict[str, set[str]] = {}
    for filter_ in request.filters:
        chosen.setdefault(filter_.field, set()).add(filter_.value)
    facets = []
    for field, values in searcher.counts(request).values.items():
        # Values of one field are alternatives: a value's number is what it would add.
        if field in chosen:
            others = tuple(filter_ for filter_ in request.filters if filter_.field != field)
            values = searcher.counts(replace(request, filters=others)).values[field]
        of_field = chosen.get(field, set())
        uncounted = [(value, 0) for value in sorted(of_field - {value for value, _count in values})]
        facets.append(Facet(field, [*uncounted, *values], frozenset(of_field)))
    return facets


def toggle_filter(filters: Sequence[FieldFilter], filter_: FieldFilter) -> tuple[FieldFilter, ...]:
    """Remove a filter that is among the filters, add any other."""
    if filter_ in filters:
        return tuple(other for other in filters if other != filter_)
    return (*filters, filter_)


@dataclass(frozen=True, slots=True)
class GoldTopic:
    """A topic of a split, with the grades of its gold by document."""

    topic: Topic
    split: str
    gold: Mapping[str, float]

    @property
    def answers(self) -> list[tuple[str, float]]:
        relevant = [(document, grade) for document, grade in self.gold.items() if grade > 0]
        return sorted(relevant, key=lambda answer: -answer[1])


class GoldTopicIndex:
    """Topics with gold, each once, in their order."""

    def __init__(self, gold_topics: Iterable[GoldTopic] = ()) -> None:
        self._topics: dict[str, GoldTopic] = {}
        self._citing: defaultdict[str, list[tuple[float, GoldTopic]]] = defaultdict(list)
        for gold_topic in gold_topics:
            if gold_topic.topic.id not in self._topics:
                self._topics[gold_topic.topic.id] = gold_topic
                for document, grade in gold_topic.answers:
                    self._citing[document].append((grade, gold_topic))

    def __len__(self) -> int:
        return len(self._topics)

    def topic(self, topic_id: str) -> GoldTopic | None:
        return self._topics.get(topic_id)

    def citing(self, document_id: str) -> Sequence[GoldTopic]:
        citing = sorted(self._citing.get(document_id, []), key=lambda item: -item[0])
        return [topic for _grade, topic in citing]


def read_gold_topics(task: Task, collection: Collection) -> GoldTopicIndex:
    """Return the topics of all splits whose gold can be read."""
    gold_topics = []
    for split in task.info.splits:
        with suppress(SearchappError):
            grades = task.official.grades(collection.gold_files(split), DataSplit(collection, split))
            topics = {topic.id: topic for topic in collection.topics(split, Problems(lenient=True))}
            for topic_id, gold in grades.items():
                topic = topics.get(topic_id, Topic(topic_id, ""))
                grades_of_topic = {document: float(grade) for document, grade in gold.items()}
                gold_topics.append(GoldTopic(topic, split, grades_of_topic))
    return GoldTopicIndex(gold_topics)
