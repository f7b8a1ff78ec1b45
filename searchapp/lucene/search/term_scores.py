"""The scores of a term in all documents that have it: a *row*.

The contribution of a term depends on the term, its weight and the document alone, and topics share most of their
terms. So the float32 scores of a row are computed once, kept, and only added up from then on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import similarity
from searchapp.lucene.index.reader import FieldReader, IndexReader, Mask, Numbers, Postings
from searchapp.lucene.queries.fulltext import Phrase
from searchapp.lucene.queries.query import ScoredLeaf
from searchapp.lucene.queries.term import Term
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


class Row(NamedTuple):
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


NO_ROW = Row(np.empty(0, np.int32), np.empty(0, np.float32), True)
"""The row of a term that does not occur."""


class Rows:
    """The rows of an index; the oldest are forgotten when they grow too many."""

    def __init__(self, reader: IndexReader, limit: int = CACHE_BYTES) -> None:
        self._reader = reader
        self._limit = limit
        self._is_dense = reader.count * DENSE_ROWS * np.dtype(np.float32).itemsize <= limit
        self._bytes = 0
        self._kept: deque[tuple[dict[Any, Row], Any, int]] = deque()
        """Where each row is kept, and its bytes, the oldest first."""

        self._terms: dict[tuple[str, float], dict[str, Row]] = {}
        self._others: dict[tuple[ScoredLeaf, float], Row] = {}
        self._whole: dict[tuple[str, float], Row] = {}
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """The number of documents that the rows are of."""
        return self._reader.count

    def everything(self) -> Mask:
        """Marks of all of them that count."""
        return self._reader.everything()

    def row(self, leaf: ScoredLeaf, boost: np.float32) -> Row:
        """The row of a leaf whose boost is given."""
        if isinstance(leaf, Term):
            return self.of_terms(leaf.field, [leaf.term], boost)[0]
        row = self._others.get((leaf, float(boost)))
        if row is None:
            row = self._computed(leaf, boost)
            self._keep(self._others, {(leaf, float(boost)): row})
        return row

    def of_terms(self, name: str, terms: Sequence[str], boost: np.float32) -> list[Row]:
        """The rows of terms of a field, in their order."""
        known = self._terms.setdefault((name, float(boost)), {})
        try:
            return [known[term] for term in terms]
        except KeyError:
            found = {term: known[term] for term in terms if term in known}
            missing = list(dict.fromkeys(term for term in terms if term not in found))
            found |= self._of_field(self._reader.fields[name], missing, boost)
            return [found[term] for term in terms]

    def prepare(self, name: str, terms: Iterable[str], boost: np.float32) -> None:
        """Compute the rows of many terms at once: much cheaper than one by one."""
        known = self._terms.get((name, float(boost)), {})
        missing = list(dict.fromkeys(term for term in terms if term not in known))
        if missing:
            self._of_field(self._reader.fields[name], missing, boost)

    def whole(self, name: str, terms: Iterable[str], boost: np.float32) -> Row | None:
        """The rows of all terms of a field, by rank one after the other; None where some `terms` are not worth it."""
        known = self._whole.get((name, float(boost)))
        if known is not None:
            return known
        field = self._reader.fields[name]
        if not self._is_worth_scoring_whole(field, list(dict.fromkeys(terms)), boost):
            return None
        return self._whole_field(field, boost)

    def _of_field(self, field: FieldReader, terms: Sequence[str], boost: np.float32) -> dict[str, Row]:
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

    def _whole_field(self, field: FieldReader, boost: np.float32) -> Row:
        """The rows of all terms of a field, one after the other."""
        key = field.field.name, float(boost)
        if key not in self._whole:
            field.remember_terms()
            row = self._scored(
                field, field.all_postings(), np.diff(field.starts), field.document_frequencies(), boost
            )
            self._keep(self._whole, {key: row})
            return row
        return self._whole[key]

    def _cut_from(self, whole: Row, field: FieldReader, terms: Sequence[str]) -> dict[str, Row]:
        return {
            term: self._row(
                whole.documents[part],
                whole.scores[part],
                whole.positive,
                field.document_frequency(term) if self._reader.is_part else part.stop - part.start,
            )
            for term, part in zip(terms, field.parts(terms), strict=True)
        }

    def _together(self, field: FieldReader, terms: Sequence[str], boost: np.float32) -> dict[str, Row]:
        postings, counts = field.postings_of(terms)
        frequencies = counts
        if self._reader.is_part:
            frequencies = np.array([field.document_frequency(term) for term in terms], np.int64)
        found = self._scored(field, postings, counts, frequencies, boost)
        ends = np.cumsum(counts).tolist()
        return {
            term: self._row(found.documents[start:end], found.scores[start:end], found.positive, frequency)
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
    ) -> Row:
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
        return Row(found.documents, scores, bool(scores.all()))

    def _keep(self, where: dict[Any, Row], rows: Mapping[Any, Row]) -> None:
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

    def _bytes_of(self, row: Row) -> int:
        """The memory for a row; where documents are left out, a long one has documents of its own."""
        is_copied = self._reader.dead is not None and len(row.documents) >= ALONE
        return row.bytes + (row.documents.nbytes if is_copied else 0)

    def _computed(self, leaf: ScoredLeaf, boost: np.float32) -> Row:
        field = self._reader.fields[leaf.field]
        found = leaf.postings(field)
        scores = scores_of(leaf, boost, field, found)
        frequency = frequency_in_whole(leaf, self._reader, len(scores))
        return self._row(found.documents, scores, bool(scores.all()), frequency)

    def _row(self, documents: Numbers, scores: Float32s, positive: bool, frequency: int) -> Row:
        """A row of what is in so many documents of the whole index."""
        dense: NDArray[Any] | None = None
        common = is_common(frequency, self._reader.whole_count)
        if common and self._is_dense and len(documents):
            dense = np.zeros(self._reader.count, np.float64 if self._reader.count < MANY else np.float32)
            dense[documents] = scores
        return Row(documents, scores, positive, common, dense, frequency)


def frequency_in_whole(leaf: ScoredLeaf, reader: IndexReader, here: int) -> int:
    """In how many documents of the whole index a leaf is that is in so many `here`, as far as that makes it common.

    To find the phrases of all parts of an index takes too long: a phrase never counts as common.
    """
    if isinstance(leaf, Phrase):
        return min(here, most_of_a_rare_term(reader.whole_count))
    return reader.sum_of_parts(here, lambda part: len(leaf.postings(part.fields[leaf.field]).documents))


def scores_of(leaf: ScoredLeaf, boost: np.float32, field: FieldReader, found: Postings) -> Float32s:
    """The scores of some postings of a leaf in its field."""
    weight = field.similarity.weight(boost, leaf.idf(field))
    return similarity.scores(weight, found.frequencies, field.inverses(found.documents))


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
