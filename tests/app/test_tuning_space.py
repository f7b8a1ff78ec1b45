"""The space of tuning: how it is written, which values are tried, and on how many topics."""

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


def test_a_file_has_the_same_parameters(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text(
        '[params]\nk = [1, 2.5, "scores"]\n"a.b" = { from = 0.5, to = 1 }\n'
        'c = { from = 1, to = 100, scale = "log", steps = 3 }\n'
    )
    assert read_space(path) == read_params(["k=1,2.5,scores", "a.b=0.5:1", "c=1:100:log:3"])


@pytest.mark.parametrize(
    "param",
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
def test_invalid_ranges_and_lists_are_refused(param: str) -> None:
    with pytest.raises(UsageError, match="--param"):
        read_params([param])


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
def test_an_invalid_file_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(InvalidFiles):
        read_space(path)


def test_values_of_integer_parameters_are_rounded() -> None:
    (k,) = with_kinds(read_params(["k=1:10:log"]), {"k": True})
    assert k.grid() == (1, 2, 3, 6, 10) and all(isinstance(value, int) for value in k.grid())


def test_a_space_names_each_parameter_once_and_at_least_one() -> None:
    with pytest.raises(UsageError, match="k is given twice"):
        with_kinds(read_params(["k=1,2", "k=3,4"]), {})
    with pytest.raises(UsageError, match="no parameter to tune"):
        with_kinds([], {})


def test_a_grid_has_all_combinations_up_to_a_limit() -> None:
    space = read_params(["a=1,2", "b=x,y,z"])
    trials = propose_values(space, SearchMethod.grid, None, 1)
    assert len(trials) == 6 and trials[0] == {"a": 1, "b": "x"} and trials[-1] == {"a": 2, "b": "z"}
    with pytest.raises(UsageError, match="6 combinations, more than 5"):
        propose_values(space, SearchMethod.grid, 5, 1)


def test_random_values_follow_from_the_seed_and_are_tried_once() -> None:
    space = read_params(["a=0:1", "b=0.001:1000:log"])
    trials = propose_values(space, SearchMethod.random, 200, 7)
    assert trials == propose_values(space, SearchMethod.random, 200, 7)
    assert trials != propose_values(space, SearchMethod.random, 200, 8)
    assert trials[:50] == propose_values(space, SearchMethod.random, 50, 7), "more trials begin with the same"
    assert all(0 <= trial["a"] <= 1 and 0.001 <= trial["b"] <= 1000 for trial in trials)
    assert 60 < sum(trial["b"] < 1 for trial in trials) < 140, "about half are below the geometric mean"
    combinations = propose_values(read_params(["a=1,2", "b=1,2"]), SearchMethod.random, 30, 7)
    assert len(combinations) == 4 == len({repr(trial) for trial in combinations})


def test_each_rung_of_halving_has_fewer_trials_on_more_topics() -> None:
    assert rungs(27, 900)[-1] == Rung(1, 900) and rungs(27, 900)[0] == Rung(27, 33)
    assert rungs(30, 50) == [Rung(30, 50)], "50 topics are too few to divide"
    assert rungs(9, 70) == [Rung(9, 23), Rung(3, 70)]
    assert rungs(1, 900) == [Rung(1, 900)]


def test_bounds_are_the_values_of_a_list_or_the_ends_of_a_range() -> None:
    assert Dimension("a", (1, 2)).bounds == (1, 2)
    assert read_params(["a=0.12345678:2"])[0].bounds == (0.12345678, 2.0)
