"""The queries `bool` and `dis_max`, Lucene's rewriting rules for them, and disjunctions of terms.

Also the readers of `exists` and `terms`, which create disjunctions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np

from searchapp.lucene import parameters
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import Reported, invalid, unsupported
from searchapp.lucene.index.mapping import DATE, DENSE_VECTOR, GEO_POINT, IP, RANGES, Schema
from searchapp.lucene.index.reader import Mask
from searchapp.lucene.parameters import printed
from searchapp.lucene.queries import dsl, ip_range, number_range
from searchapp.lucene.queries.match_all import (
    UNKNOWN_EXPLANATION,
    MatchAll,
    MatchNone,
    is_nothing,
    is_zero_match_all,
)
from searchapp.lucene.queries.query import (
    Boost,
    Constant,
    Leaf,
    Parser,
    Query,
    ScoredLeaf,
    apply_boost_parameter,
    check_clause_count,
    document_mask,
    exact_value,
    explain,
    map_queries,
    required,
    rewrite_once,
    without_boosts,
)
from searchapp.lucene.queries.scores import ScoreRow, ScoreRows, Scores, restrict, total, total_of_few
from searchapp.lucene.queries.term import Term, TermInSet, indexed_term, of_existing, of_value
from searchapp.lucene.records import Explanation
from searchapp.lucene.similarity import ONE

NONE = MatchNone()
ALL = MatchAll()


@dataclass(frozen=True, slots=True, eq=False)
class TermsDisjunction(Query):
    """A disjunction of distinct terms of one field, equivalent to `Bool(should=...)`.

    Topics consist mostly of hundreds of terms: a `Term` for each would take longer than scoring. Lucene has no such
    query; `as_bool` returns Lucene's.
    """

    field: str
    terms: tuple[str, ...]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TermsDisjunction)
            and self.field == other.field
            and set(self.terms) == set(other.terms)
        )

    def __hash__(self) -> int:
        return hash((self.field, len(self.terms)))  # hashing every term takes longer

    def as_bool(self) -> Bool:
        return Bool(should=tuple(Term(self.field, term) for term in self.terms))

    @property
    def clause_count(self) -> int:
        return len(self.terms)

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        return self.as_bool().leaves(boost)

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:
        yield self.field, self.terms, boost

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        mask = np.zeros(rows.count, bool)
        mask[rows.reader.fields[self.field].documents_with_terms(self.terms)] = True
        return mask

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        return total(rows.count, rows.of_terms(self.field, self.terms, boost))

    def notation(self, schema: Schema) -> str:
        return self.as_bool().notation(schema)

    def inner_notation(self, schema: Schema) -> str:
        return self.as_bool().inner_notation(schema)

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        return self.as_bool().explanation(rows, document, boost)


@dataclass(frozen=True, slots=True, eq=False)
class Bool(Query):
    """Clauses that must, should or must not match; a filter must match without scoring.

    Equality ignores the order of clauses, as in Lucene, which merges equal queries.
    """

    must: tuple[Query, ...] = ()
    must_not: tuple[Query, ...] = ()
    should: tuple[Query, ...] = ()
    filter: tuple[Query, ...] = ()
    # Required `should` clauses; 0 still requires one without other required clauses.
    minimum: int = 0
    # Whether Lucene's order of `should` is random, because the clauses were in a hash table.
    is_shuffled: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bool) and self._unordered() == other._unordered()

    def __hash__(self) -> int:
        return hash((self.minimum, *map(frozenset, self._clauses())))

    def _clauses(self) -> tuple[tuple[Query, ...], ...]:
        return self.must, self.must_not, self.should, self.filter

    def _unordered(self) -> tuple[int, list[Counter[Query]]]:
        return self.minimum, list(map(Counter, self._clauses()))

    @property
    def is_pure_disjunction(self) -> bool:
        return not (self.must or self.must_not or self.filter) and self.minimum <= 1

    def __len__(self) -> int:
        return sum(map(len, self._clauses()))

    def children(self) -> tuple[Query, ...]:
        return (*self.must, *self.must_not, *self.should, *self.filter)

    def with_children(self, children: tuple[Query, ...]) -> Query:
        ends = accumulate(map(len, self._clauses()), initial=0)
        must, must_not, should, filters = (children[start:end] for start, end in pairwise(ends))
        return Bool(must, must_not, should, filters, self.minimum, self.is_shuffled)

    def with_clauses(
        self,
        must: tuple[Query, ...],
        must_not: tuple[Query, ...],
        should: tuple[Query, ...],
        filters: tuple[Query, ...],
    ) -> Bool:
        """Replace the clauses; return the query itself if all tuples are the same."""
        clauses = must, must_not, should, filters
        is_same = all(new is old for new, old in zip(clauses, self._clauses(), strict=True))
        return self if is_same else Bool(*clauses, self.minimum, self.is_shuffled)

    @property
    def clause_count(self) -> int:
        check_clause_count(len(self))
        distinct = (*dict.fromkeys(self.must_not), *dict.fromkeys(self.filter))
        return sum(clause.clause_count for clause in (*self.must, *self.should, *distinct))

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        for clause in (*self.must, *self.should, *self.filter):
            yield from clause.leaves(boost)

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:
        for clause in (*self.must, *self.should):
            yield from clause.scored_terms(boost)

    # Rewriting

    def rewritten(self) -> Query:
        return next((simpler for rule in _RULES if (simpler := rule(self)) is not self), self)

    def only_matching(self) -> Bool:
        """Make required clauses filters, and drop clauses that only add scores (`BooleanQuery.rewriteNoScoring`)."""
        counts = self.minimum > 0 or not (self.must or self.filter)
        filters = map_queries(_only_matching, self.filter)
        return self.with_clauses(
            () if self.must else self.must,
            map_queries(_only_matching, self.must_not),
            map_queries(_only_matching, self.should) if counts else (),
            (*map_queries(_only_matching, self.must), *filters) if self.must else filters,
        )

    def with_terms_as_clauses(self) -> Bool:
        """Inline the terms of disjunctions in `should`, as Lucene does."""
        if self.minimum > 1 or not any(isinstance(clause, TermsDisjunction) for clause in self.should):
            return self
        should = (
            clause.as_bool().should if isinstance(clause, TermsDisjunction) else (clause,)
            for clause in self.should
        )
        return replace(self, should=tuple(chain.from_iterable(should)))

    # Matching and scoring

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        mask = rows.reader.live_mask() if scope is None else scope.copy()
        # Clauses that read scores come last, when their scope is known; among them, the excluding ones first.
        included = [(clause, False) for clause in (*self.must, *self.filter)]
        excluded = [(clause, True) for clause in self.must_not]
        early = [(clause, excludes) for clause, excludes in (*included, *excluded) if not clause.reads_scores]
        late = [(clause, excludes) for clause, excludes in (*excluded, *included) if clause.reads_scores]
        for clause, excludes in (*early, *late):
            matching = clause.matching(rows, boost, mask)
            mask &= ~matching if excludes else matching
        minimum = self.minimum if self.must or self.filter else max(1, self.minimum)
        if minimum == 1:
            mask &= any_matching(self.should, rows, boost, mask)
        elif minimum > 1:
            counts = np.zeros(rows.count, np.int32)
            for clause in self.should:
                counts += clause.matching(rows, boost, mask)
            mask &= counts >= minimum
        return mask

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        if not self.reads_values:
            return self._scores(rows, boost, scope)
        # Only matching documents must have values.
        scope = self.matching(rows, boost, scope)
        scores = self._scores(rows, boost, scope)
        return restrict(scores, scores.mask() & scope)

    def _scores(self, rows: ScoreRows, boost: np.float32, scope: Mask | None) -> Scores:
        scores = self._included_scores(rows, boost, scope)
        if self.filter:
            mask = scores.mask()
            for clause in self.filter:
                mask = mask & clause.matching(rows, boost, scope)
            scores = restrict(scores, mask)
        for clause in self.must_not:
            scores = _without(scores, clause, rows, boost, scope)
        return scores

    def _included_scores(self, rows: ScoreRows, boost: np.float32, scope: Mask | None) -> Scores:
        if not self.must and not self.filter:
            return self._optional_scores(rows, self.minimum, boost, scope)
        if self.should and self.minimum == 0 and all(map(is_zero_match_all, self.must)):
            return Scores(self._optional_scores(rows, 0, boost, scope).values, rows.reader.live_mask())
        required = self._required_scores(rows, boost, scope)
        if not self.should:
            return required
        optional = self._optional_scores(rows, self.minimum, boost, scope)
        # Lucene rounds both sides before it adds them.
        values = (required.values.astype(np.float64) + optional.values).astype(np.float32)
        mask = required.mask() & optional.mask() if self.minimum > 0 else required.mask()
        return restrict(Scores(values, mask), mask)

    def _required_scores(self, rows: ScoreRows, boost: np.float32, scope: Mask | None) -> Scores:
        if not self.must:
            return Scores(np.zeros(rows.count, np.float32), rows.reader.live_mask())
        clauses = [clause.scores(rows, boost, scope) for clause in self.must]
        if len(clauses) == 1:
            return clauses[0]
        sums = np.zeros(rows.count)
        mask = np.ones(rows.count, bool)
        for scores in clauses:
            sums += scores.values
            mask &= scores.mask()
        return restrict(Scores(sums.astype(np.float32), mask), mask)

    def _optional_scores(
        self, rows: ScoreRows, minimum: int, boost: np.float32, scope: Mask | None
    ) -> Scores:
        sparse: list[ScoreRow] = []
        others: list[Scores] = []
        for clause in self.should:
            # The terms of a disjunction are clauses of this one, see `with_terms_as_clauses`.
            if isinstance(clause, TermsDisjunction) and minimum <= 1:
                sparse += rows.of_terms(clause.field, clause.terms, boost)
                continue
            scores = _row_or_scores(clause, rows, boost, scope)
            if isinstance(scores, ScoreRow):
                sparse.append(scores)
            else:
                others.append(scores)
        sums = total(rows.count, sparse, others)
        if minimum <= 1:
            return sums
        counts = np.zeros(rows.count, np.int32)
        for row in sparse:
            counts[row.documents] += 1
        for other in others:
            counts += other.mask()
        return restrict(sums, counts >= minimum)

    # Printing

    def notation(self, schema: Schema) -> str:
        query = self.with_terms_as_clauses()
        if any(clause.unscored() == ALL for clause in query.must_not):
            raise unsupported(UNKNOWN_EXPLANATION)
        marks = (("+", query.must), ("-", query.must_not), ("", query.should), ("#", query.filter))
        text = " ".join(mark + clause.inner_notation(schema) for mark, clauses in marks for clause in clauses)
        return f"({text})~{query.minimum}" if query.minimum > 0 else text

    def inner_notation(self, schema: Schema) -> str:
        return f"({self.notation(schema)})"

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        scores = self.scores(rows, boost, document_mask(document, rows))
        if not scores.mask()[document]:
            return None
        scoring = (*self.must, *self.with_terms_as_clauses().should)
        details = [
            detail for clause in scoring if (detail := clause.explanation(rows, document, boost)) is not None
        ]
        for clause in self.filter:
            name = clause.unscored().filter_notation(rows.reader.schema)
            factors = explain(0, "# clause"), explain(1, name)
            details.append(explain(0, "match on required clause, product of:", factors))
        return explain(scores.values[document], "sum of:", details)


def any_matching(queries: Iterable[Query], rows: ScoreRows, boost: np.float32, scope: Mask | None) -> Mask:
    """Return the documents that match at least one of the queries."""
    mask = np.zeros(rows.count, bool)
    for query in queries:
        mask |= query.matching(rows, boost, scope)
    return mask


def _without(
    scores: Scores, excluded: Query, rows: ScoreRows, boost: np.float32, scope: Mask | None
) -> Scores:
    """Remove the documents of a query; may modify `scores`."""
    if not isinstance(excluded, Leaf) or not excluded.has_few_documents:
        return restrict(scores, scores.mask() & ~excluded.matching(rows, boost, scope))
    documents = excluded.documents(rows.reader)  # faster than a mask of all
    scores.values[documents] = 0
    if scores.matching is not None:
        scores.matching[documents] = False
    return scores


def _row_or_scores(
    clause: Query, rows: ScoreRows, boost: np.float32, scope: Mask | None
) -> ScoreRow | Scores:
    clause, boost = without_boosts(clause, boost)
    if isinstance(clause, ScoredLeaf):
        return clause.row(rows, boost)
    if not isinstance(clause, TermsDisjunction):
        return clause.scores(rows, boost, scope)
    terms = rows.of_terms(clause.field, clause.terms, boost)
    return total_of_few(terms) or total(rows.count, [row for row in terms if len(row.documents)])


@dataclass(frozen=True, slots=True, eq=False)
class DisMax(Query):
    """The best of several queries, in any order, plus `tie_breaker` times the others."""

    queries: tuple[Query, ...]
    tie_breaker: float

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DisMax)
            and self.tie_breaker == other.tie_breaker
            and Counter(self.queries) == Counter(other.queries)
        )

    def __hash__(self) -> int:
        return hash((self.tie_breaker, frozenset(self.queries)))

    def children(self) -> tuple[Query, ...]:
        return self.queries

    def with_children(self, children: tuple[Query, ...]) -> Query:
        return DisMax(children, self.tie_breaker)

    def rewritten(self) -> Query:
        if not self.queries:
            return NONE
        if len(self.queries) == 1:
            return self.queries[0]
        if self.tie_breaker == 1:
            return Bool(should=self.queries, is_shuffled=True)
        queries = map_queries(rewrite_once, self.queries)
        return self if queries is self.queries else DisMax(queries, self.tie_breaker)

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Mask:
        return any_matching(self.queries, rows, boost, scope)

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, scope: Mask | None = None) -> Scores:
        return disjunction_max([query.scores(rows, boost, scope) for query in self.queries], self.tie_breaker)

    def notation(self, schema: Schema) -> str:
        parts = " | ".join(query.inner_notation(schema) for query in self.queries)
        return f"({parts})" + (f"~{printed(self.tie_breaker)}" if self.tie_breaker else "")

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        explanations = (query.explanation(rows, document, boost) for query in self.queries)
        details = [detail for detail in explanations if detail is not None]
        if not details:
            return None
        best, others = 0.0, 0.0
        for value in map(exact_value, details):  # in their order, on which the sum of doubles depends
            best, others = max(best, value), others + min(best, value)
        score = best + others * float(np.float32(self.tie_breaker))
        if self.tie_breaker == 0:
            return explain(score, "max of:", details)
        return explain(score, f"max plus {printed(self.tie_breaker)} times others of:", details)


def disjunction_max(clauses: Sequence[Scores], tie_breaker: float) -> Scores:
    """Return the greatest score plus `tie_breaker` times the sum of the others, as `DisjunctionMaxScorer`."""
    best = np.zeros_like(clauses[0].values)
    rest = np.zeros(len(best))
    mask = np.zeros(len(best), bool)
    for scores in clauses:
        rest += np.minimum(best, scores.values)
        best = np.maximum(best, scores.values)
        mask |= scores.mask()
    return Scores((best + rest * float(np.float32(tie_breaker))).astype(np.float32), mask)


# Rules of `BooleanQuery.rewrite`; a rule that does not apply returns the query itself


def _rewrite_unscored(query: Query) -> Query:
    simpler = Constant(query).rewritten()
    return simpler.query if isinstance(simpler, Constant) else simpler


def _only_matching(clause: Query) -> Query:
    clause = clause.query if isinstance(clause, Boost) else clause
    clause = clause.query if isinstance(clause, Constant) else clause
    return clause.only_matching() if isinstance(clause, Bool) else clause


def _drop_exclusions_alone(query: Bool) -> Query:
    return query if query.must or query.should or query.filter else NONE


def _unwrap_single_clause(query: Bool) -> Query:
    if len(query) == 1:
        if query.should and query.minimum <= 1:
            return query.should[0]
        if query.must and query.minimum == 0:
            return query.must[0]
        if query.filter and query.minimum == 0:
            return Boost(Constant(query.filter[0]), 0.0)
    return query


def _rewrite_clauses(query: Bool) -> Query:
    must, filters = map_queries(rewrite_once, query.must), map_queries(_rewrite_unscored, query.filter)
    if NONE in must or NONE in filters:
        return NONE
    must_not = _without_none(map_queries(_rewrite_unscored, query.must_not))
    should = _without_none(map_queries(rewrite_once, query.should))
    return query.with_clauses(must, must_not, should, filters)


def _without_none(clauses: tuple[Query, ...]) -> tuple[Query, ...]:
    return tuple(clause for clause in clauses if clause != NONE) if NONE in clauses else clauses


def _merge_unscored(query: Bool) -> Query:
    filters, must_not = tuple(dict.fromkeys(query.filter)), tuple(dict.fromkeys(query.must_not))
    if len(filters) + len(must_not) == len(query.filter) + len(query.must_not):
        return query
    return replace(query, filter=filters, must_not=must_not, is_shuffled=True)


def _find_contradiction(query: Bool) -> Query:
    if not query.must_not:
        return query
    excluded = set(query.must_not)
    return NONE if ALL in excluded or excluded & {*query.must, *query.filter} else query


def _drop_idle_filters(query: Bool) -> Query:
    if not query.filter or (len(query.filter) == 1 and not query.must):
        return query
    idle = {*query.must, ALL}
    filters = tuple(clause for clause in query.filter if clause not in idle)
    return query if len(filters) == len(query.filter) else replace(query, filter=filters)


def _require_scored_filters(query: Bool) -> Query:
    both = set(query.should) & set(query.filter) if query.filter else set()
    if not both:
        return query
    must = tuple(clause for clause in query.should if clause in both)
    return replace(
        query,
        must=query.must + must,
        should=tuple(clause for clause in query.should if clause not in both),
        filter=tuple(clause for clause in query.filter if clause not in both),
        minimum=max(0, query.minimum - len(must)),
    )


def _merge_should(query: Bool) -> Query:
    should = query.should if query.minimum > 1 else _merge_equal(query.should, query.is_shuffled)
    return query if should is query.should else replace(query, should=should, is_shuffled=True)


def _merge_must(query: Bool) -> Query:
    must = _merge_equal(query.must, query.is_shuffled)
    return query if must is query.must else replace(query, must=must, is_shuffled=True)


def _merge_equal(clauses: tuple[Query, ...], is_shuffled: bool) -> tuple[Query, ...]:
    """Merge equal clauses, and sum their boosts in double."""
    if len(clauses) < 2:
        return clauses
    boosts: dict[Query, float] = {}
    for clause in clauses:
        boost, inner = (clause.boost, clause.query) if isinstance(clause, Boost) else (1.0, clause)
        boosts[inner] = boosts.get(inner, 0.0) + boost
    if len(boosts) == len(clauses):
        return clauses
    _refuse_random_frequencies(clauses, is_shuffled)
    return tuple(
        clause if boost == 1 else Boost(clause, float(np.float32(boost))) for clause, boost in boosts.items()
    )


def _refuse_random_frequencies(clauses: tuple[Query, ...], is_shuffled: bool) -> None:
    """Reject equal terms with different document frequencies if Lucene keeps a random one.

    They are from fuzzy queries or a `multi_match` of the type `cross_fields`.

    Lucene keeps the first of equal terms, in the order of a hash table in which equal terms with different boosts are
    separate entries. The hashes change with each start of a server.
    """
    firsts: dict[Query, tuple[Query, float]] = {}
    for clause in clauses:
        boost, inner = (clause.boost, clause.query) if isinstance(clause, Boost) else (1.0, clause)
        first, first_boost = firsts.setdefault(inner, (inner, boost))
        if (boost == first_boost and not is_shuffled) or _blended(first) == _blended(inner):
            continue
        terms = {f"{field}:{term}" for field, term, _frequency in _blended(first) ^ _blended(inner)}
        raise unsupported(
            f"fuzzy queries or `cross_fields` that share the similar term {min(terms)} and score it differently, "
            "because Elasticsearch keeps a random one of its scores (a `rewrite` or `fuzzy_rewrite` of `top_terms_50` "
            "has only one, and `cross_fields` with another `tie_breaker` than 1),"
        )


def _blended(query: Query) -> set[tuple[str, str, int]]:
    """Return the terms of a query with other document frequencies than their own."""
    return {
        (leaf.field, leaf.term, leaf.blended)
        for leaf, _boost in query.leaves()
        if isinstance(leaf, Term) and leaf.blended is not None
    }


def _make_constant(query: Bool) -> Query:
    """Score all documents equally if only filters select them."""
    if len(query.must) != 1 or not query.filter:
        return query
    (must,) = query.must
    boost, must = (must.boost, must.query) if isinstance(must, Boost) else (1.0, must)
    if must != ALL:
        return query
    constant = Constant(Bool(filter=query.filter, must_not=query.must_not))
    required = constant if boost == 1 else Boost(constant, boost)
    return Bool(must=(required,), should=query.should, minimum=query.minimum, is_shuffled=True)


def _inline_should(query: Bool) -> Query:
    if query.minimum > 1 or not any(isinstance(clause, Bool | TermsDisjunction) for clause in query.should):
        return query
    if _can_keep_disjunctions(query):
        return query
    should: list[Query] = []
    for clause in query.should:
        inner = clause.as_bool() if isinstance(clause, TermsDisjunction) else clause
        if isinstance(inner, Bool) and inner.is_pure_disjunction:
            should += inner.should
        else:
            should.append(clause)
    return query if len(should) == len(query.should) else replace(query, should=tuple(should))


def _can_keep_disjunctions(query: Bool) -> bool:
    """Return whether no rule would change the terms of the disjunctions in `should`.

    Scoring then treats these terms as clauses of the outer query.
    """
    if query.minimum or query.filter:
        return False
    fields = []
    for clause in query.should:
        if isinstance(clause, Bool):
            return False
        inner = clause.query if isinstance(clause, Boost) and isinstance(clause.query, Term) else clause
        if isinstance(inner, TermsDisjunction | Term):
            fields.append(inner.field)
    return len(set(fields)) == len(fields)


def _inline_required(query: Bool) -> Query:
    must: list[Query] = []
    filters: list[Query] = []
    must_not = list(query.must_not)
    has_inner = False
    for clauses, scored in ((query.must, must), (query.filter, filters)):
        for clause in clauses:
            if isinstance(clause, Bool) and not clause.should and clause.minimum == 0:
                has_inner = True
                scored += clause.must
                filters += clause.filter
                must_not += clause.must_not
            else:
                scored.append(clause)
    if not has_inner:
        return query
    return replace(query, must=tuple(must), filter=tuple(filters), must_not=tuple(must_not))


def _require_all_should(query: Bool) -> Query:
    if len(query.should) < query.minimum:
        return NONE
    if query.should and len(query.should) == query.minimum:
        return replace(query, must=query.must + query.should, should=(), minimum=0)
    return query


def _inline_single_must(query: Bool) -> Query:
    if query.should or len(query.must) != 1:
        return query
    (inner,) = query.must
    inner = inner.as_bool() if isinstance(inner, TermsDisjunction) else inner
    if not isinstance(inner, Bool) or len(inner.should) != len(inner):
        return query
    return replace(query, must=(), should=inner.should, minimum=max(1, inner.minimum))


_RULES: tuple[Callable[[Bool], Query], ...] = (
    _drop_exclusions_alone,
    _unwrap_single_clause,
    _rewrite_clauses,
    _merge_unscored,
    _find_contradiction,
    _drop_idle_filters,
    _require_scored_filters,
    _merge_should,
    _merge_must,
    _make_constant,
    _inline_should,
    _inline_required,
    _require_all_should,
    _inline_single_must,
)


def with_minimum(query: Bool, specification: str | None) -> Bool:
    """Apply a `minimum_should_match`."""
    if specification is None:
        return query
    try:
        return replace(query, minimum=dsl.required_clauses(len(query.should), specification))
    except ValueError as error:
        raise invalid(str(error)) from error


_CLAUSES = ("must", "must_not", "should", "filter")


def read_bool(parser: Parser, content: Any) -> Query:
    """Read `bool`; without clauses it matches all documents."""
    options = parser.options(content, "bool", (*_CLAUSES, "minimum_should_match"))
    clauses: dict[str, tuple[Query, ...]] = {}
    for name in _CLAUSES:
        described = options.get(name)
        if described is not None and not isinstance(described, list | tuple | Mapping):
            raise invalid(
                f"`{name}` of the query `bool` must be a query or a list of them, not {described!r}"
            )
        with suppress(Reported):  # read the others too, to report all problems
            clauses[name] = () if described is None else parser.queries(described, f"bool.{name}")
    if len(clauses) < len(_CLAUSES):
        raise Reported
    must, must_not, should, filters = clauses.values()
    query = Bool(must, must_not, should, filters)
    minimum = options.get("minimum_should_match")
    text = None if minimum is None else parameters.raw_text(minimum, "minimum_should_match")
    if not len(query):
        return apply_boost_parameter(MatchAll(), options, "bool")
    # Elasticsearch recognises some contradictions while parsing (`BoolQueryBuilder.doRewrite`).
    if any(map(is_nothing, (*must, *filters))) or any(map(_is_everything, must_not)):
        return MatchNone()
    if len(should) == len(query) and all(map(is_nothing, should)):
        return MatchNone()
    query = with_minimum(query, text)
    if len(must_not) == len(query):
        query = Bool(must_not=must_not, filter=(MatchAll(),))
    return apply_boost_parameter(query, options, "bool")


def _is_everything(query: Query) -> bool:
    inner = query.query if isinstance(query, Boost) else query
    return isinstance(inner, MatchAll) and not inner.late


def read_dis_max(parser: Parser, content: Any) -> Query:
    """Read `dis_max`."""
    options = parser.options(content, "dis_max", ("queries", "tie_breaker"))
    queries = parser.queries(required(options, "queries", "dis_max"), "dis_max.queries")
    if not queries:
        raise invalid("the query `dis_max` has no `queries`")
    tie_breaker = parameters.share(options.get("tie_breaker", 0), "tie_breaker")
    return apply_boost_parameter(DisMax(queries, tie_breaker), options, "dis_max")


def read_exists(parser: Parser, content: Any) -> Query:
    """Read `exists`: documents with a value in a field, or in any field of an object."""
    options = parser.options(content, "exists", ("field",))
    name = parameters.name(required(options, "field", "exists"), "`field` of the query `exists`")
    field = parser.field(name, GEO_POINT, DENSE_VECTOR, *RANGES)
    schema, start = parser.reader.schema, f"{name}."
    for other in (*schema.unsearched, *schema.aliases):
        if field is None and other.startswith(start):
            raise unsupported(f"`exists` on {name}, which contains the alias or unsearched field {other},")
    fields = [field] if field else [inner for key, inner in schema.fields.items() if key.startswith(start)]
    fields = [inner for inner in fields if field or not inner.is_keyed]
    if not fields:
        return MatchNone()
    leaves = tuple(map(of_existing, fields))
    return apply_boost_parameter(
        Constant(leaves[0] if len(leaves) == 1 else Bool(should=leaves)), options, "exists"
    )


MOST_TERMS = 65_536  # Elasticsearch's default of `index.max_terms_count`


def read_terms(parser: Parser, content: Any) -> Query:
    """Read `terms`: any of several terms, numbers or dates."""
    options = parameters.mapping(content, "the query `terms`")
    named = {name: value for name, value in options.items() if name != "boost"}
    name, values = parameters.single(named, "the query `terms`")
    if isinstance(values, Mapping):
        raise unsupported("the lookup of terms in another index")
    if not isinstance(values, list | tuple):
        raise invalid("the query `terms` needs a list of values")
    parameters.boost(options.get("boost", 1), "the query `terms`")  # reject it even if nothing matches
    label = f"a term for {name}"
    if any(isinstance(value, Mapping) for value in values):
        raise unsupported(f"an object as {label}")
    for value in values:
        parameters.term(value, label)
    field = parser.field(name)
    if field is None or not values:
        return MatchNone()
    if len(values) > MOST_TERMS:
        raise invalid(
            f"the query `terms` on {name} has {len(values):,} values, and at most {MOST_TERMS:,} are allowed"
        )
    query: Query
    if field.type == DATE or (field.type == IP and any(map(ip_range.is_network, values))):
        query = Constant(Bool(should=tuple(of_value(field, value) for value in values)))
    elif field.type == IP:
        query = ip_range.of_addresses(field, values)
    elif field.is_number:
        query = number_range.of_numbers(field, values)
    else:
        query = TermInSet(field.name, tuple(sorted({indexed_term(field, value) for value in values})))
    return apply_boost_parameter(query, options, "terms")
