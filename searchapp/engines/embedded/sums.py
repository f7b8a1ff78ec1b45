"""The arithmetic of scores: sums and maxima of what several queries give to the documents of an index.

Sums are made in double and rounded once, as Lucene makes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.rows import NO_ROW, Doubles, Row
from searchapp.engines.embedded.similarity import Float32s
from searchapp.engines.embedded.storage.reader import Mask

FEW = 256
"""Postings up to which it is cheaper to sort them than to make a number for every document."""


@dataclass(frozen=True, slots=True)
class Scores:
    """A score for every document, 0 for those that do not match.

    `matching` marks the documents that match. None stands for "where the score is not 0", which most queries come down
    to and which then need not be computed. The arrays belong to the caller who asked for the scores.
    """

    values: Float32s
    matching: Mask | None = None

    def mask(self) -> Mask:
        return self.values > 0 if self.matching is None else self.matching


def total(count: int, rows: Sequence[Row], others: Sequence[Scores] = ()) -> Scores:
    """The sum of rows and of scores, in double, rounded once; `count` is the number of all documents."""
    sums: Doubles = np.zeros(count)
    sparse = [row for row in rows if not row.is_common and len(row.documents)]
    if sparse:
        documents = np.concatenate([row.documents for row in sparse], dtype=np.intp)
        weights = np.concatenate([row.scores for row in sparse], dtype=np.float64)
        sums = np.asarray(np.bincount(documents, weights, count), np.float64)
    for row in rows:
        if row.dense is not None:
            sums += row.dense
        elif row.is_common:
            sums[row.documents] += row.scores
    for other in others:
        sums += other.values
    values = sums.astype(np.float32)
    if all(row.positive for row in rows) and all(other.matching is None for other in others):
        return Scores(values)
    mask = _marked(count, (row.documents for row in rows))
    for other in others:
        mask |= other.mask()
    return Scores(values, mask)


def total_of_few(rows: Sequence[Row]) -> Row | None:
    """The sum of rows as a row, if they have few documents, or one of them all; None if they have many.

    What counts are the documents of the whole index, so that sums of some documents are rounded as those of all.
    """
    rows = [row for row in rows if row.frequency]
    if len(rows) == 1:
        return rows[0]
    return _summed(rows) if sum(row.frequency for row in rows) <= FEW else None


def _marked(count: int, documents: Iterable[NDArray[Any]]) -> Mask:
    mask = np.zeros(count, bool)
    for some in documents:
        mask[some] = True
    return mask


def _summed(rows: Sequence[Row]) -> Row:
    """The sum of rows that have few documents, in double, rounded once."""
    if not rows:
        return NO_ROW
    documents, places = np.unique(np.concatenate([row.documents for row in rows]), return_inverse=True)
    weights = np.concatenate([row.scores for row in rows], dtype=np.float64)
    scores = np.bincount(places, weights, len(documents)).astype(np.float32)
    return Row(documents, scores, all(row.positive for row in rows))


def restricted(scores: Scores, mask: Mask) -> Scores:
    """The scores of the documents that the mask leaves."""
    return Scores(scores.values * mask, mask)


def best(every: Sequence[Scores], tie_breaker: float) -> Scores:
    """The greatest score plus `tie_breaker` times the sum of the others, as DisjunctionMaxScorer computes it."""
    best = np.zeros_like(every[0].values)
    rest = np.zeros(len(best))
    mask = np.zeros(len(best), bool)
    for scores in every:
        rest += np.minimum(best, scores.values)
        best = np.maximum(best, scores.values)
        mask |= scores.mask()
    return Scores((best + rest * float(np.float32(tie_breaker))).astype(np.float32), mask)
