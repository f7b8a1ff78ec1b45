"""What a file of a user's own holds, found out from what stands in it, whatever its name says."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from searchapp.formats import graded, records
from searchapp.formats.encoding import foreign, opened
from searchapp.formats.records import Unsupported

LOOKED_AT = 100
"""Rows that are looked at."""

LONGEST_NAME, MOST_WORDS = 60, 5
"""In characters and words: what is longer is a text, and no name of a column."""

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_QRELS = re.compile(r"\S+\s+\S+\s+\S+\s+[+-]?\d+\s*")
_JSON = re.compile(r"\s*\{")


@dataclass(frozen=True, slots=True)
class Header:
    """Whether the first row of a table names its columns, and why that is believed, as a clause."""

    there: bool
    because: str


def format_in(path: Path, *, with_qrels: bool = False) -> str | None:
    """The format of a file: what its name shows unless its first line shows another; None if neither shows one.

    Raises:
        Unsupported: it is no text, or a table with other separators.
        OSError: it can't be read.
    """
    with opened(path) as file:
        if found := foreign(file.head):
            raise Unsupported(str(found))
        lines = [
            line
            for line in file.head.decode(errors="replace").removeprefix("\ufeff").splitlines()
            if line.strip()
        ]
    told = graded.format_of(path) if with_qrels else records.format_of(path)
    first = lines[0] if lines else ""
    if _JSON.match(first):
        return "jsonl"
    if with_qrels and told in (None, graded.TREC) and _QRELS.fullmatch(first):
        return graded.TREC
    if told in records.SEPARATORS:
        return _separated(lines, told)
    return _separated(lines, None) if told is None else told


def _separated(lines: Sequence[str], told: str | None) -> str | None:
    """The format of a table whose name shows `told`: another one if its rows are one cell each by that."""
    marks = {"tsv": "\t", "csv": ","}
    if not lines or (told is not None and marks[told] in lines[0]):
        return told
    other = next((name for name, mark in marks.items() if _splits(lines, mark)), None)
    if other is None and (instead := records.separator_instead([lines[0]], told or "csv")):
        raise Unsupported(f"its cells are separated by {instead[0]}: {instead[1]}")
    return other or told


def _splits(lines: Sequence[str], mark: str) -> bool:
    """Whether every line has a separator; the last one may be cut."""
    return all(mark in line for line in lines[:-1] or lines)


def header_of(path: Path, format_: str, known: Collection[str]) -> tuple[Header, list[list[str]]]:
    """Whether a table's first row names its columns, and its first rows; `known` are names that columns often have.

    Raises:
        Unsupported: it is no text, or a table with other separators.
        OSError: it can't be read.
    """
    rows = list(itertools.islice(records.read_rows(path, format_), LOOKED_AT))
    return (_header(rows[0], rows[1:], known) if rows else Header(True, "it is empty")), rows


def _header(first: Sequence[str], rest: Sequence[Sequence[str]], known: Collection[str]) -> Header:
    columns = [[row[place] for row in rest if place < len(row)] for place in range(len(first))]
    for cell in first:
        if cell.strip().lower() in known:
            return Header(True, f"the first line has {cell.strip()!r}")
    for cell in first:
        if _NUMBER.fullmatch(cell.strip()):
            return Header(False, f"the first line has the number {cell.strip()}")
        if len(cell) > LONGEST_NAME or len(cell.split()) > MOST_WORDS:
            return Header(False, "the first line has a text")
    for cell, others in zip(first, columns, strict=True):
        if others and all(_NUMBER.fullmatch(other.strip()) for other in others):
            return Header(True, f"below {cell.strip()!r} there are numbers")
    for cell, others in zip(first, columns, strict=True):
        shape = _shape(cell)
        if "9" in shape and others and all(_shape(other) == shape for other in others):
            return Header(False, f"{cell.strip()!r} looks like what is below it")
    return Header(True, "nothing in the first line looks like a value")


def _shape(cell: str) -> str:
    """What kinds of characters a cell has: `doc-17` and `doc-4` have one shape."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", cell.strip()))
