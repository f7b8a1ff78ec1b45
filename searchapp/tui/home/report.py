"""A text of any length above a screen, which may still grow."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from searchapp.tui.content import Content, Plain
from searchapp.tui.drawing import Dialog
from searchapp.tui.text import TextPane


class Report(Dialog[None]):
    """Shows a text until a key leaves it; what is added is shown below."""

    def __init__(self, title: str, text: Content | None = None) -> None:
        super().__init__()
        self._title = title
        self._lines = [] if text is None else [text]
        self._pane = TextPane(id="report")
        self.is_left = False
        """Whether somebody has left it: nothing needs to be found out for it any more."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog report"):
            yield Plain(Content(self._title), classes="question")
            yield self._pane
            yield Plain("↑↓ scroll    esc back", classes="hint")

    def on_mount(self) -> None:
        self.set_focus(self._pane)
        self._draw()

    def on_unmount(self) -> None:
        self.is_left = True

    def add(self, line: Content) -> None:
        """Show one more line."""
        self._lines.append(line)
        self._draw()

    def take(self, event: events.Key) -> bool:
        pane = self._pane
        moves: dict[str, Callable[..., None]] = {
            "down": pane.scroll_down,
            "j": pane.scroll_down,
            "up": pane.scroll_up,
            "k": pane.scroll_up,
            "pagedown": pane.scroll_page_down,
            "space": pane.scroll_page_down,
            "pageup": pane.scroll_page_up,
            "home": pane.scroll_home,
            "end": pane.scroll_end,
        }
        if event.key in moves:
            moves[event.key](animate=False)
        else:
            self.dismiss(None)
        return True

    def _draw(self) -> None:
        if self.is_attached:
            self._pane.show(Content("\n").join(self._lines), changed=False)
