"""The public Python API: tasks, indexes, runs and comparisons, with the use cases and errors of the commands.

    import searchapp as sa

    task = sa.task("nlps-sample")
    with task.index(build=True) as index:
        hits = index.search("commutative ring", size=3)
        run = index.rank("dev", recipe="bm25")
    run.evaluate(["AP", "nDCG@10"]).measures.values
    run.save("runs/bm25")

Files change only where a method says so: `Task.index(build=True)` writes an index, `Run.save` a run directory, and a
recipe that learns stores its models, all as the commands do. Every error is a `SearchappError`.

An `Index` is used by one thread at a time (`Index.twin` opens another for a second thread); tasks, runs and comparisons
are immutable. Nothing here needs or starts an event loop, so that everything works inside a running one.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from searchapp import tasks
from searchapp.app.compare import CompareRequest, compare_read
from searchapp.app.comparison import Comparison
from searchapp.app.evaluate import Evaluation, GoldSource, Judgments, Subject, evaluate_judged, evaluate_run
from searchapp.app.import_run import import_rows
from searchapp.app.index import index_task, open_index
from searchapp.app.manifests import NewRun
from searchapp.app.models import last_trainable_split, signal_inputs
from searchapp.app.rank import RunRequest, rank_topics
from searchapp.app.search import SearchRequest, TaskSearcher
from searchapp.config.resolution import resolve
from searchapp.config.settings import Settings
from searchapp.embeddings.access import Access
from searchapp.embeddings.reranking import Reranking
from searchapp.engines import open_engine
from searchapp.errors import UsageError
from searchapp.evaluation.base import ScorerOptions
from searchapp.files import file_states
from searchapp.formats import frames, trec
from searchapp.formats.problems import Problems
from searchapp.formats.run_files import RunRow
from searchapp.judging.judgments import Aggregation, Rule, aggregate
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document, Explanation, Hits, Ranking, Topic, document_of
from searchapp.model import Run as Rankings
from searchapp.progress import Callback, CallbackProgress, Progress, SilentProgress
from searchapp.ranking import recipes
from searchapp.ranking.paging import sources
from searchapp.ranking.ranker import Ranker
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.transformer import TransformerSignal
from searchapp.runs import directory
from searchapp.runs.directory import GivenRun, Manifest, StoredRun
from searchapp.tasks.base import Collection, DataSplit
from searchapp.tasks.base import Task as TaskParts
from searchapp.tasks.folders import data_folder
from searchapp.text import choices_hint, counted, html_table

if TYPE_CHECKING:
    from searchapp.engines.base import Engine
    from searchapp.ranking.search_results import SearchResult

PathLike: TypeAlias = str | os.PathLike[str]
# The name of a split; texts, numbered from 1; texts or template variables by topic id; or a data frame of topics.
Topics: TypeAlias = "str | Sequence[str] | Mapping[str, str | Mapping[str, Any]] | Any"
# Grades by topic and document, or a frame with `qid`, `docno` and `label`.
GradesLike: TypeAlias = "Mapping[str, Mapping[str, int]] | Any"

FRAME = Path("data frame")  # the source of a run in messages

SHOWN_TOPICS, SHOWN_HITS = 5, 3  # rows of a run in a notebook


def task(
    name: PathLike, *, data: PathLike | None = None, home: PathLike | None = None, engine: str | None = None
) -> Task:
    """Return a task.

    Args:
        name: the name of a shared task (`nlps`), of its sample (`nlps-sample`), or the TOML file of your own task
        data: the folder of its files; by default the one last indexed, or the one of `searchapp data get`
        home: the home directory; by default as in the commands, from SEARCHAPP_HOME or the settings files
        engine: `embedded` or `elasticsearch`; by default as in the commands

    Raises:
        UsageError: there is no such task, or a setting is invalid.
        InvalidFiles: the task's file has problems.
    """
    flags = {"home": None if home is None else os.fspath(home), "engine": engine}
    return Task(tasks.load(os.fspath(name)), resolve(flags, os.environ), None if data is None else Path(data))


class Task:
    """A task: its documents, topics and gold. Make one with `searchapp.task`."""

    def __init__(self, parts: TaskParts, settings: Settings, data: Path | None = None) -> None:
        self._parts = parts
        self._settings = settings
        self._data = data
        self._read: tuple[object, Collection] | None = None  # the collection and the state of its files

    def __repr__(self) -> str:
        return f"searchapp.task({self._parts.reference!r})"

    @property
    def name(self) -> str:
        return self._parts.name

    @property
    def splits(self) -> tuple[str, ...]:
        return self._parts.info.splits

    @property
    def recipes(self) -> tuple[str, ...]:
        """The names of the recipes that can rank the task's topics."""
        return tuple(recipes.names(self._parts.recipe_book()))

    @property
    def folder(self) -> Path:
        """The folder of the task's files.

        Raises:
            DataError: the remembered folder no longer exists.
        """
        return data_folder(self._parts, self._settings.home, self._data)

    def _collection(self) -> Collection:
        """Return the task's files; what was read from them is used again until one of them changes."""
        collection = self._parts.collection(self.folder)
        files = [file for documents in collection.indexes.values() for file in documents.files]
        files += [file for split in self.splits for file in collection.split_files(split)]
        state = collection.folder, file_states(files)
        if self._read is None or self._read[0] != state:
            self._read = state, collection
        return self._read[1]

    def _depth(self, depth: int | None) -> int:
        if depth is not None and depth < 1:
            raise UsageError(f"the depth is {depth}: give a number of at least 1")
        return depth or self._parts.info.default_depth

    def _recipe(
        self,
        name: str | None,
        parameters: Mapping[str, Any] | None,
        transformers: Mapping[str, Any] | None,
    ) -> Recipe:
        """Load a recipe, by default the one for topics, and check that it uses the given transformers."""
        recipe = recipes.load(
            self._parts.recipe_book(), name or self._parts.info.default_recipe, parameters or {}
        )
        used = [signal.name for signal in recipe.signals if isinstance(signal, TransformerSignal)]
        for given in (transformers or {}).keys() - {*used}:
            choice = choices_hint(given, used) if used else repr(given)
            raise UsageError(f"the recipe {recipe.name} has no signal of the kind transformer named {choice}")
        return recipe

    def documents(self) -> Iterator[Document]:
        """Yield the documents in the order of their files, or those of another program's index by their ids.

        Raises:
            InvalidFiles: the files have problems.
            EngineError: the index can't be read.
        """
        if self._parts.info.foreign is not None:
            with self.index() as index:
                yield from index._searcher.index.stored_documents()
            return
        problems = Problems()
        yield from self._collection().documents.read(problems)
        problems.raise_if_any()

    def topics(self, split: str) -> list[Topic]:
        """Return the topics of a split in the order of their file.

        Raises:
            UsageError: there is no such split.
            InvalidFiles: the files have problems.
        """
        problems = Problems()
        topics = self._collection().topics(split, problems)
        problems.raise_if_any()
        return topics

    def qrels(self, split: str) -> Grades:
        """Return the official gold of a split: grades by topic and document.

        Raises:
            UsageError: there is no such split.
            DataError: the gold is masked or can't be read.
        """
        collection = self._collection()
        files = collection.gold_files(self._parts.info.require_split(split))
        grades = self._parts.official.grades(files, DataSplit(collection, split))
        return Grades(grades)

    def judgments(
        self,
        log: PathLike | None = None,
        *,
        annotators: Sequence[str] | None = None,
        aggregation: str = Rule.majority,
    ) -> Grades:
        """Return the collected judgments: one grade by topic and document; empty without judgments.

        Args:
            log: the file of the judgment log; by default the one in the home directory
            annotators: those who count; by default all people
            aggregation: `majority`, `median` or `unanimous`

        Raises:
            UsageError: the aggregation is unknown.
            DataError: the log is damaged.
        """
        from searchapp.judging.log import JudgmentLog
        from searchapp.judging.view import open_view

        rule = Aggregation(_rule(aggregation), annotators)
        path = self._settings.judgments if log is None else Path(log)
        if not path.exists():
            return Grades()
        with JudgmentLog(path) as opened:
            return Grades(aggregate(open_view(opened, self.name), rule).grades)

    def index(
        self,
        url: str | None = None,
        *,
        build: bool = False,
        rebuild: bool = False,
        progress: Callback | None = None,
    ) -> Index:
        """Open the index of the task; close it, or use it in a `with` statement.

        Args:
            url: the address of an Elasticsearch server; by default the engine of the settings
            build: make the index serve the task's present documents first, as `searchapp index` does
            rebuild: build an unchanged index again, too
            progress: receives the stage, the number of items done and their total, if known

        Raises:
            EngineError: there is no index, or the engine fails.
            InvalidFiles: documents or topics have problems.
        """
        settings = self._settings
        if url is not None:
            settings = resolve({"home": str(settings.home), "url": url}, os.environ)
        return self._open(settings, _shown(progress), build=build or rebuild, rebuild=rebuild)

    def _open(
        self, settings: Settings, progress: Progress, *, build: bool = False, rebuild: bool = False
    ) -> Index:
        engine = open_engine(settings)
        try:
            if build:
                collection = self._collection()
                index_task(self._parts, engine, collection, progress, rebuild=rebuild, replace=rebuild)
            searcher = TaskSearcher.open(
                self._parts, engine, progress, settings.home, self._data, Access.of(settings)
            )
        except BaseException:
            engine.close()
            raise
        return Index(self, engine, searcher, settings)


def _shown(progress: Callback | None) -> Progress:
    return CallbackProgress(progress) if progress else SilentProgress()


class Grades(dict[str, dict[str, int]]):
    """Grades by topic and document, as `Task.qrels` and `Task.judgments` return them."""

    def __init__(self, grades: Mapping[str, Mapping[str, int]] = MappingProxyType({})) -> None:
        super().__init__((topic, dict(of_topic)) for topic, of_topic in grades.items())

    def to_frame(self, style: str = "pyterrier", *, library: str = "pandas") -> Any:
        """Return the grades as a data frame.

        Args:
            style: the columns: `pyterrier` (qid, docno, label), `ir_measures` (query_id, doc_id, relevance) or `trec`
                (topic, iteration, document, grade)
            library: `pandas` or `polars`

        Raises:
            UsageError: the style is unknown, or the library is not installed.
        """
        return frames.make_frame(frames.grade_columns(self, style), library)


def _rule(name: str) -> Rule:
    if name not in set(Rule):
        raise UsageError(f"unknown aggregation {choices_hint(name, [*Rule])}")
    return Rule(name)


class Index:
    """An open index of a task, for one thread at a time."""

    def __init__(self, task: Task, engine: Engine, searcher: TaskSearcher, settings: Settings) -> None:
        self.task = task
        self._engine = engine
        self._searcher = searcher
        self._settings = settings

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._searcher.index.info.documents

    def __repr__(self) -> str:
        info = self._searcher.index.info
        return f"<searchapp.Index {info.version}: {info.documents:,} documents>"

    def close(self) -> None:
        self._searcher.close()
        self._engine.close()

    def twin(self) -> Index:
        """Open the same index again, for another thread.

        Raises:
            EngineError: it can't be opened.
        """
        return self.task._open(self._settings, SilentProgress())

    def search(
        self, words: str, *, size: int = 10, first: int = 0, recipe: str | None = None, literal: bool = False
    ) -> SearchHits:
        """Return the best documents for words, as `searchapp search` does.

        Args:
            words: the query, with the operators of the command
            size: how many documents are returned
            first: how many documents are skipped
            recipe: by default the task's recipe of searches
            literal: whether the text is words without operators

        Raises:
            UsageError: the query can't be parsed, or the recipe is unknown or can't rank words.
            EngineError: the engine fails or rejects the query.
        """
        request = SearchRequest(words, recipe, size=size, first=first, literal=literal)
        return SearchHits(words, tuple(self._searcher.search(request)))

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to an Elasticsearch search body as JSON, as `searchapp search --body` does.

        Raises:
            EngineError: the engine fails or rejects the body, with all problems and their JSON paths.
        """
        return self._searcher.index.answer(body)

    def explain(self, words: str, document_id: str, *, recipe: str | None = None) -> Explanation | None:
        """Return how a document's score for words is computed; None if they don't find it.

        Raises:
            as `search` does.
        """
        return self._searcher.explain(SearchRequest(words, recipe), document_id)

    def document(self, document_id: str) -> Document | None:
        """Return a document with all its fields, None if there is none with this id."""
        source = sources(self._searcher.index, [document_id]).get(document_id)
        return None if source is None else document_of(document_id, source)

    def rank(
        self,
        topics: Topics,
        *,
        recipe: str | None = None,
        depth: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        transformers: Mapping[str, Any] | None = None,
        tag: str | None = None,
        progress: Callback | None = None,
    ) -> Run:
        """Rank the documents for topics, as `searchapp rank` does, and return the run without saving it.

        Args:
            topics: the name of a split; a list of texts, which get the ids 1, 2, …; texts, or template variables
                with a text, by topic id; or a data frame with the columns `qid` and `query`
            recipe: by default the task's recipe for topics
            depth: the number of documents for each topic; by default the task's
            parameters: values of the recipe's parameters
            transformers: PyTerrier transformers, by the names of the recipe's signals of the kind `transformer`
            tag: the name of the run in TREC files; by default `searchapp-` and the recipe
            progress: receives the stage, the number of items done and their total, if known

        Raises:
            UsageError: the split, the recipe, a parameter or the signal of a transformer is unknown, or the depth is
                below 1.
            InvalidFiles: topics or training topics have problems.
            EngineError: the engine fails or rejects a query.
        """
        parts = self.task._parts
        chosen = self.task._recipe(recipe, parameters, transformers)
        split = topics if isinstance(topics, str) else ""
        request = RunRequest(
            collection=self.task._collection(),
            split=split,
            recipe=chosen,
            depth=self.task._depth(depth),
            tag=tag or f"searchapp-{chosen.name}",
            home=self._settings.home,
            reranking=Reranking.of(self._settings),
            topics=() if split else tuple(_topics(topics, chosen)),
            transformers=transformers or {},
        )
        shown = _shown(progress)
        unsaved = rank_topics(parts, self._engine, request, shown, self._searcher.index)
        queries = {topic.id: topic.text for topic in unsaved.topics}
        return Run(unsaved.run, unsaved.manifest, queries=queries, unsaved=unsaved, data=self.task._data)

    def _ranker(self, recipe: Recipe, split: str | None, transformers: Mapping[str, Any]) -> Ranker:
        """Return a ranker that is prepared once for many calls; it learns from the topics that a split may use."""
        parts, opened = self.task._parts, self._searcher.index
        collection = self.task._collection()
        if split is not None and (name := collection.index_of(split)) != opened.info.name:
            opened = open_index(parts, self._engine, name)

        def split_of() -> tuple[Collection, str]:
            return collection, split or last_trainable_split(collection)

        problems, home = Problems(lenient=True), self._settings.home
        return Ranker(
            recipe,
            signal_inputs(
                parts,
                self._engine,
                opened,
                split_of,
                SilentProgress(),
                problems,
                home=home,
                transformers=transformers,
                reranking=Reranking.of(self._settings),
            ),
        )


def _topics(given: Any, recipe: recipes.Recipe) -> Iterator[Topic]:
    """Yield given topics; a plain text fills the template variables that typed words fill."""
    described: Iterable[tuple[Any, Any]]
    if isinstance(given, Mapping):
        described = given.items()
    elif hasattr(given, "columns"):
        described = frames.topics(given)
    else:
        described = [(str(number), text) for number, text in enumerate(given, start=1)]
    seen = set[str]()
    for id_, variables in described:
        if str(id_) in seen:
            raise UsageError(f"the topic {id_} is given twice: give each topic its own id")
        seen.add(str(id_))
        if isinstance(variables, str):
            yield replace(recipe.typed(variables), id=str(id_))
        elif isinstance(variables, Mapping) and isinstance(variables.get("text"), str):
            fields = {name: value for name, value in variables.items() if name not in ("id", "text")}
            yield Topic(str(id_), variables["text"], fields)
        else:
            raise UsageError(f"topic {id_} is {variables!r}: give its text, or a mapping with the key text")


@dataclass(frozen=True, slots=True, repr=False)
class SearchHits(Sequence["SearchResult"]):
    """The documents that a search returns, best first; notebooks show a table."""

    words: str
    results: tuple[SearchResult, ...]

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: Any) -> Any:
        return self.results[index]

    def __repr__(self) -> str:
        return f"<searchapp.SearchHits for {self.words!r}: {counted(len(self), 'document')}>"

    def _repr_html_(self) -> str:
        rows = (
            (str(result.rank), result.hit.document_id, f"{result.hit.score:.4f}", result.text)
            for result in self.results
        )
        return html_table(("rank", "document", "score", "text"), rows)


class Run(Mapping[str, Hits]):
    """The rankings of topics: a mapping from topic ids to hits, best first.

    Make one with `Index.rank`, `searchapp.read_run` or `Run.from_frame`.

    Attributes:
        rankings: the rankings in the order of the topics
        manifest: the inputs of the run; None for a file or data frame of no task
        queries: the texts of topics by id, as far as they are known
        path: the run directory or file; None before `save`
        warnings: sentences on limits of reproduction
    """

    def __init__(
        self,
        rankings: Rankings,
        manifest: Manifest | None = None,
        *,
        queries: Mapping[str, str] | None = None,
        path: Path | None = None,
        unsaved: NewRun | None = None,
        data: Path | None = None,
    ) -> None:
        self.rankings = rankings
        self.manifest = manifest
        self.queries = queries or {}
        self.path = path
        self.warnings = unsaved.warnings if unsaved else ()
        self._hits = {ranking.topic_id: ranking.hits for ranking in rankings}
        self._unsaved = unsaved
        self._data = data

    def __getitem__(self, topic_id: str) -> Hits:
        return self._hits[topic_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._hits)

    def __len__(self) -> int:
        return len(self._hits)

    def __repr__(self) -> str:
        hits = sum(map(len, self._hits.values()))
        return f"<searchapp.Run {self.tag}: {counted(len(self), 'topic')}, {counted(hits, 'hit')}>"

    def _repr_html_(self) -> str:
        rows = (
            (topic, str(rank), hit.document_id, f"{hit.score:.4f}")
            for topic, hits in itertools.islice(self.items(), SHOWN_TOPICS)
            for rank, hit in enumerate(hits[:SHOWN_HITS], start=1)
        )
        return html_table(("topic", "rank", "document", "score"), rows, repr(self))

    @property
    def tag(self) -> str:
        """The name of the run in TREC files."""
        return self.rankings.tag

    def save(self, path: PathLike, *, overwrite: bool = False) -> Run:
        """Write a new run as a run directory, and return the run that is stored there.

        Raises:
            UsageError: the run is saved already or is of no task, or the directory exists and is not to be replaced.
        """
        if self._unsaved is None:
            place = (
                f"saved already, in {self.path}"
                if self.path
                else "of no task: give its task and split to from_frame"
            )
            raise UsageError(f"the run {self.tag} is {place}")
        made = self._unsaved.save(Path(path), overwrite=overwrite)
        return Run(self.rankings, made.manifest, queries=self.queries, path=Path(path), data=self._data)

    def evaluate(
        self,
        measures: Sequence[str] = (),
        *,
        qrels: GradesLike | None = None,
        by: Sequence[str] = (),
        cutoff: int | None = None,
    ) -> Evaluation:
        """Score the run with the official scorer of its split, and with further measures.

        Args:
            measures: in the notation of ir-measures (`AP`, `nDCG@10`); by default the task's
            qrels: grades that replace the official gold, for example of `Task.judgments`
            by: breakdowns by groups of topics, `all` for all of the task
            cutoff: the number of documents that the official scorer requires and scores; by default the official one

        Raises:
            UsageError: there is no gold, or a measure or breakdown is unknown.
            NotScorable: the official scorer rejects the run.
        """
        source = GoldSource(
            data=self._data, measures=tuple(measures), by=tuple(by), options=ScorerOptions(cutoff)
        )
        if qrels is not None:
            if self.manifest is not None:
                subject = Subject.stored(self._stored(), source)
            else:
                subject = Subject(GivenRun(Path(self.tag), self.rankings, None, ""))
            return evaluate_judged(subject, Judgments(_grades(qrels)), source)
        if self.manifest is None:
            raise UsageError(f"the run {self.tag} is of no task: give its grades with qrels")
        return evaluate_run(self._stored(), source)

    def _stored(self) -> StoredRun:
        assert self.manifest is not None  # the callers check it
        return StoredRun(self.path or Path(self.tag), self.manifest, self.rankings)

    def to_frame(
        self, style: str = "pyterrier", *, library: str = "pandas", engine_scores: bool = False
    ) -> Any:
        """Return the run as a data frame.

        As in `searchapp export --format trec`, a score that is not below the previous one becomes the next lower
        32-bit number, so that programs that sort by scores keep the order.

        Args:
            style: the columns: `pyterrier` (qid, query if known, docno, score, rank from 0), `ir_measures` (query_id,
                doc_id, score) or `trec` (topic, Q0, document, rank from 1, score, tag)
            library: `pandas` or `polars`
            engine_scores: leave equal scores as they are

        Raises:
            UsageError: the style is unknown, or the library is not installed.
            DataError: no number is below a score.
        """
        columns = frames.run_columns(self.rankings, style, self.queries, engine_scores=engine_scores)
        return frames.make_frame(columns, library)

    @classmethod
    def from_frame(
        cls, frame: Any, *, task: Task | None = None, split: str | None = None, tag: str | None = None
    ) -> Run:
        """Return the run of a data frame with the columns of one of the styles of `to_frame`.

        With a task and a split, the rows are checked against their topics and documents, as `searchapp runs import`
        does, and the run can be saved. Documents are ordered by descending score, equal scores by descending id.

        Raises:
            UsageError: a column is missing, only one of task and split is given, or a row repeats a document.
            InvalidFiles: topics or documents are unknown, or scores are not numbers.
        """
        rows = [
            RunRow(f"row {number}", topic, document, rank, score)
            for number, (topic, document, rank, score) in enumerate(frames.run_rows(frame), start=1)
        ]
        tag = tag or next((tag for tag in frames.column(frame, "tag") or () if isinstance(tag, str)), None)
        if (task is None) != (split is None):
            raise UsageError("give both the task and the split of the data frame, or neither")
        if task is not None and split is not None:
            unsaved = import_rows(
                task._parts,
                task._collection(),
                split,
                rows,
                FRAME,
                {"file": str(FRAME), "digest": "", "format": "frame", "tool": ""},
                SilentProgress(),
                Problems(),
                tag,
            )
            queries = {topic.id: topic.text for topic in unsaved.topics}
            return cls(unsaved.run, unsaved.manifest, queries=queries, unsaved=unsaved, data=task._data)
        scores: dict[str, dict[str, float]] = {}
        for row in rows:
            of_topic = scores.setdefault(row.topic, {})
            if row.document in of_topic:
                raise UsageError(
                    f"{row.where} of the data frame repeats {row.document} for {row.topic}: remove it"
                )
            of_topic[row.document] = row.order_score
        rankings = (
            Ranking(topic, Hits(documents, [of_topic[document] for document in documents]))
            for topic, of_topic in scores.items()
            for documents in [trec.by_score(of_topic)]
        )
        queries = {} if frames.column(frame, "query") is None else dict(frames.topics(frame))
        return cls(Rankings(tag or "frame", tuple(rankings)), queries=queries)


def _grades(given: GradesLike) -> Mapping[str, Mapping[str, int]]:
    return frames.grades(given) if hasattr(given, "columns") else given


def read_run(path: PathLike) -> Run:
    """Read a run directory, or a TREC run, whose documents are ordered as trec_eval orders them.

    Raises:
        UsageError: the path does not exist.
        DataError: it is not a run.
    """
    given = directory.read_given(Path(path))
    return Run(given.run, given.manifest, path=given.path)


def compare(
    *runs: Run,
    measures: Sequence[str] = (),
    baseline: Run | None = None,
    qrels: GradesLike | None = None,
    by: Sequence[str] = (),
    cutoff: int | None = None,
    force: bool = False,
    progress: Callback | None = None,
) -> Comparison:
    """Compare runs of one split with significance tests, as `searchapp compare` does.

    Args:
        runs: at least two, with the same topics and documents
        measures: tested with the official one; by default the task's
        baseline: one of the runs, with which the others are compared; by default every pair is
        qrels: grades that replace the official gold
        by: breakdowns by groups of topics
        cutoff: as in `Run.evaluate`
        force: compare runs that do not share their topics or documents
        progress: receives the stage, the number of items done and their total, if known

    Raises:
        UsageError: there are fewer than two runs, or one of them is of no task.
        DataError: the runs can't be compared.
    """
    for run in runs:
        if run.manifest is None:
            raise UsageError(f"the run {run.tag} is of no task: give its task and split to Run.from_frame")
    tags = Counter(run.tag for run in runs)
    paths = tuple(
        run.path or Path(f"{run.tag}-{number}" if tags[run.tag] > 1 else run.tag)
        for number, run in enumerate(runs, start=1)
    )
    of_baseline = [path for run, path in zip(runs, paths, strict=True) if run is baseline]
    if baseline is not None and not of_baseline:
        raise UsageError(f"the baseline {baseline.tag} is not among the runs: add it to them")
    request = CompareRequest(
        runs=paths,
        source=GoldSource(
            data=next((run._data for run in runs), None),
            measures=tuple(measures),
            by=tuple(by),
            options=ScorerOptions(cutoff),
        ),
        judgments=None if qrels is None else Judgments(_grades(qrels)),
        baseline=of_baseline[0] if of_baseline else None,
        force=force,
    )
    stored = [replace(run._stored(), path=path) for run, path in zip(runs, paths, strict=True)]
    return compare_read(request, stored, _shown(progress))


@dataclass(frozen=True, slots=True)
class Experiment:
    """Recipes that rank the topics of a split, and the comparison of their runs."""

    index: Index
    split: str
    recipes: Sequence[str]
    measures: Sequence[str] = ()
    baseline: str | None = None  # one of the recipes
    depth: int | None = None
    cutoff: int | None = None  # as in `Run.evaluate`

    def run(self, progress: Callback | None = None) -> ExperimentResult:
        """Rank with every recipe, and compare the runs.

        Raises:
            as `Index.rank` and `compare` do.
        """
        if self.baseline is not None and self.baseline not in self.recipes:
            raise UsageError(f"the baseline {self.baseline} is not among the recipes: add it to them")
        runs = {
            name: self.index.rank(self.split, recipe=name, depth=self.depth, tag=name, progress=progress)
            for name in self.recipes
        }
        baseline = None if self.baseline is None else runs[self.baseline]
        compared = compare(
            *runs.values(),
            measures=self.measures,
            baseline=baseline,
            cutoff=self.cutoff,
            progress=progress,
        )
        return ExperimentResult(runs, compared)


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """The runs of an experiment by recipe, and their comparison."""

    runs: Mapping[str, Run]
    comparison: Comparison

    def to_frame(self, rows: str = "runs", *, library: str = "pandas") -> Any:
        """Return the comparison as a data frame, see `Comparison.to_frame`."""
        return self.comparison.to_frame(rows, library=library)
