"""Ways through the queries inside a query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from searchapp.engines.embedded.queries.boosts import product
from searchapp.engines.embedded.queries.disjunctions import spelled_out
from searchapp.engines.embedded.queries.leaf import Leaf
from searchapp.engines.embedded.queries.nodes import (
    Bool,
    Boost,
    Boosting,
    Constant,
    DisMax,
    FunctionScore,
    Query,
    TermsDisjunction,
    inside,
)


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
