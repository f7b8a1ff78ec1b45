"""Tables that the commands on judgments print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from searchapp.cli.output import stdout_console
from searchapp.visible import visible_line


def print_table(names: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int] = (0,)) -> None:
    """Print a table under the names of its columns; those whose places are in `left` are aligned there."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, name in enumerate(names):
        table.add_column(name, justify="left" if place in left else "right")
    for row in rows:
        table.add_row(*(Text(visible_line(cell)) for cell in row))
    stdout_console().print(table)
