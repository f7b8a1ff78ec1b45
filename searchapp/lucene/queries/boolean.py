"""The query `bool`, the rules by which Lucene rewrites it, and disjunctions of terms, which most topics come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np

from searchapp.lucene import parameters
from searchapp.lucene.errors import Reported, invalid, unsupported
from searchapp.lucene.index.mapping import Schema
from searchapp.lucene.index.reader import Mask
from searchapp.lucene.queries import normal_form
from searchapp.lucene.queries.match_all import (
    INSIDE_ANOTHER,
    Exists,
    MatchAll,
    MatchNone,
    is_nothing,
    is_zero_match_all,
)
from searchapp.lucene.queries.parser import Parser, required
from searchapp.lucene.queries.query import (
    Boost,
    Constant,
    Leaf,
    Query,
    ScoredLeaf,
    boosted,
    each,
    explained,
    one_step,
    only,
    require_few,
    without_boosts,
)
from searchapp.lucene.queries.scores import ScoreRow, ScoreRows, Scores, restricted, total, total_of_few
from searchapp.lucene.queries.term import Term
from searchapp.lucene.records import Explanation
from searchapp.lucene.similarity import ONE

NONE = MatchNone()
ALL = MatchAll()


@dataclass(frozen=True, slots=True, eq=False)
class TermsDisjunction(Query):
    """Different terms of one field of which any may match: `Bool(should=...)` of them, in one value.

    Topics consist of little else, and of hundreds of terms: to handle each term as a query costs more time than to
    score it. Lucene has no such query: `as_bool` is what it has.
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
        return hash((self.field, len(self.terms)))  # enough to tell most apart, without looking at every term

    def clauses(self) -> tuple[Query, ...]:
        """The same as a query for each term."""
        return tuple(Term(self.field, term) for term in self.terms)

    def as_bool(self) -> Bool:
        """The same query with a clause for each term."""
        return Bool(should=self.clauses())

    @property
    def clause_count(self) -> int:
        return len(self.terms)

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        return self.as_bool().leaves(boost)

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:
        yield self.field, self.terms, boost

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Mask:  # noqa: ARG002
        mask = np.zeros(rows.count, bool)
        mask[rows.reader.fields[self.field].documents_with_terms(self.terms)] = True
        return mask

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Scores:  # noqa: ARG002
        return total(rows.count, rows.of_terms(self.field, self.terms, boost))

    def notation(self, schema: Schema) -> str:
        return self.as_bool().notation(schema)

    def inner_notation(self, schema: Schema) -> str:
        return f"({self.notation(schema)})"

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        return self.as_bool().explanation(rows, document, boost)


@dataclass(frozen=True, slots=True, eq=False)
class Bool(Query):
    """Clauses that must, should, must not match; a filter must match without counting.

    The order of clauses makes no difference, as in Lucene: two such queries beside each other become one. At
    least `minimum` of `should` must match; 0 still asks for one of them when nothing else must match.
    """

    must: tuple[Query, ...] = ()
    must_not: tuple[Query, ...] = ()
    should: tuple[Query, ...] = ()
    filter: tuple[Query, ...] = ()
    minimum: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bool) and self._without_order() == other._without_order()

    def __hash__(self) -> int:
        return hash((self.minimum, *(frozenset(clauses) for clauses in self._clauses())))

    def _clauses(self) -> tuple[tuple[Query, ...], ...]:
        return self.must, self.must_not, self.should, self.filter

    def _without_order(self) -> tuple[int, list[Counter[Query]]]:
        return self.minimum, [Counter(clauses) for clauses in self._clauses()]

    @property
    def is_pure_disjunction(self) -> bool:
        return not (self.must or self.must_not or self.filter) and self.minimum <= 1

    def __len__(self) -> int:
        return len(self.must) + len(self.must_not) + len(self.should) + len(self.filter)

    def children(self) -> tuple[Query, ...]:
        return (*self.must, *self.must_not, *self.should, *self.filter)

    def with_children(self, children: tuple[Query, ...]) -> Query:
        ends = [0, *accumulate(map(len, self._clauses()))]
        must, must_not, should, filters = (children[start:end] for start, end in pairwise(ends))
        return Bool(must, must_not, should, filters, self.minimum)

    @property
    def clause_count(self) -> int:
        require_few(len(self))
        once = (*dict.fromkeys(self.must_not), *dict.fromkeys(self.filter))
        return sum(clause.clause_count for clause in (*self.must, *self.should, *once))

    def leaves(self, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
        for clause in (*self.must, *self.should, *self.filter):
            yield from clause.leaves(boost)

    def scored_terms(self, boost: float = 1.0) -> Iterator[tuple[str, tuple[str, ...], float]]:
        for clause in (*self.must, *self.should):
            yield from clause.scored_terms(boost)

    # Simplifying

    def rewritten(self) -> Query:
        for rule in RULES:
            simpler = rule(self)
            if simpler is not self:
                return simpler
        return self

    def only_matching(self) -> Bool:
        """Clauses that must match as filters, none that only adds to the score (`BooleanQuery.rewriteNoScoring`)."""
        counts = self.minimum > 0 or not (self.must or self.filter)
        filters = each(_only_matching, self.filter)
        simpler = Bool(
            must_not=each(_only_matching, self.must_not),
            should=each(_only_matching, self.should) if counts else (),
            filter=(*each(_only_matching, self.must), *filters) if self.must else filters,
            minimum=self.minimum,
        )
        return _unless_same(self, simpler)

    def with_terms_as_clauses(self) -> Bool:
        """The same query without disjunctions of terms among what should match, which are no clauses of their own.

        Lucene lets the clauses of a disjunction inside another disjunction join those of the outer one.
        """
        if self.minimum > 1 or not any(isinstance(clause, TermsDisjunction) for clause in self.should):
            return self
        every = (one.clauses() if isinstance(one, TermsDisjunction) else (one,) for one in self.should)
        return replace(self, should=tuple(chain.from_iterable(every)))

    # Matching and scoring

    def matching(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Mask:
        mask = rows.reader.everything() if among is None else among.copy()
        # What looks at scores comes last, when it is known which documents get that far: first what excludes.
        required = [(clause, False) for clause in (*self.must, *self.filter)]
        excluded = [(clause, True) for clause in self.must_not]
        late = [(clause, out) for clause, out in (*excluded, *required) if clause.reads_scores]
        soon = [(clause, out) for clause, out in (*required, *excluded) if not clause.reads_scores]
        for clause, out in (*soon, *late):
            found = clause.matching(rows, boost, mask)
            mask &= ~found if out else found
        minimum = self.minimum if self.must or self.filter else max(1, self.minimum)
        if minimum == 1:
            mask &= any_matching(self.should, rows, boost, mask)
        elif minimum > 1:
            counts = np.zeros(rows.count, np.int32)
            for clause in self.should:
                counts += clause.matching(rows, boost, mask)
            mask &= counts >= minimum
        return mask

    def scores(self, rows: ScoreRows, boost: np.float32 = ONE, among: Mask | None = None) -> Scores:
        if not self.reads_values:
            return self._scores(rows, boost, among)
        # It makes a difference which documents come to be scored.
        among = self.matching(rows, boost, among)
        scores = self._scores(rows, boost, among)
        return restricted(scores, scores.mask() & among)

    def _scores(self, rows: ScoreRows, boost: np.float32, among: Mask | None) -> Scores:
        scores = self._positive(rows, boost, among)
        if self.filter:
            mask = scores.mask()
            for clause in self.filter:
                mask = mask & clause.matching(rows, boost, among)
            scores = restricted(scores, mask)
        for clause in self.must_not:
            scores = _without(scores, clause, rows, boost, among)
        return scores

    def _positive(self, rows: ScoreRows, boost: np.float32, among: Mask | None) -> Scores:
        """What the clauses that score come to, without filters and exclusions."""
        if not self.must and not self.filter:
            return self._optional(rows, self.minimum, boost, among)
        if self.should and self.minimum == 0 and all(map(is_zero_match_all, self.must)):
            return Scores(self._optional(rows, 0, boost, among).values, rows.reader.everything())
        required = self._required(rows, boost, among)
        if not self.should:
            return required
        optional = self._optional(rows, self.minimum, boost, among)
        # Lucene rounds both sides before it adds them.
        values = (required.values.astype(np.float64) + optional.values).astype(np.float32)
        mask = required.mask() & optional.mask() if self.minimum > 0 else required.mask()
        return restricted(Scores(values, mask), mask)

    def _required(self, rows: ScoreRows, boost: np.float32, among: Mask | None) -> Scores:
        if not self.must:
            return Scores(np.zeros(rows.count, np.float32), rows.reader.everything())
        every = [clause.scores(rows, boost, among) for clause in self.must]
        if len(every) == 1:
            return every[0]
        sums = np.zeros(rows.count)
        mask = np.ones(rows.count, bool)
        for scores in every:
            sums += scores.values
            mask &= scores.mask()
        return restricted(Scores(sums.astype(np.float32), mask), mask)

    def _optional(self, rows: ScoreRows, minimum: int, boost: np.float32, among: Mask | None) -> Scores:
        found: list[ScoreRow] = []
        others: list[Scores] = []
        for clause in self.should:
            # The terms of a disjunction are clauses of this one, see `with_terms_as_clauses`.
            if isinstance(clause, TermsDisjunction) and minimum <= 1:
                found += rows.of_terms(clause.field, clause.terms, boost)
                continue
            one = _row_or_scores(clause, rows, boost, among)
            if isinstance(one, ScoreRow):
                found.append(one)
            else:
                others.append(one)
        scores = total(rows.count, found, others)
        if minimum <= 1:
            return scores
        counts = np.zeros(rows.count, np.int32)
        for row in found:
            counts[row.documents] += 1
        for other in others:
            counts += other.mask()
        return restricted(scores, counts >= minimum)

    # Showing

    def notation(self, schema: Schema) -> str:
        query = self.with_terms_as_clauses()
        if any(clause.unscored() == ALL for clause in query.must_not):
            raise unsupported(INSIDE_ANOTHER)
        marks = (("+", query.must), ("-", query.must_not), ("", query.should), ("#", query.filter))
        text = " ".join(mark + clause.inner_notation(schema) for mark, clauses in marks for clause in clauses)
        return f"({text})~{query.minimum}" if query.minimum > 0 else text

    def inner_notation(self, schema: Schema) -> str:
        return f"({self.notation(schema)})"

    def explanation(self, rows: ScoreRows, document: int, boost: np.float32) -> Explanation | None:
        scores = self.scores(rows, boost, only(document, rows))
        if not scores.mask()[document]:
            return None
        scoring = (*self.must, *self.with_terms_as_clauses().should)
        clauses = [clause.explanation(rows, document, boost) for clause in scoring]
        filters = [_explained_filter(clause, rows.reader.schema) for clause in self.filter]
        details = [clause for clause in clauses if clause is not None] + filters
        return explained(scores.values[document], "sum of:", details)


def any_matching(queries: Iterable[Query], rows: ScoreRows, boost: np.float32, among: Mask | None) -> Mask:
    """The documents that one of some queries matches."""
    mask = np.zeros(rows.count, bool)
    for query in queries:
        mask |= query.matching(rows, boost, among)
    return mask


def _without(
    scores: Scores, excluded: Query, rows: ScoreRows, boost: np.float32, among: Mask | None
) -> Scores:
    """The scores without the documents of a query; the arrays given may change."""
    if not isinstance(excluded, Leaf) or not excluded.has_few_documents:
        return restricted(scores, scores.mask() & ~excluded.matching(rows, boost, among))
    documents = excluded.documents(rows.reader)  # cheaper than a mask of all
    scores.values[documents] = 0
    if scores.matching is not None:
        scores.matching[documents] = False
    return scores


def _row_or_scores(
    clause: Query, rows: ScoreRows, boost: np.float32, among: Mask | None
) -> ScoreRow | Scores:
    clause, boost = without_boosts(clause, boost)
    if isinstance(clause, ScoredLeaf):
        return clause.row(rows, boost)
    if not isinstance(clause, TermsDisjunction):
        return clause.scores(rows, boost, among)
    of_terms = rows.of_terms(clause.field, clause.terms, boost)
    return total_of_few(of_terms) or total(rows.count, [row for row in of_terms if len(row.documents)])


def _explained_filter(clause: Query, schema: Schema) -> Explanation:
    required = "match on required clause, product of:"
    name = clause.unscored().filter_notation(schema)
    return explained(0, required, [explained(0, "# clause"), explained(1, name)])


def _without_scores(query: Query) -> Query:
    """A step of a clause whose scores nobody looks at."""
    simpler = Constant(query).rewritten()
    return simpler.query if isinstance(simpler, Constant) else simpler


def _only_matching(clause: Query) -> Query:
    clause = clause.query if isinstance(clause, Boost) else clause
    clause = clause.query if isinstance(clause, Constant) else clause
    return clause.only_matching() if isinstance(clause, Bool) else clause


def _unless_same(query: Bool, simpler: Bool) -> Bool:
    """The simpler query, which is the query itself if it has the same clauses."""
    same = (
        simpler.must is query.must
        and simpler.must_not is query.must_not
        and simpler.should is query.should
        and simpler.filter is query.filter
    )
    return query if same else simpler


def _without_positive_clauses(query: Bool) -> Query:
    return query if query.must or query.should or query.filter else NONE


def _single_clause(query: Bool) -> Query:
    if len(query) == 1:
        if query.should and query.minimum <= 1:
            return query.should[0]
        if query.must and query.minimum == 0:
            return query.must[0]
        if query.filter and query.minimum == 0:
            return Boost(Constant(query.filter[0]), 0.0)
    return query


def _inside(query: Bool) -> Query:
    must, filters = each(one_step, query.must), each(_without_scores, query.filter)
    if NONE in must or NONE in filters:
        return NONE
    simpler = Bool(
        must,
        _without_none(each(_without_scores, query.must_not)),
        _without_none(each(one_step, query.should)),
        filters,
        query.minimum,
    )
    return _unless_same(query, simpler)


def _repeated_filters(query: Bool) -> Query:
    filters, must_not = _distinct(query.filter), _distinct(query.must_not)
    if len(filters) + len(must_not) == len(query.filter) + len(query.must_not):
        return query
    return replace(query, filter=filters, must_not=must_not)


def _contradiction(query: Bool) -> Query:
    if not query.must_not:
        return query
    excluded = set(query.must_not)
    return NONE if ALL in excluded or excluded & {*query.must, *query.filter} else query


def _idle_filters(query: Bool) -> Query:
    if not query.filter or (len(query.filter) == 1 and not query.must):
        return query
    idle = {*query.must, ALL}
    filters = tuple(clause for clause in query.filter if clause not in idle)
    return query if len(filters) == len(query.filter) else replace(query, filter=filters)


def _filters_that_score(query: Bool) -> Query:
    if not query.filter:
        return query
    both = set(query.should) & set(query.filter)
    if not both:
        return query
    return replace(
        query,
        must=query.must + tuple(clause for clause in query.should if clause in both),
        should=tuple(clause for clause in query.should if clause not in both),
        filter=tuple(clause for clause in query.filter if clause not in both),
        minimum=max(0, query.minimum - sum(clause in both for clause in query.should)),
    )


def _repeated_should(query: Bool) -> Query:
    should = query.should if query.minimum > 1 else _merged(query.should)
    return query if should is query.should else replace(query, should=should)


def _repeated_must(query: Bool) -> Query:
    must = _merged(query.must)
    return query if must is query.must else replace(query, must=must)


def _must_match_all(query: Bool) -> Query:
    """Only filters choose the documents and all get one score: that of a constant."""
    if len(query.must) != 1 or not query.filter:
        return query
    (must,) = query.must
    boost, must = (must.boost, must.query) if isinstance(must, Boost) else (1.0, must)
    if must != ALL:
        return query
    constant = Constant(Bool(filter=query.filter, must_not=query.must_not))
    return Bool(
        must=(constant if boost == 1 else Boost(constant, boost),), should=query.should, minimum=query.minimum
    )


def _nested_should(query: Bool) -> Query:
    if query.minimum > 1 or not any(isinstance(clause, Bool | TermsDisjunction) for clause in query.should):
        return query
    if _keep_their_terms(query):
        return query
    should: list[Query] = []
    for clause in query.should:
        inner = clause.as_bool() if isinstance(clause, TermsDisjunction) else clause
        if isinstance(inner, Bool) and inner.is_pure_disjunction:
            should += inner.should
        else:
            should.append(clause)
    return query if len(should) == len(query.should) else replace(query, should=tuple(should))


def _keep_their_terms(query: Bool) -> bool:
    """Whether no rule would do anything to the terms of the disjunctions that should match, were these clauses.

    Such disjunctions stay as they are; scoring takes their terms for clauses of the outer query.
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


def _nested_required(query: Bool) -> Query:
    def inlined(clause: Query) -> bool:
        return isinstance(clause, Bool) and not clause.should and clause.minimum == 0

    if not any(map(inlined, (*query.must, *query.filter))):
        return query
    must: list[Query] = []
    filters: list[Query] = []
    must_not = list(query.must_not)
    for clause in query.must:
        if isinstance(clause, Bool) and inlined(clause):
            must += clause.must
            filters += clause.filter
            must_not += clause.must_not
        else:
            must.append(clause)
    for clause in query.filter:
        if isinstance(clause, Bool) and inlined(clause):
            filters += (*clause.must, *clause.filter)
            must_not += clause.must_not
        else:
            filters.append(clause)
    return replace(query, must=tuple(must), filter=tuple(filters), must_not=tuple(must_not))


def _all_should(query: Bool) -> Query:
    if len(query.should) < query.minimum:
        return NONE
    if query.should and len(query.should) == query.minimum:
        return replace(query, must=query.must + query.should, should=(), minimum=0)
    return query


def _only_must(query: Bool) -> Query:
    """What should match inside the only clause that must match."""
    if query.should or len(query.must) != 1:
        return query
    (inner,) = query.must
    inner = inner.as_bool() if isinstance(inner, TermsDisjunction) else inner
    if not isinstance(inner, Bool) or len(inner.should) != len(inner):
        return query
    return replace(query, must=(), should=inner.should, minimum=max(1, inner.minimum))


RULES: tuple[Callable[[Bool], Query], ...] = (
    _without_positive_clauses,
    _single_clause,
    _inside,
    _repeated_filters,
    _contradiction,
    _idle_filters,
    _filters_that_score,
    _repeated_should,
    _repeated_must,
    _must_match_all,
    _nested_should,
    _nested_required,
    _all_should,
    _only_must,
)


def _merged(clauses: tuple[Query, ...]) -> tuple[Query, ...]:
    """Equal clauses as one, their boosts summed in double."""
    if len(clauses) < 2:
        return clauses
    boosts: dict[Query, float] = {}
    for clause in clauses:
        boost, inner = (clause.boost, clause.query) if isinstance(clause, Boost) else (1.0, clause)
        boosts[inner] = boosts.get(inner, 0.0) + boost
    if len(boosts) == len(clauses):
        return clauses
    return tuple(
        clause if boost == 1 else Boost(clause, float(np.float32(boost))) for clause, boost in boosts.items()
    )


def _distinct(clauses: Iterable[Query]) -> tuple[Query, ...]:
    return tuple(dict.fromkeys(clauses))


def _without_none(clauses: tuple[Query, ...]) -> tuple[Query, ...]:
    return tuple(clause for clause in clauses if clause != NONE) if NONE in clauses else clauses


def with_minimum(query: Bool, specification: str | None) -> Bool:
    """Return the query with a `minimum_should_match`, if one is specified.

    Raises:
        Refused: the specification is no number, percentage or condition.
    """
    if specification is None:
        return query
    try:
        minimum = normal_form.required(len(query.should), specification)
    except ValueError as error:
        raise invalid(str(error)) from error
    return replace(query, minimum=minimum)


_CLAUSES = ("must", "must_not", "should", "filter")


def _clauses(parser: Parser, described: Any, name: str) -> tuple[Query, ...]:
    if described is None:
        return ()
    if not isinstance(described, list | tuple | Mapping):
        raise invalid(f"`{name}` of the query `bool` must be a query or a list of them, not {described!r}")
    return parser.queries(described, f"bool.{name}")


def read_bool(parser: Parser, content: Any) -> Query:
    """Clauses that must, should or must not match; without any, every document."""
    given = parser.options(content, "bool", (*_CLAUSES, "minimum_should_match"))
    clauses: dict[str, tuple[Query, ...]] = {}
    for name in _CLAUSES:
        with suppress(Reported):  # the others are still read, for their problems
            clauses[name] = _clauses(parser, given.get(name), name)
    if len(clauses) < len(_CLAUSES):
        raise Reported
    must, must_not, should, filters = clauses.values()
    query = Bool(must, must_not, should, filters)
    minimum = given.get("minimum_should_match")
    text = None if minimum is None else parameters.raw_text(minimum, "minimum_should_match")
    if not len(query):
        return boosted(MatchAll(), given, "bool")
    if _matches_nothing(query):
        return MatchNone()
    query = with_minimum(query, text)
    if len(query.must_not) == len(query):
        query = Bool(must_not=query.must_not, filter=(MatchAll(),))
    return boosted(query, given, "bool")


def _matches_nothing(query: Bool) -> bool:
    """What Elasticsearch sees in the clauses (`BoolQueryBuilder.doRewrite`)."""
    if any(map(is_nothing, (*query.must, *query.filter))) or any(map(_is_everything, query.must_not)):
        return True
    return len(query.should) == len(query) and all(map(is_nothing, query.should))


def _is_everything(query: Query) -> bool:
    inside = query.query if isinstance(query, Boost) else query
    return isinstance(inside, MatchAll) and not inside.late


def read_exists(parser: Parser, content: Any) -> Query:
    """Documents that have a value in a field, or in any field below an object."""
    given = parser.options(content, "exists", ("field",))
    name = parameters.name(required(given, "field", "exists"), "`field` of the query `exists`")
    found = parser.field(name)
    below = (
        [found.name]
        if found
        else [field for field in parser.reader.schema.fields if field.startswith(f"{name}.")]
    )
    if not below:
        return MatchNone()
    any_of = tuple(map(Exists, below))
    return boosted(Constant(any_of[0] if len(any_of) == 1 else Bool(should=any_of)), given, "exists")
