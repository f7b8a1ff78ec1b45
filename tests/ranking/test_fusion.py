"""Fusion of the scores of several signals."""

from __future__ import annotations

import random

import pytest

from searchapp.model import Hit, Hits
from searchapp.ranking.fusion import (
    KINDS,
    CombMnzFusion,
    Fusion,
    ReciprocalRankFusion,
    SumFusion,
    Weighted,
    scores_of,
    weighted_sum,
)
from searchapp.ranking.signals.base import Normalization, ranked
from tests.profile import SEED


def test_weighted_scores_are_added() -> None:
    total = weighted_sum([(1.0, {"a": 1.0}), (0.5, {"a": 0.5, "b": 1.0})])
    assert total == {"a": 1.25, "b": 0.5}


def test_equal_float32_scores_are_ordered_by_the_bytes_of_the_ids() -> None:
    scores = {"10": 0.1, "9": 0.1 + 1e-12, "é": 0.1, "z": 0.1, "a": 0.5}
    assert ranked(scores, 5).document_ids == ("a", "10", "9", "z", "é")
    assert ranked(scores, 2, without="a").document_ids == ("10", "9")


def test_scores_are_normalized_by_the_first_score() -> None:
    assert scores_of(Hits.of(Hit("a", 8.0), Hit("b", 2.0)), Normalization.max) == {"a": 1.0, "b": 0.25}
    assert scores_of(Hits.of(Hit("a", 0.0)), Normalization.max) == {"a": 0.0}
    assert scores_of(Hits(), Normalization.max) == {}


def test_reciprocal_ranks_are_added_and_ties_have_different_ranks() -> None:
    scores = ReciprocalRankFusion().fused(
        [(1.0, {"a": 3.0, "b": 2.0, "c": 1.0}), (1.0, {"b": 0.0, "a": 0.0, "c": 5.0})]
    )
    assert scores == pytest.approx({"a": 1 / 61 + 1 / 62, "b": 1 / 62 + 1 / 63, "c": 1 / 63 + 1 / 61})
    hits = Hits.of(Hit("10", 2.0), Hit("9", 2.0))
    assert ReciprocalRankFusion().fused([(1.0, hits)]) == {"10": 1 / 61, "9": 1 / 62}


@pytest.mark.timeout(1200)  # numba compiles first
@pytest.mark.filterwarnings("ignore:unsafe cast")
def test_reciprocal_rank_fusion_has_the_scores_of_ranx() -> None:
    ranx = pytest.importorskip("ranx", reason="`make test-beside` installs ranx")
    dice = random.Random(SEED)
    for _case in range(100):
        runs = []
        for _run in range(dice.randint(2, 5)):
            documents = dice.sample([f"d{number}" for number in range(60)], dice.randint(1, 50))
            distinct = map(float, dice.sample(range(-1000, 1000), len(documents)))
            runs.append(dict(zip(documents, distinct, strict=True)))
        k = dice.choice([1, 10, 60])
        theirs = ranx.fuse([ranx.Run({"q": run}) for run in runs], norm=None, method="rrf", params={"k": k})
        ours = ReciprocalRankFusion(k).fused([(1.0, run) for run in runs])
        assert ours == theirs.to_dict()["q"]


def test_a_weight_multiplies_the_reciprocal_rank() -> None:
    assert ReciprocalRankFusion(1.0).fused([(3.0, {"a": 1.0}), (1.0, {"a": 9.0})]) == {"a": 3 / 2 + 1 / 2}


def test_a_sum_normalizes_hits_but_not_scores() -> None:
    hits = Hits.of(Hit("a", 8.0), Hit("b", 2.0))
    assert SumFusion(Normalization.max).fused([(2.0, hits), (1.0, {"b": 1.0})]) == {"a": 2.0, "b": 1.5}
    assert SumFusion(Normalization.none).fused([(2.0, hits), (1.0, {"b": 1.0})]) == {"a": 16.0, "b": 5.0}


def test_comb_mnz_multiplies_by_the_number_of_signals() -> None:
    hits = Hits.of(Hit("a", 8.0), Hit("b", 2.0))
    mnz = CombMnzFusion(Normalization.max)
    # b: 2 signals, 2 * (2 * 1/4 + 1 * 0.5); c has the score 0 from one signal
    assert mnz.fused([(2.0, hits), (1.0, {"b": 0.5, "c": 0.0})]) == {"a": 2.0, "b": 2.0, "c": 0.0}
    assert mnz.fused([(0.0, hits), (1.0, {"b": 0.5})]) == {"a": 0.0, "b": 0.5}, "a weight of 0 does not count"
    assert mnz.manifest() == {"method": "mnz", "normalization": "max"}


FUSIONS: tuple[Fusion, ...] = (
    SumFusion(),
    SumFusion(Normalization.none),
    CombMnzFusion(),
    ReciprocalRankFusion(60.0),
)


def test_all_fusions_without_a_model_are_tested() -> None:
    assert {type(fusion) for fusion in FUSIONS} == {*KINDS.values()}, "add the fusion to FUSIONS above"


@pytest.mark.parametrize("fusion", FUSIONS)
def test_contributions_of_signals_add_up_to_the_score(fusion: Fusion) -> None:
    hits = Hits.of(Hit("a", 8.0), Hit("b", 2.0), Hit("d", 2.0))
    answers: Weighted = [(2.0, hits), (0.5, {"b": 1.0, "c": 0.25}), (1.0, {"a": 0.0, "b": 0.125})]
    for document, score in fusion.fused(answers).items():
        contributions, rest = fusion.given(answers, document)
        assert rest == 0
        assert sum(part or 0.0 for part in contributions) == pytest.approx(score)
        missing = [document not in dict(answer) for _, answer in answers]
        assert [part is None for part in contributions] == missing
    assert fusion.given(answers, "nowhere").signals == [None, None, None]
