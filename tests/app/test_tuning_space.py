"""What is tuned over: how it is written, which values are tried, and on how many topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.app.experiments.tuning_space import (
    Dimension,
    Rung,
    SearchMethod,
    propose_values,
    read_params,
    read_space,
    rungs,
    with_kinds,
)
from searchapp.errors import InvalidFiles, UsageError


def test_values_and_ranges_are_read() -> None:
    values, linear, log, both = read_params(["k=1,2.5,scores", "a=0.5:1", "b=0.1:10:log", "c=1:100:log:3"])
    assert values.grid() == (1, 2.5, "scores")
    assert linear.grid() == (0.5, 0.625, 0.75, 0.875, 1.0)
    assert log.grid() == (0.1, 0.3162, 1.0, 3.162, 10.0)
    assert both.grid() == (1.0, 10.0, 100.0)


def test_a_file_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text(
        '[params]\nk = [1, 2.5, "scores"]\n"a.b" = { from = 0.5, to = 1 }\n'
        'c = { from = 1, to = 100, scale = "log", steps = 3 }\n'
    )
    assert read_space(path) == read_params(["k=1,2.5,scores", "a.b=0.5:1", "c=1:100:log:3"])


@pytest.mark.parametrize(
    "given",
    [
        "",
        "k",
        "=1",
        "k=",
        "k=1,,2",
        "k=1,1",
        "k=2:1",
        "k=1:1",
        "k=a:b",
        "k=1:2:3:4",
        "k=1:2:log:x",
        "k=1:2:lin",
        "k=0:1:log",
        "k=-1:1:log",
        "k=nan:1",
        "k=1:inf",
        "k=1:2:1",
        "k=1:2:99999",
        "k=[1],[2]",
    ],
)
def test_what_is_no_range_and_no_list_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="--param"):
        read_params([given])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "params = 1",
        "[params]\nk = 1",
        "[params]\nk = []",
        "[params]\nk = { from = 1 }",
        "[params]\nk = { from = 2, to = 1 }",
        "[params]\nk = { from = 1, to = 2, scale = 'x' }",
        "[params]\nk = { from = 1, to = 2, by = 1 }",
        "[ovr]\nk = [1]",
        "[params]\nk = { from = true, to = 2 }",
        "[params]\nk = [[1]]",
        "[params]\nk = { from = 1, to = 2, steps = 1.5 }",
    ],
)
def test_a_file_that_is_not_right_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(InvalidFiles):
        read_space(path)


def test_a_parameter_of_whole_numbers_is_rounded_and_one_given_twice_refused() -> None:
    (k,) = with_kinds(read_params(["k=1:10:log"]), {"k": True})
    assert k.grid() == (1, 2, 3, 6, 10) and all(isinstance(value, int) for value in k.grid())
    with pytest.raises(UsageError, match="k is given twice"):
        with_kinds(read_params(["k=1,2", "k=3,4"]), {})
    with pytest.raises(UsageError, match="no parameter to tune"):
        with_kinds([], {})


def test_a_grid_has_all_combinations_and_not_too_many() -> None:
    space = read_params(["a=1,2", "b=x,y,z"])
    found = propose_values(space, SearchMethod.grid, None, 1)
    assert len(found) == 6 and found[0] == {"a": 1, "b": "x"} and found[-1] == {"a": 2, "b": "z"}
    with pytest.raises(UsageError, match="6 combinations, more than 5"):
        propose_values(space, SearchMethod.grid, 5, 1)


def test_random_values_follow_from_the_seed_and_are_tried_once() -> None:
    space = read_params(["a=0:1", "b=0.001:1000:log"])
    found = propose_values(space, SearchMethod.random, 200, 7)
    assert (
        found
        == propose_values(space, SearchMethod.random, 200, 7)
        != propose_values(space, SearchMethod.random, 200, 8)
    )
    assert found[:50] == propose_values(space, SearchMethod.random, 50, 7), "more trials begin with the same"
    assert all(0 <= one["a"] <= 1 and 0.001 <= one["b"] <= 1000 for one in found)
    assert 60 < sum(one["b"] < 1 for one in found) < 140, "half of them below the middle of the logarithm"
    few = propose_values(read_params(["a=1,2", "b=1,2"]), SearchMethod.random, 30, 7)
    assert len(few) == 4 == len({repr(one) for one in few})


def test_the_rungs_of_halving_have_ever_fewer_trials_on_more_topics() -> None:
    assert rungs(27, 900)[-1] == Rung(1, 900) and rungs(27, 900)[0] == Rung(27, 33)
    assert rungs(30, 50) == [Rung(30, 50)], "so few topics are not divided"
    assert rungs(9, 70) == [Rung(9, 23), Rung(3, 70)]
    assert rungs(1, 900) == [Rung(1, 900)]


def test_bounds_are_the_values_or_the_ends() -> None:
    assert Dimension("a", (1, 2)).bounds == (1, 2)
    assert read_params(["a=0.12345678:2"])[0].bounds == (0.12345678, 2.0)
