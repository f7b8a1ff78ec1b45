"""Why one hit is above another: what each part of their scores gave, side by side."""

from __future__ import annotations

from collections.abc import Sequence

from searchapp.app.why import Comparison, Difference, Why
from searchapp.ranking.explanations import IDF
from searchapp.tui.content import Content
from searchapp.tui.rows import fitted, shortened
from searchapp.tui.search.why import bar
from searchapp.tui.texts import TextDialog

LONGEST_ID = 24
"""In cells: a longer one is cut."""

BAR_CELLS = 12
VALUE_CELLS = 9
FIGURES_FROM = 100
"""Where there are this many cells, what a term's two values were computed from stands beside them."""

_SHARED = ("df", IDF)
_OWN = ("tf", "length")


class Compared(TextDialog):
    """Says why one of two hits is above the other."""

    def __init__(self, comparison: Comparison) -> None:
        upper, lower = comparison.upper, comparison.lower
        super().__init__(f"Why {_name(upper)} is above {_name(lower)}")
        self._comparison = comparison

    def text(self) -> Content:
        return compared(self._comparison, self.room)


def compared(comparison: Comparison, room: int) -> Content:
    """Both scores part by part, the greatest differences first, in so many cells."""
    upper, lower = comparison.upper, comparison.lower
    lines = [
        Content(f"rank {one.rank or 0:>6,}  score {one.score or 0.0:>10.4f}  {_name(one)}")
        for one in (upper, lower)
    ]
    lines += [Content(""), Content.styled(_decides(comparison), "bold")]
    if comparison.signals:
        lines += [Content(""), *_table("Signal", comparison.signals, room)]
    if comparison.terms:
        title = "Part, before it is weighed" if comparison.signals else "Term"
        lines += [Content(""), *_table(title, comparison.terms, room)]
    return Content("\n").join(lines)


def _decides(comparison: Comparison) -> str:
    most, upper, lower = comparison.decides, comparison.upper, comparison.lower
    if upper.score == lower.score:
        return "Their scores are equal: the order of their ids decides."
    if most is None:
        return "No part by itself speaks for the upper one: it is all of them together."
    between = (upper.score or 0.0) - (lower.score or 0.0)
    return f"{most.what} decides most: {most.gain:+.4f}; all parts together {between:+.4f}"


def _table(title: str, differences: Sequence[Difference], room: int) -> list[Content]:
    figures = _figure_cells(differences) if room >= FIGURES_FROM else 0
    beside = 3 * (VALUE_CELLS + 1) + BAR_CELLS + 2 + figures
    longest = max(len(one.what) for one in differences)
    width = max(8, min(longest, room - beside))
    greatest = max(abs(one.gain) for one in differences) or 1.0
    head = (
        f"{fitted(title, width)} {'upper':>{VALUE_CELLS}} {'lower':>{VALUE_CELLS}} {'upper −':>{VALUE_CELLS}}"
    )
    lines = [Content.styled(head, "bold $accent")]
    for one in differences:
        said = _figures(one) if figures else ""
        lines.append(
            Content.assemble(
                f"{fitted(one.what, width)} {_value(one.upper)} {_value(one.lower)} {one.gain:>+{VALUE_CELLS}.4f}  ",
                (bar(abs(one.gain) / greatest, BAR_CELLS), "$primary" if one.gain >= 0 else "$error"),
                (f"  {said}", "$faint"),
            )
        )
    return lines


def _value(value: float | None) -> str:
    return f"{'–':>{VALUE_CELLS}}" if value is None else f"{value:>{VALUE_CELLS}.4f}"


def _figure_cells(differences: Sequence[Difference]) -> int:
    return max(len(_figures(one)) for one in differences) + 2


def _figures(one: Difference) -> str:
    """What the two values were computed from: what is the same for both once, then what is not."""
    upper, lower = dict(one.upper_figures), dict(one.lower_figures)
    said = [f"{name} {upper.get(name) or lower[name]}" for name in _SHARED if name in upper or name in lower]
    said += [
        f"{name} {upper.get(name, '–')} : {lower.get(name, '–')}"
        for name in _OWN
        if name in upper or name in lower
    ]
    return "  ".join(said)


def _name(why: Why) -> str:
    return shortened(why.document_id, LONGEST_ID)
