"""Estimates from samples equal those of NIST's sample_eval.pl, and AP and nDCG if all documents are judged."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sampling import accuracies
from searchapp.evaluation.measures import measure
from searchapp.evaluation.sampling import SampledTopic, TopicEstimate, mean_estimate, relevant_documents
from tests.evaluation.conftest import exact
from tests.profile import FULL

DOCUMENTS = [str(number) for number in range(40)]
STRATA = [DOCUMENTS[:8], DOCUMENTS[8:20], DOCUMENTS[20:]]

# Grades of the sampled documents, the ranking ("x" is outside the pool), and infAP, infNDCG and inum_rel by a
# transcription of the estimators in NIST's sample_eval.pl (version of 10 October 2011).
NIST = [
    (
        "0=2 1=0 2=1 3=1 4=2 5=0 6=0 7=2 13=0 14=0 15=0 16=2 18=0 19=0 20=1 21=2 25=2 29=2 38=2",
        "36 28 8 23 6 2 x3 31 13 16 27 19 26 32 24 18 11 17 30 37 35 7 10 21 0 39 34 5 x2 3",
        *(0.15495454, 0.54452264, 27),
    ),
    (
        "0=2 1=1 2=0 3=1 4=0 5=1 6=0 7=0 8=0 9=2 12=1 14=1 18=0 19=0 20=0 21=2 22=1 23=1 29=0",
        "x4 2 21 20 23 8 24 39 29 33 38 6 32 17 27 x2 x1 22 7 9 13 x0 16 26 36 10 0 25 30 19",
        *(0.24835115, 0.57043483, 22),
    ),
    (
        "0=1 1=2 2=1 3=2 4=2 5=1 6=2 7=1 8=2 10=1 13=1 17=0 18=1 19=0 28=0 29=0 30=0 31=1 32=0",
        "x1 17 15 20 11 27 6 39 x2 21 14 28 10 5 36 23 37 38 18 35 8 7 3 1 16 34 33 x0 32 25",
        *(0.16585615, 0.37657129, 20),
    ),
]


def parsed(grades: str, ranking: str) -> tuple[SampledTopic, list[str]]:
    pairs = (pair.split("=") for pair in grades.split())
    return SampledTopic(STRATA, {document: int(grade) for document, grade in pairs}), ranking.split()


@pytest.mark.parametrize(("grades", "ranking", "ap", "ndcg", "relevant"), NIST)
def test_uncorrected_estimates_equal_those_of_sample_eval(
    grades: str, ranking: str, ap: float, ndcg: float, relevant: float
) -> None:
    topic, documents = parsed(grades, ranking)
    # sample_eval.pl smooths all shares by 0.00001.
    assert topic.xinfap(documents).uncorrected == pytest.approx(ap, abs=5e-5)
    assert topic.infndcg(documents).uncorrected == pytest.approx(ndcg, abs=1e-7)
    assert topic.relevant().sum() == exact(relevant)


@st.composite
def judged_pools(draw: st.DrawFn) -> tuple[list[list[str]], dict[str, int], list[str]]:
    documents = [f"d{number}" for number in range(draw(st.integers(1, 30)))]
    grades = {document: draw(st.integers(0, 3)) for document in documents}
    strata: list[list[str]] = [[], [], []]
    for document in documents:
        strata[draw(st.integers(0, 2))].append(document)
    ranking = draw(st.permutations([*documents, "x", "y", "z"]))
    return strata, grades, ranking[: draw(st.integers(1, len(ranking)))]


@given(judged_pools())
def test_with_all_documents_judged_the_estimates_are_ap_and_ndcg(
    pool: tuple[list[list[str]], dict[str, int], list[str]],
) -> None:
    strata, grades, ranking = pool
    topic = SampledTopic(strata, grades)
    full = measure({"t": ranking}, {"t": grades}, ["AP", "nDCG"]).values
    for estimate, value in ((topic.xinfap(ranking), full["AP"]), (topic.infndcg(ranking), full["nDCG"])):
        assert estimate.value == estimate.uncorrected == pytest.approx(value, abs=1e-12)
        assert estimate.variance == 0
    number = sum(grade > 0 for grade in grades.values())
    total = relevant_documents([topic])
    assert (total.value, total.low, total.high) == (exact(number), exact(number), exact(number))


@given(judged_pools(), st.data())
def test_estimates_are_finite_whatever_part_of_the_sample_is_judged(pool: Any, data: st.DataObject) -> None:
    strata, grades, ranking = pool
    kept = data.draw(st.lists(st.sampled_from(sorted(grades)), unique=True))
    topic = SampledTopic(strata, {document: grades[document] for document in kept})
    for estimate in (topic.xinfap(ranking), topic.infndcg(ranking)):
        assert math.isfinite(estimate.value) and estimate.variance >= 0
    total = relevant_documents([topic])
    assert 0 <= total.low <= total.value <= total.high <= len(grades) + 1e-9


def test_the_interval_of_a_count_has_a_width_without_relevant_documents() -> None:
    documents = [str(number) for number in range(100)]
    total = relevant_documents([SampledTopic([documents], dict.fromkeys(documents[:20], 0))])
    # Wilson's upper limit of 0 of n with z² = 3.8415 is z² / (n + z²), here of n = 20 × 99 / 80 documents.
    assert (total.low, total.value) == (0, 0)
    assert total.high == pytest.approx(100 * 3.841459 / (24.75 + 3.841459), abs=1e-4)


def test_the_interval_of_a_mean_adds_the_variances_of_topics() -> None:
    estimate = mean_estimate([TopicEstimate(0.2, 0.2, 0.01, 2), TopicEstimate(0.4, 0.4, 0.03, 6)])
    assert estimate.value == exact(0.3)
    # Satterthwaite: 0.04² / (0.01² / 2 + 0.03² / 6) = 8 degrees of freedom, whose quantile is 2.306004.
    assert estimate.high - estimate.low == pytest.approx(2 * 2.306004 * 0.1, abs=1e-6)
    complete = mean_estimate([TopicEstimate(0.2, 0.2, 0.0, 1), TopicEstimate(0.4, 0.4, 0.0, 1)])
    assert complete.low == complete.high == complete.value == exact(0.3)


@pytest.mark.parametrize("relevant", [80, 20])
def test_bias_and_coverage(relevant: int) -> None:
    """1,000 samples with `make test-full`; otherwise 60, with the bounds that chance allows these."""
    for name, of in accuracies(*((1000, 30) if FULL else (60, 12)), share=0.2, relevant=relevant).items():
        assert abs(of.bias) <= max(2 * of.error, 0.005) if FULL else abs(of.bias) <= 4 * of.error, name
        low, high = (0.92, 0.98) if FULL else (0.83, 1.0)
        assert low <= of.coverage <= high, name
