"""Grows trees that tell relevant candidates from others: gradient boosting of the logistic loss.

Friedman, "Greedy function approximation: a gradient boosting machine", 2001, by scikit-learn's histograms, in one
thread: sums of several threads would depend on their number. What the trees add up to is the log-odds that a
candidate is relevant. Ranking pairs or lists instead (LambdaMART) was not better where it was measured, see
docs/nlps-analysis.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from searchapp.ranking.learning.trees import Trees, joined

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NO_FOLLOWER = -1


@dataclass(frozen=True, slots=True)
class Growth:
    """How many `trees`, of how many `leaves` with at least `fewest` candidates each, at which learning `rate`."""

    trees: int
    leaves: int
    fewest: int
    rate: float
    seed: int


def grown(names: Sequence[str], rows: Any, relevant: NDArray[np.bool_], growth: Growth) -> Trees:
    """The trees that rows of the features `names`, (candidates, features) float64, make; `relevant` is (candidates,).

    The same rows give the same trees, with the same version of scikit-learn.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    learner = HistGradientBoostingClassifier(
        max_iter=growth.trees,
        max_leaf_nodes=growth.leaves,
        min_samples_leaf=growth.fewest,
        learning_rate=growth.rate,
        early_stopping=False,
        random_state=growth.seed,
    )
    with threadpool_limits(limits=1):
        learner.fit(rows, relevant)
    # What scikit-learn has no public name for; the test that the scores are its own guards it.
    found = [_tree(of_round[0].nodes) for of_round in learner._predictors]
    found[0]["value"] += learner._baseline_prediction.item()
    return joined(names, found)


def _tree(nodes: Any) -> dict[str, Any]:
    """A tree of scikit-learn's, with the mean of the leaves below as the value of a node, by training rows."""
    import numpy as np

    is_leaf = nodes["is_leaf"].astype(bool)
    left = np.where(is_leaf, _NO_FOLLOWER, nodes["left"].astype(np.int64))
    right = np.where(is_leaf, _NO_FOLLOWER, nodes["right"].astype(np.int64))
    value, count = nodes["value"].astype(np.float64), nodes["count"].astype(np.float64)
    for place in range(len(nodes) - 1, -1, -1):  # who follows lies behind
        if not is_leaf[place]:
            below = [left[place], right[place]]
            value[place] = float((count[below] * value[below]).sum() / count[place])
    return {
        "feature": nodes["feature_idx"].astype(np.int64),
        "threshold": nodes["num_threshold"].astype(np.float64),
        "left": left,
        "right": right,
        "value": value,
    }
