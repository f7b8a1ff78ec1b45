"""Curves of a run: precision at levels of recall, and recall by depth, by ir-measures.

C. J. van Rijsbergen, Information Retrieval, 2nd edition 1979, chapter 7 (interpolated precision)
C. Buckley, E. M. Voorhees, Retrieval System Evaluation, in TREC: Experiment and Evaluation in Information
    Retrieval, 2005 (the eleven levels of recall)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LEVELS = tuple(tenth / 10 for tenth in range(11))
"""The levels of recall at which TREC gives interpolated precision: the best precision from there on."""

DEPTHS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000, 2000, 3000, 5000, 10_000)
"""Ranks up to which recall is taken: about evenly spread on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class Curves:
    """Means over topics: `precision` by level of recall, interpolated, and `recall` by rank, both ascending."""

    precision: Mapping[float, float]
    recall: Mapping[int, float]


def measures_of_curves(depth: int) -> tuple[str, ...]:
    """The measures that the curves of rankings with so many documents are made of.

    >>> measures_of_curves(4)[10:]
    ('IPrec@1.0', 'R@1', 'R@2', 'R@3', 'R@4')
    """
    return (*map(_precision, LEVELS), *map(_recall, _depths(depth)))


def curves(values: Mapping[str, float], depth: int) -> Curves:
    """The curves that measures make; `values` has those of `measures_of_curves`."""
    return Curves(
        {level: values[_precision(level)] for level in LEVELS},
        {rank: values[_recall(rank)] for rank in _depths(depth)},
    )


def _depths(depth: int) -> tuple[int, ...]:
    """Ranks up to the last one, which is always among them."""
    return (*(rank for rank in DEPTHS if rank < depth), max(depth, 1))


def _precision(level: float) -> str:
    return f"IPrec@{level:.1f}"


def _recall(rank: int) -> str:
    return f"R@{rank}"
