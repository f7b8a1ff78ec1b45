"""Why a document is where it is: its score as a tree with bars, or the sentence that says why it is not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rich.cells import cell_len

from searchapp.app.inspection.explanation import Reason
from searchapp.model import Explanation
from searchapp.ranking import search_results
from searchapp.ranking.search_results import ExplanationLine
from searchapp.text import visible_line
from searchapp.tui.kit.content import Content
from searchapp.tui.kit.dialogs import TextDialog
from searchapp.tui.kit.widgets import fitted, shortened

BAR_CELLS = 16
SHORT_BAR_CELLS = 6
"""Of a bar, and of one where there is little room."""

WIDE_CELLS = 90
"""From here on there is room."""

WHAT_CELLS = 44
"""A longer term is cut, so that its figures stay in sight."""

_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share: float, cells: int) -> str:
    """A bar as long as a share of so many cells, to an eighth of a cell.

    >>> bar(0.5, 3), bar(1.0, 3), bar(0.0, 3)
    ('█▌ ', '███', '   ')
    """
    eighths = round(max(0.0, min(1.0, share)) * cells * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(cells)


COLUMNS = ("tf", "df", "idf", "length", "boost")
"""The figures of terms that differ from line to line."""

DIALOG_ID_CELLS = 60
"""In cells: a longer one is cut."""

_VALUE_CELLS = 9 + 2

_OF_ALL = ("N", "average length")


def explained(explanation: Explanation, room: int) -> Content:
    """A score line by line: each part with its value, a bar of its share of the greatest part, and what it is.

    What a term's score was computed from stands beside it, as far as there is room in so many cells; what all terms of
    a field have in common, below.
    """
    lines = search_results.shortened(explanation)
    greatest = max((abs(line.value) for line in lines if line.depth), default=0.0) or 1.0
    longest = max(
        (2 * line.depth + cell_len(visible_line(line.what)) for line in lines if line.figures), default=0
    )
    width = min(longest, WHAT_CELLS)
    columns = [name for name in COLUMNS if any(name in dict(line.figures) for line in lines)]
    cells = {
        name: max(len(name), *(len(_shown(dict(line.figures).get(name, ""))) for line in lines))
        for name in columns
    }
    bars = BAR_CELLS if room >= WIDE_CELLS else SHORT_BAR_CELLS
    before = _VALUE_CELLS + bars + 2
    while cells and before + width + sum(most + 2 for most in cells.values()) > room:
        cells.pop([*cells][-1])
    shown = [_line(line, greatest, width, cells, bars) for line in lines]
    if cells:
        head = "  ".join(f"{name:>{most}}" for name, most in cells.items())
        shown.insert(0, Content.styled(f"{'':{before + width}}  {head}", "$faint"))
    common = dict.fromkeys(
        f"{name} {value}" for line in lines for name, value in line.figures if name in _OF_ALL
    )
    if common:
        shown += [Content(""), Content.styled("   ".join(common), "$faint")]
    return Content("\n").join(shown)


def _line(line: ExplanationLine, greatest: float, width: int, cells: Mapping[str, int], bars: int) -> Content:
    if not line.depth:
        return Content.assemble((f"{line.value:>9.4f}  ", "bold"), f"{'':{bars}}  ", (line.what, "bold"))
    what = f"{'  ' * (line.depth - 1)}{visible_line(line.what)}"
    figures = dict(line.figures)
    beside = "  ".join(f"{_shown(figures.get(name, '')):>{most}}" for name, most in cells.items())
    return Content.assemble(
        f"{line.value:>9.4f}  ",
        (bar(abs(line.value) / greatest, bars), "$primary" if line.value >= 0 else "$error"),
        f"  {fitted(what, width) if figures else what}",
        (f"  {beside}" if figures else "", "$faint"),
    )


def _shown(figure: str) -> str:
    """A figure with few digits; those of a phrase, one for each of its words, as they are."""
    try:
        return f"{float(figure):.4g}" if "." in figure else figure
    except ValueError:
        return figure


def sentence(document_id: str, of_it: str) -> str:
    """What became of a document: `of_it` is the rest of the sentence, behind its id."""
    return f"{shortened(document_id, DIALOG_ID_CELLS)} {of_it}"


def shares(why: Reason, room: int) -> list[Content]:
    """What each signal of a recipe gave to a score, as bars, and how many voted."""
    if not why.shares:
        return []
    greatest = max((abs(one.value or 0.0) for one in why.shares), default=0.0) or 1.0
    bars = BAR_CELLS if room >= WIDE_CELLS else SHORT_BAR_CELLS
    lines = [Content.styled("What each signal gave", "bold $accent")]
    for one in why.shares:
        votes = f" · {len(one.votes):,} vote{'s' * (len(one.votes) != 1)}" if one.votes else ""
        value = "  nothing" if one.value is None else f"{one.value:>9.4f}"
        lines.append(
            Content.assemble(
                f"{value}  ",
                (bar(abs(one.value or 0.0) / greatest, bars), "$primary"),
                f"  {one.signal}",
                (f"  weight {one.weight:g}{votes}", "$faint"),
            )
        )
    return [*lines, Content(""), Content.styled("How each came about, before it is weighed", "bold $accent")]


class Explained(TextDialog):
    """Says why a document is where it is, which is `said`; `open_votes`, if given, shows who voted for it."""

    def __init__(self, why: Reason, said: str, open_votes: Callable[[], object] | None = None) -> None:
        super().__init__(sentence(why.document_id, said))
        self._why = why
        self._open_votes = open_votes if why.votes else None

    @property
    def hint(self) -> str:
        return f"{'↵ who voted    ' if self._open_votes else ''}{super().hint}"

    def text(self) -> Content:
        explanation = self._why.explanation
        if explanation is None:
            return Content.styled("There is no score to explain.", "$faint")
        return Content("\n").join([*shares(self._why, self.room), explained(explanation, self.room)])

    def further(self) -> dict[str, Callable[[], object]]:
        return {"enter": self._open_votes} if self._open_votes else {}
