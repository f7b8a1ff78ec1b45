"""Splits: one file for each split, as most shared tasks have it, and cross-validation folds of one file.

A question's fold follows from the seed and its own id, by a hash whose value is fixed by a standard: the same
on every machine and Python version, whatever the order of the file and whatever else stands in it. A file that
loses or gains questions leaves the others where they are. The folds are of nearly the same size, not of exactly
the same.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Set
from pathlib import Path

from searchapp.tasks.base import Collection, DocumentSource, TaskInfo

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
