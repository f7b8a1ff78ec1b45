"""Agreement is what scikit-learn and krippendorff make of the same grades, and not a number where they have none."""

from __future__ import annotations

import math
from collections.abc import Sequence

import krippendorff
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from searchapp.judging.agreement import Level, Weights, agreement, cohen_kappa, krippendorff_alpha
from searchapp.judging.events import Action, Author
from searchapp.judging.view import JudgmentView

EXACT = 1e-9
HIGHEST = 6

Table = list[list[int | None]]
"""What each annotator, a row, says of each document, a column; None: nothing."""

even = st.integers(0, HIGHEST)
skewed = st.sampled_from([0] * 12 + [1] * 3 + [HIGHEST])
two_grades = st.sampled_from([0, 5])


@st.composite
def tables(draw: st.DrawFn, most: int = 5) -> Table:
    """Grades of 2 to `most` annotators, many of them missing or few of them, all alike or spread."""
    grades = draw(st.sampled_from([even, skewed, two_grades]))
    cells = draw(st.sampled_from([grades, st.none() | grades]))
    documents = draw(st.integers(1, 30))
    row = st.lists(cells, min_size=documents, max_size=documents)
    return draw(st.lists(row, min_size=2, max_size=most))


def units_of(table: Table) -> list[list[int]]:
    return [[grade for grade in column if grade is not None] for column in zip(*table, strict=True)]


def pairs_in(one: Sequence[int | None], two: Sequence[int | None]) -> list[tuple[int, int]]:
    return [(a, b) for a, b in zip(one, two, strict=True) if a is not None and b is not None]


def alpha_elsewhere(table: Table, level: Level) -> float:
    # The library takes a value that nobody can be compared on into the domain, where it changes nothing.
    rows = [[math.nan if grade is None else float(grade) for grade in row] for row in table]
    return float(krippendorff.alpha(reliability_data=rows, level_of_measurement=level.value))


def kappa_elsewhere(pairs: Sequence[tuple[int, int]], weights: Weights) -> float:
    from sklearn.metrics import (
        cohen_kappa_score,
    )  # takes a second, which each process of the tests would wait

    # Without labels the library would count a step from 0 to 5 as one if nobody gave the grades between.
    return float(
        cohen_kappa_score(
            *zip(*pairs, strict=True),
            labels=range(HIGHEST + 1),
            weights=None if weights is Weights.none else weights.value,
        )
    )


def differ(units: Sequence[Sequence[int]]) -> bool:
    """Whether chance can be told: several opinions on something, and not one and the same throughout."""
    return len({grade for unit in units if len(unit) > 1 for grade in unit}) > 1


@given(tables(), st.sampled_from(Level))
def test_alpha_is_that_of_the_library(table: Table, level: Level) -> None:
    units = units_of(table)
    assume(differ(units))
    assert krippendorff_alpha(units, level) == pytest.approx(alpha_elsewhere(table, level), abs=EXACT)


@given(tables(most=2), st.sampled_from(Weights))
def test_kappa_is_that_of_the_library(table: Table, weights: Weights) -> None:
    pairs = pairs_in(*table)
    assume(differ(pairs))
    assert cohen_kappa(pairs, weights) == pytest.approx(kappa_elsewhere(pairs, weights), abs=EXACT)


@given(tables())
def test_the_agreement_of_a_log_is_that_of_the_libraries(table: Table) -> None:
    events = [
        Author(f"a{name}").event("nlps", f"t{place % 3}", f"d{place}", Action.grade, grade=grade)
        for name, row in enumerate(table)
        for place, grade in enumerate(row)
        if grade is not None
    ]
    assume(differ(units_of(table)))
    found = agreement(JudgmentView(events))
    assert found.alpha == pytest.approx(alpha_elsewhere(table, Level.ordinal), abs=EXACT)
    for pair in found.pairs:
        pairs = pairs_in(*(table[int(name[1:])] for name in pair.annotators))
        assert pair.documents == len(pairs)
        if differ(pairs):
            figures = (pair.kappa, pair.linear, pair.quadratic)
            wanted = [kappa_elsewhere(pairs, weights) for weights in Weights]
            assert figures == pytest.approx(wanted, abs=EXACT)
    for topic, (documents, alpha) in found.topics.items():
        of_topic = [
            [grade if place % 3 == int(topic[1:]) else None for place, grade in enumerate(row)]
            for row in table
        ]
        assert documents == sum(len(unit) > 1 for unit in units_of(of_topic))
        if differ(units_of(of_topic)):
            assert alpha == pytest.approx(alpha_elsewhere(of_topic, Level.ordinal), abs=EXACT)


@given(tables(), st.sampled_from(Level), st.sampled_from(Weights))
def test_where_chance_cannot_be_told_there_is_no_figure(table: Table, level: Level, weights: Weights) -> None:
    units, pairs = units_of(table), pairs_in(*table[:2])
    assert math.isnan(krippendorff_alpha(units, level)) is not differ(units)
    assert math.isnan(cohen_kappa(pairs, weights)) is not differ(pairs)


@pytest.mark.parametrize(
    "table",
    [
        [[1, 1, 1], [1, 1, 1]],  # one grade only
        [[0, 1, 2], [None, None, None]],  # one annotator
        [[0, 1, None, None], [None, None, 1, 2]],  # no document that two have graded
        [[1, 0, None], [1, None, 2]],  # on the one document that two have graded they say what all say of it
    ],
)
def test_degenerate_grades_give_no_figure_there_either(table: Table) -> None:
    from sklearn.exceptions import UndefinedMetricWarning

    units, pairs = units_of(table), pairs_in(*table)
    assert math.isnan(krippendorff_alpha(units)) and math.isnan(cohen_kappa(pairs))
    if pairs:
        with pytest.warns(UndefinedMetricWarning):
            assert math.isnan(kappa_elsewhere(pairs, Weights.none))
