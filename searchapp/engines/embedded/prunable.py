"""Which queries can be pruned: those whose scores are bounded by sums of what terms give, see `pruning`."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from searchapp.engines.embedded.queries.boosts import without_boosts
from searchapp.engines.embedded.queries.leaf import Leaf
from searchapp.engines.embedded.queries.leaves.match_all import gives_nothing
from searchapp.engines.embedded.queries.leaves.phrase import Phrase
from searchapp.engines.embedded.queries.leaves.term import Term
from searchapp.engines.embedded.queries.nodes import Bool, Boost, DisMax, Query, TermsDisjunction
from searchapp.engines.embedded.queries.scored_leaf import ScoredLeaf

Part: TypeAlias = tuple[str, Sequence[str], np.float32]
"""A field, terms of it, and their boost."""

Lifting: TypeAlias = tuple[ScoredLeaf, np.float32]
"""What adds to the scores of its documents, and its boost."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A query that gives a score to what has one of some terms.

    A score is at most the sum of what the terms of `parts` and the leaves `lifting` give. If `is_sum` is true it is
    that sum, and what has one of them matches. The documents of the leaves `excluded` are left out, and `scored` is the
    query without these. `matches_all` says that what has none of the terms matches, with the score 0.
    """

    parts: Sequence[Part]
    lifting: Sequence[Lifting]
    is_sum: bool
    excluded: Sequence[Leaf]
    scored: Query
    matches_all: bool

    @classmethod
    def of(cls, query: Query) -> Shape | None:
        """The shape of a rewritten query, None for what has another one."""
        scored, excluded = _without_excluded(query)
        leaves = [leaf for leaf in excluded if isinstance(leaf, Leaf) and leaf.has_few_documents]
        if len(leaves) < len(excluded):
            return None
        query, boost = without_boosts(scored)
        optional: Sequence[Query] = ()
        inner = boost
        matches_all = False
        if isinstance(query, Bool) and query.must:
            if len(query.must) > 1 or query.filter or query.minimum:
                return None
            if matches_all := gives_nothing(query.must[0]):
                query = replace(query, must=())
            else:
                optional = query.should
                query, inner = without_boosts(query.must[0], boost)
        clauses = _Clauses([], [])
        is_sum = not isinstance(query, DisMax)
        if not all(clauses.add(*one, may_lift=is_sum) for one in _inside(query, inner)):
            return None
        known = {(field, term) for field, terms, _boost in clauses.parts for term in terms}
        for one, factor in (without_boosts(one, boost) for one in optional):
            if not clauses.add(one, factor):
                return None
            needs_known = _needs(one, known)
            if isinstance(one, Term | TermsDisjunction) and not needs_known:
                return None  # most of their documents would be looked at in vain
            is_sum = is_sum and needs_known
        if not clauses.parts and not any(isinstance(leaf, Phrase) for leaf, _boost in clauses.lifting):
            return None
        return cls(clauses.parts, clauses.lifting, is_sum, leaves, scored, matches_all)


@dataclass(frozen=True, slots=True)
class _Clauses:
    """The clauses of a sum or a maximum, see `Shape`."""

    parts: list[Part]
    lifting: list[Lifting]

    def add(self, query: Query, boost: np.float32, *, may_lift: bool = True) -> bool:
        """Add a query; returns False if it is no clause whose scores are bounded."""
        if isinstance(query, TermsDisjunction):
            self.parts.append((query.field, query.terms, boost))
        elif isinstance(query, Term):
            self.parts.append((query.field, (query.term,), boost))
        elif isinstance(query, ScoredLeaf) and may_lift:
            self.lifting.append((query, boost))
        else:
            return False
        return True


def _needs(query: Query, known: Container[tuple[str, str]]) -> bool:
    """Whether what matches a query has one of the known terms of fields."""
    if isinstance(query, Term):
        return (query.field, query.term) in known
    return isinstance(query, Phrase) and any((query.field, term) in known for term in query.terms)


def _without_excluded(query: Query) -> tuple[Query, Sequence[Query]]:
    """A query without what must not match, and that."""
    if isinstance(query, Boost):
        inner, excluded = _without_excluded(query.query)
        return Boost(inner, query.boost), excluded
    if isinstance(query, Bool) and query.must_not:
        return replace(query, must_not=()), query.must_not
    return query, ()


def _inside(query: Query, boost: np.float32) -> Iterator[tuple[Query, np.float32]]:
    """The queries of a sum or a maximum and their boosts."""
    queries: Sequence[Query] = (query,)
    if isinstance(query, DisMax) and 0 <= query.tie_breaker <= 1:
        queries = query.queries
    elif isinstance(query, Bool) and query.is_pure_disjunction:
        queries = query.should
    return (without_boosts(one, boost) for one in queries)
