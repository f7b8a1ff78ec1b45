r"""Debates of CheckThat! 2019, task 1: a file a debate, `line_number<TAB>speaker<TAB>text<TAB>label` a line.

What the organisers' files have, and what therefore passes: a last line without line end, double quotes that are
never closed (they are ordinary characters here), blanks around a text, several lines with one text, lines of
reactions (speaker SYSTEM, text "(APPLAUSE)"), a speaker that is spelled in several ways, has a whole sentence
before the name, or is missing. Lines may end with CRLF, as they do after a checkout on Windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from searchapp.formats.encoding import read_whole
from searchapp.formats.problems import Problems, shown

MOST_LINES = 9999
"""The official result file has no room for greater line numbers."""

_COLUMNS = "line_number, speaker, text, label, with a tab between them"


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence of a debate; label 1 means that it is worth a fact check, 0 that it is not."""

    number: int
    speaker: str
    text: str
    label: int


def read_debate(path: Path, problems: Problems) -> Iterator[Line]:
    """The lines of a debate; one that is not as it should be goes to `problems` and is left out."""
    text = _text(path, problems)
    if text is None:
        return
    rows = text.replace("\r\n", "\n").split("\n")
    if rows[-1] == "":
        rows.pop()
    if not rows:
        problems.add(path, "empty file", detail=f"a debate has lines of {_COLUMNS}", skippable=False)
    seen: dict[int, int] = {}
    for place, row in enumerate(rows, start=1):
        line = _line(path, place, row, problems)
        if line is None:
            continue
        first = seen.setdefault(line.number, place)
        if first != place:
            detail = f"{line.number} is the number of line {first} already"
            problems.add(path, "duplicate line number", f"line {place}", detail)
        elif line.number != place:
            detail = f"{line.number}, where {place} should be: number the lines from 1 on without gaps"
            problems.add(path, "wrong line number", f"line {place}", detail)
        else:
            yield line


def write_debate(file: BinaryIO, lines: Iterable[Line]) -> None:
    """Write lines, which have neither tabs nor line ends in their cells, as `read_debate` reads them."""
    for line in lines:
        file.write(f"{line.number}\t{line.speaker}\t{line.text}\t{line.label}\n".encode())


def _text(path: Path, problems: Problems) -> str | None:
    text = read_whole(path, problems)
    if text is None:
        return None
    if text.startswith("\ufeff"):
        detail = "remove the byte-order mark, which the official scorer takes for a part of the first number"
        problems.add(path, "byte-order mark", "line 1", detail, skippable=False)
        return None
    return text


def _line(path: Path, place: int, row: str, problems: Problems) -> Line | None:
    """A row as a line, or None and a problem."""
    where = f"line {place}"
    if not row.strip():
        problems.add(path, "blank line", where, "remove it: the official scorer stops there")
        return None
    if "\r" in row:
        problems.add(path, "stray carriage return", where, "end lines with LF or CRLF alone")
        return None
    if "\0" in row:
        problems.add(path, "NUL character", where, "remove it: text has none")
        return None
    cells = row.split("\t")
    if len(cells) != 4:
        problems.add(path, "wrong number of columns", where, f"{len(cells)}, not 4: {_COLUMNS}")
        return None
    number, speaker, text, label = cells
    if not (number.isascii() and number.isdigit() and not number.startswith("0")):
        detail = f"{shown(number)} is not a whole number from 1 on"
        problems.add(path, "wrong line number", where, detail)
        return None
    # Python converts no more than 4300 digits.
    if len(number) > len(str(MOST_LINES)) or int(number) > MOST_LINES:
        detail = f"{shown(number)}, and the official result file ends at {MOST_LINES}: split the debate"
        problems.add(path, "too many lines", where, detail)
        return None
    if label not in ("0", "1"):
        problems.add(path, "unknown label", where, f"{shown(label)}, not 0 or 1")
        return None
    if not text.strip():
        problems.add(path, "blank text", where, "every line has a text, even if it is (APPLAUSE)")
        return None
    return Line(int(number), speaker, text, int(label))
