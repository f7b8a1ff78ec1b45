"""Where the terms of a phrase stand together."""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.queries.nodes import Phrase
from searchapp.engines.embedded.storage.reader import FieldReader, Numbers, Postings


def occurrences(field: FieldReader, phrase: Phrase) -> tuple[Numbers, Numbers]:
    """Document and position of the phrase's first term, for each place where the whole phrase stands."""
    documents = reduce(
        lambda found, term: np.intersect1d(found, field.postings(term).documents, assume_unique=True),
        phrase.terms[1:],
        field.postings(phrase.terms[0]).documents,
    )
    starts: NDArray[np.int64] | None = None
    for term, position in zip(phrase.terms, phrase.positions, strict=True):
        where, at = field.positions(term, documents)
        # One number for document and position: the places of the terms are then intersected as numbers.
        places = (where.astype(np.int64) << 32) + (at.astype(np.int64) - (position - phrase.positions[0]))
        starts = np.unique(places) if starts is None else np.intersect1d(starts, places)
    assert starts is not None  # a phrase has terms
    return (starts >> 32).astype(np.int32), (starts & 0xFFFFFFFF).astype(np.int32)


def postings(field: FieldReader, phrase: Phrase) -> Postings:
    """The documents that have the phrase, and how often."""
    documents, _positions = occurrences(field, phrase)
    distinct, counts = np.unique(documents, return_counts=True)
    return Postings(distinct, counts.astype(np.float32))
