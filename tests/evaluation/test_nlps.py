"""The scorer of natural language premise selection."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.errors import DataError, NotScorable, UsageError
from searchapp.tasks.nlps.scorer import read_gold, score
from tests.files import write

SHORT = "ValueError: invalid format of the prediction file, the systems have to retrieve at least 2 premises"


put = partial(write, name="gold.json")


def test_average_precision_is_the_mean_of_the_precisions_at_the_hits() -> None:
    result = score({"a": ["1", "9", "2", "3"]}, {"a": [1, 2, 3, 4]}, cutoff=3)
    assert result.measure == "MAP@3"
    assert result.value == pytest.approx((1 + 2 / 3) / 2, abs=1e-15)
    assert result.per_topic == {"a": result.value}


def test_a_warning_shows_the_figure_divided_by_all_gold_premises() -> None:
    (warning,) = score({"a": ["1", "9", "2"]}, {"a": [1, 2, 3, 4]}, cutoff=3).warnings
    assert "some are missing for 1 of 1 statements: divided by all, it is 0.416667" in warning


def test_a_complete_ranking_has_no_warning() -> None:
    assert score({"a": ["9", "1"]}, {"a": [1]}, cutoff=2).warnings == ()


def test_each_spelling_of_an_id_is_a_hit_with_a_warning() -> None:
    result = score({"a": [" 7", "+7", "0_07", "٧"]}, {"a": [7]}, cutoff=4)
    assert result.value == 1
    assert "several spellings" in result.warnings[0]


def test_gold_as_text_never_matches_and_repeats_have_no_effect() -> None:
    result = score({"a": ["1", "2"], "b": ["1", "2"]}, {"a": ["1"], "b": [2, 2]}, cutoff=2)
    assert result.per_topic == {"a": 0, "b": 0.5}
    assert any("gold premises as strings" in warning for warning in result.warnings)


def test_an_empty_gold_list_counts_as_zero() -> None:
    result = score({"a": ["1"], "b": ["1"]}, {"a": [], "b": [1]}, cutoff=1)
    assert result.value == 0.5
    assert result.warnings == ("1 of 2 statements has no gold premise; the official AP of each is 0",)


def test_the_mean_of_no_statements_is_nan() -> None:
    result = score({"a": ["x"]}, {})
    assert math.isnan(result.value)
    assert result.measure == "MAP@500"
    assert len(result.warnings) == 1


@pytest.mark.parametrize(
    ("ranked", "official"),
    [
        (None, "KeyError: 'it\\'s \"a\"'"),
        (["1"], f"{SHORT} for each statement"),
        (["1", "x-1"], "ValueError: invalid literal for int() with base 10: 'x-1'"),
        (["1", "1.0"], "ValueError: invalid literal for int() with base 10: '1.0'"),
        ([None, "1"], "ValueError: cannot convert float NaN to integer"),
    ],
)
def test_predictions_that_stop_the_official_scorer(ranked: list[str | None] | None, official: str) -> None:
    statement = 'it\'s "a"'
    predictions = {} if ranked is None else {statement: ranked}
    with pytest.raises(NotScorable) as raised:
        score(predictions, {statement: [1]}, cutoff=2)
    assert raised.value.official == official
    assert raised.value.exit_code == 4


def test_an_error_names_the_first_problem_in_the_order_of_the_gold() -> None:
    with pytest.raises(NotScorable, match="missing value"):
        score({"a": ["1"], "b": [None], "c": ["x"]}, {"a": [1], "b": [1], "c": [1], "d": []}, cutoff=1)


def test_premises_after_the_cut_off_are_not_parsed() -> None:
    assert score({"a": ["1", "x", None]}, {"a": [1]}, cutoff=1).value == 1


def test_the_cut_off_must_be_positive() -> None:
    with pytest.raises(UsageError):
        score({}, {}, cutoff=0)


def test_gold_keeps_the_last_value_of_a_repeated_statement(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbf{"a": {"premises": [1]}, "b": {"premises": []}, "a": {"premises": [2, "3"]}}'
    gold = read_gold(put(tmp_path, content))
    assert list(gold.items()) == [("a", [2, "3"]), ("b", [])]


@pytest.mark.parametrize(
    ("content", "official"),
    [
        (b'{"a": {"text": "A"}}', "KeyError: 'premises'"),
        (b"{", "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: "),
        (b"", "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
        (b'{"\xff": 1}', "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 2"),
        (b'{"a": ' + b"9" * 5000 + b"}", "ValueError: Exceeds the limit (4300 digits)"),
    ],
)
def test_gold_that_stops_the_official_scorer(tmp_path: Path, content: bytes, official: str) -> None:
    with pytest.raises(NotScorable) as raised:
        read_gold(put(tmp_path, content))
    assert raised.value.official.startswith(official)


@pytest.mark.parametrize("content", [b"[]", b'{"a": [1]}', b'{"a": {"premises": 1}}'])
def test_gold_of_another_shape_is_rejected(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError):
        read_gold(put(tmp_path, content))


def test_missing_gold_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        read_gold(tmp_path / "gold.json")


@given(st.lists(st.integers(0, 20), min_size=1, unique=True), st.sets(st.integers(0, 20)), st.integers(1, 25))
def test_map_equals_its_definition(ranked: list[int], gold: set[int], cutoff: int) -> None:
    cutoff = min(cutoff, len(ranked))
    top = ranked[:cutoff]
    precisions = [
        len(gold & set(top[:rank])) / rank for rank in range(1, cutoff + 1) if top[rank - 1] in gold
    ]
    expected = sum(precisions) / len(precisions) if precisions else 0
    result = score({"a": [str(premise) for premise in ranked]}, {"a": list(gold)}, cutoff)
    assert result.value == pytest.approx(expected, abs=1e-12)
