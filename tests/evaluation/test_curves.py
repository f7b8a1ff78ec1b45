"""Curves of interpolated precision and of recall equal those of trec_eval."""

from __future__ import annotations

import pytest

from searchapp.evaluation.measures import DEPTHS, LEVELS, curves, measure, measures_of_curves

RANKINGS = {"1": ["a", "x", "b", "y"], "2": ["x", "c"]}
QRELS = {"1": {"a": 1, "b": 1}, "2": {"c": 1, "d": 1}}


def test_curves_are_interpolated_precision_and_recall_by_rank() -> None:
    result = curves(measure(RANKINGS, QRELS, measures_of_curves(4)).values, 4)
    assert tuple(result.precision) == LEVELS and tuple(result.recall) == (1, 2, 3, 4)
    # Topic 1 has precision 1 up to recall .5 and 2/3 beyond; topic 2 has 1/2 up to recall .5 and 0 beyond.
    assert result.precision[0.0] == result.precision[0.5] == pytest.approx(0.75)
    assert result.precision[0.6] == result.precision[1.0] == pytest.approx(1 / 3)
    assert list(result.recall.values()) == pytest.approx([0.25, 0.5, 0.75, 0.75])


def test_recall_is_measured_down_to_the_last_rank() -> None:
    for depth in (0, 1, 7, 500, 501, 20_000):
        names = measures_of_curves(depth)
        ranks = [int(name.removeprefix("R@")) for name in names if name.startswith("R@")]
        assert ranks == sorted(set(ranks)) and ranks[-1] == max(depth, 1)
        assert set(ranks[:-1]) <= set(DEPTHS)
