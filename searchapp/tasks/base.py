"""What a task is, in three parts: data about it, its collection, and its official format.

    task = tasks.load("nlps")
    task.info                              data about the task that needs none of its files
    collection = task.collection(folder)   its documents, topics and gold, in the folder that holds its files
    task.official                          the organisers' file: how it is written, checked and scored

docs/inside/extending.md lists the files that a new task touches.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Generic, Self, TypeVar

from searchapp import resources
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.base import BreakdownScorer, GoldFiles, Scorer, ScorerOptions
from searchapp.formats.problems import Problems
from searchapp.model import Document, Example, Markup, Run, Topic
from searchapp.resources import SAMPLES, RecipeBook
from searchapp.text import choices_hint

T = TypeVar("T")


class CachedReader(Generic[T]):
    """Calls a reader once; returns its value, and adds the problems that it reported, on every call."""

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
    """Documents in the order of their files.

    Those of a shared task are `cached`: the largest one has 16,000 short documents, and indexing reads them for
    each split again. A user's own task may have a million documents of any length: they are read again for each
    caller, one at a time, and only their ids are cached.
    """

    def __init__(
        self,
        files: Callable[[], list[Path]],
        read: Callable[[Problems], Iterator[Document]],
        *,
        cached: bool = True,
    ) -> None:
        self._files = files
        self._read = read
        self._is_cached = cached
        self._cache: tuple[list[Document], Problems] | None = None
        self._ids: frozenset[str] | None = None

    @property
    def files(self) -> list[Path]:
        return self._files()

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


P = TypeVar("P")
"""The predictions of a submission as the task's scorer takes them."""
C_co = TypeVar("C_co", bound="Collection", covariant=True)
C_contra = TypeVar("C_contra", bound="Collection", contravariant=True)

Writer = Callable[[BinaryIO], object]

Grades = Mapping[str, Mapping[str, int]]
"""Grades by topic and document."""

JUDGING_DEPTH = 100
"""The default number of documents of each ranking that people judge: as deep as most pools of TREC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """Data about a task."""

    name: str
    title: str
    about: str
    splits: tuple[str, ...]
    # The names of the index mappings of documents, and of solved topics; None where the task has none of these.
    mapping: str
    examples_mapping: str | None
    # How many documents the ranking of a topic has.
    default_depth: int
    official_measure: str
    # The name or a description of the organisers' file.
    official_file: str
    # Reported beside the official figures; in ir-measures' notation.
    measures: tuple[str, ...]
    # The recipe for topics, and the one for queries that a person types.
    default_recipe: str = "bm25"
    search_recipe: str = "words"
    # The labels of the grades 0, 1, ...
    grades: tuple[str, ...] = ("not relevant", "relevant")
    judging_depth: int = JUDGING_DEPTH
    # Whether a topic is one of the documents, under the same id, and must never be retrieved for itself.
    topics_are_documents: bool = False
    # The fields with the text that a document belongs to, and with its position there.
    context: tuple[str, str] | None = None
    markup: Markup = Markup.plain
    # The TOML file of a user's own task; None for a task that ships with searchapp.
    file: Path | None = None
    # The names of the indexes, where they are not the task's name.
    indexes: tuple[str, ...] = ()
    # The TOML file of a variant, see `tasks.own.variant`.
    variant: Path | None = None
    # The folder of a sample's files.
    folder: Path | None = None

    @property
    def reference(self) -> str:
        """The name or file that the command line takes for the task."""
        file = self.variant or self.file
        return self.name if file is None else str(file)

    @property
    def index_names(self) -> tuple[str, ...]:
        """The names of the indexes of its documents, which no other task has.

        Where splits are ranked in different indexes, each index has all documents of those after it. People search
        the first index that exists.
        """
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
        choice = choices_hint(split, self.splits) if self.splits else f"{split!r}: its file names no topics"
        raise UsageError(f"{self.name} has no split {choice}{or_else}")


class Collection(ABC):
    """The files of a task in one folder, opened once in a command: the files may change later.

    Every method that takes the name of a split raises UsageError when the task has no such split.
    """

    chosen: frozenset[str] | None = None
    """The splits whose solved topics the user has chosen; None for all."""
    renamed: Mapping[str, str] = MappingProxyType({})
    """The index names of a variant, by those of `TaskInfo.index_names`."""

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
        """Return the name of the index that a split is ranked in."""
        self.info.require_split(split)
        return self.renamed.get(self.info.index_name, self.info.index_name)

    def with_indexes(self, names: Mapping[str, str]) -> Self:
        """Return the same collection with other index names: those of a variant with mappings of its own."""
        other = copy(self)
        other.indexes = {names.get(name, name): documents for name, documents in self.indexes.items()}
        other.renamed = names
        return other

    def layout(self, split: str, *, solved: bool) -> Mapping[str, Any]:
        """Return as JSON how a task file says that a split's files are read; empty for a task that ships.

        With `solved` it includes the splits of the solved topics.
        """
        return {}

    @abstractmethod
    def split_files(self, split: str) -> list[Path]:
        """Return the files of a split's topics and gold, whether they exist or not."""

    def gold_files(self, split: str) -> list[Path]:
        """Return the files that the official scorer takes as a split's gold."""
        return self.split_files(split)

    @abstractmethod
    def all_solved_splits(self, split: str) -> tuple[str, ...]:
        """Return the splits whose solved topics a split may be ranked by."""

    def solved_splits(self, split: str) -> tuple[str, ...]:
        """Return the splits whose solved topics are the examples, of those that the user has chosen."""
        solved = self.all_solved_splits(split)
        return solved if self.chosen is None else tuple(name for name in solved if name in self.chosen)

    def solved_by(self, splits: Sequence[str]) -> Self:
        """Return the same collection with examples of these splits alone.

        Raises:
            UsageError: a split has no solved topics.
        """
        solved = dict.fromkeys(name for split in self.info.splits for name in self.all_solved_splits(split))
        for split in splits:
            if split not in solved:
                choice = choices_hint(split, solved) if solved else f"{split!r}: it has none at all"
                raise UsageError(f"{self.info.reference} has no solved topics in the split {choice}")
        other = copy(self)
        other.chosen = frozenset(splits)
        return other

    def example_files(self, split: str) -> list[Path]:
        """Return the files that the examples are read from."""
        files = (file for solved in self.solved_splits(split) for file in self.split_files(solved))
        return list(dict.fromkeys(files))

    @abstractmethod
    def topics(self, split: str, problems: Problems) -> list[Topic]:
        """Return the topics of a split in the order of their file, whatever their gold is like."""

    @abstractmethod
    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        """Read the solved topics that the split's topics may be ranked by.

        They may include topics of the split itself: no topic votes for its own answers.
        """

    def judged_example(self, topic: Topic, grades: Mapping[str, float]) -> Example:
        """Return the example that `examples` would read for a topic if these grades were its gold."""
        return Example(topic, {document: 1.0 for document, grade in grades.items() if grade > 0})

    @abstractmethod
    def check_split(self, split: str, problems: Problems) -> int:
        """Report everything that is wrong with a split's topics and gold, and return the number of good topics.

        The first of several splits in the same file reports the problems of all. The problems of documents are
        reported by their reader.
        """

    def is_masked(self, split: str) -> bool:
        """Return whether the organisers have left the gold out of a split's files."""
        self.split_files(split)  # for its error
        return False


@dataclass(frozen=True, slots=True)
class DataSplit(Generic[C_co]):
    """One split of a collection, with the options of its official scorer."""

    collection: C_co
    name: str
    options: ScorerOptions = ScorerOptions()

    @property
    def files(self) -> list[Path]:
        """The files of its topics and gold."""
        return self.collection.split_files(self.name)

    def topics(self, problems: Problems) -> list[Topic]:
        """Return its topics."""
        return self.collection.topics(self.name, problems)

    def gold(self, files: Sequence[Path]) -> GoldFiles:
        """Return gold files to be scored as those of the split."""
        return GoldFiles(files, replace(self.options, split=self.name))


class NoOfficialFile(DataError):
    """A run has no official file; the message is a clause with the reason and the remedy."""


class OfficialFormat(ABC, Generic[P, C_contra]):
    """The organisers' file of a task with the collection C, and their scorer, which takes the predictions P."""

    @property
    @abstractmethod
    def scorer(self) -> Scorer[P]:
        """Scores official files, and runs without writing them."""

    @property
    def breakdowns(self) -> BreakdownScorer[P] | None:
        """Breaks down the scorer's figures; None where it can't."""
        return None

    @abstractmethod
    def files(self, run: Run, split: DataSplit[C_contra]) -> Mapping[str, Writer]:
        """Return a writer for each of a run's official files, by the file's name.

        Raises:
            NoOfficialFile: the run has no official file.
            DataError: files of the collection that the official files depend on are missing.
        """

    def predictions(self, run: Run, split: DataSplit[C_contra]) -> P:
        """Return the predictions that the scorer would read from a run's official files.

        The field's measures are of the run's rankings, also where the official files list documents otherwise.
        """
        return self.scorer.predictions(run)

    @abstractmethod
    def validate(
        self,
        path: Path,
        split: DataSplit[C_contra] | None,
        problems: Problems,
    ) -> None:
        """Report everything that is wrong with an official file: against the split that it answers, or by itself.

        A problem that stops the organisers' scorer but not their format checker is only noted for a file by itself.

        Raises:
            NotScorable: the official scorer can't read the file.
            UsageError: the task can't check a file by itself.
        """

    @abstractmethod
    def gold(self, grades: Grades, split: DataSplit[C_contra]) -> Mapping[str, Writer]:
        """Return writers of grades as gold for the official scorer, by the file's name.

        The gold has only the topics with grades; a document without a grade counts as not relevant.
        """

    def grades(self, files: Sequence[Path], split: DataSplit[C_contra]) -> Grades:
        """Return the grades in files like those of `gold`, by topics of the split and by documents.

        Raises:
            NotScorable: the organisers' script stops on a file or refuses it.
            DataError: a file is missing or can't be read.
        """
        return self.scorer.qrels(split.gold(files))


@dataclass(frozen=True, slots=True)
class Task:
    """One task: its three parts, its index mappings and its recipes.

    The last three functions raise DataError where a file of the user's own is wrong.
    """

    info: TaskInfo
    collection: Callable[[Path], Collection]
    # Tasks differ in P and C, which no caller needs to know: a scorer takes the predictions that it has read, a
    # format the collections of its own task.
    official: OfficialFormat[Any, Any]
    # Make the create-index bodies of documents, and of solved topics (None if the task has none).
    index_mapping: Callable[[], dict[str, Any]]
    examples_index_mapping: Callable[[], dict[str, Any] | None]
    recipe_book: Callable[[], RecipeBook]

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def reference(self) -> str:
        """The name or file that the command line takes for the task."""
        return self.info.reference

    @property
    def breakdowns(self) -> tuple[str, ...]:
        """The names of the breakdowns of its official figures, as `evaluate --by` takes them."""
        scorer = self.official.breakdowns
        return () if scorer is None else scorer.breakdowns


def general_names() -> list[str]:
    """Return the names of the general query templates, which need nothing of a task but text."""
    templates = resources.folder("query_templates") / resources.GENERAL
    return sorted(file.stem for file in templates.glob("*.json"))


def general(info: TaskInfo, name: str) -> dict[str, Any]:
    """Return a general template, which leaves the topic itself out where topics are documents."""
    body = resources.query_template(resources.GENERAL, name)
    if info.topics_are_documents:
        itself = {"term": {"id": "{{topic.id}}"}}
        body["query"] = {"bool": {"must": [body["query"]], "must_not": [itself]}}
    return body


def shipped(info: TaskInfo, collection: Callable[[Path], C_co], official: OfficialFormat[P, C_co]) -> Task:
    """Return a task with mappings of `index_mappings/` and recipes of `query_templates/`."""

    def examples_index_mapping() -> dict[str, Any] | None:
        return None if info.examples_mapping is None else resources.index_mapping(info.examples_mapping)

    def recipe_book() -> RecipeBook:
        own = resources.recipe_book(info.name)

        def template(name: str) -> dict[str, Any]:
            is_own = (own.file.parent / f"{name}.json").exists() or name not in general_names()
            return own.template(name) if is_own else general(info, name)

        return replace(own, template=template, depth=info.default_depth)

    return Task(
        info,
        collection,
        official,
        index_mapping=lambda: resources.index_mapping(info.mapping),
        examples_index_mapping=examples_index_mapping,
        recipe_book=recipe_book,
    )


def sample_of(task: Task, suffix: str) -> Task:
    """Return the sample of a shipped task: the few documents that ship with searchapp, with an index of their own."""
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
