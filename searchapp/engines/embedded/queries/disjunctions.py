"""Disjunctions of terms spelled out: what Lucene has in their place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from searchapp.engines.embedded.queries.leaves.term import Term
from searchapp.engines.embedded.queries.nodes import Bool, Query, TermsDisjunction


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
