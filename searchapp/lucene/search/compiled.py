"""Ranking with the C functions of `native`, for the query shapes that `FlatQuery` recognises.

The C functions score sums and maxima of terms and other scored leaves with the bits of `queries.scores`, which scores
all other queries. `search_batch` (`kernels.c`) scores a batch of topics document by document. `Pruner` (`maxscore.c`)
scores a single query, or one on a large index, and skips documents that cannot be among the best (MaxScore), with the
bounds of `index.impacts`.

    H. Turtle and J. Flood, Query evaluation: strategies and optimizations, 1995 (MaxScore).
    S. Ding and T. Suel, Faster top-k document retrieval using block-max indexes, SIGIR 2011.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from array import array
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import native, similarity
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.index.arrays import Numbers, StoredArray
from searchapp.lucene.index.impacts import EDGES
from searchapp.lucene.index.packed import documents_address, numbers_address
from searchapp.lucene.index.reader import BoundedPostings, FieldReader, IndexReader, Ranking, SegmentReader
from searchapp.lucene.queries.boolean import Bool, DisMax, TermsDisjunction
from searchapp.lucene.queries.match_all import MatchNone, is_zero_match_all
from searchapp.lucene.queries.query import Leaf, Query, ScoredLeaf, without_boosts
from searchapp.lucene.queries.scores import FEW, ROW, FieldRows, ScoreRow, ScoreRows, most_of_a_rare_term
from searchapp.lucene.queries.term import Term
from searchapp.lucene.search.request import Request
from searchapp.lucene.similarity import ONE, Float32s

NO_DOCUMENTS: Numbers = np.empty(0, np.int32)

NOTHING: Ranking = np.empty(0, np.int32), np.empty(0, np.float32)  # the ranking of a query without hits

SUM = -1.0  # the tie breaker of a topic whose clauses are added

_C_TYPES = {"p": ctypes.c_void_p, "b": ctypes.c_char_p, "q": ctypes.c_int64, "d": ctypes.c_double}


def _fields(layout: str) -> list[tuple[str, Any]]:
    """Return the fields of a C structure from `type:name,name` groups, with the types of `_C_TYPES`."""
    groups = (group.split(":") for group in layout.split())
    return [(name, _C_TYPES[kind]) for kind, names in groups for name in names.split(",")]


# Queries


@dataclass(slots=True)
class FlatClause:
    """Terms of a field, or another scored leaf, with their boost."""

    field: str
    terms: tuple[str, ...]
    boost: np.float32
    rounded: bool  # whether the sum of the terms is rounded before the addition of other clauses
    leaf: ScoredLeaf | None = None

    @property
    def key(self) -> tuple[str, float]:
        return self.field, float(self.boost)

    def elsewhere(self, reader: IndexReader) -> tuple[int, int]:
        """Return number and document frequencies of the terms that occur only in other segments."""
        return reader.fields[self.field].elsewhere(self.terms) if reader.is_part else (0, 0)


@dataclass(slots=True)
class FlatQuery:
    """A query as a sum of clauses or, with a `tie_breaker` of at least 0, as their maximum."""

    clauses: Sequence[FlatClause]
    excluded: Sequence[Leaf] = ()  # leaves with few documents, which must not match
    all_match: bool = False  # whether documents without a clause match with the score 0
    tie_breaker: float = SUM
    # Clauses that add to the scores of matching documents; Lucene rounds both sums before their addition.
    optional: Sequence[FlatClause] = ()

    @classmethod
    def of(cls, query: Query, boost: np.float32 = ONE) -> FlatQuery | None:
        """Convert a rewritten query; None if it has another shape."""
        query, boost = without_boosts(query, boost)
        if isinstance(query, TermsDisjunction | ScoredLeaf):
            return cls(_clauses((query,), boost, rounded=False))
        if isinstance(query, DisMax):
            clauses = _clauses(query.queries, boost, rounded=True) if query.tie_breaker >= 0 else []
            return cls(clauses, tie_breaker=float(np.float32(query.tie_breaker))) if clauses else None
        if not isinstance(query, Bool) or query.filter or query.minimum > 1:
            return None
        excluded = [leaf for leaf in query.must_not if isinstance(leaf, Leaf) and leaf.has_few_documents]
        if len(excluded) < len(query.must_not) or (query.must and query.minimum):
            return None
        clauses = _clauses(query.should, boost, rounded=False)
        if not clauses:
            return None
        if all(map(is_zero_match_all, query.must)):
            return cls(clauses, excluded, all_match=bool(query.must))
        required = cls.of(query.must[0], boost) if len(query.must) == 1 else None
        if required is None or required.excluded or required.all_match or required.optional:
            return None
        if any(clause.rounded for clause in clauses):
            return None
        return replace(required, excluded=excluded, optional=clauses)


def _clauses(queries: Sequence[Query], boost: np.float32, rounded: bool) -> list[FlatClause]:
    """Convert queries to clauses; an empty list if one has another shape."""
    clauses = []
    for (
        query
    ) in queries:  # terms of a disjunction without boost are clauses of a sum: `Bool.with_terms_as_clauses`
        inner, factor = without_boosts(query, boost)
        if isinstance(inner, TermsDisjunction):
            clauses.append(FlatClause(inner.field, inner.terms, factor, rounded or inner is not query))
        elif isinstance(inner, Term) and inner.blended is None:
            clauses.append(FlatClause(inner.field, (inner.term,), factor, rounded))
        elif isinstance(inner, ScoredLeaf):
            clauses.append(FlatClause(inner.field, (), factor, rounded, inner))
        else:
            return []
    return clauses


# Batches

LARGEST_BATCHED = 200_000  # a larger index has small batches and prunes most short queries

MOST_ROW_POSTINGS = 1 << 22  # of the rows of single terms, which a batch keeps in memory


STRIDE = 64  # of kernels.c

_TOPIC = struct.Struct("=4qd")  # of kernels.c

# `Clause` of kernels.c and `Sum` of maxscore.h: the end of its rows or clauses, whether the sum of these is rounded,
# and `FlatClause.elsewhere`.
_SUM = struct.Struct("=4q")


class BatchClause(NamedTuple):
    """The rows of a clause, concatenated."""

    rows: bytes  # `ScoreRow.packed` of each
    is_rounded: bool
    elsewhere: tuple[int, int] = (0, 0)  # see `FlatClause.elsewhere`


class BatchTopic(NamedTuple):
    """A query of a batch that asks for the best `size` documents."""

    clauses: Sequence[BatchClause]
    size: int
    all_match: bool
    tie_breaker: float
    excluded: Sequence[int]


class _Batch(ctypes.Structure):
    """`Batch` of kernels.c."""

    _fields_ = _fields(
        "q:count p:ranks,by_rank q:dead_count p:dead,sums,clause,rest,values,keys q:few b:rows,clauses "
        "q:topic_count b:topics,excluded q:width p:documents,scores,found"
    )


class Workspace:
    """The arrays of a segment that each batch uses: for one batch at a time.

    `ranks` is the rank of each document in the order of ids, and `by_rank` is the inverse. `dead` documents never
    match.
    """

    def __init__(self, ranks: Numbers, by_rank: Numbers, dead: Numbers | None = None) -> None:
        self.count = len(ranks)
        padded = -(-self.count // STRIDE) * STRIDE
        dead = np.empty(0, np.int32) if dead is None else dead
        arrays: dict[str, NDArray[Any]] = {
            "ranks": np.ascontiguousarray(ranks, np.int32),
            "by_rank": np.ascontiguousarray(by_rank, np.int32),
            "dead": np.ascontiguousarray(dead, np.int32),
            "sums": np.zeros(padded),
            "clause": np.zeros(self.count),
            "rest": np.zeros(self.count),
            "values": np.empty(padded, np.float32),
            "keys": np.empty(2 * padded, np.uint64),
        }
        self._kept_alive = arrays
        addresses = {name: array.ctypes.data for name, array in arrays.items()}
        self.batch = _Batch(count=self.count, dead_count=len(dead), **addresses)


def best_of_batch(
    functions: ctypes.CDLL, topics: Sequence[BatchTopic], workspace: Workspace, few: int
) -> list[Ranking | None]:
    """Return the ranking of each topic; None for a topic whose scores exceed float32.

    A rounded sum of at most `few` postings is added before common rows, see `queries.scores`. The caller keeps the rows
    alive. After an error, the workspace is undefined.
    """
    width = min(max((topic.size for topic in topics), default=0), workspace.count)
    clauses, packed_topics, excluded = [], [], array("q")
    row_end = 0
    for topic in topics:
        for clause in topic.clauses:
            row_end += len(clause.rows) // ROW.size
            clauses.append(_SUM.pack(row_end, clause.is_rounded, *clause.elsewhere))
        excluded.extend(topic.excluded)
        sizes = len(clauses), len(excluded), topic.size
        packed_topics.append(_TOPIC.pack(*sizes, topic.all_match, topic.tie_breaker))
    documents = np.empty((len(topics), width), np.int32)
    scores = np.empty((len(topics), width), np.float32)
    found = np.empty(len(topics), np.int64)
    batch = workspace.batch
    batch.few, batch.topic_count, batch.width = few, len(topics), width
    batch.rows = b"".join([clause.rows for topic in topics for clause in topic.clauses])
    batch.clauses, batch.topics = b"".join(clauses), b"".join(packed_topics)
    batch.excluded = excluded.tobytes()
    batch.documents, batch.scores = documents.ctypes.data, scores.ctypes.data
    batch.found = found.ctypes.data
    if functions.searchapp_best(ctypes.byref(batch)):
        raise IndexError("the postings of a term are not those of documents")
    results = zip(documents, scores, found.tolist(), strict=True)
    return [None if size < 0 else (documents[:size], scores[:size]) for documents, scores, size in results]


class _BatchRows:
    """The rows of the clauses of a batch, which it keeps alive."""

    def __init__(self, rows: ScoreRows, clauses: Iterable[FlatClause]) -> None:
        self._rows = rows
        self._reader = rows.reader
        self._fields: dict[tuple[str, float], FieldRows] = {}
        self._single: dict[int, ScoreRow] = {}
        self.postings = 0  # of the single rows
        field_terms: defaultdict[tuple[str, float], list[tuple[str, ...]]] = defaultdict(list)
        for clause in clauses:
            if clause.leaf is None:
                field_terms[clause.key].append(clause.terms)
        for (name, factor), terms in field_terms.items():
            # The rows of a whole field take less time for many terms.
            field_rows = rows.field_rows(name, chain.from_iterable(terms), np.float32(factor))
            if field_rows is not None:
                self._fields[name, factor] = field_rows

    @property
    def are_positive(self) -> bool:
        return all(row.positive for row in chain(self._fields.values(), self._single.values()))

    def clause(self, clause: FlatClause) -> BatchClause:
        field_rows = None if clause.leaf is not None else self._fields.get(clause.key)
        if field_rows is not None:
            ranks = self._reader.fields[clause.field].ranks(clause.terms)
            packed = field_rows.packed_rows[ranks].tobytes()
        else:
            packed = b"".join([self._kept(row).packed for row in self._single_rows(clause)])
        return BatchClause(packed, clause.rounded, clause.elsewhere(self._reader))

    def _single_rows(self, clause: FlatClause) -> Sequence[ScoreRow]:
        if clause.leaf is not None:
            return [clause.leaf.row(self._rows, clause.boost)]
        field = self._reader.fields[clause.field]
        terms = [term for term in clause.terms if field.rank(term) is not None]
        return self._rows.of_terms(clause.field, terms, clause.boost)

    def _kept(self, row: ScoreRow) -> ScoreRow:
        if id(row) not in self._single:
            self._single[id(row)] = row
            self.postings += len(row.documents)
        return row


def search_batch(
    rows: ScoreRows, reader: SegmentReader, requests: Sequence[Request], workspaces: list[Workspace]
) -> list[Ranking | None]:
    """Return the ranking for each request of a batch; None for requests that NumPy must score.

    A workspace is taken from `workspaces` if there is one, and returned.
    """
    library = native.library()
    unanswered: list[Ranking | None] = [None] * len(requests)
    if library is None or reader.count > LARGEST_BATCHED:
        return unanswered
    flat = {
        index: query
        for index, request in enumerate(requests)
        if request.frame.after is None
        and (query := FlatQuery.of(request.query)) is not None
        and not query.optional
    }
    batch_rows = _BatchRows(rows, chain.from_iterable(query.clauses for query in flat.values()))
    topics: dict[int, BatchTopic] = {}
    for index, query in flat.items():
        if batch_rows.postings > MOST_ROW_POSTINGS:
            break
        excluded = chain.from_iterable(leaf.documents(reader).tolist() for leaf in query.excluded)
        clauses = list(map(batch_rows.clause, query.clauses))
        size = requests[index].frame.end
        topics[index] = BatchTopic(clauses, size, query.all_match, query.tie_breaker, list(excluded))
    if not topics or not batch_rows.are_positive:  # a document with the score 0 may match or not
        return unanswered
    try:
        workspace = workspaces.pop()
    except IndexError:
        workspace = Workspace(reader.ranks, reader.by_rank, reader.dead)
    rankings = best_of_batch(library, list(topics.values()), workspace, FEW)
    workspaces.append(workspace)
    for index, ranking in zip(topics, rankings, strict=True):
        if ranking is not None:
            documents, scores = ranking
            first = requests[index].frame.first
            unanswered[index] = documents[first:], scores[first:]
    return unanswered


# Pruning

SLACK = 1 - 2.0**-20  # exceeds rounding errors: bounds are compared with this share of the threshold

WEIGHTS = (1e-12, 1e12)  # between these weights all scores have the full precision of float32

SMALLEST_PRUNED = 50_000  # in a smaller index, `search_batch` scores a batch of queries as fast

SIZE_SHARE = 400  # at most one document in this many may be requested

EXCLUDED_SHARE = 64  # at most one document in this many may be excluded

BITMAP_BYTES = 192 << 20

MOST_BITMAPS = 2048

# Only terms in more than one document in this many have bitmaps: if there is memory for MOST_BITMAPS, and if not.
BITMAP_SHARE, LARGE_BITMAP_SHARE = 256, 32

REPEATED = 4  # occurrences of a term in the first queries of a batch that justify a bitmap

SEEK_COST = 16  # postings added to a bitmap in the time of one search among many

CLEAR_COST = 1 / 32  # for each document of the segment, as a number of postings

TERM_BYTES = 700  # memory of a cached term, without computed arrays

CACHED_TERM_BYTES = 64 << 20  # memory of all cached terms, phrases and synonyms


# NumPy scores terms whose weight exceeds float32, and rejects them.
IGNORED_OVERFLOW = partial(np.errstate, over="ignore", invalid="ignore")


@lru_cache
def _room_size(library: ctypes.CDLL, clauses: int, sums: int, size: int) -> int:
    """Return the number of 64-bit integers that a search needs."""
    return int(library.searchapp_room(clauses, sums, size))


_CLAUSE = struct.Struct("=7qd")  # the end of `Clause` of maxscore.h, after the addresses of postings


class _Query(ctypes.Structure):
    """`Query` of maxscore.h."""

    _fields_ = _fields(
        "q:count p:ranks,live d:slack q:few,common,clause_count b:clauses,marks q:sum_count b:sums "
        "q:has_optional d:tie_breaker q:excluded_count p:excluded q:size p:room q:found p:documents,scores,looks"
    )


@dataclass(frozen=True, slots=True)
class _BoundedTerm:
    """A term or another scored leaf that has documents, in the form that maxscore.c reads."""

    key: Hashable  # the leaf, or the field and the text of a term
    frequency: int  # documents of the segment
    documents: bytes  # `Documents` of postings.h
    arrays: tuple[NDArray[Any] | None, ...]
    is_bounded: bool  # whether its scores have the full precision of float32
    packed: bytes
    size: int  # memory in bytes


_IS_BOUNDED = attrgetter("is_bounded")


class DocumentBitmaps:
    """Bitmaps of the documents of frequent terms, with the indices of their postings: 16 bytes per 64 documents.

    A term gets a bitmap (`Marks` of maxscore.h) once searches among its postings have taken as long as its
    construction.
    """

    def __init__(self, count: int, limit: int) -> None:
        self._count = count
        self._width = 16 * (count // 64 + 1)
        self._most = min(MOST_BITMAPS, limit // self._width)
        self._least = count // (BITMAP_SHARE if self._most == MOST_BITMAPS else LARGE_BITMAP_SHARE)
        self._maps: OrderedDict[Hashable, int] = OrderedDict()  # addresses
        self._searched: dict[Hashable, int] = {}

    @cached_property
    def _memory(self) -> NDArray[np.uint8]:
        # The system may give large pages for one array: look-ups among small pages take longer.
        return np.empty((self._most, self._width), np.uint8)

    def addresses(self, terms: Sequence[_BoundedTerm]) -> list[int]:
        """Return the address of each term's bitmap; 0 without one."""
        if len(self._maps) == self._most:  # a new bitmap will replace the least recently used one
            for term in terms:
                if term.key in self._maps:
                    self._maps.move_to_end(term.key)
        address_of = self._maps.get
        return [address_of(term.key, 0) for term in terms]

    def count(self, term: _BoundedTerm, searched: int) -> None:
        """Count `searched` look-ups among the postings of a term, and create its bitmap if worthwhile."""
        frequency = term.frequency
        if frequency < self._least or not self._most or term.key in self._maps:
            return
        total = self._searched.get(term.key, 0) + searched
        if total * SEEK_COST < frequency + self._count * CLEAR_COST:
            self._searched[term.key] = total
            return
        self._searched.pop(term.key, None)
        start = self._memory.ctypes.data
        row = len(self._maps)
        if row == self._most:
            _key, address = self._maps.popitem(last=False)
            row = (address - start) // self._width
        self._memory[row].fill(0)
        address = start + row * self._width
        library = native.library()
        assert library is not None
        if library.searchapp_mark(term.documents, address):
            self._maps.clear()  # the row taken from memory has no key
            raise IndexError("the postings of a term are not those of documents")
        self._maps[term.key] = address

    def prepare(self, terms: Iterable[_BoundedTerm]) -> None:
        """Create the bitmaps of repeated terms before a fork, so that the child processes share them."""
        by_key = {}
        counts: Counter[Hashable] = Counter()
        for term in terms:
            by_key[term.key] = term
            counts[term.key] += 1
        for key, count in counts.most_common(self._most):
            if count >= REPEATED:
                self.count(by_key[key], self._count)


class Pruner:
    """Finds the best documents of flat queries in a segment without scoring all documents."""

    def __init__(self, reader: SegmentReader, bitmap_bytes: int = BITMAP_BYTES) -> None:
        self._reader = reader
        self._bitmaps = DocumentBitmaps(reader.count, bitmap_bytes)
        self._terms: dict[tuple[str, float], dict[Hashable, _BoundedTerm | None]] = {}
        self._bytes = 0
        self._set_room(0)
        self._lock = threading.Lock()  # protects `_room` and the bitmaps in use

    def best(self, query: Query, size: int, *, alone: bool = True) -> Ranking | None:
        """Return the best `size` documents of a rewritten query; None if all documents must be scored.

        A small index rejects queries that are not `alone`, because `search_batch` is faster there.

        Raises:
            IndexError: a document number or a rank is out of range because files were altered.
        """
        library = native.library()
        if library is None or not size or self._reader.count < size * SIZE_SHARE:
            return None
        if isinstance(query, MatchNone):
            return NOTHING
        if not alone and self._reader.count < SMALLEST_PRUNED:
            return None
        flat = self._flat(query)
        excluded = None if flat is None else self._excluded(flat.excluded)
        # Another thread may hold the lock, or for ever a thread that did not survive the fork of this process.
        if flat is None or excluded is None or not self._lock.acquire(blocking=False):
            return None
        try:
            ranking = self._search(library, flat, excluded, size)
        finally:
            self._lock.release()
        if ranking is not None and flat.all_match and (len(ranking[0]) < size or not ranking[1][-1]):
            return None  # documents without a term follow, or have the same score 0
        return ranking

    def prepare(self, queries: Iterable[Query]) -> None:
        if native.library() is None or not self._lock.acquire(blocking=False):
            return
        try:
            self._bitmaps.prepare(
                term
                for query in queries
                if (flat := self._flat(query)) is not None
                for clause in (*flat.clauses, *flat.optional)
                for term in self._bounded_terms(clause)
            )
        finally:
            self._lock.release()

    @cached_property
    def _bounded_fields(self) -> frozenset[str]:
        """The fields with frequencies and without the impact 0."""
        fields = self._reader.fields.items()
        return frozenset(name for name, field in fields if field.field.is_counted and field.has_norm_inverses)

    def _flat(self, query: Query) -> FlatQuery | None:
        """Convert a query; None unless all clauses are on `_bounded_fields`."""
        if isinstance(query, TermsDisjunction):
            flat = FlatQuery.of(query)
        else:
            with IGNORED_OVERFLOW():  # of products of boosts: their terms are not bounded
                flat = FlatQuery.of(query)
        if flat is None:
            return None
        for clause in chain(flat.clauses, flat.optional):
            if clause.field not in self._bounded_fields:
                return None
        return flat

    def _excluded(self, leaves: Sequence[Leaf]) -> Numbers | None:
        """Return the documents of leaves, ascending; None if there are too many."""
        if not leaves:
            return NO_DOCUMENTS
        documents = [np.empty(0, np.int32), *(leaf.documents(self._reader) for leaf in leaves)]
        if sum(map(len, documents)) * EXCLUDED_SHARE > self._reader.count:
            return None
        return np.sort(np.concatenate(documents)).astype(np.int32)

    @cached_property
    def _query(self) -> _Query:
        # Created for the first query, because it reads the order of the ids.
        self._ranks = np.ascontiguousarray(self._reader.ranks, np.int32)
        return _Query(
            count=self._reader.count,
            ranks=self._ranks.ctypes.data,
            live=None if self._reader.live is None else self._reader.live.ctypes.data,
            slack=SLACK,
            few=FEW,
            common=most_of_a_rare_term(self._reader.whole_count),
        )

    def _search(self, library: ctypes.CDLL, flat: FlatQuery, excluded: Numbers, size: int) -> Ranking | None:
        terms, sums = [], []
        for clause in flat.clauses:
            terms += self._bounded_terms(clause)
            sums.append(_SUM.pack(len(terms), clause.rounded, *clause.elsewhere(self._reader)))
        if flat.optional:
            terms += chain.from_iterable(map(self._bounded_terms, flat.optional))
            sums.append(_SUM.pack(len(terms), True, 0, 0))
        if not all(map(_IS_BOUNDED, terms)):
            return None
        if not terms:
            return NOTHING
        count = len(terms)
        room = _room_size(library, count, len(sums), size)
        if len(self._room) < room:
            self._set_room(room)
        query = self._query
        marks = self._bitmaps.addresses(terms)
        query.room = self._room_address
        query.clause_count = count
        query.clauses = b"".join([term.packed for term in terms])
        query.marks = array("q", marks).tobytes()
        query.sum_count = len(sums)
        query.sums = b"".join(sums)
        query.has_optional = bool(flat.optional)
        query.tie_breaker = flat.tie_breaker
        query.excluded_count = len(excluded)
        query.excluded = excluded.ctypes.data if len(excluded) else None
        query.size = size
        if library.searchapp_search(ctypes.byref(query)):
            raise IndexError("the postings of a term are not those of documents")
        start = (query.looks - self._room_address) // 8
        for term, mark, looks in zip(terms, marks, self._room[start : start + count].tolist(), strict=True):
            if looks and not mark:
                self._bitmaps.count(term, looks)
        start, found = (query.documents - self._room_address) // 4, query.found
        documents = self._room_documents[start : start + found].copy()
        start = (query.scores - self._room_address) // 4
        return documents, self._room_scores[start : start + found].copy()

    def _set_room(self, size: int) -> None:
        self._room: NDArray[np.int64] = np.empty(size, np.int64)
        self._room_documents = self._room.view(np.int32)
        self._room_scores = self._room.view(np.float32)
        self._room_address = self._room.ctypes.data

    def _bounded_terms(self, clause: FlatClause) -> list[_BoundedTerm]:
        cached = self._terms.setdefault(clause.key, {})
        keys = clause.terms if clause.leaf is None else (clause.leaf.score_key,)
        try:
            terms = list(map(cached.__getitem__, keys))
        except KeyError:
            with IGNORED_OVERFLOW():
                terms = [self._cache_term(cached, key, clause) for key in keys]
            if self._bytes > CACHED_TERM_BYTES:
                self._terms.clear()
                self._bytes = 0
        return [term for term in terms if term is not None]

    def _cache_term(
        self, cached: dict[Hashable, _BoundedTerm | None], key: Hashable, clause: FlatClause
    ) -> _BoundedTerm | None:
        if key in cached:
            return cached[key]
        field = self._reader.fields[clause.field]
        if clause.leaf is None:
            term = self._make_term(field, str(key), clause.boost)
        else:
            term = self._make_leaf(field, clause.leaf, clause.boost)
        cached[key] = term
        self._bytes += TERM_BYTES if term is None else term.size
        return term

    def _make_term(self, field: FieldReader, name: str, boost: np.float32) -> _BoundedTerm | None:
        rank = field.rank(name)
        if rank is None:
            return None
        frequency = field.document_frequency(name)
        weight = field.weight(boost, frequency)
        postings = field.bounded(rank)
        computed = 0 if field.has_impacts else postings.impacts.nbytes
        key = field.field.name, name
        return self._packed(key, field, postings, weight, frequency, field.edges_above, computed)

    def _make_leaf(self, field: FieldReader, leaf: ScoredLeaf, boost: np.float32) -> _BoundedTerm | None:
        postings = leaf.postings(field)
        if not len(postings.documents):
            return None
        weight = field.similarity.weight(boost, leaf.idf(field))
        scores = similarity.scores(weight, postings.frequencies, field.inverses(postings.documents))
        upper = similarity.scores(weight, EDGES, np.ones_like(EDGES))
        impacts = upper.searchsorted(scores).clip(1, 255).astype(np.uint8)
        frequencies = postings.frequencies.astype(np.uint32)
        has_fractions = bool((frequencies != postings.frequencies).any())  # of phrases with slop
        bounded = BoundedPostings(
            StoredArray(np.ascontiguousarray(postings.documents, np.int32)),
            StoredArray(frequencies),
            impacts,
            int(impacts.max()),
            slice(0, len(impacts)),
        )
        frequency = leaf.index_frequency(self._reader, len(postings.documents))
        computed = postings.documents.nbytes + frequencies.nbytes + impacts.nbytes
        term = self._packed(leaf, field, bounded, weight, frequency, EDGES, computed)
        return replace(term, is_bounded=False) if has_fractions else term

    def _packed(
        self,
        key: Hashable,
        field: FieldReader,
        postings: BoundedPostings,
        weight: np.float32,
        frequency: int,
        edges: Float32s,
        computed: int,
    ) -> _BoundedTerm:
        """Return a term, given its frequency in the whole index and the size of its computed postings in bytes."""
        part, size = postings.part, len(postings.impacts)
        if (
            not size
            or part.stop - part.start != size
            or min(len(postings.documents), len(postings.frequencies)) < part.stop
        ):
            raise IndexError("the postings of a term are not in the files")
        types = postings.documents.dtype.str, postings.impacts.dtype.str, field.norms.dtype.str
        if types != ("<i4", "|u1", "|u1") or postings.frequencies.dtype.kind != "u":
            raise IndexError("the postings of a term are no numbers of postings")
        if len(field.norms) != self._reader.count:
            raise IndexError("a field does not have the lengths of all documents")
        documents, kept_documents = documents_address(postings.documents, part, self._reader.count)
        frequencies, kept_frequencies = numbers_address(postings.frequencies, part)
        packed = _CLAUSE.pack(
            postings.impacts.ctypes.data,
            0 if postings.of_blocks is None else postings.of_blocks.ctypes.data,
            postings.greatest,
            field.norms.ctypes.data,
            field.norm_inverses.ctypes.data,
            edges.ctypes.data,
            frequency,
            float(weight),
        )
        arrays = kept_documents, kept_frequencies, postings.impacts
        is_bounded = bool(WEIGHTS[0] < weight < WEIGHTS[1])
        return _BoundedTerm(
            key, size, documents, arrays, is_bounded, documents + frequencies + packed, TERM_BYTES + computed
        )
