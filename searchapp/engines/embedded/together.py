"""Topics of a batch that the compiled functions score together, see `kernels`; the others are left to `Scorer`.

These are sums, or maxima, of what terms and other scored leaves give, which is what the topics of a recipe come to.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from searchapp.engines.embedded import kernels, native
from searchapp.engines.embedded.body import Request
from searchapp.engines.embedded.kernels import SUM, Batch, Table
from searchapp.engines.embedded.memory import Answer
from searchapp.engines.embedded.queries.boosts import without_boosts
from searchapp.engines.embedded.queries.leaf import Leaf
from searchapp.engines.embedded.queries.leaves.match_all import gives_nothing
from searchapp.engines.embedded.queries.leaves.term import Term
from searchapp.engines.embedded.queries.nodes import Bool, DisMax, Query, TermsDisjunction
from searchapp.engines.embedded.queries.scored_leaf import ScoredLeaf
from searchapp.engines.embedded.rows import Row, Rows, most_of_a_rare_term
from searchapp.engines.embedded.storage.reader import IndexReader
from searchapp.engines.embedded.sums import FEW

MOST_DOCUMENTS = 200_000
"""A larger index has small batches, and most short queries are pruned there."""

Key = tuple[str, float]
"""A field and a boost."""


@dataclass(slots=True)
class Clause:
    """Terms of a field or another scored leaf, their boost, and whether their sum is rounded before it is added.

    `key` says of which field and boost terms are, and is None for any other leaf.
    """

    terms: TermsDisjunction | ScoredLeaf
    boost: np.float32
    rounded: bool
    key: Key | None

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
    whole: dict[Key, int] = field(default_factory=dict)
    alone: dict[int, tuple[Row, int]] = field(default_factory=dict)
    only_positive: bool = True

    def add_fields(self, clauses: Iterable[Clause]) -> None:
        """Make tables of the fields of which many terms are wanted.

        Those of other fields are left to NumPy: to hand over each row by itself takes longer than is gained.
        """
        wanted: defaultdict[Key, list[TermsDisjunction | ScoredLeaf]] = defaultdict(list)
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
            kernels.best(library, batch, self._reader.ranks, self._reader.by_rank, FEW) if batch.sizes else ()
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
