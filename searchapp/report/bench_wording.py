"""What a bench is shown by, in the same words and steps wherever it is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchapp.app.bench import BenchMeasure, BenchResult, Column, Difference

LEVELS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
"""Marks of a difference by its p-value."""

STEPS = 4
"""Shades of gains, and of losses."""


def lines_of(found: BenchResult) -> list[tuple[Column, BenchMeasure | None]]:
    """The lines of a table: the columns of the bench with each of their measures, None where there is none."""
    lines: list[tuple[Column, BenchMeasure | None]] = []
    for column in found.columns:
        lines += [(column, measure) for measure in column.measures] or [(column, None)]
    return lines


def official(found: BenchResult) -> list[tuple[Column, BenchMeasure]]:
    """The columns that have figures, with the measure that ranks submissions."""
    return [(column, one) for column in found.columns if (one := column.official) is not None]


def greatest(found: BenchResult) -> float:
    """The greatest difference to the baseline under the official measures, whatever its sign."""
    differences = (one for _, measure in official(found) for one in measure.differences if one is not None)
    return max((abs(one.mean) for one in differences), default=0.0)


def step(difference: Difference, greatest: float) -> int:
    """How far a difference is from 0, in steps up to `STEPS` of the greatest one."""
    share = abs(difference.mean) / greatest if greatest else 0.0
    return 0 if math.isnan(share) else math.ceil(STEPS * share - 1e-9)


def marks(difference: Difference) -> str:
    """Stars by the p-value."""
    return next((marks for level, marks in LEVELS if difference.p < level), "")


def legend(found: BenchResult) -> Iterator[str]:
    """What must be known to read the figures, in sentences."""
    baseline = found.systems[found.baseline].name
    yield (
        f"figures are those of `searchapp evaluate`; differences are to {baseline} on the same topics: "
        f"{', '.join(f'{marks} p < {level:g}' for level, marks in reversed(LEVELS))} in the randomisation test "
        f"({found.permutations:,} sign vectors of seed {found.seed})"
    )
    if len(found.systems) > 1:
        yield "each block and each shade of the heatmap stands for a quarter of the greatest difference in it"
    if len(found.systems) > 2:
        yield (
            f"p-values are corrected by Holm for the comparisons with {baseline} in one line; not for the number of "
            "lines"
        )
    yield from found.notes
