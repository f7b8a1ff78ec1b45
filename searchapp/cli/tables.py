"""Tables in a terminal, as CSV, as Markdown, and as LaTeX with the package booktabs.

No cell is cut, whatever the width of the terminal: headings and names are folded, then columns go into
further tables below.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchapp.cli.output import print_json, show, stdout_console
from searchapp.errors import UsageError
from searchapp.files import distinct_names, shared_parts
from searchapp.text import visible, visible_line

if TYPE_CHECKING:
    from searchapp.app.comparison import Difference
    from searchapp.app.evaluate import Evaluation
    from searchapp.cli.output import Console
    from searchapp.evaluation.base import Breakdown


Figures = Mapping[str, float]

GAP = 2
"""Blanks between two columns."""

LONGEST_PATH = 40
"""In characters: longer than that a path is not shown whole where its end says as much."""

HEADING_WIDTH, GROUP_WIDTH = 16, 28
"""To how many characters headings and groups are folded, where the table is wider than the terminal."""


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and what stands below it; figures are aligned to the right. `styles` colour the cells, "" none."""

    heading: str
    cells: Sequence[str]
    is_text: bool = False
    styles: Sequence[str] = ()

    @property
    def width(self) -> int:
        """Characters that it takes on one line."""
        return max(_lengths((self.heading, *self.cells)))

    @property
    def least_width(self) -> int:
        """Characters that it takes when headings are broken at blanks and names folded; figures never are."""
        words = min(max(_lengths(self.heading.split()), default=0), HEADING_WIDTH)
        cells = max(_lengths(self.cells), default=0)
        return max(words, min(cells, GROUP_WIDTH) if self.is_text else cells)


def _lengths(texts: Iterable[str]) -> list[int]:
    from rich.cells import cell_len  # some characters take two places

    return [cell_len(visible(text)) for text in texts]


def blocks(first: Column, columns: Sequence[Column], width: int) -> Iterator[tuple[Sequence[Column], bool]]:
    """The columns, in as many tables one below the other as the width asks for, each to begin with `first`.

    With each of them comes whether its headings and names must be folded.
    """
    if first.width + sum(GAP + column.width for column in columns) <= width:
        yield columns, False
        return
    block: list[Column] = []
    taken = first.least_width
    for column in columns:
        if block and taken + GAP + column.least_width > width:
            yield block, True
            block, taken = [], first.least_width
        block.append(column)
        taken += GAP + column.least_width
    yield block, True


def _folded(first: Column, block: Sequence[Column], width: int) -> list[int]:
    """The widths of a table's columns where texts are folded.

    Where the terminal is too narrow for the first column and one other, texts are folded to less, and figures are not.
    """
    widths = [column.least_width for column in (first, *block)]
    room = width - GAP
    if len(block) == 1 and sum(widths) > room:
        left = room - widths[1]
        widths[0] = max(1, min(widths[0], max(room // 2, left)) if block[0].is_text else left)
        if block[0].is_text:
            widths[1] = max(1, room - widths[0])
    return widths


def print_columns(
    console: Console, first: Column, columns: Sequence[Column], bold: Iterable[int] = ()
) -> None:
    """Print a table, the rows of the numbers `bold` in bold type."""
    for number, (block, folded) in enumerate(blocks(first, columns, console.width)):
        if number:
            console.print()
        shown = (first, *block)
        widths = _folded(first, block, console.width) if folded else [column.width for column in shown]
        _draw(console, shown, widths, bold)


def _draw(
    console: Console, columns: Sequence[Column], widths: Sequence[int | None], bold: Iterable[int] = ()
) -> None:
    """Draw columns of these widths, or as wide as there is room."""
    from rich import table
    from rich.text import Text

    strong = set(bold)
    drawn = table.Table(box=None, pad_edge=False, padding=(0, GAP // 2), header_style="bold")
    for column, width in zip(columns, widths, strict=True):
        drawn.add_column(
            Text(visible(column.heading)),
            justify="left" if column.is_text else "right",
            overflow="fold",
            width=width,
        )
    for row in range(len(columns[0].cells)):
        cells = [
            Text(visible(column.cells[row]), style=column.styles[row] if column.styles else "")
            for column in columns
        ]
        drawn.add_row(*cells, style="bold" if row in strong else None)
    console.print(drawn)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of a result below a heading; the first one names the rows, those of the numbers `bold` stand out.

    `instead` is a sentence in the place of columns, where a result has no rows.
    """

    columns: Sequence[Column]
    heading: str = ""
    bold: Sequence[int] = ()
    instead: str = ""

    def print(self, console: Console) -> None:
        """Print the table in a terminal."""
        if self.heading:
            print_line(console, self.heading, "bold")
        if self.columns:
            print_columns(console, self.columns[0], self.columns[1:], self.bold)
        else:
            print_line(console, self.instead)

    def markdown(self) -> list[str]:
        """The lines of the table in Markdown."""
        lines = [f"**{for_markdown(self.heading)}**", ""] if self.heading else []
        lines.append("| " + " | ".join(for_markdown(one.heading) for one in self.columns) + " |")
        lines.append("|" + "".join("---|" if one.is_text else "---:|" for one in self.columns))
        return lines + [
            "| " + " | ".join(for_markdown(cell) for cell in cells) + " |" for cells in self._rows()
        ]

    def latex(self) -> list[str]:
        """The lines of the table in LaTeX for the package booktabs."""
        lines = ["", rf"\textbf{{{for_latex(self.heading)}}}\par"] if self.heading else []
        lines += [
            rf"\begin{{tabular}}{{{''.join('l' if one.is_text else 'r' for one in self.columns)}}}",
            r"\toprule",
            " & ".join(for_latex(one.heading) for one in self.columns) + r" \\",
            r"\midrule",
            *(" & ".join(for_latex(cell) for cell in cells) + r" \\" for cells in self._rows()),
        ]
        return [*lines, r"\bottomrule", r"\end{tabular}"]

    def _rows(self) -> Iterator[list[str]]:
        for row in range(len(self.columns[0].cells)):
            yield [one.cells[row].strip() for one in self.columns]


class Layout(StrEnum):
    """What a result is printed as."""

    text = "text"
    json = "json"
    csv = "csv"
    latex = "latex"
    markdown = "markdown"


def chosen_layout(**options: bool) -> Layout:
    """The layout that options choose, each of which has the name of one.

    Raises:
        UsageError: there are several.
    """
    chosen = [Layout(name) for name, is_given in options.items() if is_given]
    if len(chosen) > 1:
        *names, last = (f"--{name}" for name in options)
        raise UsageError(f"{', '.join(names)} and {last} are ways to print: choose one of them")
    return chosen[0] if chosen else Layout.text


@dataclass(frozen=True, slots=True)
class Printout:
    """A result as a command prints it.

    `tables` are those of a terminal, where one without a heading continues the one above it; Markdown and LaTeX have
    those `written`, by default the same. `legend` has sentences on how to read them. `rows` are those of the CSV, every
    figure at full precision.
    """

    tables: Sequence[Table]
    legend: Sequence[str]
    rows: Iterable[Mapping[str, object]]
    written: Sequence[Table] = ()

    def print(self, console: Console) -> None:
        """Print the tables in a terminal, and the legend below them."""
        for number, table in enumerate(self.tables):
            if number and table.heading:
                console.print()
            table.print(console)
        console.print()
        for sentence in self.legend:
            print_line(console, sentence)

    def csv(self) -> str:
        """The rows for a spreadsheet."""
        return csv_table(self.rows)

    def markdown(self) -> str:
        """The tables in Markdown, and the legend below them as a list."""
        lines = [line for table in self.written or self.tables for line in (*table.markdown(), "")]
        return "\n".join([*lines, *(f"- {for_markdown(one)}" for one in self.legend)]) + "\n"

    def latex(self) -> str:
        """The tables in LaTeX, and the legend above them as comments."""
        lines = [f"% {visible_line(one)}" for one in self.legend]
        lines += [line for table in self.written or self.tables for line in table.latex()]
        return "\n".join(lines) + "\n"


def print_result(layout: Layout, to_json: Callable[[], Any], printout: Callable[[], Printout]) -> None:
    """Print a result on stdout in a layout."""
    if layout is Layout.json:
        print_json(to_json())
        return
    made = printout()
    if layout is Layout.text:
        made.print(stdout_console())
        return
    texts = {Layout.csv: made.csv, Layout.latex: made.latex, Layout.markdown: made.markdown}
    show(texts[layout]().rstrip("\n"))


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print a sentence or a heading, which the terminal may wrap."""
    from rich.text import Text

    console.print(Text(visible_line(text), style=style), soft_wrap=True)


def print_evaluations(evaluations: Sequence[Evaluation]) -> None:
    """Print the figures of runs, a column a run, and their breakdowns; no figure twice under two names."""
    official = _in_order(each.official.values for each in evaluations)
    honest = [
        name
        for name in _in_order(each.official.honest for each in evaluations)
        if not _is_among(name, [(each.official.honest, each.official.values) for each in evaluations])
    ]
    measures = [
        name
        for name in _in_order(each.measures.values for each in evaluations)
        if not _is_among(name, [(each.measures.values, each.official.values) for each in evaluations])
    ]
    names = ["topics", *(f"{name} (official)" for name in official)]
    names += [*(f"{name} (honest)" for name in honest), *measures]
    columns = []
    headed = headings(evaluations)
    for heading, each in zip(headed, evaluations, strict=True):
        cells = [str(each.topics)]
        for some, wanted in (
            (each.official.values, official),
            (each.official.honest, honest),
            (each.measures.values, measures),
        ):
            cells += [_figure(some.get(name), 6) for name in wanted]
        columns.append(Column(heading, cells))
    console = stdout_console()
    first = Column("measure", names, is_text=True)
    print_columns(console, first, columns, bold=range(1, 1 + len(official)))
    for heading, each in zip(headed, evaluations, strict=True):
        if len(each.files) > 1:
            console.print()
            print_line(console, f"{heading}: {', '.join(Path(file).name for file in each.files)}")
        for breakdown in each.breakdowns:
            console.print()
            _breakdown_table(heading, breakdown).print(console)


def headings(evaluations: Sequence[Evaluation]) -> list[str]:
    """What distinguishes runs and submissions: their paths without the folders that all of them share.

    Of a submission of several files it is their folder and their number; a single path is cut to its last parts
    where it is long. Where the rest would not tell different ones apart, the paths are whole.
    """
    paths = [_path_of(each) for each in evaluations]
    counts = [f" ({len(each.files)} files)" if len(each.files) > 1 else "" for each in evaluations]
    if len(paths) == 1:
        parts = paths[0].parts
        while len(parts) > 1 and len(str(Path(*parts))) > LONGEST_PATH:
            parts = parts[1:]
        return [f"{Path(*parts)}{counts[0]}"]
    short = [f"{name}{count}" for name, count in zip(distinct_names(paths), counts, strict=True)]
    sources = [each.source for each in evaluations]
    return short if len(set(short)) == len(set(sources)) else sources


def _path_of(evaluation: Evaluation) -> Path:
    """The path of a run or a file; of several files that of the folder that has them all."""
    if len(evaluation.files) < 2:
        return Path(evaluation.source)
    return Path(*shared_parts([Path(file).parent for file in evaluation.files]))


def _breakdown_table(heading: str, breakdown: Breakdown) -> Table:
    """A breakdown, with four digits: its groups are small, and their figures no more exact than that."""
    rows = breakdown.rows
    columns = [
        Column(breakdown.name, [row.group for row in rows], is_text=True),
        Column(breakdown.counted, [str(row.count) for row in rows]),
    ]
    for name in _in_order(row.values for row in rows):
        columns.append(Column(name, [_figure(row.values.get(name), 4) for row in rows]))
    if breakdown.histogram:
        bars = ["█" * round(BREAKDOWN_BAR * row.values.get(breakdown.histogram, 0.0)) for row in rows]
        columns.append(Column("", bars, is_text=True))
    return Table(columns, f"{heading}: {breakdown.title}")


BREAKDOWN_BAR = 40
"""Blocks of a bar for 1."""


def _figure(value: float | None, digits: int) -> str:
    if value is None:
        return ""
    return (
        str(value) if isinstance(value, int) else f"{value:.{digits}f}"
    )  # a count, such as R, is a whole number


def _in_order(figures: Iterable[Mapping[str, float]]) -> list[str]:
    """The names of all figures, in the order in which they come first."""
    return list(dict.fromkeys(name for some in figures for name in some))


_SAME = {"map": "ap", "mrr": "rr", "r-precision": "rprec"}
"""Means that go by a name of their own in official figures, and the measures that they are means of."""


def _is_among(name: str, runs: Iterable[tuple[Figures, Figures]]) -> bool:
    """Whether a figure stands among others under a name for the same measure, with the same value, in every run."""
    return all(
        name not in own
        or any(_means(other) == _means(name) and _equal(own[name], value) for other, value in others.items())
        for own, others in runs
    )


def _means(name: str) -> str:
    """What a name stands for, in small letters: "mean P@10" is P@10, and "MAP" is AP.

    >>> _means("mean P@10"), _means("MAP"), _means("mean R-Precision"), _means("AP@5")
    ('p@10', 'ap', 'rprec', 'ap@5')
    """
    short = name.casefold().removeprefix("mean ")
    return _SAME.get(short, short)


def _equal(one: float, other: float) -> bool:
    """Whether two figures are the same, but for the order in which they were summed."""
    return one == other or abs(one - other) < 1e-9 or (one != one and other != other)


TESTED = (
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
)
"""Columns of a difference and its tests, in every CSV that has them."""


def tested(one: Difference | None) -> dict[str, object]:
    """The cells of a CSV for a difference and its tests, by their columns; empty without a difference."""
    if one is None:
        return dict.fromkeys(TESTED, "")
    at_random = one.corrected["randomisation"]
    cells = (
        *map(exactly, (one.mean, one.low, one.high)),
        one.wins,
        one.ties,
        one.losses,
        *map(exactly, (one.effect, one.corrected["t-test"].p, one.corrected["wilcoxon"].p)),
        *map(exactly, (at_random.p, at_random.holm, at_random.benjamini_hochberg)),
    )
    return dict(zip(TESTED, cells, strict=True))


def csv_table(rows: Iterable[Mapping[str, object]]) -> str:
    """Rows for a spreadsheet, below the names of their cells."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for number, row in enumerate(rows):
        if not number:
            writer.writerow(row)
        writer.writerow(row.values())
    return buffer.getvalue()


def exactly(value: float | None) -> str:
    """A figure at full precision, nothing where there is none."""
    return "" if value is None or math.isnan(value) else repr(float(value))


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "→": r"$\rightarrow$",
    "–": "--",
    "<": r"$<$",
    ">": r"$>$",
    "█": r"$\bullet$",
    "░": r"$\circ$",
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#])")


def for_latex(text: str) -> str:
    """A text as one cell of a table in LaTeX."""
    return "".join(_LATEX.get(character, character) for character in visible_line(text))


def for_markdown(text: str) -> str:
    """A text as one cell of a Markdown table."""
    return _MARKDOWN.sub(r"\\\1", visible_line(text))


LEAST_TEXT = 8
"""In characters: a column of texts is not folded to less."""


def print_table(names: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> None:
    """Print a table under the names of its columns; those whose places are in `left` are texts, the others figures.

    Nothing is cut. Where the terminal is too narrow, texts are folded; where even that is not enough, the table goes
    on below, each part with the first column.
    """
    lines = [[visible_line(cell) for cell in row] for row in rows]
    columns = [
        Column(name, [line[place] for line in lines], is_text=place in left)
        for place, name in enumerate(names)
    ]
    console = stdout_console()
    gaps = GAP * (len(columns) - 1)
    is_wide = sum(column.width for column in columns) + gaps > console.width
    least = [min(column.width, LEAST_TEXT) if column.is_text else column.least_width for column in columns]
    if is_wide and sum(least) + gaps > console.width:
        print_columns(console, columns[0], columns[1:])
        return
    widths = [column.least_width if is_wide and not column.is_text else None for column in columns]
    _draw(console, columns, widths)
