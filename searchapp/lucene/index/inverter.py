"""Invert the tokens of a field: sort them into runs, and merge the runs into postings, in bounded memory.

`PackedTokens`: tokens of a batch of documents as arrays, as other processes send them; each term goes once a batch.
`Inverter`: tokens are collected as numbers until there are `RUN_TOKENS` of them, or `RUN_TERMS` terms, then sorted
by (term, document, position) and written to disk as a run; the last one is merged from memory. Documents come in
ascending order, so the postings of a term are those of the first run, then of the next.
`merge`: reads the dictionaries of all runs together, some thousand terms of each at a time, computes the place of
each run's postings in the merged files, and fills these some million tokens at a time. So memory does not grow with
the number of runs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.index import arrays
from searchapp.lucene.index.arrays import ArrayFile, ArrayOnDisk, Int64s, Numbers
from searchapp.lucene.index.terms import TermsWriter, cut

DocumentTokens = tuple[int, Sequence[str], Sequence[int]]
"""The number of a document in its batch, the terms that stand in a field, and their positions."""


@dataclass(frozen=True, slots=True)
class PackedTokens:
    """Tokens in the order in which the analyzer gives them, document after document.

    `terms` are numbers of the vocabulary, a token each, like `positions`; `documents` are numbers in the batch, in
    ascending order, and `counts` says how many tokens each of them has.
    """

    vocabulary: list[str]
    terms: Numbers
    positions: Numbers
    documents: Numbers
    counts: Numbers

    @classmethod
    def of(cls, documents: Iterable[DocumentTokens]) -> PackedTokens:
        """Pack the tokens of documents."""
        numbers: list[int] = []
        counts: list[int] = []
        terms: list[str] = []
        positions: list[int] = []
        for number, some, places in documents:
            numbers.append(number)
            counts.append(len(some))
            terms += some
            positions += places
        of_term: defaultdict[str, int] = defaultdict()
        of_term.default_factory = of_term.__len__  # a new term takes the next number
        packed = np.fromiter(map(of_term.__getitem__, terms), np.int32, len(terms))
        # It refers to the terms, which would wait for the garbage collector.
        of_term.default_factory = None
        return cls(
            list(of_term),
            packed,
            np.fromiter(positions, np.int32, len(positions)),
            np.array(numbers, np.int32),
            np.array(counts, np.int32),
        )

    @classmethod
    def one_each(cls, terms: list[str]) -> PackedTokens:
        """The tokens of documents which have one term each."""
        numbers = np.arange(len(terms), dtype=np.int32)
        return cls(terms, numbers, np.zeros_like(numbers), numbers, np.ones_like(numbers))

    def cut(self, documents: int) -> tuple[PackedTokens, PackedTokens]:
        """The tokens of the first documents, and those of the others."""
        tokens = int(self.counts[:documents].sum())
        first = PackedTokens(
            self.vocabulary,
            self.terms[:tokens],
            self.positions[:tokens],
            self.documents[:documents],
            self.counts[:documents],
        )
        rest = PackedTokens(
            self.vocabulary,
            self.terms[tokens:],
            self.positions[tokens:],
            self.documents[documents:],
            self.counts[documents:],
        )
        return first, rest


RUN_TOKENS = 4_000_000
RUN_TERMS = 500_000
"""Terms are Python's strings until a run is put aside: of a field with a term of its own for each document, many."""

_PARTS = ("terms", "term-starts", "starts", "documents", "frequencies", "position-starts", "positions")

RunArray = ArrayOnDisk | NDArray[Any]
"""Of which a slice with both ends is taken."""


@dataclass(frozen=True, slots=True)
class Run:
    """Postings of some consecutive documents, on disk or in memory, where nobody changes what is taken of them.

    The postings of the term of rank r are `documents[starts[r]:starts[r + 1]]` with their `frequencies`; its
    positions, those of one document after those of another, `positions[position_starts[r]:position_starts[r + 1]]`.
    """

    characters: RunArray
    term_starts: RunArray
    starts: RunArray
    documents: RunArray
    frequencies: RunArray
    position_starts: RunArray
    positions: RunArray

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
        self._terms: list[Numbers] = []
        self._positions: list[Numbers] = []
        self._documents: list[Numbers] = []
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


MERGED_TERMS = 1 << 18
"""Terms that are read of all runs together at a time."""

FEWEST_TERMS = 1 << 10
"""Terms of a run that are read at a time, however many runs there are."""

MERGED_TOKENS = 1 << 21
"""Tokens of several terms that are merged at a time; those of one term are copied so many at a time."""


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
    numbers: Numbers
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
    numbers: Numbers
    starts: Int64s

    @classmethod
    def of(cls, part: _Part, first: int, end: int, name: str) -> _Piece:
        return cls(part.run, part.numbers[first:end], getattr(part, name)[first : end + 1])

    def source(self, name: str) -> RunArray:
        numbers: RunArray = getattr(self.run, name)
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


def _sizes(count: int, parts: Iterable[tuple[Numbers, Int64s]]) -> Int64s:
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

    def part(self, terms: list[bytes], numbers: Numbers) -> _Part:
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
        every = taken[0][1]
        if len(taken) > 1:  # sorted lists one after the other are merged by sorting them
            every = list(dict.fromkeys(sorted(chain.from_iterable(terms for _cursor, terms in taken))))
        number = dict(zip(every, count(), strict=False))
        parts = []
        for cursor, terms in taken:
            numbers = np.fromiter(map(number.__getitem__, terms), np.int32, len(terms))
            parts.append(cursor.part(terms, numbers))
        yield _Batch(every, parts)
