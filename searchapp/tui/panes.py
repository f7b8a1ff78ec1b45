"""The panes of a screen: which has the focus, which is shown alone, how wide the lists are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.screen import Screen
from textual.widget import Widget

STEP_CELLS = 4
LEAST_CELLS = 18
"""A list is made wider and narrower by this many cells, and leaves at least this many to itself and to the rest."""


class Panes:
    """Arranges a screen's panes.

    Args:
        screen: the screen that they are on; its looks say what the classes `-zoom-NAME` and `-reading` do
        columns: the ids of the panes in the order in which they are gone through, and those of the columns they are in
        lists: the ids of those that are lists, the main one first
    """

    def __init__(self, screen: Screen[None], columns: Mapping[str, str], lists: Sequence[str]) -> None:
        self._screen = screen
        self._columns = columns
        self._lists = lists
        self._zoomed = ""
        self._widths: dict[str, int] = {}

    def focus(self, widget: Widget) -> None:
        """Give a widget the focus, and bring it into sight if something hides it."""
        column = self._columns.get(widget.id or "")
        if self._zoomed and column is not None:
            self._zoom(widget.id or "")
        if widget.id in self._lists and self.is_reading:
            self._read(False)
        self._screen.set_focus(widget)

    def next(self, step: int) -> None:
        """Go to the next pane, or to one before."""
        every = [self._screen.query_one(f"#{name}") for name in self._columns]
        if not self._zoomed:
            # A key may come before what the key before it changed is drawn.
            self._screen.app.stylesheet.update(self._screen)
        seen = every if self._zoomed else [pane for pane in every if _is_displayed(pane)]
        if seen:
            focused = self._screen.focused
            here = seen.index(focused) if focused in seen else -1 if step > 0 else 0
            self.focus(seen[(here + step) % len(seen)])

    @property
    def is_reading(self) -> bool:
        return self._screen.has_class("-reading")

    def toggle_zoom(self) -> None:
        """Leave only the pane with the focus, or bring all back."""
        focused = self._screen.focused
        name = focused.id if focused is not None and focused.id in self._columns else self._lists[0]
        self._read(False)
        self._zoom("" if self._zoomed else name or "")

    def toggle_reading(self) -> None:
        """Hide the lists, which the keys move on in all the same, or bring them back."""
        self._zoom("")
        self._read(not self.is_reading)
        self._screen.set_focus(None if self.is_reading else self._screen.query_one(f"#{self._lists[0]}"))

    def widen(self, steps: int) -> None:
        """Make the list with the focus, or else the main one, wider or narrower; if it is hidden, bring it back."""
        if self._zoomed or self.is_reading:
            self._zoom("")
            self._read(False)
            return
        focused = self._screen.focused
        name = focused.id if focused is not None and focused.id in self._lists else self._lists[0]
        column = self._columns[name or ""]
        widget = self._screen.query_one(f"#{column}")
        width = widget.outer_size.width + steps * STEP_CELLS
        beside = [one for one in widget.siblings if isinstance(one, Widget) and one.display]
        most = self._screen.size.width - LEAST_CELLS - sum(one.outer_size.width for one in beside[:-1])
        self._widths[column] = max(LEAST_CELLS, min(width, most))
        self._set_widths()

    @property
    def widths(self) -> Mapping[str, int]:
        """The widths that were chosen, by the ids of the columns."""
        return dict(self._widths)

    @widths.setter
    def widths(self, chosen: Mapping[str, int]) -> None:
        every = {self._columns[name] for name in self._lists}
        most = max(LEAST_CELLS, self._screen.size.width - LEAST_CELLS)
        self._widths = {
            column: max(LEAST_CELLS, min(width, most)) for column, width in chosen.items() if column in every
        }
        self._set_widths()

    def forget_widths(self) -> None:
        """Let the looks of the screen decide again: the terminal has another size, where chosen widths may not fit."""
        for column in self._widths:
            self._screen.query_one(f"#{column}").styles.width = None
        self._widths.clear()

    def _zoom(self, name: str) -> None:
        for one in self._columns:
            self._screen.set_class(one == name, f"-zoom-{one}")
        self._zoomed = name
        self._set_widths()

    def _read(self, only: bool) -> None:
        self._screen.set_class(only, "-reading")
        self._set_widths()

    def _set_widths(self) -> None:
        """Let the widths that were chosen hold, where the looks of the screen do not give all of it to one column."""
        for column, width in self._widths.items():
            self._screen.query_one(f"#{column}").styles.width = (
                None if self._zoomed or self.is_reading else width
            )


def _is_displayed(widget: Widget) -> bool:
    return widget.display and all(one.display for one in widget.ancestors if isinstance(one, Widget))
