"""The ids of documents by their numbers, kept once they were read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.storage.columns import Column
from searchapp.engines.embedded.storage.terms import Terms

FEW = 200_000
"""Up to so many documents there is room for the ids of all."""

READ_TOGETHER = 8
"""So many ids are read together in the time of one that is read alone."""

REMEMBERED = 1_000_000
"""Among more documents, how many ids are kept; all are forgotten when there are so many."""


class KnownIds(Protocol):
    """The ids of an index."""

    def of(self, documents: NDArray[Any]) -> list[str]:
        """The ids of documents, which are given as numbers of shape `(n,)`."""


def known_ids(ids: Terms, ranks: Column, by_rank: Column) -> KnownIds:
    """Those of an index: `ids` in bytewise order, each document's place there, and each place's document."""
    return _OfFew(ids, ranks, by_rank) if len(ranks) <= FEW else _OfMany(ids, ranks)


class _OfFew:
    """An array of ids, which gives those of a batch at once."""

    def __init__(self, ids: Terms, ranks: Column, by_rank: Column) -> None:
        self._ids = ids
        self._ranks = ranks
        self._by_rank = by_rank
        self._known: NDArray[np.object_] = np.full(len(ranks), None, object)
        self._read_alone = 0
        self._knows_all = False

    def of(self, documents: NDArray[Any]) -> list[str]:
        ids: list[str | None] = self._known.take(documents).tolist()
        if not self._knows_all and None in ids:
            self._read(
                [document for document, id_ in zip(documents.tolist(), ids, strict=True) if id_ is None]
            )
            ids = self._known.take(documents).tolist()
        return cast("list[str]", ids)

    def _read(self, documents: Sequence[int]) -> None:
        """Read the ids of documents; those of all once reading one by one has taken as long."""
        self._read_alone += len(documents)
        if self._read_alone * READ_TOGETHER >= len(self._known):
            self._known[self._by_rank.all()] = [id_.decode() for id_ in self._ids]
            self._knows_all = True
            return
        ranks = self._ranks.all()
        for document in documents:
            self._known[document] = self._ids[int(ranks[document])].decode()


class _OfMany(dict[int, str]):
    """The ids that were asked for."""

    def __init__(self, ids: Terms, ranks: Column) -> None:
        super().__init__()
        self._ids = ids
        self._ranks = ranks

    def of(self, documents: NDArray[Any]) -> list[str]:
        return list(map(self.__getitem__, documents.tolist()))

    def __missing__(self, document: int) -> str:
        if len(self) >= REMEMBERED:
            self.clear()
        self[document] = id_ = self._ids[int(self._ranks.all()[document])].decode()
        return id_
