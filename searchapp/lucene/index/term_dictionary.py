"""Term dictionaries: the terms of a field, or the ids of an index, in bytewise order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, islice, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.index.arrays import Int64s, StoredArray, save
from searchapp.lucene.index.packed import BLOCK, PackedStarts, open_starts, save_starts

CHUNK = 65536  # terms read or packed at a time


class Terms:
    """The terms of a field, or the ids of an index, by rank in bytewise order (UTF-8: order of code points).

    One array contains the concatenated terms, another their starts. A look-up is a binary search in the mapped files.
    """

    def __init__(self, characters: StoredArray, starts: StoredArray | PackedStarts) -> None:
        self._columns = characters, starts
        self._characters = memoryview(characters.unverified().data)

    @classmethod
    def open(cls, open_array: Callable[[str], StoredArray], name: str, *, is_packed: bool) -> Terms:
        starts = open_starts(open_array, f"{name}.term-starts", is_packed=is_packed)
        return cls(open_array(f"{name}.terms"), starts)

    def __len__(self) -> int:
        return len(self._columns[1]) - 1

    def __getitem__(self, rank: int) -> bytes:
        if not 0 <= rank < len(self):
            raise IndexError(rank)
        return self._content(*self._columns[1].pair(rank))

    def _content(self, begin: int, end: int) -> bytes:
        if not self._columns[0].is_verified:
            self._columns[0].require(begin, end)
        return self._characters[begin:end].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        for first in range(0, len(self), CHUNK):
            starts = self._columns[1][first : min(first + CHUNK, len(self)) + 1].tolist()
            yield from split_terms(self._content(starts[0], starts[-1]), starts)

    def arrays(self) -> tuple[NDArray[np.uint8], Int64s]:
        """Return the bytes of all terms, and the start of each, followed by the end of the last."""
        characters, starts = self._columns
        return characters.all(), starts.all()

    def code_points(self, ranks: range) -> tuple[NDArray[np.uint32], Int64s]:
        """Return the code points of consecutive terms, and the start of each, followed by the end of the last."""
        characters, starts = self.arrays()
        own = starts[ranks.start : ranks.stop + 1]
        piece = characters[own[0] : own[-1]]
        points = np.frombuffer(piece.tobytes().decode().encode("utf-32-le"), np.dtype("<u4"))
        return points, np.append(0, np.cumsum((piece & 0xC0) != 0x80))[own - own[0]]

    @cached_property
    def shapes(self) -> tuple[Int64s, NDArray[np.uint32]]:
        """The number of characters of each term, and the set of their code points modulo 32, as bits."""
        points, begins = self.code_points(range(len(self)))
        lengths = np.diff(begins)
        sets = np.zeros(len(self), np.uint32)
        filled = np.flatnonzero(lengths)
        if len(filled):
            bits = np.left_shift(np.uint32(1), points & np.uint32(31))
            sets[filled] = np.bitwise_or.reduceat(bits, begins[filled])
        return lengths, sets

    def rank(self, term: str) -> int | None:
        encoded = term.encode()
        rank = self._first_that(encoded.__le__)
        return rank if rank < len(self) and self[rank] == encoded else None

    def insertion(self, term: str, *, is_after: bool) -> int:
        """Return the rank of the first term that does not precede a term, or that follows it."""
        encoded = term.encode()
        return self._first_that(encoded.__lt__ if is_after else encoded.__le__)

    def with_prefix(self, prefix: str) -> range:
        encoded = prefix.encode()
        size = len(encoded)
        first = self._first_that(encoded.__le__)
        return range(first, self._first_that(lambda term: term[:size] > encoded))

    def _first_that(self, follows: Callable[[bytes], bool]) -> int:
        """Return the rank of the first term for which a function, true for all later terms too, is true."""
        starts = self._columns[1]
        low, high = 0, -(-len(self) // BLOCK)
        while low < high:  # the first block whose first term follows
            middle = (low + high) >> 1
            if follows(self._content(*starts.pair(middle * BLOCK))):
                high = middle
            else:
                low = middle + 1
        if not low:
            return 0
        first = (low - 1) * BLOCK
        bounds = starts[first : min(first + BLOCK, len(self)) + 1].tolist()
        terms = split_terms(self._content(bounds[0], bounds[-1]), bounds)
        return first + bisect_left(terms, True, lo=1, key=follows)


def split_terms(characters: bytes, starts: Sequence[int]) -> list[bytes]:
    """Split concatenated terms at `starts`, which are offsets in a longer array and include the end."""
    base = starts[0]
    return [characters[start - base : end - base] for start, end in pairwise(starts)]


class TermsWriter:
    """Collects ascending terms, and writes them."""

    def __init__(self) -> None:
        self._characters = bytearray()
        self._starts = [np.zeros(1, np.int64)]

    def add(self, terms: Iterable[bytes]) -> None:
        remaining = iter(terms)
        while chunk := list(islice(remaining, CHUNK)):
            ends = accumulate(map(len, chunk[1:]), initial=len(self._characters) + len(chunk[0]))
            self._starts.append(np.fromiter(ends, np.int64, len(chunk)))
            self._characters += b"".join(chunk)

    def write(self, folder: Path, name: str) -> None:
        characters, starts = self.arrays()
        save(folder, f"{name}.terms", characters)
        save_starts(folder, f"{name}.term-starts", starts)

    def arrays(self) -> tuple[NDArray[np.uint8], Int64s]:
        return np.frombuffer(self._characters, np.uint8), np.concatenate(self._starts)
