"""Which queries can be pruned: those whose scores are bounded by sums of what terms give, see `pruning`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from searchapp.engines.embedded.queries.leaves.term import Term
from searchapp.engines.embedded.queries.nodes import Bool, Boost, DisMax, Query, TermsDisjunction
from searchapp.engines.embedded.queries.scored_leaf import ScoredLeaf
from searchapp.engines.embedded.similarity import ONE

Part: TypeAlias = tuple[str, Sequence[str], np.float32]
"""A field, terms of it, and their boost."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A query that matches what has one of some terms.

    A score is the sum of what the terms of `parts` give, or a maximum of such sums if `is_sum` is false. The leaves
    `lifting` add something to the scores of their documents.
    """

    parts: Sequence[Part]
    lifting: Sequence[tuple[ScoredLeaf, np.float32]]
    is_sum: bool

    @classmethod
    def of(cls, query: Query) -> Shape | None:
        """The shape of a rewritten query, None for what has another one."""
        query, boost = _without_boost(query, ONE)
        optional: Sequence[Query] = ()
        if isinstance(query, Bool) and len(query.must) == 1:
            if query.filter or query.must_not or query.minimum:
                return None
            optional = query.should
            query, inner = _without_boost(query.must[0], boost)
        else:
            inner = boost
        parts = list(_parts(query, inner))
        known = {(field, term) for field, terms, _boost in filter(None, parts) for term in terms}
        lifting = []
        for one in optional:
            leaf, factor = _without_boost(one, boost)
            if (
                isinstance(leaf, Term) and (leaf.field, leaf.term) in known
            ):  # and so it matches only what matches anyway
                parts.append((leaf.field, (leaf.term,), factor))
            elif isinstance(leaf, ScoredLeaf) and not isinstance(leaf, Term):
                lifting.append((leaf, factor))
            else:
                return None
        found = [part for part in parts if part is not None]
        return cls(found, lifting, not isinstance(query, DisMax)) if 0 < len(parts) == len(found) else None


def _parts(query: Query, boost: np.float32) -> Iterator[Part | None]:
    """The terms of a sum or a maximum, by field and boost; None for what is neither."""
    if isinstance(query, DisMax) and 0 <= query.tie_breaker <= 1:
        for one in query.queries:
            yield _part(one, boost)
    elif isinstance(query, Bool) and query.is_pure_disjunction:
        for one in query.should:
            # The sum of a disjunction with a boost is rounded apart, in an order of its own.
            is_sum = isinstance(one, Boost) and not isinstance(one.query, Term)
            yield None if is_sum else _part(one, boost)
    else:
        yield _part(query, boost)


def _part(query: Query, boost: np.float32) -> Part | None:
    query, boost = _without_boost(query, boost)
    if isinstance(query, TermsDisjunction):
        return query.field, query.terms, boost
    return (query.field, (query.term,), boost) if isinstance(query, Term) else None


def _without_boost(query: Query, boost: np.float32) -> tuple[Query, np.float32]:
    while isinstance(query, Boost):
        boost, query = np.float32(query.boost) * boost, query.query
    return query, boost
