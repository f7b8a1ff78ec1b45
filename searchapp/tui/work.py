"""What the judging screen and the adjudicating screen have in common: an annotator's work, each key of which is saved.

A screen says what it shows, what its keys do and whose session it writes into. What it is made of is in parts of their
own: the first line in `head`, the panes in `panes`, the way out in `leaving`; keys, questions and looks are here.
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
from textual.worker import Worker, WorkerState

from searchapp.app.pages import Pages
from searchapp.console import HarmlessConsole
from searchapp.errors import SearchappError
from searchapp.judging.events import Event
from searchapp.judging.presence import Presence
from searchapp.judging.session import Session
from searchapp.tui.bars import Entry, KeyLine
from searchapp.tui.clipboard import copy_with_program
from searchapp.tui.dialogs import Choose, Help, Words
from searchapp.tui.head import Head
from searchapp.tui.keys import JudgeSettings, KeyMap, shown_key
from searchapp.tui.leaving import Leaving
from searchapp.tui.line import Line, OrderedApp
from searchapp.tui.panes import Panes
from searchapp.tui.rows import Rows
from searchapp.tui.status import came_in, no_such_grade
from searchapp.tui.themes import DARK, LIGHT

REFRESH_SECONDS = 5.0
"""How often others' judgments are read, and what could not be saved is tried again."""

TEAM_SECONDS = 0.5
"""How often it is looked what has gone to, and come from, the cluster of a team, and who else has the log open."""

LOOKS = Path(__file__).with_name("work.tcss")
"""The looks of what screens have in common."""


class Pane(VerticalScroll, can_focus=True, inherit_bindings=False):
    """A text that scrolls; its keys are the screen's."""


class WorkScreen(Screen[None]):
    """An annotator at work.

    Args:
        session: what the annotator writes into
        pages: what the annotator reads
        keys: what keys do
        labels: the names of the grades
        title: whose work it is, and on what
        columns: the panes and their columns, see `Panes`
        lists: those of them that are lists, the main one first
        presence: says who else has the log open; None where nobody looks
    """

    def __init__(
        self,
        session: Session,
        pages: Pages,
        keys: KeyMap,
        labels: Sequence[str],
        title: str,
        columns: Mapping[str, str],
        lists: Sequence[str],
        presence: Presence | None = None,
    ) -> None:
        super().__init__()
        self.session = session
        self.pages = pages
        self.keys = keys
        self.labels = labels
        self.head = Head(session, title, presence)
        self.panes = Panes(self, columns, lists)
        self.leaving = Leaving(lambda: self.app, session, self.head.draw)
        self._presence = presence
        self._main_list = lists[0]
        self._fetched = 0

    def on_mount(self) -> None:
        self.begin()
        self.head.draw()
        self.set_interval(REFRESH_SECONDS, self._every_while)
        if self.session.synchronizer is not None or self._presence is not None:
            self.set_interval(TEAM_SECONDS, self._look_around)
        if self._presence is not None and self._presence.others:
            self._ask_about_windows(self._presence)
        gc.freeze()  # what is there by now stays: to look for garbage in it would keep keys waiting

    def on_resize(self) -> None:
        self.panes.forget_widths()

    # What a screen says

    def begin(self) -> None:
        """Show where the work begins."""
        raise NotImplementedError

    def give(self, grade: int, reason: str = "") -> None:
        """Give what the cursor is on a grade, and move on."""
        raise NotImplementedError

    def take_in(self) -> Sequence[Event]:
        """Read and show what was written elsewhere since; returns these events."""
        raise NotImplementedError

    def actions(self) -> Mapping[str, Callable[[], object]]:
        """What can be done, by its name, besides giving grades and what is in `_common`."""
        raise NotImplementedError

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
        elif event.key.isdecimal():
            self.head.tell(no_such_grade(event.key, self.labels), "$warning")
        else:
            typed = (event.character or "").strip() if event.is_printable else ""
            key = typed or shown_key(event.key)
            self.head.tell(f"{key} does nothing here: {self.keys.shown('help')} lists the keys", "$warning")
        return True

    @on(KeyLine.Pressed)
    def _pressed(self, event: KeyLine.Pressed) -> None:
        self.do(event.name)

    def do(self, name: str) -> None:
        """Do what a key stands for."""
        try:
            with self.app.batch_update():  # so that all that changes is drawn once
                if name.startswith("grade_"):
                    self.give(int(name.removeprefix("grade_")))
                else:
                    (self._common() | dict(self.actions()))[name]()
        except SearchappError as error:
            self.head.tell(str(error), "$error")

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
            "help": lambda: self.app.push_screen(Help(self.keys)),
            "quit": self.leaving.leave,
        }

    def _grade_entries(self, *others: str) -> list[Entry]:
        """The grades for a line of keys, and what else is said of a document."""
        grades = [
            Entry(f"grade_{grade}", self.keys.shown(f"grade_{grade}"), label if label != str(grade) else "")
            for grade, label in enumerate(self.labels)
        ]
        return [*grades, *self._entries(*others)]

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
        focused = self.focused or self.query_one(f"#{self._main_list}")
        if isinstance(focused, Rows):
            focused.move(focused.cursor + lines * (focused.page if by_page else 1))
        else:
            focused.scroll_relative(y=lines * (focused.size.height - 1 if by_page else 1), animate=False)

    def _end(self, first: bool) -> None:
        focused = self.focused or self.query_one(f"#{self._main_list}")
        if isinstance(focused, Rows):
            focused.move(0 if first else focused.count - 1)
        else:
            (focused.scroll_home if first else focused.scroll_end)(animate=False)

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

    def ask_grade(self, question: str, others: Mapping[str, Callable[[str], None]]) -> None:
        """Ask for a grade, or for what else can be said with a reason, and then for the reason."""
        acts: dict[str, Callable[[str], None]] = {
            f"grade_{grade}": lambda reason, grade=grade: self.give(grade, reason)  # type: ignore[misc]
            for grade in range(len(self.labels))
        }
        acts |= others
        options = {self.keys.first(name): name for name in acts if self.keys.first(name)}
        about = {one.name: one.about for one in self.keys.actions}

        def ask(key: str | None) -> None:
            if key is not None:
                act = acts[options[key]]
                self.app.push_screen(
                    Words("Reason"), lambda reason: act(reason) if reason is not None else None
                )

        self.app.push_screen(Choose(question, [(key, about[name]) for key, name in options.items()]), ask)

    def ask_note(self, document: str, said: str, write: Callable[[str], None]) -> None:
        self.app.push_screen(
            Words(f"Note on {document}", said), lambda words: write(words) if words else None
        )

    def _ask_about_windows(self, presence: Presence) -> None:
        """Say that the same annotator has another window open, and ask whether to go on."""
        where = "; ".join(map(str, presence.others))
        name = self.session.author.annotator
        question = (
            f"{name} judges {self.session.task} in another window already ({where}). "
            "The latest judgment counts, whichever window it is made in: each shows what comes from the other."
        )
        options = [("g", "Go on in this one too"), ("q", "Leave")]
        self.app.push_screen(
            Choose(question, options), lambda key: self.leaving.leave() if key == "q" else None
        )

    # What happens elsewhere

    def _every_while(self) -> None:
        try:
            if not self.session.waiting:
                came = self.take_in()
                if came:
                    self.head.tell(came_in(came, self.session.author.annotator), "$primary")
            elif self.session.save_waiting().is_saved:
                self.head.tell("✓ saved  everything that was waiting", "$success")
            else:
                self.head.draw()
        except SearchappError as error:
            self.head.tell(str(error), "$error")

    def _look_around(self) -> None:
        """Show what others have sent, how many judgments wait to be sent, and which windows are open.

        The network is left to the synchronizer.
        """
        synchronizer = self.session.synchronizer
        if synchronizer is not None and synchronizer.fetched != self._fetched:
            self._fetched = synchronizer.fetched
            self._every_while()
        self.head.look_around()
        for news in (self.session.news, self.pages.news):
            while news:
                self.head.tell(news.pop(0), "$warning")

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Say so when something in the background has failed."""
        if event.state is WorkerState.ERROR:
            error = event.worker.error
            reason = str(error) if isinstance(error, SearchappError) else f"{type(error).__name__}: {error}"
            self.head.tell(f"{event.worker.name} failed: {reason}", "$error")


class WorkApp(OrderedApp):
    """Shows an annotator's screen until they leave it."""

    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012  # Textual declares it
    ESCAPE_TO_MINIMIZE = False

    def __init__(self, work: WorkScreen, settings: JudgeSettings) -> None:
        super().__init__()
        self.animation_level = "none"
        self.error_console = HarmlessConsole(
            stderr=True
        )  # prints last words, and errors with the texts around them
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = (LIGHT if settings.theme == "light" else DARK).name
        self.work = work

    def get_default_screen(self) -> Screen[None]:
        return self.work

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
            self.work.head.tell(f"copied {size} with {program}", "$success")
        else:
            super().copy_to_clipboard(text)
            self.work.head.tell(f"sent {size} to the terminal's clipboard (OSC 52), if it has one")

    def _leave(self, number: int) -> None:
        """The system, or a terminal that was closed, ends the program: leave in order, and with all judgments."""
        self.exit(return_code=128 + number, message=self.work.leaving.last_words())
