"""Where the terms of a phrase stand together."""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.queries.nodes import Phrase
from searchapp.engines.embedded.storage.reader import FieldReader, Numbers, Postings


def occurrences(field: FieldReader, phrase: Phrase) -> tuple[Numbers, Numbers]:
    """Document and position of the phrase's first term, for each time that it begins the whole phrase.

    A first term that stands twice on one position (as itself and as a synonym, say) begins it twice; how often
    the others stand on theirs makes no difference.
    """
    documents = reduce(
        lambda found, term: np.intersect1d(found, field.postings(term).documents, assume_unique=True),
        phrase.terms[1:],
        field.postings(phrase.terms[0]).documents,
    )
    firsts: NDArray[np.int64] | None = None
    for term, position in zip(phrase.terms, phrase.positions, strict=True):
        where, at = field.positions(term, documents)
        # One number for document and position: the places of the terms are then intersected as numbers.
        places = (where.astype(np.int64) << 32) + (at.astype(np.int64) - (position - phrase.positions[0]))
        firsts = places if firsts is None else firsts[np.isin(firsts, places)]
    assert firsts is not None  # a phrase has terms
    return (firsts >> 32).astype(np.int32), (firsts & 0xFFFFFFFF).astype(np.int32)


def postings(field: FieldReader, phrase: Phrase) -> Postings:
    """The documents that have the phrase, and how often."""
    documents, _positions = occurrences(field, phrase)
    distinct, counts = np.unique(documents, return_counts=True)
    return Postings(distinct, counts.astype(np.float32))
