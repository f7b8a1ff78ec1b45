"""Statistical significance of the differences between runs on the same topics, of two runs and of several at once.

Everything here takes paired values: what a measure has for each topic under the one run and under the other. What is
tested is the difference, the second less the first, and every test is two-sided. A test that has no answer, for want of
topics or of variance, has nan in place of one; none raises for that.

    R. A. Fisher, The Design of Experiments, 1935, section 21 (randomisation test)
    M. D. Smucker, J. Allan, B. Carterette, A Comparison of Statistical Significance Tests for Information Retrieval
        Evaluation, CIKM 2007
    B. Efron, Better Bootstrap Confidence Intervals, JASA 82, 1987 (BCa)
    J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, section 2.3.5 (d_z)
    B. Phipson, G. K. Smyth, Permutation P-values Should Never Be Zero, SAGMB 9, 2010 (the one that is added)
    T. Sakai, Laboratory Experiments in Information Retrieval, 2018

Among many comparisons some differences are large by chance. Corrections adjust the p-values of single tests; Tukey's
tests compare all runs at once and give each pair a p-value that is corrected already.

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
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Values: TypeAlias = NDArray[np.float64]

PERMUTATIONS = 100_000
"""Sign vectors of the randomisation test where there are too many to go through all of them."""

RESAMPLES = 5_000
"""Of the bootstrap."""

LEVEL = 0.95
"""Confidence of an interval."""

SEED = 20_071_109
"""Of everything random here, so that the same runs have the same figures each time."""

DECIMALS = 9
"""Differences that agree in so many decimals are taken for equal, where equality matters: ties, ranks of differences.

Two ways to add the same fractions differ in the sixteenth."""

EXACT_UP_TO = 50
"""Topics up to which the Wilcoxon test is exact; beyond, and with ties, it is the normal approximation."""

_CELLS_AT_ONCE = 1 << 22
"""Numbers that are held at a time for permutations and resamples: 32 MiB."""


@dataclass(frozen=True, slots=True)
class Paired:
    """The values of two runs on the topics that both have one for, in the order of the first.

    `only_first` and `only_second` are topics that the other run has no value for: none, None or not a number.
    """

    topics: tuple[str, ...]
    first: Values
    second: Values
    only_first: tuple[str, ...] = ()
    only_second: tuple[str, ...] = ()

    @property
    def differences(self) -> Values:
        """The second less the first."""
        return self.second - self.first


def paired(first: Mapping[str, float | None], second: Mapping[str, float | None]) -> Paired:
    """The topics that two runs both have a value for.

    >>> paired({"1": 0.5, "2": 1.0, "3": None}, {"2": 0.25, "1": 0.5}).topics
    ('1', '2')
    """
    one, other = (
        {topic: value for topic, value in run.items() if _is_number(value)} for run in (first, second)
    )
    shared = tuple(topic for topic in one if topic in other)
    return Paired(
        shared,
        np.array([one[topic] for topic in shared], dtype=np.float64),
        np.array([other[topic] for topic in shared], dtype=np.float64),
        tuple(topic for topic in one if topic not in other),
        tuple(topic for topic in other if topic not in one),
    )


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


@dataclass(frozen=True, slots=True)
class TTest:
    """The paired t-test: t with n - 1 degrees of freedom; nan where the differences do not vary."""

    statistic: float
    degrees: int
    p: float


@dataclass(frozen=True, slots=True)
class Wilcoxon:
    """The Wilcoxon signed-rank test: `statistic` is the smaller sum of ranks over the `counted` topics.

    Topics without a difference are left out before ranking (Wilcoxon's own treatment), equal differences share the
    mean of their ranks. With `exact` the p-value is that of all sign vectors, otherwise of the normal approximation,
    its variance corrected for ties and without a correction for continuity. Where no topic has a difference p is 1.
    """

    statistic: float
    counted: int
    exact: bool
    p: float


@dataclass(frozen=True, slots=True)
class Randomisation:
    """Fisher's randomisation test of the mean difference over sign vectors.

    With `exact` these were all that there are, and `permutations` is their number. Otherwise so many were drawn with a
    seed, p is (b + 1) / (m + 1), where b of m are as far from 0 as what was seen, and `error` is its standard error
    √(p (1 - p) / m): another seed moves p by that much.
    """

    p: float
    permutations: int
    exact: bool
    error: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a mean: of differences, or of the values of one run."""

    low: float
    high: float
    level: float = LEVEL
    method: str = "BCa bootstrap"
    resamples: int = RESAMPLES


@dataclass(frozen=True, slots=True)
class Outcomes:
    """On how many topics the second run wins, ties and loses; a tie is a difference that is 0 in nine decimals."""

    wins: int
    ties: int
    losses: int


@dataclass(frozen=True, slots=True)
class PairTests:
    """All that is said of two runs under one measure; `effect` is d_z, `mean` the second's mean less the first's."""

    topics: int
    first: float
    second: float
    mean: float
    outcomes: Outcomes
    t_test: TTest
    wilcoxon: Wilcoxon
    randomisation: Randomisation
    interval: Interval
    effect: float

    @property
    def p_values(self) -> dict[str, float]:
        """The p-value of each test by its name."""
        return {
            "t-test": self.t_test.p,
            "wilcoxon": self.wilcoxon.p,
            "randomisation": self.randomisation.p,
        }


def pair_tests(
    pairs: Paired, *, permutations: int = PERMUTATIONS, resamples: int = RESAMPLES, seed: int = SEED
) -> PairTests:
    """Every test of two runs under one measure."""
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
    """The mean, whatever the order of the values; nan of none."""
    held = np.asarray(values, dtype=np.float64)
    return math.fsum(held) / len(held) if len(held) else math.nan


def outcomes(differences: ArrayLike) -> Outcomes:
    """Wins, ties and losses.

    >>> outcomes([0.25, 0.0, 1e-12, -0.5])
    Outcomes(wins=1, ties=2, losses=1)
    """
    rounded = _rounded(differences)
    wins, losses = int((rounded > 0).sum()), int((rounded < 0).sum())
    return Outcomes(wins, len(rounded) - wins - losses, losses)


def effect_size(differences: ArrayLike) -> float:
    """Cohen's d_z: the mean difference in standard deviations (n - 1) of the differences; 0 without any difference.

    nan where the differences do not vary, or there are fewer than two.
    """
    held = np.asarray(differences, dtype=np.float64)
    if len(held) and not _rounded(held).any():
        return 0.0
    return mean(held) / float(held.std(ddof=1)) if _varies(held) else math.nan


def t_test(differences: ArrayLike) -> TTest:
    """The paired t-test, by SciPy; without any difference t is 0 and p is 1."""
    from scipy import stats

    held = np.asarray(differences, dtype=np.float64)
    degrees = max(len(held) - 1, 0)
    if len(held) and not _rounded(held).any():
        return TTest(0.0, degrees, 1.0)
    if not _varies(held):
        return TTest(math.nan, degrees, math.nan)
    found = stats.ttest_1samp(held, 0.0)
    return TTest(float(found.statistic), degrees, float(found.pvalue))


def wilcoxon(differences: ArrayLike) -> Wilcoxon:
    """The Wilcoxon signed-rank test, by SciPy."""
    from scipy import stats

    rounded = _rounded(differences)
    counted = rounded[rounded != 0]
    if not len(counted):
        return Wilcoxon(0.0, 0, True, 1.0 if len(rounded) else math.nan)
    tied = len(np.unique(np.abs(counted))) < len(counted)
    exact = len(counted) <= EXACT_UP_TO and not tied
    method = "exact" if exact else "asymptotic"
    found = stats.wilcoxon(counted, zero_method="wilcox", correction=False, method=method)
    return Wilcoxon(float(found.statistic), len(counted), exact, float(found.pvalue))


def randomisation_test(
    differences: ArrayLike, permutations: int = PERMUTATIONS, seed: int = SEED
) -> Randomisation:
    """Fisher's randomisation test: how often the mean is as far from 0 when signs are given at random.

    Exact where the sign vectors of the topics that differ are no more than `permutations`. SciPy's `permutation_test`
    does the same in minutes for 2,000 topics: here sums over eight topics at a time are looked up in tables of their
    256 sign vectors.

    Raises:
        ValueError: `permutations` is less than 1.
    """
    if permutations < 1:
        raise ValueError(f"there must be at least one permutation, not {permutations}")
    held = np.asarray(differences, dtype=np.float64)
    if not len(held):
        return Randomisation(math.nan, 0, True, 0.0)
    # Under random signs those of the differences say nothing, and 0 adds nothing. Sorted, so that neither the order of
    # the topics nor which run comes first has a part in what is drawn.
    moving = np.sort(np.abs(held[held != 0]))
    if not len(moving):
        return Randomisation(1.0, 1, True, 0.0)
    seen = abs(math.fsum(held))
    # Sums that differ by rounding alone count as equal.
    enough = seen - 100 * float(np.finfo(np.float64).eps) * math.fsum(moving)
    tables = _tables(moving)
    if len(moving) < 63 and 2 ** len(moving) <= permutations:
        numbers = np.arange(2 ** len(moving), dtype=np.uint64)
        codes = np.stack(
            [
                ((numbers >> np.uint64(8 * place)) & np.uint64(255)).astype(np.uint8)
                for place in range(len(tables))
            ],
            axis=1,
        ).reshape(len(numbers), len(tables))
        as_far = int((np.abs(_sums(tables, codes)) >= enough).sum())
        return Randomisation(as_far / len(numbers), len(numbers), True, 0.0)
    random = np.random.default_rng(seed)
    as_far = 0
    at_once = max(1, _CELLS_AT_ONCE // len(tables))
    for start in range(0, permutations, at_once):
        many = min(at_once, permutations - start)
        codes = random.integers(0, 256, size=(many, len(tables)), dtype=np.uint8)
        as_far += int((np.abs(_sums(tables, codes)) >= enough).sum())
    p = (as_far + 1) / (permutations + 1)
    return Randomisation(p, permutations, False, math.sqrt(p * (1 - p) / permutations))


def _tables(differences: Values) -> Values:
    """For each eight differences, the sums that their 256 sign vectors give."""
    eights = np.zeros((-(-len(differences) // 8), 8))
    eights.ravel()[: len(differences)] = differences
    signs = 1.0 - 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    sums: Values = eights @ signs.T
    return sums


def _sums(tables: Values, codes: NDArray[np.uint8]) -> Values:
    """The sum under each sign vector, of which a row has the signs of eight topics a byte."""
    total = np.zeros(len(codes))
    for table, column in zip(tables, np.ascontiguousarray(codes.T), strict=True):
        total += table[column]
    return total


def bootstrap_interval(
    differences: ArrayLike, resamples: int = RESAMPLES, seed: int = SEED, level: float = LEVEL
) -> Interval:
    """The bias-corrected and accelerated bootstrap interval of a mean, of differences or of values, by SciPy.

    Neither the order of the topics nor which run comes first has a part in what is drawn. nan with fewer than two
    topics; where all differences are the same it is that one.
    """
    from scipy import stats

    held = np.asarray(differences, dtype=np.float64)
    if len(held) < 2:
        return Interval(math.nan, math.nan, level, resamples=resamples)
    if not _varies(held):
        return Interval(mean(held), mean(held), level, resamples=resamples)
    sign = -1.0 if mean(held) < 0 else 1.0
    found = stats.bootstrap(
        (np.sort(sign * held),),
        np.mean,
        n_resamples=resamples,
        batch=max(1, _CELLS_AT_ONCE // len(held)),
        confidence_level=level,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    low, high = sorted((sign * float(found.low), sign * float(found.high)))
    return Interval(low, high, level, resamples=resamples)


def _rounded(differences: ArrayLike) -> Values:
    """Differences of which equal ones are equal; 0 has no sign."""
    return np.round(np.asarray(differences, dtype=np.float64), DECIMALS).astype(np.float64) + 0.0


def _varies(differences: Values) -> bool:
    """Whether there are two differences that are not the same."""
    return len(differences) > 1 and bool(np.ptp(differences) > 10.0**-DECIMALS)


def solved_by(values: Sequence[Mapping[str, float | None]], least: float) -> dict[str, int]:
    """By how many runs each topic is solved: under how many its value is at least `least`.

    >>> solved_by([{"1": 0.6, "2": None}, {"1": 0.5, "2": 0.1}], 0.5)
    {'1': 2, '2': 0}
    """
    topics = dict.fromkeys(topic for one in values for topic in one)
    return {topic: sum((one.get(topic) or 0.0) >= least for one in values) for topic in topics}


TRIALS = 10_000
"""Permutations of the randomised test: each takes as many numbers as there are topics times runs."""

_TRIAL_CELLS = 1 << 21


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
    at_once = max(1, _TRIAL_CELLS // values.size)
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
