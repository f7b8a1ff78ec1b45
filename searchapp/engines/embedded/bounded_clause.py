"""A clause of a query with what bounds the scores that it gives: see `pruning`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from searchapp.engines.embedded import similarity
from searchapp.engines.embedded.queries.leaves.phrase import Phrase
from searchapp.engines.embedded.queries.scored_leaf import ScoredLeaf
from searchapp.engines.embedded.rows import Doubles, Row
from searchapp.engines.embedded.similarity import Float32s
from searchapp.engines.embedded.storage.impacts import COUNTED, EDGES, Impacts
from searchapp.engines.embedded.storage.reader import BoundedPostings, FieldReader, Numbers

WEIGHTS = (1e-12, 1e12)
"""Between these weights no score leaves the numbers that float32 has in full precision."""

_ONES = np.ones_like(EDGES)
_COUNTED = np.array([COUNTED], np.float32)
_STEPS = np.arange(1, len(EDGES))


@dataclass(frozen=True, slots=True)
class BoundedClause:
    """A term of a query, or a phrase, with the documents where it stands, ascending, and their impacts.

    `upper` has the greatest score that each impact stands for, `lower` the least; no impact times `factor` is less than
    `upper`. `bound` is the greatest score of all documents. `is_bounded` says whether these hold, see `WEIGHTS`.
    `postings` are those of a term, None for what is none. `sought` is a phrase that is still to be looked for in the
    documents: it need not stand there.
    """

    key: Hashable
    documents: Numbers
    impacts: Impacts
    upper: Doubles
    lower: Doubles
    factor: np.float32
    bound: float
    is_bounded: bool
    postings: BoundedPostings | None = None
    sought: Phrase | None = None


def of_term(field: FieldReader, term: str, boost: np.float32) -> BoundedClause | None:
    """The clause of a term of a text field, None if it does not occur."""
    rank = field.rank(term)
    if rank is None:
        return None
    found = field.bounded(rank)
    weight = field.weight(boost, field.document_frequency(term))
    upper, lower = _scores(weight, field.edges_above), _scores(weight, field.edges_below)
    key = field.field.name, term
    clause = _clause(key, found.documents, found.impacts, (upper, lower), weight, found)
    # Of a very frequent term the greatest impact says nothing of the document's length.
    least = similarity.scores(weight, _COUNTED, field.norm_inverses.min(keepdims=True))
    clause.lower[-1] = min(clause.lower[-1], least[0])
    return clause


def of_leaf(field: FieldReader, leaf: ScoredLeaf, boost: np.float32, row: Row) -> BoundedClause | None:
    """The clause of a leaf that is no term, whose scores are known; None if it does not occur."""
    if not len(row.documents):
        return None
    weight = field.similarity.weight(boost, leaf.idf(field))
    scores = _scores(weight, EDGES)
    impacts = np.maximum(scores.searchsorted(row.scores), 1).astype(np.uint8)
    return _clause((leaf, float(boost)), row.documents, impacts, (scores, scores), weight)


def of_phrase(
    field: FieldReader, phrase: Phrase, boost: np.float32, documents: Numbers, impacts: Impacts
) -> BoundedClause:
    """The clause of a phrase that is still to be looked for, in some documents.

    It stands there no more often than the rarest of its terms, none of which may stand twice on one position; so its
    impact is not above theirs.
    """
    weight = field.similarity.weight(boost, phrase.idf(field))
    upper = _scores(weight, field.edges_above)
    return _clause((phrase, float(boost)), documents, impacts, (upper, upper), weight, sought=phrase)


def is_bounded(weight: np.float32) -> bool:
    """Whether all scores of a weight are numbers that float32 has in full precision."""
    return bool(WEIGHTS[0] < weight < WEIGHTS[1])


def _scores(weight: np.float32, edges: Float32s) -> Float32s:
    """The scores that impacts stand for by their edges."""
    with np.errstate(over="ignore", invalid="ignore"):
        return similarity.scores(weight, edges, _ONES)


def _clause(
    key: Hashable,
    documents: Numbers,
    impacts: Impacts,
    scores: tuple[Float32s, Float32s],
    weight: np.float32,
    postings: BoundedPostings | None = None,
    sought: Phrase | None = None,
) -> BoundedClause:
    """`scores` are those of the edges, no less than any score that they stand for, and no greater than any beyond."""
    upper = scores[0].astype(np.float64)
    factor = np.nextafter(np.float32((upper[1:] / _STEPS).max()), np.float32(np.inf))
    greatest = int(impacts.max()) if postings is None else postings.greatest
    lower = np.append(0.0, scores[1][:-1].astype(np.float64)) if sought is None else np.zeros_like(upper)
    return BoundedClause(
        key,
        documents,
        impacts,
        upper,
        lower,
        factor,
        float(upper[greatest]),
        is_bounded(weight),
        postings,
        sought,
    )
