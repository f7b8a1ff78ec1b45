"""The best documents by the C functions: batches of topics (`kernels.c`) and single queries (`maxscore.c`).

Both answer sums and maxima of the scores of terms and other scored leaves, to the bits of `topk` and `maxscore` in
NumPy, in a third of the time; other queries are left to `Scorer`. `LaidOut`: the impacts of a term as one number
for each document of the index, where that pays. The library is `native`; without it nothing here is used.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import native
from searchapp.lucene.index.impacts import Impacts
from searchapp.lucene.index.reader import BoundedPostings, FieldReader, IndexReader, Numbers
from searchapp.lucene.queries.match_all import gives_nothing
from searchapp.lucene.queries.query import (
    Bool,
    DisMax,
    Leaf,
    Query,
    ScoredLeaf,
    TermsDisjunction,
    without_boosts,
)
from searchapp.lucene.queries.term import Term
from searchapp.lucene.search.maxscore import SLACK, is_bounded
from searchapp.lucene.search.request import Request
from searchapp.lucene.search.scoring import FEW, NOTHING, Answer
from searchapp.lucene.search.term_scores import Row, Rows, most_of_a_rare_term
from searchapp.lucene.similarity import Float32s

Longs = NDArray[np.int64]

SUM = -1.0
"""The tie breaker of a topic whose clauses are added up."""

_BEYOND = -1


@dataclass(frozen=True, slots=True)
class Table:
    """The postings of terms, one term after the other: those of a rank from `starts[rank]` to `starts[rank + 1]`.

    A term with more postings than `common` is common, see `rows`. `frequencies` has how many postings each term has in
    the whole index, where these are those of a part.
    """

    documents: Numbers
    scores: Float32s
    starts: Longs
    common: int
    frequencies: Longs | None = None

    @classmethod
    def of(cls, documents: NDArray[Any], scores: NDArray[Any], starts: NDArray[Any], common: int) -> Table:
        """A table of such arrays, of which those are copied that do not lie in memory as C has them."""
        return cls(
            np.ascontiguousarray(documents, np.int32),
            np.ascontiguousarray(scores, np.float32),
            np.ascontiguousarray(starts, np.int64),
            common,
        )

    @classmethod
    def of_row(cls, row: Row) -> Table:
        """A row as a table of its own."""
        common = -1 if row.is_common else len(row.scores)
        return cls.of(row.documents, row.scores, np.array([0, len(row.scores)]), common)


@dataclass(slots=True)
class Batch:
    """Topics as numbers: a topic has clauses, a clause has rows, and a row is a term of a table.

    `*_ends` say where the clauses of the next topic, its excluded documents, or the rows of the next clause begin. The
    sum of a clause is `rounded` before it is added to those of others. `row_tables` has the table of as many
    rows as `rows_of_table` says. The other lists have a value for each topic: how many documents are asked for, whether
    documents with the score 0 match too, and the tie breaker.

    Of a part of an index, `elsewhere` has for each clause how many of its terms occur in other parts only, and in how
    many documents. Documents that are `dead` never match.
    """

    tables: list[Table] = field(default_factory=list)
    row_tables: list[int] = field(default_factory=list)
    rows_of_table: list[int] = field(default_factory=list)
    row_ranks: list[int] = field(default_factory=list)
    row_ends: list[int] = field(default_factory=list)
    rounded: list[bool] = field(default_factory=list)
    clause_ends: list[int] = field(default_factory=list)
    excluded: list[int] = field(default_factory=list)
    excluded_ends: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    all_match: list[bool] = field(default_factory=list)
    tie_breakers: list[float] = field(default_factory=list)
    elsewhere: list[tuple[int, int]] = field(default_factory=list)
    dead: Numbers | None = None

    def add_rows(self, table: int, ranks: Sequence[int]) -> None:
        """Add terms of a table to the clause at work."""
        self.row_ranks += ranks
        self.row_tables.append(table)
        self.rows_of_table.append(len(ranks))

    def end_clause(self, rounded: bool) -> None:
        """Let another clause begin."""
        self.row_ends.append(len(self.row_ranks))
        self.rounded.append(rounded)

    def end_topic(self, size: int, all_match: bool, tie_breaker: float, excluded: Sequence[int]) -> None:
        """Let another topic begin."""
        self.excluded += excluded
        self.excluded_ends.append(len(self.excluded))
        self.clause_ends.append(len(self.row_ends))
        self.sizes.append(size)
        self.all_match.append(all_match)
        self.tie_breakers.append(tie_breaker)


class _Table(ctypes.Structure):
    """`Table` of kernels.c."""

    _fields_ = [
        (name, ctypes.c_int64 if name in ("terms", "postings", "common") else ctypes.c_void_p)
        for name in ("documents", "scores", "starts", "frequencies", "terms", "postings", "common")
    ]


_NUMBERS = ("count", "few", "table_count", "topic_count", "width", "dead_count")


class _Batch(ctypes.Structure):
    """`Batch` of kernels.c."""

    _fields_ = [
        (name, ctypes.c_int64 if name in _NUMBERS else ctypes.c_void_p)
        for name in (
            *("count", "ranks", "by_rank", "few", "table_count", "tables", "topic_count"),
            *("clause_ends", "excluded_ends", "excluded", "all_match", "tie_breakers", "sizes"),
            *("row_ends", "rounded", "elsewhere", "row_tables", "row_ranks", "dead_count", "dead"),
            *("width", "documents", "scores", "found"),
            *("sums", "clause", "rest", "values", "keys"),
        )
    ]


def best_of_batch(
    functions: ctypes.CDLL, batch: Batch, ranks: Numbers, by_rank: Numbers, few: int
) -> list[Answer | None]:
    """The best documents of each topic and their scores, best first; None for a topic whose scores leave float32.

    `ranks` is each document's place among the ids in order, `by_rank` the document at each place. A rounded sum of no
    more than `few` postings is added before common rows, see `sums`.

    Raises:
        IndexError: a number points where nothing is: files were altered.
    """
    count, topics, width = len(ranks), len(batch.sizes), max(batch.sizes, default=0)
    width = min(width, count)
    tables = (_Table * len(batch.tables))(*map(_addressed, batch.tables))
    arrays: dict[str, NDArray[Any]] = {
        "ranks": np.ascontiguousarray(ranks, np.int32),
        "by_rank": np.ascontiguousarray(by_rank, np.int32),
        "clause_ends": np.array(batch.clause_ends, np.int64),
        "excluded_ends": np.array(batch.excluded_ends, np.int64),
        "excluded": np.array(batch.excluded, np.int64),
        "all_match": np.array(batch.all_match, np.uint8),
        "tie_breakers": np.array(batch.tie_breakers, np.float64),
        "sizes": np.array(batch.sizes, np.int64),
        "row_ends": np.array(batch.row_ends, np.int64),
        "rounded": np.array(batch.rounded, np.uint8),
        "row_tables": np.repeat(np.array(batch.row_tables, np.int32), batch.rows_of_table),
        "row_ranks": np.array(batch.row_ranks, np.int32),
        "documents": np.empty((topics, width), np.int32),
        "scores": np.empty((topics, width), np.float32),
        "found": np.empty(topics, np.int64),
        "sums": np.zeros(count),
        "clause": np.zeros(count),
        "rest": np.zeros(count),
        "values": np.empty(count, np.float32),
        "keys": np.empty(2 * count, np.uint64),
    }
    if batch.elsewhere:
        arrays["elsewhere"] = np.array(batch.elsewhere, np.int64)
    if batch.dead is not None:
        arrays["dead"] = np.ascontiguousarray(batch.dead, np.int32)
    given = _Batch(
        count=count,
        few=few,
        table_count=len(tables),
        topic_count=topics,
        width=width,
        dead_count=0 if batch.dead is None else len(batch.dead),
        tables=ctypes.addressof(tables),
        **{name: array.ctypes.data for name, array in arrays.items()},
    )
    if functions.searchapp_best(ctypes.byref(given)):
        raise IndexError("the postings of a term are not those of documents")
    found = zip(arrays["documents"], arrays["scores"], arrays["found"].tolist(), strict=True)
    return [
        None if size == _BEYOND else (documents[:size], scores[:size]) for documents, scores, size in found
    ]


def _addressed(table: Table) -> _Table:
    return _Table(
        table.documents.ctypes.data,
        table.scores.ctypes.data,
        table.starts.ctypes.data,
        None if table.frequencies is None else table.frequencies.ctypes.data,
        len(table.starts) - 1,
        len(table.documents),
        table.common,
    )


MOST_DOCUMENTS = 200_000
"""A larger index has small batches, and most short queries are pruned there."""

FieldBoost = tuple[str, float]
"""A field and a boost."""


@dataclass(slots=True)
class Clause:
    """Terms of a field or another scored leaf, their boost, and whether their sum is rounded before it is added.

    `key` says of which field and boost terms are, and is None for any other leaf.
    """

    terms: TermsDisjunction | ScoredLeaf
    boost: np.float32
    rounded: bool
    key: FieldBoost | None

    @classmethod
    def of(cls, terms: TermsDisjunction | ScoredLeaf, boost: np.float32, rounded: bool) -> Clause:
        key = (terms.field, float(boost)) if isinstance(terms, TermsDisjunction | Term) else None
        return cls(terms, boost, rounded, key)

    def elsewhere(self, reader: IndexReader) -> tuple[int, int]:
        """How many terms occur in other parts of the index only, and in how many documents, see `PartField`."""
        return (0, 0) if self.key is None else reader.fields[self.key[0]].elsewhere(_written(self.terms))


@dataclass(slots=True)
class Flat:
    """A query as clauses that are added up, or of which the greatest counts if there is a `tie_breaker`.

    `excluded` are leaves of few documents that must not match.
    """

    clauses: Sequence[Clause]
    excluded: Sequence[Leaf] = ()
    all_match: bool = False
    tie_breaker: float = SUM

    @classmethod
    def of(cls, query: Query) -> Flat | None:
        """A rewritten query as clauses, None for what can't be said so. It comes to the scores of `Scorer.scores`."""
        query, boost = without_boosts(query)
        if isinstance(query, TermsDisjunction | ScoredLeaf):
            return cls([Clause.of(query, boost, rounded=False)])
        if isinstance(query, DisMax):
            if not query.tie_breaker >= 0:
                return None
            clauses = list(_clauses(query.queries, boost, rounded=True))
            return _unless_other(
                cls(clauses, tie_breaker=float(np.float32(query.tie_breaker))), query.queries
            )
        if not isinstance(query, Bool) or query.filter or query.minimum > 1:
            return None
        if query.must and (query.minimum or not all(map(gives_nothing, query.must))):
            return None
        if not all(isinstance(one, Leaf) and one.has_few_documents for one in query.must_not):
            return None
        clauses = list(_clauses(query.should, boost, rounded=False))
        excluded = [one for one in query.must_not if isinstance(one, Leaf)]
        return _unless_other(cls(clauses, excluded, all_match=bool(query.must)), query.should)


def _unless_other(flat: Flat, queries: Sequence[Query]) -> Flat | None:
    """The clauses of some queries, None if some of these are none."""
    return flat if len(flat.clauses) == len(queries) > 0 else None


def _clauses(queries: Iterable[Query], boost: np.float32, rounded: bool) -> Iterator[Clause]:
    """Those that are clauses. The terms of a disjunction without a boost are clauses of a sum, see `disjunctions`."""
    for query in queries:
        inner, factor = without_boosts(query, boost)
        if isinstance(inner, TermsDisjunction):
            yield Clause.of(inner, factor, rounded or inner is not query)
        elif isinstance(inner, ScoredLeaf):
            yield Clause.of(inner, factor, rounded)


def _written(terms: TermsDisjunction | ScoredLeaf) -> tuple[str, ...]:
    """The terms of a clause that has some."""
    if isinstance(terms, TermsDisjunction):
        return terms.terms
    return (terms.term,) if isinstance(terms, Term) else ()


@dataclass(slots=True)
class _Tables:
    """The tables of a batch: a field's that is scored whole, or a row alone."""

    reader: IndexReader
    rows: Rows
    tables: list[Table] = field(default_factory=list)
    whole: dict[FieldBoost, int] = field(default_factory=dict)
    alone: dict[int, tuple[Row, int]] = field(default_factory=dict)
    only_positive: bool = True

    def add_fields(self, clauses: Iterable[Clause]) -> None:
        """Make tables of the fields of which many terms are wanted.

        Those of other fields are left to NumPy: to hand over each row by itself takes longer than is gained.
        """
        wanted: defaultdict[FieldBoost, list[TermsDisjunction | ScoredLeaf]] = defaultdict(list)
        for clause in clauses:
            if clause.key is not None:
                wanted[clause.key].append(clause.terms)
        common = most_of_a_rare_term(self.reader.whole_count)
        for (name, factor), terms in wanted.items():
            boost = np.float32(factor)
            row = self.rows.whole(name, chain.from_iterable(map(_written, terms)), boost)
            if row is not None:
                of_field = self.reader.fields[name]
                table = Table.of(row.documents, row.scores, of_field.starts, common)
                if self.reader.is_part:
                    table = replace(table, frequencies=of_field.document_frequencies())
                self.whole[name, factor] = self._add(row, table)

    def have(self, clause: Clause) -> bool:
        """Whether the rows of a clause can be added."""
        return clause.key is None or clause.key in self.whole

    def add_to(self, batch: Batch, clause: Clause) -> None:
        """Add the rows of a clause, which `have` it."""
        if clause.key is not None:
            ranks = self.reader.fields[clause.key[0]].ranks(_written(clause.terms))
            batch.add_rows(self.whole[clause.key], ranks)
        elif isinstance(clause.terms, ScoredLeaf):
            batch.add_rows(self._of_row(self.rows.row(clause.terms, clause.boost)), (0,))

    def _of_row(self, row: Row) -> int:
        if id(row.scores) not in self.alone:
            self.alone[id(row.scores)] = row, self._add(row, Table.of_row(row))
        return self.alone[id(row.scores)][1]

    def _add(self, row: Row, table: Table) -> int:
        self.only_positive &= row.positive
        self.tables.append(table)
        return len(self.tables) - 1


class Together:
    """Finds the best documents of many topics."""

    def __init__(self, reader: IndexReader, rows: Rows) -> None:
        """`rows` are those of all documents."""
        self._reader = reader
        self._rows = rows

    def best(self, requests: Sequence[Request]) -> list[Answer | None]:
        """The answer to each request, None to those that must be scored by a `Scorer`."""
        library = native.library()
        if library is None or self._reader.count > MOST_DOCUMENTS:
            return [None] * len(requests)
        flat = [_flat(request) for request in requests]
        tables = _Tables(self._reader, self._rows)
        tables.add_fields(chain.from_iterable(one.clauses for one in flat if one is not None))
        flat = [one if one is not None and all(map(tables.have, one.clauses)) else None for one in flat]
        batch = Batch(tables.tables, dead=self._reader.dead)
        for request, one in zip(requests, flat, strict=True):
            if one is not None:
                self._add(batch, tables, one, request.frame.first + request.frame.size)
        if not tables.only_positive:  # a score of 0 may be that of a document that matches
            return [None] * len(requests)
        answers = iter(
            best_of_batch(library, batch, self._reader.ranks, self._reader.by_rank, FEW)
            if batch.sizes
            else ()
        )
        return [
            None if one is None else _from(next(answers), request.frame.first)
            for one, request in zip(flat, requests, strict=True)
        ]

    def _add(self, batch: Batch, tables: _Tables, flat: Flat, size: int) -> None:
        for clause in flat.clauses:
            tables.add_to(batch, clause)
            batch.end_clause(clause.rounded)
            if self._reader.is_part:
                batch.elsewhere.append(clause.elsewhere(self._reader))
        excluded = chain.from_iterable(one.documents(self._reader).tolist() for one in flat.excluded)
        batch.end_topic(size, flat.all_match, flat.tie_breaker, list(excluded))


def _flat(request: Request) -> Flat | None:
    return Flat.of(request.query) if request.frame.after is None else None


def _from(answer: Answer | None, first: int) -> Answer | None:
    """An answer from a place on."""
    return answer if answer is None or not first else (answer[0][first:], answer[1][first:])


PostingsKey: TypeAlias = Hashable
"""A field and a term of it, or a phrase and its boost."""

MAP_BYTES = 192 << 20
"""Memory for the impacts of terms, one for each document of the index."""

MAP_SHARE = 32
"""Terms in more than one document in this many may have their impacts kept so."""

MOST = 2048
"""Terms that are kept so at most: in a small index all memory for them would be asked of the system in vain."""

REPEATED = 4
"""In so many of the first queries of a batch a term is worth preparing."""

LOOKED_UP = 16
"""Postings that are laid out in the time of one search for a document among many."""


class Postings(Protocol):
    """The postings of a term: documents, ascending, and their impacts."""

    @property
    def key(self) -> PostingsKey: ...
    @property
    def documents(self) -> Numbers: ...
    @property
    def impacts(self) -> Impacts: ...


class LaidOut:
    """The impacts of terms that are looked up again and again, one for each document of the index.

    A term's are laid out once the searches among its postings have taken as long, so that it never takes twice as long
    as it must.
    """

    def __init__(self, count: int, limit: int) -> None:
        self._count = count
        self._width = self._bytes_of_term(count)
        self.most = min(MOST, limit // max(1, self._width))
        """Terms whose impacts may be laid out at the same time."""

        self._maps: OrderedDict[PostingsKey, Impacts] = OrderedDict()
        self._searched: dict[PostingsKey, int] = {}
        self._rooms: NDArray[np.uint8] | None = None

    @property
    def known(self) -> Mapping[PostingsKey, Impacts]:
        """What is laid out now."""
        return self._maps

    @staticmethod
    def _bytes_of_term(count: int) -> int:
        return count

    def _lay_out(self, clause: Postings, room: Impacts) -> None:
        """Write what a term has into its room, which is all 0."""
        room[clause.documents] = clause.impacts

    def of(self, clause: Postings, wanted: int) -> Impacts | None:
        """The impacts of a clause in all documents, if they are laid out; `wanted` documents are to be looked up."""
        key = clause.key
        found = self._maps.get(key)
        if found is not None:
            self._maps.move_to_end(key)
            return found
        frequency = len(clause.documents)
        if frequency * MAP_SHARE < self._count or not self.most:
            return None
        searched = self._searched.get(key, 0) + wanted
        if searched * LOOKED_UP < frequency + self._count // MAP_SHARE:
            self._searched[key] = searched
            return None
        self._searched.pop(key, None)
        found = self._room()
        found.fill(0)
        try:
            self._lay_out(clause, found)
        except IndexError:
            self._maps.clear()  # the room is nobody's
            raise
        self._maps[key] = found
        return found

    def prepare(self, wanted: Iterable[Postings]) -> None:
        """Lay out the impacts of terms that are wanted several times, before processes are forked that would do so."""
        counts: Counter[PostingsKey] = Counter()
        clauses: dict[PostingsKey, Postings] = {}
        for clause in wanted:
            clauses[clause.key] = clause
            counts[clause.key] += 1
        for key, count in counts.most_common(self.most):
            if count >= REPEATED:
                self.of(clauses[key], self._count)

    def _room(self) -> Impacts:
        """Memory for a term: new one, or that of the term that was asked for longest ago."""
        if self._rooms is None:
            # One array, which the system may have in large pages: looking up among small ones takes longer.
            self._rooms = np.empty((self.most, self._width), np.uint8)
        if len(self._maps) < self.most:
            return np.asarray(self._rooms[len(self._maps)])
        _key, found = self._maps.popitem(last=False)
        return found


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
