"""Explain the rank of a document: its score as a tree with bars, or a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rich.cells import cell_len

from searchapp.app.inspection.explanation import Reason
from searchapp.model import Explanation
from searchapp.ranking import search_results
from searchapp.ranking.search_results import ExplanationLine
from searchapp.text import counted, visible_line
from searchapp.tui.kit.content import Content
from searchapp.tui.kit.dialogs import TextDialog
from searchapp.tui.kit.widgets import (
    fitted,
    shortened_id,
)

# Lines with at least this number of cells have long bars.
WIDE_CELLS = 90

# Longer terms are cut, so that their figures stay visible.
WHAT_CELLS = 44

# Longer ids in headings are cut.
DIALOG_ID_CELLS = 60

# Figures that differ between terms.
COLUMNS = ("tf", "df", "idf", "length", "boost")

# Figures that all terms of a field share.
_COMMON = ("N", "average length")

_VALUE_CELLS = 9 + 2

_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share: float, cells: int) -> str:
    """Draw a share of some cells to an eighth of a cell.

    >>> bar(0.5, 3), bar(1.0, 3), bar(0.0, 3)
    ('█▌ ', '███', '   ')
    """
    full, rest = divmod(round(max(0.0, min(1.0, share)) * cells * 8), 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(cells)


def _bar_cells(room: int) -> int:
    return 16 if room >= WIDE_CELLS else 6


def explained(explanation: Explanation, room: int) -> Content:
    """Return a score in lines of `room` cells: value, bar, description and figures."""
    lines = search_results.shorten_explanation(explanation)
    figures = [dict(line.figures) for line in lines]
    greatest = max((abs(line.value) for line in lines if line.depth), default=0.0) or 1.0
    longest = max(
        (2 * line.depth + cell_len(visible_line(line.what)) for line in lines if line.figures), default=0
    )
    width = min(longest, WHAT_CELLS)
    cells = {
        name: max(len(name), *(len(_shown(own.get(name, ""))) for own in figures))
        for name in COLUMNS
        if any(name in own for own in figures)
    }
    bars = _bar_cells(room)
    before = _VALUE_CELLS + bars + 2
    while cells and before + width + sum(most + 2 for most in cells.values()) > room:
        cells.popitem()
    shown = [_line(line, greatest, width, cells, bars) for line in lines]
    if cells:
        head = "  ".join(f"{name:>{most}}" for name, most in cells.items())
        shown.insert(0, Content.styled(f"{'':{before + width}}  {head}", "$faint"))
    common = dict.fromkeys(
        f"{name} {value}" for line in lines for name, value in line.figures if name in _COMMON
    )
    if common:
        shown += [Content(""), Content.styled("   ".join(common), "$faint")]
    return Content("\n").join(shown)


def _line(line: ExplanationLine, greatest: float, width: int, cells: Mapping[str, int], bars: int) -> Content:
    if not line.depth:
        return Content.assemble((f"{line.value:>9.4f}  ", "bold"), f"{'':{bars}}  ", (line.what, "bold"))
    description = f"{'  ' * (line.depth - 1)}{visible_line(line.what)}"
    figures = dict(line.figures)
    figure_text = "  ".join(f"{_shown(figures.get(name, '')):>{most}}" for name, most in cells.items())
    return Content.assemble(
        f"{line.value:>9.4f}  ",
        (bar(abs(line.value) / greatest, bars), "$primary" if line.value >= 0 else "$error"),
        f"  {fitted(description, width) if figures else description}",
        (f"  {figure_text}" if figures else "", "$faint"),
    )


def _shown(figure: str) -> str:
    try:
        return f"{float(figure):.4g}" if "." in figure else figure
    except ValueError:
        return figure


def sentence(document_id: str, rest: str) -> str:
    """Return a sentence about a document."""
    return f"{shortened_id(document_id, DIALOG_ID_CELLS)} {rest}"


def shares(why: Reason, room: int) -> list[Content]:
    """Return the share of each signal in a score as bars, with its number of votes."""
    if not why.shares:
        return []
    greatest = max((abs(share.value or 0.0) for share in why.shares), default=0.0) or 1.0
    lines = [Content.styled("Score of each signal", "bold $accent")]
    for share in why.shares:
        votes = f" · {counted(len(share.votes), 'vote')}" if share.votes else ""
        value = "  nothing" if share.value is None else f"{share.value:>9.4f}"
        lines.append(
            Content.assemble(
                f"{value}  ",
                (bar(abs(share.value or 0.0) / greatest, _bar_cells(room)), "$primary"),
                f"  {share.signal}",
                (f"  weight {share.weight:g}{votes}", "$faint"),
            )
        )
    return [
        *lines,
        Content(""),
        Content.styled("How each score was computed, before weighting", "bold $accent"),
    ]


class ExplanationDialog(TextDialog):
    """Explains the rank of a document."""

    def __init__(self, why: Reason, rest: str, open_votes: Callable[[], object] | None = None) -> None:
        super().__init__(sentence(why.document_id, rest))
        self._why = why
        self._open_votes = open_votes if why.votes else None

    @property
    def hint(self) -> str:
        return f"{'↵ votes    ' if self._open_votes else ''}{super().hint}"

    def text(self) -> Content:
        explanation = self._why.explanation
        if explanation is None:
            return Content.styled("There is no score to explain.", "$faint")
        return Content("\n").join([*shares(self._why, self.room), explained(explanation, self.room)])

    def key_actions(self) -> dict[str, Callable[[], object]]:
        return {"enter": self._open_votes} if self._open_votes else {}
