"""Tables for terminals, as CSV, as Markdown, and as LaTeX with the package booktabs.

A table that is wider than the terminal is never cut: headings and names are folded, then columns continue in
further tables below.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchapp.cli.output import print_json, show, stdout_console
from searchapp.errors import UsageError
from searchapp.files import distinct_names, shared_parts
from searchapp.lucene.dataclass import dataclass
from searchapp.text import visible, visible_line

if TYPE_CHECKING:
    from searchapp.app.comparison import Difference
    from searchapp.app.evaluate import Evaluation
    from searchapp.cli.output import Console
    from searchapp.evaluation.base import Breakdown
    from searchapp.report.judgment_tables import JudgmentTable


Figures = Mapping[str, float]

# Blanks between two columns.
GAP = 2

# Characters of a path before its first parts are left out.
LONGEST_PATH = 40

# Folded widths of headings and groups, in characters.
HEADING_WIDTH, GROUP_WIDTH = 16, 28

# Least width of a folded column of texts, in characters.
LEAST_TEXT = 8


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A heading and cells; figures are aligned to the right. `styles` are Rich's."""

    heading: str
    cells: Sequence[str]
    is_text: bool = False
    styles: Sequence[str] = ()

    @property
    def width(self) -> int:
        return max(_widths((self.heading, *self.cells)))

    @property
    def least_width(self) -> int:
        """The width with folded headings and names; figures are never folded."""
        words = min(max(_widths(self.heading.split()), default=0), HEADING_WIDTH)
        cells = max(_widths(self.cells), default=0)
        return max(words, min(cells, GROUP_WIDTH) if self.is_text else cells)


def _widths(texts: Iterable[str]) -> list[int]:
    from rich.cells import cell_len  # some characters are two cells wide

    return [cell_len(visible(text)) for text in texts]


def text_column(heading: str, cells: Sequence[str]) -> TableColumn:
    """Make a column of left-aligned texts."""
    return TableColumn(heading, cells, is_text=True)


Blocks = Iterator[tuple[Sequence[TableColumn], bool]]


def blocks(first: TableColumn, columns: Sequence[TableColumn], width: int) -> Blocks:
    """Divide columns into tables that fit the width and begin with `first`.

    Yields the other columns of each table, and whether to fold it.
    """
    if first.width + sum(GAP + column.width for column in columns) <= width:
        yield columns, False
        return
    block: list[TableColumn] = []
    used = first.least_width
    for column in columns:
        if block and used + GAP + column.least_width > width:
            yield block, True
            block, used = [], first.least_width
        block.append(column)
        used += GAP + column.least_width
    yield block, True


def _folded_widths(columns: Sequence[TableColumn], width: int) -> list[int]:
    """Return the widths of folded columns; fold the texts of two columns that are still too wide."""
    widths = [column.least_width for column in columns]
    room = width - GAP
    if len(columns) == 2 and sum(widths) > room:
        left = room - widths[1]
        is_text = columns[1].is_text
        widths[0] = max(1, min(widths[0], max(room // 2, left)) if is_text else left)
        if is_text:
            widths[1] = max(1, room - widths[0])
    return widths


def _draw(
    console: Console,
    columns: Sequence[TableColumn],
    widths: Sequence[int | None],
    bold: Iterable[int] = (),
) -> None:
    """Draw columns; a width of None takes the available space."""
    from rich import table
    from rich.text import Text

    drawn = table.Table(box=None, pad_edge=False, padding=(0, GAP // 2), header_style="bold")
    for column, width in zip(columns, widths, strict=True):
        justify: Any = "left" if column.is_text else "right"
        drawn.add_column(Text(visible(column.heading)), justify=justify, overflow="fold", width=width)
    strong = set(bold)
    for row in range(len(columns[0].cells)):
        cells = [
            Text(visible(column.cells[row]), style=column.styles[row] if column.styles else "")
            for column in columns
        ]
        drawn.add_row(*cells, style="bold" if row in strong else None)
    console.print(drawn)


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Columns below a heading; the first column names the rows."""

    columns: Sequence[TableColumn]
    heading: str = ""
    # Indexes of rows in bold type.
    bold: Sequence[int] = ()
    # A sentence to print if there are no columns.
    instead: str = ""

    @classmethod
    def of_rows(
        cls, headings: Sequence[str], rows: Iterable[Sequence[str]], texts: Sequence[int] = (0,)
    ) -> ResultTable:
        """Make a table from rows; `texts` are the indexes of columns without figures."""
        lines = [[visible_line(cell) for cell in row] for row in rows]
        columns = enumerate(headings)
        return cls([TableColumn(name, [line[at] for line in lines], at in texts) for at, name in columns])

    def print(self, console: Console) -> None:
        if self.heading:
            print_line(console, self.heading, "bold")
        if not self.columns:
            print_line(console, self.instead)
            return
        first, *others = self.columns
        for number, (block, is_folded) in enumerate(blocks(first, others, console.width)):
            if number:
                console.print()
            shown = (first, *block)
            widths = [column.width for column in shown]
            _draw(console, shown, _folded_widths(shown, console.width) if is_folded else widths, self.bold)

    def print_folded(self) -> None:
        """Print the table on stdout; fold its texts further before columns continue below."""
        console, columns = stdout_console(), self.columns
        room = console.width - GAP * (len(columns) - 1)
        is_wide = sum(column.width for column in columns) > room
        least = [min(each.width, LEAST_TEXT) if each.is_text else each.least_width for each in columns]
        if is_wide and sum(least) > room:
            self.print(console)
        else:
            _draw(
                console,
                columns,
                [each.least_width if is_wide and not each.is_text else None for each in columns],
            )

    def markdown(self) -> list[str]:
        return [
            *([f"**{for_markdown(self.heading)}**", ""] if self.heading else []),
            "| " + " | ".join(for_markdown(column.heading) for column in self.columns) + " |",
            "|" + "".join("---|" if column.is_text else "---:|" for column in self.columns),
            *("| " + " | ".join(map(for_markdown, cells)) + " |" for cells in self._rows()),
        ]

    def latex(self) -> list[str]:
        return [
            *(["", rf"\textbf{{{for_latex(self.heading)}}}\par"] if self.heading else []),
            rf"\begin{{tabular}}{{{''.join('l' if column.is_text else 'r' for column in self.columns)}}}",
            r"\toprule",
            " & ".join(for_latex(column.heading) for column in self.columns) + r" \\",
            r"\midrule",
            *(" & ".join(map(for_latex, cells)) + r" \\" for cells in self._rows()),
            r"\bottomrule",
            r"\end{tabular}",
        ]

    def _rows(self) -> Iterator[list[str]]:
        for row in zip(*(column.cells for column in self.columns), strict=True):
            yield [cell.strip() for cell in row]


class Layout(StrEnum):
    """The format of a printed result."""

    text = "text"
    json = "json"
    csv = "csv"
    latex = "latex"
    markdown = "markdown"


def chosen_layout(**options: bool) -> Layout:
    """Return the layout whose option is set.

    Raises:
        UsageError: several options are set.
    """
    chosen = [Layout(name) for name, is_given in options.items() if is_given]
    if len(chosen) > 1:
        *names, last = (f"--{name}" for name in options)
        raise UsageError(f"{', '.join(names)} and {last} exclude each other: give one of them")
    return chosen[0] if chosen else Layout.text


@dataclass(frozen=True, slots=True)
class Printout:
    """A result in every layout but JSON."""

    # For a terminal; a table without a heading continues the one above it.
    tables: Sequence[ResultTable]
    # Sentences that explain the figures.
    legend: Sequence[str]
    # For CSV, at full precision.
    rows: Iterable[Mapping[str, object]]
    # For Markdown and LaTeX; default: `tables`.
    written: Sequence[ResultTable] = ()

    def print(self, console: Console) -> None:
        for number, table in enumerate(self.tables):
            if number and table.heading:
                console.print()
            table.print(console)
        console.print()
        for sentence in self.legend:
            print_line(console, sentence)

    def text_in(self, layout: Layout) -> str:
        """Return the result as CSV, Markdown or LaTeX, with the legend as a list or in comments."""
        tables = self.written or self.tables
        match layout:
            case Layout.csv:
                return csv_table(self.rows)
            case Layout.markdown:
                lines = [line for table in tables for line in (*table.markdown(), "")]
                return "\n".join([*lines, *(f"- {for_markdown(sentence)}" for sentence in self.legend)])
            case _:
                lines = [f"% {visible_line(sentence)}" for sentence in self.legend]
                return "\n".join([*lines, *(line for table in tables for line in table.latex())])


def print_result(layout: Layout, to_json: Callable[[], Any], printout: Callable[[], Printout]) -> None:
    """Print a result on stdout in a layout."""
    if layout is Layout.json:
        print_json(to_json())
    elif layout is Layout.text:
        printout().print(stdout_console())
    else:
        show(printout().text_in(layout).rstrip("\n"))


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print a sentence or a heading; a terminal gets lines that end between words."""
    console.print(visible_line(text), style=style)


def print_tables(tables: Iterable[JudgmentTable]) -> None:
    """Print tables on stdout, each below its caption."""
    console = stdout_console()
    for number, table in enumerate(tables):
        if number:
            console.print()
        print_line(console, table.caption, "bold")
        ResultTable.of_rows(table.headings, table.rows, table.texts).print_folded()


def print_evaluations(evaluations: Sequence[Evaluation]) -> None:
    """Print the figures and breakdowns of runs, a column for each run, without duplicate figures."""
    official = _names(evaluation.official.values for evaluation in evaluations)
    honest = _other_names(
        [(evaluation.official.honest, evaluation.official.values) for evaluation in evaluations]
    )
    measures = _other_names(
        [(evaluation.measures.values, evaluation.official.values) for evaluation in evaluations]
    )
    names = ["topics", *(f"{name} (official)" for name in official), *(f"{name} (honest)" for name in honest)]
    headed = list(zip(headings(evaluations), evaluations, strict=True))
    columns = [text_column("measure", [*names, *measures])]
    for heading, each in headed:
        cells = [_figure(each.official.values.get(name), 6) for name in official]
        cells += [_figure(each.official.honest.get(name), 6) for name in honest]
        cells += [_figure(each.measures.values.get(name), 6) for name in measures]
        columns.append(TableColumn(heading, [str(each.topics), *cells]))
    console = stdout_console()
    ResultTable(columns, bold=range(1, 1 + len(official))).print(console)
    for heading, each in headed:
        if len(each.files) > 1:
            console.print()
            print_line(console, f"{heading}: {', '.join(Path(file).name for file in each.files)}")
        for breakdown in each.breakdowns:
            console.print()
            _breakdown_table(heading, breakdown).print(console)


def headings(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return short, distinct names of runs: their paths without common folders."""
    paths = [
        Path(evaluation.source)
        if len(evaluation.files) < 2
        else Path(*shared_parts([Path(file).parent for file in evaluation.files]))
        for evaluation in evaluations
    ]
    counts = [
        f" ({len(evaluation.files)} files)" if len(evaluation.files) > 1 else "" for evaluation in evaluations
    ]
    if len(paths) == 1:
        parts = paths[0].parts
        while len(parts) > 1 and len(str(Path(*parts))) > LONGEST_PATH:
            parts = parts[1:]
        return [f"{Path(*parts)}{counts[0]}"]
    short = [f"{name}{count}" for name, count in zip(distinct_names(paths), counts, strict=True)]
    sources = [evaluation.source for evaluation in evaluations]
    return short if len(set(short)) == len(set(sources)) else sources


def _breakdown_table(heading: str, breakdown: Breakdown) -> ResultTable:
    rows = breakdown.rows  # four digits: more would be noise in small groups
    columns = [
        text_column(breakdown.name, [row.group for row in rows]),
        TableColumn(breakdown.counted, [str(row.count) for row in rows]),
        *(
            TableColumn(name, [_figure(row.values.get(name), 4) for row in rows])
            for name in _names(row.values for row in rows)
        ),
    ]
    if breakdown.histogram:
        bars = ["█" * round(BREAKDOWN_BAR * row.values.get(breakdown.histogram, 0.0)) for row in rows]
        columns.append(text_column("", bars))
    return ResultTable(columns, f"{heading}: {breakdown.title}")


# Characters of a bar for the value 1.
BREAKDOWN_BAR = 40


def _figure(value: float | None, digits: int) -> str:
    if value is None:
        return ""
    # A count, such as R, is an integer.
    return str(value) if isinstance(value, int) else f"{value:.{digits}f}"


def _names(figures: Iterable[Figures]) -> list[str]:
    return list(dict.fromkeys(name for mapping in figures for name in mapping))


def _other_names(runs: Sequence[tuple[Figures, Figures]]) -> list[str]:
    """Return names of figures in the first mapping of each run that do not repeat one of the second in every
    run."""
    return [
        name
        for name in _names(own for own, _ in runs)
        if not all(
            name not in own
            or any(
                _measure(other) == _measure(name) and _equal(own[name], value)
                for other, value in others.items()
            )
            for own, others in runs
        )
    ]


# Measures of means in official figures.
_SAME = {"map": "ap", "mrr": "rr", "r-precision": "rprec"}


def _measure(name: str) -> str:
    """Return the measure of a figure's name, in small letters.

    >>> _measure("mean P@10"), _measure("MAP"), _measure("mean R-Precision"), _measure("AP@5")
    ('p@10', 'ap', 'rprec', 'ap@5')
    """
    short = name.casefold().removeprefix("mean ")
    return _SAME.get(short, short)


def _equal(first: float, second: float) -> bool:
    """Compare figures up to the order of their summation."""
    return math.isclose(first, second, rel_tol=0, abs_tol=1e-9) or (math.isnan(first) and math.isnan(second))


# Columns of a difference and its tests in every CSV.
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


def tested(difference: Difference | None) -> dict[str, object]:
    """Return the cells of a CSV for a difference and its tests by column."""
    if difference is None:
        return dict.fromkeys(TESTED, "")
    tests = difference.corrected
    randomisation = tests["randomisation"]
    cells = (
        *map(exactly, (difference.mean, difference.low, difference.high)),
        *(difference.wins, difference.ties, difference.losses),
        *map(exactly, (difference.effect, tests["t-test"].p, tests["wilcoxon"].p)),
        *map(exactly, (randomisation.p, randomisation.holm, randomisation.benjamini_hochberg)),
    )
    return dict(zip(TESTED, cells, strict=True))


def csv_table(rows: Iterable[Mapping[str, object]]) -> str:
    """Write rows as CSV, with the keys of the first one as header."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for number, row in enumerate(rows):
        if not number:
            writer.writerow(row)
        writer.writerow(row.values())
    return buffer.getvalue()


def exactly(value: float | None) -> str:
    """Format a figure at full precision; None and NaN as an empty text."""
    return "" if value is None or math.isnan(value) else repr(float(value))


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        **{character: rf"\{character}" for character in "{}$&#_%"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "→": r"$\rightarrow$",
        "–": "--",
        "<": r"$<$",
        ">": r"$>$",
        "█": r"$\bullet$",
        "░": r"$\circ$",
    }
)
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#])")


def for_latex(text: str) -> str:
    """Escape a text for a table cell in LaTeX."""
    return visible_line(text).translate(_LATEX)


def for_markdown(text: str) -> str:
    """Escape a text for a table cell in Markdown."""
    return _MARKDOWN.sub(r"\\\1", visible_line(text))
