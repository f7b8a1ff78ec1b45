"""Dialogs that show a text of any length, which keys scroll."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from searchapp.tui.content import Content, Plain
from searchapp.tui.drawing import Dialog
from searchapp.tui.text import TextPane

DIALOG_CELLS = 120

AROUND_LINES = 8
"""Those of a dialog besides its text: border, padding, heading, what the keys do."""


class TextDialog(Dialog[None]):
    """A text below a heading; a subclass says what it is, and what further keys do."""

    IS_FULL: ClassVar[bool] = False
    """Whether it is as high as there is room, so that another text does not change its size."""

    def __init__(self, heading: str) -> None:
        super().__init__()
        self._heading = heading
        self._pane = TextPane(id="explanation")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog explained"):
            yield Plain(Content(self._heading), classes="question")
            yield self._pane
            yield Plain(self.hint, classes="hint")

    @property
    def hint(self) -> str:
        """What the keys do."""
        return "↑↓ scroll    esc back"

    def text(self) -> Content:
        """The text, for as many cells as `room` says."""
        raise NotImplementedError

    def further(self) -> dict[str, Callable[[], object]]:
        """What further keys do."""
        return {}

    def on_mount(self) -> None:
        self.draw()

    def on_resize(self) -> None:
        self.draw()

    def draw(self, *, changed: bool = True) -> None:
        """Show the text; from its beginning, if it has `changed`."""
        shown = self.text()
        # As long as the text, as far as what is around it stays in sight.
        room = max(
            3, int(self.app.size.height * 0.9) - AROUND_LINES - len(self._heading) // max(1, self.room)
        )
        self._pane.styles.height = room if self.IS_FULL else min(shown.plain.count("\n") + 1, room)
        self._pane.show(shown, changed=changed)

    @property
    def room(self) -> int:
        """The cells of a line: those of the dialog as its looks make it."""
        return min(DIALOG_CELLS, int(self.app.size.width * 0.94)) - 7

    def take(self, event: events.Key) -> bool:
        pane = self._pane
        moves: dict[str, Callable[..., object]] = {
            "down": pane.scroll_down, "j": pane.scroll_down, "up": pane.scroll_up, "k": pane.scroll_up,
            "pagedown": pane.scroll_page_down, "space": pane.scroll_page_down, "pageup": pane.scroll_page_up,
            "home": pane.scroll_home, "end": pane.scroll_end,
        }  # fmt: skip
        further = self.further()
        if event.key in further:
            further[event.key]()
        elif event.key in moves:
            moves[event.key](animate=False)
        else:
            self.dismiss(None)
        return True
