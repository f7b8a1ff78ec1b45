"""Why a document is where it is: its score as a tree with bars, or the sentence that says why it is not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen

from searchapp.app.why import Standing, Why
from searchapp.engines.base import Explanation
from searchapp.ranking import explanations
from searchapp.ranking.explanations import Line
from searchapp.tui.content import Content, Plain
from searchapp.tui.rows import fitted, shortened
from searchapp.tui.text import TextPane
from searchapp.visible import visible_line

BAR_CELLS = 16
SHORT_BAR_CELLS = 6
"""Of a bar, and of one where there is little room."""

WIDE_CELLS = 90
"""From here on there is room."""

DIALOG_CELLS = 120
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

LONGEST_ID = 60
"""In cells: a longer one is cut."""

_VALUE_CELLS = 9 + 2

_OF_ALL = ("N", "average length")


def explained(explanation: Explanation, room: int) -> Content:
    """A score line by line: each part with its value, a bar of its share of the greatest part, and what it is.

    What a term's score was computed from stands beside it, as far as there is room in so many cells; what all terms of
    a field have in common, below.
    """
    lines = explanations.shortened(explanation)
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


def _line(line: Line, greatest: float, width: int, cells: Mapping[str, int], bars: int) -> Content:
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


def sentence(why: Why, of_what: str) -> str:
    """What became of a document, in a sentence; `of_what` is the name of the task."""
    sentences = {
        Standing.ranked: f"is at rank {why.rank or 0:,}, with the score {why.score or 0.0:.4f}",
        Standing.unknown: f"is not indexed: no document of {of_what} has this id",
        Standing.filtered: "matches, but a filter leaves it out",
        Standing.left_out: "has the words, but the signs before them, such as + and -, leave it out",
        Standing.no_match: "has nothing of what is searched for",
    }
    return f"{shortened(why.document_id, LONGEST_ID)} {sentences[why.standing]}"


class Explained(ModalScreen[None]):
    """Says why a document is where it is."""

    def __init__(self, why: Why, of_what: str) -> None:
        super().__init__()
        self._why = why
        self._of_what = of_what
        self._pane = TextPane(id="explanation")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog explained"):
            yield Plain(Content(sentence(self._why, self._of_what)), classes="question")
            yield self._pane
            yield Plain("↑↓ scroll    esc back", classes="hint")

    def on_mount(self) -> None:
        explanation = self._why.explanation
        nothing = Content.styled("There is no score to explain.", "$faint")
        shown = nothing if explanation is None else explained(explanation, self._room)
        self._pane.styles.height = shown.plain.count("\n") + 1
        self._pane.show(shown)

    @property
    def _room(self) -> int:
        """The cells of a line: those of the dialog as its looks make it."""
        return min(DIALOG_CELLS, int(self.app.size.width * 0.94)) - 7

    def take(self, event: events.Key) -> bool:
        pane = self._pane
        moves: dict[str, Callable[..., None]] = {
            "down": pane.scroll_down, "j": pane.scroll_down, "up": pane.scroll_up, "k": pane.scroll_up,
            "pagedown": pane.scroll_page_down, "space": pane.scroll_page_down, "pageup": pane.scroll_page_up,
            "home": pane.scroll_home, "end": pane.scroll_end,
        }  # fmt: skip
        if event.key in moves:
            moves[event.key](animate=False)
        else:
            self.dismiss(None)
        return True
