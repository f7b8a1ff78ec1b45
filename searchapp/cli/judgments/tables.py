"""Tables that the commands on judgments print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from searchapp.cli.figures import GAP, Column, print_columns
from searchapp.cli.output import stdout_console
from searchapp.visible import visible_line

LEAST_TEXT = 8
"""In characters: a column of texts is not folded to less."""


def print_table(names: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> None:
    """Print a table under the names of its columns; those whose places are in `left` are texts, the others figures.

    Nothing is cut. Where the terminal is too narrow, texts are folded; where even that is not enough, the table goes
    on below, each part with the first column.
    """
    from rich.table import Table
    from rich.text import Text

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
    table = Table(box=None, pad_edge=False, padding=(0, GAP // 2), header_style="bold")
    for column in columns:
        table.add_column(
            Text(column.heading),
            justify="left" if column.is_text else "right",
            overflow="fold",
            width=column.least_width if is_wide and not column.is_text else None,
        )
    for line in lines:
        table.add_row(*map(Text, line))
    console.print(table)
