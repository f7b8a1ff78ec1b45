"""Splits: one file for each split, or cross-validation folds of one file.

`FoldFiles` and `AnswersFormat` are for tasks with folds: questions in JSON, and an official file with one entry for
each question.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, TypeVar

from searchapp.formats.json_files import OfficialId, official_ids, type_name
from searchapp.formats.problems import EntryProblems, Problems, shown
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Example, Run, Topic
from searchapp.tasks.base import (
    Collection,
    DataSplit,
    DocumentSource,
    NoOfficialFile,
    OfficialFormat,
    P,
    TaskInfo,
    Writer,
)

# Training topics; development topics; topics whose gold may be unpublished, ranked with the topics of the other
# splits.
TRAIN, DEV, TEST = "train", "dev", "test"


@dataclass(frozen=True, slots=True)
class GoldReading:
    """How to read the gold of questions."""

    # The documents that gold may contain; None for any.
    known: Set[str] | None = None
    # Whether gold is not read.
    skipped: bool = False
    # Whether gold may be missing.
    masked: bool = False
    # Whether the questions are training topics, in which unknown gold is only a note.
    training: bool = False


class SplitFiles(Collection):
    """A collection with one index and one file for each split; subclasses read the files.

    The training topics of `test` include those of `dev`, if it exists.
    """

    def __init__(
        self,
        info: TaskInfo,
        folder: Path,
        documents: DocumentSource,
        file: Callable[[str], Path],
        examples: str = TRAIN,
    ) -> None:
        super().__init__(info, folder, documents)
        self._file = file  # of a split
        self._examples = examples

    def file(self, split: str) -> Path:
        """Return the path of a split's topics and gold, existing or not."""
        return self._file(self.info.require_split(split))

    def known_ids(self) -> Set[str] | None:
        """Return the ids of the documents, to check gold; None without documents, which is reported elsewhere."""
        return self.documents.ids() or None

    def split_files(self, split: str) -> list[Path]:
        return [self.file(split)]

    def all_training_splits(self, split: str) -> tuple[str, ...]:
        has_dev = (
            self.info.require_split(split) == TEST and DEV in self.info.splits and self.file(DEV).exists()
        )
        return (self._examples, DEV) if has_dev else (self._examples,)

    def is_masked(self, split: str) -> bool:
        if self.info.require_split(split) != TEST:
            return False
        has_gold = list(self.gold_flags(self.file(split)))
        return bool(has_gold) and not any(has_gold)

    @abstractmethod
    def questions(self, path: Path, problems: Problems, gold: GoldReading) -> Iterator[Any]:
        """Read the questions of a file, each with `id` and `has_gold`."""

    @abstractmethod
    def topic(self, question: Any) -> Topic:
        """Return a question as a topic."""

    @abstractmethod
    def example(self, question: Any) -> Example | None:
        """Return a question as a training topic; None without gold."""

    def topics(self, split: str, problems: Problems) -> list[Topic]:
        questions = self.questions(
            self.file(split), problems, GoldReading(skipped=True, masked=split == TEST)
        )
        return [self.topic(question) for question in questions if in_split(split, question.id)]

    def check_split(self, split: str, problems: Problems) -> int:
        gold = GoldReading(self.known_ids(), masked=split == TEST, training=split == TRAIN)
        questions = self.questions(self.file(split), problems, gold)
        return sum(1 for _ in questions)

    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        folds = set(FOLD_NAMES).intersection(self.training_splits(split))
        gold = GoldReading(self.known_ids(), training=True)
        for path in self.example_files(split):
            for question in self.questions(path, problems, gold):
                is_example = not folds or fold_of(question.id) in folds
                if is_example and (example := self.example(question)) is not None:
                    yield example

    def gold_flags(self, path: Path) -> Iterable[bool]:
        """Return whether each topic of a file has gold, ignoring the file's problems."""
        questions = self.questions(path, Problems(lenient=True), GoldReading(masked=True))
        return (question.has_gold for question in questions)


FOLD_COUNT = 5

# The seed of all reported figures.
FOLD_SEED = 2021

# The names of the folds, as splits: `fold0` to `fold4`.
FOLD_NAMES = tuple(f"fold{number}" for number in range(FOLD_COUNT))


def fold_of(id_: str, seed: int = FOLD_SEED) -> str:
    """Return the name of a question's fold."""
    return FOLD_NAMES[fold_number(id_, seed)]


def fold_number(id_: str, seed: int = FOLD_SEED, count: int = FOLD_COUNT) -> int:
    """Return the number of a question's fold, from 0.

    It is the SHA-256 of `seed:id` in UTF-8 (half a surrogate pair as its three bytes), as a big-endian number, modulo
    `count`.
    """
    # A standard hash of the id alone: the same on every machine and Python version, for any file content.
    digest = hashlib.sha256(f"{seed}:{id_}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest, "big") % count


def in_split(split: str | None, id_: str) -> bool:
    """Return whether a split contains a question of its file: a fold is a part of the train file, `test` a whole
    file.
    """
    return split not in FOLD_NAMES or fold_of(id_) == split


fold_task_info = partial(
    TaskInfo,
    training_mapping="questions",
    splits=(*FOLD_NAMES, TEST),
    default_recipe="neighbours",
    default_depth=100,
)


class FoldFiles(SplitFiles):
    """A train file, whose folds are splits, and a test file; subclasses read their questions."""

    # Whether the files may begin with a byte-order mark.
    bom = False

    def __init__(
        self, info: TaskInfo, folder: Path, documents: DocumentSource, file: Callable[[str], Path]
    ) -> None:
        super().__init__(
            info, folder, documents, lambda split: file(TEST if split == TEST else TRAIN), FOLD_NAMES[0]
        )

    def topic(self, question: Any) -> Topic:
        return Topic(question.id, question.text)

    def all_training_splits(self, split: str) -> tuple[str, ...]:
        self.info.require_split(split)
        return tuple(fold for fold in FOLD_NAMES if fold != split)

    def official_ids(self, split: str) -> Mapping[str, OfficialId]:
        """Return the ids of a split's file with their JSON types: scorers distinguish 7 from "7"."""
        return official_ids(self.file(split), bom=self.bom)


C = TypeVar("C", bound=FoldFiles)


class AnswersFormat(OfficialFormat[P, C]):
    """An official file in JSON: a list with an entry for each question."""

    # The unit of an answer, such as "type".
    noun: ClassVar[str]
    # The consequence of a question without a prediction.
    lack: ClassVar[str]
    info: TaskInfo

    @abstractmethod
    def entries(self, run: Run, split: DataSplit[C]) -> Iterable[Mapping[str, Any]]:
        """Return the entries of the official file, with ids as text."""

    @abstractmethod
    def read(self, path: Path, problems: Problems, split: DataSplit[C] | None) -> Iterator[Any]:
        """Read the predictions of an official file, each with `line`, `id` and `official_id`."""

    def files(self, run: Run, split: DataSplit[C]) -> Mapping[str, Writer]:
        for ranking in run:
            if not ranking.hits:
                raise NoOfficialFile(
                    f"question {ranking.topic_id} has no {self.noun}, but the official file needs one "
                    "for each question: choose another recipe"
                )
        official = split.collection.official_ids(split.name)
        entries = [
            {**entry, "id": official.get(entry["id"], entry["id"])} for entry in self.entries(run, split)
        ]
        return {self.info.official_file: lambda file: write_entries(file, entries)}

    def validate(
        self,
        path: Path,
        split: DataSplit[C] | None,
        problems: Problems,
    ) -> None:
        """Report predictions for unknown questions, and topics without a prediction."""
        if split is None:
            if not list(self.read(path, problems, None)) and not len(problems):
                problems.add(path, "no prediction", detail="the list is empty", skippable=False)
            return
        required = Problems(lenient=True)
        topics = {topic.id for topic in split.topics(required)}
        for _document in split.collection.documents.read(required):
            pass
        required.raise_if_any()
        official = split.collection.official_ids(split.name)
        questions = {text: id_ for text, id_ in official.items() if in_split(split.name, text)}
        answered = set()
        for prediction in self.read(path, problems, split):
            entry = EntryProblems(path, f"line {prediction.line}", problems)
            answered.add(prediction.id)
            if prediction.id not in questions:
                entry.wrong("unknown question", f"{shown(prediction.id)} is not in the split {split.name}")
            # To the official scorers, an id of another JSON type belongs to another question.
            elif prediction.official_id != questions[prediction.id]:
                actual_type, expected_type = (
                    type_name(prediction.official_id),
                    type_name(questions[prediction.id]),
                )
                detail = f"the id {shown(prediction.id)} is {actual_type} here"
                entry.wrong(
                    "wrong type of id",
                    f"{detail} and {expected_type} in the questions; the scorer compares both",
                )
        if not problems.stopped:  # unread questions are not missing
            for id_ in sorted(topics - answered):
                problems.add(path, "missing question", f"question {shown(id_)}", self.lack)


def write_entries(file: BinaryIO, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write entries as an official file: a UTF-8 list with one entry a line."""
    lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    file.write(("[\n" + ",\n".join(lines) + "\n]\n").encode())


def words_of(name: str) -> str:
    """Split a CamelCase name into words in lower case.

    >>> words_of("numberOfEpisodes"), words_of("NCAASeason"), words_of("bSide"), words_of("area51Total_km")
    ('number of episodes', 'ncaa season', 'b side', 'area 51 total km')
    """
    words = []
    for index, letter in enumerate(name):
        previous, following = name[index - 1 : index], name[index + 1 : index + 2]
        is_first = letter.isupper() and (not previous.isupper() or following.islower())
        if index and (is_first or letter.isdigit() != previous.isdigit()):
            words.append(" ")
        words.append(" " if letter in "_-/" else letter)
    return " ".join("".join(words).lower().split())
