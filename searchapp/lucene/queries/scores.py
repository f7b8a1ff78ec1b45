"""What queries score with: the scores of a term in all documents that have it, a *row*, and sums of rows.

Sums are made in double and rounded once, as in Lucene. This is the reference that the C functions equal to the last
bit.

The contribution of a term depends on the term, its weight and the document alone, and topics share most of their
terms. So the float32 scores of a row are computed once, kept, and only added up from then on.
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

Adding two arrays of numbers takes half a nanosecond an element, adding at given places five or more.
"""

MANY = 1 << 17
"""From so many documents on these numbers are float32, of half the size, and of fewer terms, so that all have room."""

CACHE_BYTES = 256 << 20
"""Memory for rows."""

DENSE_ROWS = 32
"""If no more rows than these fit into it as a number for every document, none is kept so."""

TOGETHER = 1 << 21
"""Postings that are scored at a time, which bounds the memory that the scoring takes."""

ALONE = 1 << 14
"""A term with so many postings is scored alone: nothing is gained by joining them to others, which copies them."""

WHOLE = 1 << 19
"""A field with no more postings may be scored whole, once a batch of topics needs many of its terms.

Scoring a field whole takes milliseconds, and the batches after that have next to nothing left to compute.
"""

MANY_TERMS = 32
"""One term in this many of a field's is many."""


class ScoreRow(NamedTuple):
    """The scores of the documents that match, which are ascending; `dense` are perhaps the same for every document.

    `positive` says that none of the scores is 0. The row of a common term is added up after those of others, which may
    make a difference to the last bit where boosts are very different. `whole` is the number of documents of the row
    of the whole index that this one is cut out of; None if it is whole itself.
    """

    documents: Numbers
    scores: Float32s
    positive: bool
    is_common: bool = False
    dense: NDArray[Any] | None = None
    whole: int | None = None

    @property
    def frequency(self) -> int:
        """The number of documents that match in the whole index."""
        return len(self.documents) if self.whole is None else self.whole

    @property
    def bytes(self) -> int:
        """The memory for it; the documents of a long one are those of the index, which are not copied."""
        dense = 0 if self.dense is None else self.dense.nbytes
        return dense + self.scores.nbytes + (self.documents.nbytes if len(self.documents) < ALONE else 0)


def is_common(frequency: int, count: int) -> bool:
    """Whether a term in so many documents of an index is common."""
    return frequency > most_of_a_rare_term(count)


def most_of_a_rare_term(count: int) -> int:
    """In how many documents of an index a term may be without being common."""
    share = COMMON_SHARE if count < MANY else COMMON_SHARE_OF_MANY
    return count // share if share else count


NO_ROW = ScoreRow(np.empty(0, np.int32), np.empty(0, np.float32), True)
"""The row of a term that does not occur."""


class ScoreRows:
    """The rows of an index, or of a part of one; the oldest are forgotten when they grow too many."""

    def __init__(self, reader: IndexReader, limit: int = CACHE_BYTES) -> None:
        self.reader = reader
        self._limit = limit
        self._is_dense = reader.count * DENSE_ROWS * np.dtype(np.float32).itemsize <= limit
        self._bytes = 0
        self._kept: deque[tuple[dict[Any, ScoreRow], Any, int]] = deque()
        """Where each row is kept, and its bytes, the oldest first."""

        self._terms: dict[tuple[str, float], dict[str, ScoreRow]] = {}
        self._others: dict[Hashable, ScoreRow] = {}
        self._whole: dict[tuple[str, float], ScoreRow] = {}
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """The number of documents that the rows are of."""
        return self.reader.count

    def kept(self, key: Hashable, compute: Callable[[], ScoreRow]) -> ScoreRow:
        """The row of a leaf that is no term, computed where it is not known."""
        row = self._others.get(key)
        if row is None:
            row = compute()
            self._keep(self._others, {key: row})
        return row

    def of_terms(self, name: str, terms: Sequence[str], boost: np.float32) -> list[ScoreRow]:
        """The rows of terms of a field, in their order."""
        known = self._terms.setdefault((name, float(boost)), {})
        try:
            return [known[term] for term in terms]
        except KeyError:
            found = {term: known[term] for term in terms if term in known}
            missing = list(dict.fromkeys(term for term in terms if term not in found))
            found |= self._of_field(self.reader.fields[name], missing, boost)
            return [found[term] for term in terms]

    def prepare(self, name: str, terms: Iterable[str], boost: np.float32) -> None:
        """Compute the rows of many terms at once: much cheaper than one by one."""
        known = self._terms.get((name, float(boost)), {})
        missing = list(dict.fromkeys(term for term in terms if term not in known))
        if missing:
            self._of_field(self.reader.fields[name], missing, boost)

    def whole(self, name: str, terms: Iterable[str], boost: np.float32) -> ScoreRow | None:
        """The rows of all terms of a field, by rank one after the other; None where some `terms` are not worth it."""
        known = self._whole.get((name, float(boost)))
        if known is not None:
            return known
        field = self.reader.fields[name]
        if not self._is_worth_scoring_whole(field, list(dict.fromkeys(terms)), boost):
            return None
        return self._whole_field(field, boost)

    def _of_field(self, field: FieldReader, terms: Sequence[str], boost: np.float32) -> dict[str, ScoreRow]:
        """Compute and keep the rows of terms of one field."""
        if self._is_worth_scoring_whole(field, terms, boost):
            rows = self._cut_from(self._whole_field(field, boost), field, terms)
        else:
            rows = {}
            for some in _groups(field, terms):
                rows |= self._together(field, some, boost)
        self._keep(self._terms.setdefault((field.field.name, float(boost)), {}), rows)
        return rows

    def _is_worth_scoring_whole(self, field: FieldReader, terms: Sequence[str], boost: np.float32) -> bool:
        if (field.field.name, float(boost)) in self._whole:
            return True
        if field.postings_count > WHOLE or len(terms) * MANY_TERMS < len(field.terms):
            return False
        with np.errstate(over="ignore"):  # a term that nobody asks for must not be refused
            return bool(np.isfinite(field.weight(boost, 0)))

    def _whole_field(self, field: FieldReader, boost: np.float32) -> ScoreRow:
        """The rows of all terms of a field, one after the other."""
        key = field.field.name, float(boost)
        if key not in self._whole:
            field.remember_terms()
            row = self._scored(
                field, field.all_postings(), np.diff(field.starts), field.document_frequencies, boost
            )
            self._keep(self._whole, {key: row})
            return row
        return self._whole[key]

    def _cut_from(self, whole: ScoreRow, field: FieldReader, terms: Sequence[str]) -> dict[str, ScoreRow]:
        return {
            term: self.row(
                whole.documents[part],
                whole.scores[part],
                whole.positive,
                field.document_frequency(term) if self.reader.is_part else part.stop - part.start,
            )
            for term, part in zip(terms, field.parts(terms), strict=True)
        }

    def _together(self, field: FieldReader, terms: Sequence[str], boost: np.float32) -> dict[str, ScoreRow]:
        postings, counts = field.postings_of(terms)
        frequencies = counts
        if self.reader.is_part:
            frequencies = np.array([field.document_frequency(term) for term in terms], np.int64)
        found = self._scored(field, postings, counts, frequencies, boost)
        ends = np.cumsum(counts).tolist()
        return {
            term: self.row(found.documents[start:end], found.scores[start:end], found.positive, frequency)
            for term, start, end, frequency in zip(
                terms, [0, *ends], ends, frequencies.tolist(), strict=False
            )
        }

    def _scored(
        self,
        field: FieldReader,
        found: Postings,
        counts: NDArray[np.int64],
        frequencies: NDArray[np.int64],
        boost: np.float32,
    ) -> ScoreRow:
        """The scores of the postings of several terms: how many each term has here, and in the whole index.

        What stands nowhere here has no weight, so that it can't leave float32 either.
        """
        here = np.flatnonzero(counts)
        counts = counts[here]
        different, which = np.unique(frequencies[here], return_inverse=True)
        weights = np.array([field.weight(boost, count) for count in different.tolist()], np.float32)
        scores = similarity.scores(
            np.repeat(weights[which], counts), found.frequencies, field.inverses(found.documents)
        )
        return ScoreRow(found.documents, scores, bool(scores.all()))

    def _keep(self, where: dict[Any, ScoreRow], rows: Mapping[Any, ScoreRow]) -> None:
        """Keep rows, and forget the oldest ones if they become too many."""
        with self._lock:
            where.update(rows)
            for key, row in rows.items():
                size = self._bytes_of(row)
                self._kept.append((where, key, size))
                self._bytes += size
            while self._bytes > self._limit:
                oldest, key, size = self._kept.popleft()
                oldest.pop(key, None)
                self._bytes -= size

    def _bytes_of(self, row: ScoreRow) -> int:
        """The memory for a row; where documents are left out, a long one has documents of its own."""
        is_copied = self.reader.dead is not None and len(row.documents) >= ALONE
        return row.bytes + (row.documents.nbytes if is_copied else 0)

    def row(self, documents: Numbers, scores: Float32s, positive: bool, frequency: int) -> ScoreRow:
        """A row of what is in so many documents of the whole index."""
        dense: NDArray[Any] | None = None
        common = is_common(frequency, self.reader.whole_count)
        if common and self._is_dense and len(documents):
            dense = np.zeros(self.reader.count, np.float64 if self.reader.count < MANY else np.float32)
            dense[documents] = scores
        return ScoreRow(documents, scores, positive, common, dense, frequency)


def _groups(field: FieldReader, terms: Sequence[str]) -> Iterator[list[str]]:
    """The terms in groups that have no more than `TOGETHER` postings, those of many postings apart."""
    group: list[str] = []
    postings_of_group = 0
    for term in terms:
        frequency = field.document_frequency(term)
        if frequency >= ALONE:
            yield [term]
            continue
        if group and postings_of_group + frequency > TOGETHER:
            yield group
            group, postings_of_group = [], 0
        group.append(term)
        postings_of_group += frequency
    if group:
        yield group


FEW = 256
"""Postings up to which it is cheaper to sort them than to make a number for every document."""


@dataclass(frozen=True, slots=True)
class Scores:
    """A score for every document, 0 for those that do not match.

    `matching` marks the documents that match. None stands for "where the score is not 0", which most queries come down
    to and which then need not be computed. The arrays belong to the caller who asked for the scores.
    """

    values: Float32s
    matching: Mask | None = None

    def mask(self) -> Mask:
        return self.values > 0 if self.matching is None else self.matching


def total(count: int, rows: Sequence[ScoreRow], others: Sequence[Scores] = ()) -> Scores:
    """The sum of rows and of scores, in double, rounded once; `count` is the number of all documents."""
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
    mask = _marked(count, (row.documents for row in rows))
    for other in others:
        mask |= other.mask()
    return Scores(values, mask)


def total_of_few(rows: Sequence[ScoreRow]) -> ScoreRow | None:
    """The sum of rows as a row, if they have few documents, or one of them all; None if they have many.

    What counts are the documents of the whole index, so that sums of some documents are rounded as those of all.
    """
    rows = [row for row in rows if row.frequency]
    if len(rows) == 1:
        return rows[0]
    return _summed(rows) if sum(row.frequency for row in rows) <= FEW else None


def _marked(count: int, documents: Iterable[NDArray[Any]]) -> Mask:
    mask = np.zeros(count, bool)
    for some in documents:
        mask[some] = True
    return mask


def _summed(rows: Sequence[ScoreRow]) -> ScoreRow:
    """The sum of rows that have few documents, in double, rounded once."""
    if not rows:
        return NO_ROW
    documents, places = np.unique(np.concatenate([row.documents for row in rows]), return_inverse=True)
    weights = np.concatenate([row.scores for row in rows], dtype=np.float64)
    scores = np.bincount(places, weights, len(documents)).astype(np.float32)
    return ScoreRow(documents, scores, all(row.positive for row in rows))


def restricted(scores: Scores, mask: Mask) -> Scores:
    """The scores of the documents that the mask leaves."""
    return Scores(scores.values * mask, mask)


def of_constant(mask: Mask, boost: np.float32) -> Scores:
    """The scores of a query that gives each document that it matches the same one."""
    return Scores(mask * boost, mask)
