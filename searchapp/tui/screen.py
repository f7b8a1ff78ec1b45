"""What every screen has in common: keys and what they do, panes, a first line, questions, the clipboard.

A screen says what it shows and what its keys do. What it is made of is in parts of their own: the first line in
`head`, the panes in `panes`; an annotator's work, each key of which is saved, in `work`.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import App
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from searchapp.console import HarmlessConsole
from searchapp.errors import SearchappError
from searchapp.settings import SPACINGS
from searchapp.tui import garbage
from searchapp.tui.about import About
from searchapp.tui.bars import Entry, KeyLine
from searchapp.tui.clipboard import copy_with_program
from searchapp.tui.dialogs import Choose, Help
from searchapp.tui.drawing import WIDTHS, SteadyScreen
from searchapp.tui.head import Banner
from searchapp.tui.jumping import Jumping, targets
from searchapp.tui.keys import KeyMap, shown_key, types_nothing
from searchapp.tui.line import Line, OrderedApp
from searchapp.tui.palette import Offer, Palette
from searchapp.tui.panes import Panes
from searchapp.tui.rows import Rows
from searchapp.tui.status import said_by
from searchapp.tui.themes import dress, next_theme

LOOKS = Path(__file__).with_name("screen.tcss")
"""The looks of what screens have in common."""

BESIDE_LINE = ("palette", "help", "jump")
"""What can be done while somebody types into a line, by keys that type nothing."""


class Pane(VerticalScroll, can_focus=True, inherit_bindings=False):
    """A text that scrolls; its keys are the screen's."""


class KeyScreen(SteadyScreen[None]):
    """A screen whose keys people choose: the only one of an app, or one that stands on another.

    A subclass names its own looks as CSS_PATH. They hold in the whole app from then on, so each rule of theirs begins
    with the class of the screen.

    Args:
        keys: what keys do
        head: the first line
        columns: the panes and their columns, see `Panes`
        lists: those of them that are lists, the main one first
    """

    SCROLLED: ClassVar[str] = "#document"
    """The pane that keys scroll, whichever has the focus."""

    ABOUT: ClassVar[Mapping[str, About]] = {}
    """What the panes are for, by their ids."""

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
        garbage.leave_out(after_others=not self._is_lowest)

    def on_unmount(self) -> None:
        garbage.take_in()

    def on_resize(self) -> None:
        self.panes.forget_widths()

    @property
    def head(self) -> Banner:
        """The first line."""
        return self._head

    # What a screen says

    def tell_error(self, error: Exception) -> None:
        """Say that something has failed."""
        self.head.tell(said_by(error), "$error")

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
        return Help(self.keys, about=self.about_focused)

    @property
    def about_focused(self) -> About | None:
        """The pane with the focus, or else the main one; None if nothing is said of it."""
        focused = self.focused
        name = None if focused is None else focused.id
        return self.ABOUT.get(name or self._main_list)

    def leave(self) -> None:
        """Go back, after a question if something would be lost."""
        self.go_back()

    def go_back(self, message: str | None = None) -> None:
        """Back to the screen below, or out of the program if there is none; the message is said there."""
        if self._is_lowest:
            self.app.exit(message=message)
            return
        self.dismiss(None)
        below = front(self.app)
        if message and below is not None:
            below.head.tell(message, "$warning")

    @property
    def _is_lowest(self) -> bool:
        return self.app.screen_stack[0] is self

    def last_words(self) -> str | None:
        """Save what can be saved when nobody can be asked; a sentence that says where, if there is something to say."""
        return None

    def leave_line(self, line: Line) -> None:
        """A line for words was left with Escape."""
        raise NotImplementedError

    def offers(self) -> Iterable[Offer]:
        """What the palette has besides the actions."""
        return ()

    def offers_everywhere(self) -> Iterable[Offer]:
        """What it has on every screen that stands on this one, too."""
        return ()

    def further_offers(self) -> Iterable[Offer]:
        """What it has besides that takes longer to find; called in another thread."""
        return ()

    # Keys

    def take(self, event: events.Key) -> bool:
        line = self.focused
        if isinstance(line, Line):
            if event.key == "escape":
                self.leave_line(line)
                return True
            return line.take(event) or self._take_beside_line(event)
        name = self.keys.action(event.key)
        if name is not None:
            self.do(name)
        else:
            self.refuse(event)
        return True

    def _take_beside_line(self, event: events.Key) -> bool:
        """Do what a key stands for that types nothing, while somebody types."""
        name = self.keys.action(event.key)
        if name in BESIDE_LINE and types_nothing(event.key):
            self.do(name)
            return True
        return False

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
        scrolled = self.query_one(self.SCROLLED)
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
            "scroll_down": lambda: scrolled.scroll_relative(y=scrolled.size.height // 2, animate=False),
            "scroll_up": lambda: scrolled.scroll_relative(y=-(scrolled.size.height // 2), animate=False),
            "jump": lambda: self.app.push_screen(Jumping(self, targets(self, self.panes.focus))),
            "theme": self._change_theme,
            "copy": self._copy,
            "palette": self._open_palette,
            "help": lambda: self.app.push_screen(self.help()),
            "quit": self.leave,
        }

    def _entries(self, *names: str) -> list[Entry]:
        words = {one.name: one.word for one in self.keys.actions}
        return [Entry(name, self.keys.shown(name), words[name]) for name in names]

    def _grade_entries(self, labels: Sequence[str], *others: str) -> list[Entry]:
        """The grades for a line of keys, by their names, and what else is said of a document."""
        grades = [
            Entry(f"grade_{grade}", self.keys.shown(f"grade_{grade}"), label if label != str(grade) else "")
            for grade, label in enumerate(labels)
        ]
        return [*grades, *self._entries(*others)]

    def _open_palette(self) -> None:
        actions = [
            Offer(one.about, partial(self.do, one.name), key=self.keys.shown(one.name))
            for one in self.keys.actions
            if one.name != "palette"
        ]
        screens = [one for one in reversed(self.app.screen_stack) if isinstance(one, KeyScreen)]
        everywhere = [offer for one in screens for offer in one.offers_everywhere()]
        offers = [*actions, *everywhere, *self.offers()]
        self.app.push_screen(Palette(offers, lambda: list(self.further_offers())))

    def _change_theme(self) -> None:
        name = next_theme(self.app)
        self.head.tell(f'theme {name}: theme = "{name}" in settings.toml makes it the first one')

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
            self.head.tell(f"{event.worker.name} failed: {said_by(event.worker.error)}", "$error")


def front(app: App[None]) -> KeyScreen | None:
    """The screen in front, whatever questions stand on it; None if there is none."""
    return next((one for one in reversed(app.screen_stack) if isinstance(one, KeyScreen)), None)


class KeyApp(OrderedApp):
    """Shows a screen, and others that are opened from it, until whoever works there leaves it."""

    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = WIDTHS
    ESCAPE_TO_MINIMIZE = False

    def __init__(self, main: KeyScreen, theme: str, spacing: str = SPACINGS[0]) -> None:
        # Textual reads the looks of a screen when it is put on another one, not those of the first.
        super().__init__(css_path=[LOOKS, *main.css_path])
        self.animation_level = "none"
        # Prints last words, and errors with the texts around them.
        self.error_console = HarmlessConsole(stderr=True)
        dress(self, theme, spacing)
        self.main = main
        self._garbage = garbage.Garbage()

    def get_default_screen(self) -> Screen[None]:
        return self.main

    def on_mount(self) -> None:
        for name in ("SIGTERM", "SIGHUP"):
            # Not every system has both, or lets them be waited for.
            with suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):
                number = getattr(signal, name)
                asyncio.get_running_loop().add_signal_handler(number, self._leave, number)
        self._garbage.begin()
        self.set_interval(garbage.LOOK_SECONDS, self._garbage.look)

    def on_unmount(self) -> None:
        self._garbage.end()

    async def on_event(self, event: events.Event) -> None:
        """Note when somebody is at the keys."""
        if isinstance(event, events.InputEvent):
            self._garbage.input_came()
        await super().on_event(event)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy a text with the system's program for that, or else through the terminal, and say which."""
        if self.is_web:  # the program's system may be another one than the browser's
            self._copied(text, None)
            return

        def copy() -> None:
            self.call_from_thread(self._copied, text, copy_with_program(text))

        self.run_worker(copy, "to copy", thread=True, exit_on_error=False, group="copy")

    def _copied(self, text: str, program: str | None) -> None:
        size = "1 character" if len(text) == 1 else f"{len(text):,} characters"
        head = (front(self) or self.main).head
        if program is not None:
            head.tell(f"copied {size} with {program}", "$success")
        else:
            super().copy_to_clipboard(text)
            where = (
                "browser's clipboard, if it allows that"
                if self.is_web
                else "terminal's clipboard (OSC 52), if it has one"
            )
            head.tell(f"sent {size} to the {where}")

    def _leave(self, number: int) -> None:
        """The system, or a terminal that was closed, ends the program: leave in order, and with all judgments."""
        screens = [one for one in reversed(self.screen_stack) if isinstance(one, KeyScreen)]
        words = [said for said in (one.last_words() for one in screens) if said is not None]
        self.exit(return_code=128 + number, message="\n".join(words) or None)
