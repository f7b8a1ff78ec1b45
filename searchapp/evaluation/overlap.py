"""Similarity of two rankings of a topic.

W. Webber, A. Moffat, J. Zobel, A Similarity Measure for Indefinite Rankings, ACM TOIS 28, 2010 (RBO)
M. G. Kendall, A New Measure of Rank Correlation, Biometrika 30, 1938
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import repeat

import numpy as np

from searchapp.evaluation.significance import mean
from searchapp.lucene.dataclass import dataclass

PERSISTENCE = 0.9  # RBO's p: the first ten ranks have 86 per cent of the weight

JACCARD_AT = (10, 100)  # ranks up to which the sets of documents are compared

TAU_DEPTH = 100  # depth of the rankings for Kendall's tau


@dataclass(frozen=True, slots=True)
class Overlap:
    """The similarity of two runs, as means over their shared topics."""

    topics: int
    # The number of topics with the same rankings.
    same: int
    # Rank-biased overlap, extrapolated, with `persistence`.
    rbo: float
    # Kendall's tau-b over the documents that both rankings have among their first `tau_depth`; nan if undefined.
    tau: float
    # The number of topics on which two documents are shared, as tau needs.
    tau_topics: int
    # The shared part of the first k documents, by k.
    jaccard: Mapping[int, float]
    persistence: float = PERSISTENCE
    tau_depth: int = TAU_DEPTH

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "jaccard": {f"@{k}": value for k, value in self.jaccard.items()}}


def overlap(first: Mapping[str, Sequence[str]], second: Mapping[str, Sequence[str]]) -> Overlap:
    """Return the similarity of two runs on their shared topics; rankings contain a document once."""
    pairs = [(first[topic], second[topic]) for topic in first if topic in second]
    taus = [kendall_tau(ranking[:TAU_DEPTH], other_ranking[:TAU_DEPTH]) for ranking, other_ranking in pairs]
    defined_taus = [tau for tau in taus if not math.isnan(tau)]
    return Overlap(
        len(pairs),
        sum(list(ranking) == list(other_ranking) for ranking, other_ranking in pairs),
        mean([rbo(ranking, other_ranking) for ranking, other_ranking in pairs]),
        mean(defined_taus),
        len(defined_taus),
        {
            k: mean([jaccard(ranking, other_ranking, k) for ranking, other_ranking in pairs])
            for k in JACCARD_AT
        },
    )


def rbo(first: Sequence[str], second: Sequence[str], persistence: float = PERSISTENCE) -> float:
    """Return extrapolated rank-biased overlap: equation 32 of Webber, Moffat and Zobel; 1 for two empty lists.

    Raises:
        ValueError: `persistence` is not between 0 and 1, or a list has a document twice.
    """
    if not 0 < persistence < 1:
        raise ValueError(f"the persistence of RBO must be between 0 and 1, not {persistence}")
    shorter, longer = sorted((first, second), key=len)
    if not len(shorter):
        return 0.0 if len(longer) else 1.0
    positions = {document: position for position, document in enumerate(shorter)}
    if len(positions) < len(shorter) or len(set(longer)) < len(longer):
        raise ValueError("a ranking contains a document twice")
    # A shared document counts from the depth at which both lists have shown it.
    s, l = len(shorter), len(longer)  # noqa: E741  # the paper's letters
    in_shorter = np.fromiter(map(positions.get, longer, repeat(-1)), dtype=np.int64, count=l)
    shared_at = np.maximum(in_shorter, np.arange(l))[in_shorter >= 0]
    shared = np.cumsum(np.bincount(shared_at, minlength=l))
    depths = np.arange(1, l + 1)
    weights = persistence**depths
    at_s, at_l = int(shared[s - 1]), int(shared[l - 1])
    agreement = float((shared / depths * weights).sum())
    tail = depths[s:]
    agreement += float((at_s * (tail - s) / (s * tail) * weights[s:]).sum())
    extrapolated = (at_l - at_s) / l + at_s / s
    # All addends are positive; rounding may exceed 1.
    return min(1.0, (1 - persistence) / persistence * agreement + extrapolated * float(weights[-1]))


def kendall_tau(first: Sequence[str], second: Sequence[str]) -> float:
    """Return Kendall's tau of the shared documents; nan with fewer than two."""
    positions = {document: position for position, document in enumerate(second)}
    order = np.asarray([positions[document] for document in first if document in positions])
    if len(order) < 2:
        return math.nan
    # Without ties tau is 1 − 2 × the share of pairs in another order. SciPy's function takes ten times as
    # long, mostly to check its arguments.
    swapped = int(np.triu(order[:, None] > order[None, :], 1).sum())
    return 1.0 - 4.0 * swapped / (len(order) * (len(order) - 1))


def jaccard(first: Sequence[str], second: Sequence[str], k: int) -> float:
    """Return the share of the first k documents of either ranking that both have; 1 without documents."""
    first_set, second_set = set(first[:k]), set(second[:k])
    either = first_set | second_set
    return len(first_set & second_set) / len(either) if either else 1.0
