"""The simplifications that Lucene makes before it scores (`Query.rewrite`, Lucene 10).

The simplifications matter to the last bit: a clause of its own is rounded to float32 before it is added to its
neighbours, a clause that was merged with its neighbours is not. And explanations show the simplified query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import assert_never

import numpy as np

from searchapp.engines.embedded.queries.boosts import product
from searchapp.engines.embedded.queries.disjunctions import spelled_out
from searchapp.engines.embedded.queries.leaf import Leaf
from searchapp.engines.embedded.queries.leaves.match_all import MatchAll
from searchapp.engines.embedded.queries.leaves.match_none import MatchNone
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

NONE = MatchNone()
ALL = MatchAll()


def rewrite(query: Query) -> Query:
    """The query that Lucene scores in the place of this one.

    What is inside is rewritten first and stays so: the rules only move clauses that are simple already.
    """
    match query:
        case Leaf():
            return query.rewritten()
        case TermsDisjunction():
            return query
        case Bool():
            return _bool(query)
        case Boost():
            return _boost(query)
        case Constant(inner):
            return _constant(inner)
        case DisMax(queries, tie_breaker):
            return _dis_max(tuple(map(rewrite, queries)), tie_breaker)
        case Boosting(positive, negative):
            return replace(query, positive=rewrite(positive), negative=rewrite(negative))
        case FunctionScore(query=inner):
            functions = tuple(
                one if one.filter is None else replace(one, filter=rewrite(one.filter))
                for one in query.functions
            )
            return replace(query, query=rewrite(inner), functions=functions)
        case _:
            assert_never(query)


def _boost(query: Boost) -> Query:
    outer = _outermost(query)
    if outer.boost == 0 and not isinstance(outer.query, Boost | Constant):
        constant = _constant(_one_step(outer.query))
        return constant if isinstance(constant, MatchNone) else Boost(constant, 0.0)
    inner, boost = rewrite(outer.query), outer.boost
    if isinstance(inner, Boost):
        boost = product(boost, inner.boost)
        inner = inner.query
    elif isinstance(inner, MatchNone) or boost == 1:
        return inner
    if boost == 0 and not isinstance(inner, Constant):
        return Boost(_constant(inner), 0.0)
    return Boost(inner, boost)


def _outermost(query: Boost) -> Boost:
    """A boost multiplied with those that come to light as queries of one clause give way to their clause.

    Lucene multiplies from the outside, boost by boost, before it looks at what is further inside; and in float32 the
    order makes a difference.
    """
    while not isinstance(query.query, Boost):
        clause = _only_clause(query.query)
        if clause is None:
            break
        if isinstance(clause, Boost):
            query = Boost(clause.query, product(query.boost, clause.boost))
        else:
            query = Boost(clause, query.boost)
    return query


def _one_step(query: Query) -> Query:
    """What becomes of a query before what is inside is looked at."""
    if isinstance(query, DisMax) and len(query.queries) > 1 and query.tie_breaker == 1:
        return Bool(should=query.queries)
    return query


def _only_clause(query: Query) -> Query | None:
    """The clause that a query of one clause gives way to."""
    match query:
        case DisMax((clause,), _):
            return clause
        case Bool() if len(query) == 1 and not query.filter and not query.must_not:
            clause = _single_clause(query)
            return None if clause is query else clause
    return None


def _constant(inner: Query) -> Query:
    inner = _without_scores(inner)
    return inner if isinstance(inner, MatchNone) else Constant(inner)


def _without_scores(query: Query) -> Query:
    """A query whose scores nobody looks at.

    Lucene finds that out again after every step: where clauses become simpler first, no other rule comes before.
    """
    only = _only_clause(query)
    if only is not None:
        while isinstance(only, Boost | Constant):
            only = only.query
        return _without_scores(_only_matching(only) if isinstance(only, Bool) else only)
    if isinstance(query, Bool) and _single_clause(query) is query is _without_positive_clauses(query):
        inner = _inside(query)
        if isinstance(inner, Bool) and inner != query:
            return _without_scores(_only_matching(inner))
    simple = rewrite(query)
    while isinstance(simple, Boost | Constant):
        simple = simple.query
    if isinstance(simple, Bool):
        simpler = _only_matching(simple)
        return simple if simpler == simple else _without_scores(simpler)
    return simple


def _only_matching(query: Bool) -> Bool:
    """Clauses that must match as filters, and none that only adds to the score (`BooleanQuery.rewriteNoScoring`)."""

    def plain(clauses: Iterable[Query]) -> tuple[Query, ...]:
        return tuple(map(inside, clauses))

    def inside(clause: Query) -> Query:
        clause = clause.query if isinstance(clause, Boost) else clause
        clause = clause.query if isinstance(clause, Constant) else clause
        return _only_matching(clause) if isinstance(clause, Bool) else clause

    counts = query.minimum > 0 or not (query.must or query.filter)
    return Bool(
        must_not=plain(query.must_not),
        should=plain(query.should) if counts else (),
        filter=plain((*query.must, *query.filter)),
        minimum=query.minimum,
    )


def _dis_max(queries: tuple[Query, ...], tie_breaker: float) -> Query:
    if not queries:
        return NONE
    if len(queries) == 1:
        return queries[0]
    if tie_breaker == 1:
        return rewrite(Bool(should=queries))
    return DisMax(queries, tie_breaker)


def _bool(query: Bool) -> Query:
    simple = _inside(query)
    while isinstance(simple, Bool):
        for rule in _RULES:
            simpler = rule(simple)
            if simpler is not simple:
                break
        else:
            break
        simple = simpler
    return simple


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
    inner = Bool(
        must=tuple(map(rewrite, query.must)),
        must_not=_without_none(map(_without_scores, query.must_not)),
        should=_without_none(map(rewrite, query.should)),
        filter=tuple(map(_without_scores, query.filter)),
        minimum=query.minimum,
    )
    return NONE if NONE in inner.must or NONE in inner.filter else inner


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
    constant = rewrite(Constant(Bool(filter=query.filter, must_not=query.must_not)))
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
        inner = spelled_out(clause) if isinstance(clause, TermsDisjunction) else clause
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
    inner = spelled_out(inner) if isinstance(inner, TermsDisjunction) else inner
    if not isinstance(inner, Bool) or len(inner.should) != len(inner):
        return query
    return replace(query, must=(), should=inner.should, minimum=max(1, inner.minimum))


_RULES: tuple[Callable[[Bool], Query], ...] = (
    _without_positive_clauses,
    _single_clause,
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


def _without_none(clauses: Iterable[Query]) -> tuple[Query, ...]:
    return tuple(clause for clause in clauses if clause != NONE)
