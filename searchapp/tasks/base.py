"""What a task is, in three parts: data about it, its collection, and its official format.

    task = tasks.load("nlps")
    task.info                              what there is to know of it without its files
    collection = task.collection(folder)   its documents, topics and gold, in the folder that holds its files
    task.official                          the organisers' file: how it is written, checked and scored

A task is made of these parts; it has no behaviour of its own. docs/extending.md says what a new one touches.

`Once` and `DocumentSource` read the files of a collection once for each command, and report their problems to every
caller. `general` is a query template that needs nothing of a task but text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Generic, Self, TypeVar

from searchapp import resources
from searchapp.errors import DataError, UsageError
from searchapp.evaluation.base import BreakdownScorer, GoldFiles, Scorer, ScorerOptions
from searchapp.formats.problems import Problems
from searchapp.model import Document, Example, Markup, Run, Topic
from searchapp.resources import RecipeBook
from searchapp.text import choices_hint

T = TypeVar("T")


class Once(Generic[T]):
    """What a reader makes of a file, with the problems that it found, which every caller gets."""

    def __init__(self, read: Callable[[Problems], T]) -> None:
        self._read = read
        self._found: tuple[T, Problems] | None = None

    def __call__(self, problems: Problems) -> T:
        """What has been read; what was wrong with the file goes to `problems`."""
        if self._found is None:
            own = Problems(lenient=True)
            self._found = self._read(own), own
        value, found = self._found
        problems.add_all(found)
        return value


class DocumentSource:
    """Documents in the order of their files.

    Those of a shared task are `kept`: the largest of them has 16,000 short ones, and indexing it asks for them once for
    each split besides. A user's own may be a million of any length: they are read again for each caller, one at a time,
    and only their ids are kept, once somebody has asked for these.
    """

    def __init__(
        self,
        files: Callable[[], list[Path]],
        read: Callable[[Problems], Iterator[Document]],
        *,
        kept: bool = True,
    ) -> None:
        self._files = files
        self._read = read
        self._keeps = kept
        self._kept: tuple[list[Document], Problems] | None = None
        self._ids: frozenset[str] | None = None

    @property
    def files(self) -> list[Path]:
        """The files that they are read from."""
        return self._files()

    def read(self, problems: Problems) -> Iterator[Document]:
        """The documents; what is wrong with them goes to `problems`."""
        if not self._keeps:
            yield from self._read(problems)
            return
        if self._kept is not None:
            documents, found = self._kept
            problems.add_all(found)
            yield from documents
            return
        documents, found = [], Problems(lenient=True)
        try:
            for document in self._read(found):
                documents.append(document)
                yield document
        finally:  # a caller that stops early has read a part of them, and gets that part's problems
            problems.add_all(found)
        self._kept = documents, found

    def ids(self) -> frozenset[str]:
        """The ids of all of them; the reader of the documents reports what is wrong with them."""
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
"""How many documents of each ranking people judge where a task says nothing else: as deep as most pools of TREC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """Data about a task.

    `mapping` names the index mapping of its documents, `examples_mapping` that of its solved topics (None: the
    task has none to learn from). With `topics_are_documents` a topic is itself one of the documents, under the
    same id, and must never be retrieved for itself. `default_recipe` ranks topics, `search_recipe` what a person
    types. `default_depth` is how many documents a topic's ranking has, `judging_depth` how many of them people judge.
    `official_file` describes the organisers' file to people. `measures` are the names, in ir-measures'
    notation, of what is reported beside the official figures. `grades` are what the grades 0, 1, ... of a judgment
    mean. `context` names the fields that say in which text a document stands and as which of its parts, where its
    neighbours there help to understand it. `markup` is what the texts are written in. `file` is the TOML file of a
    user's own task, None for a task that ships with searchapp. `indexes` are the names of its indexes where these are
    not one of the task's name. `variant` is the TOML file with recipes and mappings of a user's own, see
    `tasks.variant`. `folder` is where a sample's files are.
    """

    name: str
    title: str
    about: str
    splits: tuple[str, ...]
    mapping: str
    examples_mapping: str | None
    default_depth: int
    official_measure: str
    official_file: str
    measures: tuple[str, ...]
    default_recipe: str = "bm25"
    search_recipe: str = "words"
    grades: tuple[str, ...] = ("not relevant", "relevant")
    judging_depth: int = JUDGING_DEPTH
    topics_are_documents: bool = False
    context: tuple[str, str] | None = None
    markup: Markup = Markup.plain
    file: Path | None = None
    indexes: tuple[str, ...] = ()
    variant: Path | None = None
    folder: Path | None = None

    @property
    def reference(self) -> str:
        """What names the task on the command line."""
        named = self.variant or self.file
        return self.name if named is None else str(named)

    @property
    def index_names(self) -> tuple[str, ...]:
        """The names of the indexes of its documents, which no other task has.

        They are several where splits are ranked in different ones: each has all documents of those after it. People
        search the first of them that there is.
        """
        return self.indexes or (self.name,)

    @property
    def index_name(self) -> str:
        """The name of its index; of several that of the smallest."""
        return self.index_names[-1]

    def require_split(self, split: str, or_else: str = "") -> str:
        """The split, if the task has it; `or_else` says what could be named besides.

        Raises:
            UsageError: it has not.
        """
        if split in self.splits:
            return split
        choice = choices_hint(split, self.splits) if self.splits else f"{split!r}: its file names no topics"
        raise UsageError(f"{self.name} has no split {choice}{or_else}")


class Collection(ABC):
    """The files of a task in one folder, opened once in a command and never kept longer: the files may change.

    What is asked for several times in a command is read and parsed once, as far as it is small (see `documents`).
    Whatever takes the name of a split raises UsageError when the task has none of that name.

    `documents` are all documents, in the order of their files, `indexes` those of each index by its name, as
    `TaskInfo.index_names` has them, and `renamed` those of these names that a variant has other ones for. `chosen` are
    the splits whose solved topics somebody has chosen, None where nobody has.
    """

    chosen: frozenset[str] | None = None
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
        """The name of the index that a split is ranked in."""
        self.info.require_split(split)
        return self.renamed.get(self.info.index_name, self.info.index_name)

    def with_indexes(self, names: Mapping[str, str]) -> Self:
        """The same collection, whose indexes have other names: those of a variant with mappings of its own."""
        other = copy(self)
        other.indexes = {names.get(name, name): documents for name, documents in self.indexes.items()}
        other.renamed = names
        return other

    def layout(self, split: str, *, solved: bool) -> Mapping[str, Any]:  # noqa: ARG002  # the same for all
        """Return how a task file says that a split's files are read, by its tables; empty for a task that ships.

        The values are JSON. With `solved` they include the splits of the solved topics.
        """
        return {}

    @abstractmethod
    def split_files(self, split: str) -> list[Path]:
        """The files of a split's topics and gold, whether they exist or not."""

    def gold_files(self, split: str) -> list[Path]:
        """The files that the official scorer takes as a split's gold."""
        return self.split_files(split)

    @abstractmethod
    def all_solved_splits(self, split: str) -> tuple[str, ...]:
        """The splits whose solved topics are those that a split may be ranked by."""

    def solved_splits(self, split: str) -> tuple[str, ...]:
        """The splits whose solved topics are the examples, as far as their files are there."""
        every = self.all_solved_splits(split)
        return every if self.chosen is None else tuple(one for one in every if one in self.chosen)

    def solved_by(self, splits: Sequence[str]) -> Self:
        """The same collection, in which the examples are of these splits alone.

        Raises:
            UsageError: one of them has no solved topics.
        """
        every = dict.fromkeys(one for split in self.info.splits for one in self.all_solved_splits(split))
        for one in splits:
            if one not in every:
                choice = choices_hint(one, every) if every else f"{one!r}: it has none at all"
                raise UsageError(f"{self.info.reference} has no solved topics in the split {choice}")
        other = copy(self)
        other.chosen = frozenset(splits)
        return other

    def example_files(self, split: str) -> list[Path]:
        """The files that the examples are read from."""
        files = (file for solved in self.solved_splits(split) for file in self.split_files(solved))
        return list(dict.fromkeys(files))

    @abstractmethod
    def topics(self, split: str, problems: Problems) -> list[Topic]:
        """The topics of a split in the order of their file; what their gold is like does not matter here."""

    @abstractmethod
    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        """The solved topics that the split's topics may be ranked by.

        Those of a split that is itself solved may be among them: no topic votes for its own answers.
        """

    def judged_example(self, topic: Topic, grades: Mapping[str, float]) -> Example:
        """The solved topic that a topic with these grades is: as `examples` would have it, were they its gold.

        Without a relevant document it has no answer, and nothing to teach.
        """
        return Example(topic, {document: 1.0 for document, grade in grades.items() if grade > 0})

    @abstractmethod
    def check_split(self, split: str, problems: Problems) -> int:
        """Find everything that is wrong with the files of a split's topics and gold; returns the number of good topics.

        Splits that lie in the same files are checked together, by the first of them. The reader of the
        documents reports what is wrong with these.
        """

    def is_masked(self, split: str) -> bool:
        """Whether the organisers have left the gold out of a split's files."""
        self.split_files(split)  # for its error
        return False


@dataclass(frozen=True, slots=True)
class Part(Generic[C_co]):
    """One split of a collection."""

    collection: C_co
    split: str

    @property
    def files(self) -> list[Path]:
        """The files of its topics and gold."""
        return self.collection.split_files(self.split)

    def topics(self, problems: Problems) -> list[Topic]:
        """Its topics."""
        return self.collection.topics(self.split, problems)

    def gold(self, files: Sequence[Path], options: ScorerOptions) -> GoldFiles:
        """Gold files that are scored as those of the split."""
        return GoldFiles(files, replace(options, split=self.split))


@dataclass(frozen=True, slots=True)
class Submission(Generic[C_co]):
    """A run that official files are made of; `part` is what it ranks."""

    run: Run
    part: Part[C_co]
    options: ScorerOptions = field(default_factory=ScorerOptions)


@dataclass(frozen=True, slots=True)
class OfficialFile(Generic[C_co]):
    """An official file that is to be checked: against the split that it answers or, without `part`, by itself."""

    path: Path
    part: Part[C_co] | None
    options: ScorerOptions = field(default_factory=ScorerOptions)


class NoOfficialFile(DataError):
    """No official file can be made of a run; the message says in a clause why not, and what helps."""


class OfficialFormat(ABC, Generic[P, C_contra]):
    """The organisers' file of a task with the collection C, and their scorer, which takes the predictions P.

    `breakdowns` breaks the scorer's figures down by whatever it has a name for, None where nothing can be.
    """

    @property
    @abstractmethod
    def scorer(self) -> Scorer[P]:
        """Scores official files, and runs without writing them."""

    @property
    def breakdowns(self) -> BreakdownScorer[P] | None:
        """Breaks the scorer's figures down."""
        return None

    @abstractmethod
    def files(self, submission: Submission[C_contra]) -> Mapping[str, Writer]:
        """What writes each of a run's official files, by the file's name.

        Raises:
            NoOfficialFile: none can be made of the run.
            DataError: the collection's files, of which the official ones take something, are gone.
        """

    def predictions(self, submission: Submission[C_contra]) -> P:
        """What the scorer would read from a run's official files, without writing them.

        The field's measures are of the run's rankings, also where the official files list documents otherwise.
        """
        return self.scorer.predictions(submission.run)

    @abstractmethod
    def validate(self, file: OfficialFile[C_contra], problems: Problems) -> None:
        """Find everything that is wrong with an official file.

        Alone only what the file itself shows; a task whose files show nothing alone raises UsageError. Where the
        organisers' format checker lets pass what their scorer stops at, and the file alone is looked at, that is noted.

        Raises:
            NotScorable: the official scorer can't read the file.
        """

    @abstractmethod
    def gold(self, grades: Grades, part: Part[C_contra]) -> Mapping[str, Writer]:
        """What writes the gold that grades amount to, for the official scorer, by the file's name.

        Only the topics with grades are in it; a document without a grade counts as not relevant.
        """

    def grades(
        self, files: Sequence[Path], part: Part[C_contra], options: ScorerOptions = ScorerOptions()
    ) -> Grades:
        """The grades of files like those of `gold`, by topics of the split and by documents.

        Raises:
            NotScorable: the organisers' script stops on a file or refuses it.
            DataError: a file is missing or can't be read.
        """
        return self.scorer.qrels(part.gold(files, options))


@dataclass(frozen=True, slots=True)
class Task:
    """One task: its three parts, and what makes its index mappings and its recipes.

    `index_mapping` gives the create-index body of its documents, `examples_index_mapping` that of its solved topics
    (None if it has none to learn from), `recipe_book` how it ranks; all of them raise DataError where a file of the
    user's own is not what it should be.
    """

    info: TaskInfo
    collection: Callable[[Path], Collection]
    # Tasks differ in P and C, and nobody outside a task need know them: what `read` returns goes back to `score` of
    # the same scorer, what `collection` opens to the methods of the same format.
    official: OfficialFormat[Any, Any]
    index_mapping: Callable[[], dict[str, Any]]
    examples_index_mapping: Callable[[], dict[str, Any] | None]
    recipe_book: Callable[[], RecipeBook]

    @property
    def name(self) -> str:
        """The task's name."""
        return self.info.name

    @property
    def reference(self) -> str:
        """What names the task on the command line."""
        return self.info.reference

    @property
    def breakdowns(self) -> tuple[str, ...]:
        """The names of what its official figures can be broken down by, as `evaluate --by` takes them."""
        found = self.official.breakdowns
        return () if found is None else found.breakdowns


def general_names() -> list[str]:
    """Their names."""
    return sorted(
        file.stem for file in (resources.folder("query_templates") / resources.GENERAL).glob("*.json")
    )


def general(info: TaskInfo, name: str) -> dict[str, Any]:
    """One of them, which leaves the topic itself out where topics are documents."""
    body = resources.query_template(resources.GENERAL, name)
    if info.topics_are_documents:
        itself = {"term": {"id": "{{topic.id}}"}}
        body["query"] = {"bool": {"must": [body["query"]], "must_not": [itself]}}
    return body
