"""Correlation of two rankings of systems, given the systems' values of a measure.

    M. G. Kendall, The Treatment of Ties in Ranking Problems, Biometrika 33, 1945 (tau-b)
    E. Yilmaz, J. A. Aslam, S. Robertson, A New Rank Correlation Coefficient for Information Retrieval, SIGIR 2008
        (tau-AP)
    J. Urbano, M. Marrero, The Treatment of Ties in AP Correlation, ICTIR 2017

1 for the same ranking, −1 for the reverse one; NaN with fewer than two systems, or if all values of a ranking are
equal. Values that differ only from the ninth decimal on count as equal.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from searchapp.evaluation.significance import DECIMALS, Values


def kendall_tau_b(first: ArrayLike, second: ArrayLike) -> float:
    """Return Kendall's tau-b of two sequences of values."""
    from scipy import stats

    rounded = _rounded(first), _rounded(second)
    return float(stats.kendalltau(*rounded).statistic) if _vary(*rounded) else math.nan


def tau_ap(reference: ArrayLike, estimate: ArrayLike) -> float:
    """Return tau-AP of the ranking by `estimate`, in which errors near the top count more.

    2 / (n − 1) sum over ranks i > 1 of C(i) / (i − 1), less 1: C(i) is the number of systems above rank i that the
    reference ranks above this system, too. With ties it is the mean over all orders of tied systems: of the estimate as
    by Urbano and Marrero's tau-AP-a, and of the reference.
    """
    truth, values = _rounded(reference), _rounded(estimate)
    if not _vary(truth, values):
        return math.nan
    total = 0.0
    for own_truth, own_value in zip(truth, values, strict=True):
        above = values > own_value
        if number := int(above.sum()):
            # Systems with the same estimate take the ranks after those above, each equally often.
            ranks = number + np.arange(int((values == own_value).sum()))
            total += float(np.sign(truth[above] - own_truth).sum()) * float((1 / ranks).mean())
    return total / (len(values) - 1)


def _rounded(values: ArrayLike) -> Values:
    return np.round(np.asarray(values, dtype=np.float64), DECIMALS).astype(np.float64)


def _vary(*rankings: Values) -> bool:
    return all(len(values) > 1 and bool(np.ptp(values) > 0) for values in rankings)
