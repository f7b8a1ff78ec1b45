"""Keys in the order in which they were pressed, and a line of text that takes them.

Textual hands a key to the widget that has the focus, over several queues. Whoever types faster than a dialog opens, or
sends keys from a script, would have the first letters of a note taken for grades. So the app asks the screen on top
first, which does at once what a key stands for: the next key finds everything done. Keys that come before a screen has
all that they are about wait for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from textual import events
from textual.app import App
from textual.geometry import Size
from textual.reactive import Reactive
from textual.screen import ModalScreen
from textual.types import CSSPathType
from textual.widgets import Input

from searchapp.text import visible_line


@runtime_checkable
class TakesKeys(Protocol):
    """A screen that is asked first."""

    def take(self, event: events.Key) -> bool:
        """Do what a key stands for; whether it stands for anything."""


COPY_KEYS = ("ctrl+c", "super+c")
"""What copies what is selected in a question or the help."""


class OrderedApp(App[None]):
    """An app whose screens get keys in their order."""

    def __init__(self, css_path: CSSPathType) -> None:
        super().__init__(css_path=css_path)
        self._keys: deque[events.Key] = deque()

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.AppBlur) and self.is_web:
            return  # Textual begins with it in a browser, and no widget would have the focus
        if isinstance(event, events.Key) and not event.is_forwarded:
            self._keys.append(event)
            await self.take_keys()
            return
        if isinstance(event, events.Paste) and not event.is_forwarded and isinstance(self.focused, Line):
            self.focused.paste(event.text)
            return
        await super().on_event(event)

    async def take_keys(self) -> None:
        """Do what the keys stand for that were pressed, up to one that opens a screen which is not mounted yet.

        A program that is being left discards all further keys.
        """
        while self._keys:
            if self._exit:
                self._keys.clear()  # the program is being left
                return
            screen = self.screen
            if not screen.is_mounted:
                screen.call_later(self.call_later, self.take_keys)  # the first thing that it does then
                return
            event = self._keys.popleft()
            copies = isinstance(screen, ModalScreen) and event.key in COPY_KEYS
            if copies and (text := screen.get_selected_text()):
                self.copy_to_clipboard(text)
            elif not (isinstance(screen, TakesKeys) and screen.take(event)):
                await super().on_event(event)


class Line(Input):
    """A line of text; `submitted` is called with it, and `changed` whenever it is another one."""

    # Not laid out anew with the whole screen with each letter: the line is as wide as the screen makes it.
    virtual_size = Reactive(Size(0, 0))

    def __init__(
        self,
        submitted: Callable[[str], object],
        changed: Callable[[str], object] = lambda _text: None,
        *,
        text: str = "",
        hint: str = "",
        id: str | None = None,  # noqa: A002  # Textual's name
    ) -> None:
        super().__init__(visible_line(text), placeholder=visible_line(hint), select_on_focus=False, id=id)
        self.cursor_blink = False  # calm
        self._submitted = submitted
        self._changed = changed

    def take(self, event: events.Key) -> bool:
        """Do what a key stands for, at once; whether it stands for anything in a line."""
        edits: dict[str, Callable[[], None]] = {
            "backspace": self.action_delete_left,
            "delete": self.action_delete_right,
            "left": self.action_cursor_left,
            "right": self.action_cursor_right,
            "home": self.action_home,
            "end": self.action_end,
            "ctrl+a": self.action_home,
            "ctrl+e": self.action_end,
            "ctrl+w": self.action_delete_left_word,
            "ctrl+u": self.action_delete_left_all,
            "ctrl+k": self.action_delete_right_all,
        }
        if event.key == "enter":
            self._submitted(self.value)
        elif event.key in edits:
            edits[event.key]()
            self._changed(self.value)
        elif event.is_printable and event.character:
            self.replace(event.character, *self.selection)  # what is selected gives way
            self._changed(self.value)
        else:
            return False
        return True

    def validate_value(self, value: str) -> str:
        """Whoever gives the line a text: nothing in it acts on the terminal."""
        return visible_line(value)

    def insert(self, text: str, position: int) -> None:
        super().insert(visible_line(text), position)

    def replace(self, text: str, start: int, end: int) -> None:
        super().replace(visible_line(text), start, end)

    def paste(self, text: str) -> None:
        """Take the first line of a pasted text, at once: the key that is pressed next finds it there."""
        first = next(iter(text.splitlines()), "")
        self.replace(first, *self.selection)
        self._changed(self.value)
