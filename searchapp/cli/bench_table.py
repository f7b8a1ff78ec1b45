"""A bench as people read it in a terminal or a pipe, as CSV and as Markdown."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from searchapp.cli.comparison_rows import exactly, for_markdown, number, signed
from searchapp.cli.figures import Column, print_columns
from searchapp.visible import visible, visible_line

if TYPE_CHECKING:
    from searchapp.app.bench import BenchMeasure, BenchResult, Difference
    from searchapp.app.bench import Column as BenchColumn
    from searchapp.cli.output import Console

LEVELS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
"""Marks of a difference by its p-value."""

STEPS = 4
"""Shades of gains, and of losses."""

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
    "difference",
    "low",
    "high",
    "wins",
    "ties",
    "losses",
    "d_z",
    "p_t_test",
    "p_wilcoxon",
    "p_randomisation",
    "p_randomisation_holm",
    "p_randomisation_bh",
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


def _rows(found: BenchResult) -> list[tuple[BenchColumn, BenchMeasure | None]]:
    """The lines of the tables: the columns of the bench with their official measure first, then the others."""
    rows: list[tuple[BenchColumn, BenchMeasure | None]] = []
    for column in found.columns:
        rows += [(column, measure) for measure in column.measures] or [(column, None)]
    return rows


def _tables(found: BenchResult) -> Iterator[tuple[str, Column, list[Column]]]:
    """A heading, the first column, and the others of each table."""
    rows = _rows(found)
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
    official = [(column, one) for column in found.columns if (one := column.official) is not None]
    others = [place for place in range(len(found.systems)) if place != found.baseline]
    if not official or not others:
        return
    greatest = max(
        (abs(one.mean) for _, measure in official for one in measure.differences if one is not None),
        default=0.0,
    )
    columns = []
    for place in others:
        differences = [measure.differences[place] for _, measure in official]
        columns.append(
            Column(
                found.systems[place].name,
                [heat(one, greatest) for one in differences],
                is_text=True,
                styles=[_style(one, greatest) for one in differences],
            )
        )
    yield (
        f"Difference to {found.systems[found.baseline].name}",
        Column("task", [column.name for column, _ in official], is_text=True),
        [Column("measure", [measure.name for _, measure in official], is_text=True), *columns],
    )


def _figure(column: BenchColumn, measure: BenchMeasure | None, place: int) -> str:
    cell = column.cells[place]
    if cell is None:
        return ""
    if cell.error is not None:
        return "failed"
    return number(None if measure is None else measure.figures[place])


def _step(difference: Difference, greatest: float) -> int:
    """How far a difference is from 0, in steps up to `STEPS` of the greatest one."""
    share = abs(difference.mean) / greatest if greatest else 0.0
    return 0 if math.isnan(share) else math.ceil(STEPS * share - 1e-9)


def heat(difference: Difference | None, greatest: float) -> str:
    """A difference with its marks, and blocks that say without colours how large it is."""
    if difference is None:
        return "–"
    marks = next((marks for level, marks in LEVELS if difference.p < level), "")
    blocks = ("█" if difference.mean > 0 else "░") * _step(difference, greatest)
    return f"{signed(difference.mean)}{marks:<3} {blocks:<{STEPS}}"


def _style(difference: Difference | None, greatest: float) -> str:
    step = 0 if difference is None else _step(difference, greatest)
    if difference is None or not step:
        return ""
    return (BETTER if difference.mean > 0 else WORSE)[step - 1]


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


def as_csv(found: BenchResult) -> str:
    """The bench for a spreadsheet."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for column, measure in _rows(found):
        for place, system in enumerate(found.systems):
            cell = column.cells[place]
            if cell is None:
                continue
            difference = None if measure is None else measure.differences[place]
            writer.writerow(
                [
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
            )
    return buffer.getvalue()


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
        every = [first, *columns]
        lines += [f"**{for_markdown(heading)}**", ""] if heading else []
        lines.append("| " + " | ".join(for_markdown(one.heading) for one in every) + " |")
        lines.append("|" + "".join("---|" if one.is_text else "---:|" for one in every))
        lines += [
            "| " + " | ".join(for_markdown(one.cells[row].strip()) for one in every) + " |"
            for row in range(len(first.cells))
        ]
        lines.append("")
    return "\n".join([*lines, *(f"- {for_markdown(visible(one))}" for one in legend(found))]) + "\n"
