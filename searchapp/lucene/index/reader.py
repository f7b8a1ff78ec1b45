"""Readers of an index: `DirectoryReader` (all segments), `SegmentReader` and `FieldReader` (one field).

The documents of a segment and their nested objects of each path (`NestedReader`) are an `IndexReader` each.

Each segment is searched alone with the statistics of the live documents of all segments. Therefore scores equal, bit
for bit, those of an index built from the live documents only.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import merge
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import CorruptIndex
from searchapp.lucene.index import impacts
from searchapp.lucene.index.arrays import Int64s, Mask, Numbers, StoredArray, StoredArrays, marked
from searchapp.lucene.index.documents import open_documents
from searchapp.lucene.index.impacts import Impacts
from searchapp.lucene.index.layout import (
    Deletions,
    FieldSummary,
    IndexManifest,
    NestedSummary,
    Segment,
    refuted,
)
from searchapp.lucene.index.mapping import BOOLEAN, FLOATS, ROOT, Field, Schema
from searchapp.lucene.index.packed import (
    BLOCK,
    PackedDocuments,
    PackedFrequencies,
    PackedNumbers,
    documents_address,
    numbers_address,
)
from searchapp.lucene.index.postings import StoredPostings, open_postings
from searchapp.lucene.index.term_dictionary import Terms
from searchapp.lucene.similarity import BM25, FieldStatistics, Float32s, idf
from searchapp.lucene.vectors import VECTORS, squares

__all__ = [
    "BoundedPostings",
    "DirectoryReader",
    "FieldReader",
    "IndexReader",
    "Mask",
    "Numbers",
    "Postings",
    "SegmentReader",
]

Ranking = tuple[Numbers, Float32s]  # documents and their scores, best first

_SUMS = struct.Struct("=2q")

WITHOUT_NORM = 1  # the length code of fields without lengths, as in Lucene

CACHED_TERMS = 200_000  # maximum number of term ranks cached per field

SLACK = 2.0**-20  # exceeds the rounding error of the ratio of two norms and of its product

RARE_SHARE = 16  # search for wanted documents singly if the term has more than this many per wanted document

SELECTED_SHARE = 2  # return all documents if the term has at most this many per wanted document


class _IdCache:
    CACHED_IDS = 1_000_000  # the cache is emptied above this number

    SMALL_INDEX = 200_000  # indexes up to this size are read in bulk once single reads have taken as long

    BULK_SPEED = 8  # speed of a bulk read relative to single reads

    def __init__(self, ids: Terms, ranks: StoredArray, by_rank: StoredArray) -> None:
        self._ids = ids
        self._ranks = ranks
        self._by_rank = by_rank
        self._reads = 0
        self._is_complete = False

    @cached_property
    def _known(self) -> NDArray[np.object_]:
        return np.full(len(self._ranks), None, object)

    def get(self, documents: NDArray[Any]) -> list[str]:
        """Return the ids of document numbers of shape `(n,)`."""
        ids: list[str | None] = self._known.take(documents).tolist()
        if not self._is_complete and None in ids:
            unknown = [document for document, id_ in zip(documents.tolist(), ids, strict=True) if id_ is None]
            if self._reads + len(unknown) > self.CACHED_IDS:
                self._known.fill(None)
                self._reads, unknown = 0, documents.tolist()
            self._read(unknown)
            ids = self._known.take(documents).tolist()
        return cast("list[str]", ids)

    def _read(self, documents: Sequence[int]) -> None:
        self._reads += len(documents)
        count = len(self._known)
        if count <= self.SMALL_INDEX and self._reads * self.BULK_SPEED >= count:
            self._known[self._by_rank.all()] = [id_.decode() for id_ in self._ids]
            self._is_complete = True
            return
        ranks = self._ranks.all()
        for document in documents:
            self._known[document] = self._ids[int(ranks[document])].decode()


@dataclass(frozen=True, slots=True)
class Postings:
    """The documents of a term, ascending, and its frequency in each."""

    documents: Numbers
    frequencies: Float32s


@dataclass(frozen=True, slots=True)
class BoundedPostings:
    """The postings of a term with the impact of each and the greatest impact, see `impacts`.

    They are a `part` of the documents and frequencies, which may be those of all terms of a field. Packed postings have
    the greatest impact of each block too, from the block of the first one on.
    """

    documents: StoredArray | PackedDocuments
    frequencies: StoredArray | PackedFrequencies
    impacts: Impacts
    greatest: int
    part: slice
    of_blocks: Impacts | None = None


class TermPositions:
    """The positions of a term, read in ascending order of documents."""

    def __init__(self, postings: StoredPostings, part: slice) -> None:
        """Read the positions of a term from `postings`, those of a field; `part` is its part of them."""
        self.postings = postings
        self.part = part
        self._first = 0  # index of the first document whose positions begin at `_start`

    def __len__(self) -> int:
        """Return the number of documents."""
        return int(self.part.stop - self.part.start)

    @cached_property
    def documents(self) -> Numbers:
        return self.postings.documents.parts([self.part])

    @cached_property
    def _frequencies(self) -> NDArray[np.unsignedinteger]:
        return self.postings.frequencies.parts([self.part])

    @cached_property
    def _start(self) -> int:
        return self.postings.position_range(self.part)[0]

    def all(self) -> tuple[Numbers, NDArray[np.unsignedinteger], NDArray[Any]]:
        """Return all documents, frequencies and positions."""
        return self.documents, self._frequencies, self.positions

    def address(self, count: int) -> tuple[bytes, list[Any]]:
        """Return the begin of `Term` of native/phrases.c, and objects that must be kept.

        `count` is the number of documents of the segment.
        """
        postings = self.postings
        documents, kept_documents = documents_address(postings.documents, self.part, count)
        frequencies, kept_frequencies = numbers_address(postings.frequencies, self.part)
        first, end = postings.position_range(self.part)
        if isinstance(postings.positions, PackedNumbers) and isinstance(
            postings.frequencies, PackedFrequencies
        ):
            postings.positions.require(first, end)
            positions, kept_positions = postings.positions.address(0), None
            sums = postings.frequencies.sums_address()
        else:
            positions, kept_positions = numbers_address(postings.positions, slice(first, end))
            sums, end = 0, end - first
        kept = [kept_documents, kept_frequencies, kept_positions]
        return documents + frequencies + positions + _SUMS.pack(sums, end), kept

    @property
    def positions(self) -> NDArray[Any]:
        return self.postings.positions[slice(*self.postings.position_range(self.part))]

    def select(self, targets: Numbers) -> tuple[Numbers, Int64s, Numbers]:
        """Return documents, the term's frequency in each, and its positions, document by document.

        The result may contain documents between the targets ones.

        Args:
            targets: ascending documents that have the term and follow those of the previous call.
        """
        first = self._first + int(self.documents[self._first :].searchsorted(targets[0]))
        end = first + int(self.documents[first:].searchsorted(targets[-1], "right"))
        self._start += int(self._frequencies[self._first : first].sum(dtype=np.int64))
        self._first = first
        documents, frequencies = self.documents[first:end], self._frequencies[first:end]
        end = self._start + int(frequencies.sum(dtype=np.int64))
        positions = self.postings.positions[self._start : end].astype(np.int32, copy=False)
        if len(targets) * SELECTED_SHARE >= len(documents):
            return documents, frequencies.astype(np.int64), positions
        if len(targets) * RARE_SHARE < len(documents):
            indices = documents.searchsorted(targets)
        else:
            marked = np.zeros(targets[-1] - targets[0] + 1, bool)
            marked[targets - targets[0]] = True
            indices = np.flatnonzero(marked.take(documents - targets[0]))
        counts = frequencies.take(indices).astype(np.int64)
        # From each document to the next one; the first one begins at 0.
        starts = np.cumsum(np.add.reduceat(frequencies, indices, dtype=np.int64))
        return targets, counts, positions.take(_ranges(np.append(0, starts[:-1]), counts))


def _ranges(starts: Int64s, counts: Int64s) -> Int64s:
    """Return `counts` consecutive numbers from each start; each count is at least 1."""
    ends = np.cumsum(counts)
    steps = np.ones(ends[-1], np.int64)
    steps[0] = starts[0]
    steps[ends[:-1]] = starts[1:] - starts[:-1] - counts[:-1] + 1
    return np.cumsum(steps, out=steps)


@dataclass(frozen=True, slots=True)
class DeletedTerms:
    """The statistics of a field in the deleted documents of a segment."""

    summary: FieldSummary
    ranks: Int64s  # ascending; empty for a numeric field
    counts: Int64s  # deleted documents that contain each term

    @classmethod
    def open(cls, columns: StoredArrays, field: Field, summary: FieldSummary) -> DeletedTerms:
        if not field.has_postings:
            return cls(summary, np.empty(0, np.int64), np.empty(0, np.int64))
        ranks, counts = (columns.open(f"{summary.prefix}.{part}").all() for part in ("ranks", "counts"))
        return cls(summary, ranks, counts)

    def document_frequency(self, rank: int) -> int:
        index = int(self.ranks.searchsorted(rank))
        return int(self.counts[index]) if index < len(self.ranks) and self.ranks[index] == rank else 0


class AbsentArrays:
    """The arrays of a field that no document or nested object of an `IndexReader` can have."""

    is_packed = False

    def __init__(self, documents: int, *, has_fractions: bool) -> None:
        self._documents = documents
        self._number = np.float64 if has_fractions else np.int64

    def open(self, name: str) -> StoredArray:
        part = name.rpartition(".")[2]
        if part == "norms":
            return StoredArray(np.zeros(self._documents, np.uint8))
        if part.endswith("starts"):
            return StoredArray(np.zeros(1, np.int64))
        types = {"values": self._number, "present": np.int32, "documents": np.int32, "positions": np.int32}
        return StoredArray(np.empty(0, types.get(part, np.uint8)))


class FieldReader:
    """One field of the documents of a segment, or of their nested objects of one path.

    Statistics cover the live documents of all segments. Methods omit deleted documents, except `bounded` and
    `positions`, whose callers skip them. Keyword fields have no frequencies, positions and norms; numeric fields have
    no terms.
    """

    edges_above: Float32s = impacts.EDGES  # the greatest x of each stored impact, see `impacts`

    def __init__(
        self,
        columns: StoredArrays | AbsentArrays,
        field: Field,
        summary: FieldSummary,
        documents: int,
        written_similarity: BM25 | None,
        live: Mask | None = None,
        deleted: DeletedTerms | None = None,
    ) -> None:
        """Open a field of a segment with a number of `documents`, deleted ones included.

        The stored impacts bound the scores of `written_similarity` only. `live` has shape `(documents,)`; `live` and
        `deleted` are None if no document is deleted.
        """
        self.field = field
        self.is_absent = isinstance(columns, AbsentArrays)
        self.documents = documents
        self._live = live
        self._deleted = deleted
        self._written_statistics = FieldStatistics(summary.documents, summary.tokens)
        self.live_statistics = self._written_statistics
        if deleted is not None:
            self.live_statistics = FieldStatistics(
                summary.documents - deleted.summary.documents, summary.tokens - deleted.summary.tokens
            )
        self._others: Sequence[FieldReader] = ()

        def load(part: str) -> StoredArray:
            return columns.open(f"{summary.prefix}.{part}")

        self._present = load("present")
        self._is_packed = columns.is_packed
        if field.is_vector:
            self._vectors = load(VECTORS)
            return
        if not field.has_postings:
            self._documents: StoredArray | PackedDocuments = load("documents")
            self._values = load("values")
            if field.is_range:
                self._highs = load("highs")
            return
        self.terms = Terms.open(columns.open, summary.prefix, is_packed=columns.is_packed)
        self._postings = open_postings(
            columns.open,
            summary.prefix,
            summary.tokens if field.is_counted else None,
            is_packed=columns.is_packed,
        )
        self._starts, self._documents = self._postings.starts, self._postings.documents
        self._frequencies = self._postings.frequencies
        self._ranks: dict[str, int | None] = {}
        self._has_all_ranks = False
        self.similarity = field.similarity or BM25()
        if field.is_counted:
            self._norms = load("norms")
            self._impacts = self._greatest = self._block_impacts = None
            if self.similarity == (written_similarity or BM25()):
                self._impacts, self._greatest = load(impacts.IMPACTS), load(impacts.GREATEST)
                if columns.is_packed:
                    self._block_impacts = load(impacts.OF_BLOCKS)

    def join(self, segments: Sequence[FieldReader]) -> None:
        self._others = [segment for segment in segments if segment is not self and not segment.is_absent]
        self.statistics = FieldStatistics(
            sum(segment.live_statistics.documents for segment in segments),
            sum(segment.live_statistics.tokens for segment in segments),
        )
        if not self.field.has_postings:
            return
        self.norm_inverses = self.similarity.norm_inverses(self.statistics)
        self.has_norm_inverses = bool(self.norm_inverses.all())  # otherwise an impact may be 0
        if (
            self.field.is_counted
            and self._impacts is not None
            and self.statistics != self._written_statistics
        ):
            self._scale_edges(self.similarity.norm_inverses(self._written_statistics))

    def _scale_edges(self, written: Float32s) -> None:
        """Adapt stored impacts, computed with the `written` norms, to bound scores with the current norms."""
        is_equal = written == self.norm_inverses
        if is_equal.all():
            return
        with np.errstate(all="ignore"):
            ratios = np.where(is_equal, 1.0, self.norm_inverses.astype(np.float64) / written)
            if not (np.isfinite(ratios) & (ratios > 0)).all():
                self._impacts = self._greatest = None  # computed on use
                return
            self.edges_above = (impacts.EDGES * (ratios.max() * (1 + SLACK))).astype(np.float32)

    @property
    def present(self) -> Numbers:
        return self._only_live(self._all_present)

    @property
    def _all_present(self) -> Numbers:
        return marked(self._present.all(), self.documents) if self._is_packed else self._present.all()

    def idf(self, document_frequency: int) -> np.float32:
        return idf(document_frequency, self.statistics.documents)

    def weight(self, boost: np.float32, document_frequency: int) -> np.float32:
        return self.similarity.weight(boost, self.idf(document_frequency))

    def ranks(self, terms: Iterable[str]) -> list[int]:
        find_rank = self._ranks.get if self._has_all_ranks else self.rank
        return [rank for rank in map(find_rank, terms) if rank is not None]

    def elsewhere(self, terms: Iterable[str]) -> tuple[int, int]:
        """Return how many terms occur only in other segments, and the sum of their document frequencies."""
        frequencies = [self.document_frequency(term) for term in terms if self.rank(term) is None]
        return sum(map(bool, frequencies)), sum(frequencies)

    def rank(self, term: str) -> int | None:
        try:
            return self._ranks[term]
        except KeyError:
            if self._has_all_ranks:
                return None
            rank = self.terms.rank(term)
            if len(self._ranks) < CACHED_TERMS:
                self._ranks[term] = rank
            return rank

    def remember_terms(self) -> None:
        """Load the dictionary, unless it is large, to avoid further look-ups in the file."""
        if self._has_all_ranks or len(self.terms) > CACHED_TERMS:
            return
        self._ranks = {term.decode(): rank for rank, term in enumerate(self.terms)}
        self._has_all_ranks = True

    def document_frequency(self, term: str) -> int:
        frequency = self._live_frequency(term)
        for other in self._others:
            frequency += other._live_frequency(term)
        return frequency

    def _live_frequency(self, term: str) -> int:
        rank = self.rank(term)
        if rank is None:
            return 0
        part = self._part(rank)
        frequency = int(part.stop - part.start)
        return frequency if self._deleted is None else frequency - self._deleted.document_frequency(rank)

    def _part(self, rank: int) -> slice:
        return slice(*self._starts.pair(rank))

    def terms_with_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the terms of the index that begin with a prefix, in bytewise order."""
        segments = [field.terms for field in (self, *self._others)]
        terms = merge(*(map(segment.__getitem__, segment.with_prefix(prefix)) for segment in segments))
        for term, _segments in groupby(map(bytes.decode, terms)):
            if self.document_frequency(term):  # not only in deleted documents
                yield term

    def documents_with(self, ranks: Iterable[int]) -> Numbers:
        """Return the documents with one of the terms, possibly with repetitions."""
        parts = list(map(self._part, ranks))
        return self._only_live(self._documents.parts(parts)) if parts else np.empty(0, np.int32)

    def documents_with_terms(self, terms: Iterable[str]) -> Numbers:
        return self.documents_with(self.ranks(terms))

    def postings(self, term: str) -> Postings:
        rank = self.rank(term)
        if rank is None:
            return Postings(np.empty(0, np.int32), np.empty(0, np.float32))
        return self.live_postings(self._postings_in([self._part(rank)]))

    @property
    def has_impacts(self) -> bool:
        """Whether the files contain impacts; otherwise they are computed on each use."""
        return self._impacts is not None

    def bounded(self, rank: int) -> BoundedPostings:
        """Return the postings of a text field's term with the bounds of their scores."""
        part = self._part(rank)
        of_blocks = None
        if self._impacts is not None and self._greatest is not None:
            bounds, greatest = self._impacts[part], self._greatest.number(rank)
            if self._block_impacts is not None:
                of_blocks = self._block_impacts[part.start // BLOCK : (part.stop - 1) // BLOCK + 1]
        else:
            norms = self._norms.all()[self._documents.parts([part])]
            bounds = impacts.of_postings(self._impact_table, self._frequencies.parts([part]), norms)
            greatest = int(bounds.max())
        return BoundedPostings(self._documents, self._frequencies, bounds, greatest, part, of_blocks)

    @cached_property
    def _impact_table(self) -> Impacts:
        return impacts.impact_table(self.norm_inverses)

    @property
    def postings_count(self) -> int:
        return len(self._documents)

    @cached_property
    def starts(self) -> Int64s:
        """The start of each term's live postings, by rank, followed by the end of the last."""
        if self._live is None:
            return self._starts.all()
        before = np.append(0, np.cumsum(self._live.take(self._documents.all())))
        return np.asarray(before[self._starts.all()], np.int64)

    @cached_property
    def document_frequencies(self) -> Int64s:
        """Document frequencies in the index, by rank."""
        frequencies = np.diff(self._starts.all())
        if self._deleted is not None:
            frequencies[self._deleted.ranks] -= self._deleted.counts
        for other in self._others:
            if len(self.terms) < len(other.terms):  # look up the terms of the smaller dictionary
                frequencies += np.fromiter(
                    (other._live_frequency(term.decode()) for term in self.terms), np.int64, len(frequencies)
                )
                continue
            for term in map(bytes.decode, other.terms):
                rank = self.terms.rank(term)
                if rank is not None:
                    frequencies[rank] += other._live_frequency(term)
        return frequencies

    def count_by_term(self, documents: Mask) -> Int64s:
        """Count the marked documents that contain each term, by rank."""
        sums = np.concatenate([[0], np.cumsum(documents[self._documents.all()])])
        starts = self._starts.all()
        return np.asarray(sums[starts[1:]] - sums[starts[:-1]])

    def parts(self, terms: Sequence[str]) -> list[slice]:
        """Return the range of each term's live postings; empty for a term that does not occur."""
        return self._slices(self.starts, terms)

    def _slices(self, starts: Int64s, terms: Sequence[str]) -> list[slice]:
        ranks = list(map(self.rank, terms))
        known = [rank for rank in ranks if rank is not None]
        begins, ends = starts[known].tolist(), starts[[rank + 1 for rank in known]].tolist()
        slices = map(slice, begins, ends)
        return [slice(0, 0) if rank is None else next(slices) for rank in ranks]

    def all_postings(self) -> Postings:
        """Return the postings of all terms, by rank, in the ranges of `starts` and `parts`."""
        documents = self._documents.all()
        if not self.field.is_counted:
            return self.live_postings(Postings(documents, np.ones(len(documents), np.float32)))
        return self.live_postings(Postings(documents, self._frequencies.all().astype(np.float32)))

    def postings_of(self, terms: Sequence[str]) -> tuple[Postings, Int64s]:
        """Return the concatenated postings of terms, and the number of each."""
        parts = self._slices(self._starts.all(), terms)
        postings = self._postings_in(parts)
        counts = np.array([part.stop - part.start for part in parts], np.int64)
        is_live = self._liveness(postings.documents)
        if is_live is None:
            return postings, counts
        before = np.append(0, np.cumsum(is_live))
        counts = np.diff(before[np.append(0, np.cumsum(counts))])
        return Postings(postings.documents[is_live], postings.frequencies[is_live]), counts

    def live_postings(self, postings: Postings) -> Postings:
        is_live = self._liveness(postings.documents)
        if is_live is None:
            return postings
        return Postings(postings.documents[is_live], postings.frequencies[is_live])

    def _only_live(self, documents: Numbers) -> Numbers:
        is_live = self._liveness(documents)
        return documents if is_live is None else documents[is_live]

    def _liveness(self, documents: Numbers) -> Mask | None:
        """Return whether each document is live; None if all are."""
        if self._live is None:
            return None
        is_live = self._live.take(documents)
        return None if is_live.all() else is_live

    def _postings_in(self, parts: Sequence[slice]) -> Postings:
        documents = self._documents.parts(parts)
        if not self.field.is_counted:
            return Postings(documents, np.ones(len(documents), np.float32))
        return Postings(documents, self._frequencies.parts(parts).astype(np.float32))

    def doc_values(self) -> tuple[Numbers, NDArray[Any]]:
        """Return the documents of all values, and the values ascending; deleted documents included.

        The values are numbers, encoded points, the ranks of a keyword field's terms, or 0 and 1 of booleans.
        """
        if not self.field.has_postings:
            return self._documents.all(), self._values.all()
        values = np.arange(len(self.terms))
        if self.field.type == BOOLEAN:
            values = np.array([term == b"T" for term in self.terms], np.int64)
        return self._documents.all(), np.repeat(values, np.diff(self._starts.all()))

    @cached_property
    def vectors(self) -> tuple[Numbers, NDArray[np.uint8]]:
        """The documents with a vector, deleted ones included, and the vectors' bytes, shape `(documents, bytes)`."""
        return self._all_present, self._vectors.all().reshape(-1, self.field.vector_bytes)

    @cached_property
    def squared_lengths(self) -> NDArray[np.float64]:
        """The squared length of each vector."""
        return squares(self.vectors[1])

    def positions(self, term: str) -> TermPositions | None:
        rank = self.rank(term)
        if rank is None:
            return None
        return TermPositions(self._postings, self._part(rank))

    def inverses(self, documents: Numbers) -> Float32s:
        if not self.field.is_counted:
            return np.full(len(documents), self.norm_inverses[WITHOUT_NORM], np.float32)
        return np.asarray(self.norm_inverses[self._norms.all()[documents]])

    @property
    def norms(self) -> NDArray[np.uint8]:
        """Length codes of all documents, see `similarity.LENGTHS`."""
        return self._norms.all()

    def length_code(self, document: int) -> int:
        return int(self._norms.all()[document]) if self.field.is_counted else WITHOUT_NORM

    def documents_between(
        self, low: Any, high: Any, accepts: Callable[[NDArray[Any]], Mask] | None = None
    ) -> Numbers:
        """Return the documents with a number from `low` to `high`, both inclusive, that a function accepts."""
        part = _range_of(self._values.all(), low, high)
        documents = self._documents[part]
        return self._only_live(documents if accepts is None else documents[accepts(self._values[part])])

    def compare_range(self, low: Any, high: Any) -> tuple[bool, bool]:
        """Return whether `low` to `high` includes all numbers of the index, and whether it includes none."""
        values = [segment._live_values for segment in (self, *self._others)]
        ranges = [_range_of(segment_values, low, high) for segment_values in values]
        count, start = sum(map(len, values)), sum(part.start for part in ranges)
        stop = sum(part.stop for part in ranges)
        if low > high or not count:
            return False, True
        return (start, stop) == (0, count), stop == 0 or start == count

    @cached_property
    def extremes(self) -> tuple[int, int] | None:
        """The least and greatest integer of the index, None without any."""
        values = [segment._live_values for segment in (self, *self._others)]
        ends = [int(part[index]) for part in values if len(part) for index in (0, -1)]
        return (min(ends), max(ends)) if ends else None

    def documents_with_ranges(self, accepts: Callable[[NDArray[Any], NDArray[Any]], Mask]) -> Numbers:
        """Return the documents with a range whose lows and highs a function accepts."""
        return self._only_live(self._documents.all()[accepts(self._values.all(), self._highs.all())])

    @property
    def index_values(self) -> NDArray[Any]:
        """The numbers of all live documents of the index."""
        return np.concatenate([segment._live_values for segment in (self, *self._others)])

    @cached_property
    def extreme_terms(self) -> tuple[bytes, bytes] | None:
        """The first and the last term of the index, None without any."""
        ends = []
        for part in (self, *self._others):
            ranks = np.flatnonzero(np.diff(part.starts))
            ends += [part.terms[int(ranks[index])] for index in (0, -1) if len(ranks)]
        return (min(ends), max(ends)) if ends else None

    @cached_property
    def _live_values(self) -> NDArray[Any]:
        values = self._values.all()
        return values if self._live is None else np.asarray(values[self._live[self._documents.all()]])

    def live_numbers(self) -> tuple[Numbers, NDArray[Any]]:
        """Return the documents and numbers of a numeric field, in ascending order of the numbers."""
        documents, values = self._documents.all(), self._values.all()
        is_live = self._liveness(documents)
        return (documents, values) if is_live is None else (documents[is_live], values[is_live])

    def smallest(self, documents: NDArray[Any]) -> NDArray[np.float64]:
        """Return the smallest number of each document; NaN for a document without one."""
        smallest = np.full(self.documents, np.nan)
        smallest[self._documents.all()[::-1]] = self._values.all()[
            ::-1
        ]  # the smallest number of a document is written last
        if self.field.scaling_factor != 1:
            smallest *= 1 / self.field.scaling_factor
        return np.asarray(smallest[documents])


def _range_of(values: NDArray[Any], low: Any, high: Any) -> slice:
    """Return the slice of ascending `values` from `low` to `high`."""

    def positive_zero() -> int:
        """Return the index of the first 0 after all -0.0, which Lucene orders before 0."""
        first, end = np.searchsorted(values, 0, "left"), np.searchsorted(values, 0, "right")
        return int(first + np.count_nonzero(np.signbit(values[first:end])))

    first, end = int(np.searchsorted(values, low, "left")), int(np.searchsorted(values, high, "right"))
    if low == 0 and not np.signbit(low):
        first = positive_zero()
    if high == 0 and np.signbit(high):
        end = positive_zero()
    return slice(first, end)


class IndexReader:
    """The documents of an open segment, or their nested objects of one path."""

    path: str = ROOT
    schema: Schema
    count: int
    live: Mask | None  # None if no document is deleted
    dead: Numbers | None  # deleted documents, ascending
    fields: Mapping[str, FieldReader]
    nested: Mapping[str, NestedReader]  # of the segment, by path

    others: Sequence[IndexReader]
    whole_count: int  # documents and nested objects in the index
    is_part: bool  # whether documents or nested objects of the index are deleted or in other readers

    def number(self, document: int) -> int:
        """Return Lucene's number of a document, which explanations show."""
        raise NotImplementedError

    def documents_of(self, ids: Iterable[str]) -> Numbers:
        """Return the documents with the ids, or the nested objects in them."""
        raise NotImplementedError

    def in_all(self, field: str) -> bool:
        return self.fields[field].statistics.documents == self.whole_count

    def live_mask(self) -> Mask:
        return np.ones(self.count, bool) if self.live is None else self.live.copy()

    def sum_of_parts(self, own_count: int, count: Callable[[IndexReader], int]) -> int:
        return own_count + sum(map(count, self.others))

    def _open_fields(
        self,
        columns: StoredArrays,
        summaries: Mapping[str, FieldSummary],
        written_schema: Schema,
        commit_arrays: StoredArrays,
        deletions: Mapping[str, FieldSummary],
    ) -> None:
        fields = {}
        for name, field in self.schema.fields.items():
            summary = summaries.get(name)
            fields[name] = FieldReader(
                AbsentArrays(self.count, has_fractions=field.type in FLOATS) if summary is None else columns,
                field,
                summary or FieldSummary(name, 0, 0),
                self.count,
                written_schema.fields[name].similarity,
                self.live,
                DeletedTerms.open(commit_arrays, field, deletions[name]) if name in deletions else None,
            )
        self.fields = fields


class NestedReader(IndexReader):
    """The nested objects of one path in a segment."""

    def __init__(
        self,
        path: str,
        segment: SegmentReader,
        summary: NestedSummary,
        columns: StoredArrays,
        written_schema: Schema,
        commit_arrays: StoredArrays,
        deletions: Deletions,
    ) -> None:
        self.path = path
        self.schema = segment.schema
        self.count = summary.documents
        self.nested = segment.nested
        self._segment = segment
        outer = segment.nested.get(self.schema.nested[path].parent, segment)
        self._parents: Numbers = columns.open(f"{summary.prefix}.parents").all()
        self._places = columns.open(f"{summary.prefix}.places").all()
        if not len(self._parents) == len(self._places) == self.count:
            raise ValueError("its files do not agree on the number of nested objects")
        self.live = self.dead = None
        if outer.live is not None:
            self.live = outer.live[self._parents]
            self.dead = np.flatnonzero(~self.live).astype(np.int32)
        self._open_fields(
            columns, summary.fields, written_schema, commit_arrays, deletions.nested.get(path, {})
        )

    def parents(self, path: str) -> Numbers:
        """Return the nested object of an outer path, or the document, that contains each object; ascending."""
        parent = self.schema.nested[self.path].parent
        if parent == path:
            return self._parents
        return self.nested[parent].parents(path)[self._parents]

    @cached_property
    def _documents(self) -> Numbers:
        return self.parents(ROOT)

    def number(self, document: int) -> int:
        return self._segment.first_number(int(self._documents[document])) + int(self._places[document])

    def documents_of(self, ids: Iterable[str]) -> Numbers:
        return np.flatnonzero(np.isin(self._documents, self._segment.documents_of(ids))).astype(np.int32)


class SegmentReader(IndexReader):
    """An open segment."""

    def __init__(
        self,
        segment: Segment,
        schema: Schema,
        written_schema: Schema,
        commit_arrays: StoredArrays,
        first: int = 0,
    ) -> None:
        """Open a segment, and verify its files unless they are unchanged since the last verification.

        `written_schema` has the similarities of the stored impacts. `commit_arrays` opens the arrays of the version
        that lists the segment. `first` is the number of the segment's first document in the index.
        """
        manifest, deletions = segment
        self.folder = manifest.folder
        verified_now = manifest.require_verified()
        self.schema = schema
        self.first = first
        self.count = manifest.documents
        self.live = None
        self.dead = None
        self.nested: dict[str, NestedReader] = {}
        columns = StoredArrays(manifest)
        if verified_now:
            columns.mark_verified()
        self.sources = open_documents(manifest, columns)
        try:
            if deletions.documents:
                self._read_deletions(commit_arrays.open(deletions.prefix).all(), deletions.documents)
            self.ids = Terms.open(columns.open, "ids", is_packed=columns.is_packed)
            self._by_rank = columns.open("ids.documents")
            self._ranks = columns.open("ids.ranks")
            self._open_fields(columns, manifest.fields, written_schema, commit_arrays, deletions.fields)
            for path in schema.nested:
                self.nested[path] = NestedReader(
                    path, self, manifest.nested[path], columns, written_schema, commit_arrays, deletions
                )
            lengths = {len(self.ids), len(self._by_rank), len(self._ranks), self.sources.count}
            if lengths != {self.count}:
                raise ValueError("its files do not agree on the number of documents")
        except BaseException as error:
            self.sources.close()
            if isinstance(error, ValueError | KeyError):
                raise refuted(self.folder, str(error)) from error
            raise
        self._id_cache = _IdCache(self.ids, self._ranks, self._by_rank)
        self._last_found: tuple[tuple[str, ...], Numbers] = (), np.zeros(0, np.int32)

    def _read_deletions(self, deleted: Numbers, count: int) -> None:
        is_valid = (
            len(deleted) == count
            and deleted[0] >= 0
            and deleted[-1] < self.count
            and (np.diff(deleted) > 0).all()
        )
        if not is_valid:
            raise ValueError("its files do not agree on the deleted documents")
        self.dead = np.ascontiguousarray(deleted, np.int32)
        self.live = np.ones(self.count, bool)
        self.live[deleted] = False

    @property
    def ranks(self) -> Numbers:
        """Ranks of documents in the bytewise order of ids, which breaks ties between equal scores."""
        return self._ranks.all()

    @property
    def by_rank(self) -> Numbers:
        """The documents in the bytewise order of ids."""
        return self._by_rank.all()

    def document(self, document_id: str) -> int | None:
        rank = self.ids.rank(document_id)
        if rank is None:
            return None
        document = self._by_rank.number(rank)
        return document if self.live is None or self.live[document] else None

    def documents_of(self, ids: Iterable[str]) -> Numbers:
        ids = tuple(ids)
        last = self._last_found
        if last[0] != ids:  # the topics of a fold exclude the same ids
            numbers = map(self.document, ids)
            last = ids, np.array([number for number in numbers if number is not None], np.int32)
            self._last_found = last
        return last[1]

    @cached_property
    def _nested_before(self) -> Int64s:
        """The number of nested objects in the documents before each one, and in all."""
        counts = np.zeros(self.count, np.int64)
        for nested in self.nested.values():
            counts += np.bincount(nested.parents(ROOT), minlength=self.count)
        return np.append(0, np.cumsum(counts))

    def first_number(self, document: int) -> int:
        """Return Lucene's number of the first nested object of a document, or of the document without one."""
        return self.first + document + (int(self._nested_before[document]) if self.nested else 0)

    def number(self, document: int) -> int:
        return self.first_number(document + 1) - 1

    def ids_of(self, documents: NDArray[Any]) -> list[str]:
        return self._id_cache.get(documents)

    def sources_of(self, documents: NDArray[Any]) -> list[dict[str, Any]]:
        return self.sources.sources(documents.tolist())

    def close(self) -> None:
        self.sources.close()


def by_segment(
    documents: NDArray[Any], segments: Sequence[SegmentReader]
) -> Iterator[tuple[SegmentReader, NDArray[np.intp], NDArray[Any]]]:
    """Yield each segment, the indices of its entries in `documents`, and their numbers in the segment."""
    for segment in segments:
        indices = np.flatnonzero((documents >= segment.first) & (documents < segment.first + segment.count))
        yield segment, indices, documents[indices] - segment.first


class DirectoryReader:
    """An open index: its segments, and its documents by their numbers in the index."""

    def __init__(
        self, folder: Path, schema: Schema | None = None, manifest: IndexManifest | None = None
    ) -> None:
        """Open a version, and verify its files unless they are unchanged since the last verification.

        `schema` has the similarities to score with, by default those of the mapping.

        Raises:
            Refused: the index is not searchapp's, or was made by a newer searchapp.
            CorruptIndex: the index is damaged.
            UnreadableFile: a file can't be read.
        """
        self.folder = folder
        self.manifest = manifest or IndexManifest.read(folder)
        self.count = self.manifest.total
        self.schema = schema or self.manifest.schema
        self._stored = self.manifest.segments()
        parts: list[SegmentReader] = []
        self.parts: Sequence[SegmentReader] = parts
        try:
            commit_arrays = StoredArrays(self.manifest)
            first = 0
            for segment in [segment for segment in self._stored if segment.live] or self._stored[-1:]:
                parts.append(SegmentReader(segment, self.schema, self.manifest.schema, commit_arrays, first))
                first += segment.manifest.documents
            if self.count != sum(segment.live for segment in self._stored):
                raise refuted(folder, "its segments do not agree on the number of documents")
        except BaseException:
            self.close()
            raise
        readers = [reader for part in parts for reader in (part, *part.nested.values())]
        whole_count = sum(
            reader.count - (0 if reader.dead is None else len(reader.dead)) for reader in readers
        )
        for reader in readers:
            reader.others, reader.whole_count = (
                [other for other in readers if other is not reader],
                whole_count,
            )
            reader.is_part = len(readers) > 1 or reader.dead is not None
        for name in self.schema.fields:
            fields = [reader.fields[name] for reader in readers]
            for field in fields:
                field.join(fields)
        self.fields = parts[0].fields

    @property
    def exists(self) -> bool:
        for (
            segment
        ) in self._stored:  # digests, because an index that was removed and rebuilt reuses folder names
            try:
                if IndexManifest.read(segment.folder).digest != segment.manifest.digest:
                    return False
            except CorruptIndex:
                if not segment.folder.is_dir():
                    return False
        return True

    def reopen(self) -> DirectoryReader:
        return DirectoryReader(self.folder, self.schema, self.manifest)

    def verify(self) -> None:
        for segment in self._stored:
            segment.manifest.verify()

    def close(self) -> None:
        for part in self.parts:
            part.close()

    def ids_of(self, documents: NDArray[Any]) -> list[str]:
        if len(self.parts) == 1:
            return self.parts[0].ids_of(documents)
        ids = np.empty(len(documents), object)
        for part, indices, numbers in by_segment(documents, self.parts):
            ids[indices] = part.ids_of(numbers)
        return cast("list[str]", ids.tolist())

    def sources_of(self, documents: NDArray[Any]) -> list[dict[str, Any]]:
        sources: list[Any] = [None] * len(documents)
        for part, indices, numbers in by_segment(documents, self.parts):
            for index, source in zip(indices.tolist(), part.sources_of(numbers), strict=True):
                sources[index] = source
        return sources

    def merge_rankings(self, rankings: Sequence[Ranking], first: int, size: int) -> Ranking:
        """Merge the rankings of all segments and return `size` documents from rank `first`; equal scores by id."""
        documents = np.concatenate(
            [part.first + numbers for part, (numbers, _scores) in zip(self.parts, rankings, strict=True)]
        )
        scores = np.concatenate([numbers for _documents, numbers in rankings])
        order = np.argsort(-scores, kind="stable")
        end = first + size
        if len(order) > end > 0:  # keep all documents with the score of the last one
            order = order[: int((-scores[order]).searchsorted(-scores[order[end - 1]], "right"))]
        documents, scores = documents[order], scores[order]
        segments = np.searchsorted([part.first for part in self.parts], documents, "right")
        edges = (np.flatnonzero(np.diff(scores)) + 1).tolist()
        for begin, stop in pairwise([0, *edges, len(scores)]):
            equal = documents[begin:stop]
            if begin < min(end, stop) and (segments[begin:stop] != segments[begin]).any():
                documents[begin:stop] = equal[np.argsort(np.array(self.ids_of(equal), object), kind="stable")]
        return documents[first:end].astype(np.int32, copy=False), scores[first:end]
