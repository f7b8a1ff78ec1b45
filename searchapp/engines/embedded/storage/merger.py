"""The runs of a field merged into the postings that are searched.

The dictionaries of all runs are read together, some thousand terms of each at a time. What is known of their postings
then says where each run's stand in the merged files, which are filled some million tokens at a time. So the memory
that it takes does not grow with the number of runs, nor with that of their postings.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.storage import arrays
from searchapp.engines.embedded.storage.arrays import ArrayFile
from searchapp.engines.embedded.storage.inverter import Numbers, Run
from searchapp.engines.embedded.storage.terms import TermsWriter

MERGED_TERMS = 1 << 18
"""Terms that are read of all runs together at a time."""

FEWEST_TERMS = 1 << 10
"""Terms of a run that are read at a time, however many runs there are."""

MERGED_TOKENS = 1 << 21
"""Tokens of several terms that are merged at a time; those of one term are copied so many at a time."""

Int64s = NDArray[np.int64]


def merge(runs: Sequence[Run], folder: Path, name: str, *, positional: bool) -> tuple[int, int]:
    """Write the postings of a field; returns the number of postings and that of tokens.

    A field that is not `positional` counts a term once a document, as an index of documents alone does.
    """
    postings = sum(len(run.documents) for run in runs)
    tokens = sum(len(run.positions) for run in runs)
    terms = TermsWriter()
    starts, position_starts = _Starts(), _Starts()
    with ExitStack() as stack:

        def file(part: str, dtype: np.dtype[Any], length: int) -> ArrayFile:
            return stack.enter_context(ArrayFile(folder, f"{name}.{part}", dtype, length))

        of_postings = {"documents": file("documents", np.dtype(np.int32), postings)}
        of_positions = {}
        if positional:
            frequencies = np.result_type(*(run.frequencies.dtype for run in runs))
            of_postings["frequencies"] = file("frequencies", frequencies, postings)
            of_positions["positions"] = file("positions", np.dtype(np.int32), tokens)
        for batch in _batches(runs):
            terms.add_all(batch.terms)
            tokens_of_terms = batch.sizes("position_starts")
            starts.add(batch.sizes("starts"))
            position_starts.add(tokens_of_terms)
            batch.write(of_postings, of_positions, tokens_of_terms)
    terms.write(folder, name)
    arrays.save(folder, f"{name}.starts", starts.all())
    if positional:
        arrays.save(folder, f"{name}.position-starts", position_starts.all())
    return postings, tokens if positional else postings


class _Starts:
    """Where the postings of each term begin, from how many each of them has."""

    def __init__(self) -> None:
        self._pieces = [np.zeros(1, np.int64)]

    def add(self, sizes: Int64s) -> None:
        self._pieces.append(self._pieces[-1][-1] + np.cumsum(sizes))

    def all(self) -> Int64s:
        return np.concatenate(self._pieces)


@dataclass(frozen=True, slots=True)
class _Part:
    """What a run has of the terms of a batch.

    `numbers` are the places of its terms in the batch, ascending; `starts` and `position_starts` say where the
    postings and positions of each begin in the run, and where the last one's end.
    """

    run: Run
    numbers: NDArray[np.int32]
    starts: Int64s
    position_starts: Int64s


@dataclass(frozen=True, slots=True)
class _Batch:
    """Some terms that follow each other in the merged dictionary, and what each run has of them, in order."""

    terms: list[bytes]
    parts: list[_Part]

    def sizes(self, name: str) -> Int64s:
        """How many postings each term has in all runs by the `starts`, or positions by the `position_starts`."""
        return _sizes(len(self.terms), ((part.numbers, getattr(part, name)) for part in self.parts))

    def write(
        self, of_postings: dict[str, ArrayFile], of_positions: dict[str, ArrayFile], tokens: Int64s
    ) -> None:
        """Append the postings of the terms, by the names of a run's arrays, and their positions.

        `tokens` says how many positions each term has in all runs.
        """
        ends = np.cumsum(tokens)
        first = 0
        while first < len(self.terms):
            most = ends[first] - tokens[first] + MERGED_TOKENS
            end = max(first + 1, int(np.searchsorted(ends, most, "right")))
            edges = [np.searchsorted(part.numbers, (first, end)).tolist() for part in self.parts]
            held = [(part, *edge) for part, edge in zip(self.parts, edges, strict=True) if edge[0] < edge[1]]
            for files, name in ((of_postings, "starts"), (of_positions, "position_starts")):
                if files:
                    pieces = [_Piece.of(part, begin, stop, name) for part, begin, stop in held]
                    _append(files, first, end, pieces)
            first = end


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a run has of some neighbouring terms of a batch, as `_Part`; `starts` are of postings or of positions."""

    run: Run
    numbers: NDArray[np.int32]
    starts: Int64s

    @classmethod
    def of(cls, part: _Part, first: int, end: int, name: str) -> _Piece:
        return cls(part.run, part.numbers[first:end], getattr(part, name)[first : end + 1])

    def source(self, name: str) -> Numbers:
        numbers: Numbers = getattr(self.run, name)
        return numbers


def _append(files: dict[str, ArrayFile], first: int, end: int, pieces: Sequence[_Piece]) -> None:
    """Append what runs have of the terms from `first` to `end`: term by term, run after run."""
    if len(pieces) == 1 or end - first == 1:
        for name, file in files.items():
            for piece in pieces:
                stop = int(piece.starts[-1])
                for begin in range(int(piece.starts[0]), stop, MERGED_TOKENS):
                    file.append(piece.source(name)[begin : min(begin + MERGED_TOKENS, stop)])
        return
    sizes = _sizes(end - first, ((piece.numbers - first, piece.starts) for piece in pieces))
    free = np.cumsum(sizes) - sizes  # where the next run's values of each term go
    total = int(sizes.sum())
    merged = {name: np.empty(total, file.dtype) for name, file in files.items()}
    for piece in pieces:
        terms, counts = piece.numbers - first, np.diff(piece.starts)
        places = np.repeat(free[terms] - (piece.starts[:-1] - piece.starts[0]), counts)
        places += np.arange(len(places))
        for name, values in merged.items():
            values[places] = piece.source(name)[piece.starts[0] : piece.starts[-1]]
        free[terms] += counts
    for name, file in files.items():
        file.append(merged[name])


def _sizes(count: int, parts: Iterable[tuple[NDArray[np.int32], Int64s]]) -> Int64s:
    """How much each of so many terms has in all parts: each gives its terms, and where what they have begins."""
    sizes = np.zeros(count, np.int64)
    for numbers, starts in parts:
        sizes[numbers] += np.diff(starts)
    return sizes


class _Cursor:
    """The terms of a run that are not merged yet, some of them in memory."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._first = 0
        self._terms: list[bytes] = []

    def fill(self, most: int) -> None:
        """Have so many terms in memory, or all that are left."""
        known = self._first + len(self._terms)
        end = min(self._first + most, len(self._run))
        if known < end:
            self._terms += self._run.terms(known, end)

    @property
    def last(self) -> bytes | None:
        """The last term in memory; None if no others follow."""
        if self._first + len(self._terms) == len(self._run):
            return None
        return self._terms[-1]

    def take(self, last: bytes | None) -> list[bytes]:
        """The terms up to and including `last`, without one all of them, which are in memory."""
        end = len(self._terms) if last is None else bisect_right(self._terms, last)
        taken, self._terms = self._terms[:end], self._terms[end:]
        return taken

    def part(self, terms: list[bytes], numbers: NDArray[np.int32]) -> _Part:
        """What the run has of the terms that were just taken."""
        begin, self._first = self._first, self._first + len(terms)
        wanted = slice(begin, self._first + 1)
        return _Part(self._run, numbers, self._run.starts[wanted], self._run.position_starts[wanted])


def _batches(runs: Sequence[Run]) -> Iterator[_Batch]:
    """All terms in order; each comes once, with all runs that have it."""
    cursors = [_Cursor(run) for run in runs]
    most = max(FEWEST_TERMS, MERGED_TERMS // len(runs))
    while True:
        for cursor in cursors:
            cursor.fill(most)
        # Whatever comes up to the least of these is in memory.
        last = min((cursor.last for cursor in cursors if cursor.last is not None), default=None)
        taken = [(cursor, terms) for cursor in cursors if (terms := cursor.take(last))]
        if not taken:
            return
        every = taken[0][1] if len(taken) == 1 else sorted(set().union(*(terms for _cursor, terms in taken)))
        number = dict(zip(every, count(), strict=False))
        parts = []
        for cursor, terms in taken:
            numbers = np.fromiter(map(number.__getitem__, terms), np.int32, len(terms))
            parts.append(cursor.part(terms, numbers))
        yield _Batch(every, parts)
