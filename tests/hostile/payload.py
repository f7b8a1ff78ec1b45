"""Texts with control sequences and deceptive characters, and a mark that identifies their field."""

from __future__ import annotations

import re
from itertools import pairwise

from rich.cells import cell_len  # as tables count: some characters are two cells wide

from tests.profile import FULL

KINDS = {
    "sets the clipboard": "\x1b]52;c;cHduZWQ=\x07",
    "C1 sequence": "\x9b?1049h\x9b6n",
    "right to left": "\u202egnp\u202c",
    "erases": "\x1b[2J\x1b[3J\x1b[777;7H",
    "no width": "\u200b\u200d\u2060\ufeff\u00ad\u034f",
    "sets the title": "\x1b]0;pwned\x1b\\",
    "tag characters": "\U000e0001\U000e0041\U000e007f",
    "goes back": "\b\b\b\rgone",
    "C1 strings": "\x9d0;pwned\x9c\x90q\x9c\x9fq\x9c",
    "isolates": "\u2066one\u2067two\u2068three\u2069\u200e\u200f\u061c",
    "device strings": "\x1bP$q\"p\x1b\\\x1b_q\x1b\\\x1b^q\x1b\\",
    "hides": "\x1b[8m\x1b[?5h",
    "asks": "\x1b[6n\x1b[c\x1b[>q\x05",
    "resets": "\x1bc\x1b(0\x0e\x0f",
    "deletes": "\x7f\x0b\x0c",
    "ends lines": "\u2028\u2029\x85",
    "chooses looks": "a\ufe0e\ufe0f\U000e0100\u180b",
    "fills": "\u3164\u115f\uffa0\u2800",
    "markup": "[red]x[/red][/][@click=app.quit]y[/][link=http://x]z[/link]:skull:",
    "wide and stacked": "日本語e\u0301\u0302\u0303👩\u200d🔬❤\ufe0f",
}  # fmt: skip
"""Hostile texts by their effect."""

NUL = "\x00"
HALF = "\ud800"
"""A NUL character and half a surrogate pair, which only some formats can hold."""

MARK = re.compile(r"Q\d\dZ")

_MARK_START = re.compile(r"Q\d{0,2}(?=  |$)")
_MARK_END = re.compile(r"(?:^|(?<=  ))\d{0,2}Z")
"""Parts of a mark that is wrapped: at the end of a column's line and at the start of its next line."""

_ACTS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def marks(text: str) -> set[str]:
    """Return the marks in a text, including marks wrapped at the end of a column or line.

    The length of the temporary folder's path, which contains a process id, determines where a path wraps.
    """
    result = set(MARK.findall(text))
    for above, below in pairwise(re.split(r"\r*\n", text)):
        for start in _MARK_START.finditer(above):
            column = cell_len(re.match(r"(?:.*  )?", above[: start.start()])[0])  # type: ignore[index]
            result |= {
                start[0] + end[0]
                for end in _MARK_END.finditer(below)
                if cell_len(below[: end.start()]) == column and MARK.fullmatch(start[0] + end[0])
            }
    return result


class Hostile:
    """Make hostile texts and record the field of each mark.

    A screen may show only the beginning of a field. Therefore each field begins with the next kind of text;
    `turn` shifts the kinds, so that over all turns each field begins once with each kind.
    """

    def __init__(self, turn: int = 0) -> None:
        self._turn = turn
        self.fields: dict[str, str] = {}
        """The name of each mark's field."""

    def text(self, field: str, *, nul: bool = False, half: bool = False) -> str:
        """Return a text of one line with every kind."""
        mark = self._mark(field)
        return mark + (NUL if nul else "") + (HALF if half else "") + "".join(self._kinds())

    def long(self, field: str) -> str:
        """Return a text of several lines, one of them very long."""
        return f"{self.text(field)}\n\t\n" + "endless" * 300 + "\n" + " ".join(self._kinds())

    def id(self, field: str) -> str:
        """Return an id, in which searchapp accepts deceptive but no control characters."""
        mark = self._mark(field)
        kinds = [kind for kind in self._kinds() if not _ACTS.search(kind)]
        return mark + "".join("".join(kinds).split())

    def name(self, field: str) -> str:
        """Return a valid file name."""
        name = self._mark(field)
        for kind in self._kinds():
            kind = kind.replace("/", "")
            if len((name + kind).encode()) <= 200:
                name += kind
        return name

    def _mark(self, field: str) -> str:
        mark = f"Q{len(self.fields):02}Z"
        self.fields[mark] = field
        return mark

    def _kinds(self) -> list[str]:
        first = (len(self.fields) + self._turn) % len(KINDS)
        kinds = list(KINDS.values())
        return kinds[first:] + kinds[:first]


def turns() -> range:
    """Return the turns to test: only the first, or in the full profile one for each kind."""
    return range(len(KINDS) if FULL else 1)


SEQUENCES = tuple(
    sequence for kind in KINDS.values() for sequence in re.findall(r"\x1b(?:\[[^@-~]*[@-~]|.)", kind)
)
"""The escape sequences in the texts."""
