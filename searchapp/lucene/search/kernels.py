"""The best documents of a batch of topics by the C functions (`kernels.c`), and the queries that they take: `Flat`.

They answer sums and maxima of the scores of terms and other scored leaves, to the bits of `queries.scores`, in a third
of the time; all documents are scored for other queries. The library is `native`; without it nothing here is used.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene import native
from searchapp.lucene.index.reader import IndexReader, Numbers
from searchapp.lucene.queries.boolean import Bool, DisMax, TermsDisjunction
from searchapp.lucene.queries.match_all import is_zero_match_all
from searchapp.lucene.queries.query import Leaf, Query, ScoredLeaf, without_boosts
from searchapp.lucene.queries.scores import FEW, ScoreRow, ScoreRows, most_of_a_rare_term
from searchapp.lucene.queries.term import Term
from searchapp.lucene.search.request import Request
from searchapp.lucene.search.topk import Answer
from searchapp.lucene.similarity import ONE, Float32s

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
    def of_row(cls, row: ScoreRow) -> Table:
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
    """Terms of a field or another scored leaf, their boost, and whether their sum is rounded before it is added."""

    field: str
    terms: tuple[str, ...]
    boost: np.float32
    rounded: bool
    leaf: ScoredLeaf | None = None

    @property
    def key(self) -> FieldBoost:
        return self.field, float(self.boost)

    def elsewhere(self, reader: IndexReader) -> tuple[int, int]:
        """How many terms occur in other segments only, and in how many documents."""
        return reader.fields[self.field].elsewhere(self.terms)


@dataclass(slots=True)
class Flat:
    """A query as clauses that are added up, or of which the greatest counts if there is a `tie_breaker`.

    `excluded` are leaves of few documents that must not match. `optional` clauses, if there are any, add to the scores
    of what one of the others matches: Lucene rounds both sums before it adds them.
    """

    clauses: Sequence[Clause]
    excluded: Sequence[Leaf] = ()
    all_match: bool = False
    tie_breaker: float = SUM
    optional: Sequence[Clause] = ()

    @classmethod
    def of(cls, query: Query, boost: np.float32 = ONE) -> Flat | None:
        """A rewritten query as clauses, None for what can't be said so. It comes to the scores of `Query.scores`."""
        query, boost = without_boosts(query, boost)
        if isinstance(query, TermsDisjunction | ScoredLeaf):
            return cls(_clauses((query,), boost, rounded=False))
        if isinstance(query, DisMax):
            if not query.tie_breaker >= 0:
                return None
            clauses = _clauses(query.queries, boost, rounded=True)
            return cls(clauses, tie_breaker=float(np.float32(query.tie_breaker))) if clauses else None
        if not isinstance(query, Bool) or query.filter or query.minimum > 1:
            return None
        excluded = [one for one in query.must_not if isinstance(one, Leaf) and one.has_few_documents]
        if len(excluded) < len(query.must_not) or (query.must and query.minimum):
            return None
        if all(map(is_zero_match_all, query.must)):
            clauses = _clauses(query.should, boost, rounded=False)
            return cls(clauses, excluded, all_match=bool(query.must)) if clauses else None
        required = cls.of(query.must[0], boost) if len(query.must) == 1 else None
        optional = _clauses(query.should, boost, rounded=False)
        if required is None or required.excluded or required.all_match or required.optional or not optional:
            return None
        if any(clause.rounded for clause in optional):
            return None
        return replace(required, excluded=excluded, optional=optional)


def _clauses(queries: Sequence[Query], boost: np.float32, rounded: bool) -> list[Clause]:
    """Queries as clauses, nothing if some are none.

    The terms of a disjunction without a boost are clauses of a sum, see `Bool.with_terms_as_clauses`.
    """
    clauses = []
    for query in queries:
        inner, factor = without_boosts(query, boost)
        if isinstance(inner, TermsDisjunction):
            clauses.append(Clause(inner.field, inner.terms, factor, rounded or inner is not query))
        elif isinstance(inner, Term):
            clauses.append(Clause(inner.field, (inner.term,), factor, rounded))
        elif isinstance(inner, ScoredLeaf):
            clauses.append(Clause(inner.field, (), factor, rounded, inner))
        else:
            return []
    return clauses


@dataclass(slots=True)
class _Tables:
    """The tables of a batch: a field's that is scored whole, or a row alone."""

    rows: ScoreRows
    tables: list[Table] = field(default_factory=list)
    whole: dict[FieldBoost, int] = field(default_factory=dict)
    alone: dict[int, tuple[ScoreRow, int]] = field(default_factory=dict)
    only_positive: bool = True

    def add_fields(self, clauses: Iterable[Clause]) -> None:
        """Make tables of the fields of which many terms are wanted.

        Those of other fields are left to NumPy: to hand over each row by itself takes longer than is gained.
        """
        wanted: defaultdict[FieldBoost, list[tuple[str, ...]]] = defaultdict(list)
        for clause in clauses:
            if clause.leaf is None:
                wanted[clause.key].append(clause.terms)
        common = most_of_a_rare_term(self.rows.reader.whole_count)
        for (name, factor), terms in wanted.items():
            boost = np.float32(factor)
            row = self.rows.whole(name, chain.from_iterable(terms), boost)
            if row is not None:
                of_field = self.rows.reader.fields[name]
                table = Table.of(row.documents, row.scores, of_field.starts, common)
                if self.rows.reader.is_part:
                    table = replace(table, frequencies=of_field.document_frequencies)
                self.whole[name, factor] = self._add(row, table)

    def have(self, clause: Clause) -> bool:
        """Whether the rows of a clause can be added."""
        return clause.leaf is not None or clause.key in self.whole

    def add_to(self, batch: Batch, clause: Clause) -> None:
        """Add the rows of a clause, which `have` it."""
        if clause.leaf is None:
            ranks = self.rows.reader.fields[clause.field].ranks(clause.terms)
            batch.add_rows(self.whole[clause.key], ranks)
        else:
            batch.add_rows(self._of_row(clause.leaf.row(self.rows, clause.boost)), (0,))

    def _of_row(self, row: ScoreRow) -> int:
        if id(row.scores) not in self.alone:
            self.alone[id(row.scores)] = row, self._add(row, Table.of_row(row))
        return self.alone[id(row.scores)][1]

    def _add(self, row: ScoreRow, table: Table) -> int:
        self.only_positive &= row.positive
        self.tables.append(table)
        return len(self.tables) - 1


def best_together(rows: ScoreRows, requests: Sequence[Request]) -> list[Answer | None]:
    """The answer to each request of a batch, None to those whose documents must all be scored."""
    library, reader = native.library(), rows.reader
    if library is None or reader.count > MOST_DOCUMENTS:
        return [None] * len(requests)
    flat = [_flat(request) for request in requests]
    tables = _Tables(rows)
    tables.add_fields(chain.from_iterable(one.clauses for one in flat if one is not None))
    flat = [one if one is not None and all(map(tables.have, one.clauses)) else None for one in flat]
    batch = Batch(tables.tables, dead=reader.dead)
    for request, one in zip(requests, flat, strict=True):
        if one is not None:
            _add(batch, tables, one, request.frame.first + request.frame.size)
    if not tables.only_positive:  # a score of 0 may be that of a document that matches
        return [None] * len(requests)
    answers = iter(best_of_batch(library, batch, reader.ranks, reader.by_rank, FEW) if batch.sizes else ())
    return [
        None if one is None else _from(next(answers), request.frame.first)
        for one, request in zip(flat, requests, strict=True)
    ]


def _add(batch: Batch, tables: _Tables, flat: Flat, size: int) -> None:
    """Add a topic to a batch, whose `size` best documents are asked for."""
    reader = tables.rows.reader
    for clause in flat.clauses:
        tables.add_to(batch, clause)
        batch.end_clause(clause.rounded)
        if reader.is_part:
            batch.elsewhere.append(clause.elsewhere(reader))
    excluded = chain.from_iterable(one.documents(reader).tolist() for one in flat.excluded)
    batch.end_topic(size, flat.all_match, flat.tie_breaker, list(excluded))


def _flat(request: Request) -> Flat | None:
    flat = Flat.of(request.query) if request.frame.after is None else None
    return None if flat is None or flat.optional else flat


def _from(answer: Answer | None, first: int) -> Answer | None:
    """An answer from a place on."""
    return answer if answer is None or not first else (answer[0][first:], answer[1][first:])
