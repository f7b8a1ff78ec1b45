"""The lines that are selected to be graded at once."""

from __future__ import annotations

from collections.abc import Callable

from searchapp.tui.judge.lists import RankingRows


class Selection:
    """The selected lines of a ranking; `tell` says how many there are."""

    def __init__(self, rows: RankingRows, tell: Callable[[str], object]) -> None:
        self._rows = rows
        self._tell = tell

    def places(self) -> list[int]:
        """The lines that a grade is for: those selected, else the one that the cursor is on."""
        rows = self._rows
        return sorted(rows.selected) if rows.selected else [rows.cursor] if rows.documents else []

    def toggle(self) -> None:
        """Select the line that the cursor is on, or no longer, and go on."""
        rows = self._rows
        if rows.documents:
            rows.selected ^= {rows.cursor}
            rows.redraw(rows.cursor)
            self._move(1)

    def extend(self, step: int) -> None:
        """Select the line that the cursor is on and the next one, above or below."""
        rows = self._rows
        if rows.documents:
            rows.selected.add(rows.cursor)
            self._move(step)
            rows.selected.add(rows.cursor)
            rows.redraw(rows.cursor)
            self._say()

    def clear(self) -> None:
        """Select nothing."""
        self._rows.selected.clear()
        self._rows.refresh()

    def _move(self, step: int) -> None:
        self._rows.move(self._rows.cursor + step)
        self._say()

    def _say(self) -> None:
        count = len(self._rows.selected)
        self._tell(f"{count} selected: a grade is given to all of them" if count else "")
