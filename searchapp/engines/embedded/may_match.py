"""For which queries Lucene finds something to look at before it looks (`Weight.scorerSupplier`).

Where clauses are demanded beside a required one, it depends on how many Lucene finds something to look at for whether
all of them make one sum, which is rounded once.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import assert_never

from searchapp.engines.embedded.queries.leaf import Leaf
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
from searchapp.engines.embedded.storage.reader import IndexReader


class ScoreMode(Enum):
    """What Lucene wants to know of a query's documents; the names are Lucene's."""

    TOP_SCORES = auto()
    """The scores of the best documents."""
    COMPLETE = auto()
    """The scores of all documents: all hits are counted, or something is computed from the scores."""
    TOP_DOCS = auto()
    """Some of the documents that match."""
    COMPLETE_NO_SCORES = auto()
    """The documents that match."""

    @property
    def needs_scores(self) -> bool:
        return self in (ScoreMode.TOP_SCORES, ScoreMode.COMPLETE)

    @property
    def inside_a_constant(self) -> ScoreMode:
        """What is wanted of the query inside a constant score of which this is wanted."""
        if self in (ScoreMode.COMPLETE, ScoreMode.COMPLETE_NO_SCORES):
            return ScoreMode.COMPLETE_NO_SCORES
        return ScoreMode.TOP_DOCS


def may_match(query: Query, reader: IndexReader, mode: ScoreMode, known: bool) -> bool:
    """Whether Lucene finds something to look at for a rewritten query, see `Leaf.may_match`."""

    def inside(clause: Query, wanted: ScoreMode = mode) -> bool:
        return may_match(clause, reader, wanted, known)

    match query:
        case Leaf():
            return query.may_match(reader, mode.needs_scores, known)
        case TermsDisjunction(field, terms):
            return any(inside(Term(field, term)) for term in terms)
        case Boost(inner, _):
            return inside(inner)
        case Constant(inner):
            return inside(inner, mode.inside_a_constant)
        case Boosting(positive=inner):
            return inside(inner, ScoreMode.COMPLETE if mode.needs_scores else ScoreMode.COMPLETE_NO_SCORES)
        case FunctionScore():
            return inside(query.query, _inside_functions(query, mode))
        case DisMax(queries, _):
            return any(map(inside, queries))
        case Bool():
            required = [inside(clause) for clause in query.must]
            required += [inside(clause, ScoreMode.COMPLETE_NO_SCORES) for clause in query.filter]
            optional = sum(map(inside, query.should))
            return all(required) and optional >= (query.minimum if required else max(1, query.minimum))
        case _:
            assert_never(query)


def _inside_functions(query: FunctionScore, mode: ScoreMode) -> ScoreMode:
    """What is wanted of the query inside a `function_score`."""
    if mode is ScoreMode.COMPLETE_NO_SCORES and query.min_score is None:
        return mode
    replaced = query.boost_mode == "replace" and len(query.functions) > 0
    return ScoreMode.COMPLETE_NO_SCORES if replaced else ScoreMode.COMPLETE
