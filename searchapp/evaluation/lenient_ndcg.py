"""NDCG for ranked types of a hierarchy, with gains that fall linearly with the distance to a gold type.

    K. Balog and R. Neumayer, "Hierarchical target type identification for entity-oriented queries", CIKM 2012

as the scorer of SMART computes it, whose own choices are named in the functions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from searchapp.formats.type_hierarchy import Hierarchy


def most_specific(gold: Sequence[str], hierarchy: Hierarchy) -> list[str]:
    """The gold types, each once, without those that are a proper ancestor of another gold type."""
    paths = hierarchy.paths
    ancestors = {ancestor for type_ in gold for ancestor in paths[type_][1:]}
    return [type_ for type_ in dict.fromkeys(gold) if type_ not in ancestors]


def gains(gold: Sequence[str], hierarchy: Hierarchy) -> dict[str, float]:
    """The gain of each type that has one by definition: 1 - d / H.

    d is the number of steps to the nearest most specific gold type up or down a path, H the greatest depth. The
    types are those on the paths of the most specific gold types, and those on the paths of every type that is
    below one of them and whose stated depth is greater. All of `gold` must be in the hierarchy.
    """
    paths, depths = hierarchy.paths, hierarchy.depths
    distances: dict[str, int] = {}
    for wanted in most_specific(gold, hierarchy):
        below = [wanted]
        below += [type_ for type_, path in paths.items() if depths[type_] > depths[wanted] and wanted in path]
        for type_ in dict.fromkeys(step for lower in below for step in paths[lower]):
            distance = _distance(paths[type_], paths[wanted])
            distances[type_] = min(distance, distances.get(type_, distance))
    return {type_: 1 - distance / hierarchy.greatest_depth for type_, distance in distances.items()}


def _distance(one: Sequence[str], other: Sequence[str]) -> int:
    """The steps between the types that two paths begin with; one of them is on the path of the other."""
    return other.index(one[0]) if one[0] in other else one.index(other[0])


def ndcg(predicted: Sequence[str], gained: Mapping[str, float], cutoff: int) -> float:
    """DCG of the predicted types over that of all types with a gain, both cut off after `cutoff` places.

    A type that is predicted again gains again, as in the scorer, so that the value can exceed 1.
    """
    ideal = _dcg(sorted(gained.values(), reverse=True)[:cutoff])
    return _dcg([gained.get(type_, 0.0) for type_ in predicted[:cutoff]]) / ideal


def _dcg(earned: Sequence[float]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(earned, 1))
