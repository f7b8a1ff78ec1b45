"""The scores of a term in all of its documents, a *row*, and sums of rows.

Sums are made in double and rounded once, as in Lucene. This is the reference, which the C functions equal to the last
bit.

The contribution of a term depends on the term, its weight and the document alone, and topics share most of their
terms. So the float32 scores of a row are computed once, cached, and only added up from then on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import similarity
from searchapp.lucene.index.reader import FieldReader, IndexReader, Mask, Numbers, Postings
from searchapp.lucene.similarity import Float32s

Doubles = NDArray[np.float64]

COMMON_SHARE, COMMON_SHARE_OF_MANY = 8, 4
"""A term in more than one document of this many is common, and its row may be kept as a number for every document.

The sum of two arrays takes half a nanosecond per element, an addition at given places five or more.
"""

MANY_DOCUMENTS = 1 << 17
"""Documents from which these numbers are float32, of half the size, and of fewer terms, so that all have room."""

CACHE_BYTES = 256 << 20
"""Memory for rows."""

DENSE_ROWS = 32
"""No row is kept as a number for every document if no more rows than these fit into the cache so."""

POSTINGS_AT_ONCE = 1 << 21
"""Postings that are scored at a time, which bounds the memory for scoring."""

LONG_LIST = 1 << 14
"""Postings of a term from which the term is scored separately: joined to others its postings would be copied."""

SMALL_FIELD = 1 << 19
"""Postings up to which all of a field is scored at once, when a batch of topics needs many of its terms.

This takes milliseconds, and the following batches have next to nothing left to compute.
"""

MANY_TERMS = 32
"""The share of a field's terms that counts as many: one in this many."""

FEW = 256
"""Postings up to which a sort takes less time than a number for every document."""


class ScoreRow(NamedTuple):
    """The scores of the documents that match."""

    # In ascending order.
    documents: Numbers
    scores: Float32s
    # Whether no score is 0.
    positive: bool
    # Whether the row is added after others, which may matter to the last bit where boosts are very different.
    is_common: bool = False
    # Perhaps the same scores for every document.
    dense: NDArray[Any] | None = None
    # Length of the row of the entire index from which this one is cut; None if it is entire itself.
    whole: int | None = None

    @property
    def frequency(self) -> int:
        """The number of documents that match in the entire index."""
        return len(self.documents) if self.whole is None else self.whole

    @property
    def bytes(self) -> int:
        """The memory for it; the documents of a long row are those of the index, which are not copied."""
        dense = 0 if self.dense is None else self.dense.nbytes
        return dense + self.scores.nbytes + (self.documents.nbytes if len(self.documents) < LONG_LIST else 0)


def most_of_a_rare_term(count: int) -> int:
    """Return the greatest document frequency of a term that is not common, in an index of `count` documents."""
    share = COMMON_SHARE if count < MANY_DOCUMENTS else COMMON_SHARE_OF_MANY
    return count // share if share else count


class ScoreRows:
    """A cache of the rows of an index, or of a part of one; the oldest rows are evicted."""

    def __init__(self, reader: IndexReader, limit: int = CACHE_BYTES) -> None:
        self.reader = reader
        self._limit = limit
        self._is_dense = reader.count * DENSE_ROWS * np.dtype(np.float32).itemsize <= limit
        self._bytes = 0
        # The dictionary, key and bytes of each row, the oldest first.
        self._entries: deque[tuple[dict[Any, ScoreRow], Any, int]] = deque()
        self._terms: dict[tuple[str, float], dict[str, ScoreRow]] = {}
        self._others: dict[Hashable, ScoreRow] = {}
        self._whole: dict[tuple[str, float], ScoreRow] = {}
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        return self.reader.count

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
        """Compute the rows of many terms at once, which is much faster than one by one."""
        known = self._terms.get((name, float(boost)), {})
        if missing := [term for term in terms if term not in known]:
            self._compute(name, missing, boost)

    def whole(self, name: str, terms: Iterable[str], boost: np.float32) -> ScoreRow | None:
        """Return the rows of all terms of a field, by rank one after the other; None if `terms` are too few for it."""
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
        with np.errstate(over="ignore"):  # a term that no query has must not be rejected
            return bool(np.isfinite(field.weight(boost, 0)))

    def _whole_field(self, field: FieldReader, boost: np.float32) -> ScoreRow:
        key = field.field.name, float(boost)
        row = self._whole.get(key)
        if row is None:
            field.remember_terms()
            row = self._scored(
                field, field.all_postings(), np.diff(field.starts), field.document_frequencies, boost
            )
            self._add(self._whole, {key: row})
        return row

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
        """Return the scores of the postings of several terms.

        Args:
            field: the field of the terms
            postings: those of all terms, one after the other
            counts: the number of postings of each term
            frequencies: the document frequency of each term in the entire index
            boost: the boost of all terms
        """
        # Terms without postings here have no weight, which could leave float32.
        present = np.flatnonzero(counts)
        counts = counts[present]
        distinct, indices = np.unique(frequencies[present], return_inverse=True)
        weights = np.array([field.weight(boost, count) for count in distinct.tolist()], np.float32)
        scores = similarity.scores(
            np.repeat(weights[indices], counts), postings.frequencies, field.inverses(postings.documents)
        )
        return ScoreRow(postings.documents, scores, bool(scores.all()))

    def _add(self, rows: dict[Any, ScoreRow], new: Mapping[Any, ScoreRow]) -> None:
        """Add rows to a dictionary of the cache, and evict the oldest ones above the limit."""
        with self._lock:
            rows.update(new)
            for key, row in new.items():
                # Where deleted documents are left out, the documents of a long row are copied too.
                is_copied = self.reader.dead is not None and len(row.documents) >= LONG_LIST
                size = row.bytes + (row.documents.nbytes if is_copied else 0)
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
    """Yield the terms in groups of at most `POSTINGS_AT_ONCE` postings, terms of long lists separately."""
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
    """A score for every document, 0 for those that do not match. The arrays belong to the caller."""

    values: Float32s
    # The documents that match; None if they are those with a score above 0, as in most queries.
    matching: Mask | None = None

    def mask(self) -> Mask:
        return self.values > 0 if self.matching is None else self.matching


def total(count: int, rows: Sequence[ScoreRow], others: Sequence[Scores] = ()) -> Scores:
    """Return the sum of rows and of scores of all `count` documents, in double, rounded once."""
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
    """Return the sum of rows, in double, rounded once, as a row; None if several rows have many documents.

    The documents of the entire index decide, so that sums of some documents are rounded as those of all.
    """
    rows = [row for row in rows if row.frequency]
    if len(rows) == 1:
        return rows[0]
    if not rows:
        return ScoreRow(np.empty(0, np.int32), np.empty(0, np.float32), True)
    if sum(row.frequency for row in rows) > FEW:
        return None
    documents, places = np.unique(np.concatenate([row.documents for row in rows]), return_inverse=True)
    weights = np.concatenate([row.scores for row in rows], dtype=np.float64)
    scores = np.bincount(places, weights, len(documents)).astype(np.float32)
    return ScoreRow(documents, scores, all(row.positive for row in rows))


def restricted(scores: Scores, mask: Mask) -> Scores:
    """Return the scores of the documents of a mask."""
    return Scores(scores.values * mask, mask)


def constant_scores(mask: Mask, boost: np.float32) -> Scores:
    """Return the scores of a query that gives each matching document the same score."""
    return Scores(mask * boost, mask)
