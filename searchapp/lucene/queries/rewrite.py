"""Rewrite queries as Lucene does before it scores (`Query.rewrite`, Lucene 10), and walk through them.

The simplifications matter to the last bit: a separate clause is rounded to float32 before it is added to its
neighbours, a merged clause is not. Explanations show the simplified query. `settled` adds what Lucene learns from
the index: that all documents match, or none. `leaves` and `scored` are ways through a query.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import assert_never

import numpy as np

from searchapp.lucene.index.reader import IndexReader
from searchapp.lucene.queries.match_all import MatchAll, MatchNone
from searchapp.lucene.queries.query import (
    Bool,
    Boost,
    Boosting,
    Constant,
    DisMax,
    FunctionScore,
    Leaf,
    Query,
    TermsDisjunction,
    inside,
    product,
)
from searchapp.lucene.queries.term import Term


def spelled_out(disjunction: TermsDisjunction) -> Bool:
    """The same query with a clause for each term."""
    return Bool(should=tuple(_terms(disjunction)))


def with_terms_as_clauses(query: Bool) -> Bool:
    """The same query without disjunctions of terms among what should match, where these are no clauses of their own.

    Lucene lets the clauses of a disjunction inside another disjunction join those of the outer one.
    """
    if query.minimum > 1 or not any(isinstance(clause, TermsDisjunction) for clause in query.should):
        return query
    return replace(query, should=tuple(_clauses(query.should)))


def _clauses(should: tuple[Query, ...]) -> Iterator[Query]:
    for clause in should:
        if isinstance(clause, TermsDisjunction):
            yield from _terms(clause)
        else:
            yield clause


def _terms(disjunction: TermsDisjunction) -> Iterator[Term]:
    return (Term(disjunction.field, term) for term in disjunction.terms)


def looks_at_values(query: Query) -> bool:
    """Whether scores depend on the values of fields, which not every document need have."""
    match query:
        case Leaf() | TermsDisjunction():
            return False
        case FunctionScore() if any(one.value is not None for one in query.functions):
            return True
        case FunctionScore() | Bool() | Boost() | Boosting() | Constant() | DisMax():
            return any(map(looks_at_values, inside(query)))
        case _:
            assert_never(query)


def looks_at_scores(query: Query) -> bool:
    """Whether the documents that match depend on their scores."""
    match query:
        case Leaf() | TermsDisjunction():
            return False
        case FunctionScore() if query.min_score is not None:
            return True
        case FunctionScore() | Bool() | Boost() | Boosting() | Constant() | DisMax():
            return any(map(looks_at_scores, inside(query)))
        case _:
            assert_never(query)


def leaves(query: Query, boost: float = 1.0) -> Iterator[tuple[Leaf, float]]:
    """The leaves inside a query that give it hits, and their boosts.

    What must not match is left out, and so is the filter of a function. Elasticsearch rewrites a `function_score` right
    inside another one before it looks into the inner one, and so finds no prefixes and lists of terms there. Where
    there is nothing to rewrite, it collects the terms, whatever the boost outside.
    """
    match query:
        case Leaf():
            yield query, boost
        case TermsDisjunction():
            yield from leaves(spelled_out(query), boost)
        case Boost(inner, factor):
            yield from leaves(inner, product(factor, boost))
        case FunctionScore(query=FunctionScore() as inner):
            found = list(leaves(inner))
            stays = all(factor != 0 and not leaf.is_multi_term for leaf, factor in found)
            for leaf, factor in found:
                if not leaf.is_multi_term:
                    yield leaf, factor if stays else product(factor, boost)
        case Constant(inner) | FunctionScore(query=inner) | Boosting(positive=inner):
            yield from leaves(inner, boost)
        case Bool():
            for inner in (*query.must, *query.should, *query.filter):
                yield from leaves(inner, boost)
        case DisMax(queries, _):
            for inner in queries:
                yield from leaves(inner, boost)
        case _:
            assert_never(query)


def scored(query: Query, boost: float = 1.0) -> Iterator[tuple[Leaf | TermsDisjunction, float]]:
    """The leaves and disjunctions of terms inside a query whose scores count, and their boosts."""
    match query:
        case Leaf() | TermsDisjunction():
            yield query, boost
        case Boost(inner, factor):
            yield from scored(inner, product(factor, boost))
        case FunctionScore(query=inner):
            yield from scored(inner, boost)
        case Boosting(positive=inner):
            yield from scored(inner)
        case Bool():
            for inner in (*query.must, *query.should):
                yield from scored(inner, boost)
        case DisMax(queries, _):
            for inner in queries:
                yield from scored(inner, boost)
        case Constant():
            pass  # a constant's score is not that of what is inside
        case _:
            assert_never(query)


NONE = MatchNone()
ALL = MatchAll()


def rewrite(query: Query) -> Query:
    """The query that Lucene scores in the place of this one."""
    simpler = _step(query)
    while simpler is not query:
        query, simpler = simpler, _step(simpler)
    return query


def _step(query: Query) -> Query:
    """What one call of `Query.rewrite` makes of a query, which is the query itself when nothing is left to do.

    Lucene takes a step everywhere in a query before it takes the next one anywhere: the order in which boosts are
    multiplied depends on it, and what becomes of clauses whose scores nobody looks at.
    """
    match query:
        case Leaf():
            simple = query.rewritten()
            return query if simple == query else simple
        case TermsDisjunction():
            return query
        case Bool():
            return _bool(query)
        case Boost():
            return _boost(query)
        case Constant():
            return _constant(query)
        case DisMax():
            return _dis_max(query)
        case Boosting(positive, negative):
            inner, lowering = _step(positive), rewrite(negative)
            if inner is positive and lowering is negative:
                return query
            return replace(query, positive=inner, negative=lowering)
        case FunctionScore():
            return _function_score(query)
        case _:
            assert_never(query)


def _each(step: Callable[[Query], Query], queries: tuple[Query, ...]) -> tuple[Query, ...]:
    """The queries after a step, which are the same tuple when nothing is left to do in any."""
    simpler = tuple(map(step, queries))
    return queries if all(map(operator.is_, queries, simpler)) else simpler


def _boost(query: Boost) -> Query:
    inner, boost = _step(query.query), query.boost
    if boost == 1 or isinstance(inner, MatchNone):
        return inner
    if isinstance(inner, Boost):
        return Boost(inner.query, product(boost, inner.boost))
    if boost == 0 and not isinstance(inner, Constant):
        return Boost(Constant(inner), 0.0)
    return query if inner is query.query else Boost(inner, boost)


def _constant(query: Constant) -> Query:
    inner = _step(query.query)
    if isinstance(inner, Boost | Constant):
        inner = inner.query
    elif isinstance(inner, Bool):
        inner = _only_matching(inner)
    if isinstance(inner, MatchNone):
        return inner
    return query if inner is query.query else Constant(inner)


def _without_scores(query: Query) -> Query:
    """A step of a clause whose scores nobody looks at."""
    simpler = _step(Constant(query))
    return simpler.query if isinstance(simpler, Constant) else simpler


def _only_matching(query: Bool) -> Bool:
    """Clauses that must match as filters, and none that only adds to the score (`BooleanQuery.rewriteNoScoring`)."""

    def inside(clause: Query) -> Query:
        clause = clause.query if isinstance(clause, Boost) else clause
        clause = clause.query if isinstance(clause, Constant) else clause
        return _only_matching(clause) if isinstance(clause, Bool) else clause

    counts = query.minimum > 0 or not (query.must or query.filter)
    filters = _each(inside, query.filter)
    simpler = Bool(
        must_not=_each(inside, query.must_not),
        should=_each(inside, query.should) if counts else (),
        filter=(*_each(inside, query.must), *filters) if query.must else filters,
        minimum=query.minimum,
    )
    return _unless_same(query, simpler)


def _unless_same(query: Bool, simpler: Bool) -> Bool:
    """The simpler query, which is the query itself if it has the same clauses."""
    same = (
        simpler.must is query.must
        and simpler.must_not is query.must_not
        and simpler.should is query.should
        and simpler.filter is query.filter
    )
    return query if same else simpler


def _dis_max(query: DisMax) -> Query:
    if not query.queries:
        return NONE
    if len(query.queries) == 1:
        return query.queries[0]
    if query.tie_breaker == 1:
        return Bool(should=query.queries)
    queries = _each(_step, query.queries)
    return query if queries is query.queries else DisMax(queries, query.tie_breaker)


def _function_score(query: FunctionScore) -> Query:
    inner = _step(query.query)
    filters = [None if one.filter is None else rewrite(one.filter) for one in query.functions]
    if inner is query.query and all(
        simple is one.filter for simple, one in zip(filters, query.functions, strict=True)
    ):
        return query
    functions = tuple(
        replace(one, filter=simple) for one, simple in zip(query.functions, filters, strict=True)
    )
    return replace(query, query=inner, functions=functions)


def _bool(query: Bool) -> Query:
    for rule in _RULES:
        simpler = rule(query)
        if simpler is not query:
            return simpler
    return query


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
    must, filters = _each(_step, query.must), _each(_without_scores, query.filter)
    if NONE in must or NONE in filters:
        return NONE
    simpler = Bool(
        must,
        _without_none(_each(_without_scores, query.must_not)),
        _without_none(_each(_step, query.should)),
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


def settled(query: Query, reader: IndexReader) -> Query:
    """A query as it was written, with what the index tells of the leaves inside."""
    match query:
        case Leaf():
            return query.settled(reader)
        case TermsDisjunction():
            return query
        case Boost(inner, boost):
            return Boost(settled(inner, reader), boost)
        case Constant(inner):
            return Constant(settled(inner, reader))
        case DisMax(queries, tie_breaker):
            return DisMax(_all(queries, reader), tie_breaker)
        case Bool(must, must_not, should, filter, minimum):
            return Bool(
                must=_all(must, reader),
                must_not=_all(must_not, reader),
                should=_all(should, reader),
                filter=_all(filter, reader),
                minimum=minimum,
            )
        case Boosting(positive, negative):
            return replace(query, positive=settled(positive, reader), negative=settled(negative, reader))
        case FunctionScore(query=inner):
            functions = tuple(
                one if one.filter is None else replace(one, filter=settled(one.filter, reader))
                for one in query.functions
            )
            return replace(query, query=settled(inner, reader), functions=functions)
        case _:
            assert_never(query)


def _all(queries: Iterable[Query], reader: IndexReader) -> tuple[Query, ...]:
    return tuple(settled(query, reader) for query in queries)
