"""The scores that a query gives to all documents of an index, in Lucene's arithmetic.

Every query gives a float32 to each document it matches. Sums are made in double and rounded once, so what
is one sum in Lucene must be one sum here: `queries.rewrite` sees to that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded import functions
from searchapp.engines.embedded.queries.nodes import (
    Bag,
    Between,
    Bool,
    Boost,
    Boosting,
    Constant,
    DisMax,
    Exists,
    FunctionScore,
    Ids,
    MatchAll,
    MatchNone,
    OneOf,
    Phrase,
    Prefix,
    Query,
    Synonym,
    Term,
    Terms,
    looks_at_scores,
    looks_at_values,
    scored,
)
from searchapp.engines.embedded.refusals import beyond_float32
from searchapp.engines.embedded.rows import NO_ROW, Row, Rows, postings
from searchapp.engines.embedded.similarity import ONE, Float32s
from searchapp.engines.embedded.storage.reader import IndexReader

Mask = NDArray[np.bool_]
Doubles = NDArray[np.float64]

SCORED = (Term, Synonym, Phrase)

FEW = 256
"""Postings up to which it is cheaper to sort them than to make a number for every document."""


@contextmanager
def finite_scores() -> Iterator[None]:
    """Refuse a query whose scores leave the range of a float32: infinite ones order nothing.

    Raises:
        EngineRefused: in the place of what NumPy then raises.
    """
    try:
        with np.errstate(over="raise", invalid="raise"):
            yield
    except FloatingPointError as error:
        raise beyond_float32() from error


@dataclass(frozen=True, slots=True)
class Scores:
    """A score for every document, 0 for those that do not match.

    `matching` marks those that do. None stands for "where the score is not 0", which most queries come down
    to and which then need not be computed. The arrays belong to whoever asked for them.
    """

    values: Float32s
    matching: Mask | None = None

    def mask(self) -> Mask:
        return self.values > 0 if self.matching is None else self.matching


class Scorer:
    """Scores the documents of one version of an index."""

    def __init__(self, reader: IndexReader, rows: Rows | None = None) -> None:
        self._reader = reader
        self._rows = rows or Rows(reader)
        self._count = reader.count

    def scores(self, query: Query, boost: np.float32 = ONE, among: Mask | None = None) -> Scores:
        """The scores of a rewritten query whose own boost is multiplied by `boost`.

        `among` marks the documents that count, None all of them: scores of others are not looked at and may be wrong,
        and values that they lack are not missed.

        Raises:
            EngineRefused: the scores of some document can't be computed.
        """
        match query:
            case Boost(inner, factor):
                return self.scores(inner, np.float32(factor) * boost, among)
            case Term() | Synonym() | Phrase():
                return self._sum([self._rows.row(query, boost)], [])
            case Bag(field, terms):
                return self._sum(self._rows.of_terms(field, terms, boost), [])
            case Bool():
                return self._bool(query, boost, among)
            case DisMax(queries, tie_breaker):
                return _best([self.scores(inner, boost, among) for inner in queries], tie_breaker)
            case Boosting():
                return self._boosting(query, boost, among)
            case FunctionScore():
                return self._functions(query, boost, among)
            case MatchAll():
                return Scores(np.full(self._count, boost), np.ones(self._count, bool))
            case Constant(inner):
                return self._constant(self.matching(inner, among=among), boost)
        return self._constant(self.matching(query, among=among), boost)

    def prepare(self, queries: Iterable[Query]) -> None:
        """Compute together what the scores of several queries have in common, before they are asked for."""
        wanted: defaultdict[tuple[str, float], list[str]] = defaultdict(list)
        for query in queries:
            for leaf, boost in scored(query):
                if isinstance(leaf, Bag):
                    wanted[leaf.field, boost] += leaf.terms
                elif isinstance(leaf, Term):
                    wanted[leaf.field, boost].append(leaf.term)
        for (field, boost), terms in wanted.items():
            self._rows.prepare(field, terms, np.float32(boost))

    def matching(self, query: Query, boost: np.float32 = ONE, among: Mask | None = None) -> Mask:
        """The documents that a rewritten query matches, whatever their scores; `among` is as in `scores`.

        Only a `min_score` looks at scores. The boosts outside count for it, even where they count for nothing else:
        Lucene hands them down to filters too.
        """
        match query:
            case MatchAll():
                return np.ones(self._count, bool)
            case MatchNone():
                return np.zeros(self._count, bool)
            case Boost(inner, factor):
                return self.matching(inner, np.float32(factor) * boost, among)
            case Constant(inner) | Boosting(positive=inner):
                return self.matching(inner, among=among)
            case FunctionScore(min_score=None):
                return self.matching(query.query, boost, among)
            case FunctionScore():
                return self.scores(query, boost, among).mask()
            case DisMax(queries, _):
                return self._any(queries, boost, among)
            case Bool():
                return self._matching_bool(query, boost, among)
        return self._marked([self._documents(query)])

    def _documents(self, query: Query) -> NDArray[Any]:
        """The documents that a query without others inside matches, in any order."""
        fields = self._reader.fields
        match query:
            case Term(field, term):
                return fields[field].postings(term).documents
            case Synonym() | Phrase():
                return postings(fields[query.field], query).documents
            case Terms(field, terms) | Bag(field, terms):
                ranks = (fields[field].rank(term) for term in terms)
                return fields[field].documents_with(rank for rank in ranks if rank is not None)
            case Prefix(field, prefix):
                return fields[field].documents_with(fields[field].terms.with_prefix(prefix))
            case Between(field, low, high):
                return fields[field].between(low, high)
            case OneOf(field, numbers):
                return np.concatenate([fields[field].between(number, number) for number in numbers])
            case Exists(field):
                return fields[field].present
            case Ids(ids):
                found = (self._reader.document(document_id) for document_id in ids)
                return np.array([document for document in found if document is not None], np.int32)
        raise TypeError(query)

    # Bool

    def _bool(self, query: Bool, boost: np.float32, among: Mask | None) -> Scores:
        if not looks_at_values(query):
            return self._all_of_bool(query, boost, among)
        # It makes a difference which documents come to be scored.
        among = self._matching_bool(query, boost, among)
        scores = self._all_of_bool(query, boost, among)
        return _restricted(scores, scores.mask() & among)

    def _all_of_bool(self, query: Bool, boost: np.float32, among: Mask | None) -> Scores:
        scores = self._positive(query, boost, among)
        if query.filter:
            mask = scores.mask()
            for clause in query.filter:
                mask = mask & self.matching(clause, boost, among)
            scores = _restricted(scores, mask)
        for clause in query.must_not:
            scores = self._without(scores, clause, boost, among)
        return scores

    def _without(self, scores: Scores, excluded: Query, boost: np.float32, among: Mask | None) -> Scores:
        """The scores without the documents of a query; the arrays given may change."""
        if not isinstance(excluded, Term | Ids | Terms):
            return _restricted(scores, scores.mask() & ~self.matching(excluded, boost, among))
        documents = self._documents(excluded)  # few: cheaper than a mask of all
        scores.values[documents] = 0
        if scores.matching is not None:
            scores.matching[documents] = False
        return scores

    def _positive(self, query: Bool, boost: np.float32, among: Mask | None) -> Scores:
        """What the clauses that score come to, without filters and exclusions."""
        if not query.must and not query.filter:
            return self._should(query.should, query.minimum, boost, among)
        if query.should and query.minimum == 0 and not any(map(_counts, query.must)):
            return Scores(self._should(query.should, 0, boost, among).values, np.ones(self._count, bool))
        if query.minimum and query.must:
            found = [clause for clause in query.should if self._may_match(clause)]
            if len(found) == query.minimum:  # then all of them are required, and it is one sum to Lucene
                return self._must((*query.must, *found), boost, among)
        required = self._must(query.must, boost, among)
        if not query.should:
            return required
        optional = self._should(query.should, query.minimum, boost, among)
        # Lucene rounds both sides before it adds them.
        total = (required.values.astype(np.float64) + optional.values).astype(np.float32)
        mask = required.mask() & optional.mask() if query.minimum > 0 else required.mask()
        return _restricted(Scores(total, mask), mask)

    def _may_match(self, query: Query) -> bool:
        """Whether Lucene finds something to look at for a query: the terms of a part are there, say."""
        match query:
            case MatchAll():
                return True
            case MatchNone():
                return False
            case Boost(inner, _) | Constant(inner) | Boosting(positive=inner) | FunctionScore(query=inner):
                return self._may_match(inner)
            case Phrase(field, terms):
                return all(self._may_match(Term(field, term)) for term in terms)
            case Bag(field, terms):
                return any(self._may_match(Term(field, term)) for term in terms)
            case DisMax(queries, _):
                return any(map(self._may_match, queries))
            case Bool():
                required = (*query.must, *query.filter)
                optional = sum(map(self._may_match, query.should))
                return all(map(self._may_match, required)) and (
                    optional >= (query.minimum if required else max(1, query.minimum))
                )
        return len(self._documents(query)) > 0

    def _must(self, clauses: Sequence[Query], boost: np.float32, among: Mask | None) -> Scores:
        if not clauses:
            return Scores(np.zeros(self._count, np.float32), np.ones(self._count, bool))
        every = [self.scores(clause, boost, among) for clause in clauses]
        if len(every) == 1:
            return every[0]
        total = np.zeros(self._count)
        mask = np.ones(self._count, bool)
        for scores in every:
            total += scores.values
            mask &= scores.mask()
        return _restricted(Scores(total.astype(np.float32), mask), mask)

    def _should(
        self, clauses: Sequence[Query], minimum: int, boost: np.float32, among: Mask | None
    ) -> Scores:
        rows: list[Row] = []
        others: list[Scores] = []
        for clause in clauses:
            if isinstance(clause, Bag) and minimum <= 1:  # its terms are clauses, see `Bool.spelled_out`
                rows += self._rows.of_terms(clause.field, clause.terms, boost)
                continue
            found = self._row_or_scores(clause, boost, among)
            if isinstance(found, Row):
                rows.append(found)
            else:
                others.append(found)
        scores = self._sum(rows, others)
        if minimum <= 1:
            return scores
        counts = np.zeros(self._count, np.int32)
        for row in rows:
            counts[row.documents] += 1
        for other in others:
            counts += other.mask()
        return _restricted(scores, counts >= minimum)

    def _row_or_scores(self, clause: Query, boost: np.float32, among: Mask | None) -> Row | Scores:
        while isinstance(clause, Boost):
            boost, clause = np.float32(clause.boost) * boost, clause.query
        if isinstance(clause, SCORED):
            return self._rows.row(clause, boost)
        if not isinstance(clause, Bag):
            return self.scores(clause, boost, among)
        rows = [row for row in self._rows.of_terms(clause.field, clause.terms, boost) if len(row.documents)]
        if len(rows) == 1:
            return rows[0]
        if sum(len(row.documents) for row in rows) <= FEW:
            return _summed(rows)
        return self._sum(rows, [])

    def _sum(self, rows: Sequence[Row], others: Sequence[Scores]) -> Scores:
        """The sum of rows and of scores, in double, rounded once."""
        total: Doubles = np.zeros(self._count)
        sparse = [row for row in rows if row.dense is None and len(row.documents)]
        if sparse:
            documents = np.concatenate([row.documents for row in sparse], dtype=np.intp)
            weights = np.concatenate([row.scores for row in sparse], dtype=np.float64)
            total = np.asarray(np.bincount(documents, weights, self._count), np.float64)
        for row in rows:
            if row.dense is not None:
                total += row.dense
        for other in others:
            total += other.values
        values = total.astype(np.float32)
        if all(row.positive for row in rows) and all(other.matching is None for other in others):
            return Scores(values)
        mask = self._marked([row.documents for row in rows])
        for other in others:
            mask |= other.mask()
        return Scores(values, mask)

    def _matching_bool(self, query: Bool, boost: np.float32, among: Mask | None) -> Mask:
        mask = np.ones(self._count, bool) if among is None else among.copy()
        # What looks at scores comes last, when it is known which documents get that far: first what excludes.
        required = [(clause, False) for clause in (*query.must, *query.filter)]
        excluded = [(clause, True) for clause in query.must_not]
        late = [(clause, out) for clause, out in (*excluded, *required) if looks_at_scores(clause)]
        soon = [(clause, out) for clause, out in (*required, *excluded) if not looks_at_scores(clause)]
        for clause, out in (*soon, *late):
            found = self.matching(clause, boost, mask)
            mask &= ~found if out else found
        minimum = query.minimum if query.must or query.filter else max(1, query.minimum)
        if minimum == 1:
            mask &= self._any(query.should, boost, mask)
        elif minimum > 1:
            counts = np.zeros(self._count, np.int32)
            for clause in query.should:
                counts += self.matching(clause, boost, mask)
            mask &= counts >= minimum
        return mask

    def _any(self, queries: Iterable[Query], boost: np.float32, among: Mask | None) -> Mask:
        mask = np.zeros(self._count, bool)
        for query in queries:
            mask |= self.matching(query, boost, among)
        return mask

    # Others

    def _boosting(self, query: Boosting, boost: np.float32, among: Mask | None) -> Scores:
        positive = self.scores(query.positive, among=among)
        factors = np.where(self.matching(query.negative, among=among), query.factor, 1.0)
        values = (positive.values.astype(np.float64) * factors * float(boost)).astype(np.float32)
        return Scores(values, positive.mask())

    def _functions(self, query: FunctionScore, boost: np.float32, among: Mask | None) -> Scores:
        inner = self.scores(query.query, boost, among)
        mask = inner.mask()
        if among is not None:
            mask = mask & among
        documents = np.flatnonzero(mask)
        applies = [
            None if function.filter is None else self.matching(function.filter, among=mask)[documents]
            for function in query.functions
        ]
        values = np.zeros(self._count, np.float32)
        values[documents] = functions.combined(
            self._reader, query, documents, inner.values[documents], applies
        )
        if query.min_score is not None:
            mask = mask & (values >= np.float32(query.min_score))
        return _restricted(Scores(values, mask), mask)

    def _constant(self, mask: Mask, boost: np.float32) -> Scores:
        return Scores(mask * boost, mask)

    def _marked(self, documents: Iterable[NDArray[Any]]) -> Mask:
        mask = np.zeros(self._count, bool)
        for some in documents:
            mask[some] = True
        return mask


def _counts(query: Query) -> bool:
    """Whether a query that must match has any effect: one that gives every document the score 0 has none."""
    return not (
        isinstance(query, Boost) and query.boost == 0 and query.query in (MatchAll(), Constant(MatchAll()))
    )


def _summed(rows: Sequence[Row]) -> Row:
    """The sum of rows that have few documents, in double, rounded once."""
    if not rows:
        return NO_ROW
    documents, places = np.unique(np.concatenate([row.documents for row in rows]), return_inverse=True)
    weights = np.concatenate([row.scores for row in rows], dtype=np.float64)
    scores = np.bincount(places, weights, len(documents)).astype(np.float32)
    return Row(documents, scores, None, all(row.positive for row in rows))


def _restricted(scores: Scores, mask: Mask) -> Scores:
    """The scores of the documents that the mask leaves."""
    return Scores(scores.values * mask, mask)


def _best(every: Sequence[Scores], tie_breaker: float) -> Scores:
    """The greatest score plus `tie_breaker` times the sum of the others, as DisjunctionMaxScorer computes it."""
    best = np.zeros_like(every[0].values)
    rest = np.zeros(len(best))
    mask = np.zeros(len(best), bool)
    for scores in every:
        rest += np.minimum(best, scores.values)
        best = np.maximum(best, scores.values)
        mask |= scores.mask()
    return Scores((best + rest * float(np.float32(tie_breaker))).astype(np.float32), mask)
