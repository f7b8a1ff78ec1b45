"""The parts of a task: its data, its collection, and its official format.

    task = tasks.load("nlps")
    task.info                              data that needs none of the task's files
    collection = task.collection(folder)   documents, topics and gold, from the folder with the task's files
    task.official                          the official file: written, checked and scored

docs/inside/extending.md lists the files that a new task touches.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, Self, TypeVar

from searchapp import resources
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.base import BreakdownScorer, GoldFiles, Scorer, ScorerOptions
from searchapp.formats.problems import Problems
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Document, Example, ForeignIndex, Markup, Run, Topic
from searchapp.resources import SAMPLES, RecipeBook
from searchapp.text import choices_hint

if TYPE_CHECKING:
    from searchapp.embeddings.reranker_source import RerankerSource
    from searchapp.embeddings.source import EmbeddingSource

T = TypeVar("T")


class CachedReader(Generic[T]):
    """Calls a reader once; every call returns its value and adds the problems that it reported."""

    def __init__(self, read: Callable[[Problems], T]) -> None:
        self._read = read
        self._result: tuple[T, Problems] | None = None

    def __call__(self, problems: Problems) -> T:
        if self._result is None:
            reported = Problems(lenient=True)
            self._result = self._read(reported), reported
        value, reported = self._result
        problems.add_all(reported)
        return value


class DocumentSource:
    """The documents of a collection, in the order of their files."""

    def __init__(
        self,
        files: Callable[[], list[Path]],
        read: Callable[[Problems], Iterator[Document]],
        *,
        cached: bool = True,
    ) -> None:
        self._files = files
        self._read = read
        # Each split's indexing reads a shared task's documents, at most 16,000 short ones, again. A user's own task
        # may have a million documents of any length: only their ids are cached.
        self._is_cached = cached
        self._cache: tuple[list[Document], Problems] | None = None
        self._ids: frozenset[str] | None = None

    @property
    def files(self) -> list[Path]:
        return self._files()

    @property
    def is_in_memory(self) -> bool:
        """Whether the next reading reads no file."""
        return self._cache is not None

    def read(self, problems: Problems) -> Iterator[Document]:
        if not self._is_cached:
            yield from self._read(problems)
            return
        if self._cache is not None:
            documents, reported = self._cache
            problems.add_all(reported)
            yield from documents
            return
        documents, reported = [], Problems(lenient=True)
        try:
            for document in self._read(reported):
                documents.append(document)
                yield document
        finally:  # a caller that stops early gets the problems of the documents that it has read
            problems.add_all(reported)
        self._cache = documents, reported

    def ids(self) -> frozenset[str]:
        """Return the ids of all documents, without reporting problems."""
        if self._ids is None:
            self._ids = frozenset(document.id for document in self.read(Problems(lenient=True)))
        return self._ids


# The predictions of a submission as the task's scorer takes them.
P = TypeVar("P")
C_co = TypeVar("C_co", bound="Collection", covariant=True)
C_contra = TypeVar("C_contra", bound="Collection", contravariant=True)

Writer = Callable[[BinaryIO], object]

# Grades by topic and document.
Grades = Mapping[str, Mapping[str, int]]

# Key of a mapping's `_meta`: the fields that form the text of a document, if not the field `text`.
TEXT_FIELDS = "text_fields"

# The default number of documents of each ranking to judge, as deep as most TREC pools.
JUDGING_DEPTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """Data about a task."""

    name: str
    title: str
    about: str
    splits: tuple[str, ...]
    # The names of the index mappings of documents, and of training topics; None without training topics.
    mapping: str
    training_mapping: str | None
    # How many documents the ranking of a topic has.
    default_depth: int
    official_measure: str
    # The name or a description of the official file.
    official_file: str
    # Reported in addition to the official figures; in ir-measures' notation.
    measures: tuple[str, ...]
    # The recipe for topics, and the recipe for typed queries.
    default_recipe: str = "bm25"
    search_recipe: str = "words"
    # The labels of the grades 0, 1, ...
    grades: tuple[str, ...] = ("not relevant", "relevant")
    judging_depth: int = JUDGING_DEPTH
    # The Markdown file that tells annotators what the grades mean, see `judging.guidelines`.
    guidelines: Path | None = None
    # Whether a topic is one of the documents, under the same id, and must never be retrieved for itself.
    topics_are_documents: bool = False
    # The fields with the text that a document belongs to, and with its position there.
    context: tuple[str, str] | None = None
    markup: Markup = Markup.plain
    # The index of another program that has the documents of an own task.
    foreign: ForeignIndex | None = None
    # The TOML file of a user's own task; None for a task that ships with searchapp.
    file: Path | None = None
    # The names of the indexes, if not the task's name.
    indexes: tuple[str, ...] = ()
    # The TOML file of a variant, see `tasks.own.variant`.
    variant: Path | None = None
    # The folder of a sample's files.
    folder: Path | None = None
    # The model that embeds the texts of an own task or a variant.
    embeddings: EmbeddingSource | None = None
    # The rerankers of an own task or a variant by name.
    rerankers: Mapping[str, RerankerSource] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """The name or file that the command line takes for the task."""
        file = self.variant or self.file
        return self.name if file is None else str(file)

    @property
    def index_names(self) -> tuple[str, ...]:
        """The names of the task's indexes; each index contains all documents of those after it."""
        return self.indexes or (self.name,)

    @property
    def index_name(self) -> str:
        """The name of the (smallest) index."""
        return self.index_names[-1]

    def require_split(self, split: str, or_else: str = "") -> str:
        """Return the split; `or_else` ends the message with alternatives.

        Raises:
            UsageError: the task has no such split.
        """
        if split in self.splits:
            return split
        choice = (
            choices_hint(split, self.splits) if self.splits else f"{split!r}: its file contains no topics"
        )
        raise UsageError(f"{self.name} has no split {choice}{or_else}")


class Collection(ABC):
    """The files of a task in one folder, opened once per command: the files may change later.

    Methods with a split's name raise UsageError if the task has no such split.
    """

    # The splits whose training topics the user has chosen; None for all.
    chosen: frozenset[str] | None = None
    # The index names of a variant, by those of `TaskInfo.index_names`.
    renamed: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        info: TaskInfo,
        folder: Path,
        documents: DocumentSource,
        indexes: Mapping[str, DocumentSource] | None = None,
    ) -> None:
        self.info = info
        self.folder = folder
        self.documents = documents
        self.indexes = {info.index_name: documents} if indexes is None else indexes

    def index_of(self, split: str) -> str:
        """Return the name of the index in which a split is ranked."""
        self.info.require_split(split)
        return self.renamed.get(self.info.index_name, self.info.index_name)

    def with_indexes(self, names: Mapping[str, str]) -> Self:
        """Return a copy with other index names, as of a variant with its own mappings."""
        copied = copy(self)
        copied.indexes = {names.get(name, name): documents for name, documents in self.indexes.items()}
        copied.renamed = names
        return copied

    def layout(self, split: str, *, training: bool) -> Mapping[str, Any]:
        """Return, as JSON, how a task file reads a split's files; empty for a shipped task.

        With `training` it includes the splits of the training topics.
        """
        return {}

    @abstractmethod
    def split_files(self, split: str) -> list[Path]:
        """Return the paths of a split's topics and gold, existing or not."""

    def gold_files(self, split: str) -> list[Path]:
        """Return the files that the official scorer takes as a split's gold."""
        return self.split_files(split)

    @abstractmethod
    def all_training_splits(self, split: str) -> tuple[str, ...]:
        """Return the splits whose topics can be training topics for a split."""

    def training_splits(self, split: str) -> tuple[str, ...]:
        """Return the splits of the training topics, limited to the user's choice."""
        splits = self.all_training_splits(split)
        return splits if self.chosen is None else tuple(name for name in splits if name in self.chosen)

    def with_training_splits(self, splits: Sequence[str]) -> Self:
        """Return a copy whose training topics come from these splits alone.

        Raises:
            UsageError: a split has no training topics.
        """
        available = dict.fromkeys(
            name for split in self.info.splits for name in self.all_training_splits(split)
        )
        for split in splits:
            if split not in available:
                choice = choices_hint(split, available) if available else f"{split!r}: it has none"
                raise UsageError(f"{self.info.reference} has no training topics in the split {choice}")
        copied = copy(self)
        copied.chosen = frozenset(splits)
        return copied

    def example_files(self, split: str) -> list[Path]:
        """Return the files with the training topics."""
        files = (
            file
            for training_split in self.training_splits(split)
            for file in self.split_files(training_split)
        )
        return list(dict.fromkeys(files))

    @abstractmethod
    def topics(self, split: str, problems: Problems) -> list[Topic]:
        """Return the topics of a split in the order of their file, with or without gold."""

    @abstractmethod
    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        """Read the training topics for a split.

        They may include topics of the split itself: no topic votes for its own answers.
        """

    def judged_example(self, topic: Topic, grades: Mapping[str, float]) -> Example:
        """Return the example that `examples` would yield for a topic with these grades as gold."""
        return Example(topic, {document: 1.0 for document, grade in grades.items() if grade > 0})

    @abstractmethod
    def check_split(self, split: str, problems: Problems) -> int:
        """Report all problems of a split's topics and gold, and return the number of valid topics.

        If several splits share a file, the first reports the problems of all.
        """

    def is_masked(self, split: str) -> bool:
        """Return whether a split's files contain no gold."""
        self.split_files(split)  # for its error
        return False

    def why_no_gold(self, split: str) -> str | None:
        """Return why a split has no gold; None if it has some, even if its files are missing or invalid.

        Raises:
            DataError: the files, which may be masked, can't be read.
        """
        if self.is_masked(split):
            return f"the gold of {split} is masked"
        try:
            self.gold_files(split)
        except UsageError as error:  # a split of an own task without gold
            return str(error)
        return None


@dataclass(frozen=True, slots=True)
class DataSplit(Generic[C_co]):
    """One split of a collection, with the options of its official scorer."""

    collection: C_co
    name: str
    options: ScorerOptions = ScorerOptions()

    @property
    def files(self) -> list[Path]:
        return self.collection.split_files(self.name)

    def topics(self, problems: Problems) -> list[Topic]:
        return self.collection.topics(self.name, problems)

    def gold(self, files: Sequence[Path]) -> GoldFiles:
        """Return gold files to score as those of the split."""
        return GoldFiles(files, replace(self.options, split=self.name))


class NoOfficialFile(DataError):
    """A run has no official file; the message is a clause with the reason and the remedy."""


class OfficialFormat(ABC, Generic[P, C_contra]):
    """The official file of a task with collection C, and the official scorer of predictions P."""

    @property
    @abstractmethod
    def scorer(self) -> Scorer[P]:
        """Scores official files, and runs without writing them."""

    @property
    def breakdowns(self) -> BreakdownScorer[P] | None:
        """Breaks down the scorer's figures; None if the task has no breakdowns."""
        return None

    @abstractmethod
    def files(self, run: Run, split: DataSplit[C_contra]) -> Mapping[str, Writer]:
        """Return a writer for each of a run's official files, by file name.

        Raises:
            NoOfficialFile: the run has no official file.
            DataError: a file of the collection that the official files depend on is missing.
        """

    def predictions(self, run: Run, split: DataSplit[C_contra]) -> P:
        """Return the predictions that the scorer would read from a run's official files."""
        return self.scorer.predictions(run)

    @abstractmethod
    def validate(
        self,
        path: Path,
        split: DataSplit[C_contra] | None,
        problems: Problems,
    ) -> None:
        """Report all problems of an official file, against a split or by itself.

        By itself, a problem that stops the official scorer but not the official format checker is only a note.

        Raises:
            NotScorable: the official scorer can't read the file.
            UsageError: the task can't check a file by itself.
        """

    @abstractmethod
    def gold(self, grades: Grades, split: DataSplit[C_contra]) -> Mapping[str, Writer]:
        """Return writers of grades as gold for the official scorer, by file name; only topics with grades have gold."""

    def grades(self, files: Sequence[Path], split: DataSplit[C_contra]) -> Grades:
        """Return the grades of the split's topics in files as written by `gold`.

        Raises:
            NotScorable: the official scorer stops on a file or rejects it.
            DataError: a file is missing or can't be read.
        """
        return self.scorer.qrels(split.gold(files))


@dataclass(frozen=True, slots=True)
class Task:
    """A task: its three parts, index mappings and recipes."""

    info: TaskInfo
    collection: Callable[[Path], Collection]
    # P and C are specific to a task: a scorer takes the predictions that it has read, a format the collections of
    # its task.
    official: OfficialFormat[Any, Any]
    # Return the create-index bodies of documents, and of training topics (None without them). These and the recipe
    # book raise DataError for an invalid file of the user.
    index_mapping: Callable[[], dict[str, Any]]
    examples_index_mapping: Callable[[], dict[str, Any] | None]
    recipe_book: Callable[[], RecipeBook]

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def reference(self) -> str:
        return self.info.reference

    @property
    def breakdowns(self) -> tuple[str, ...]:
        """The names of its breakdowns, for `evaluate --by`."""
        scorer = self.official.breakdowns
        return () if scorer is None else scorer.breakdowns


def general_names() -> list[str]:
    """Return the names of the general query templates, which work for every task."""
    templates = resources.folder("query_templates") / resources.GENERAL
    return sorted(file.stem for file in templates.glob("*.json"))


def general(info: TaskInfo, name: str) -> dict[str, Any]:
    """Return a general template; if topics are documents, it excludes the topic itself."""
    body = resources.query_template(resources.GENERAL, name)
    if info.foreign is not None:
        body["query"] = _over_fields(body["query"], info.foreign.text)
    if info.topics_are_documents:
        itself: Mapping[str, Any] = {"term": {"id": "{{topic.id}}"}}
        if info.foreign is not None:  # where `id` is any field
            itself = {"ids": {"values": ["{{topic.id}}"]}}
        body["query"] = {"bool": {"must": [body["query"]], "must_not": [itself]}}
    return body


def _over_fields(query: Any, fields: Sequence[str]) -> Any:
    """Return a query with the best of several fields in place of `text`."""
    if isinstance(query, list):
        return [_over_fields(clause, fields) for clause in query]
    if not isinstance(query, Mapping):
        return query
    match query:
        case {"match": {"text": parameters}} | {"match_phrase": {"text": parameters}}:
            (kind,) = query
            queries = [{kind: {field: parameters}} for field in fields]
            return queries[0] if len(queries) == 1 else {"dis_max": {"queries": queries, "tie_breaker": 0.3}}
    return {key: _over_fields(value, fields) for key, value in query.items()}


def shipped(info: TaskInfo, collection: Callable[[Path], C_co], official: OfficialFormat[P, C_co]) -> Task:
    """Return a task with mappings of `index_mappings/` and recipes of `query_templates/`."""

    def examples_index_mapping() -> dict[str, Any] | None:
        return None if info.training_mapping is None else resources.index_mapping(info.training_mapping)

    def recipe_book() -> RecipeBook:
        task_book = resources.recipe_book(info.name)

        def template(name: str) -> dict[str, Any]:
            has_template = (task_book.file.parent / f"{name}.json").exists() or name not in general_names()
            return task_book.template(name) if has_template else general(info, name)

        return replace(task_book, template=template, depth=info.default_depth)

    return Task(
        info,
        collection,
        official,
        index_mapping=lambda: resources.index_mapping(info.mapping),
        examples_index_mapping=examples_index_mapping,
        recipe_book=recipe_book,
    )


def sample_of(task: Task, suffix: str) -> Task:
    """Return the sample of a shipped task, with an index of its own."""
    names = {name: f"{name}{suffix}" for name in task.info.index_names}
    info = replace(
        task.info,
        name=f"{task.name}{suffix}",
        title=f"Sample of {task.info.title}",
        indexes=tuple(names.values()),
        folder=SAMPLES / task.name,
    )
    return replace(task, info=info, collection=lambda folder: task.collection(folder).with_indexes(names))


def json_writer(value: object) -> Writer:
    """Return a writer of a value as a JSON file of gold."""
    text = json.dumps(value, ensure_ascii=False, indent=1) + "\n"
    return lambda file: file.write(text.encode())
