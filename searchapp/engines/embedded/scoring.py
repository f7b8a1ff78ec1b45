"""The scores that a query gives to all documents of an index, in Lucene's arithmetic.

Every query gives a float32 to each document it matches. What is one sum in Lucene must be one sum here:
`queries.rewrite` sees to that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import assert_never

import numpy as np

from searchapp.engines.embedded import functions
from searchapp.engines.embedded.candidates import CandidateRows
from searchapp.engines.embedded.may_match import ScoreMode, may_match
from searchapp.engines.embedded.queries.boosts import without_boosts
from searchapp.engines.embedded.queries.leaf import Leaf
from searchapp.engines.embedded.queries.leaves.match_all import gives_nothing
from searchapp.engines.embedded.queries.leaves.term import Term
from searchapp.engines.embedded.queries.nodes import (
    Bool,
    Boost,
    Boosting,
    Constant,
    DisMax,
    FunctionScore,
    Query,
    TermsDisjunction,
)
from searchapp.engines.embedded.queries.scored_leaf import ScoredLeaf
from searchapp.engines.embedded.queries.walk import looks_at_scores, looks_at_values, scored
from searchapp.engines.embedded.refusals import beyond_float32
from searchapp.engines.embedded.rows import Row, Rows
from searchapp.engines.embedded.similarity import ONE
from searchapp.engines.embedded.storage.reader import IndexReader, Mask
from searchapp.engines.embedded.sums import Scores, best, restricted, total, total_of_few


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


class Scorer:
    """Scores the documents of one version of an index."""

    def __init__(
        self,
        reader: IndexReader,
        rows: Rows | CandidateRows | None = None,
        mode: ScoreMode = ScoreMode.TOP_SCORES,
        explains: bool = False,
    ) -> None:
        """`rows` are of the documents to score, None for all. `explains`: the scores are those that explanations show.

        An explanation looks at the clauses before it looks at their sum, and so knows by then which terms are absent.
        """
        self._reader = reader
        self._rows = rows or Rows(reader)
        self._count = self._rows.count
        self._mode = mode
        self._explains = explains

    @property
    def complete(self) -> Scorer:
        """One for the scores of all documents, where Lucene must not leave out any."""
        if self._mode is ScoreMode.COMPLETE:
            return self
        return Scorer(self._reader, self._rows, ScoreMode.COMPLETE, self._explains)

    def explaining(self) -> Scorer:
        """One for the scores that explanations show, which may be rounded in another way than those of hits."""
        return Scorer(self._reader, self._rows, ScoreMode.COMPLETE, explains=True)

    def scores(self, query: Query, boost: np.float32 = ONE, among: Mask | None = None) -> Scores:
        """The scores of a rewritten query whose own boost is multiplied by `boost`.

        `among` marks the documents that count, None all documents: scores of other documents are not looked at and may
        be wrong, and values that they lack are not missed.

        Raises:
            EngineRefused: the scores of some document can't be computed.
        """
        match query:
            case Boost(inner, factor):
                return self.scores(inner, np.float32(factor) * boost, among)
            case TermsDisjunction(field, terms):
                return total(self._count, self._rows.of_terms(field, terms, boost))
            case ScoredLeaf():
                return total(self._count, [self._rows.row(query, boost)])
            case Leaf():
                return self._constant(query.mask(self._reader), boost)
            case Bool():
                return self._bool(query, boost, among)
            case DisMax(queries, tie_breaker):
                return best([self.scores(inner, boost, among) for inner in queries], tie_breaker)
            case Boosting():
                return self._boosting(query, boost, among)
            case FunctionScore():
                return self._functions(query, boost, among)
            case Constant(inner):
                return self._constant(self.matching(inner, among=among), boost)
            case _:
                assert_never(query)

    def prepare(self, queries: Iterable[Query]) -> None:
        """Compute together what the scores of several queries have in common, before they are asked for."""
        rows = self._rows
        if isinstance(rows, CandidateRows):
            return  # they are asked for once
        wanted: defaultdict[tuple[str, float], list[str]] = defaultdict(list)
        for query in queries:
            for leaf, boost in scored(query):
                if isinstance(leaf, TermsDisjunction):
                    wanted[leaf.field, boost] += leaf.terms
                elif isinstance(leaf, Term):
                    wanted[leaf.field, boost].append(leaf.term)
        for (field, boost), terms in wanted.items():
            rows.prepare(field, terms, np.float32(boost))

    def matching(self, query: Query, boost: np.float32 = ONE, among: Mask | None = None) -> Mask:
        """The documents that a rewritten query matches, whatever their scores; `among` is as in `scores`.

        Only a `min_score` looks at scores. The boosts outside count for it, even where they count for nothing else:
        Lucene hands boosts down to filters too.
        """
        match query:
            case Leaf():
                return query.mask(self._reader)
            case TermsDisjunction(field, terms):
                mask = np.zeros(self._count, bool)
                mask[self._reader.fields[field].documents_with_terms(terms)] = True
                return mask
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
            case _:
                assert_never(query)

    # Bool

    def _bool(self, query: Bool, boost: np.float32, among: Mask | None) -> Scores:
        if not looks_at_values(query):
            return self._all_of_bool(query, boost, among)
        # It makes a difference which documents come to be scored.
        among = self._matching_bool(query, boost, among)
        scores = self._all_of_bool(query, boost, among)
        return restricted(scores, scores.mask() & among)

    def _all_of_bool(self, query: Bool, boost: np.float32, among: Mask | None) -> Scores:
        scores = self._positive(query, boost, among)
        if query.filter:
            mask = scores.mask()
            for clause in query.filter:
                mask = mask & self.matching(clause, boost, among)
            scores = restricted(scores, mask)
        for clause in query.must_not:
            scores = self._without(scores, clause, boost, among)
        return scores

    def _without(self, scores: Scores, excluded: Query, boost: np.float32, among: Mask | None) -> Scores:
        """The scores without the documents of a query; the arrays given may change."""
        if not isinstance(excluded, Leaf) or not excluded.has_few_documents:
            return restricted(scores, scores.mask() & ~self.matching(excluded, boost, among))
        documents = excluded.documents(self._reader)  # cheaper than a mask of all
        scores.values[documents] = 0
        if scores.matching is not None:
            scores.matching[documents] = False
        return scores

    def _positive(self, query: Bool, boost: np.float32, among: Mask | None) -> Scores:
        """What the clauses that score come to, without filters and exclusions."""
        if not query.must and not query.filter:
            return self._should(query.should, query.minimum, boost, among)
        if query.should and query.minimum == 0 and all(map(gives_nothing, query.must)):
            return Scores(self._should(query.should, 0, boost, among).values, self._rows.everything())
        if query.minimum and query.must:
            found = [
                clause
                for clause in query.should
                if may_match(clause, self._reader, self._mode, self._explains)
            ]
            if len(found) == query.minimum:  # all required then, which is one sum to Lucene
                return self._must((*query.must, *found), boost, among)
        required = self._must(query.must, boost, among)
        if not query.should:
            return required
        optional = self._should(query.should, query.minimum, boost, among)
        # Lucene rounds both sides before it adds them.
        values = (required.values.astype(np.float64) + optional.values).astype(np.float32)
        mask = required.mask() & optional.mask() if query.minimum > 0 else required.mask()
        return restricted(Scores(values, mask), mask)

    def _must(self, clauses: Sequence[Query], boost: np.float32, among: Mask | None) -> Scores:
        if not clauses:
            return Scores(np.zeros(self._count, np.float32), self._rows.everything())
        every = [self.scores(clause, boost, among) for clause in clauses]
        if len(every) == 1:
            return every[0]
        sums = np.zeros(self._count)
        mask = np.ones(self._count, bool)
        for scores in every:
            sums += scores.values
            mask &= scores.mask()
        return restricted(Scores(sums.astype(np.float32), mask), mask)

    def _should(
        self, clauses: Sequence[Query], minimum: int, boost: np.float32, among: Mask | None
    ) -> Scores:
        rows: list[Row] = []
        others: list[Scores] = []
        for clause in clauses:
            if (
                isinstance(clause, TermsDisjunction) and minimum <= 1
            ):  # its terms are clauses, see `disjunctions`
                rows += self._rows.of_terms(clause.field, clause.terms, boost)
                continue
            found = self._row_or_scores(clause, boost, among)
            if isinstance(found, Row):
                rows.append(found)
            else:
                others.append(found)
        scores = total(self._count, rows, others)
        if minimum <= 1:
            return scores
        counts = np.zeros(self._count, np.int32)
        for row in rows:
            counts[row.documents] += 1
        for other in others:
            counts += other.mask()
        return restricted(scores, counts >= minimum)

    def _row_or_scores(self, clause: Query, boost: np.float32, among: Mask | None) -> Row | Scores:
        clause, boost = without_boosts(clause, boost)
        if isinstance(clause, ScoredLeaf):
            return self._rows.row(clause, boost)
        if not isinstance(clause, TermsDisjunction):
            return self.scores(clause, boost, among)
        rows = self._rows.of_terms(clause.field, clause.terms, boost)
        return total_of_few(rows) or total(self._count, [row for row in rows if len(row.documents)])

    def _matching_bool(self, query: Bool, boost: np.float32, among: Mask | None) -> Mask:
        mask = self._rows.everything() if among is None else among.copy()
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
        positive = self.complete.scores(query.positive, among=among)
        factors = np.where(self.matching(query.negative, among=among), query.factor, 1.0)
        values = (positive.values.astype(np.float64) * factors * float(boost)).astype(np.float32)
        return Scores(values, positive.mask())

    def _functions(self, query: FunctionScore, boost: np.float32, among: Mask | None) -> Scores:
        inner = self.complete.scores(query.query, boost, among)
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
        return restricted(Scores(values, mask), mask)

    def _constant(self, mask: Mask, boost: np.float32) -> Scores:
        return Scores(mask * boost, mask)
