"""What every screen has in common: keys and what they do, panes, a first line, questions, the clipboard.

A screen says what it shows and what its keys do. What it is made of is in parts of their own: the first line in
`head`, the panes in `panes`; an annotator's work, each key of which is saved, in `work`.
"""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from textual import events, on
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from searchapp.console import HarmlessConsole
from searchapp.errors import SearchappError
from searchapp.tui.bars import Entry, KeyLine
from searchapp.tui.clipboard import copy_with_program
from searchapp.tui.dialogs import Choose, Help
from searchapp.tui.head import Banner
from searchapp.tui.keys import KeyMap, shown_key
from searchapp.tui.line import Line, OrderedApp
from searchapp.tui.panes import Panes
from searchapp.tui.rows import Rows
from searchapp.tui.themes import DARK, LIGHT

LOOKS = Path(__file__).with_name("screen.tcss")
"""The looks of what screens have in common."""


class Pane(VerticalScroll, can_focus=True, inherit_bindings=False):
    """A text that scrolls; its keys are the screen's."""


class KeyScreen(Screen[None]):
    """A screen whose keys people choose.

    Args:
        keys: what keys do
        head: the first line
        columns: the panes and their columns, see `Panes`
        lists: those of them that are lists, the main one first
    """

    def __init__(self, keys: KeyMap, head: Banner, columns: Mapping[str, str], lists: Sequence[str]) -> None:
        super().__init__()
        self.keys = keys
        self._head = head
        self.panes = Panes(self, columns, lists)
        self._main_list = lists[0]

    def on_mount(self) -> None:
        self.begin()
        self.head.draw()
        self.begun()
        gc.freeze()  # what is there by now stays: to look for garbage in it would keep keys waiting

    def on_resize(self) -> None:
        self.panes.forget_widths()

    @property
    def head(self) -> Banner:
        """The first line."""
        return self._head

    # What a screen says

    def begin(self) -> None:
        """Show where the work begins."""
        raise NotImplementedError

    def begun(self) -> None:
        """Do what comes after the beginning, once it is shown."""

    def actions(self) -> Mapping[str, Callable[[], object]]:
        """What can be done, by its name, besides what is in `_common`."""
        raise NotImplementedError

    def help(self) -> Help:
        """What the help says."""
        return Help(self.keys)

    def leave(self) -> None:
        """End the program, after a question if something would be lost."""
        raise NotImplementedError

    def last_words(self) -> str | None:
        """Save what can be saved when nobody can be asked; a sentence that says where, if there is something to say."""
        return None

    def leave_line(self, line: Line) -> None:
        """A line for words was left with Escape."""
        raise NotImplementedError

    # Keys

    def take(self, event: events.Key) -> bool:
        line = self.focused
        if isinstance(line, Line):
            if event.key == "escape":
                self.leave_line(line)
                return True
            return line.take(event)
        name = self.keys.action(event.key)
        if name is not None:
            self.do(name)
        else:
            self.refuse(event)
        return True

    def refuse(self, event: events.Key) -> None:
        """Say that a key does nothing."""
        typed = (event.character or "").strip() if event.is_printable else ""
        key = typed or shown_key(event.key)
        self.head.tell(f"{key} does nothing here: {self.keys.shown('help')} lists the keys", "$warning")

    @on(KeyLine.Pressed)
    def _pressed(self, event: KeyLine.Pressed) -> None:
        self.do(event.name)

    def do(self, name: str) -> None:
        """Do what a key stands for."""
        try:
            with self.app.batch_update():  # so that all that changes is drawn once
                self.act(name)
        except SearchappError as error:
            self.head.tell(str(error), "$error")

    def act(self, name: str) -> None:
        """Do what a name stands for."""
        (self._common() | dict(self.actions()))[name]()

    def _common(self) -> dict[str, Callable[[], object]]:
        document = self.query_one("#document")
        return {
            "down": lambda: self._move(1),
            "up": lambda: self._move(-1),
            "page_down": lambda: self._move(1, by_page=True),
            "page_up": lambda: self._move(-1, by_page=True),
            "first": lambda: self._end(first=True),
            "last": lambda: self._end(first=False),
            "next_pane": lambda: self.panes.next(1),
            "previous_pane": lambda: self.panes.next(-1),
            "zoom": self.panes.toggle_zoom,
            "reading": self.panes.toggle_reading,
            "wider": lambda: self.panes.widen(1),
            "narrower": lambda: self.panes.widen(-1),
            "scroll_down": lambda: document.scroll_relative(y=document.size.height // 2, animate=False),
            "scroll_up": lambda: document.scroll_relative(y=-(document.size.height // 2), animate=False),
            "theme": self._toggle_look,
            "copy": self._copy,
            "help": lambda: self.app.push_screen(self.help()),
            "quit": self.leave,
        }

    def _entries(self, *names: str) -> list[Entry]:
        words = {one.name: one.word for one in self.keys.actions}
        return [Entry(name, self.keys.shown(name), words[name]) for name in names]

    def _toggle_look(self) -> None:
        self.app.theme = DARK.name if self.app.theme == LIGHT.name else LIGHT.name

    def _copy(self) -> None:
        text = self.get_selected_text()
        if text:
            self.app.copy_to_clipboard(text)
        else:
            self.head.tell(
                f"select text with the mouse, and {self.keys.shown('copy')} copies it; "
                f"{self.keys.shown('quit')} leaves"
            )

    # Moving within a pane

    def _move(self, lines: int, by_page: bool = False) -> None:
        focused = self._moved_in
        if isinstance(focused, Rows):
            focused.move(focused.cursor + lines * (focused.page if by_page else 1))
        else:
            focused.scroll_relative(y=lines * (focused.size.height - 1 if by_page else 1), animate=False)

    def _end(self, first: bool) -> None:
        focused = self._moved_in
        if isinstance(focused, Rows):
            focused.move(0 if first else focused.count - 1)
        else:
            (focused.scroll_home if first else focused.scroll_end)(animate=False)

    @property
    def _moved_in(self) -> Widget:
        """The pane that keys move in: that with the focus, or else the main list."""
        focused = self.focused
        if focused is None or isinstance(focused, Line):
            return self.query_one(f"#{self._main_list}")
        return focused

    # Questions

    def ask(
        self, question: str, yes: Callable[[], object], *, others: Mapping[str, str] | None = None
    ) -> None:
        """Ask whether to do something; `others` are names of actions that can be had instead, and what they mean."""
        options = [("y", "Yes"), ("n", "No")]
        elsewhere: dict[str, str] = {}
        for name, about in (others or {}).items():
            key = self.keys.first(name)
            if key and key not in ("y", "n", "escape"):
                elsewhere[key] = name
                options.append((key, about))

        def answer(key: str | None) -> None:
            with self.app.batch_update():
                try:
                    if key == "y":
                        yes()
                except SearchappError as error:
                    self.head.tell(str(error), "$error")
            if key in elsewhere:
                self.do(elsewhere[key])

        self.app.push_screen(Choose(question, options), answer)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Say so when something in the background has failed."""
        if event.state is WorkerState.ERROR:
            error = event.worker.error
            reason = str(error) if isinstance(error, SearchappError) else f"{type(error).__name__}: {error}"
            self.head.tell(f"{event.worker.name} failed: {reason}", "$error")


class KeyApp(OrderedApp):
    """Shows a screen until whoever works there leaves it."""

    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012  # Textual declares it
    ESCAPE_TO_MINIMIZE = False

    def __init__(self, main: KeyScreen, theme: str) -> None:
        super().__init__()
        self.animation_level = "none"
        self.error_console = HarmlessConsole(
            stderr=True
        )  # prints last words, and errors with the texts around them
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = (LIGHT if theme == "light" else DARK).name
        self.main = main

    def get_default_screen(self) -> Screen[None]:
        return self.main

    def on_mount(self) -> None:
        for name in ("SIGTERM", "SIGHUP"):
            # Not every system has both, or lets them be waited for.
            with suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):
                number = getattr(signal, name)
                asyncio.get_running_loop().add_signal_handler(number, self._leave, number)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text with the system's program for that, or else through the terminal, and say which."""

        def copy() -> None:
            self.call_from_thread(self._copied, text, copy_with_program(text))

        self.run_worker(copy, "to copy", thread=True, exit_on_error=False, group="copy")

    def _copied(self, text: str, program: str | None) -> None:
        size = "1 character" if len(text) == 1 else f"{len(text):,} characters"
        if program is not None:
            self.main.head.tell(f"copied {size} with {program}", "$success")
        else:
            super().copy_to_clipboard(text)
            self.main.head.tell(f"sent {size} to the terminal's clipboard (OSC 52), if it has one")

    def _leave(self, number: int) -> None:
        """The system, or a terminal that was closed, ends the program: leave in order, and with all judgments."""
        self.exit(return_code=128 + number, message=self.main.last_words())
