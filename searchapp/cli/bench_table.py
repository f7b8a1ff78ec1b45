"""A bench as people read it in a terminal or a pipe, as CSV, as Markdown and as LaTeX."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from searchapp.app.comparison import number, signed
from searchapp.cli.figures import Column, print_columns
from searchapp.cli.written_tables import (
    TESTED,
    csv_table,
    exactly,
    for_latex,
    for_markdown,
    latex_comments,
    latex_table,
    markdown_table,
)
from searchapp.report.bench_wording import STEPS, greatest, legend, lines_of, marks, official, step
from searchapp.visible import visible, visible_line

if TYPE_CHECKING:
    from searchapp.app.bench import BenchMeasure, BenchResult, Difference
    from searchapp.app.bench import Column as BenchColumn
    from searchapp.cli.output import Console

BETTER = ("black on #e6f5d0", "black on #b8e186", "black on #7fbc41", "white on #4d9221")
WORSE = ("black on #fde0ef", "black on #f1b6da", "white on #c51b7d", "white on #8e0152")
"""Shades that people tell apart who don't tell red from green: C. Brewer's PiYG."""

COLUMNS = (
    "task",
    "split",
    "group",
    "engine",
    "system",
    "recipe",
    "measure",
    "official",
    "topics",
    "value",
    "baseline",
    *TESTED,
    "run",
    "digest",
    "error",
)
"""Of the CSV: a row a column of the bench, system and measure."""


def print_bench(console: Console, found: BenchResult) -> None:
    """Print the figures of every system, and below them a heatmap of the differences to the baseline."""
    for heading, first, columns in _tables(found):
        if heading:
            console.print()
            _line(console, heading, "bold")
        print_columns(console, first, columns)
    console.print()
    for line in legend(found):
        _line(console, line)


def _line(console: Console, text: str, style: str = "") -> None:
    from rich.text import Text

    console.print(Text(visible_line(text), style=style), soft_wrap=True)


def _tables(found: BenchResult) -> Iterator[tuple[str, Column, list[Column]]]:
    """A heading, the first column, and the others of each table."""
    rows = lines_of(found)
    names = [column.name for column, _ in rows]
    measures = Column(
        "measure",
        ["–" if one is None else one.name + (" (official)" if one.is_official else "") for _, one in rows],
        is_text=True,
    )
    topics = Column("topics", [f"{one.topics:,}" if one and one.topics else "–" for _, one in rows])
    yield (
        "",
        Column("task", names, is_text=True),
        [
            measures,
            topics,
            *(
                Column(
                    system.name + (" (baseline)" if place == found.baseline else ""),
                    [_figure(column, one, place) for column, one in rows],
                )
                for place, system in enumerate(found.systems)
            ),
        ],
    )
    ranking = official(found)
    others = [place for place in range(len(found.systems)) if place != found.baseline]
    if not ranking or not others:
        return
    most = greatest(found)
    columns = []
    for place in others:
        differences = [measure.differences[place] for _, measure in ranking]
        columns.append(
            Column(
                found.systems[place].name,
                [heat(one, most) for one in differences],
                is_text=True,
                styles=[_style(one, most) for one in differences],
            )
        )
    yield (
        f"Difference to {found.systems[found.baseline].name}",
        Column("task", [column.name for column, _ in ranking], is_text=True),
        [Column("measure", [measure.name for _, measure in ranking], is_text=True), *columns],
    )


def _figure(column: BenchColumn, measure: BenchMeasure | None, place: int) -> str:
    cell = column.cells[place]
    if cell is None:
        return ""
    if cell.error is not None:
        return "failed"
    return number(None if measure is None else measure.figures[place])


def heat(difference: Difference | None, greatest: float) -> str:
    """A difference with its marks, and blocks that say without colours how large it is."""
    if difference is None:
        return "–"
    blocks = ("█" if difference.mean > 0 else "░") * step(difference, greatest)
    return f"{signed(difference.mean)}{marks(difference):<3} {blocks:<{STEPS}}"


def _style(difference: Difference | None, greatest: float) -> str:
    shade = 0 if difference is None else step(difference, greatest)
    if difference is None or not shade:
        return ""
    return (BETTER if difference.mean > 0 else WORSE)[shade - 1]


def as_csv(found: BenchResult) -> str:
    """The bench for a spreadsheet."""
    return csv_table(COLUMNS, _rows(found))


def _rows(found: BenchResult) -> Iterator[list[object]]:
    for column, measure in lines_of(found):
        for place, system in enumerate(found.systems):
            cell = column.cells[place]
            if cell is None:
                continue
            difference = None if measure is None else measure.differences[place]
            yield [
                column.task,
                column.split,
                column.group or "",
                system.engine,
                system.name,
                system.recipe,
                "" if measure is None else measure.name,
                "" if measure is None else str(measure.is_official).lower(),
                "" if measure is None else measure.topics,
                exactly(None if measure is None else measure.figures[place]),
                found.systems[found.baseline].name,
                *_of_difference(difference),
                cell.run,
                cell.digest,
                cell.error or "",
            ]


def _of_difference(one: Difference | None) -> list[object]:
    if one is None:
        return [""] * 12
    at_random = one.corrected["randomisation"]
    return [
        *map(exactly, (one.mean, one.low, one.high)),
        one.wins,
        one.ties,
        one.losses,
        *map(
            exactly,
            (
                one.effect,
                one.corrected["t-test"].p,
                one.corrected["wilcoxon"].p,
                at_random.p,
                at_random.holm,
                at_random.benjamini_hochberg,
            ),
        ),
    ]


def as_markdown(found: BenchResult) -> str:
    """The bench as Markdown tables, and below them what must be known of them."""
    lines: list[str] = []
    for heading, first, columns in _tables(found):
        lines += [f"**{for_markdown(heading)}**", ""] if heading else []
        lines += [*markdown_table([first, *columns]), ""]
    return "\n".join([*lines, *(f"- {for_markdown(visible(one))}" for one in legend(found))]) + "\n"


def as_latex(found: BenchResult) -> str:
    """The bench as tables for LaTeX with the package booktabs, and what must be known of them as comments."""
    lines = latex_comments(legend(found))
    for heading, first, columns in _tables(found):
        lines += ["", rf"\textbf{{{for_latex(heading)}}}\par"] if heading else []
        lines += latex_table([first, *columns])
    return "\n".join(lines) + "\n"
