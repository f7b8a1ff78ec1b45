"""The files of CheckThat! 2019, task 1: debates, and the scores of their lines.

A debate has lines `line_number<TAB>speaker<TAB>text<TAB>label`, a result file lines `line_number<TAB>score`.
Accepted, because official files contain them: a last line without line end, unclosed double quotes, blanks around a
text, repeated texts, lines of reactions (speaker SYSTEM, text "(APPLAUSE)"), misspelled or missing speakers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO, NamedTuple

from searchapp import files
from searchapp.errors import NotScorable
from searchapp.files import unreadable
from searchapp.formats.encoding import read_utf8, undecodable
from searchapp.formats.problems import EntryProblems, Problems, shown

# The greatest line number in the official result file.
MOST_LINES = 9999

_COLUMNS = "line_number, speaker, text and label, separated by tabs"


class DebateLine(NamedTuple):
    """A sentence of a debate; label 1 means check-worthy."""

    number: int
    speaker: str
    text: str
    label: int


def read_debate(path: Path, problems: Problems) -> Iterator[DebateLine]:
    """Read the lines of a debate; a line with a problem is skipped."""
    text = read_utf8(path, problems)
    if text is None:
        return
    if text.startswith("\ufeff"):
        detail = "remove the byte-order mark: the official scorer reads it as a part of the first number"
        problems.add(path, "byte-order mark", "line 1", detail, skippable=False)
        return
    rows = text.replace("\r\n", "\n").split("\n")
    if rows[-1] == "":
        rows.pop()
    if not rows:
        problems.add(path, "empty file", detail=f"a debate has lines of {_COLUMNS}", skippable=False)
    seen: dict[int, int] = {}
    for row_number, row in enumerate(rows, start=1):
        entry = EntryProblems(path, f"line {row_number}", problems)
        line = _parse(row)
        if not isinstance(line, DebateLine):
            entry.wrong(*line)
            continue
        first = seen.setdefault(line.number, row_number)
        if first != row_number:
            entry.wrong("duplicate line number", f"{line.number} is also the number of line {first}")
        elif line.number != row_number:
            advice = f"expected {row_number}: number the lines from 1 without gaps"
            entry.wrong("wrong line number", f"{line.number}, {advice}")
        else:
            yield line


def _parse(row: str) -> DebateLine | tuple[str, str]:
    if not row.strip():
        return "blank line", "remove it: the official scorer fails there"
    if "\r" in row:
        return "stray carriage return", "end lines with LF or CRLF"
    if "\0" in row:
        return "NUL character", "remove it: text can't contain it"
    cells = row.split("\t")
    if len(cells) != 4:
        return "wrong number of columns", f"{len(cells)}, not 4: {_COLUMNS}"
    number, speaker, text, label = cells
    if not (number.isascii() and number.isdigit() and not number.startswith("0")):
        return "wrong line number", f"{shown(number)} is not a whole number of at least 1"
    # Python converts no more than 4300 digits.
    if len(number) > len(str(MOST_LINES)) or int(number) > MOST_LINES:
        return (
            "too many lines",
            f"{shown(number)}, but the official result file ends at {MOST_LINES}: split the debate",
        )
    if label not in ("0", "1"):
        return "unknown label", f"{shown(label)}, not 0 or 1"
    if not text.strip():
        return "blank text", "every line must have a text, such as (APPLAUSE)"
    return DebateLine(int(number), speaker, text, int(label))


def write_debate(file: BinaryIO, lines: Iterable[DebateLine]) -> None:
    """Write lines as `read_debate` reads them; cells must not contain tabs or line ends."""
    for line in lines:
        file.write(f"{line.number}\t{line.speaker}\t{line.text}\t{line.label}\n".encode())


# As in the checker: `\d` is a decimal digit of any script, and only a number with a point may have a sign.
_ROW = re.compile(r"[1-9][0-9]{0,3}\t([-+]?\d*\.\d+|\d+)")

CONSECUTIVE = "They should be consecutive and starting from 1."
_WRITE = "write a number from 1 to 9999, a tab, and a score such as 0.25"


class FormatFailure(NamedTuple):
    """A failure of the official format checker."""

    line: int
    kind: str
    # The checker's message, or `class: message` if it crashes.
    official: str
    advice: str
    crashes: bool = False


def failures(path: Path) -> Iterator[FormatFailure]:
    """Yield all failures of the official format checker, in the order of the lines.

    The checker itself stops at the first failure. After a wrong number, the next lines must continue from there.

    Raises:
        NotScorable: the file is not UTF-8, which crashes the checker.
        DataError: the file can't be opened.
    """
    text = read_text(path)
    skipped = text[: len(text) - len(text.lstrip())].count("\n")  # the checker trims the text
    expected = 1
    for number, line in enumerate(text.strip().split("\n"), start=skipped + 1):
        if not _ROW.fullmatch(line.strip()):
            yield FormatFailure(number, "wrong line format", f"Wrong line format: {line}", _WRITE)
            expected += 1
            continue
        cells = line.split("\t")
        if len(cells) > 2:
            official = "ValueError: too many values to unpack (expected 2)"
            yield FormatFailure(number, "tab at an end of the line", official, "remove the tab", crashes=True)
            expected += 1
            continue
        line_number = int(cells[0])
        if line_number != expected:
            official = f"Problem with line_number: {line_number}. {CONSECUTIVE}"
            yield FormatFailure(number, "wrong line number", official, f"{expected} is expected here")
        expected = line_number + 1


def read_text(path: Path) -> str:
    """Return the text of a file as the official scripts read it: CRLF and CR become LF.

    Raises:
        NotScorable: the file is not UTF-8.
        DataError: the file can't be opened.
    """
    try:
        return files.read_text(path)
    except UnicodeDecodeError as error:
        raise NotScorable(undecodable(path, error), f"UnicodeDecodeError: {error}") from error
    except OSError as error:
        raise unreadable(path, error) from error


def write_line_scores(file: BinaryIO, scores: Iterable[tuple[int, float]]) -> None:
    """Write scores by line number, which must be 1, 2, 3 and so on, with a fixed point and full precision."""
    for number, score in sorted(scores):
        file.write(f"{number}\t{fixed_point(score)}\n".encode())


def fixed_point(score: float) -> str:
    """Return a finite number without an exponent, as the format checker requires.

    >>> fixed_point(1e-05), fixed_point(-2.0), fixed_point(1e22)
    ('0.00001', '-2.0', '10000000000000000000000.0')
    """
    digits = f"{Decimal(repr(score)):f}"
    return digits if "." in digits else f"{digits}.0"
