"""How alike two rankings of a topic are, whatever is relevant.

W. Webber, A. Moffat, J. Zobel, A Similarity Measure for Indefinite Rankings, ACM TOIS 28, 2010 (RBO)
M. G. Kendall, A New Measure of Rank Correlation, Biometrika 30, 1938
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import repeat

import numpy as np

PERSISTENCE = 0.9
"""RBO's p: the first ten ranks have 86 per cent of the weight."""

JACCARD_AT = (10, 100)
"""Ranks up to which the sets of documents are compared."""

TAU_DEPTH = 100
"""Documents of each ranking among which Kendall's tau looks for those that both have."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """How alike two runs are: means over the `topics` that both rank.

    `rbo` is rank-biased overlap, extrapolated, with `persistence`; `tau` Kendall's tau-b over the documents that both
    rankings have among their first `tau_depth`, on the `tau_topics` that have two of them at least (nan if none has);
    `jaccard` has the shared part of the first k documents by k. `same` counts the topics whose rankings are the same.
    """

    topics: int
    same: int
    rbo: float
    tau: float
    tau_topics: int
    jaccard: Mapping[int, float]
    persistence: float = PERSISTENCE
    tau_depth: int = TAU_DEPTH

    def to_json(self) -> dict[str, object]:
        """As JSON has it."""
        return {**asdict(self), "jaccard": {f"@{k}": value for k, value in self.jaccard.items()}}


def overlap(first: Mapping[str, Sequence[str]], second: Mapping[str, Sequence[str]]) -> Overlap:
    """How alike two runs are on the topics that both rank; rankings hold a document once."""
    topics = [topic for topic in first if topic in second]
    rbos, taus, same = [], [], 0
    shares: dict[int, list[float]] = {k: [] for k in JACCARD_AT}
    for topic in topics:
        one, other = first[topic], second[topic]
        same += list(one) == list(other)
        rbos.append(rbo(one, other))
        tau = kendall_tau(one[:TAU_DEPTH], other[:TAU_DEPTH])
        if not math.isnan(tau):
            taus.append(tau)
        for k, found in shares.items():
            found.append(jaccard(one, other, k))
    return Overlap(
        len(topics),
        same,
        _mean(rbos),
        _mean(taus),
        len(taus),
        {k: _mean(found) for k, found in shares.items()},
    )


def rbo(first: Sequence[str], second: Sequence[str], persistence: float = PERSISTENCE) -> float:
    """Rank-biased overlap, extrapolated: equation 32 of Webber, Moffat and Zobel, for lists of any two lengths.

    1 of the same lists, 0 of lists without a common document. Two empty lists have 1, an empty one and another 0.

    Raises:
        ValueError: `persistence` is not between 0 and 1, or a list has a document twice.

    >>> round(rbo("abcdefg", "zcavwxy"), 4)
    0.2882
    """
    if not 0 < persistence < 1:
        raise ValueError(f"the persistence of RBO must be between 0 and 1, not {persistence}")
    shorter, longer = sorted((first, second), key=len)
    if not len(shorter):
        return 0.0 if len(longer) else 1.0
    places = {document: place for place, document in enumerate(shorter)}
    if len(places) < len(shorter) or len(set(longer)) < len(longer):
        raise ValueError("a ranking holds a document twice")
    # A shared document counts from the depth on at which both lists have shown it.
    s, l = len(shorter), len(longer)  # noqa: E741  # the paper's letters
    found = np.fromiter(map(places.get, longer, repeat(-1)), dtype=np.int64, count=l)
    seen_at = np.maximum(found, np.arange(l))[found >= 0]
    shared = np.cumsum(np.bincount(seen_at, minlength=l))
    depths = np.arange(1, l + 1)
    weights = persistence**depths
    at_s, at_l = int(shared[s - 1]), int(shared[l - 1])
    agreement = float((shared / depths * weights).sum())
    tail = depths[s:]
    agreement += float((at_s * (tail - s) / (s * tail) * weights[s:]).sum())
    extrapolated = (at_l - at_s) / l + at_s / s
    # All addends are positive, and what rounding adds to 1 is taken off again.
    return min(1.0, (1 - persistence) / persistence * agreement + extrapolated * float(weights[-1]))


def kendall_tau(first: Sequence[str], second: Sequence[str]) -> float:
    """Kendall's tau of the order in which two rankings have the documents that both of them have.

    What one of them lacks says nothing here, so it is to be read beside the overlap. nan with fewer than two shared
    documents. There are no ties, so that tau is 1 less twice the share of pairs in another order; SciPy's function
    takes ten times as long for the lists of a run, most of it to look at its arguments.
    """
    places = {document: place for place, document in enumerate(second)}
    order = np.asarray([places[document] for document in first if document in places])
    if len(order) < 2:
        return math.nan
    swapped = int(np.triu(order[:, None] > order[None, :], 1).sum())
    return 1.0 - 4.0 * swapped / (len(order) * (len(order) - 1))


def jaccard(first: Sequence[str], second: Sequence[str], k: int) -> float:
    """The share of the documents among the first k of either ranking that are among those of both; 1 of none.

    >>> jaccard("abc", "abd", 3)
    0.5
    """
    one, other = set(first[:k]), set(second[:k])
    either = one | other
    return len(one & other) / len(either) if either else 1.0


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
