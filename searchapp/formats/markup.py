"""Text in markup: the text that is shown, with the position of each of its characters in the source; LaTeX formulas.

`formulas` finds the formulas between dollar signs, between the brackets that a backslash precedes, and in
environments, in time proportional to the text, whatever is not closed in it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

Span = tuple[int, int]
"""A range of characters, the end not included."""


class Piece(NamedTuple):
    """The characters from `start` to `end` of the text as it is written, which are shown from `first` to `last`.

    With `is_kept` they are shown as they are, one by one; else they are shown as something else, as a whole.
    """

    start: int
    end: int
    first: int
    last: int
    is_kept: bool


class Style(NamedTuple):
    """The name of a style, and the characters of the shown text that have it."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A text as it is shown, what is emphasized in it, and its pieces in the order of the text as it is written."""

    text: str
    styles: tuple[Style, ...]
    pieces: tuple[Piece, ...]

    def moved(self, spans: Iterable[Span]) -> list[Span]:
        """Where ranges of the text as it is written are shown: disjoint ranges, in order.

        Of what is shown as something else all is marked if any of it is.
        """
        found: list[Span] = []
        for start, end in spans:
            place = max(0, bisect_right(self.pieces, start, key=lambda piece: piece.start) - 1)
            while start < end and place < len(self.pieces) and self.pieces[place].start < end:
                piece = self.pieces[place]
                place += 1
                if piece.end <= start:
                    continue
                if piece.is_kept:
                    shift = piece.first - piece.start
                    found.append((max(start, piece.start) + shift, min(end, piece.end) + shift))
                else:
                    found.append((piece.first, piece.last))
        return joined(found)


class Rewriter:
    """Writes a text anew, from its beginning on."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts: list[str] = []
        self._pieces: list[Piece] = []
        self._styles: list[Style] = []
        self.length = 0
        """Characters that are written by now."""

    def keep(self, start: int, end: int) -> None:
        """Show these characters as they are."""
        if start < end:
            self._pieces.append(Piece(start, end, self.length, self.length + end - start, is_kept=True))
            self.insert(self._text[start:end])

    def replace(self, start: int, end: int, shown: str) -> None:
        """Show something else for these characters."""
        if shown == self._text[start:end]:
            self.keep(start, end)
        elif shown:
            self._pieces.append(Piece(start, end, self.length, self.length + len(shown), is_kept=False))
            self.insert(shown)

    def insert(self, shown: str) -> None:
        """Show something that stands for no character."""
        if shown:
            self._parts.append(shown)
            self.length += len(shown)

    def style(self, start: int, name: str) -> None:
        """Emphasize what is written since the shown text was `start` characters long."""
        if start < self.length:
            self._styles.append(Style(start, self.length, name))

    def done(self) -> Rewritten:
        """What was written."""
        return Rewritten("".join(self._parts), tuple(self._styles), tuple(sorted(self._pieces)))


def joined(spans: Iterable[Span]) -> list[Span]:
    """The same characters as disjoint ranges in ascending order; ranges that touch become one.

    >>> joined([(4, 6), (0, 2), (1, 3), (6, 7), (9, 9)])
    [(0, 3), (4, 7)]
    """
    found: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


_OPENING = re.compile(r"\$\$|(?<!\\)\$|\\\(|\\\[|\\begin\{(\w{1,30}\*?)\}")
_ENDING = re.compile(r"\\end\{(\w{1,30}\*?)\}")
_CLOSING = {"$$": "$$", r"\(": r"\)", r"\[": r"\]"}

# A paragraph ends no formula but a diagram: `$` of two paragraphs are not one formula.
_INSIDE = re.compile(r"(?:\\.|[^$\\\n]++|\n(?![ \t]*+\n))++\$", re.DOTALL)
_DIAGRAM = re.compile(r"(?=\\begin)(?:\\.|[^$\\]++)++\$", re.DOTALL)


def formulas(text: str) -> Iterator[Span]:
    r"""The formulas of a text with their delimiters, from the first to the last.

    >>> text = r"Let $x$ be \(y\), \$5."
    >>> [text[start:end] for start, end in formulas(text)]
    ['$x$', '\\(y\\)']
    """
    endings: defaultdict[str, list[int]] = defaultdict(list)
    for match in _ENDING.finditer(text):
        endings[match[1]].append(match.end())
    never_closed: set[str] = set()
    place = 0
    while opening := _OPENING.search(text, place):
        sign, begin, inside = opening[0], opening.start(), opening.end()
        if sign == "$":
            closed = _INSIDE.match(text, inside) or _DIAGRAM.match(text, inside)
            end = closed.end() if closed else None
        elif sign in _CLOSING:
            found = -1 if sign in never_closed else text.find(_CLOSING[sign], inside + 1)
            if found < 0:
                never_closed.add(sign)
            end = found + 2 if found >= 0 else None
        else:
            ends = endings[opening[1]]
            next_end = bisect_left(ends, inside + 1)
            end = ends[next_end] if next_end < len(ends) else None
        if end is not None:
            yield begin, end
            place = end
        else:
            place = begin + 1 if sign == "$$" else inside
