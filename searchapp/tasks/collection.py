"""What all collections have in common: the choice of solved topics by their splits, and names of indexes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Self

from searchapp.errors import UsageError
from searchapp.names import refused
from searchapp.tasks.base import TaskInfo
from searchapp.tasks.documents import DocumentSource


class CollectionBase(ABC):
    """A collection that is made another one by a choice.

    `chosen` are the splits whose solved topics somebody has chosen, None where nobody has. `indexes` are the documents
    by the names of the indexes, `renamed` those of these names that a variant has other ones for.
    """

    chosen: frozenset[str] | None = None
    indexes: Mapping[str, DocumentSource]
    renamed: Mapping[str, str] = MappingProxyType({})

    def with_indexes(self, names: Mapping[str, str]) -> Self:
        other = copy(self)
        other.indexes = {names.get(name, name): documents for name, documents in self.indexes.items()}
        other.renamed = names
        return other

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
