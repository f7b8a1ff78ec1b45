"""Inversion of tokens: sort them into runs, and merge the runs into postings, in bounded memory.

The `Inverter` writes a run after `RUN_TOKENS` tokens or `RUN_TERMS` terms, sorted by (term, document, position); the
last run stays in memory. `merge` reads the dictionaries of all runs in parallel.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import native
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.index import arrays
from searchapp.lucene.index.arrays import (
    ArrayReader,
    Int64s,
    Numbers,
    StoredArray,
)
from searchapp.lucene.index.packed import (
    DocumentsFile,
    FrequenciesFile,
    PackedDocuments,
    PackedFile,
    PackedFrequencies,
    PackedNumbers,
    PackedStarts,
    Sliced,
    open_starts,
    save_starts,
)
from searchapp.lucene.index.term_dictionary import TermsWriter, split_terms

RUN_TOKENS = 1_000_000
RUN_TERMS = 125_000  # terms are Python strings until a run is written

MERGED_TERMS = 1 << 18  # terms of all runs read at a time

FEWEST_TERMS = 1 << 10  # minimum number of terms of a run read at a time

MERGED_TOKENS = 1 << 21  # tokens merged or copied at a time


def offsets(counts: Int64s) -> Int64s:
    """Return the start of each of consecutive pieces, given their lengths, and the end of the last."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def narrow(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return numbers, which are not negative, in the narrowest unsigned type that has them all."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _numbering() -> defaultdict[str, int]:
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


@dataclass(frozen=True, slots=True)
class PackedTokens:
    """Tokens in the order of analysis, document by document."""

    vocabulary: list[str]
    terms: Numbers  # index of each token's term in the vocabulary
    positions: Numbers
    documents: Numbers  # numbers in the batch, ascending
    counts: Numbers  # number of tokens of each document

    @classmethod
    def of(cls, documents: Iterable[tuple[int, Sequence[str], Sequence[int]]]) -> PackedTokens:
        """Pack the tokens of documents, given as number in the batch, terms and positions."""
        numbers: list[int] = []
        counts: list[int] = []
        terms: list[str] = []
        positions: list[int] = []
        for number, document_terms, document_positions in documents:
            numbers.append(number)
            counts.append(len(document_terms))
            terms += document_terms
            positions += document_positions
        numbering = _numbering()
        packed = np.fromiter(map(numbering.__getitem__, terms), np.int32, len(terms))
        numbering.default_factory = None  # ends the reference cycle that keeps the terms
        return cls(
            list(numbering),
            packed,
            np.fromiter(positions, np.int32, len(positions)),
            np.array(numbers, np.int32),
            np.array(counts, np.int32),
        )

    def distinct(self) -> PackedTokens:
        """Return one token for each term of a document, at position 0."""
        owners = np.repeat(np.arange(len(self.counts), dtype=np.int64), self.counts)
        size = max(1, len(self.vocabulary))
        tokens = np.unique(owners * size + self.terms)
        terms = (tokens % size).astype(np.int32)
        counts = np.bincount(tokens // size, minlength=len(self.counts)).astype(np.int32)
        return PackedTokens(self.vocabulary, terms, np.zeros_like(terms), self.documents, counts)

    @classmethod
    def unique(cls, terms: list[str]) -> PackedTokens:
        """Pack documents with one unique term each."""
        numbers = np.arange(len(terms), dtype=np.int32)
        return cls(terms, numbers, np.zeros_like(numbers), numbers, np.ones_like(numbers))

    def split(self, documents: int) -> tuple[PackedTokens, PackedTokens]:
        tokens = int(self.counts[:documents].sum())
        head, tail = (
            PackedTokens(
                self.vocabulary,
                self.terms[of_tokens],
                self.positions[of_tokens],
                self.documents[of_documents],
                self.counts[of_documents],
            )
            for of_tokens, of_documents in (
                (slice(tokens), slice(documents)),
                (slice(tokens, None), slice(documents, None)),
            )
        )
        return head, tail


class PostingsRun(NamedTuple):
    """Immutable postings of consecutive documents, on disk or in memory.

    For the term of rank r, `documents[starts[r]:starts[r + 1]]` are its documents with their `frequencies`, and
    `positions[position_starts[r]:position_starts[r + 1]]` its positions, document by document.
    """

    characters: Sliced
    term_starts: Sliced
    starts: Sliced
    documents: Sliced
    frequencies: Sliced
    position_starts: Sliced
    positions: Sliced

    @classmethod
    def open(cls, folder: Path, name: str) -> PostingsRun:
        return cls(*(ArrayReader(folder, f"{name}.{part}") for part in cls._fields))

    def save(self, folder: Path, name: str) -> None:
        for part, values in zip(self._fields, self, strict=True):
            assert isinstance(values, np.ndarray)
            arrays.save(folder, f"{name}.{part}", values)

    @property
    def term_count(self) -> int:
        return len(self.term_starts) - 1

    def terms(self, first: int, end: int) -> list[bytes]:
        starts = self.term_starts[first : end + 1]
        return split_terms(self.characters[starts[0] : starts[-1]].tobytes(), starts.tolist())


class Inverter:
    """Collects the tokens of a field, document by document."""

    def __init__(self, scratch: Path, name: str) -> None:
        self._scratch = scratch
        self._name = name
        self._runs: list[str] = []
        self._clear()

    def _clear(self) -> None:
        self._numbers = _numbering()
        self._terms: list[Numbers] = []
        self._positions: list[Numbers] = []
        self._documents: list[Numbers] = []
        self._count = 0

    def add(self, tokens: PackedTokens, first: int) -> None:
        """Add the tokens of a batch of documents, numbered from `first`."""
        while self._count + len(tokens.terms) >= RUN_TOKENS and len(tokens.documents):
            # A run ends with the document that fills it, so that runs do not depend on the batches.
            ends = self._count + np.cumsum(tokens.counts)
            head, tokens = tokens.split(int(np.searchsorted(ends, RUN_TOKENS)) + 1)
            self._collect(head, first)
            if self._count >= RUN_TOKENS:
                self._write_run()
        self._collect(tokens, first)
        if len(self._numbers) >= RUN_TERMS:
            self._write_run()

    def runs(self) -> list[PostingsRun]:
        last = [self._sorted()] if self._count or not self._runs else []
        return [*(PostingsRun.open(self._scratch, name) for name in self._runs), *last]

    def _collect(self, tokens: PackedTokens, first: int) -> None:
        number = self._numbers.__getitem__
        numbers = np.fromiter(map(number, tokens.vocabulary), np.int32, len(tokens.vocabulary))
        self._terms.append(numbers[tokens.terms])
        self._positions.append(tokens.positions)
        self._documents.append(np.repeat(tokens.documents + np.int32(first), tokens.counts))
        self._count += len(tokens.terms)

    def _write_run(self) -> None:
        name = f"{self._name}.{len(self._runs)}"
        self._sorted().save(self._scratch, name)
        self._runs.append(name)

    def _sorted(self) -> PostingsRun:
        token_terms = np.concatenate([np.empty(0, np.int32), *self._terms])
        is_used = np.zeros(len(self._numbers), bool)  # a split leaves unused terms in the vocabulary
        is_used[token_terms] = True
        vocabulary = list(self._numbers)
        numbers = np.array(sorted(range(len(vocabulary)), key=vocabulary.__getitem__), np.int32)
        numbers = numbers[is_used[numbers]]
        rank = np.empty(len(vocabulary), np.int32)
        rank[numbers] = np.arange(len(numbers), dtype=np.int32)

        terms = TermsWriter()
        terms.add(map(str.encode, map(vocabulary.__getitem__, numbers.tolist())))
        documents = np.concatenate([np.empty(0, np.int32), *self._documents])
        positions = np.concatenate([np.empty(0, np.int32), *self._positions])
        postings = inverted(rank[token_terms], documents, positions, len(numbers))
        self._numbers.default_factory = None  # ends the reference cycle that keeps the terms
        self._clear()
        return PostingsRun(*terms.arrays(), *postings)


class Inverted(NamedTuple):
    """The arrays of a `PostingsRun` without its terms."""

    starts: Int64s
    documents: Numbers
    frequencies: NDArray[Any]
    position_starts: Int64s
    positions: NDArray[Any]


_TOKENS = struct.Struct("=11q")  # `Tokens` of native/inversion.c


def inverted(token_terms: Numbers, documents: Numbers, positions: Numbers, term_count: int) -> Inverted:
    """Sort tokens, given in the order of documents and positions, by the ranks of their terms."""
    library = native.library()
    if library is None:
        return _inverted_by_numpy(token_terms, documents, positions, term_count)
    count = len(token_terms)
    starts, position_starts = np.zeros((2, term_count + 1), np.int64)
    posting_documents, sorted_positions = np.empty((2, count), np.int32)
    frequencies = np.empty(count, np.uint32)
    last = np.full(term_count, -1, np.int32)
    request = _TOKENS.pack(
        *(count, token_terms.ctypes.data, documents.ctypes.data, positions.ctypes.data),
        *(term_count, starts.ctypes.data, position_starts.ctypes.data, posting_documents.ctypes.data),
        *(frequencies.ctypes.data, sorted_positions.ctypes.data, last.ctypes.data),
    )
    library.searchapp_invert(request)
    postings = int(starts[-1])
    return Inverted(
        starts,
        posting_documents[:postings].copy(),
        narrow(frequencies[:postings]),
        position_starts,
        narrow(sorted_positions),
    )


def _inverted_by_numpy(
    token_terms: Numbers, documents: Numbers, positions: Numbers, term_count: int
) -> Inverted:
    order = np.argsort(token_terms, kind="stable")  # keeps documents and positions ascending
    token_terms = token_terms[order]
    documents = documents[order]

    begins_posting = np.ones(len(order), bool)
    begins_posting[1:] = (token_terms[1:] != token_terms[:-1]) | (documents[1:] != documents[:-1])
    postings = np.flatnonzero(begins_posting)
    ranks = np.arange(term_count + 1)
    return Inverted(
        starts=np.searchsorted(token_terms[postings], ranks).astype(np.int64),
        documents=documents[postings],
        frequencies=narrow(np.diff(postings, append=len(order))),
        position_starts=np.searchsorted(token_terms, ranks).astype(np.int64),
        positions=narrow(positions[order]),
    )


class _RunTerms(NamedTuple):
    run: PostingsRun
    numbers: Numbers  # indices in the batch, ascending
    starts: Int64s  # start of the postings of each, and the end of the last
    position_starts: Int64s

    def between(self, first: int, end: int) -> _RunTerms:
        """Return the terms from `first` to `end`, numbered from 0."""
        begin, stop = np.searchsorted(self.numbers, (first, end)).tolist()
        edges = slice(begin, stop + 1)
        return _RunTerms(
            self.run, self.numbers[begin:stop] - first, self.starts[edges], self.position_starts[edges]
        )


def merge(runs: Sequence[PostingsRun], folder: Path, name: str, *, positional: bool) -> tuple[int, int]:
    """Write the postings of a field; return the numbers of postings and of tokens.

    If not `positional`, each posting counts as one token, as in an index without frequencies.
    """
    postings = sum(len(run.documents) for run in runs)
    tokens = sum(len(run.positions) for run in runs)
    terms = TermsWriter()
    posting_counts = [np.empty(0, np.int64)]
    with ExitStack() as stack:
        documents = stack.enter_context(DocumentsFile(folder, f"{name}.documents"))
        posting_files: dict[str, PackedFile] = {"documents": documents}
        position_files: dict[str, PackedFile] = {}
        if positional:
            posting_files["frequencies"] = stack.enter_context(FrequenciesFile(folder, f"{name}.frequencies"))
            position_files["positions"] = stack.enter_context(PackedFile(folder, f"{name}.positions"))
        for batch, run_terms in _batches(runs):
            terms.add(batch)
            size = len(batch)
            counts = _sum_counts(size, ((some.numbers, some.starts) for some in run_terms))
            posting_counts.append(counts)
            documents.begin_terms(counts)
            position_counts = _sum_counts(size, ((some.numbers, some.position_starts) for some in run_terms))
            for first, end in _windows(position_counts):
                parts = [some.between(first, end) for some in run_terms]
                parts = [part for part in parts if len(part.numbers)]
                pieces = [(part.run, part.numbers, part.starts) for part in parts]
                _append(posting_files, end - first, pieces)
                if positional:
                    pieces = [(part.run, part.numbers, part.position_starts) for part in parts]
                    _append(position_files, end - first, pieces)
    terms.write(folder, name)
    save_starts(folder, f"{name}.starts", offsets(np.concatenate(posting_counts)))
    return postings, tokens if positional else postings


def _windows(counts: Int64s) -> Iterator[tuple[int, int]]:
    """Yield ranges of terms with at most `MERGED_TOKENS` tokens; a term with more is its own range."""
    ends = np.cumsum(counts)
    first = 0
    while first < len(counts):
        limit = ends[first] - counts[first] + MERGED_TOKENS
        end = max(first + 1, int(np.searchsorted(ends, limit, "right")))
        yield first, end
        first = end


def _append(
    files: dict[str, PackedFile], term_count: int, pieces: Sequence[tuple[PostingsRun, Numbers, Int64s]]
) -> None:
    """Append the elements of runs, by term and then by run.

    A piece is a run, the numbers of its terms, and the starts of their elements in the run.
    """
    if len(pieces) == 1 or term_count == 1:
        for name, file in files.items():
            for run, _numbers, starts in pieces:
                stop = int(starts[-1])
                for begin in range(int(starts[0]), stop, MERGED_TOKENS):
                    file.append(getattr(run, name)[begin : min(begin + MERGED_TOKENS, stop)])
        return
    sizes = _sum_counts(term_count, ((numbers, starts) for _run, numbers, starts in pieces))
    free = np.cumsum(sizes) - sizes  # target of the next run's elements of each term
    merged = {name: np.empty(int(sizes.sum()), np.int32) for name in files}
    for run, numbers, starts in pieces:
        counts = np.diff(starts)
        targets = np.repeat(free[numbers] - (starts[:-1] - starts[0]), counts)
        targets += np.arange(len(targets))
        for name, values in merged.items():
            values[targets] = getattr(run, name)[starts[0] : starts[-1]]
        free[numbers] += counts
    for name, file in files.items():
        file.append(merged[name])


def _sum_counts(term_count: int, pieces: Iterable[tuple[Numbers, Int64s]]) -> Int64s:
    counts = np.zeros(term_count, np.int64)
    for numbers, starts in pieces:
        counts[numbers] += np.diff(starts)
    return counts


class _RunCursor:
    """The unmerged terms of a run, some of them in memory."""

    def __init__(self, run: PostingsRun) -> None:
        self._run = run
        self._first = 0
        self._terms: list[bytes] = []

    def fill(self, most: int) -> None:
        known = self._first + len(self._terms)
        end = min(self._first + most, self._run.term_count)
        if known < end:
            self._terms += self._run.terms(known, end)

    @property
    def last(self) -> bytes | None:
        """The last term in memory; None if it is the last of the run."""
        if self._first + len(self._terms) == self._run.term_count:
            return None
        return self._terms[-1]

    def take(self, last: bytes | None) -> list[bytes]:
        """Remove and return the terms in memory up to and including `last`; None: all."""
        end = len(self._terms) if last is None else bisect_right(self._terms, last)
        terms, self._terms = self._terms[:end], self._terms[end:]
        return terms

    def run_terms(self, count: int, numbers: Numbers) -> _RunTerms:
        """Return the postings of the `count` terms just taken, with their numbers in the batch."""
        begin, self._first = self._first, self._first + count
        edges = slice(begin, self._first + 1)
        return _RunTerms(self._run, numbers, self._run.starts[edges], self._run.position_starts[edges])


def _batches(runs: Sequence[PostingsRun]) -> Iterator[tuple[list[bytes], list[_RunTerms]]]:
    cursors = [_RunCursor(run) for run in runs]
    most = max(FEWEST_TERMS, MERGED_TERMS // len(runs))
    while True:
        for cursor in cursors:
            cursor.fill(most)
        # All terms up to the smallest last term are in memory.
        last = min((cursor.last for cursor in cursors if cursor.last is not None), default=None)
        cursor_terms = [(cursor, terms) for cursor in cursors if (terms := cursor.take(last))]
        if not cursor_terms:
            return
        if len(cursor_terms) == 1:
            ((cursor, batch),) = cursor_terms
            yield batch, [cursor.run_terms(len(batch), np.arange(len(batch), dtype=np.int32))]
            continue
        # Python's sort merges sorted lists.
        batch = list(dict.fromkeys(sorted(chain.from_iterable(terms for _cursor, terms in cursor_terms))))
        number = dict(zip(batch, count(), strict=False))
        yield (
            batch,
            [
                cursor.run_terms(
                    len(terms), np.fromiter(map(number.__getitem__, terms), np.int32, len(terms))
                )
                for cursor, terms in cursor_terms
            ],
        )


# Reading


class StoredPostings(NamedTuple):
    """The postings of a field's terms by rank: the ones of a term begin at `starts[rank]`.

    A field without frequencies has documents only. Indexes of format 7 have arrays, and the start of each term's
    positions; others have packed numbers.
    """

    starts: StoredArray | PackedStarts
    documents: StoredArray | PackedDocuments
    frequencies: StoredArray | PackedFrequencies
    positions: StoredArray | PackedNumbers
    unpacked_position_starts: StoredArray | None = None

    def position_range(self, part: slice) -> tuple[int, int]:
        """Return the first position of a term, and the end of its positions, given the part of its postings."""
        if isinstance(self.frequencies, PackedFrequencies):
            return self.frequencies.sum_before(part.start), self.frequencies.sum_before(part.stop)
        assert self.unpacked_position_starts is not None
        rank = int(self.starts.all().searchsorted(part.start))
        first, end = self.unpacked_position_starts[rank : rank + 2].tolist()
        return first, end

    def position_starts(self) -> Int64s:
        """Return the first position of each term by rank, then the end of the last."""
        if isinstance(self.frequencies, PackedFrequencies):
            return self.frequencies.sums_before(self.starts.all())
        assert self.unpacked_position_starts is not None
        return self.unpacked_position_starts.all()


def open_postings(
    open_array: Callable[[str], StoredArray], prefix: str, tokens: int | None, *, is_packed: bool
) -> StoredPostings:
    """Open the postings of a field; `tokens` is the number of positions, None for a field without frequencies."""

    def load(part: str) -> StoredArray:
        return open_array(f"{prefix}.{part}")

    starts = open_starts(open_array, f"{prefix}.starts", is_packed=is_packed)
    if not is_packed:
        documents = load("documents")
        if tokens is None:
            return StoredPostings(starts, documents, documents, documents)
        return StoredPostings(
            starts, documents, load("frequencies"), load("positions"), load("position-starts")
        )
    content, block_starts = load("documents"), load("documents.offsets")
    packed = PackedDocuments(content, block_starts, load("documents.bases"), starts)
    if tokens is None:
        return StoredPostings(
            starts, packed, StoredArray(np.empty(0, np.uint32)), StoredArray(np.empty(0, np.uint32))
        )
    frequencies = PackedFrequencies(
        load("frequencies"), load("frequencies.offsets"), load("frequencies.sums"), len(packed)
    )
    positions = PackedNumbers(load("positions"), load("positions.offsets"), tokens)
    return StoredPostings(starts, packed, frequencies, positions)
