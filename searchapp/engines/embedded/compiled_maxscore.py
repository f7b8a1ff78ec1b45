"""The best documents of one query by the functions of `maxscore.c`, where they were compiled: see `pruning`.

They find and score what `Flat` says: sums and maxima of what terms of text fields give. `maxscore` says the same in
NumPy, to the same bits.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded import native
from searchapp.engines.embedded.bounded_clause import is_bounded
from searchapp.engines.embedded.laid_out import LaidOut, Postings
from searchapp.engines.embedded.maxscore import SLACK
from searchapp.engines.embedded.memory import NOTHING, Answer
from searchapp.engines.embedded.queries.leaves.term import Term
from searchapp.engines.embedded.queries.nodes import TermsDisjunction
from searchapp.engines.embedded.rows import most_of_a_rare_term
from searchapp.engines.embedded.storage.impacts import Impacts
from searchapp.engines.embedded.storage.reader import BoundedPostings, FieldReader, IndexReader, Numbers
from searchapp.engines.embedded.sums import FEW
from searchapp.engines.embedded.together import Clause, Flat

MOST_TERMS = 1 << 15
"""Terms whose postings are kept at hand, some 700 bytes each."""

_CLAUSE = struct.Struct("=10qd")
"""`Clause` of maxscore.c."""

_TYPES: dict[str, type[ctypes._SimpleCData[Any]]] = {
    "slack": ctypes.c_double,
    "tie_breaker": ctypes.c_double,
    **dict.fromkeys(("ranks", "live", "excluded", "room", "documents", "scores", "looks"), ctypes.c_void_p),
    **dict.fromkeys(("clauses", "marks", "sum_ends", "sum_rounded"), ctypes.c_char_p),
    **dict.fromkeys(("terms_elsewhere", "postings_elsewhere"), ctypes.c_char_p),
}


class _Query(ctypes.Structure):
    """`Query` of maxscore.c."""

    _fields_ = [
        (name, _TYPES.get(name, ctypes.c_int64))
        for name in (
            *("count", "ranks", "live", "slack", "few", "common"),
            *("clause_count", "clauses", "marks", "sum_count", "sum_ends", "sum_rounded"),
            *("terms_elsewhere", "postings_elsewhere"),
            *("tie_breaker", "excluded_count", "excluded", "size", "room"),
            *("found", "documents", "scores", "looks"),
        )
    ]


@dataclass(frozen=True, slots=True)
class _Term:
    """A term that stands in some document, and what maxscore.c knows of it.

    `is_bounded` says whether its scores are numbers that float32 has in full precision.
    """

    key: Hashable
    postings: BoundedPostings
    is_bounded: bool
    packed: bytes

    @property
    def documents(self) -> Numbers:
        return self.postings.documents

    @property
    def impacts(self) -> Impacts:
        return self.postings.impacts


class Marks(LaidOut):
    """Which documents have a term, and where its postings stand: 16 bytes for 64 documents, `Marks` of maxscore.c."""

    @staticmethod
    def _bytes_of_term(count: int) -> int:
        return 16 * (count // 64 + 1)

    def __init__(self, count: int, limit: int) -> None:
        super().__init__(count, limit)
        self._addresses: dict[Hashable, int] = {}

    def address(self, clause: Postings) -> int:
        """Where those of a term are, 0 if there are none."""
        return 0 if self.of(clause, 0) is None else self._addresses[clause.key]

    def _lay_out(self, clause: Postings, room: Impacts) -> None:
        library = native.library()
        documents = clause.documents
        assert library is not None
        if library.searchapp_mark(documents.ctypes.data, len(documents), self._count, room.ctypes.data):
            raise IndexError("the postings of a term are not those of documents")
        self._addresses[clause.key] = room.ctypes.data


class CompiledSearch:
    """Finds the best documents of the queries that `Flat` can say."""

    def __init__(self, reader: IndexReader, map_bytes: int) -> None:
        self._reader = reader
        self._marks = Marks(reader.count, map_bytes)
        self._terms: dict[tuple[str, float], dict[str, _Term | None]] = {}
        self._kept = 0
        self._room: NDArray[np.int64] = np.empty(0, np.int64)
        self._lock = threading.Lock()
        """For the room, and so that nobody marks another term where the marks of one are in use."""

    @cached_property
    def _query(self) -> _Query:
        """What all queries have in common; made for the first one, since it reads what orders the ids."""
        self._ranks = np.ascontiguousarray(self._reader.ranks, np.int32)
        return _Query(
            count=self._reader.count,
            ranks=self._ranks.ctypes.data,
            live=None if self._reader.live is None else self._reader.live.ctypes.data,
            slack=SLACK,
            few=FEW,
            common=most_of_a_rare_term(self._reader.whole_count),
        )

    def best(self, library: ctypes.CDLL, flat: Flat, excluded: Numbers, size: int) -> Answer | None:
        """The first `size` documents but the excluded ones, of what it may find.

        None where scores may leave float32, and where it is at work already.

        Raises:
            IndexError: a number points where nothing is: files were altered.
        """
        if not self._lock.acquire(blocking=False):
            return None  # another thread is at it, or was when this process was forked, where nobody gives it back
        try:
            clauses = [self._of_clause(clause) for clause in flat.clauses]
            every = [term for terms in clauses for term in terms]
            if not all(term.is_bounded for term in every):
                return None
            if not every:
                return NOTHING
            return self._found(library, flat, clauses, every, excluded, size)
        finally:
            self._lock.release()

    def _found(
        self,
        library: ctypes.CDLL,
        flat: Flat,
        clauses: Sequence[Sequence[_Term]],
        every: Sequence[_Term],
        excluded: Numbers,
        size: int,
    ) -> Answer:
        count, sums = len(every), len(clauses)
        room = library.searchapp_room(count, sums, size)
        if len(self._room) < room:
            self._room = np.empty(room, np.int64)
            self._query.room = self._room.ctypes.data
        of_sums = struct.Struct(f"={sums}q")
        query = self._query
        query.clause_count = count
        query.clauses = b"".join([term.packed for term in every])
        query.marks = struct.pack(f"={count}q", *map(self._marks.address, every))
        query.sum_count = sums
        query.sum_ends = of_sums.pack(*accumulate(map(len, clauses)))
        query.sum_rounded = of_sums.pack(*[clause.rounded for clause in flat.clauses])
        if self._reader.is_part:
            elsewhere = [clause.elsewhere(self._reader) for clause in flat.clauses]
            query.terms_elsewhere = of_sums.pack(*[terms for terms, _postings in elsewhere])
            query.postings_elsewhere = of_sums.pack(*[postings for _terms, postings in elsewhere])
        query.tie_breaker = flat.tie_breaker
        query.excluded_count = len(excluded)
        if len(excluded):
            excluded = np.sort(excluded)
            query.excluded = excluded.ctypes.data
        query.size = size
        if library.searchapp_search(ctypes.byref(query)):
            raise IndexError("the postings of a term are not those of documents")
        for term, looks in zip(every, self._answered(query.looks, np.int64, count).tolist(), strict=True):
            if looks:
                self._marks.of(term, looks)
        documents = self._answered(query.documents, np.int32, query.found)
        scores = self._answered(query.scores, np.float32, query.found)
        return documents.copy(), scores.copy()

    def _answered(self, address: int, kind: type[np.generic], count: int) -> NDArray[Any]:
        """Numbers that the search has left in its room."""
        return np.frombuffer(self._room, kind, count, address - self._query.room)

    def may_find(self, flat: Flat) -> bool:
        """Whether clauses are terms of text fields whose impacts are in files."""
        return all(
            isinstance(clause.terms, TermsDisjunction | Term)
            and _has_impacts(self._reader.fields[clause.terms.field])
            for clause in flat.clauses
        )

    def prepare(self, wanted: Iterable[Flat]) -> None:
        """Mark the terms that several queries have, before processes are forked that would each do so."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            terms = (term for flat in wanted for clause in flat.clauses for term in self._of_clause(clause))
            self._marks.prepare(terms)
        finally:
            self._lock.release()

    def _of_clause(self, clause: Clause) -> list[_Term]:
        """The terms of a clause that stand in some document."""
        terms = clause.terms
        assert isinstance(terms, TermsDisjunction | Term)
        known = self._terms.setdefault((terms.field, float(clause.boost)), {})
        found = []
        for name in terms.terms if isinstance(terms, TermsDisjunction) else (terms.term,):
            try:
                term = known[name]
            except KeyError:
                term = known[name] = self._term(self._reader.fields[terms.field], name, clause.boost)
                self._kept += 1
            if term is not None:
                found.append(term)
        if self._kept > MOST_TERMS:
            self._terms.clear()
            self._kept = 0
        return found

    def _term(self, field: FieldReader, name: str, boost: np.float32) -> _Term | None:
        rank = field.rank(name)
        if rank is None:
            return None
        found = field.bounded(rank)
        size = len(found.documents)
        if not size or {len(found.frequencies), len(found.impacts)} != {size}:
            raise IndexError("the postings of a term are not in the files")
        types = found.documents.dtype.str, found.impacts.dtype.str, field.norms.dtype.str
        if types != ("<i4", "|u1", "|u1") or found.frequencies.dtype.kind != "u":
            raise IndexError("the postings of a term are no numbers of postings")
        if len(field.norms) != self._reader.count:
            raise IndexError("a field does not have the lengths of all documents")
        frequency = field.document_frequency(name)
        weight = field.weight(boost, frequency)
        packed = _CLAUSE.pack(
            found.documents.ctypes.data,
            found.impacts.ctypes.data,
            found.frequencies.ctypes.data,
            size,
            found.frequencies.itemsize,
            found.greatest,
            field.norms.ctypes.data,
            field.norm_inverses.ctypes.data,
            field.edges_above.ctypes.data,
            frequency,
            float(weight),
        )
        return _Term((field.field.name, name), found, is_bounded(weight), packed)


def _has_impacts(field: FieldReader) -> bool:
    """Whether a field has impacts, none of which is 0."""
    return field.field.is_text and field.has_impacts and bool(field.norm_inverses.all())
