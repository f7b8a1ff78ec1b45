"""The impacts of terms as one number for each document of the index, where that pays."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.storage.impacts import Impacts
from searchapp.engines.embedded.storage.reader import Numbers

Key: TypeAlias = Hashable
"""A field and a term of it, or a phrase and its boost."""

MAP_BYTES = 192 << 20
"""Memory for the impacts of terms, one for each document of the index."""

MAP_SHARE = 32
"""Terms in more than one document in this many may have their impacts kept so."""

MOST = 2048
"""Terms that are kept so at most: in a small index all memory for them would be asked of the system in vain."""

REPEATED = 4
"""In so many of the first queries of a batch a term is worth preparing."""

LOOKED_UP = 16
"""Postings that are laid out in the time of one search for a document among many."""


class Postings(Protocol):
    """The postings of a term: documents, ascending, and their impacts."""

    @property
    def key(self) -> Key: ...
    @property
    def documents(self) -> Numbers: ...
    @property
    def impacts(self) -> Impacts: ...


class LaidOut:
    """The impacts of terms that are looked up again and again, one for each document of the index.

    A term's are laid out once the searches among its postings have taken as long, so that it never takes twice as long
    as it must.
    """

    def __init__(self, count: int, limit: int) -> None:
        self._count = count
        self._width = self._bytes_of_term(count)
        self.most = min(MOST, limit // max(1, self._width))
        """Terms whose impacts may be laid out at the same time."""

        self._maps: OrderedDict[Key, Impacts] = OrderedDict()
        self._searched: dict[Key, int] = {}
        self._rooms: NDArray[np.uint8] | None = None

    @property
    def known(self) -> Mapping[Key, Impacts]:
        """What is laid out now."""
        return self._maps

    @staticmethod
    def _bytes_of_term(count: int) -> int:
        return count

    def _lay_out(self, clause: Postings, room: Impacts) -> None:
        """Write what a term has into its room, which is all 0."""
        room[clause.documents] = clause.impacts

    def of(self, clause: Postings, wanted: int) -> Impacts | None:
        """The impacts of a clause in all documents, if they are laid out; `wanted` documents are to be looked up."""
        key = clause.key
        found = self._maps.get(key)
        if found is not None:
            self._maps.move_to_end(key)
            return found
        frequency = len(clause.documents)
        if frequency * MAP_SHARE < self._count or not self.most:
            return None
        searched = self._searched.get(key, 0) + wanted
        if searched * LOOKED_UP < frequency + self._count // MAP_SHARE:
            self._searched[key] = searched
            return None
        self._searched.pop(key, None)
        found = self._room()
        found.fill(0)
        try:
            self._lay_out(clause, found)
        except IndexError:
            self._maps.clear()  # the room is nobody's
            raise
        self._maps[key] = found
        return found

    def prepare(self, wanted: Iterable[Postings]) -> None:
        """Lay out the impacts of terms that are wanted several times, before processes are forked that would do so."""
        counts: Counter[Key] = Counter()
        clauses: dict[Key, Postings] = {}
        for clause in wanted:
            clauses[clause.key] = clause
            counts[clause.key] += 1
        for key, count in counts.most_common(self.most):
            if count >= REPEATED:
                self.of(clauses[key], self._count)

    def _room(self) -> Impacts:
        """Memory for a term: new one, or that of the term that was asked for longest ago."""
        if self._rooms is None:
            # One array, which the system may have in large pages: looking up among small ones takes longer.
            self._rooms = np.empty((self.most, self._width), np.uint8)
        if len(self._maps) < self.most:
            return np.asarray(self._rooms[len(self._maps)])
        _key, found = self._maps.popitem(last=False)
        return found
