"""Splits: one file for each split, as most shared tasks have it, and cross-validation folds of one file.

`FoldFiles` and `AnswersFormat` are what the tasks with folds have in common: lists of questions in JSON, and an
official file with one entry for each.

A question's fold follows from the seed and its own id, by a hash whose value is fixed by a standard: the same
on every machine and Python version, whatever the order of the file and whatever else stands in it. A file that
loses or gains questions leaves the others where they are. The folds are of nearly the same size, not of exactly
the same.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, TypeVar

from searchapp.formats.json_files import OfficialId, official_ids, type_name
from searchapp.formats.problems import Problems, shown
from searchapp.model import Example, Topic
from searchapp.tasks.base import (
    Collection,
    DocumentSource,
    NoOfficialFile,
    OfficialFile,
    OfficialFormat,
    P,
    Part,
    Submission,
    TaskInfo,
    Writer,
)

TRAIN, DEV, TEST = "train", "dev", "test"
"""The split whose topics are the solved examples, the one that is reported meanwhile, and the one whose gold the
organisers may have left out: it is ranked by the other two."""


class SplitFiles(Collection):
    """A collection with a file for each split; a task adds how its files are read.

    `documents` are those of its only index, `file` gives the place of a split's file in the folder, for the splits
    that the task has, and `examples` names the split whose file has the solved examples. Those of `test` are also in
    the file of `dev`, if there is one.
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
        self._file = file
        self._examples = examples

    def file(self, split: str) -> Path:
        """The file of a split's topics and gold, whether it exists or not."""
        return self._file(self.info.require_split(split))

    def known_ids(self) -> Set[str] | None:
        """The ids of the documents, for gold to be compared with.

        None where there are none: every document of the gold would be unknown, and that there are none is problem
        enough.
        """
        return self.documents.ids() or None

    def split_files(self, split: str) -> list[Path]:
        return [self.file(split)]

    def all_solved_splits(self, split: str) -> tuple[str, ...]:
        is_test = self.info.require_split(split) == TEST
        also = is_test and DEV in self.info.splits and self.file(DEV).exists()
        return (self._examples, DEV) if also else (self._examples,)

    def is_masked(self, split: str) -> bool:
        if self.info.require_split(split) != TEST:
            return False
        solved = list(self.solved(self.file(split)))
        return bool(solved) and not any(solved)

    @abstractmethod
    def solved(self, path: Path) -> Iterable[bool]:
        """For each topic of a file whose gold may be left out, whether it has gold, whatever is wrong with the file."""


FOLD_COUNT = 5
"""How many folds there are."""

FOLD_SEED = 2021
"""The seed of all reported figures."""

FOLD_NAMES = tuple(f"fold{number}" for number in range(FOLD_COUNT))
"""The names of the folds, as splits: `fold0` to `fold4`."""


def fold_of(id_: str, seed: int = FOLD_SEED) -> str:
    """The name of the fold that the question of this id is in, see `number_of`."""
    return FOLD_NAMES[fold_number(id_, seed)]


def fold_number(id_: str, seed: int = FOLD_SEED, count: int = FOLD_COUNT) -> int:
    """The number, from 0 on, of the fold of so many that the question of this id is in.

    It is the SHA-256 of `seed:id` in UTF-8 (half a surrogate pair as its three bytes), read as one big-endian
    number, modulo the number of folds.
    """
    digest = hashlib.sha256(f"{seed}:{id_}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest, "big") % count


def in_split(split: str | None, id_: str, seed: int = FOLD_SEED) -> bool:
    """Whether a question of a file belongs to a split: to its own fold only, and to every split that is no fold.

    That is what a scorer asks of gold: `fold2` of the train file is a part of it, `test` the whole test file.
    """
    return split not in FOLD_NAMES or fold_of(id_, seed) == split


class FoldFiles(SplitFiles):
    """A train file, whose folds are splits, and a test file; a task adds how their questions are read.

    `file` gives the place of the train file and of the test file. A byte-order mark may stand in them with `bom`.
    """

    bom = False

    def __init__(
        self, info: TaskInfo, folder: Path, documents: DocumentSource, file: Callable[[str], Path]
    ) -> None:
        super().__init__(
            info, folder, documents, lambda split: file(TEST if split == TEST else TRAIN), FOLD_NAMES[0]
        )

    @abstractmethod
    def questions(
        self,
        path: Path,
        problems: Problems,
        *,
        compared: bool = False,
        gold: bool = True,
        masked: bool = False,
    ) -> Iterator[Any]:
        """Read the questions of a file, each with `id` and `text`.

        With `compared` their gold is compared with the documents, without `gold` it is not looked at, with `masked` it
        may be left out.
        """

    @abstractmethod
    def example(self, question: Any) -> Example | None:
        """Return the solved topic that a question is; None where it has no gold."""

    def topics(self, split: str, problems: Problems) -> list[Topic]:
        questions = self.questions(self.file(split), problems, gold=False)
        return [Topic(question.id, question.text) for question in questions if in_split(split, question.id)]

    def check_split(self, split: str, problems: Problems) -> int:
        questions = self.questions(self.file(split), problems, compared=True, masked=split == TEST)
        return sum(1 for _ in questions)

    def all_solved_splits(self, split: str) -> tuple[str, ...]:
        self.info.require_split(split)
        return tuple(fold for fold in FOLD_NAMES if fold != split)

    def examples(self, split: str, problems: Problems) -> Iterator[Example]:
        solving = self.solved_splits(split)
        for question in self.questions(self.file(self._examples), problems, compared=True):
            if fold_of(question.id) in solving and (example := self.example(question)) is not None:
                yield example

    def official_ids(self, split: str) -> Mapping[str, OfficialId]:
        """Return the ids of a split's file as they stand there: scorers distinguish 7 from "7"."""
        return official_ids(self.file(split), bom=self.bom)


C = TypeVar("C", bound=FoldFiles)


class AnswersFormat(OfficialFormat[P, C]):
    """An official file in JSON: a list with an entry for each question.

    `noun` names what an answer is made of, `lack` says what it means that a question has no prediction.
    """

    noun: ClassVar[str]
    lack: ClassVar[str]
    info: TaskInfo

    @abstractmethod
    def entries(self, submission: Submission[C]) -> Iterable[Mapping[str, Any]]:
        """Return the entries of the official file, with ids as text."""

    @abstractmethod
    def read(self, path: Path, problems: Problems, part: Part[C] | None) -> Iterator[Any]:
        """Read the predictions of an official file, each with `line`, `id` and `official_id`."""

    def files(self, submission: Submission[C]) -> Mapping[str, Writer]:
        for ranking in submission.run:
            if not ranking.hits:
                raise NoOfficialFile(
                    f"question {ranking.topic_id} has no {self.noun}, and the official file needs one for each: "
                    "choose another recipe"
                )
        official = submission.part.collection.official_ids(submission.part.split)
        entries = [
            {**entry, "id": official.get(entry["id"], entry["id"])} for entry in self.entries(submission)
        ]
        return {self.info.official_file: lambda file: write_entries(file, entries)}

    def validate(self, file: OfficialFile[C], problems: Problems) -> None:
        """Find the predictions for no question, and the questions without a prediction.

        Questions without words and the like, which are no topics, need none. An id of the right text and the wrong type
        is a problem of its own: to the official scorers it is another question's.
        """
        path, part = file.path, file.part
        if part is None:
            if not list(self.read(path, problems, None)) and not len(problems):
                problems.add(path, "no prediction", detail="the list is empty", skippable=False)
            return
        needed = Problems(lenient=True)
        topics = {topic.id for topic in part.topics(needed)}
        for _document in part.collection.documents.read(needed):
            pass
        needed.raise_if_any()
        questions = {
            text: id_
            for text, id_ in part.collection.official_ids(part.split).items()
            if in_split(part.split, text)
        }
        answered = set()
        for one in self.read(path, problems, part):
            where = f"line {one.line}"
            answered.add(one.id)
            if one.id not in questions:
                problems.add(
                    path, "unknown question", where, f"{shown(one.id)} is not in the split {part.split}"
                )
            elif one.official_id != questions[one.id]:
                is_, should = type_name(one.official_id), type_name(questions[one.id])
                detail = f"the id {shown(one.id)} is {is_} here and {should} in the questions; the scorer compares both"
                problems.add(path, "wrong type of id", where, detail)
        if not problems.stopped:  # what was not read is not missing
            for id_ in sorted(topics - answered):
                problems.add(path, "missing question", f"question {shown(id_)}", self.lack)


def write_entries(file: BinaryIO, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write entries as an official file: UTF-8, a list with one entry a line."""
    lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    file.write(("[\n" + ",\n".join(lines) + "\n]\n").encode())
