"""What more than one comparison does to p-values: corrections, and tests of all runs together.

Where one of many differences is looked for, some come out by chance. Corrections make up for that among p-values of
single tests; Tukey's tests take all runs at once and give each pair a p-value that is corrected already.

    S. Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6, 1979
    Y. Benjamini, Y. Hochberg, Controlling the False Discovery Rate, JRSS B 57, 1995
    J. W. Tukey, The Problem of Multiple Comparisons, 1953
    B. Carterette, Multiple Testing in Statistical Analysis of Systems-Based Information Retrieval Experiments,
        ACM TOIS 30, 2012 (runs and topics as two factors; randomised Tukey HSD, algorithm 1)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchapp.evaluation.significance import DECIMALS, LEVEL, SEED, Values, mean

TRIALS = 10_000
"""Permutations of the randomised test: each takes as many numbers as there are topics times runs."""

_CELLS_AT_ONCE = 1 << 21


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's corrected p-values, in their order; what is nan was not tested, stays so and counts nowhere.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    corrected = [math.nan] * len(p_values)
    highest = 0.0
    for step, (p, place) in enumerate(tested):
        highest = max(highest, min(1.0, p * (len(tested) - step)))
        corrected[place] = highest
    return corrected


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for the false discovery rate, by SciPy; nan as in `holm`."""
    from scipy import stats

    tested = [place for place, p in enumerate(p_values) if not math.isnan(p)]
    corrected = [math.nan] * len(p_values)
    if tested:
        found = stats.false_discovery_control([p_values[place] for place in tested], method="bh")
        for place, p in zip(tested, found, strict=True):
            corrected[place] = float(p)
    return corrected


def blocks(runs: Sequence[Mapping[str, float | None]]) -> tuple[tuple[str, ...], Values]:
    """The topics that every run has a value for, and the values: a row a topic, a column a run."""
    topics = tuple(
        topic
        for topic in (runs[0] if runs else ())
        if all((value := run.get(topic)) is not None and math.isfinite(value) for run in runs)
    )
    values = [[run[topic] for run in runs] for topic in topics]
    return topics, np.array(values, dtype=np.float64).reshape(len(topics), len(runs))


@dataclass(frozen=True, slots=True)
class Tukey:
    """Tukey's honestly significant difference, runs and topics being the factors of a two-way analysis of variance.

    `p` has the p-value of each pair of runs by their numbers, `margin` is what two means must differ by at `level`;
    nan where there are fewer than two topics, or the runs differ by the same on every topic. `error` is the residual
    mean square, with `degrees` degrees of freedom.
    """

    p: Mapping[tuple[int, int], float]
    margin: float
    error: float
    degrees: int
    level: float = LEVEL


def tukey(values: ArrayLike, level: float = LEVEL) -> Tukey:
    """Tukey's HSD of values with a row a topic and a column a run, by SciPy's studentised range."""
    from scipy import stats

    held = np.asarray(values, dtype=np.float64)
    topics, runs = held.shape
    pairs = _pairs(runs)
    degrees = (topics - 1) * (runs - 1)
    if topics < 2 or runs < 2:
        return Tukey(dict.fromkeys(pairs, math.nan), math.nan, math.nan, max(degrees, 0), level)
    residuals = held - held.mean(axis=1, keepdims=True) - held.mean(axis=0, keepdims=True) + held.mean()
    if not (np.abs(residuals) > 10.0**-DECIMALS).any():
        same = not (np.ptp(held.mean(axis=0)) > 10.0**-DECIMALS)
        return Tukey(dict.fromkeys(pairs, 1.0 if same else math.nan), math.nan, 0.0, degrees, level)
    error = float((residuals**2).sum() / degrees)
    scale = math.sqrt(error / topics)
    means = [mean(column) for column in held.T]
    p = {
        (one, other): float(stats.studentized_range.sf(abs(means[one] - means[other]) / scale, runs, degrees))
        for one, other in pairs
    }
    margin = float(stats.studentized_range.ppf(level, runs, degrees)) * scale
    return Tukey(
        {pair: min(max(value, 0.0), 1.0) for pair, value in p.items()}, margin, error, degrees, level
    )


@dataclass(frozen=True, slots=True)
class RandomisedTukey:
    """The randomised Tukey HSD: `p` is (b + 1) / (m + 1) for each pair of runs by their numbers.

    In `trials` permutations the values of each topic were dealt to the runs at random, and b is how often the largest
    mean was as far from the smallest as those of the pair. `errors` are the standard errors √(p (1 - p) / m).
    """

    p: Mapping[tuple[int, int], float]
    errors: Mapping[tuple[int, int], float]
    trials: int


def randomised_tukey(values: ArrayLike, trials: int = TRIALS, seed: int = SEED) -> RandomisedTukey:
    """The randomised Tukey HSD of values with a row a topic and a column a run; nan without topics.

    Raises:
        ValueError: `trials` is less than 1.
    """
    if trials < 1:
        raise ValueError(f"there must be at least one trial, not {trials}")
    held = np.asarray(values, dtype=np.float64)
    topics, runs = held.shape
    pairs = _pairs(runs)
    if not topics:
        return RandomisedTukey(dict.fromkeys(pairs, math.nan), dict.fromkeys(pairs, 0.0), trials)
    means = [mean(column) for column in held.T]
    # Sorted, so that neither the order of the topics nor that of the runs has a part in what is drawn.
    dealt = np.sort(held, axis=1)
    dealt = dealt[np.lexsort(dealt.T[::-1])]
    ranges = _ranges(dealt, trials, np.random.default_rng(seed))
    rounding = 100 * float(np.finfo(np.float64).eps) * float(np.abs(held).mean())
    p, errors = {}, {}
    for one, other in pairs:
        enough = abs(means[one] - means[other]) - rounding
        p[one, other] = (int((ranges >= enough).sum()) + 1) / (trials + 1)
        errors[one, other] = math.sqrt(p[one, other] * (1 - p[one, other]) / trials)
    return RandomisedTukey(p, errors, trials)


def _ranges(values: Values, trials: int, random: np.random.Generator) -> Values:
    """The largest less the smallest mean in each permutation."""
    topics = len(values)
    at_once = max(1, _CELLS_AT_ONCE // values.size)
    found = np.empty(trials)
    for start in range(0, trials, at_once):
        many = min(at_once, trials - start)
        means = _dealt(values, many, random).sum(axis=1) / topics
        found[start : start + many] = np.ptp(means, axis=1)
    return found


def _dealt(values: Values, many: int, random: np.random.Generator) -> NDArray[np.float64]:
    """The values of each topic dealt to the runs at random, in `many` ways."""
    return random.permuted(np.broadcast_to(values, (many, *values.shape)), axis=2)


def _pairs(runs: int) -> list[tuple[int, int]]:
    return [(one, other) for one in range(runs) for other in range(one + 1, runs)]
