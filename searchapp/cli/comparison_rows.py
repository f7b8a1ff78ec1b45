"""A comparison as rows of text, and these rows as CSV, Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from searchapp.cli.figures import Column
from searchapp.cli.written_tables import (
    TESTED,
    csv_table,
    exactly,
    for_markdown,
    latex_comments,
    latex_table,
    markdown_table,
    tested,
)
from searchapp.report.wording import legend, pairs, tests_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from searchapp.app.comparison import Comparison

COLUMNS = (
    "measure",
    "first",
    "second",
    "topics",
    "mean_first",
    "mean_second",
    *TESTED,
    "p_tukey",
    "p_randomised_tukey",
    "difference_low",
    "difference_high",
    "due_to_unjudged",
)
"""Of the CSV: a row a measure and pair of runs, every figure at full precision, nothing where there is none."""


def as_csv(found: Comparison) -> str:
    """The comparison for a spreadsheet."""
    return csv_table(COLUMNS, _rows(found))


def _rows(found: Comparison) -> Iterator[list[object]]:
    for measured, pair in pairs(found):
        doubt = pair.doubt
        yield [
            measured.name,
            found.runs[pair.first].name,
            found.runs[pair.second].name,
            pair.tests.topics,
            *map(exactly, (pair.tests.first, pair.tests.second)),
            *tested(pair),
            *map(
                exactly,
                (
                    pair.tukey,
                    pair.randomised_tukey,
                    None if doubt is None else doubt.low,
                    None if doubt is None else doubt.high,
                ),
            ),
            "" if doubt is None else doubt.due,
        ]


def tests_columns(found: Comparison) -> list[Column]:
    """The tests as columns of a table."""
    heading, rows = tests_table(found)
    return [Column(name, [row[place] for row in rows], place < 2) for place, name in enumerate(heading)]


def as_markdown(found: Comparison) -> str:
    """The comparison as a Markdown table, and below it what must be known of it."""
    said = [f"- {for_markdown(one)}" for one in legend(found)]
    return "\n".join([*markdown_table(tests_columns(found)), "", *said]) + "\n"


def as_latex(found: Comparison) -> str:
    """The comparison as a table for LaTeX with the package booktabs, and what must be known of it as comments."""
    return "\n".join([*latex_comments(legend(found)), *latex_table(tests_columns(found))]) + "\n"


def bars(values: Sequence[float], width: int) -> list[str]:
    """A bar for each value, the longest being `width` blocks: those below 0 are of another kind."""
    greatest = max(map(abs, values), default=0.0) or 1.0
    return [("█" if value > 0 else "░") * round(width * abs(value) / greatest) for value in values]
