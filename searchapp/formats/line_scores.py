"""The result file of CheckThat! 2019, task 1: `line_number<TAB>score` a line, a file a debate.

`failures` is the organisers' format checker, which stops at the first failure, carried on to the end of the file.
The scorer reads the same file once more and is stricter about blank lines and tabs: see
`searchapp.evaluation.checkthat`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO, NamedTuple

from searchapp import inputs
from searchapp.errors import NotScorable
from searchapp.files import unreadable
from searchapp.formats.encoding import undecodable

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
        return inputs.read_text(path)
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
