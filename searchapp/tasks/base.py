"""What a shared task brings: where its files lie, its mapping, its topics, its official files, its scorer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from searchapp import resources
from searchapp.errors import UsageError
from searchapp.evaluation.base import Scorer, ScorerOptions
from searchapp.formats.problems import Problems
from searchapp.model import Document, Example, Run, Topic
from searchapp.resources import RecipeBook

Writer = Callable[[BinaryIO], object]

Grades = Mapping[str, Mapping[str, int]]
"""Grades by topic and document."""

JUDGING_DEPTH = 100
"""How many documents of each ranking people judge where a task says nothing else: as deep as most pools of TREC."""


class Task(Protocol):
    """One shared task.

    `mapping` names the index mapping of its documents, `examples_mapping` that of its solved topics (None: the
    task has none to learn from). With `topics_are_documents` a topic is itself one of the documents, under the
    same id, and must never be retrieved for itself. `default_recipe` ranks topics, `search_recipe` what a person
    types. `default_depth` is how many documents a topic's ranking has, `judging_depth` how many of them people judge.
    `official_file` describes the organisers' file to people. `measures` are the names, in ir-measures'
    notation, of what is reported beside the official figures. `grades` are what the grades 0, 1, ... of a judgment
    mean. `context` names the fields that say in which text a document stands and as which of its parts, where its
    neighbours there help to understand it. `file` is the TOML file of a user's own task, None for a task that ships
    with searchapp.
    """

    name: str
    title: str
    about: str
    mapping: str
    examples_mapping: str | None
    splits: tuple[str, ...]
    topics_are_documents: bool
    default_recipe: str
    search_recipe: str
    default_depth: int
    judging_depth: int
    official_measure: str
    official_file: str
    measures: tuple[str, ...]
    scorer: Scorer
    grades: tuple[str, ...]
    context: tuple[str, str] | None
    file: Path | None

    @property
    def index_name(self) -> str:
        """The name of the index of its documents, which no other task has."""

    @property
    def index_names(self) -> tuple[str, ...]:
        """The names of all indexes of its documents, where splits are ranked in different ones.

        An index has all documents of those after it. People search the first of them that there is.
        """

    def index_of(self, data: Path, split: str) -> str:
        """The name of the index that one of its splits is ranked in."""

    @property
    def reference(self) -> str:
        """What names the task on the command line."""

    def index_mapping(self) -> dict[str, Any]:
        """The create-index body of its documents.

        Raises:
            DataError: a mapping of the user's own is not what it should be.
        """

    def examples_index_mapping(self) -> dict[str, Any] | None:
        """The create-index body of its solved topics; None if it has none to learn from."""

    def recipe_book(self) -> RecipeBook:
        """How it ranks."""

    def split_files(self, data: Path, split: str) -> list[Path]:
        """The files of a split's topics and gold, whether they exist or not.

        Raises:
            UsageError: the task has no such split.
        """

    def documents(self, data: Path, problems: Problems) -> Iterator[Document]:
        """The documents in the order of their files; what is wrong with them goes to `problems`."""

    def document_files(self, data: Path) -> list[Path]:
        """The files that the documents are read from."""

    def documents_of(self, data: Path, index: str, problems: Problems) -> Iterator[Document]:
        """The documents of one of its indexes."""

    def files_of(self, data: Path, index: str) -> list[Path]:
        """The files that the documents of one of its indexes are read from."""

    def topics(self, data: Path, split: str, problems: Problems) -> list[Topic]:
        """The topics of a split in the order of their file; what their gold is like does not matter here."""

    def examples(self, data: Path, split: str, problems: Problems) -> Iterator[Example]:
        """The solved topics that the split's topics may be ranked by.

        Those of a split that is itself solved may be among them: no topic votes for its own answers.
        """

    def example_files(self, data: Path, split: str) -> list[Path]:
        """The files that those are read from."""

    def check_split(self, data: Path, split: str, problems: Problems) -> int:
        """Find everything that is wrong with the files of a split's topics and gold; returns the number of good topics.

        Splits that lie in the same files are checked together, by the first of them.
        """

    def gold_files(self, data: Path, split: str) -> list[Path]:
        """The files that the official scorer takes as a split's gold."""

    def judged_gold(self, grades: Grades, data: Path, split: str) -> Mapping[str, Writer]:
        """What writes the gold that grades amount to, for the official scorer, by the file's name.

        Only the topics with grades are in it; a document without a grade counts as not relevant.
        """

    def gold_grades(self, files: Sequence[Path], data: Path, split: str) -> Grades:
        """The grades of files like those of `judged_gold`, by topics of the split and by documents.

        Raises:
            NotScorable: the organisers' script stops on a file or refuses it.
            DataError: a file is missing or can't be read.
        """

    def judged_example(self, topic: Topic, grades: Mapping[str, float], data: Path) -> Example:
        """The solved topic that a topic with these grades is: as `examples` would have it, were they its gold.

        Without a relevant document it has no answer, and nothing to teach.
        """

    def is_masked(self, data: Path, split: str) -> bool:
        """Whether the organisers have left the gold out of a split's files."""

    def official_shortfall(self, run: Run, options: ScorerOptions) -> str | None:
        """Why no official file can be made of a run, as a clause; None when it can."""

    def official_files(self, run: Run, data: Path, split: str) -> Mapping[str, Writer]:
        """What writes each of a run's official files, by the file's name; folder and split are those of the run.

        Raises:
            DataError: the folder's files, of which the official ones take something, are not there any more.
        """

    def validate_official(
        self, path: Path, data: Path | None, split: str | None, options: ScorerOptions, problems: Problems
    ) -> None:
        """Find everything that is wrong with an official file.

        Without `data` and `split` only what the file alone shows; a task whose files show nothing alone raises
        UsageError. Where the organisers' format checker lets pass what their scorer stops at, and the file alone is
        looked at, that is noted.

        Raises:
            NotScorable: the official scorer can't read the file.
        """


class OneIndex:
    """What the tasks have in common whose documents are all in one index, whichever split is ranked."""

    @property
    @abstractmethod
    def index_name(self) -> str:
        """The name of the index."""

    @abstractmethod
    def documents(self, data: Path, problems: Problems) -> Iterator[Document]:
        """All documents."""

    @abstractmethod
    def document_files(self, data: Path) -> list[Path]:
        """The files that the documents are read from."""

    @property
    def index_names(self) -> tuple[str, ...]:
        return (self.index_name,)

    def index_of(self, data: Path, split: str) -> str:
        return self.index_name

    def documents_of(self, data: Path, index: str, problems: Problems) -> Iterator[Document]:
        return self.documents(data, problems)

    def files_of(self, data: Path, index: str) -> list[Path]:
        return self.document_files(data)


class ShippedTask(OneIndex):
    """What the tasks that ship with searchapp have in common: mapping and recipes are found by their names."""

    name: str
    mapping: str
    examples_mapping: str | None
    grades: tuple[str, ...] = ("not relevant", "relevant")
    judging_depth: int = JUDGING_DEPTH
    context: tuple[str, str] | None = None
    file: Path | None = None
    scorer: Scorer

    @property
    def index_name(self) -> str:
        return self.name

    @property
    def reference(self) -> str:
        return self.name

    def index_mapping(self) -> dict[str, Any]:
        return resources.index_mapping(self.mapping)

    def judged_gold(self, grades: Grades, data: Path, split: str) -> Mapping[str, Writer]:
        raise UsageError(f"judgments can't be written as gold of {self.name}: export them as qrels")

    def gold_grades(self, files: Sequence[Path], data: Path, split: str) -> Grades:
        return self.scorer.qrels(files, ScorerOptions(split=split))

    def judged_example(self, topic: Topic, grades: Mapping[str, float], data: Path) -> Example:
        return Example(topic, {document: 1.0 for document, grade in grades.items() if grade > 0})

    def examples_index_mapping(self) -> dict[str, Any] | None:
        return None if self.examples_mapping is None else resources.index_mapping(self.examples_mapping)

    def recipe_book(self) -> RecipeBook:
        return resources.recipe_book(self.name)
