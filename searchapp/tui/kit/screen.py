"""What every screen has in common: keys, panes, the first line, questions, clipboard and pager; and the app.

A screen is a `KeyScreen` that says what it shows and what its keys do; `KeyApp` shows it, and others that are opened
from it. Python's search for garbage is put off while somebody types: among all objects it takes as long as three
answers.
"""

from __future__ import annotations

import asyncio
import gc
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import App, SuspendNotSupported
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from searchapp.config.settings import SPACINGS
from searchapp.console import HarmlessConsole
from searchapp.errors import SearchappError
from searchapp.judging.log import Presence
from searchapp.judging.session import Session
from searchapp.judging.team import waiting_words
from searchapp.text import counted, visible
from searchapp.tui.kit.content import Content, Plain
from searchapp.tui.kit.dialogs import WIDTHS, Choose, Help, SteadyScreen
from searchapp.tui.kit.jump import Jumping, targets
from searchapp.tui.kit.keys import KeyMap, PaneHelp, shown_key, types_nothing
from searchapp.tui.kit.line import Line, OrderedApp
from searchapp.tui.kit.palette import Offer, Palette
from searchapp.tui.kit.status import said_by, unsaved
from searchapp.tui.kit.themes import dress, next_theme
from searchapp.tui.kit.widgets import Entry, KeyLine, Rows, shortened

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


TITLE_CELLS = 60
"""A longer title is cut: what is saved, and what is not, must be visible after it."""


class Banner(Plain):
    """Says where one is, and what was just done."""

    def __init__(self, title: str) -> None:
        super().__init__(id="head")
        self._title = shortened(title, TITLE_CELLS)
        self._status = Content("")
        self.lasts = False
        """Whether an answer that arrives leaves what is said: it came of what somebody did since they asked."""
        self._waits = False

    def tell(self, words: str, look: str = "$faint", *, add: bool = False, lasts: bool = True) -> None:
        """Say something, in the place of what was said before or behind it.

        What does not last goes with the answer to what was asked before.
        """
        self.lasts = lasts or (add and self.lasts)
        self._waits = False
        said = Content.styled(words, look)
        self._status = Content("   ").join([self._status, said]) if add else said
        self.draw()

    def wait(self, words: str = "") -> None:
        """Say that something is waited for, until it comes."""
        self.tell(words)
        self._waits = True

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is awaited that opens a dialog or moves the cursor."""
        return self._waits

    def came(self) -> None:
        """Take back that something is waited for, unless something else was said meanwhile."""
        if self._waits:
            self.tell("")

    def retitle(self, title: str) -> None:
        """Say that one is somewhere else."""
        self._title = shortened(title, TITLE_CELLS)
        self.draw()

    def draw(self) -> None:
        """Show how things are now."""
        self.update(Content.assemble((f"{self._title}  ", "bold"), self._status), layout=False)


class Head(Banner):
    """Says of a session what an annotator must know."""

    def __init__(self, session: Session, title: str, presence: Presence | None) -> None:
        super().__init__(title)
        self._session = session
        self._presence = presence
        self._told: object = None

    def look_around(self) -> None:
        """Draw again if the cluster, or other windows, are no longer as they were when it was drawn."""
        if self._around() != self._told:
            self.draw()

    def draw(self) -> None:
        waiting = self._session.waiting
        self._told = self._around()
        self.set_class(bool(waiting), "-waiting")
        if waiting:
            words = Content.styled(unsaved(waiting, self._session.not_saved), "bold")
        else:
            count, trouble = self._of_team()
            title = (f"{self._title}  ", "bold")
            words = Content.assemble(title, self._of_windows(), count, self._status, trouble)
        self.update(words, layout=False)

    def _around(self) -> tuple[int, str | None, int]:
        synchronizer, presence = self._session.synchronizer, self._presence
        why = None if synchronizer is None else synchronizer.trouble
        return self._session.unsent, why, 0 if presence is None else len(presence.others)

    def _of_windows(self) -> Content:
        """That the same annotator has other windows open."""
        others = 0 if self._presence is None else len(self._presence.others)
        return Content.styled(f"▲ {others + 1} windows  ", "bold $warning") if others else Content("")

    def _of_team(self) -> tuple[Content, Content]:
        """How many judgments wait for the cluster, and why if it does not take them."""
        unsent, why, _ = self._around()
        if not unsent and why is None:
            return Content(""), Content("")
        words = waiting_words(unsent)
        if why is None:
            return Content(""), Content.styled(f"  {words}", "$faint")  # it is about to be sent
        return Content.styled(f"▲ {words}  ", "bold $warning"), Content.styled(f"  {why}", "$faint")


GARBAGE_LOOK_SECONDS = 0.5
"""How often it is looked whether somebody is at the keys."""

GARBAGE_REST_SECONDS = 0.4
"""After a key from when on nobody is."""

WORTH_IT = 5
"""Searches among the middle-aged objects after which one among all of them pays."""

LATEST = 200
"""Such searches after which it is not put off any more, for the sake of the memory."""


def freeze_objects(*, after_others: bool) -> None:
    """Leave out what is there by now, which stays: to look for garbage in it would keep keys waiting.

    Where other screens have stood before, `after_others`, what is left of them goes first.
    """
    if after_others:
        gc.collect()
    gc.freeze()


def unfreeze_objects() -> None:
    """Search everything again."""
    gc.unfreeze()


class Garbage:
    """Searches when nobody is at the keys, from `begin` to `end`."""

    def __init__(self) -> None:
        self._before: tuple[int, int, int] | None = None
        self._last_input = 0.0

    def begin(self) -> None:
        """From now on put searches off."""
        self._before = gc.get_threshold()
        gc.set_threshold(*self._before[:2], LATEST)

    def input_came(self) -> None:
        """Somebody is at the keys, or the mouse."""
        self._last_input = time.monotonic()

    def look(self) -> None:
        """Search, if nobody is and it pays."""
        if time.monotonic() - self._last_input >= GARBAGE_REST_SECONDS and gc.get_count()[2] >= WORTH_IT:
            gc.collect()

    def end(self) -> None:
        """Search as before."""
        if self._before is not None:
            gc.set_threshold(*self._before)
            self._before = None


TIMEOUT_SECONDS = 2.0

PROGRAMS: Sequence[tuple[Sequence[str], str]] = (
    (("wl-copy",), "WAYLAND_DISPLAY"),
    (("xclip", "-selection", "clipboard"), "DISPLAY"),
    (("xsel", "--clipboard", "--input"), "DISPLAY"),
    (("pbcopy",), ""),
)
"""What puts its standard input on the clipboard, the first one first, and the variable without which it can't work."""


def copy_with_program(text: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Copy a text with the first of the system's programs that does it; returns its name, None if none does."""
    for command, needed in PROGRAMS:
        path = shutil.which(command[0], path=environment.get("PATH"))
        if path is None or (needed and not environment.get(needed)):
            continue
        try:
            # Its output is not waited for: such a program stays in the background to serve what was copied.
            subprocess.run(
                [path, *command[1:]],
                input=text.encode("utf-8", "replace"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=TIMEOUT_SECONDS,
                check=True,
                env=dict(environment),
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return command[0]
    return None


DEFAULT = "less"


def show_in_pager(app: App[None], text: str, environment: Mapping[str, str] = os.environ) -> None:
    """Show a text with the program that PAGER names, and come back when it ends.

    Raises:
        SearchappError: there is no such program, or no terminal that could be given to it.
    """
    if app.is_web:
        raise SearchappError("a browser has no terminal for $PAGER: the document can be read in its pane")
    named = environment.get("PAGER") or DEFAULT
    try:
        command = shlex.split(named)
    except ValueError as error:
        raise SearchappError(f"PAGER is {named!r}, which is no command: {error}") from error
    try:
        with app.suspend():
            subprocess.run(
                command, input=visible(text).encode("utf-8", "replace"), check=False, env=dict(environment)
            )
    except SuspendNotSupported as error:
        raise SearchappError("this terminal can't be given to another program") from error
    except (OSError, IndexError) as error:
        raise SearchappError(f"{named!r} can't be run: set PAGER to a program that shows texts") from error


LOOKS = Path(__file__).with_name("screen.tcss")
"""The looks of what screens have in common."""

BESIDE_LINE = ("palette", "help", "jump")
"""What can be done while somebody types into a line, by keys that type nothing."""


def saves(name: str) -> bool:
    """Whether an action appends to the judgment log at once."""
    return name.startswith("grade_") or name in ("skip", "cant_tell", "undo", "redo")


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

    ABOUT: ClassVar[Mapping[str, PaneHelp]] = {}
    """What the panes are for, by their ids."""

    SAVES_GRADES: ClassVar[bool] = False
    """Whether keys append to the judgment log: then keys that were read before the first paint are discarded."""

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
        freeze_objects(after_others=not self._is_lowest)

    def on_unmount(self) -> None:
        unfreeze_objects()

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
    def about_focused(self) -> PaneHelp | None:
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
        if below is not None:
            below.await_paint()  # keys typed after the one that leaves are not for it
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
        if self.SAVES_GRADES and not self.is_painted_before(event):
            return True
        name = self.keys.action(event.key)
        if name is None:
            self.refuse(event)
        else:
            self.do(name)
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
        if self.is_active and not self.app._exit:
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
        self._garbage = Garbage()

    def get_default_screen(self) -> Screen[None]:
        return self.main

    def on_mount(self) -> None:
        for name in ("SIGTERM", "SIGHUP"):
            # Not every system has both, or lets them be waited for.
            with suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):
                number = getattr(signal, name)
                asyncio.get_running_loop().add_signal_handler(number, self._leave, number)
        self._garbage.begin()
        self.set_interval(GARBAGE_LOOK_SECONDS, self._garbage.look)

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
        size = counted(len(text), "character")
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
