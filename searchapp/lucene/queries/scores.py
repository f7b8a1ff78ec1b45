"""Score rows (the scores of a term in all of its documents), and sums of rows, the reference for the C functions.

Sums are computed in double and rounded once, as in Lucene. The score of a term depends only on the term, its weight
and the document, and topics share most of their terms; therefore rows are cached.
"""

from __future__ import annotations

import struct
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field as dataclass_field
from functools import cached_property
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import similarity
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import BEYOND_FLOAT32, Refused
from searchapp.lucene.index.arrays import Int64s
from searchapp.lucene.index.reader import FieldReader, IndexReader, Mask, Numbers, Postings
from searchapp.lucene.similarity import Float32s

Doubles = NDArray[np.float64]

# A term in more than one of this many documents is common, and may have a dense row: adding two arrays takes half a
# nanosecond per element, adding at indices at least five.
COMMON_SHARE, COMMON_SHARE_OF_MANY = 8, 4

# From this number of documents, dense rows are float32 and of fewer terms, to save memory.
MANY_DOCUMENTS = 1 << 17

CACHE_BYTES = 256 << 20  # memory for rows

NESTED_SHARE = 4  # the nested objects of a path have this part of the memory of the documents around them

DENSE_ROWS = 32  # rows are dense only if the cache has room for this many

POSTINGS_AT_ONCE = 1 << 21  # postings scored at a time, which bounds memory

# From this number of postings, a term is scored separately, because grouping would copy them.
LONG_LIST = 1 << 14

# A field with at most this many postings is scored at once, in milliseconds, if a batch needs many of its terms.
SMALL_FIELD = 1 << 19

MANY_TERMS = 32  # one in this many of a field's terms counts as many

FEW = 256  # for at most this many postings, a sort is faster than an array over all documents


class FiniteScores(np.errstate):
    """Reject a query whose scores are infinite or not a number.

    Raises:
        Refused: instead of NumPy's FloatingPointError.
    """

    def __init__(self) -> None:
        super().__init__(over="raise", invalid="raise")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        super().__exit__(kind, error, trace)
        if isinstance(error, FloatingPointError):
            raise Refused(BEYOND_FLOAT32) from error


ROW = struct.Struct("=5q")  # `Row` of kernels.c


@dataclass(eq=False)
class ScoreRow:
    """The scores of matching documents."""

    documents: Numbers  # ascending
    scores: Float32s
    positive: bool  # whether no score is 0
    is_common: bool = False  # whether the row is added after others, which can affect the last bit
    dense: NDArray[Any] | None = None  # the scores of every document, if the row is dense
    index_frequency: int | None = None  # document frequency in the index; None if it is the length of the row

    def __post_init__(self) -> None:
        # kernels.c reads these types at the addresses in `packed`.
        self.documents = np.ascontiguousarray(self.documents, np.int32)
        self.scores = np.ascontiguousarray(self.scores, np.float32)

    @property
    def frequency(self) -> int:
        """The number of matching documents in the whole index."""
        return len(self.documents) if self.index_frequency is None else self.index_frequency

    @property
    def nbytes(self) -> int:
        """Memory of the row. The documents of a long row are a view of the index."""
        dense = 0 if self.dense is None else self.dense.nbytes
        return dense + self.scores.nbytes + (self.documents.nbytes if len(self.documents) < LONG_LIST else 0)

    @cached_property
    def packed(self) -> bytes:
        """The row in the form that kernels.c reads while this object lives."""
        addresses = self.documents.ctypes.data, self.scores.ctypes.data
        return ROW.pack(*addresses, len(self.scores), int(self.frequency), int(self.is_common))


@dataclass(eq=False)
class FieldRows(ScoreRow):
    """The rows of all terms of a field, concatenated by rank."""

    starts: Int64s = dataclass_field(kw_only=True)  # of each row, followed by the end of the last
    frequencies: Int64s = dataclass_field(kw_only=True)  # documents in the index that contain each term
    common: int = dataclass_field(kw_only=True)  # a term with more documents in the index is common

    @property
    def nbytes(self) -> int:
        return super().nbytes + ROW.size * len(self.frequencies)  # of `packed_rows`

    @cached_property
    def packed_rows(self) -> Int64s:
        """`packed` of each term's row, by rank; shape (terms, 5).

        Raises:
            IndexError: a row is not among the postings because files were altered.
        """
        sizes = np.diff(self.starts)
        if self.starts[0] < 0 or self.starts[-1] > len(self.scores) or (sizes < 0).any():
            raise IndexError("the postings of a term are not those of documents")
        begins = self.starts[:-1]
        columns = (
            self.documents.ctypes.data + begins * self.documents.itemsize,
            self.scores.ctypes.data + begins * self.scores.itemsize,
            sizes,
            self.frequencies,
            self.frequencies > self.common,
        )
        return np.stack(columns, axis=1, dtype=np.int64)


def most_of_a_rare_term(count: int) -> int:
    """Return the greatest document frequency of a term that is not common, in an index of `count` documents."""
    share = COMMON_SHARE if count < MANY_DOCUMENTS else COMMON_SHARE_OF_MANY
    return count // share if share else count


class ScoreRows:
    """A cache of the rows of a segment, which evicts the oldest rows."""

    def __init__(self, reader: IndexReader, limit: int = CACHE_BYTES) -> None:
        self.reader = reader
        self._limit = limit
        self._is_dense = reader.count * DENSE_ROWS * np.dtype(np.float32).itemsize <= limit
        self._bytes = 0
        # The dictionary, key and bytes of each row, the oldest first.
        self._entries: deque[tuple[dict[Any, Any], Any, int]] = deque()
        self._terms: dict[tuple[str, float], dict[str, ScoreRow]] = {}
        self._others: dict[Hashable, ScoreRow] = {}
        self._whole: dict[tuple[str, float], FieldRows] = {}
        self._nested: dict[str, ScoreRows] = {}
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        return self.reader.count

    def nested(self, path: str) -> ScoreRows:
        """Return the rows of the nested objects of a path."""
        rows = self._nested.get(path)
        if rows is None:
            rows = self._nested.setdefault(
                path, ScoreRows(self.reader.nested[path], self._limit // NESTED_SHARE)
            )
        return rows

    def cached(self, key: Hashable, compute: Callable[[], ScoreRow]) -> ScoreRow:
        row = self._others.get(key)
        if row is None:
            row = compute()
            self._add(self._others, {key: row})
        return row

    def of_terms(self, name: str, terms: Sequence[str], boost: np.float32) -> list[ScoreRow]:
        known = self._terms.setdefault((name, float(boost)), {})
        try:
            return [known[term] for term in terms]
        except KeyError:
            rows = {term: known[term] for term in terms if term in known}
            rows |= self._compute(name, [term for term in terms if term not in rows], boost)
            return [rows[term] for term in terms]

    def prepare(self, name: str, terms: Iterable[str], boost: np.float32) -> None:
        """Compute the rows of many terms at once, much faster than one by one."""
        known = self._terms.get((name, float(boost)), {})
        if missing := [term for term in terms if term not in known]:
            self._compute(name, missing, boost)

    def field_rows(self, name: str, terms: Iterable[str], boost: np.float32) -> FieldRows | None:
        """Return the rows of all terms of a field; None if `terms` are too few."""
        known = self._whole.get((name, float(boost)))
        if known is not None:
            return known
        field = self.reader.fields[name]
        if not self._is_worth_scoring_whole(field, list(dict.fromkeys(terms)), boost):
            return None
        return self._whole_field(field, boost)

    def _compute(self, name: str, terms: Iterable[str], boost: np.float32) -> dict[str, ScoreRow]:
        field = self.reader.fields[name]
        distinct = list(dict.fromkeys(terms))
        rows: dict[str, ScoreRow] = {}
        if self._is_worth_scoring_whole(field, distinct, boost):
            row = self._whole_field(field, boost)
            for term, part in zip(distinct, field.parts(distinct), strict=True):
                frequency = field.document_frequency(term) if self.reader.is_part else part.stop - part.start
                rows[term] = self.row(row.documents[part], row.scores[part], row.positive, frequency)
        else:
            for group in _groups(field, distinct):
                rows |= self._score_group(field, group, boost)
        self._add(self._terms.setdefault((name, float(boost)), {}), rows)
        return rows

    def _is_worth_scoring_whole(self, field: FieldReader, terms: Sequence[str], boost: np.float32) -> bool:
        if (field.field.name, float(boost)) in self._whole:
            return True
        if field.postings_count > SMALL_FIELD or len(terms) * MANY_TERMS < len(field.terms):
            return False
        with np.errstate(over="ignore"):  # terms outside the queries must not cause an error
            return bool(np.isfinite(field.weight(boost, 0)))

    def _whole_field(self, field: FieldReader, boost: np.float32) -> FieldRows:
        key = field.field.name, float(boost)
        rows = self._whole.get(key)
        if rows is None:
            field.remember_terms()
            starts, frequencies = field.starts, field.document_frequencies
            row = self._scored(field, field.all_postings(), np.diff(starts), frequencies, boost)
            rows = FieldRows(
                row.documents,
                row.scores,
                row.positive,
                starts=starts,
                frequencies=frequencies,
                common=most_of_a_rare_term(self.reader.whole_count),
            )
            self._add(self._whole, {key: rows})
        return rows

    def _score_group(
        self, field: FieldReader, terms: Sequence[str], boost: np.float32
    ) -> dict[str, ScoreRow]:
        postings, counts = field.postings_of(terms)
        frequencies = counts
        if self.reader.is_part:
            frequencies = np.array([field.document_frequency(term) for term in terms], np.int64)
        scored = self._scored(field, postings, counts, frequencies, boost)
        ends = np.cumsum(counts).tolist()
        return {
            term: self.row(scored.documents[start:end], scored.scores[start:end], scored.positive, frequency)
            for term, start, end, frequency in zip(
                terms, [0, *ends], ends, frequencies.tolist(), strict=False
            )
        }

    def _scored(
        self,
        field: FieldReader,
        postings: Postings,
        counts: NDArray[np.int64],
        frequencies: NDArray[np.int64],
        boost: np.float32,
    ) -> ScoreRow:
        """Return the scores of concatenated postings, given number of postings and document frequency of each
        term.
        """
        # Skip terms without postings here: their weights could exceed float32.
        present = np.flatnonzero(counts)
        counts = counts[present]
        distinct, indices = np.unique(frequencies[present], return_inverse=True)
        weights = np.array([field.weight(boost, count) for count in distinct.tolist()], np.float32)
        scores = similarity.scores(
            np.repeat(weights[indices], counts), postings.frequencies, field.inverses(postings.documents)
        )
        return ScoreRow(postings.documents, scores, bool(scores.all()))

    def _add(self, rows: dict[Any, Any], new: Mapping[Any, ScoreRow]) -> None:
        with self._lock:
            rows.update(new)
            for key, row in new.items():
                # Omitting deleted documents copies the documents of a long row too.
                is_copied = self.reader.dead is not None and len(row.documents) >= LONG_LIST
                size = row.nbytes + (row.documents.nbytes if is_copied else 0)
                self._entries.append((rows, key, size))
                self._bytes += size
            while self._bytes > self._limit:
                oldest, key, size = self._entries.popleft()
                oldest.pop(key, None)
                self._bytes -= size

    def row(self, documents: Numbers, scores: Float32s, positive: bool, frequency: int) -> ScoreRow:
        dense: NDArray[Any] | None = None
        is_common = frequency > most_of_a_rare_term(self.reader.whole_count)
        if is_common and self._is_dense and len(documents):
            dense = np.zeros(
                self.reader.count, np.float64 if self.reader.count < MANY_DOCUMENTS else np.float32
            )
            dense[documents] = scores
        return ScoreRow(documents, scores, positive, is_common, dense, frequency)


def _groups(field: FieldReader, terms: Sequence[str]) -> Iterator[list[str]]:
    """Group terms of at most `POSTINGS_AT_ONCE` postings; terms with long lists are separate."""
    group: list[str] = []
    count = 0
    for term in terms:
        frequency = field.document_frequency(term)
        if frequency >= LONG_LIST:
            yield [term]
            continue
        if group and count + frequency > POSTINGS_AT_ONCE:
            yield group
            group, count = [], 0
        group.append(term)
        count += frequency
    if group:
        yield group


@dataclass(frozen=True, slots=True)
class Scores:
    """A score for every document, 0 for documents that do not match. The arrays belong to the caller."""

    values: Float32s
    matching: Mask | None = None  # None: the documents with a score above 0

    def mask(self) -> Mask:
        return self.values > 0 if self.matching is None else self.matching


def total(count: int, rows: Sequence[ScoreRow], others: Sequence[Scores] = ()) -> Scores:
    """Return the sum of rows and of scores of all `count` documents, computed in double and rounded once."""
    sums: Doubles = np.zeros(count)
    sparse = [row for row in rows if not row.is_common and len(row.documents)]
    if sparse:
        documents = np.concatenate([row.documents for row in sparse], dtype=np.intp)
        weights = np.concatenate([row.scores for row in sparse], dtype=np.float64)
        sums = np.asarray(np.bincount(documents, weights, count), np.float64)
    for row in rows:
        if row.dense is not None:
            sums += row.dense
        elif row.is_common:
            sums[row.documents] += row.scores
    for other in others:
        sums += other.values
    values = sums.astype(np.float32)
    if all(row.positive for row in rows) and all(other.matching is None for other in others):
        return Scores(values)
    mask = np.zeros(count, bool)
    for row in rows:
        mask[row.documents] = True
    for other in others:
        mask |= other.mask()
    return Scores(values, mask)


def total_of_few(rows: Sequence[ScoreRow]) -> ScoreRow | None:
    """Return the sum of rows as a row, rounded once; None if the rows have more than `FEW` postings."""
    # Frequencies in the whole index decide, so that segments round alike.
    rows = [row for row in rows if row.frequency]
    if len(rows) == 1:
        return rows[0]
    if not rows:
        return ScoreRow(np.empty(0, np.int32), np.empty(0, np.float32), True)
    if sum(row.frequency for row in rows) > FEW:
        return None
    documents, indices = np.unique(np.concatenate([row.documents for row in rows]), return_inverse=True)
    weights = np.concatenate([row.scores for row in rows], dtype=np.float64)
    scores = np.bincount(indices, weights, len(documents)).astype(np.float32)
    return ScoreRow(documents, scores, all(row.positive for row in rows))


def restrict(scores: Scores, mask: Mask) -> Scores:
    """Return the scores of the documents of a mask."""
    return Scores(scores.values * mask, mask)


def constant_scores(mask: Mask, boost: np.float32) -> Scores:
    """Give each matching document the same score."""
    return Scores(mask * boost, mask)
