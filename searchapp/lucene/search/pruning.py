"""Dynamic pruning: the best documents of a query without scoring those that cannot be among them (`maxscore.c`).

    H. Turtle and J. Flood, Query evaluation: strategies and optimizations, 1995 (MaxScore).
    S. Ding and T. Suel, Faster top-k document retrieval using block-max indexes, SIGIR 2011.

Every posting has an impact, which bounds its score (see `index.impacts`), so each term has a greatest score. Terms
are visited from the greatest of these down, the rare ones first. As soon as the remaining terms can't lift a
document to the threshold, the score of the last of the best found so far, only documents with one of the terms
before can be among the best. A phrase or a synonym is one more term, once its documents are found.

`Flat` recognises the queries that can be pruned. Without a compiler every document is scored.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import native, similarity
from searchapp.lucene.index.impacts import EDGES
from searchapp.lucene.index.reader import BoundedPostings, FieldReader, IndexReader, Numbers
from searchapp.lucene.queries.match_all import MatchNone
from searchapp.lucene.queries.query import Leaf, Query, ScoredLeaf
from searchapp.lucene.queries.scores import FEW, most_of_a_rare_term
from searchapp.lucene.search.kernels import Clause, Flat
from searchapp.lucene.search.topk import NOTHING, Answer
from searchapp.lucene.similarity import Float32s

SLACK = 1 - 2.0**-20
"""What a bound is compared with, of the threshold: more than all roundings come to."""

WEIGHTS = (1e-12, 1e12)
"""Between these weights no score leaves the numbers that float32 has in full precision."""

FEWEST_OF_BATCH = 50_000
"""In a smaller index all documents are scored for the queries of a batch together in no more time."""

MOST_SHARE = 400
"""At most one document in this many may be asked for."""

EXCLUDED_SHARE = 64
"""At most one document in this many may be left out by what must not match."""

MARKS_BYTES = 192 << 20
"""Memory for the marks of terms."""

MARKED_SHARE = 32
"""Terms in more than one document in this many may be marked."""

MOST_MARKED = 2048
"""Terms that are marked at most: in a small index all memory for them would be asked of the system in vain."""

REPEATED = 4
"""In so many of the first queries of a batch a term is worth marking."""

LOOKED_UP = 16
"""Postings that are marked in the time of one search for a document among many."""

BYTES_OF_TERM = 700
"""Memory for a term that is kept at hand, besides the arrays that were computed for it."""

TERMS_BYTES = 64 << 20
"""Memory for the terms, phrases and synonyms that are kept at hand."""

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
            *("has_optional", "tie_breaker", "excluded_count", "excluded", "size", "room"),
            *("found", "documents", "scores", "looks"),
        )
    ]


@dataclass(frozen=True, slots=True)
class _Term:
    """A term or another scored leaf that stands in some document, and what maxscore.c knows of it.

    `key` is the leaf, or the field and the text of a term. `is_bounded` says whether its scores are numbers that
    float32 has in full precision. `size` is the memory for it.
    """

    key: Hashable
    documents: Numbers
    arrays: tuple[NDArray[Any], ...]
    is_bounded: bool
    packed: bytes
    size: int = BYTES_OF_TERM


class Marks:
    """Which documents have a term, and where its postings stand: 16 bytes for 64 documents, `Marks` of maxscore.c.

    A term is marked once the searches among its postings have taken as long, so that it never takes twice as long as it
    must. The marks that were asked for longest ago make room for new ones.
    """

    def __init__(self, count: int, limit: int) -> None:
        self._count = count
        self._width = 16 * (count // 64 + 1)
        self._most = min(MOST_MARKED, limit // self._width)
        self._maps: OrderedDict[Hashable, NDArray[np.uint8]] = OrderedDict()
        self._searched: dict[Hashable, int] = {}
        self._rooms: NDArray[np.uint8] | None = None

    def address(self, term: _Term) -> int:
        """Where those of a term are, 0 if there are none."""
        found = self.of(term, 0)
        return 0 if found is None else int(found.ctypes.data)

    def of(self, term: _Term, wanted: int) -> NDArray[np.uint8] | None:
        """The marks of a term, if it is marked; `wanted` documents are to be looked up."""
        found = self._maps.get(term.key)
        if found is not None:
            self._maps.move_to_end(term.key)
            return found
        frequency = len(term.documents)
        if frequency * MARKED_SHARE < self._count or not self._most:
            return None
        searched = self._searched.get(term.key, 0) + wanted
        if searched * LOOKED_UP < frequency + self._count // MARKED_SHARE:
            self._searched[term.key] = searched
            return None
        self._searched.pop(term.key, None)
        found = self._room()
        found.fill(0)
        library = native.library()
        assert library is not None
        if library.searchapp_mark(term.documents.ctypes.data, frequency, self._count, found.ctypes.data):
            self._maps.clear()  # the room is nobody's
            raise IndexError("the postings of a term are not those of documents")
        self._maps[term.key] = found
        return found

    def prepare(self, wanted: Iterable[_Term]) -> None:
        """Mark terms that are wanted several times, before processes are forked that would do so."""
        counts: Counter[Hashable] = Counter()
        terms: dict[Hashable, _Term] = {}
        for term in wanted:
            terms[term.key] = term
            counts[term.key] += 1
        for key, count in counts.most_common(self._most):
            if count >= REPEATED:
                self.of(terms[key], self._count)

    def _room(self) -> NDArray[np.uint8]:
        """Memory for a term: new one, or that of the term that was asked for longest ago."""
        if self._rooms is None:
            # One array, which the system may have in large pages: looking up among small ones takes longer.
            self._rooms = np.empty((self._most, self._width), np.uint8)
        if len(self._maps) < self._most:
            return np.asarray(self._rooms[len(self._maps)])
        _key, found = self._maps.popitem(last=False)
        return found


class Pruner:
    """Finds the best documents of the queries that `Flat` can say, in an index or a part of one."""

    def __init__(self, reader: IndexReader, marks_bytes: int = MARKS_BYTES) -> None:
        self._reader = reader
        self._marks = Marks(reader.count, marks_bytes)
        self._terms: dict[tuple[str, float], dict[Hashable, _Term | None]] = {}
        self._bytes = 0
        self._room: NDArray[np.int64] = np.empty(0, np.int64)
        self._lock = threading.Lock()
        """For the room, and so that nobody marks another term where the marks of one are in use."""

    def best(self, query: Query, size: int, *, alone: bool = True) -> Answer | None:
        """The first `size` documents of a rewritten query; None where all documents must be scored.

        That is so where scores leave float32, too, which is refused when all documents are scored; and, unless the
        query is asked `alone`, in a small index, where it costs less to score those of a batch together.

        Raises:
            IndexError: a number points where nothing is: files were altered.
        """
        library = native.library()
        if library is None or not size or self._reader.count < size * MOST_SHARE:
            return None
        if isinstance(query, MatchNone):
            return NOTHING
        if not alone and self._reader.count < FEWEST_OF_BATCH:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            flat = self._flat(query)
            excluded = None if flat is None else self._excluded(flat.excluded)
            if flat is None or excluded is None or not self._lock.acquire(blocking=False):
                return None  # another thread is at it, or was when this process was forked, where nobody gives it back
            try:
                answer = self._best(library, flat, excluded, size)
            finally:
                self._lock.release()
        if answer is not None and flat.all_match and (len(answer[0]) < size or not answer[1][-1]):
            return None  # what has no term follows, or has as good a score
        return answer

    def prepare(self, queries: Iterable[Query]) -> None:
        """Mark the terms that several queries have, before processes are forked that would each do so."""
        if native.library() is None or not self._lock.acquire(blocking=False):
            return
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                wanted = (flat for flat in map(self._flat, queries) if flat is not None)
                self._marks.prepare(
                    term
                    for flat in wanted
                    for clause in (*flat.clauses, *flat.optional)
                    for term in self._of_clause(clause)
                )
        finally:
            self._lock.release()

    def _flat(self, query: Query) -> Flat | None:
        """A query whose clauses are in text fields none of whose impacts is 0; None for any other."""
        flat = Flat.of(query)
        if flat is None:
            return None
        fields = (self._reader.fields[clause.field] for clause in (*flat.clauses, *flat.optional))
        return flat if all(field.field.is_text and field.norm_inverses.all() for field in fields) else None

    def _excluded(self, leaves: Sequence[Leaf]) -> Numbers | None:
        """The documents of leaves, ascending; None if there are many."""
        found = [leaf.documents(self._reader).astype(np.int32) for leaf in leaves]
        if sum(map(len, found)) * EXCLUDED_SHARE > self._reader.count:
            return None
        return np.sort(np.concatenate(found)) if found else np.empty(0, np.int32)

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

    def _best(self, library: ctypes.CDLL, flat: Flat, excluded: Numbers, size: int) -> Answer | None:
        """The first `size` documents but the excluded ones; None where scores may leave float32."""
        clauses = [self._of_clause(clause) for clause in flat.clauses]
        optional = [True] if flat.optional else []
        if optional:
            clauses.append([term for clause in flat.optional for term in self._of_clause(clause)])
        every = [term for terms in clauses for term in terms]
        if not all(term.is_bounded for term in every):
            return None
        if not every:
            return NOTHING
        count, sums = len(every), len(clauses)
        room = library.searchapp_room(count, sums, size)
        query = self._query
        if len(self._room) < room:
            self._room = np.empty(room, np.int64)
            query.room = self._room.ctypes.data
        of_sums = struct.Struct(f"={sums}q")
        query.clause_count = count
        query.clauses = b"".join([term.packed for term in every])
        query.marks = struct.pack(f"={count}q", *map(self._marks.address, every))
        query.sum_count = sums
        query.sum_ends = of_sums.pack(*accumulate(map(len, clauses)))
        query.sum_rounded = of_sums.pack(*[clause.rounded for clause in flat.clauses], *optional)
        if self._reader.is_part:
            elsewhere = [clause.elsewhere(self._reader) for clause in flat.clauses]
            elsewhere += [(0, 0)] * len(optional)
            query.terms_elsewhere = of_sums.pack(*[terms for terms, _postings in elsewhere])
            query.postings_elsewhere = of_sums.pack(*[postings for _terms, postings in elsewhere])
        query.has_optional = len(optional)
        query.tie_breaker = flat.tie_breaker
        query.excluded_count = len(excluded)
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

    def _of_clause(self, clause: Clause) -> list[_Term]:
        """The terms of a clause that stand in some document."""
        field = self._reader.fields[clause.field]
        known = self._terms.setdefault(clause.key, {})
        found = []
        names: Sequence[str | ScoredLeaf] = clause.terms if clause.leaf is None else (clause.leaf,)
        for name in names:
            try:
                term = known[name]
            except KeyError:
                if isinstance(name, str):
                    term = self._term(field, name, clause.boost)
                else:
                    term = self._leaf(field, name, clause.boost)
                known[name] = term
                self._bytes += BYTES_OF_TERM if term is None else term.size
            if term is not None:
                found.append(term)
        if self._bytes > TERMS_BYTES:
            self._terms.clear()
            self._bytes = 0
        return found

    def _term(self, field: FieldReader, name: str, boost: np.float32) -> _Term | None:
        rank = field.rank(name)
        if rank is None:
            return None
        frequency = field.document_frequency(name)
        weight = field.weight(boost, frequency)
        found = field.bounded(rank)
        computed = 0 if field.has_impacts else found.impacts.nbytes
        return self._packed(
            (field.field.name, name), field, found, weight, frequency, field.edges_above, computed
        )

    def _leaf(self, field: FieldReader, leaf: ScoredLeaf, boost: np.float32) -> _Term | None:
        """A phrase or a synonym, whose impacts are computed."""
        found = leaf.postings(field)
        if not len(found.documents):
            return None
        weight = field.similarity.weight(boost, leaf.idf(field))
        scores = similarity.scores(weight, found.frequencies, field.inverses(found.documents))
        upper = similarity.scores(weight, EDGES, np.ones_like(EDGES))
        impacts = upper.searchsorted(scores).clip(1, 255).astype(np.uint8)
        postings = BoundedPostings(
            found.documents, found.frequencies.astype(np.uint32), impacts, int(impacts.max())
        )
        frequency = leaf.index_frequency(self._reader, len(found.documents))
        computed = sum(one.nbytes for one in (postings.documents, postings.frequencies, impacts))
        return self._packed(leaf, field, postings, weight, frequency, EDGES, computed)

    def _packed(
        self,
        key: Hashable,
        field: FieldReader,
        found: BoundedPostings,
        weight: np.float32,
        frequency: int,
        edges: Float32s,
        computed: int,
    ) -> _Term:
        """`frequency` is that in the whole index, `computed` the bytes of the postings that are in no file."""
        size = len(found.documents)
        if not size or {len(found.frequencies), len(found.impacts)} != {size}:
            raise IndexError("the postings of a term are not in the files")
        types = found.documents.dtype.str, found.impacts.dtype.str, field.norms.dtype.str
        if types != ("<i4", "|u1", "|u1") or found.frequencies.dtype.kind != "u":
            raise IndexError("the postings of a term are no numbers of postings")
        if len(field.norms) != self._reader.count:
            raise IndexError("a field does not have the lengths of all documents")
        arrays = found.documents, found.impacts, found.frequencies
        packed = _CLAUSE.pack(
            *(array.ctypes.data for array in arrays),
            size,
            found.frequencies.itemsize,
            found.greatest,
            field.norms.ctypes.data,
            field.norm_inverses.ctypes.data,
            edges.ctypes.data,
            frequency,
            float(weight),
        )
        is_bounded = bool(WEIGHTS[0] < weight < WEIGHTS[1])
        return _Term(key, found.documents, arrays, is_bounded, packed, BYTES_OF_TERM + computed)
