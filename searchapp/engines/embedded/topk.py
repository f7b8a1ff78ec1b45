"""The best documents of a query: by score descending, equal scores by id ascending."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from searchapp.engines.embedded.scoring import Scores
from searchapp.engines.embedded.storage.reader import Numbers

NOT_MATCHING = np.float32(-1)  # no query gives a negative score

_LARGEST_BITS = np.int64(0x7FFFFFFF)


def best(scores: Scores, ranks: Numbers, size: int) -> NDArray[np.intp]:
    """The first `size` documents that match, best first; `ranks` orders the documents by id.

    The bits of a float32 that is not negative order as the float does, so score and rank of id make one
    integer, by which everything is selected and sorted.
    """
    if size == 0:
        return np.empty(0, np.intp)
    values = scores.values
    if scores.matching is not None and not scores.matching.all():
        values = np.where(scores.matching, values, NOT_MATCHING)
    elif scores.matching is None:
        values = np.where(values > 0, values, NOT_MATCHING)
    if size < len(values):
        threshold = max(np.partition(values, len(values) - size)[len(values) - size], np.float32(0))
    else:
        threshold = np.float32(0)
    candidates = np.flatnonzero(values >= threshold)
    bits = values[candidates].view(np.int32).astype(np.int64)
    keys = (_LARGEST_BITS - bits) << 32 | ranks[candidates]
    if len(keys) > size:
        chosen = np.argpartition(keys, size)[:size]
        candidates, keys = candidates[chosen], keys[chosen]
    return candidates[np.argsort(keys)]
