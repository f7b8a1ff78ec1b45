"""Text that acts on a terminal or deceives the eye, with a mark in it that says which field it was put into."""

from __future__ import annotations

import re
from itertools import pairwise

from rich.cells import cell_len  # as tables count: some characters take two places

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
    "wide and stacked": "日本語e\u0301\u0302\u0303👩\u200d🔬",
}  # fmt: skip
"""What it is to do, by what it is made of."""

NUL = "\x00"
HALF = "\ud800"
"""What some formats alone can hold."""

MARK = re.compile(r"Q\d\dZ")

_BEGUN = re.compile(r"Q\d{0,2}(?=  |$)")
_ENDED = re.compile(r"(?:^|(?<=  ))\d{0,2}Z")
"""What can stand of a mark at the end of a column's line, and at the beginning of its next one."""

_ACTS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def marks(text: str) -> set[str]:
    """The marks that lines of text show, also those that are broken where a column or a line ends.

    Where that is in a path depends on the length of the temporary folder's, which holds the id of a process.
    """
    result = set(MARK.findall(text))
    for above, below in pairwise(re.split(r"\r*\n", text)):
        for begun in _BEGUN.finditer(above):
            column = cell_len(re.match(r"(?:.*  )?", above[: begun.start()])[0])  # type: ignore[index]
            result |= {
                begun[0] + rest[0]
                for rest in _ENDED.finditer(below)
                if cell_len(below[: rest.start()]) == column and MARK.fullmatch(begun[0] + rest[0])
            }
    return result


class Hostile:
    """Makes the texts, and remembers which mark stands for which field.

    A line on a screen may show the beginning of a field only, so which kind comes first goes from field to field;
    `turn` turns them on, so that each comes first in each field once.
    """

    def __init__(self, turn: int = 0) -> None:
        self._turn = turn
        self.fields: dict[str, str] = {}
        """By their marks."""

    def text(self, field: str, *, nul: bool = False, half: bool = False) -> str:
        """A text of one line with every kind in it."""
        mark = self._mark(field)
        return mark + (NUL if nul else "") + (HALF if half else "") + "".join(self._kinds())

    def long(self, field: str) -> str:
        """The same in many lines, some of which are very long."""
        return f"{self.text(field)}\n\t\n" + "endless" * 300 + "\n" + " ".join(self._kinds())

    def id(self, field: str) -> str:
        """An id: what acts on a terminal is refused there, what deceives is not."""
        mark = self._mark(field)
        kinds = [kind for kind in self._kinds() if not _ACTS.search(kind)]
        return mark + "".join("".join(kinds).split())

    def name(self, field: str) -> str:
        """What a file can be called."""
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
    """How often all is done: once, or with each kind first in each field."""
    return range(len(KINDS) if FULL else 1)


SEQUENCES = tuple(
    sequence for kind in KINDS.values() for sequence in re.findall(r"\x1b(?:\[[^@-~]*[@-~]|.)", kind)
)
"""The escape sequences in the texts."""
