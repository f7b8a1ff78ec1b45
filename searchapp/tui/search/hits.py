"""The hits of a search, one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual.message import Message

from searchapp.app.search import SearchRequest
from searchapp.model import Hit, Markup
from searchapp.ranking.marks import Span
from searchapp.ranking.search import SearchResult
from searchapp.ranking.snippets import ELLIPSIS, snippet
from searchapp.tui.notation import Notation
from searchapp.tui.rows import Part, Rows, fitted
from searchapp.tui.search.listing import Listing
from searchapp.visible import visible_line, visible_spans

READ, WINDOW = 640, 480
"""Of a longer text only about this many characters are looked at for a line, those with the most matches: as it is
written, and as it is shown."""

_LEAD = 120
"""Characters before the first match that are among them."""

_ID_CELLS = 14
_SCORE_FROM = 52
"""Scores are shown in a list that is at least this wide."""

_IDS_FROM = 36


@dataclass(frozen=True, slots=True)
class Marked:
    """A hit that is to be compared with another one: of which ranking, at which rank."""

    request: SearchRequest
    place: tuple[int, Hit]


Mark = Callable[[str], Part]
"""What was said of a document, in a sign."""


class HitRows(Rows):
    """The hits: what was said of each, its rank, its id, a piece of it with what matches, and its score."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--match", "rows--rank", "rows--zero", "rows--some", "rows--most", "rows--aside",
    }  # fmt: skip

    class Wanted(Message):
        """A line is in sight whose hit is not there."""

    def __init__(self, mark: Mark, markup: Markup) -> None:
        super().__init__(id="hits")
        self.listing = Listing(SearchRequest(""))
        self.notation = Notation(markup)
        self._mark = mark
        self.marked: Marked | None = None
        self._mark_cells = 0
        self._lines: dict[int, Sequence[Part]] = {}
        self._width = 0
        self._id_cells = 0
        self._is_wanted = False

    def open(self, listing: Listing, cursor: int, mark_cells: int) -> None:
        """Show another ranking; marks of documents take this many cells, 0 where there are none."""
        self.listing = listing
        self._mark_cells = mark_cells
        self._id_cells = 0
        self._forget()
        self.show(listing.total, cursor)

    def page_came(self, places: range) -> None:
        """Draw what is there by now."""
        self._is_wanted = False
        for place in self.visible_places:
            if place in places:
                self.redraw(place)

    def show_in(self, notation: Notation) -> None:
        """Show texts in another form."""
        self.notation = notation
        self._forget()
        self.refresh()

    def mark_place(self, result: SearchResult | None) -> None:
        """Mark a hit to be compared, or none any more."""
        self.marked = None if result is None else Marked(self.listing.request, (result.rank, result.hit))
        self.refresh()

    @property
    def _marked_rank(self) -> int | None:
        is_here = self.marked is not None and self.marked.request is self.listing.request
        return self.marked.place[0] if self.marked is not None and is_here else None

    @property
    def result(self) -> SearchResult | None:
        """The hit that the cursor is on."""
        return self.listing.hit(self.cursor) if self.count else None

    def parts(self, place: int, width: int) -> Sequence[Part]:
        if width != self._width:
            self._width = width
            self._lines.clear()
        result = self.listing.hit(place)
        sign = "◆" if place + 1 == self._marked_rank else "▶" if place == self.cursor else " "
        pointer = (sign, "rows--begun")
        digits = max(3, len(f"{self.count:,}"))
        rank = (f"{place + 1:>{digits},} ", "rows--rank")
        if result is None:
            self._want()
            return [pointer, rank, ("…", "rows--faint")]
        if place not in self._lines:
            self._lines[place] = self._parts(result, width - digits - 2 - self._marked_cells)
        mark: Sequence[Part] = ()
        if self._mark_cells:
            sign, look = self._mark(result.hit.document_id)
            mark = [(f"{sign:>{self._mark_cells}} ", look)]
        return [pointer, *mark, rank, *self._lines[place]]

    @property
    def _marked_cells(self) -> int:
        return self._mark_cells + 1 if self._mark_cells else 0

    def _parts(self, result: SearchResult, cells: int) -> list[Part]:
        """The id, the piece of text and the score, in this many cells."""
        parts: list[Part] = []
        score = f" {result.hit.score:>9,.3f} " if cells >= _SCORE_FROM else " "
        left = cells - len(score)
        if cells >= _IDS_FROM:
            width = self._id_width()
            parts.append((_id(result.hit.document_id, width) + "  ", "rows--faint"))
            left -= width + 2
        parts += piece(result.text, result.matches, left, self.notation)
        parts.append((score, "rows--rank"))
        return parts

    def _id_width(self) -> int:
        """The cells of ids: what those of the first page take, whichever others are there, but no more than a few."""
        if not self._id_cells:
            ids = [one.hit.document_id for one in self.listing.pages.get(0, ())]
            self._id_cells = min(_ID_CELLS, max((cell_len(visible_line(one)) for one in ids), default=1))
        return self._id_cells

    def _want(self) -> None:
        if not self._is_wanted:
            self._is_wanted = True
            self.post_message(self.Wanted())

    def _forget(self) -> None:
        self._lines.clear()
        self._is_wanted = False


def prepare(results: Sequence[SearchResult], notation: Notation) -> None:
    """Read the markup that lines of these hits will show, which takes most of the time to draw them, ahead of that.

    Any thread may do so: what a text looks like is kept.
    """
    for one in results:
        notation.rewritten(_window(one.text, one.matches, READ)[0])


def _id(document_id: str, cells: int) -> str:
    """An id in exactly so many cells: of a long one the end, by which ids differ.

    >>> _id("valley_governors:16", 10), _id("7", 3)
    ('…ernors:16', '7  ')
    """
    shown = visible_line(document_id)
    if cell_len(shown) > cells:
        while cell_len(shown) >= cells:
            shown = shown[1:]
        shown = f"…{shown}"
    return fitted(shown, cells)


def piece(text: str, matches: Sequence[Span], cells: int, notation: Notation) -> list[Part]:
    """A piece of a text in exactly so many cells, with what matches in it."""
    if cells <= 0:
        return []
    text, spans = _window(text, matches, READ)
    found = notation.rewritten(text)
    text, spans = _window(found.text, found.moved(spans), WINDOW)
    shown, marked = visible_spans(*snippet(text, spans, cells))
    parts: list[Part] = []
    left, last = cells, 0
    for start, end, look in [*((*span, "rows--match") for span in marked), (len(shown), len(shown), "")]:
        for words, part_look in ((shown[last:start], "rows--text"), (shown[start:end], look)):
            if words and left > 0:
                words = words if cell_len(words) <= left else fitted(words, left)
                parts.append((words, part_look))
                left -= cell_len(words)
        last = max(last, end)
    parts.append((" " * left, "rows--text"))
    return parts


def _window(text: str, matches: Sequence[Span], length: int) -> tuple[str, list[Span]]:
    """The part of a long text that has the most matches, about so many characters of it, and those."""
    if len(text) <= length:
        return text, list(matches)
    begin, most, last = 0, 0, 0
    for first, (start, _end) in enumerate(matches):
        while last < len(matches) and matches[last][1] <= start + length - _LEAD:
            last += 1
        if last - first > most and start > length - _LEAD:
            begin, most = start - _LEAD, last - first
        elif last - first > most:
            begin, most = 0, last - first
    end = begin + length
    inside = [(a - begin, min(b, end) - begin) for a, b in matches if a >= begin and a < end]
    return (ELLIPSIS if begin else "") + text[begin:end], [
        (a + (begin > 0), b + (begin > 0)) for a, b in inside
    ]
