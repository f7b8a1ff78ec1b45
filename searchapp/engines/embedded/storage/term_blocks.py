"""Which terms Lucene takes for absent before it looks: what the index of its dictionary of terms knows.

Lucene keeps the terms of a field in blocks, and in memory where each block begins and whether there are terms in it at
all, not only further blocks (`Lucene103BlockTreeTermsWriter`). A term without such a block is absent. Of any other one
Lucene finds out only when it reads the block, and lets a query that needs no scores wait with that until its documents
are asked for (`TermStates.get`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

FEWEST, MOST = 25, 48
"""Entries of a block: fewer stay in the block around, more are shared out among several blocks of one prefix."""

ITSELF = -1
"""In the place of the byte behind the prefix, for the term that is the prefix; comes before every byte."""


class _Entry(NamedTuple):
    """A term, or a block by its prefix, as what a block holds."""

    text: bytes
    is_term: bool


class _Blocks(NamedTuple):
    """The blocks of one prefix: the byte behind the prefix from which on each counts, and whether it has terms."""

    first_bytes: list[int]
    have_terms: list[bool]


class TermBlocks:
    """The blocks of a dictionary whose terms come in bytewise order."""

    def __init__(self, terms: Iterable[bytes]) -> None:
        self._by_prefix: dict[bytes, _Blocks] = {}
        self._first: bytes | None = None
        self._last = b""
        self._open: list[_Entry] = []
        self._starts: list[int] = []  # of each prefix of the last term: how many entries are open before it
        for term in terms:
            self._close(_common(self._last, term))
            if self._first is None:
                self._first = term
            self._starts += [len(self._open)] * (len(term) - len(self._starts))
            self._open.append(_Entry(term, is_term=True))
            self._last = term
        self._close(0)
        self._write(b"", 0)

    def may_hold(self, term: bytes) -> bool:
        """Whether Lucene has to read a block to know about a term."""
        if self._first is None or not self._first <= term <= self._last:
            return False
        size = next(size for size in range(len(term), -1, -1) if term[:size] in self._by_prefix)
        blocks = self._by_prefix[term[:size]]
        return blocks.have_terms[bisect_right(blocks.first_bytes, _byte(term, size)) - 1]

    def _close(self, size: int) -> None:
        """Write what begins with a prefix of the last term that is longer than `size`, the longest prefix first."""
        while len(self._starts) > size:
            start = self._starts.pop()
            if len(self._open) - start >= FEWEST:
                self._write(self._last[: len(self._starts) + 1], start)

    def _write(self, prefix: bytes, start: int) -> None:
        """Write the open entries from `start` on, which is an entry of the block around from now on."""
        entries = self._open[start:]
        blocks = _Blocks([ITSELF], [False])
        left, held = len(entries), 0
        for byte, group in groupby(entries, lambda entry: _byte(entry.text, len(prefix))):
            if held >= FEWEST and left > MOST:
                blocks.first_bytes.append(byte)
                blocks.have_terms.append(False)
                left, held = left - held, 0
            for entry in group:
                held += 1
                blocks.have_terms[-1] |= entry.is_term
        self._by_prefix[prefix] = blocks
        self._open[start:] = [_Entry(prefix, is_term=False)]


def _common(one: bytes, other: bytes) -> int:
    """How many bytes two terms have in common at the front."""
    size = min(len(one), len(other))
    if one[:size] == other[:size]:
        return size
    return next(place for place in range(size) if one[place] != other[place])


def _byte(text: bytes, place: int) -> int:
    return text[place] if place < len(text) else ITSELF
