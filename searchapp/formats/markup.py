"""Shown text with the positions of its characters in the source; LaTeX formulas."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from searchapp.lucene.dataclass import dataclass
from searchapp.text import Span, merge_spans


class MarkupPiece(NamedTuple):
    """Characters `start` to `end` of the source, shown as `first` to `last`; unchanged with `is_kept`."""

    start: int
    end: int
    first: int
    last: int
    is_kept: bool


class Style(NamedTuple):
    """A style of characters of the shown text."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A shown text, its styles, and its pieces in the order of the source."""

    text: str
    styles: tuple[Style, ...]
    pieces: tuple[MarkupPiece, ...]

    def moved(self, spans: Iterable[Span]) -> list[Span]:
        """Return the shown ranges of source ranges, disjoint and in order; replaced pieces as a whole."""
        shown: list[Span] = []
        for start, end in spans:
            if start >= end:
                continue
            first = max(0, bisect_right(self.pieces, start, key=lambda piece: piece.start) - 1)
            for piece in self.pieces[first : bisect_left(self.pieces, end, key=lambda piece: piece.start)]:
                if piece.end > start and piece.is_kept:
                    shift = piece.first - piece.start
                    shown.append((max(start, piece.start) + shift, min(end, piece.end) + shift))
                elif piece.end > start:
                    shown.append((piece.first, piece.last))
        return merge_spans(shown)


class Rewriter:
    """Builds a shown text from the beginning of a source."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts: list[str] = []
        self._pieces: list[MarkupPiece] = []
        self._styles: list[Style] = []
        self.length = 0  # the length of the text so far

    def keep(self, start: int, end: int) -> None:
        if start < end:
            self._pieces.append(MarkupPiece(start, end, self.length, self.length + end - start, is_kept=True))
            self.insert(self._text[start:end])

    def replace(self, start: int, end: int, shown: str) -> None:
        if shown == self._text[start:end]:
            self.keep(start, end)
        elif shown:
            self._pieces.append(MarkupPiece(start, end, self.length, self.length + len(shown), is_kept=False))
            self.insert(shown)

    def insert(self, shown: str) -> None:
        if shown:
            self._parts.append(shown)
            self.length += len(shown)

    def style(self, start: int, name: str) -> None:
        if start < self.length:
            self._styles.append(Style(start, self.length, name))

    def done(self) -> Rewritten:
        return Rewritten("".join(self._parts), tuple(self._styles), tuple(sorted(self._pieces)))


_OPENING = re.compile(r"\$\$|(?<!\\)\$|\\\(|\\\[|\\begin\{(\w{1,30}\*?)\}")
_ENDING = re.compile(r"\\end\{(\w{1,30}\*?)\}")
_CLOSING = {"$$": "$$", r"\(": r"\)", r"\[": r"\]"}

# A paragraph ends no formula but a diagram: `$` of two paragraphs are not one formula.
_INSIDE = re.compile(r"(?:\\.|[^$\\\n]++|\n(?![ \t]*+\n))++\$", re.DOTALL)
_DIAGRAM = re.compile(r"(?=\\begin)(?:\\.|[^$\\]++)++\$", re.DOTALL)


def formulas(text: str) -> Iterator[Span]:
    """Yield the formulas of a text with their delimiters, in time proportional to the text."""
    endings: defaultdict[str, list[int]] = defaultdict(list)
    for match in _ENDING.finditer(text):
        endings[match[1]].append(match.end())
    unclosed: set[str] = set()
    position = 0
    while opening := _OPENING.search(text, position):
        sign, begin, inside = opening[0], opening.start(), opening.end()
        if sign == "$":
            closed = _INSIDE.match(text, inside) or _DIAGRAM.match(text, inside)
            end = closed.end() if closed else None
        elif sign in _CLOSING:
            closing = -1 if sign in unclosed else text.find(_CLOSING[sign], inside + 1)
            if closing < 0:
                unclosed.add(sign)
            end = closing + 2 if closing >= 0 else None
        else:
            ends = endings[opening[1]]
            next_end = bisect_left(ends, inside + 1)
            end = ends[next_end] if next_end < len(ends) else None
        if end is not None:
            yield begin, end
            position = end
        else:
            position = begin + 1 if sign == "$$" else inside
