"""The scorer of the explanation task of 2019."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.errors import DataError, NotScorable
from searchapp.tasks.explanation.scorer_2019 import (
    BREAKDOWNS,
    MAP_OVER_ALL,
    RankedExplanations,
    fold_question_ids,
    read_gold,
    score,
)
from tests.files import write

C, G, L = ("CENTRAL",), ("GROUNDING",), ("LEXGLUE",)


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def figures(name: str, material: RankedExplanations) -> dict[str, Any]:
    return {row.group: (row.count, dict(row.values)) for row in BREAKDOWNS[name](material).rows}


# The worked example in the task's description: ranks and roles of the facts that explain a question.
EXAMPLE = {1: C, 7: G, 18: C, 53: G, 102: C, 384: C, 408: L, 858: C, 860: C, 3778: L, 3956: L}
NO_OVERLAP = {860: 165, 3778: 751, 3956: 878}
"""Ranks of facts without overlap with the question, and their ranks among all facts without overlap.

The description prints the averages 0.2026... and 0.0040... These ranks are the only integers that give both: the
164 other facts without overlap before rank 860 have ranks between 408 and 858.
"""


@pytest.fixture
def example() -> RankedExplanations:
    """Return 4,947 ranked facts; the facts with overlap contain the question's word."""
    rest = set(range(500, 664)) | {860}
    rest |= set(range(1000, 1585)) | {3778}  # 585 others between the ranks 165 and 751
    rest |= set(range(3800, 3926)) | {3956}  # 126 between 751 and 878
    ranked = [f"f{rank}" for rank in range(1, 4948)]
    texts = {f"f{rank}": "other" if rank in rest else "ice" for rank in range(1, 4948)}
    gold = {"q": {f"f{rank}": roles for rank, roles in EXAMPLE.items()}}
    assert [sum(other <= rank for other in rest) for rank in NO_OVERLAP] == list(NO_OVERLAP.values())
    return RankedExplanations({"q": ranked}, gold, texts, {"q": "ice"}, words)


def test_the_worked_example_has_the_averages_of_its_description(example: RankedExplanations) -> None:
    official = score(example.rankings, example.gold)
    assert official.value == pytest.approx(0.14862461238725275, abs=1e-16)
    assert official.warnings == ()
    by_role = {role: values["MAP"] for role, (_count, values) in figures("role", example).items()}
    assert by_role == pytest.approx(
        {"CENTRAL": 0.19516123051492149, "GROUNDING": 0.10294117647058823, "LEXGLUE": 0.0012593148624291516},
        abs=1e-16,
    )
    by_overlap = {group: values["MAP"] for group, (_count, values) in figures("overlap", example).items()}
    assert by_overlap == pytest.approx(
        {"LEXOVERLAP": 0.20264768732550112, "NOLEXOVERLAP": 0.004046859466057559}, abs=1e-16
    )


def test_the_worked_example_has_the_precisions_of_its_description(example: RankedExplanations) -> None:
    precisions = {
        k: round(values["precision"], 3) for k, (_, values) in figures("precision", example).items()
    }
    assert precisions == {"P@1": 1.0, "P@2": 0.5, "P@3": 0.333, "P@4": 0.25, "P@5": 0.2}


SMALL = RankedExplanations(
    rankings={"q1": ["a", "x", "b", None, "c"], "q2": ["x", "d"], "q3": ["y"]},
    gold={"q1": {"a": C, "b": (*G, *L), "c": C}, "q2": {"d": C}, "q3": {}, "q4": {"a": C}},
    texts={"a": "ice melts", "b": "heat", "c": "cold", "d": "sun", "x": "ice", "y": "sun"},
    questions={"q1": "ice", "q2": "the moon"},
    terms=words,
)


def test_a_role_is_scored_without_the_facts_of_other_roles() -> None:
    by_role = figures("role", SMALL)
    # q1 CENTRAL: a and c without b: a x - c, (1/1 + 2/4) / 2; q2: 1/2
    assert by_role["CENTRAL"] == (2, pytest.approx({"MAP": (0.75 + 0.5) / 2, MAP_OVER_ALL: (0.75 + 0.5) / 2}))
    # GROUNDING and LEXGLUE of q1: b follows x if a and c are removed
    assert by_role["GROUNDING"] == by_role["LEXGLUE"] == (1, {"MAP": 0.5, MAP_OVER_ALL: 0.25})


def test_facts_with_and_without_overlap_are_ranked_separately() -> None:
    by_overlap = figures("overlap", SMALL)
    # q1: a and x have `ice`; b, a missing value and c do not: (1/1 + 2/3) / 2. q2: x and d do not: 1/2
    assert by_overlap["LEXOVERLAP"] == (1, {"MAP": 1.0, MAP_OVER_ALL: 0.5})
    expected = ((1 + 2 / 3) / 2 + 1 / 2) / 2
    assert by_overlap["NOLEXOVERLAP"] == (2, pytest.approx({"MAP": expected, MAP_OVER_ALL: expected}))


def test_precision_divides_by_a_short_explanation() -> None:
    precisions = figures("precision", SMALL)
    assert precisions["P@1"] == (2, {"precision": (1 + 0) / 2})
    assert precisions["P@3"] == (2, pytest.approx({"precision": (2 / 3 + 1 / 1) / 2}))
    assert precisions["P@5"] == (2, pytest.approx({"precision": (3 / 3 + 1 / 1) / 2}))


def test_map_by_length_has_a_histogram() -> None:
    assert BREAKDOWNS["length"](SMALL).histogram == "MAP"
    # q1: 1/1, 2/3, 3/5
    expected = {"1": (1, {"MAP": 0.5}), "3": (1, {"MAP": pytest.approx((1 + 2 / 3 + 3 / 5) / 3)})}
    assert figures("length", SMALL) == expected


def test_breakdowns_without_answered_questions_are_empty() -> None:
    unanswered = RankedExplanations({}, SMALL.gold, SMALL.texts, SMALL.questions, words)
    for name in BREAKDOWNS:
        assert all(row.count == 0 for row in BREAKDOWNS[name](unanswered).rows)


def test_average_precision_divides_by_all_facts() -> None:
    assert score({"q": ["x", "a", "b"]}, {"q": {"a": C, "b": C}}).value == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_a_missing_fact_scores_0_and_the_honest_figure_does_not() -> None:
    result = score({"q": ["a"]}, {"q": {"a": C, "b": C}})
    assert (result.value, result.honest) == (0.0, {"MAP": 0.5})
    assert "1 of 1 questions has a ranking that lacks a fact" in result.warnings[0]
    assert "0.500000" in result.warnings[0]


def test_unanswered_questions_are_excluded() -> None:
    result = score({"q": ["a"]}, {"q": {"a": C}, "r": {"b": C}})
    assert (result.value, result.per_topic, result.honest) == (1.0, {"q": 1.0}, {"MAP": 0.5})
    assert "excludes questions without ranking, 1 of 2" in result.warnings[0]


def test_no_answered_question_scores_0() -> None:
    assert score({"x": ["a"]}, {"q": {"a": C}}).value == 0
    empty = score({"x": ["a"]}, {})
    assert empty.value == 0 and math.isnan(empty.honest["MAP"]) and len(empty.warnings) == 1


def test_the_last_spelling_of_a_question_id_by_code_point_counts() -> None:
    rankings = {"q": ["a"], "Q": ["b"]}
    assert fold_question_ids(rankings) == {"q": ["a"]}
    assert any("in other letter case" in warning for warning in score(rankings, {"q": {"a": C}}).warnings)


def test_an_explanation_of_blanks_scores_0_and_counts() -> None:
    result = score({"q": ["a"], "r": ["a"]}, {"q": {"a": C}, "r": {}})
    assert result.value == 0.5 and result.honest == {"MAP": 1.0}


put = partial(write, name="gold.tsv")


def test_gold_ids_are_folded_and_the_last_row_of_a_question_counts(tmp_path: Path) -> None:
    text = "\n explanation\texplanation\tquestionID\n\tA|X\tQ\n\t\tR\n\tB|CENTRAL b|NEG C|\tq\n\tNA\ts\n"
    assert read_gold(put(tmp_path, text)) == {"q": {"b": ("CENTRAL", "NEG"), "c": ("",)}}


@pytest.mark.parametrize(
    ("text", "official"),
    [
        ("questionID\n", "KeyError: \"['explanation'] not in index\""),
        ("a\tb\n", "KeyError: \"None of [Index(['questionID', 'explanation'], dtype='object')]"),
        (
            "questionID\texplanation\nq\ta|C\tx\n",
            "pandas.errors.ParserError: Error tokenizing data. C error: Exp",
        ),
        (
            "questionID\texplanation\nq\ta\nq\ta|C\n",
            "ValueError: not enough values to unpack (expected 2, got 1)",
        ),
        ("", "pandas.errors.EmptyDataError: No columns to parse from file"),
    ],
)
def test_gold_that_stops_the_official_scorer(tmp_path: Path, text: str, official: str) -> None:
    with pytest.raises(NotScorable) as raised:
        read_gold(put(tmp_path, text))
    assert raised.value.official.startswith(official)


def test_missing_gold_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_gold(tmp_path / "gold.tsv")


@given(st.permutations([f"f{number}" for number in range(8)]), st.sets(st.integers(0, 7), min_size=1))
def test_map_equals_its_definition(ranked: list[str], wanted: set[int]) -> None:
    facts = {f"f{number}": C for number in wanted}
    precisions = [
        sum(fact in facts for fact in ranked[:rank]) / rank
        for rank in range(1, 9)
        if ranked[rank - 1] in facts
    ]
    expected = sum(precisions) / len(facts)
    assert score({"q": ranked}, {"q": facts}).value == pytest.approx(expected, abs=1e-12)
