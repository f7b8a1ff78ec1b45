"""The tokens of one field, turned into sorted runs of postings in bounded memory.

Tokens are collected as numbers until there are `RUN_TOKENS` of them, or `RUN_TERMS` terms, then sorted by (term,
document, position) and put aside as a run on disk; the last one, which is often the only one, is merged from memory.
Documents come in ascending order, so every document of a run comes before every document of the next, and merging the
runs of a term is no more than laying them one after the other.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.storage import arrays
from searchapp.engines.embedded.storage.arrays import ArrayOnDisk
from searchapp.engines.embedded.storage.packed import Int32s, PackedTokens
from searchapp.engines.embedded.storage.terms import TermsWriter, cut

RUN_TOKENS = 4_000_000
RUN_TERMS = 500_000
"""Terms are Python's strings until a run is put aside: of a field with a term of its own for each document, many."""

_PARTS = ("terms", "term-starts", "starts", "documents", "frequencies", "position-starts", "positions")

Numbers = ArrayOnDisk | NDArray[Any]
"""Of which a slice with both ends is taken."""


@dataclass(frozen=True, slots=True)
class Run:
    """Postings of some consecutive documents, on disk or in memory, where nobody changes what is taken of them.

    The postings of the term of rank r are `documents[starts[r]:starts[r + 1]]` with their `frequencies`; its
    positions, those of one document after those of another, `positions[position_starts[r]:position_starts[r + 1]]`.
    """

    characters: Numbers
    term_starts: Numbers
    starts: Numbers
    documents: Numbers
    frequencies: Numbers
    position_starts: Numbers
    positions: Numbers

    @classmethod
    def open(cls, folder: Path, name: str) -> Run:
        return cls(*(ArrayOnDisk(folder, f"{name}.{part}") for part in _PARTS))

    def __len__(self) -> int:
        """How many terms there are."""
        return len(self.term_starts) - 1

    def terms(self, first: int, end: int) -> list[bytes]:
        """The terms of the ranks from `first` to `end`."""
        starts = self.term_starts[first : end + 1]
        return cut(self.characters[starts[0] : starts[-1]].tobytes(), starts.tolist())


class Inverter:
    """Collects the tokens of a field, document by document."""

    def __init__(self, scratch: Path, name: str, *, run_tokens: int | None = None) -> None:
        self._scratch = scratch
        self._name = name
        self._run_tokens = run_tokens or RUN_TOKENS
        self._runs: list[str] = []
        self._clear()

    def add(self, tokens: PackedTokens, first: int) -> None:
        """Add the tokens of a batch of documents, of which the first has this number."""
        while self._count + len(tokens.terms) >= self._run_tokens and len(tokens.documents):
            # Up to the document that fills the run, so that runs do not depend on how documents come.
            ends = self._count + np.cumsum(tokens.counts)
            fitting = int(np.searchsorted(ends, self._run_tokens)) + 1
            begin, tokens = tokens.cut(fitting)
            self._take(begin, first)
            if self._count >= self._run_tokens:
                self._put_aside()
        self._take(tokens, first)
        if len(self._numbers) >= RUN_TERMS:
            self._put_aside()

    def runs(self) -> list[Run]:
        """All runs, when there is nothing more to add."""
        last = [Run(*self._sorted())] if self._count or not self._runs else []
        return [*(Run.open(self._scratch, name) for name in self._runs), *last]

    def _take(self, tokens: PackedTokens, first: int) -> None:
        number = self._numbers.__getitem__
        numbers = np.fromiter(map(number, tokens.vocabulary), np.int32, len(tokens.vocabulary))
        self._terms.append(numbers[tokens.terms])
        self._positions.append(tokens.positions)
        self._documents.append(np.repeat(tokens.documents + np.int32(first), tokens.counts))
        self._count += len(tokens.terms)

    def _clear(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__  # a new term takes the next number
        self._terms: list[Int32s] = []
        self._positions: list[Int32s] = []
        self._documents: list[Int32s] = []
        self._count = 0

    def _put_aside(self) -> None:
        """Write a run to disk."""
        name = f"{self._name}.{len(self._runs)}"
        for part, values in zip(_PARTS, self._sorted(), strict=True):
            arrays.save(self._scratch, f"{name}.{part}", values)
        self._runs.append(name)

    def _sorted(self) -> tuple[NDArray[Any], ...]:
        """What a run has of the tokens that were collected, which are then forgotten."""
        of_token = np.concatenate([np.empty(0, np.int32), *self._terms])
        used = np.zeros(len(self._numbers), bool)  # a batch that was cut has terms of both of its parts
        used[of_token] = True
        vocabulary = sorted(term for term, number in self._numbers.items() if used[number])
        rank = np.empty(len(self._numbers), np.int32)
        rank[[self._numbers[term] for term in vocabulary]] = np.arange(len(vocabulary), dtype=np.int32)

        # Stable: documents and positions stay in the order in which they came.
        of_token = rank[of_token]
        order = np.argsort(of_token, kind="stable")
        of_token = of_token[order]
        documents = np.concatenate([np.empty(0, np.int32), *self._documents])[order]

        first = np.ones(len(order), bool)  # tokens that begin a posting
        first[1:] = (of_token[1:] != of_token[:-1]) | (documents[1:] != documents[:-1])
        postings = np.flatnonzero(first)
        edges = np.arange(len(vocabulary) + 1)
        terms = TermsWriter()
        terms.add_all(term.encode() for term in vocabulary)
        frequencies = np.diff(postings, append=len(order))
        parts: tuple[NDArray[Any], ...] = (
            *terms.arrays(),
            np.searchsorted(of_token[postings], edges).astype(np.int64),
            documents[postings],
            frequencies.astype(arrays.narrowest(int(frequencies.max(initial=0)))),
            np.searchsorted(of_token, edges).astype(np.int64),
            np.concatenate([np.empty(0, np.int32), *self._positions])[order],
        )
        # It refers to the terms, which would wait for the garbage collector.
        self._numbers.default_factory = None
        self._clear()
        return parts
