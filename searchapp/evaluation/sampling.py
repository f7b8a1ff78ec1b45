"""Estimates from a stratified sample of judgments: xinfAP, infNDCG and the number of relevant documents.

The documents of a topic's pool are divided into strata, and a simple random sample of each stratum is judged. A
document outside the pool counts as not relevant, a grade above 0 as relevant. With all documents judged, xinfAP equals
AP and infNDCG equals nDCG.

    E. Yilmaz, E. Kanoulas, J. A. Aslam, A Simple and Efficient Sampling Method for Estimating AP and NDCG, SIGIR 2008;
        NIST's program sample_eval.pl (2011) has the same estimators, with the two differences named below
    W. G. Cochran, Sampling Techniques, 3rd edition 1977, chapter 5 (totals and variances of stratified samples)
    M. H. Quenouille, Notes on Bias in Estimation, Biometrika 43, 1956 (bias by the jackknife)
    F. E. Satterthwaite, An Approximate Distribution of Estimates of Variance Components, Biometrics Bulletin 2, 1946
    K. M. Wolter, Introduction to Variance Estimation, 2nd edition 2007, section 4.5 (jackknife of stratified samples)
    E. B. Wilson, Probable Inference, the Law of Succession, and Statistical Inference, JASA 22, 1927
    E. L. Korn, B. I. Graubard, Confidence Intervals for Proportions with Small Expected Number of Positive Counts
        Estimated from Survey Data, Survey Methodology 24, 1998 (effective sample size)
    G. Y. Zou, A. Donner, Construction of Confidence Limits about Effect Measures, Statistics in Medicine 27, 2008
        (limits of a sum from the limits of its terms)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchapp.evaluation.significance import LEVEL, Values, mean
from searchapp.lucene.dataclass import dataclass

# The standard normal quantile for both limits of an interval.
_QUANTILE = NormalDist().inv_cdf((1 + LEVEL) / 2)

# The share of relevant documents among those above a rank of which none is judged is _PRIOR / _WEIGHT = 1/3, as in
# sample_eval.pl. Unlike there, a share that is known completely is not smoothed.
_PRIOR, _WEIGHT = 0.00001, 0.00003


@dataclass(frozen=True, slots=True)
class TopicEstimate:
    """An estimate for one topic."""

    # Corrected for bias by the jackknife.
    value: float
    # As sample_eval.pl computes it.
    uncorrected: float
    variance: float
    # The degrees of freedom of the variance: the number of relevant documents in the samples, at least 1.
    degrees: int


@dataclass(frozen=True, slots=True)
class SampledEstimate:
    """An estimate with the limits of its confidence interval."""

    value: float
    low: float
    high: float


class SampledTopic:
    """The judged sample of a topic's pool.

    Values are arrays with one element for the sample, and one for each of its documents that leaves this document out
    (jackknife). Strata that are judged completely, or of which one document is judged, leave none out.

    Args:
        strata: the documents of each stratum, sampled or not; no document is in two
        grades: the grades of sampled documents; those without a grade count as not sampled
    """

    def __init__(self, strata: Sequence[Sequence[str]], grades: Mapping[str, int]) -> None:
        self._stratum_of = {document: h for h, stratum in enumerate(strata) for document in stratum}
        # By judged document, in the order of the strata.
        self._judged = {
            document: max(grades[document], 0) for document in self._stratum_of if document in grades
        }
        self._grades = np.array(list(self._judged.values()), dtype=np.int64)
        self._strata = np.array([self._stratum_of[document] for document in self._judged], dtype=np.intp)
        # By stratum: the number of documents, and of judged documents.
        self.sizes = np.array([len(stratum) for stratum in strata], dtype=np.int64)
        self.judged = np.bincount(self._strata, minlength=len(strata))
        samples = (self.judged > 1) & (self.judged < self.sizes)
        self._left_out = np.flatnonzero(samples[self._strata])
        # By stratum and value: how many documents of the pool each judged document stands for.
        self._weights = [
            size / np.maximum(self._sums(self._strata == h), 1) for h, size in enumerate(self.sizes)
        ]

    def _sums(self, terms: NDArray[Any]) -> Values:
        """Return sums of terms of judged documents; further axes are kept."""
        numbers = terms.astype(np.float64)
        total = numbers.sum(axis=0, keepdims=True)
        sums: Values = np.concatenate([total, total - numbers[self._left_out]])
        return sums

    def _total(self, terms: NDArray[Any]) -> Values:
        """Return Horvitz-Thompson estimates of the sum of terms over the pool."""
        values: Values = sum(
            (weight * self._sums(terms * (self._strata == h)) for h, weight in enumerate(self._weights)),
            start=np.zeros(1 + len(self._left_out)),
        )
        return values

    def is_judged(self, document: str) -> bool:
        return document in self._judged

    @property
    def relevant_in_samples(self) -> int:
        """The number of relevant documents in strata that are not judged completely."""
        return int((self._grades[(self.judged < self.sizes)[self._strata]] > 0).sum())

    def relevant(self) -> Values:
        """Return the estimated number of relevant documents in each stratum."""
        found = np.bincount(self._strata, self._grades > 0, minlength=len(self.sizes))
        estimated: Values = found * np.array([weight[0] for weight in self._weights])
        return estimated

    def xinfap(self, ranking: Sequence[str]) -> TopicEstimate:
        """Estimate the average precision of a ranking, best first."""
        ranks, of_strata = self._ranks(ranking)
        return self._estimate(self._average_precision(ranks, of_strata))

    def infndcg(self, ranking: Sequence[str]) -> TopicEstimate:
        """Estimate nDCG of a ranking, best first, with the grades as gains."""
        ranks, of_strata = self._ranks(ranking)
        return self._estimate(self._ndcg(ranks, of_strata))

    def _estimate(self, values: Values) -> TopicEstimate:
        """Return the estimate of values: its bias and variance by the jackknife, with finite population corrections."""
        strata = self._strata[self._left_out]
        bias = variance = 0.0
        for h in np.unique(strata):
            n, of = self.judged[h], values[1:][strata == h]
            unsampled = 1 - n / self.sizes[h]
            bias += unsampled * (n - 1) * float(of.mean() - values[0])
            variance += unsampled * (n - 1) / n * float(((of - of.mean()) ** 2).sum())
        degrees = max(self.relevant_in_samples, 1)
        return TopicEstimate(float(values[0]) - bias, float(values[0]), variance, degrees)

    def _ranks(self, ranking: Sequence[str]) -> tuple[Values, list[Values]]:
        """Return the rank of each judged document, or infinity, and the ranks of the retrieved documents by stratum."""
        rank_of = {document: rank for rank, document in reversed(list(enumerate(ranking, 1)))}
        of_strata: list[list[int]] = [[] for _ in self.sizes]
        for document, rank in rank_of.items():
            if (h := self._stratum_of.get(document)) is not None:
                of_strata[h].append(rank)
        return (
            np.array([rank_of.get(document, math.inf) for document in self._judged]),
            [np.sort(np.array(ranks, dtype=np.float64)) for ranks in of_strata],
        )

    def _average_precision(self, ranks: Values, of_strata: Sequence[Values]) -> Values:
        hits = np.flatnonzero((self._grades > 0) & np.isfinite(ranks))
        is_above = ranks[:, None] < ranks[hits]
        # By value and hit: the expected number of relevant documents above the hit.
        relevant_above = np.zeros((1 + len(self._left_out), len(hits)))
        for h, of_stratum in enumerate(of_strata):
            documents = np.searchsorted(of_stratum, ranks[hits])
            judged = is_above & (self._strata == h)[:, None]
            sampled, relevant = self._sums(judged), self._sums(judged & (self._grades > 0)[:, None])
            smoothed = documents * (relevant + _PRIOR) / (sampled + _WEIGHT)
            relevant_above += np.where(sampled == documents, relevant, smoothed)
        is_left_out = np.concatenate([[-1], self._left_out])[:, None] == hits
        precisions = np.where(is_left_out, 0.0, (1 + relevant_above) / ranks[hits])
        total: Values = sum(
            (
                weight * precisions[:, self._strata[hits] == h].sum(axis=1)
                for h, weight in enumerate(self._weights)
            ),
            start=np.zeros(len(precisions)),
        )
        return _quotients(total, self._total(self._grades > 0))

    def _ndcg(self, ranks: Values, of_strata: Sequence[Values]) -> Values:
        gains = self._grades / np.log2(ranks + 1)
        gained = np.zeros(1 + len(self._left_out))
        for h, of_stratum in enumerate(of_strata):
            retrieved = np.isfinite(ranks) & (self._strata == h)
            gained += len(of_stratum) * _quotients(self._sums(gains * retrieved), self._sums(retrieved))
        # sample_eval.pl rounds the estimated number of documents of each grade; here a fraction of a document has this
        # fraction of its gain, since rounding biases the estimate and its variance.
        levels = np.arange(1 + int(self.sizes.sum()))
        discounts = np.concatenate([[0.0], np.cumsum(1 / np.log2(levels[1:] + 1))])
        ideal, above = np.zeros(len(gained)), np.zeros(len(gained))
        for grade in np.unique(self._grades[self._grades > 0])[::-1]:
            below = above + self._total(self._grades == grade)
            ideal += grade * (np.interp(below, levels, discounts) - np.interp(above, levels, discounts))
            above = below
        return _quotients(gained, ideal)


def _quotients(numerators: Values, denominators: Values) -> Values:
    """Divide; 0 where the denominator is 0."""
    return np.divide(numerators, denominators, out=np.zeros_like(numerators), where=denominators > 0)


def mean_estimate(estimates: Sequence[TopicEstimate]) -> SampledEstimate:
    """Return the mean over topics; its interval is for the mean over the same topics with all documents judged.

    The quantile is that of Student's t with Satterthwaite's degrees of freedom. A topic's variance comes mainly from
    the relevant documents of its samples, so their number is that of its degrees of freedom.
    """
    from scipy.special import stdtrit

    value = mean([estimate.value for estimate in estimates])
    variance = math.fsum(estimate.variance for estimate in estimates)
    if not variance:
        return SampledEstimate(value, value, value)
    degrees = variance**2 / math.fsum(estimate.variance**2 / estimate.degrees for estimate in estimates)
    margin = float(stdtrit(degrees, (1 + LEVEL) / 2)) * math.sqrt(variance) / len(estimates)
    return SampledEstimate(value, value - margin, value + margin)


def relevant_documents(topics: Sequence[SampledTopic]) -> SampledEstimate:
    """Estimate the number of relevant documents in the pools of topics with the same number of strata.

    The estimate is Horvitz and Thompson's. Its interval adds up Wilson intervals of the strata, each over all topics,
    by the method of Zou and Donner, so that it has a width even if no relevant document was drawn.
    """
    sizes, judged, relevant = (
        np.array(rows).sum(axis=0)
        for rows in zip(*((topic.sizes, topic.judged, topic.relevant()) for topic in topics), strict=True)
    )
    below = above = 0.0
    for size, count, number in zip(sizes, judged, relevant, strict=True):
        if count < size:
            low, high = _wilson(number / size, count * (size - 1) / (size - count) if count else 0.0)
            below += (number - low * size) ** 2
            above += (high * size - number) ** 2
    value = float(relevant.sum())
    return SampledEstimate(value, value - math.sqrt(below), value + math.sqrt(above))


def _wilson(share: float, number: float) -> tuple[float, float]:
    """Return Wilson's limits of a share in a sample of an effective number of documents."""
    if not number:
        return 0.0, 1.0
    square = _QUANTILE**2 / number
    middle = share + square / 2
    margin = math.sqrt(square * share * (1 - share) + square**2 / 4)
    return (middle - margin) / (1 + square), (middle + margin) / (1 + square)
