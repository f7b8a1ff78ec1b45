"""Reads a tab-separated table with a header, as pandas reads it, and says where it is broken.

Cells are quoted as in the two-column file (see there). Every row must have as many cells as the header. A
byte-order mark, line ends other than LF and a last line without one change nothing and are reported as notes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from searchapp.errors import NotScorable
from searchapp.formats import two_column
from searchapp.formats.encoding import read_whole
from searchapp.formats.problems import Problems


class TableRow(NamedTuple):
    """The cells of a row, as many as there are columns, and the line in which it begins."""

    line: int
    cells: list[str]


class Table(NamedTuple):
    """A table without its blank lines."""

    columns: list[str]
    rows: list[TableRow]

    def places(self, column: str) -> list[int]:
        """Where the columns of that name stand: most names stand once."""
        return [place for place, name in enumerate(self.columns) if name == column]


def read_table(
    path: Path,
    problems: Problems,
    required: Sequence[str],
    spellings: Mapping[str, Sequence[str]] | None = None,
) -> Table | None:
    """The table in a file; None when it cannot be used as a whole, which is reported in `problems`.

    Rows that have more or fewer cells than the header are reported and left out. The columns `required` must be
    there. `spellings` has for a column what a header may call it: the first of them that it has is renamed.
    """
    text = _text(path, problems)
    if text is None:
        return None
    rows: list[TableRow] = []
    try:
        rows += (TableRow(line, cells) for line, _row, cells in two_column.split_cells(text, path))
    except NotScorable as error:
        # The rest of the file has been read as one cell.
        problems.add(path, "open quote", detail=error.problem.removeprefix(f"{path}: "), skippable=False)
        return None
    if not rows:
        problems.add(path, "empty file", detail="a header line is expected", skippable=False)
        return None
    columns = _renamed(rows[0].cells, spellings or {})
    table = Table(columns, [])
    for name in required:
        if name not in columns:
            where = f"line {rows[0].line}"
            problems.add(path, "missing column", where, f"the header has no {name!r}", skippable=False)
    if any(name not in columns for name in required):
        return None
    for row in rows[1:]:
        if len(row.cells) == len(columns):
            table.rows.append(row)
        else:
            detail = f"{len(row.cells)} cells, where the header has {len(columns)}: separate cells by tabs"
            problems.add(path, "wrong number of cells", f"line {row.line}", detail)
    return table


def _renamed(columns: Sequence[str], spellings: Mapping[str, Sequence[str]]) -> list[str]:
    found = {
        next((spelling for spelling in some if spelling in columns), name): name
        for name, some in spellings.items()
    }
    return [found.get(column, column) for column in columns]


def _text(path: Path, problems: Problems) -> str | None:
    text = read_whole(path, problems)
    if text is None:
        return None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        problems.add(path, "NUL character", f"line {line}", "a text file is expected", skippable=False)
        return None
    if text.startswith("\ufeff"):
        problems.note(path, "byte-order mark", "line 1", "it is ignored")
        text = text[1:]
    if "\r" in text:
        line = text[: text.index("\r")].count("\n") + 1
        problems.note(path, "CR in a line end", f"line {line}", "it is read as a line end")
    if text and not text.endswith(("\n", "\r")):
        detail = "the last line has no end; make sure that the file is not cut off"
        problems.note(path, "no final line end", f"line {text.count(chr(10)) + 1}", detail)
    return text
