"""The lines at the bottom of the judging screen: what keys do, each of which can also be clicked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from searchapp.tui.content import Content
from searchapp.tui.rows import shortened

LONGEST_WORD = 40
"""In cells: a longer one, the name of a grade for instance, is cut so that the keys beside it stay visible."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A key, what it does in a word or two, and the action's name."""

    name: str
    key: str
    word: str

    @property
    def cells(self) -> int:
        return cell_len(self.key) + cell_len(self.shown) + 2

    @property
    def shown(self) -> str:
        """The word as it is shown."""
        return shortened(self.word, LONGEST_WORD)


class KeyLine(Widget):
    """Keys with their meanings, on as many lines as they need but at most `lines`; the last entry is always there."""

    class Pressed(Message):
        """An entry was clicked."""

        def __init__(self, name: str) -> None:
            self.name = name
            super().__init__()

    def __init__(self, entries: Sequence[Entry], lines: int, *, id: str) -> None:  # noqa: A002  # Textual's name
        super().__init__(id=id)
        self._entries = list(entries)
        self._lines = lines
        self.chosen = ""

    def choose(self, name: str) -> None:
        """Mark the entry that holds for the document that is shown."""
        if name != self.chosen:
            self.chosen = name
            self.refresh()

    def render(self) -> Content:
        lines = []
        for line in self._laid_out(self.size.width):
            parts: list[tuple[str, str]] = []
            for entry in line:
                chosen = entry.name == self.chosen
                parts.append((f" {entry.key}", "bold reverse $primary" if chosen else "bold $primary"))
                parts.append((f" {entry.shown} ", "bold reverse $primary" if chosen else "$foreground"))
            lines.append(Content.assemble(*parts))
        return Content("\n").join(lines)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return len(self._laid_out(width)) or 1

    def places(self) -> Iterator[tuple[tuple[int, int], str]]:
        """The column and the line at which each entry that is in sight has its key, and its name."""
        for y, line in enumerate(self._laid_out(self.size.width)):
            left = 0
            for entry in line:
                yield (left + 1, y), entry.name
                left += entry.cells + 1

    def on_click(self, event: events.Click) -> None:
        line = self._laid_out(self.size.width)
        left = event.x
        for entry in line[event.y] if 0 <= event.y < len(line) else ():
            if 0 <= left < entry.cells + 1:
                self.post_message(self.Pressed(entry.name))
                return
            left -= entry.cells + 1

    def _laid_out(self, width: int) -> list[list[Entry]]:
        lines: list[list[Entry]] = [[]]
        used = 0
        for entry in self._entries[:-1]:
            room = width - (self._entries[-1].cells + 1 if len(lines) == self._lines else 0)
            if used + entry.cells + 1 > room:
                if len(lines) == self._lines:
                    break
                lines.append([])
                used = 0
                room = width - (self._entries[-1].cells + 1 if len(lines) == self._lines else 0)
                if entry.cells + 1 > room:
                    break
            lines[-1].append(entry)
            used += entry.cells + 1
        if used + self._entries[-1].cells + 1 > width and len(lines) < self._lines:
            lines.append([])
        lines[-1].append(self._entries[-1])
        return lines
