"""The files of CheckThat! 2019, task 1: debates, and the scores of their lines.

A debate is `line_number<TAB>speaker<TAB>text<TAB>label` a line, a result file `line_number<TAB>score` a line.

What the organisers' files have, and what therefore passes: a last line without line end, double quotes that are
never closed (they are ordinary characters here), blanks around a text, several lines with one text, lines of
reactions (speaker SYSTEM, text "(APPLAUSE)"), a speaker that is spelled in several ways, has a whole sentence
before the name, or is missing. Lines may end with CRLF, as they do after a checkout on Windows.

`failures` is the organisers' format checker, which stops at the first failure, carried on to the end of the file.
The scorer reads the same file once more and is stricter about blank lines and tabs: see `scorer`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO, NamedTuple

from searchapp import files
from searchapp.errors import NotScorable
from searchapp.files import unreadable
from searchapp.formats.encoding import read_whole, undecodable
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


# As the checker has it: `\d` are decimal digits of any script, and a sign stands before a point only.
_ROW = re.compile(r"[1-9][0-9]{0,3}\t([-+]?\d*\.\d+|\d+)")

CONSECUTIVE = "They should be consecutive and starting from 1."


class Failure(NamedTuple):
    """What the checker finds wrong with a line.

    `place` is the line of the file, `kind` names the failure, `official` is the checker's own message (as
    `class: message` where it `crashes`), `advice` says what to do about it.
    """

    place: int
    kind: str
    official: str
    advice: str
    crashes: bool = False


def failures(path: Path) -> Iterator[Failure]:
    """Everything that the official format checker would stop at, in the order of the lines.

    The first one is what the checker reports; after a wrong number, the next lines are expected to continue from there.

    Raises:
        NotScorable: the file is not UTF-8, so that the checker crashes.
        DataError: the file can't be opened.
    """
    text = read_text(path)
    before = text[: len(text) - len(text.lstrip())].count("\n")  # which the checker trims away
    expected = 1
    for place, line in enumerate(text.strip().split("\n"), start=before + 1):
        if not _ROW.fullmatch(line.strip()):
            yield Failure(place, "wrong line format", f"Wrong line format: {line}", _WRITE)
            expected += 1
            continue
        cells = line.split("\t")
        if len(cells) > 2:
            official = "ValueError: too many values to unpack (expected 2)"
            yield Failure(place, "tab at an end of the line", official, "remove the tab", crashes=True)
            expected += 1
            continue
        number = int(cells[0])
        if number != expected:
            official = f"Problem with line_number: {number}. {CONSECUTIVE}"
            yield Failure(place, "wrong line number", official, f"{expected} is expected here")
        expected = number + 1


_WRITE = "write a number from 1 to 9999, a tab, and a score such as 0.25"


def read_text(path: Path) -> str:
    """The text of a file as the organisers' scripts open it: CRLF and CR have become LF.

    Raises:
        NotScorable: it is not UTF-8.
        DataError: it can't be opened.
    """
    try:
        return files.read_text(path)
    except UnicodeDecodeError as error:
        raise NotScorable(undecodable(path, error), f"UnicodeDecodeError: {error}") from error
    except OSError as error:
        raise unreadable(path, error) from error


def write_line_scores(file: BinaryIO, scores: Iterable[tuple[int, float]]) -> None:
    """Write line numbers and scores, in the order of the numbers, which must be 1, 2, 3 and so on.

    A score is written with a fixed point and as many digits as it takes to read the same number back.
    """
    for number, score in sorted(scores):
        file.write(f"{number}\t{fixed_point(score)}\n".encode())


def fixed_point(score: float) -> str:
    """A finite number as the format checker accepts it, which knows no exponents.

    >>> fixed_point(1e-05), fixed_point(-2.0), fixed_point(1e22)
    ('0.00001', '-2.0', '10000000000000000000000.0')
    """
    digits = f"{Decimal(repr(score)):f}"
    return digits if "." in digits else f"{digits}.0"
