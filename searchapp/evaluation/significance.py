"""Statistical significance of the differences between runs on the same topics.

Differences are second − first; every test is two-sided and returns nan for too few topics or without variance.

    R. A. Fisher, The Design of Experiments, 1935, section 21 (randomisation test)
    M. D. Smucker, J. Allan, B. Carterette, A Comparison of Statistical Significance Tests for Information Retrieval
        Evaluation, CIKM 2007
    B. Efron, Better Bootstrap Confidence Intervals, JASA 82, 1987 (BCa)
    J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, section 2.3.5 (d_z)
    B. Phipson, G. K. Smyth, Permutation P-values Should Never Be Zero, SAGMB 9, 2010 ((b + 1) / (m + 1))
    T. Sakai, Laboratory Experiments in Information Retrieval, 2018
    S. Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6, 1979
    Y. Benjamini, Y. Hochberg, Controlling the False Discovery Rate, JRSS B 57, 1995
    J. W. Tukey, The Problem of Multiple Comparisons, 1953
    B. Carterette, Multiple Testing in Statistical Analysis of Systems-Based Information Retrieval Experiments,
        ACM TOIS 30, 2012 (runs and topics as two factors; randomised Tukey HSD, algorithm 1)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from searchapp.lucene.dataclass import dataclass

Values: TypeAlias = NDArray[np.float64]

PERMUTATIONS = 100_000  # sign vectors of the randomisation test if there are too many to try all of them

RESAMPLES = 5_000  # resamples of the bootstrap

LEVEL = 0.95  # confidence of an interval

SEED = 20_071_109  # fixed, so that the same runs always have the same figures

# Decimals in which equal differences agree: the order of adding fractions changes the sixteenth decimal.
DECIMALS = 9

# Topics up to which the Wilcoxon test is exact; beyond, and with ties, it is the normal approximation.
EXACT_UP_TO = 50

_CELLS_AT_ONCE = 1 << 22  # numbers in memory at a time for permutations and resamples: 32 MiB


@dataclass(frozen=True, slots=True)
class Paired:
    """The values of two runs on their shared topics, in the order of the first."""

    topics: tuple[str, ...]
    first: Values
    second: Values
    # Topics whose second value is missing, None or not a number.
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()

    @property
    def differences(self) -> Values:
        return self.second - self.first


def paired(first: Mapping[str, float | None], second: Mapping[str, float | None]) -> Paired:
    """Return the topics with a value for both runs."""
    first_values, second_values = (
        {topic: value for topic, value in run.items() if value is not None and math.isfinite(value)}
        for run in (first, second)
    )
    shared = tuple(topic for topic in first_values if topic in second_values)
    return Paired(
        shared,
        np.array([first_values[topic] for topic in shared], dtype=np.float64),
        np.array([second_values[topic] for topic in shared], dtype=np.float64),
        tuple(topic for topic in first_values if topic not in second_values),
        tuple(topic for topic in second_values if topic not in first_values),
    )


@dataclass(frozen=True, slots=True)
class TTest:
    """The paired t-test with n − 1 degrees of freedom."""

    statistic: float
    degrees: int
    p: float


@dataclass(frozen=True, slots=True)
class Wilcoxon:
    """The Wilcoxon signed-rank test; topics without a difference do not count, ties share their mean rank."""

    # The smaller sum of ranks.
    statistic: float
    # The number of topics with a difference.
    counted: int
    # Whether p is over all sign vectors, not the normal approximation with variance corrected for ties.
    exact: bool
    p: float


@dataclass(frozen=True, slots=True)
class Randomisation:
    """Fisher's randomisation test of the mean difference over sign vectors."""

    # (b + 1) / (m + 1) for b of m drawn sign vectors whose mean is as far from 0 as the observed one.
    p: float
    permutations: int
    # Whether all sign vectors were tried.
    exact: bool
    # Standard error of p over seeds: √(p (1 − p) / m).
    error: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a mean."""

    low: float
    high: float
    level: float = LEVEL
    method: str = "BCa bootstrap"
    resamples: int = RESAMPLES


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Numbers of topics on which the second run wins, ties and loses."""

    wins: int
    ties: int
    losses: int


@dataclass(frozen=True, slots=True)
class PairTests:
    """All tests of two runs under one measure."""

    topics: int
    first: float
    second: float
    # Mean of the second run − mean of the first run.
    mean: float
    outcomes: Outcomes
    t_test: TTest
    wilcoxon: Wilcoxon
    randomisation: Randomisation
    interval: Interval
    # Cohen's d_z.
    effect: float

    @property
    def p_values(self) -> dict[str, float]:
        return {
            "t-test": self.t_test.p,
            "wilcoxon": self.wilcoxon.p,
            "randomisation": self.randomisation.p,
        }


def pair_tests(
    pairs: Paired, *, permutations: int = PERMUTATIONS, resamples: int = RESAMPLES, seed: int = SEED
) -> PairTests:
    """Run every test of two runs under one measure."""
    differences = pairs.differences
    return PairTests(
        topics=len(pairs.topics),
        first=mean(pairs.first),
        second=mean(pairs.second),
        mean=mean(differences),
        outcomes=outcomes(differences),
        t_test=t_test(differences),
        wilcoxon=wilcoxon(differences),
        randomisation=randomisation_test(differences, permutations, seed),
        interval=bootstrap_interval(differences, resamples, seed),
        effect=effect_size(differences),
    )


def mean(values: ArrayLike) -> float:
    """Return the mean, independent of the order of the values; nan without values."""
    array = np.asarray(values, dtype=np.float64)
    return math.fsum(array) / len(array) if len(array) else math.nan


def outcomes(differences: ArrayLike) -> Outcomes:
    """Count wins, ties and losses."""
    rounded = _rounded(differences)
    wins, losses = int((rounded > 0).sum()), int((rounded < 0).sum())
    return Outcomes(wins, len(rounded) - wins - losses, losses)


def effect_size(differences: ArrayLike) -> float:
    """Return Cohen's d_z: the mean difference in standard deviations (n − 1) of the differences; 0 without any."""
    array = np.asarray(differences, dtype=np.float64)
    if _are_zero(array):
        return 0.0
    return mean(array) / float(array.std(ddof=1)) if _varies(array) else math.nan


def t_test(differences: ArrayLike) -> TTest:
    """Run the paired t-test; without any difference t is 0 and p is 1."""
    from scipy import stats

    array = np.asarray(differences, dtype=np.float64)
    degrees = max(len(array) - 1, 0)
    if _are_zero(array):
        return TTest(0.0, degrees, 1.0)
    if not _varies(array):
        return TTest(math.nan, degrees, math.nan)
    result = stats.ttest_1samp(array, 0.0)
    return TTest(float(result.statistic), degrees, float(result.pvalue))


def wilcoxon(differences: ArrayLike) -> Wilcoxon:
    """Run the Wilcoxon signed-rank test; without any difference p is 1."""
    from scipy import stats

    rounded = _rounded(differences)
    counted = rounded[rounded != 0]
    if not len(counted):
        return Wilcoxon(0.0, 0, True, 1.0 if len(rounded) else math.nan)
    tied = len(np.unique(np.abs(counted))) < len(counted)
    exact = len(counted) <= EXACT_UP_TO and not tied
    method = "exact" if exact else "asymptotic"
    result = stats.wilcoxon(counted, zero_method="wilcox", correction=False, method=method)
    return Wilcoxon(float(result.statistic), len(counted), exact, float(result.pvalue))


def randomisation_test(
    differences: ArrayLike, permutations: int = PERMUTATIONS, seed: int = SEED
) -> Randomisation:
    """Run Fisher's randomisation test; exact if there are at most `permutations` sign vectors.

    Raises:
        ValueError: `permutations` is less than 1.
    """
    if permutations < 1:
        raise ValueError(f"there must be at least one permutation, not {permutations}")
    array = np.asarray(differences, dtype=np.float64)
    # Signs are random, and 0 adds nothing. Sorted, so that the draws do not depend on the order of topics and runs.
    moving = np.sort(np.abs(array[array != 0]))
    if not len(moving):
        return Randomisation(1.0, 1, True, 0.0) if len(array) else Randomisation(math.nan, 0, True, 0.0)
    # Sums that differ by rounding alone count as equal.
    enough = abs(math.fsum(array)) - 100 * float(np.finfo(np.float64).eps) * math.fsum(moving)
    # SciPy's `permutation_test` takes minutes for 2,000 topics: here tables have the sums of eight topics
    # under their 256 sign vectors.
    tables = _tables(moving)
    if len(moving) < 63 and 2 ** len(moving) <= permutations:
        numbers = np.arange(2 ** len(moving), dtype="<u8")
        codes = numbers.view(np.uint8).reshape(len(numbers), 8)[:, : len(tables)]
        as_far = int((np.abs(_sums(tables, codes)) >= enough).sum())
        return Randomisation(as_far / len(numbers), len(numbers), True, 0.0)
    random = np.random.default_rng(seed)
    as_far = 0
    at_once = max(1, _CELLS_AT_ONCE // len(tables))
    for start in range(0, permutations, at_once):
        count = min(at_once, permutations - start)
        codes = random.integers(0, 256, size=(count, len(tables)), dtype=np.uint8)
        as_far += int((np.abs(_sums(tables, codes)) >= enough).sum())
    p = (as_far + 1) / (permutations + 1)
    return Randomisation(p, permutations, False, math.sqrt(p * (1 - p) / permutations))


def _tables(differences: Values) -> Values:
    """Return the sums of each eight differences under their 256 sign vectors."""
    eights = np.zeros((-(-len(differences) // 8), 8))
    eights.ravel()[: len(differences)] = differences
    signs = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    sums: Values = eights @ signs.T
    return sums


def _sums(tables: Values, codes: NDArray[np.uint8]) -> Values:
    """Return the sum under each sign vector: a row of bytes, each with the signs of eight topics."""
    total = np.zeros(len(codes))
    for table, column in zip(tables, np.ascontiguousarray(codes.T), strict=True):
        total += table[column]
    return total


def bootstrap_interval(
    differences: ArrayLike, resamples: int = RESAMPLES, seed: int = SEED, level: float = LEVEL
) -> Interval:
    """Compute the bias-corrected and accelerated bootstrap interval of a mean.

    It is independent of the order of topics and runs; nan with fewer than two topics.
    """
    from scipy import stats

    array = np.asarray(differences, dtype=np.float64)
    center = mean(array)
    if not _varies(array):
        end = center if len(array) > 1 else math.nan
        return Interval(end, end, level, resamples=resamples)
    sign = -1.0 if center < 0 else 1.0
    interval = stats.bootstrap(
        (np.sort(sign * array),),
        np.mean,
        n_resamples=resamples,
        batch=max(1, _CELLS_AT_ONCE // len(array)),
        confidence_level=level,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    low, high = sorted((sign * float(interval.low), sign * float(interval.high)))
    return Interval(low, high, level, resamples=resamples)


def _rounded(differences: ArrayLike) -> Values:
    """Round differences so that equal ones are equal; 0 has no sign."""
    return np.round(np.asarray(differences, dtype=np.float64), DECIMALS).astype(np.float64) + 0.0


def _are_zero(differences: Values) -> bool:
    return len(differences) > 0 and not _rounded(differences).any()


def _varies(differences: Values) -> bool:
    return len(differences) > 1 and bool(np.ptp(differences) > 10.0**-DECIMALS)


def successful_runs(values: Sequence[Mapping[str, float | None]], least: float) -> dict[str, int]:
    """Return the number of runs with a value of at least `least` on each topic."""
    topics = dict.fromkeys(topic for run in values for topic in run)
    return {topic: sum((run.get(topic) or 0.0) >= least for run in values) for topic in topics}


TRIALS = 10_000  # permutations of the randomised Tukey test

_TRIAL_CELLS = 1 << 21  # numbers in memory at a time for trials, each with topics × runs


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's corrected p-values, in their order; nan does not count as a test."""
    tested = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    corrected = [math.nan] * len(p_values)
    highest = 0.0
    for step, (p, index) in enumerate(tested):
        highest = max(highest, min(1.0, p * (len(tested) - step)))
        corrected[index] = highest
    return corrected


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for the false discovery rate; nan does not count as a test."""
    from scipy import stats

    corrected = np.array(p_values, dtype=np.float64)
    tested = ~np.isnan(corrected)
    if tested.any():
        corrected[tested] = stats.false_discovery_control(corrected[tested], method="bh")
    return [float(p) for p in corrected]


def blocks(runs: Sequence[Mapping[str, float | None]]) -> tuple[tuple[str, ...], Values]:
    """Return the topics with a value for every run, and the values: a row per topic, a column per run."""
    topics = tuple(
        topic
        for topic in (runs[0] if runs else ())
        if all((value := run.get(topic)) is not None and math.isfinite(value) for run in runs)
    )
    values = [[run[topic] for run in runs] for topic in topics]
    return topics, np.array(values, dtype=np.float64).reshape(len(topics), len(runs))


@dataclass(frozen=True, slots=True)
class Tukey:
    """Tukey's honestly significant difference; runs and topics are the factors of a two-way analysis of variance."""

    # The p-value of each pair of runs by their numbers.
    p: Mapping[tuple[int, int], float]
    # The least significant difference of two means at `level`.
    margin: float
    # The residual mean square.
    error: float
    degrees: int
    level: float = LEVEL


def tukey(values: ArrayLike, level: float = LEVEL) -> Tukey:
    """Run Tukey's HSD of values with a row per topic and a column per run."""
    from scipy import stats

    array = np.asarray(values, dtype=np.float64)
    topics, runs = array.shape
    pairs = list(combinations(range(runs), 2))
    degrees = (topics - 1) * (runs - 1)
    if topics < 2 or runs < 2:
        return Tukey(dict.fromkeys(pairs, math.nan), math.nan, math.nan, max(degrees, 0), level)
    residuals = array - array.mean(axis=1, keepdims=True) - array.mean(axis=0, keepdims=True) + array.mean()
    if not (np.abs(residuals) > 10.0**-DECIMALS).any():
        same = not (np.ptp(array.mean(axis=0)) > 10.0**-DECIMALS)
        return Tukey(dict.fromkeys(pairs, 1.0 if same else math.nan), math.nan, 0.0, degrees, level)
    error = float((residuals**2).sum() / degrees)
    scale = math.sqrt(error / topics)
    means = list(map(mean, array.T))
    p = {
        (first, second): float(
            stats.studentized_range.sf(abs(means[first] - means[second]) / scale, runs, degrees)
        )
        for first, second in pairs
    }
    margin = float(stats.studentized_range.ppf(level, runs, degrees)) * scale
    return Tukey(
        {pair: min(max(value, 0.0), 1.0) for pair, value in p.items()}, margin, error, degrees, level
    )


@dataclass(frozen=True, slots=True)
class RandomisedTukey:
    """The randomised Tukey HSD: each trial permutes the values of every topic over the runs."""

    # (b + 1) / (m + 1) for each pair of runs by their numbers; in b of m trials the range of means was as great.
    p: Mapping[tuple[int, int], float]
    # The standard errors √(p (1 − p) / m).
    errors: Mapping[tuple[int, int], float]
    trials: int


def randomised_tukey(values: ArrayLike, trials: int = TRIALS, seed: int = SEED) -> RandomisedTukey:
    """Run the randomised Tukey HSD of values with a row per topic and a column per run.

    Raises:
        ValueError: `trials` is less than 1.
    """
    if trials < 1:
        raise ValueError(f"there must be at least one trial, not {trials}")
    array = np.asarray(values, dtype=np.float64)
    topics, runs = array.shape
    pairs = list(combinations(range(runs), 2))
    if not topics:
        return RandomisedTukey(dict.fromkeys(pairs, math.nan), dict.fromkeys(pairs, 0.0), trials)
    means = list(map(mean, array.T))
    # Sorted, so that the draws do not depend on the order of topics and runs.
    ordered = np.sort(array, axis=1)
    ordered = ordered[np.lexsort(ordered.T[::-1])]
    random = np.random.default_rng(seed)
    ranges = np.empty(trials)
    at_once = max(1, _TRIAL_CELLS // ordered.size)
    for start in range(0, trials, at_once):
        count = min(at_once, trials - start)
        dealt = random.permuted(np.broadcast_to(ordered, (count, *ordered.shape)), axis=2)
        ranges[start : start + count] = np.ptp(dealt.sum(axis=1) / topics, axis=1)
    rounding = 100 * float(np.finfo(np.float64).eps) * float(np.abs(array).mean())
    p = {
        (first, second): (int((ranges >= abs(means[first] - means[second]) - rounding).sum()) + 1)
        / (trials + 1)
        for first, second in pairs
    }
    errors = {pair: math.sqrt(value * (1 - value) / trials) for pair, value in p.items()}
    return RandomisedTukey(p, errors, trials)
