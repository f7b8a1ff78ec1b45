"""The scorer of the explanation task of 2021."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.errors import DataError, NotScorable
from searchapp.evaluation.base import ranks_of
from searchapp.tasks.explanation.scorer_2021 import (
    BREAKDOWNS,
    FURTHER_RANKS,
    RankedRatings,
    ndcg,
    official_ndcg_at,
    overlap,
    read_gold,
    score,
)
from tests.files import write


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def figures(name: str, material: RankedRatings) -> dict[str, Any]:
    return {row.group: (row.count, *row.values.values()) for row in BREAKDOWNS[name](material).rows}


put = partial(write, name="gold.json")


def listed(*questions: Any) -> dict[str, Any]:
    return {"rankingProblems": list(questions)}


def rated(qid: str, **grades: Any) -> dict[str, Any]:
    documents = [{"uuid": fact, "relevance": grade} for fact, grade in grades.items()]
    return {"qid": qid, "documents": documents}


def official_ndcg(ranked: list[str], grades: dict[str, float]) -> float:
    return official_ndcg_at(ranks_of(ranked, grades), len(ranked), grades)


def test_ndcg_computed_by_hand() -> None:
    # Gains 2^2 - 1 = 3 at rank 1 and 2^3 - 1 = 7 at rank 3: 3/1 + 7/2; at best 7/1 + 3/log2(3).
    expected = (3 + 7 / 2) / (7 + 3 / math.log2(3))
    assert ndcg(["b", "x", "a"], {"a": 3, "b": 2}) == pytest.approx(expected, abs=1e-15)
    assert official_ndcg(["b", "x", "a"], {"a": 3, "b": 2}) == pytest.approx(expected, abs=1e-15)


def naive(ranked: list[str], grades: dict[str, float], further: int) -> float:
    """Compute NDCG as the task's description does, with a list of all further ranks."""
    gains: list[float] = [max(0.0, grades.get(fact, 0.0)) for fact in ranked]
    missing = [grade for fact, grade in grades.items() if fact not in ranked]
    if missing:
        gains += [0.0] * further
        for number, grade in enumerate(missing):
            gains[len(ranked) + further - number - 1] = grade

    def gain(values: list[float]) -> float:
        return sum((2**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(values, 1))

    if not grades:
        return 1.0
    best = gain(sorted(gains, reverse=True))
    return gain(gains) / best if best else 0.0


@given(
    st.permutations(list("abcdefgh")),
    st.integers(0, 8),
    st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from([-1.0, 0.0, 0.5, 1.0, 3.0, 6.0])),
)
def test_ndcg_equals_the_description(ranked: list[str], length: int, grades: dict[str, float]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("searchapp.tasks.explanation.scorer_2021.FURTHER_RANKS", 50)
        assert official_ndcg(ranked[:length], grades) == pytest.approx(
            naive(ranked[:length], grades, 50), rel=1e-12, abs=1e-12
        )


def test_unranked_facts_have_a_gain_that_the_honest_figure_excludes() -> None:
    result = score({}, {"q": {"a": 6}})
    assert result.value == pytest.approx(1 / math.log2(FURTHER_RANKS + 1), abs=1e-15)
    assert result.honest == {"mean NDCG": 0.0}
    assert "1 of 1 questions has no ranking" in result.warnings[0]


def test_a_complete_ranking_has_no_warning() -> None:
    result = score({"q": ["a", "b"]}, {"q": {"a": 6, "b": 0}})
    assert (result.value, result.warnings, result.honest) == (1.0, (), {})


def test_upper_case_gold_ids_match_only_in_the_honest_figure() -> None:
    result = score({"q": ["a"]}, {"q": {"A": 6}})
    assert result.value < 0.1 and result.honest == {"mean NDCG": 1.0}
    assert any("upper-case letters" in warning for warning in result.warnings)


def test_questions_without_rated_facts_score_1_and_have_a_warning() -> None:
    result = score({"q": ["b", "a"]}, {"q": {"a": 1}, "r": {}})
    assert result.value == pytest.approx((1 / math.log2(3) + 1) / 2)
    assert result.honest == {"mean NDCG": pytest.approx(1 / math.log2(3))}
    assert any("1 of 2 questions has no rated facts" in warning for warning in result.warnings)


def test_gold_without_questions_scores_minus_1() -> None:
    result = score({"q": ["a"]}, {})
    assert result.value == -1 and math.isnan(result.honest["mean NDCG"]) and len(result.warnings) == 1


@pytest.mark.parametrize(("grade", "kind"), [("6", "str"), (None, "NoneType")])
def test_a_rating_that_is_not_a_number_stops_the_official_scorer(grade: Any, kind: str) -> None:
    with pytest.raises(NotScorable) as raised:
        score({"q": ["a"]}, {"q": {"a": grade}})
    assert raised.value.official == f"TypeError: '>' not supported between instances of '{kind}' and 'int'"


@pytest.mark.parametrize("grade", [63, -64, 1e9, math.nan, math.inf])
def test_a_rating_that_overflows_is_rejected(grade: float) -> None:
    with pytest.raises(DataError, match="out of range"):
        score({"q": ["a"]}, {"q": {"a": grade}})


def test_the_last_of_repeated_questions_and_facts_counts(tmp_path: Path) -> None:
    first = rated("q", a=1, b=2)
    first["documents"].append({"uuid": "a", "relevance": 5})
    gold = read_gold(put(tmp_path, listed(rated("q", z=1), rated("r"), first)))
    assert list(gold.items()) == [("q", {"a": 5, "b": 2}), ("r", {})]


@pytest.mark.parametrize(
    ("value", "official"),
    [
        ({}, "KeyError: 'rankingProblems'"),
        (listed({"documents": []}), "KeyError: 'qid'"),
        (listed({"qid": "q"}), "KeyError: 'documents'"),
        (listed({"qid": "q", "documents": [{"relevance": 1}]}), "KeyError: 'uuid'"),
        (listed({"qid": "q", "documents": [{"uuid": "a"}]}), "KeyError: 'relevance'"),
        ("\ufeff{}", "json.decoder.JSONDecodeError: Unexpected UTF-8 BOM"),
        ("{", "json.decoder.JSONDecodeError: Expecting property name"),
    ],
)
def test_gold_that_stops_the_official_scorer(tmp_path: Path, value: Any, official: str) -> None:
    with pytest.raises(NotScorable) as raised:
        read_gold(put(tmp_path, value))
    assert raised.value.official.startswith(official)


@pytest.mark.parametrize(
    "value",
    [
        [],
        listed(7),
        {"rankingProblems": 1},
        listed({"qid": 1, "documents": []}),
        listed(rated("q") | {"documents": 1}),
    ],
)
def test_gold_of_another_shape_is_rejected(tmp_path: Path, value: Any) -> None:
    with pytest.raises(DataError):
        read_gold(put(tmp_path, value))


MATERIAL = RankedRatings(
    rankings={"q1": ["a", "x", "b", "c"], "q2": ["d"]},
    gold={"q1": {"a": 2.0, "b": 6.0, "c": 1.0}, "q2": {"d": 3.0}, "q3": {}, "q4": {"e": 1.0}},
    texts={"a": "ice melts", "b": "ice", "c": "heat", "d": "sun moon"},
    types={"a": "RET", "b": "COMPLEX", "c": "INSUPP", "d": "RET", "e": "RET"},
    questions={"q1": "ice heat", "q2": "stars", "q4": "rain"},
    terms=words,
)


def test_ndcg_by_type_of_knowledge() -> None:
    by_type = figures("type", MATERIAL)
    # a and d have rank 1, b rank 3, c rank 4; q4 is unanswered.
    assert by_type["retrieval"] == (3, pytest.approx((1 + 1 + 0) / 3))
    assert by_type["complex inference"] == (1, pytest.approx(1 / 2))
    assert by_type["inference-supporting"] == (1, pytest.approx(1 / math.log2(5)))


def test_ndcg_of_facts_rated_above_a_threshold() -> None:
    by_rating = figures("rating", MATERIAL)
    # Only b of q1, at rank 3, and d of q2 are rated above 2; only b above 4.
    assert by_rating["> 2"] == (2, pytest.approx((1 / 2 + 1) / 2))
    assert by_rating["> 4"] == (1, pytest.approx(1 / 2))
    gain = 3 + 63 / 2 + 1 / math.log2(5)
    best = 63 + 3 / math.log2(3) + 1 / 2
    assert by_rating["> 0"] == (3, pytest.approx((gain / best + 1 + 0) / 3))


def test_precision_at_k_divides_by_k() -> None:
    precisions = figures("precision", MATERIAL)
    assert precisions["P@1"] == (3, pytest.approx((1 + 1 + 0) / 3))
    assert precisions["P@3"] == (3, pytest.approx((2 / 3 + 1 / 3 + 0) / 3))
    assert precisions["P@50"] == (3, pytest.approx((3 / 50 + 1 / 50 + 0) / 3))


def test_ndcg_by_lexical_overlap() -> None:
    # Overlaps: a 1 of {ice heat melts}, b and c 1 of {ice heat}, d and e 0.
    by_overlap = figures("overlap", MATERIAL)
    assert by_overlap["<= 0%"] == (2, pytest.approx((1 + 0) / 2))
    assert by_overlap["<= 40%"] == (3, pytest.approx((1 + 1 + 0) / 3))
    assert by_overlap["<= 30%"] == by_overlap["<= 0%"]
    assert by_overlap["<= 50%"] == by_overlap["<= 100%"] == figures("rating", MATERIAL)["> 0"]


def test_overlap_is_a_share_of_all_terms() -> None:
    assert overlap(words("a b c"), words("c d")) == 0.25
    assert overlap(words(""), words("")) == 0
