"""Which splits have the solved topics that a split may be ranked by, and the choice of some of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Self

from searchapp.errors import UsageError
from searchapp.names import refused
from searchapp.tasks.base import TaskInfo


class WithSolvedSplits(ABC):
    """A collection that knows them; `chosen` are those that somebody has chosen, None where nobody has."""

    chosen: frozenset[str] | None = None

    @abstractmethod
    def all_solved_splits(self, split: str) -> tuple[str, ...]:
        """The splits whose solved topics are those that a split may be ranked by.

        Raises:
            UsageError: there is no such split.
        """

    def solved_splits(self, split: str) -> tuple[str, ...]:
        every = self.all_solved_splits(split)
        return every if self.chosen is None else tuple(one for one in every if one in self.chosen)

    def _solved_by(self, info: TaskInfo, splits: Sequence[str]) -> Self:
        every = dict.fromkeys(one for split in info.splits for one in self.all_solved_splits(split))
        for one in splits:
            if one not in every:
                choice = refused(one, every) if every else f"{one!r}: it has none at all"
                raise UsageError(f"{info.reference} has no solved topics in the split {choice}")
        other = copy(self)
        other.chosen = frozenset(splits)
        return other
