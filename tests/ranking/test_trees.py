"""Decision trees: scores, contributions of features, training and files."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from searchapp.errors import DataError
from searchapp.ranking.learning import StoredModel, Trees, grow_trees, join_trees
from tests.profile import FULL

# The first tree splits at a <= 1 and b <= 2; the second is one leaf with the value 0.5.
FIRST = {
    "feature": [0, 1, 0, 0, 0],
    "threshold": [1.0, 2.0, 0.0, 0.0, 0.0],
    "left": [1, 3, -1, -1, -1],
    "right": [2, 4, -1, -1, -1],
    "value": [0.0, -1.0, 4.0, -3.0, 1.0],
}
SECOND = {"feature": [0], "threshold": [0.0], "left": [-1], "right": [-1], "value": [0.5]}
TREES = join_trees(["a", "b"], [FIRST, SECOND])
ROWS = np.array([[1.0, 2.0], [1.0, 2.5], [1.5, 0.0]])

GROWTH: Any = {"num_trees": 8, "num_leaves": 4, "min_samples": 5, "learning_rate": 0.3, "seed": 3}


def rows() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    values = random.normal(size=(400, 3))
    return values, values[:, 0] + values[:, 1] ** 2 + random.normal(size=400) > 1.5


def test_a_row_goes_left_up_to_the_threshold() -> None:
    assert TREES.scores(ROWS).tolist() == [-2.5, 1.5, 4.5]
    assert TREES.scores(ROWS[:0]).tolist() == []
    assert TREES.least == -2.5


def test_contributions_of_features_add_up_to_the_score() -> None:
    parts = TREES.parts(ROWS)
    assert parts.tolist() == [[-1.0, -2.0], [-1.0, 2.0], [4.0, 0.0]]
    np.testing.assert_array_equal(parts.sum(axis=1) + TREES.bias, TREES.scores(ROWS))


def test_grown_trees_score_like_scikit_learn() -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    values, relevant = rows()
    learner = HistGradientBoostingClassifier(
        max_iter=8,
        max_leaf_nodes=4,
        min_samples_leaf=5,
        learning_rate=0.3,
        early_stopping=False,
        random_state=3,
    ).fit(values, relevant)
    trees = grow_trees(["a", "b", "c"], values, relevant, **GROWTH)
    np.testing.assert_allclose(trees.scores(values), learner.decision_function(values), rtol=1e-9)
    np.testing.assert_allclose(trees.parts(values).sum(axis=1) + trees.bias, trees.scores(values), rtol=1e-9)
    assert trees.least <= trees.scores(values).min()


def digest() -> str:
    trees = grow_trees(["a", "b", "c"], *rows(), **GROWTH)
    return StoredModel.of(trees.header(), trees.arrays()).digest


SCRIPT = "from tests.ranking.test_trees import digest; print(digest())"


def test_trees_do_not_depend_on_process_and_number_of_threads() -> None:
    with threadpool_limits(2, "openmp"):
        digests = {digest()}
    for threads in ("1", "2") if FULL else ("1",):
        settings = {"OMP_NUM_THREADS": threads, "PYTHONHASHSEED": threads}
        command = [sys.executable, "-c", SCRIPT]
        done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=True)
        digests.add(done.stdout.strip())
    assert len(digests) == 1


def test_stored_trees_are_read_back() -> None:
    read = Trees.read(TREES.header(), TREES.arrays())
    stored = StoredModel.of(TREES.header(), TREES.arrays())
    assert StoredModel.of(read.header(), read.arrays()).digest == stored.digest


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("feature", [0, 2, 0, 0, 0, 0]),
        ("left", [1, 0, 2, 3, 4, 5]),  # a cycle of the first two nodes
        ("right", [2, 4, 3, 3, 4, 5]),  # a node with one child
        ("threshold", [1.0, float("nan"), 0.0, 0.0, 0.0, 0.0]),
        ("value", [0.0]),
        ("roots", [0, 6]),
    ],
)
def test_invalid_trees_are_rejected(name: str, value: list[float]) -> None:
    with pytest.raises(DataError, match="train again"):
        Trees.read(TREES.header(), TREES.arrays() | {name: np.array(value)})
