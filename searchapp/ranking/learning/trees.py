"""Gradient-boosted regression trees (Friedman, "Greedy function approximation", 2001), as arrays.

A tree asks at each node whether one feature is at most a threshold, and goes left if it is. Every node has a value,
what the tree would say if it stopped there, and a leaf's is what it says. So a score comes apart into what its features
gave: walking down, each step changes the value by what the feature that was asked there is worth for this row (Saabas,
"Interpreting random forests", 2014). Together with the values of the roots that is the score.

The trees are grown by scikit-learn's histograms with the logistic loss, in one thread: sums of several threads would
depend on their number. What they add up to is the log-odds that a candidate is relevant. Ranking pairs or lists instead
(LambdaMART) was not better where it was measured, see docs/nlps-analysis.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from searchapp.ranking.learning.linear import Arrays, broken, numbers, texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


if TYPE_CHECKING:
    Floats = NDArray[np.float64]
    Whole = NDArray[np.int64]

_NAMES = ("feature", "threshold", "left", "right", "value", "roots")


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees over the `features` that are named, their nodes one after the other; all arrays are (nodes,) but `roots`.

    `feature` is the place of the one that a node asks for, `left` and `right` are the nodes that follow; a leaf is
    followed by itself. `roots` (trees,) are the first nodes, and no node is followed by one before it.
    """

    features: tuple[str, ...]
    feature: Whole
    threshold: Floats
    left: Whole
    right: Whole
    value: Floats
    roots: Whole

    def scores(self, rows: Floats) -> Floats:
        """What the trees say of each row of features, (rows, features), added: (rows,)."""
        import numpy as np

        at = self._start(rows)
        while (followers := self._followers(rows, at)) is not None:
            at = followers
        return np.asarray(self.value[at].sum(axis=1))

    def parts(self, rows: Floats) -> Floats:
        """What each feature gave to the score of each row: (rows, features); with `bias` added they are the score."""
        import numpy as np

        at = self._start(rows)
        found = np.zeros(rows.shape)
        numbers_ = np.arange(len(rows))
        while (followers := self._followers(rows, at)) is not None:
            change = self.value[followers] - self.value[at]
            for tree in range(at.shape[1]):
                np.add.at(found, (numbers_, self.feature[at[:, tree]]), change[:, tree])
            at = followers
        return found

    @property
    def bias(self) -> float:
        """What the trees say of a row before they look at it."""
        return float(self.value[self.roots].sum())

    @property
    def least(self) -> float:
        """Less than which the trees say of no row: the sum of the least leaf of each."""
        import numpy as np

        leaves = np.where(self.left == np.arange(len(self.left)), self.value, np.inf)
        return float(np.minimum.reduceat(leaves, self.roots).sum())

    def _start(self, rows: Floats) -> Whole:
        import numpy as np

        return np.broadcast_to(self.roots, (len(rows), len(self.roots)))

    def _followers(self, rows: Floats, at: Whole) -> Whole | None:
        """The nodes that follow for each row and tree; None where all are leaves."""
        import numpy as np

        if not len(rows) or bool((self.left[at] == at).all()):
            return None
        asked = rows[np.arange(len(rows))[:, None], self.feature[at]]
        return np.where(asked <= self.threshold[at], self.left[at], self.right[at])

    def header(self) -> dict[str, Any]:
        """What a file says of it beside its arrays."""
        return {"features": list(self.features), "trees": len(self.roots)}

    def arrays(self) -> dict[str, Any]:
        """Its arrays, for a file."""
        return {name: getattr(self, name) for name in _NAMES}

    @classmethod
    def read(cls, header: Mapping[str, Any], arrays: Arrays) -> Trees:
        """The trees that `header` and `arrays` describe.

        Raises:
            DataError: they describe none.
        """
        import numpy as np

        names = texts(header, "features")
        held = arrays.get("value")
        nodes = -1 if held is None else held.size
        roots = arrays.get("roots")
        left, right = (
            numbers(arrays, name, nodes, below=nodes).astype(np.int64) for name in ("left", "right")
        )
        places = np.arange(nodes)
        is_leaf = left == places
        # Who follows lies behind, so that every walk ends.
        if any(((one < places) | ((one == places) != is_leaf)).any() for one in (left, right)):
            raise broken("trees")
        return cls(
            names,
            numbers(arrays, "feature", nodes, below=len(names)).astype(np.int64),
            numbers(arrays, "threshold", nodes),
            left,
            right,
            numbers(arrays, "value", nodes),
            numbers(arrays, "roots", -1 if roots is None else roots.size, below=nodes).astype(np.int64),
        )


def joined(features: Sequence[str], grown: Sequence[Mapping[str, Any]]) -> Trees:
    """Trees from the arrays of each: `feature`, `threshold`, `left`, `right` and `value` of its nodes, the root first.

    A leaf has `left` -1. The numbers of nodes are those within their tree.
    """
    import numpy as np

    sizes = [len(one["value"]) for one in grown]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    held: dict[str, list[Any]] = {name: [] for name in _NAMES[:-1]}
    for root, one in zip(roots, grown, strict=True):
        places = np.arange(len(one["value"]))
        is_leaf = np.asarray(one["left"]) < 0
        for name in ("left", "right"):
            held[name].append(root + np.where(is_leaf, places, one[name]))
        held["feature"].append(np.where(is_leaf, 0, one["feature"]))
        held["threshold"].append(np.where(is_leaf, 0.0, one["threshold"]))
        held["value"].append(np.asarray(one["value"], dtype=np.float64))
    whole = {name: np.concatenate(found) for name, found in held.items()}
    for name in ("feature", "left", "right"):
        whole[name] = whole[name].astype(np.int64)
    return Trees(
        tuple(features),
        whole["feature"],
        whole["threshold"],
        whole["left"],
        whole["right"],
        whole["value"],
        roots,
    )


_NO_FOLLOWER = -1


def grown(
    names: Sequence[str],
    rows: Any,
    relevant: NDArray[np.bool_],
    *,
    trees: int,
    leaves: int,
    fewest: int,
    rate: float,
    seed: int,
) -> Trees:
    """The trees that rows of the features `names`, (candidates, features) float64, make; `relevant` is (candidates,).

    There are so many `trees` of at most so many `leaves`, each with `fewest` candidates at least, at a learning `rate`.
    The same rows give the same trees, with the same version of scikit-learn.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    learner = HistGradientBoostingClassifier(
        max_iter=trees,
        max_leaf_nodes=leaves,
        min_samples_leaf=fewest,
        learning_rate=rate,
        early_stopping=False,
        random_state=seed,
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
