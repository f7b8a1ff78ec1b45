"""The file that says which type of knowledge each table of WorldTree 2.1 holds.

A header, then a table and its type a row: RET (retrieval), INSUPP (inference-supporting) or COMPLEX (complex
inference).
"""

from __future__ import annotations

from pathlib import Path

from searchapp.formats.problems import Problems, shown
from searchapp.formats.tables import read_table

FILE = "WorldTree-V2.1-TableKnowledgeTypes.tsv"
TYPES = ("RET", "INSUPP", "COMPLEX")


def read_knowledge_types(path: Path, problems: Problems) -> dict[str, str]:
    """The type of each table by the table's name."""
    table = read_table(path, problems, ["TABLE"])
    types: dict[str, str] = {}
    if table is None:
        return types
    if len(table.columns) != 2:
        detail = f"the header has {len(table.columns)} columns: TABLE and its type are expected"
        problems.add(path, "wrong columns", "line 1", detail, skippable=False)
        return types
    for row in table.rows:
        name, type_ = (cell.strip() for cell in row.cells)
        where = f"line {row.line}"
        if type_ not in TYPES:
            problems.add(path, "unknown type", where, f"{shown(type_)!r} is none of {' '.join(TYPES)}")
        elif name in types:
            problems.add(path, "duplicate table", where, f"{shown(name)} is in an earlier line")
        else:
            types[name] = type_
    return types
