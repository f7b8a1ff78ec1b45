"""A learning curve as people read it in a terminal or a pipe, as CSV and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from searchapp.app.comparison import number, p_value, signed
from searchapp.cli.comparison_rows import bars
from searchapp.cli.figures import GAP, Column, print_columns
from searchapp.cli.written_tables import csv_table, exactly, for_markdown, markdown_table
from searchapp.report.learning_wording import heading, legend
from searchapp.report.wording import between
from searchapp.visible import visible_line

if TYPE_CHECKING:
    from searchapp.app.learning_curve import LearningCurve
    from searchapp.cli.output import Console

BAR, SHORT_BAR = 30, 10
"""Blocks of the longest bar, where there is room and where there is little."""

COLUMNS = (
    "judged",
    "judgments",
    "samples",
    "score",
    "lowest",
    "highest",
    "gain",
    "low",
    "high",
    "p_randomisation",
)
"""Of the CSV: a row a point."""


def print_curve(console: Console, found: LearningCurve) -> None:
    """Print the points, with a bar for each gain, and what must be known of them."""
    from rich.text import Text

    console.print(Text(visible_line(heading(found)), style="bold"), soft_wrap=True)
    first, *columns = _columns(found)
    gains = [0.0 if one.gain is None else one.gain.mean for one in found.points]
    every = (first, *columns)
    room = console.width - sum(one.width + GAP for one in every)
    if room < SHORT_BAR:  # so headings are broken
        room = console.width - sum(one.least_width + GAP for one in every)
    shown = bars(gains, max(SHORT_BAR, min(BAR, room)))
    print_columns(console, first, [*columns, Column("", shown, is_text=True)])
    console.print()
    for line in legend(found):
        console.print(Text(visible_line(line)), soft_wrap=True)


def as_csv(found: LearningCurve) -> str:
    """The points for a spreadsheet."""
    return csv_table(
        COLUMNS,
        (
            [
                one.judged,
                exactly(one.judgments),
                len(one.values),
                *map(exactly, (one.score, min(one.values), max(one.values))),
                *map(
                    exactly,
                    (None,) * 4
                    if one.gain is None
                    else (
                        one.gain.mean,
                        one.gain.interval.low,
                        one.gain.interval.high,
                        one.gain.randomisation.p,
                    ),
                ),
            ]
            for one in found.points
        ),
    )


def as_markdown(found: LearningCurve) -> str:
    """The points as a Markdown table, and below it what must be known of them."""
    lines = [f"**{for_markdown(heading(found))}**", "", *markdown_table(_columns(found)), ""]
    return "\n".join([*lines, *(f"- {for_markdown(one)}" for one in legend(found))]) + "\n"


def _columns(found: LearningCurve) -> list[Column]:
    points = found.points
    gains = [one.gain for one in points]
    return [
        Column("judged topics", [f"{one.judged:,}" for one in points]),
        Column("judgments", [f"{one.judgments:,.0f}" for one in points]),
        Column("samples", [f"{len(one.values):,}" for one in points]),
        Column(found.measure, [number(one.score) for one in points]),
        Column("lowest", [number(min(one.values)) for one in points]),
        Column("highest", [number(max(one.values)) for one in points]),
        Column("gain", ["" if one is None else signed(one.mean) for one in gains]),
        Column("95% interval", ["" if one is None else between(one.interval, sign=True) for one in gains]),
        Column("p", ["" if one is None else p_value(one.randomisation.p) for one in gains]),
    ]
