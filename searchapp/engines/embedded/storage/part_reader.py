"""A part of an index: its own documents, scored with what counts of the whole index.

The whole has the documents of a *base* but those that are *gone* (the base's dead documents) and those of a *new* part.
So each of its statistics is that of the base and of the new part together, less that of what is gone; rankings are then
those of one index of all documents, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from heapq import merge
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.similarity import FieldStatistics, Float32s
from searchapp.engines.embedded.storage import impacts
from searchapp.engines.embedded.storage.field_reader import extent
from searchapp.engines.embedded.storage.impacts import Impacts
from searchapp.engines.embedded.storage.reader import FieldReader, IndexReader, Mask, Numbers, Postings
from searchapp.engines.embedded.storage.term_blocks import TermBlocks

T = TypeVar("T")

SLACK = 2.0**-20
"""More than what rounding makes of the proportion of two norms, and of what is multiplied by it."""


class WholeField:
    """What counts of a field in the whole index."""

    def __init__(self, base: FieldReader, new: FieldReader, gone: FieldReader) -> None:
        self._base, self._new, self._gone = base, new, gone
        self.statistics = FieldStatistics(
            self._sum(lambda field: field.statistics.documents),
            self._sum(lambda field: field.statistics.tokens),
        )

    def _sum(self, count: Callable[[FieldReader], int]) -> int:
        return count(self._base) + count(self._new) - count(self._gone)

    def document_frequency(self, term: str) -> int:
        """In how many documents a term is."""
        one, other = self._base.document_frequency(term), self._new.document_frequency(term)
        return one + other - self._gone.document_frequency(term) if one else other

    def may_have(self, term: str) -> bool:
        """See `FieldReader.may_have`: the dictionary is that of the terms that still occur."""
        return bool(self.document_frequency(term)) or self._blocks.may_hold(term.encode())

    @cached_property
    def _blocks(self) -> TermBlocks:
        return TermBlocks(_once(merge(self._left(), self._new.terms)))

    def document_frequencies(self, field: FieldReader) -> NDArray[np.int64]:
        """In how many documents each term of the base or of the new part is, by its rank there."""
        if field.terms is not self._base.terms:
            terms = (term.decode() for term in field.terms)
            return np.fromiter(map(self.document_frequency, terms), np.int64, len(field.terms))
        found = self._base.document_frequencies()
        self._add(found, self._new, 1)
        self._add(found, self._gone, -1)
        return found

    def _left(self) -> Iterator[bytes]:
        """The terms of the base that still occur in it."""
        left = self._base.document_frequencies()
        self._add(left, self._gone, -1)
        return (term for term, count in zip(self._base.terms, left.tolist(), strict=True) if count)

    def _add(self, frequencies: NDArray[np.int64], other: FieldReader, sign: int) -> None:
        """Add the document frequencies of another index, with a sign, to those of the base."""
        for term, count in zip(other.terms, other.document_frequencies().tolist(), strict=True):
            rank = self._base.terms.rank(term.decode())
            if rank is not None:
                frequencies[rank] += sign * count

    def extent(self, low: Any, high: Any) -> tuple[bool, bool]:
        """See `FieldReader.extent`."""
        count = self._sum(lambda field: field.values_count)
        start = self._sum(lambda field: field.places(low, high).start)
        stop = self._sum(lambda field: field.places(low, high).stop)
        return extent(low, high, slice(start, stop), count)


class PartField(FieldReader):
    """A field of a part: its statistics are those of the whole, and nobody is told of documents that are dead.

    Only `bounded` and `positions` give these as well: who asks for bounds leaves them out where it scores, and phrases
    leave them out when they are found.
    """

    def __init__(self, field: FieldReader, whole: WholeField, live: Mask | None) -> None:
        """`live` marks the documents that are not dead, None if none is."""
        vars(self).update(vars(field))  # it is the same field, as it was opened
        self._whole = whole
        self._live = live
        self.statistics = whole.statistics
        if field.field.is_number:
            return
        self.norm_inverses = self.similarity.norm_inverses(self.statistics)
        if field.field.is_text and self._impacts is not None:
            self._scale_edges(field.norm_inverses)

    def _scale_edges(self, made_with: Float32s) -> None:
        """Let the impacts in files, which were made with other norms, bound the scores of these."""
        self._made_with = made_with
        same = made_with == self.norm_inverses
        if same.all():
            return
        with np.errstate(all="ignore"):
            ratios = np.where(same, 1.0, self.norm_inverses.astype(np.float64) / made_with)
        if not (np.isfinite(ratios) & (ratios > 0)).all():
            self._impacts = self._greatest = None  # they are computed anew
            return
        with np.errstate(over="ignore"):
            self.edges_above = (impacts.EDGES * (ratios.max() * (1 + SLACK))).astype(np.float32)
            self.edges_below = (impacts.EDGES * (ratios.min() * (1 - SLACK))).astype(np.float32)

    # Of the whole

    def document_frequency(self, term: str) -> int:
        return self._whole.document_frequency(term)

    def document_frequencies(self) -> NDArray[np.int64]:
        return self._document_frequencies

    @cached_property
    def _document_frequencies(self) -> NDArray[np.int64]:
        return self._whole.document_frequencies(self)

    def elsewhere(self, terms: Iterable[str]) -> tuple[int, int]:
        found = [self.document_frequency(term) for term in terms if self.rank(term) is None]
        return sum(map(bool, found)), sum(found)

    def occurs(self, term: str) -> bool:
        return self._whole.document_frequency(term) > 0

    def may_have(self, term: str) -> bool:
        return self._whole.may_have(term)

    def extent(self, low: Any, high: Any) -> tuple[bool, bool]:
        return self._whole.extent(low, high)

    # Without the dead

    @property
    def present(self) -> Numbers:
        return self._of_live(super().present)

    def documents_with(self, ranks: Iterable[int]) -> Numbers:
        return self._of_live(super().documents_with(ranks))

    def postings(self, term: str) -> Postings:
        return self.living(super().postings(term))

    def living(self, found: Postings) -> Postings:
        kept = self._kept(found.documents)
        return found if kept is None else Postings(found.documents[kept], found.frequencies[kept])

    def between(self, low: Any, high: Any) -> Numbers:
        return self._of_live(super().between(low, high))

    @property
    def starts(self) -> NDArray[np.int64]:
        return super().starts if self._live is None else self._live_starts

    @cached_property
    def _live_starts(self) -> NDArray[np.int64]:
        assert self._live is not None
        before = np.append(0, np.cumsum(self._live.take(self._documents.all())))
        return np.asarray(before[super().starts], np.int64)

    def all_postings(self) -> Postings:
        return self.living(super().all_postings())

    def postings_of(self, terms: Sequence[str]) -> tuple[Postings, NDArray[np.int64]]:
        found, counts = super().postings_of(terms)
        kept = self._kept(found.documents)
        if kept is None:
            return found, counts
        before = np.append(0, np.cumsum(kept))
        counts = np.diff(before[np.append(0, np.cumsum(counts))])
        return Postings(found.documents[kept], found.frequencies[kept]), counts

    def _of_live(self, documents: Numbers) -> Numbers:
        kept = self._kept(documents)
        return documents if kept is None else documents[kept]

    def _kept(self, documents: Numbers) -> Mask | None:
        """Which documents are not dead, None if none is."""
        if self._live is None:
            return None
        kept = self._live.take(documents)
        return None if kept.all() else kept

    # Impacts

    @cached_property
    def frequencies_by_impact(self) -> NDArray[np.uint8] | None:
        return impacts.frequencies(
            self._impact_table if self._impacts is None else impacts.table(self._made_with)
        )

    @cached_property
    def _impact_table(self) -> Impacts:
        return impacts.table(self.norm_inverses)


class PartReader(IndexReader):
    """A part of an index, open."""

    def __init__(
        self,
        reader: IndexReader,
        fields: dict[str, WholeField],
        parts: Sequence[IndexReader],
        *,
        whole_count: int,
        first: int = 0,
        dead: Numbers | None = None,
    ) -> None:
        """`first` is the number that its first document has in the whole, `parts` will hold all parts."""
        vars(self).update(vars(reader))  # it is the same index, as it was opened
        self.first = first
        self.whole_count = whole_count
        self._parts = parts
        if dead is not None and len(dead):
            self.dead = dead
            self.live = np.ones(reader.count, bool)
            self.live[dead] = False
        self.fields = {
            name: PartField(field, fields[name], self.live) for name, field in reader.fields.items()
        }

    is_part = True

    @property
    def parts(self) -> Sequence[IndexReader]:
        return self._parts

    def document(self, document_id: str) -> int | None:
        found = super().document(document_id)
        return None if found is None or (self.live is not None and not self.live[found]) else found

    def sum_of_parts(self, here: int, count: Callable[[IndexReader], int]) -> int:
        return sum(here if part is self else count(part) for part in self._parts)


def _once(terms: Iterable[bytes]) -> Iterator[bytes]:
    """Each of some terms once, which are ascending."""
    last = None
    for term in terms:
        if term != last:
            yield term
        last = term
