"""Agreement equals that of scikit-learn and krippendorff, and is undefined where theirs is."""

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

EXACT = 1e-12
HIGHEST = 6

Table = list[list[int | None]]
"""Grades with a row per annotator and a column per document; None: not graded."""

even = st.integers(0, HIGHEST)
skewed = st.sampled_from([0] * 12 + [1] * 3 + [HIGHEST])
two_grades = st.sampled_from([0, 5])


@st.composite
def tables(draw: st.DrawFn, most: int = 5) -> Table:
    """Draw grades of 2 to `most` annotators with none or many missing, spread or skewed."""
    grades = draw(st.sampled_from([even, skewed, two_grades]))
    cells = draw(st.sampled_from([grades, st.none() | grades]))
    documents = draw(st.integers(1, 30))
    row = st.lists(cells, min_size=documents, max_size=documents)
    return draw(st.lists(row, min_size=2, max_size=most))


def units_of(table: Table) -> list[list[int]]:
    return [[grade for grade in column if grade is not None] for column in zip(*table, strict=True)]


def pairs_in(first: Sequence[int | None], second: Sequence[int | None]) -> list[tuple[int, int]]:
    return [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]


def library_alpha(table: Table, level: Level) -> float:
    # The library also accepts documents with a single grade; they do not change the result.
    rows = [[math.nan if grade is None else float(grade) for grade in row] for row in table]
    return float(krippendorff.alpha(reliability_data=rows, level_of_measurement=level.value))


def library_kappa(pairs: Sequence[tuple[int, int]], weights: Weights) -> float:
    # Importing scikit-learn takes a second, which each test process would wait for at the top of the module.
    from sklearn.metrics import cohen_kappa_score

    # Without labels the library counts the distance from 0 to 5 as 1 if no annotator gave the grades between.
    return float(
        cohen_kappa_score(
            *zip(*pairs, strict=True),
            labels=range(HIGHEST + 1),
            weights=None if weights is Weights.none else weights.value,
        )
    )


def differ(units: Sequence[Sequence[int]]) -> bool:
    """Return whether documents with several grades have different grades, so that agreement is defined."""
    return len({grade for unit in units if len(unit) > 1 for grade in unit}) > 1


@given(tables(), st.sampled_from(Level))
def test_alpha_equals_the_library(table: Table, level: Level) -> None:
    units = units_of(table)
    assume(differ(units))
    assert krippendorff_alpha(units, level) == pytest.approx(library_alpha(table, level), abs=EXACT)


@given(tables(most=2), st.sampled_from(Weights))
def test_kappa_equals_the_library(table: Table, weights: Weights) -> None:
    pairs = pairs_in(*table)
    assume(differ(pairs))
    assert cohen_kappa(pairs, weights) == pytest.approx(library_kappa(pairs, weights), abs=EXACT)


@given(tables())
def test_the_agreement_in_a_log_equals_the_libraries(table: Table) -> None:
    events = [
        Author(f"a{name}").event("nlps", f"t{document % 3}", f"d{document}", Action.grade, grade=grade)
        for name, row in enumerate(table)
        for document, grade in enumerate(row)
        if grade is not None
    ]
    assume(differ(units_of(table)))
    result = agreement(JudgmentView(events))
    assert result.alpha == pytest.approx(library_alpha(table, Level.ordinal), abs=EXACT)
    for pair in result.pairs:
        pairs = pairs_in(*(table[int(name[1:])] for name in pair.annotators))
        assert pair.documents == len(pairs)
        if differ(pairs):
            figures = (pair.kappa, pair.linear, pair.quadratic)
            wanted = [library_kappa(pairs, weights) for weights in Weights]
            assert figures == pytest.approx(wanted, abs=EXACT)
    for topic, (documents, alpha) in result.topics.items():
        topic_grades = [
            [grade if document % 3 == int(topic[1:]) else None for document, grade in enumerate(row)]
            for row in table
        ]
        assert documents == sum(len(unit) > 1 for unit in units_of(topic_grades))
        if differ(units_of(topic_grades)):
            assert alpha == pytest.approx(library_alpha(topic_grades, Level.ordinal), abs=EXACT)


@given(tables(), st.sampled_from(Level), st.sampled_from(Weights))
def test_agreement_is_undefined_exactly_without_differences(
    table: Table, level: Level, weights: Weights
) -> None:
    units, pairs = units_of(table), pairs_in(*table[:2])
    assert math.isnan(krippendorff_alpha(units, level)) is not differ(units)
    assert math.isnan(cohen_kappa(pairs, weights)) is not differ(pairs)


@pytest.mark.parametrize(
    "table",
    [
        [[1, 1, 1], [1, 1, 1]],  # one grade only
        [[0, 1, 2], [None, None, None]],  # one annotator
        [[0, 1, None, None], [None, None, 1, 2]],  # no document with two grades
        [[1, 0, None], [1, None, 2]],  # equal grades for the only document with two grades
    ],
)
def test_degenerate_grades_have_no_agreement_in_the_libraries_either(table: Table) -> None:
    from sklearn.exceptions import UndefinedMetricWarning

    units, pairs = units_of(table), pairs_in(*table)
    assert math.isnan(krippendorff_alpha(units)) and math.isnan(cohen_kappa(pairs))
    if pairs:
        with pytest.warns(UndefinedMetricWarning):
            assert math.isnan(library_kappa(pairs, Weights.none))
