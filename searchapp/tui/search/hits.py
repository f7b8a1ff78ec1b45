"""The list of hits, on one or two lines each, and the moves of documents between two rankings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import ClassVar

from rich.cells import cell_len
from textual.message import Message

from searchapp.app.search import SearchRequest
from searchapp.lucene.dataclass import dataclass
from searchapp.model import Hit, Markup
from searchapp.ranking.highlighting import ELLIPSIS, snippet
from searchapp.ranking.search_results import SearchResult
from searchapp.text import Span, visible_spans
from searchapp.tui.kit.content import Notation
from searchapp.tui.kit.explanation import bar
from searchapp.tui.kit.widgets import (
    DOWN,
    UP,
    RowList,
    RowPart,
    fitted,
    id_column,
    id_column_cells,
    move_label,
    shortened_id,
)

# Hits per request: marking matches takes most of a search's time.
PAGE = 20

# Hits of a ranking that are compared with those of another one.
COMPARED = 1_000


@dataclass
class Listing:
    """The `total` hits of a request, and its loaded pages, numbered from 0."""

    request: SearchRequest
    total: int = 0
    pages: dict[int, Sequence[SearchResult]] = field(default_factory=dict)
    # Whether the query scores them; otherwise they are sorted by id.
    is_ranked: bool = True
    # The ids of the first hits, once they are read to compare the ranking with another one.
    ids: Sequence[str] | None = None

    def hit(self, index: int) -> SearchResult | None:
        number, offset = divmod(index, PAGE)
        page = self.pages.get(number, ())
        return page[offset] if offset < len(page) else None

    def missing(self, indexes: Iterable[int]) -> int | None:
        """Return the number of the first page that lacks one of these hits."""
        numbers = dict.fromkeys(index // PAGE for index in indexes if 0 <= index < self.total)
        return next((number for number in numbers if number not in self.pages), None)

    def page_request(self, number: int) -> SearchRequest:
        return replace(self.request, size=PAGE, first=number * PAGE)


# A line uses the part of a text with the most matches: maximum characters before and after rendering
# markup.
READ, WINDOW = 640, 480

# Characters before the first match in that part.
_LEAD = 120

_ID_CELLS = 14
# Least widths of lists that show scores, and ids.
_SCORE_FROM = 52

_IDS_FROM = 36

# Width of a move and the blank behind it, and of a score with its blanks.
_MOVE_CELLS, _SCORE_CELLS = 5, 11


@dataclass(frozen=True, slots=True)
class MarkedHit:
    """A hit to compare with another one."""

    request: SearchRequest
    ranked_hit: tuple[int, Hit]


class HitRows(RowList):
    """The hits with verdict, rank, id, a snippet with marked matches, and score.

    A hit has one line, or two with a bar for the score. Beside another ranking, arrows show the moves of documents
    from the first to the second one.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "rows--match",
        "rows--rank",
        "rows--aside",
    }

    class Wanted(Message):
        """A visible line lacks its hit."""

        def __init__(self, rows: HitRows) -> None:
            self.rows = rows
            super().__init__()

    def __init__(
        self, mark: Callable[[str], RowPart], markup: Markup, *, is_second: bool = False, row_height: int = 1
    ) -> None:
        super().__init__(id="second" if is_second else "hits")
        self.is_second = is_second
        self.row_height = row_height
        # Whether another ranking is beside this one.
        self.is_compared = False
        # The ranks of documents in the other ranking, once they are known.
        self.other_ranks: Mapping[str, int] | None = None
        self.listing = Listing(SearchRequest(""))
        self.notation = Notation(markup)
        self._mark = mark
        self.marked: MarkedHit | None = None
        self._mark_cells = 0
        # The parts of each row whose width depends on that of the list.
        self._lines: dict[int, Sequence[RowPart]] = {}
        self._width = 0
        # None until a page is known.
        self._id_cells: int | None = None
        self._is_wanted = False

    def open(self, listing: Listing, cursor: int, mark_cells: int) -> None:
        """Show another ranking; `mark_cells` is the width of verdicts, or 0."""
        self.listing = listing
        self._mark_cells = mark_cells
        self._id_cells = None
        self._forget()
        self.show(listing.total, cursor)

    def redraw_page(self, indexes: range) -> None:
        self._is_wanted = False
        for index in self.visible_rows:
            if index in indexes:
                self.redraw(index)

    def show_in(self, notation: Notation) -> None:
        self.notation = notation
        self._forget()
        self.refresh()

    def toggle_lines(self) -> None:
        """Show each hit on two lines, or on one."""
        self._forget()
        self.set_row_height(3 - self.row_height)

    def compare(self, *, is_on: bool) -> None:
        """Make room for the moves to another ranking, or not."""
        self.is_compared, self.shows_cursor = is_on, True
        self._forget()
        self.set_other_ranks(None)

    def set_other_ranks(self, ranks: Mapping[str, int] | None) -> None:
        self.other_ranks = ranks
        self.refresh()

    def mark_hit(self, result: SearchResult | None) -> None:
        self.marked = None if result is None else MarkedHit(self.listing.request, (result.rank, result.hit))
        self.refresh()

    @property
    def marked_rank(self) -> int | None:
        if self.marked is None or self.marked.request is not self.listing.request:
            return None
        return self.marked.ranked_hit[0]

    @property
    def result(self) -> SearchResult | None:
        return self.listing.hit(self.cursor) if self.count else None

    def parts(self, index: int, width: int) -> Sequence[RowPart]:
        if width != self._width:
            self._width = width
            self._lines.clear()
        result = self.listing.hit(index)
        sign = "◆" if index + 1 == self.marked_rank else "▶" if self.is_here(index) else " "
        pointer = (sign, "rows--begun")
        digits = self._rank_cells
        rank = (f"{index + 1:>{digits},} " if digits else " ", "rows--rank")
        if result is None:
            if not self._is_wanted:
                self._is_wanted = True
                self.post_message(self.Wanted(self))
            return [pointer, rank, ("…", "rows--faint")]
        begin = [pointer]
        if self._mark_cells:
            sign, look = self._mark(result.hit.document_id)
            begin += [(f"{sign:>{self._mark_cells}}", look), (" ", "rows--text")]
        begin.append(rank)
        if self._shows_moves:
            begin.append(self._move(index, result.hit.document_id))
        cells = width - self._begin_cells
        if self.row_height > 1:
            return [*begin, *self._scored_id(result.hit, cells)]
        if index not in self._lines:
            self._lines[index] = self._parts(result, cells)
        return [*begin, *self._lines[index]]

    def second_line(self, index: int, width: int) -> Sequence[RowPart]:
        result = self.listing.hit(index)
        if result is None:
            return ()
        begin = self._begin_cells
        if index not in self._lines:
            self._lines[index] = piece(result.text, result.matches, width - begin - 1, self.notation)
        return [(" " * begin, "rows--text"), *self._lines[index]]

    def head(self, width: int) -> Sequence[str]:
        digits, is_ranked = self._rank_cells, self.listing.is_ranked
        begin = f"{'me' if self._mark_cells else '':{1 + self._mark_cells + bool(self._mark_cells)}}"
        rank = f"{'#' if digits else '':>{digits}} "
        moves = fitted(f"{UP}{DOWN}", _MOVE_CELLS) if self._shows_moves else ""
        cells = width - self._begin_cells
        if self.row_height > 1:
            score = "score ".rjust(_SCORE_CELLS + self._bar_cells(cells) + 1) if is_ranked else ""
            return begin, rank, moves, fitted("document", cells - len(score)), score
        id_ = id_column("id", self._id_width()) if cells >= _IDS_FROM else ""
        score = "score " if cells >= _SCORE_FROM and is_ranked else ""
        left = cells - cell_len(id_) - len(score)
        return begin, rank, moves, id_, fitted("document", left), score

    @property
    def _rank_cells(self) -> int:
        return max(3, len(f"{self.count:,}")) if self.listing.is_ranked else 0

    @property
    def _shows_moves(self) -> bool:
        return self.is_compared and self.listing.is_ranked

    @property
    def _begin_cells(self) -> int:
        """The cells before a hit's id or snippet."""
        mark_cells = self._mark_cells + 1 if self._mark_cells else 0
        return 1 + mark_cells + self._rank_cells + 1 + (_MOVE_CELLS if self._shows_moves else 0)

    def _move(self, index: int, document: str) -> RowPart:
        if self.other_ranks is None or index >= COMPARED:
            return " " * _MOVE_CELLS, "rows--text"
        rank, other = index + 1, self.other_ranks.get(document)
        move = None if other is None else other - rank if self.is_second else rank - other
        return f"{move_label(move, _MOVE_CELLS - 1)} ", "rows--faint" if move == 0 else "rows--begun"

    @staticmethod
    def _bar_cells(cells: int) -> int:
        return 12 if cells >= 60 else 6 if cells >= 24 else 0

    def _scored_id(self, hit: Hit, cells: int) -> list[RowPart]:
        first = self.listing.hit(0)
        if not self.listing.is_ranked or first is None:
            return [(fitted(shortened_id(hit.document_id, cells), cells), "rows--text")]
        best, bar_cells = first.hit.score, self._bar_cells(cells)
        left = cells - _SCORE_CELLS - bar_cells - 1
        return [
            (fitted(shortened_id(hit.document_id, left), left), "rows--text"),
            (f" {hit.score:>9,.3f} ", "rows--rank"),
            (f"{bar(hit.score / best if best > 0 else 0.0, bar_cells)} ", "rows--begun"),
        ]

    def _parts(self, result: SearchResult, cells: int) -> list[RowPart]:
        parts: list[RowPart] = []
        has_score = cells >= _SCORE_FROM and self.listing.is_ranked
        score = f" {result.hit.score:>9,.3f} " if has_score else " "
        left = cells - len(score)
        if cells >= _IDS_FROM:
            column = id_column(result.hit.document_id, self._id_width())
            parts.append((column, "rows--faint"))
            left -= cell_len(column)
        parts += piece(result.text, result.matches, left, self.notation)
        parts.append((score, "rows--rank"))
        return parts

    def _id_width(self) -> int:
        if self._id_cells is None:
            ids = [result.hit.document_id for result in self.listing.pages.get(0, ())]
            self._id_cells = id_column_cells(ids, _ID_CELLS)
        return self._id_cells

    def _forget(self) -> None:
        self._lines.clear()
        self._is_wanted = False


def read_markup(results: Sequence[SearchResult], notation: Notation) -> None:
    """Render and cache the markup of hits, in any thread."""
    for result in results:
        notation.rewritten(_window(result.text, result.matches, READ)[0])


def piece(text: str, matches: Sequence[Span], cells: int, notation: Notation) -> list[RowPart]:
    """Return a snippet of a text in exactly `cells` cells, with marked matches."""
    if cells <= 0:
        return []
    text, spans = _window(text, matches, READ)
    rewritten = notation.rewritten(text)
    text, spans = _window(rewritten.text, rewritten.moved(spans), WINDOW)
    shown, marked = visible_spans(*snippet(text, spans, cells))
    parts: list[RowPart] = []
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
    """Return the part of about `length` characters with the most matches, and these matches."""
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
