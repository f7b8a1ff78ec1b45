"""The terms of a field: the dictionary, searched without being loaded, and the positions of a term.

The terms lie one after the other in one array, in the order of their bytes (for UTF-8 that is the order of code
points); a second array has their beginnings. A look-up is a binary search that touches a few pages.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, islice, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.index import arrays
from searchapp.lucene.index.arrays import Column, Numbers

CHUNK = 65536


class Terms:
    """The terms of a field, or the ids of an index, by their rank in bytewise order."""

    def __init__(self, characters: Column, starts: Column) -> None:
        self._columns = characters, starts
        self._characters = memoryview(characters.unverified().data)
        # Its numbers come as Python's: look-ups are full of them.
        self._starts = memoryview(starts.unverified().data)
        self._sound = False

    @classmethod
    def open(cls, folder: Path, name: str) -> Terms:
        """The terms in the arrays of a name, which nobody could have altered yet."""
        return cls.of(lambda part: Column(arrays.load(folder, part)), name)

    @classmethod
    def of(cls, column: Callable[[str], Column], name: str) -> Terms:
        """The terms in the columns of a name, which `column` opens."""
        return cls(column(f"{name}.terms"), column(f"{name}.term-starts"))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, rank: int) -> bytes:
        if not 0 <= rank < len(self):
            raise IndexError(rank)
        if not self._sound:
            self._verify(rank, rank + 1)
        return self._characters[self._starts[rank] : self._starts[rank + 1]].tobytes()

    def _verify(self, first: int, end: int) -> None:
        """Verify what the terms of some ranks are read from."""
        characters, starts = self._columns
        starts_sound = starts.require(first, end + 1)
        self._sound = characters.require(self._starts[first], self._starts[end]) and starts_sound

    def __iter__(self) -> Iterator[bytes]:
        for first in range(0, len(self), CHUNK):
            yield from self.between(first, min(first + CHUNK, len(self)))

    def between(self, first: int, end: int) -> list[bytes]:
        """The terms of the ranks from `first` to `end`."""
        self._verify(first, end)
        starts = self._starts[first : end + 1].tolist()
        return cut(bytes(self._characters[starts[0] : starts[-1]]), starts)

    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The bytes of all terms, and where each begins and the last one ends."""
        characters, starts = self._columns
        return characters.all(), starts.all()

    def rank(self, term: str) -> int | None:
        """The rank of a term, None when it is not there."""
        sought = term.encode()
        if not self._sound:
            rank = bisect_left(self, sought)
            return rank if rank < len(self) and self[rank] == sought else None
        characters, starts = self._characters, self._starts
        low, high = 0, len(starts) - 1
        while low < high:  # bisect_left, without a call for each step
            middle = (low + high) >> 1
            if characters[starts[middle] : starts[middle + 1]].tobytes() < sought:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self[low] == sought else None

    def place_behind(self, term: str) -> int:
        """How many terms are not behind a term, which need not be there."""
        return bisect_right(self, term.encode())

    def with_prefix(self, prefix: str) -> range:
        """The ranks of the terms that begin with a prefix."""
        sought = prefix.encode()
        first = bisect_left(self, sought)
        size = len(sought)
        return range(first, bisect_left(self, True, lo=first, key=lambda term: term[:size] > sought))


def cut(characters: bytes, starts: Sequence[int]) -> list[bytes]:
    """The strings that lie one after the other, from where each begins, and the last one ends, in a longer whole."""
    base = starts[0]
    return [characters[start - base : end - base] for start, end in pairwise(starts)]


class TermsWriter:
    """Collects terms, which come in ascending order, and writes them."""

    def __init__(self) -> None:
        self._characters = bytearray()
        self._starts = [np.zeros(1, np.int64)]
        self._ends: list[int] = []

    def add(self, term: bytes) -> None:
        self._characters += term
        self._ends.append(len(self._characters))
        if len(self._ends) == CHUNK:
            self._pack()

    def add_all(self, terms: Iterable[bytes]) -> None:
        waiting = iter(terms)
        while some := list(islice(waiting, CHUNK)):
            self._ends += accumulate(map(len, some[1:]), initial=len(self._characters) + len(some[0]))
            self._characters += b"".join(some)
            self._pack()

    def write(self, folder: Path, name: str) -> None:
        characters, starts = self.arrays()
        arrays.save(folder, f"{name}.terms", characters)
        arrays.save(folder, f"{name}.term-starts", starts)

    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The bytes of all terms, and where each begins and the last one ends."""
        self._pack()
        return np.frombuffer(self._characters, np.uint8), np.concatenate(self._starts)

    def _pack(self) -> None:
        self._starts.append(np.array(self._ends, np.int64))
        self._ends = []


FEW_AMONG = 16
"""Documents of which there are so many times fewer than of the term are searched for among these."""

LEFT_OUT = 2
"""Where so many times fewer documents are wanted than there are, leaving out the others takes less time."""


class TermPositions:
    """The positions of a term, ascending, read from the first document to the last."""

    def __init__(
        self,
        documents: Numbers,
        frequencies: NDArray[np.unsignedinteger],
        positions: Column,
        start: int,
        end: int,
    ) -> None:
        """The documents where the term stands, how often in each, and from which place on to which it has positions."""
        self.documents = documents
        self._frequencies = frequencies
        self._positions = positions
        self._start = start
        self._end = end
        self._first = 0
        """The first document that was not passed over, whose positions begin at `_start`."""

    def whole(self) -> tuple[Numbers, NDArray[np.unsignedinteger], Numbers]:
        """All documents, how often the term stands in each, and all positions; unless some were passed over."""
        return self.documents, self._frequencies, self._positions[self._start : self._end]

    def of(self, wanted: Numbers) -> tuple[Numbers, NDArray[np.int64], Numbers]:
        """Documents, how often the term stands in each, and its positions, one document after the other.

        `wanted` are some documents, ascending, that all have the term and come after those that were asked for before.
        Others between them may be in the answer too, where it would take longer to leave them out.
        """
        first = self._first + int(self.documents[self._first :].searchsorted(wanted[0]))
        end = first + int(self.documents[first:].searchsorted(wanted[-1], "right"))
        self._start += int(self._frequencies[self._first : first].sum(dtype=np.int64))
        self._first = first
        documents, frequencies = self.documents[first:end], self._frequencies[first:end]
        positions = self._positions[self._start : self._start + int(frequencies.sum(dtype=np.int64))]
        if len(wanted) * LEFT_OUT >= len(documents):
            return documents, frequencies.astype(np.int64), positions
        if len(wanted) * FEW_AMONG < len(documents):
            at = documents.searchsorted(wanted)
        else:
            marked = np.zeros(wanted[-1] - wanted[0] + 1, bool)
            marked[wanted - wanted[0]] = True
            at = np.flatnonzero(marked.take(documents - wanted[0]))
        counts = frequencies.take(at).astype(np.int64)
        # From each document to the next one; the first of all stands at the beginning.
        starts = np.cumsum(np.add.reduceat(frequencies, at, dtype=np.int64))
        return wanted, counts, positions.take(_ranges(np.append(0, starts[:-1]), counts))


def _ranges(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """So many numbers from each start on, one range after the other; no range is empty."""
    ends = np.cumsum(counts)
    steps = np.ones(ends[-1], np.int64)
    steps[0] = starts[0]
    steps[ends[:-1]] = starts[1:] - starts[:-1] - counts[:-1] + 1
    return np.cumsum(steps, out=steps)
