"""Lenient NDCG equals a literal implementation of its definition on random hierarchies."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchapp.tasks.smart_types.scorer_dbpedia import Hierarchy, gains, most_specific, ndcg

TREE = Hierarchy(
    {"Agent": 1, "Person": 2, "Poet": 3, "Mayor": 3, "Place": 1},
    {"Agent": "Thing", "Person": "Agent", "Poet": "Person", "Mayor": "Person", "Place": "Thing"},
    3,
)


def test_gains_decrease_with_each_step_in_the_hierarchy() -> None:
    assert gains(["Person"], TREE) == pytest.approx(
        {"Person": 1, "Agent": 2 / 3, "Poet": 2 / 3, "Mayor": 2 / 3}
    )
    assert gains(["Poet", "Person", "Agent"], TREE) == pytest.approx(
        {"Poet": 1, "Person": 2 / 3, "Agent": 1 / 3}
    )


def test_ancestors_of_gold_types_are_not_gold_types() -> None:
    assert most_specific(["Agent", "Poet", "Place", "Poet"], TREE) == ["Poet", "Place"]


def test_the_best_ranking_has_ndcg_1_and_repeats_gain_again() -> None:
    gained = gains(["Poet"], TREE)
    assert ndcg(["Poet", "Person", "Agent"], gained, 5) == 1
    assert ndcg(["Poet", "Poet", "Poet"], gained, 5) > 1
    assert ndcg(["Place", "ghost"], gained, 5) == 0
    assert ndcg(["Place"] * 5 + ["Poet"], gained, 5) == 0


@st.composite
def hierarchies(draw: st.DrawFn) -> Hierarchy:
    """Draw a forest of up to nine types with depths that may contradict the tree."""
    count = draw(st.integers(1, 9))
    parents = {str(i): str(draw(st.integers(-1, i - 1))) for i in range(count)}
    depths = {str(i): draw(st.integers(0, 5)) for i in range(count)}
    return Hierarchy(depths, parents, max(1, *depths.values(), *[0]))


@given(hierarchies(), st.data())
def test_gains_equal_the_definition(hierarchy: Hierarchy, data: st.DataObject) -> None:
    types = list(hierarchy.depths)
    gold = data.draw(st.lists(st.sampled_from(types), min_size=1, max_size=4))
    paths = hierarchy.paths
    leaves = {leaf for leaf in gold if not any(leaf != other and leaf in paths[other] for other in gold)}
    expanded = {ancestor for leaf in leaves for ancestor in paths[leaf]}
    for leaf in leaves:
        for type_ in types:
            if hierarchy.depths[type_] > hierarchy.depths[leaf] and leaf in paths[type_]:
                expanded |= set(paths[type_])

    def steps(type_: str, leaf: str) -> float:
        if type_ in paths[leaf]:
            return paths[leaf].index(type_)
        return paths[type_].index(leaf) if leaf in paths[type_] else math.inf

    expected = {
        type_: 1 - min(steps(type_, leaf) for leaf in leaves) / hierarchy.greatest_depth for type_ in expanded
    }
    assert gains(gold, hierarchy) == pytest.approx(expected)
