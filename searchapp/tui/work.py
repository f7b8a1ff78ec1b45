"""What the judging screen and the adjudicating screen have in common: an annotator's work, each key of which is saved.

A screen says what it shows, what its keys do and whose session it writes into; to be asked before judgments are lost,
to see whether they are saved, panes, dialogs, looks and signals are here.
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

from searchapp.errors import SearchappError
from searchapp.judging.session import Outcome, Session
from searchapp.judging.shared import waiting_words
from searchapp.tui.bars import Entry, KeyLine
from searchapp.tui.content import Content, Plain
from searchapp.tui.dialogs import Choose, Help, Words
from searchapp.tui.keys import JudgeSettings, KeyMap
from searchapp.tui.line import Line, OrderedApp
from searchapp.tui.rows import Rows
from searchapp.tui.saving import rescue
from searchapp.tui.themes import DARK, LIGHT

REFRESH_SECONDS = 5.0
"""How often what others have judged is taken in, and what could not be saved is tried again."""

TEAM_SECONDS = 0.5
"""How often it is looked what has gone to, and come from, the cluster of a team."""

LOOKS = Path(__file__).with_name("work.tcss")
"""The looks of what screens have in common."""


class Pane(VerticalScroll, can_focus=True, inherit_bindings=False):
    """A text that scrolls; its keys are the screen's."""


class WorkScreen(Screen[None]):
    """An annotator at work."""

    def __init__(self, session: Session, keys: KeyMap, labels: Sequence[str], title: str) -> None:
        super().__init__()
        self.session = session
        self.keys = keys
        self.labels = labels
        self._title = title
        self._status = Content("")
        self._told_of_team: tuple[int, str | None] = (0, None)
        self._fetched = 0

    def on_mount(self) -> None:
        self.begin()
        self._show_head()
        self.set_interval(REFRESH_SECONDS, self._every_while)
        if self.session.courier is not None:
            self.set_interval(TEAM_SECONDS, self._look_at_team)
        gc.freeze()  # what is there by now stays: to look for garbage in it would keep keys waiting

    # What a screen says

    def begin(self) -> None:
        """Show where the work begins."""
        raise NotImplementedError

    def give(self, grade: int, reason: str = "") -> None:
        """Give what the cursor is on a grade, and move on."""
        raise NotImplementedError

    def take_in(self) -> None:
        """Show what others have written meanwhile."""
        raise NotImplementedError

    def doings(self) -> Mapping[str, Callable[[], object]]:
        """What can be done, by its name, besides giving grades and what is in `_common`."""
        raise NotImplementedError

    def leave_line(self, line: Line) -> None:
        """A line for words was left with Escape."""
        raise NotImplementedError

    def panes(self) -> list[Widget]:
        """The panes in the order in which they are gone through."""
        raise NotImplementedError

    # Keys

    def take(self, event: events.Key) -> bool:
        line = self.focused
        if isinstance(line, Line):
            if event.key == "escape":
                self.leave_line(line)
                return True
            return line.take(event)
        name = self.keys.doing(event.key)
        if name is not None:
            self.do(name)
        return name is not None

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
                    (self._common() | dict(self.doings()))[name]()
        except SearchappError as error:
            self._tell(str(error), "$error")

    def _common(self) -> dict[str, Callable[[], object]]:
        document = self.query_one("#document")
        return {
            "down": lambda: self._move(1),
            "up": lambda: self._move(-1),
            "page_down": lambda: self._move(1, by_page=True),
            "page_up": lambda: self._move(-1, by_page=True),
            "first": lambda: self._end(first=True),
            "last": lambda: self._end(first=False),
            "next_pane": lambda: self._next_pane(1),
            "previous_pane": lambda: self._next_pane(-1),
            "scroll_down": lambda: document.scroll_relative(y=document.size.height // 2, animate=False),
            "scroll_up": lambda: document.scroll_relative(y=-(document.size.height // 2), animate=False),
            "theme": self._toggle_look,
            "help": lambda: self.app.push_screen(Help(self.keys)),
            "quit": self._quit,
        }

    def _grade_entries(self, *others: str) -> list[Entry]:
        """The grades for a line of keys, and what else is said of a document."""
        grades = [
            Entry(f"grade_{grade}", self.keys.shown(f"grade_{grade}"), label if label != str(grade) else "")
            for grade, label in enumerate(self.labels)
        ]
        return [*grades, *self._entries(*others)]

    def _entries(self, *names: str) -> list[Entry]:
        words = {one.name: one.word for one in self.keys.doings}
        return [Entry(name, self.keys.shown(name), words[name]) for name in names]

    def _toggle_look(self) -> None:
        self.app.theme = DARK.name if self.app.theme == LIGHT.name else LIGHT.name

    # Panes

    def _move(self, lines: int, by_page: bool = False) -> None:
        focused = self.focused
        if isinstance(focused, Rows):
            focused.move(focused.cursor + lines * (focused.page if by_page else 1))
        elif focused is not None:
            focused.scroll_relative(y=lines * (focused.size.height - 1 if by_page else 1), animate=False)

    def _end(self, first: bool) -> None:
        focused = self.focused
        if isinstance(focused, Rows):
            focused.move(0 if first else focused.count - 1)
        elif focused is not None:
            (focused.scroll_home if first else focused.scroll_end)(animate=False)

    def _next_pane(self, step: int) -> None:
        seen = [pane for pane in self.panes() if pane.region.area]
        if seen:
            here = seen.index(self.focused) if self.focused in seen else 0
            self.set_focus(seen[(here + step) % len(seen)])

    # Questions

    def _ask_grade(self, question: str, others: Mapping[str, Callable[[str], None]]) -> None:
        """Ask for a grade, or for what else can be said with a reason, and then for the reason."""
        acts: dict[str, Callable[[str], None]] = {
            f"grade_{grade}": lambda reason, grade=grade: self.give(grade, reason)  # type: ignore[misc]
            for grade in range(len(self.labels))
        }
        acts |= others
        options = {self.keys.first(name): name for name in acts if self.keys.first(name)}
        about = {one.name: one.about for one in self.keys.doings}

        def ask(key: str | None) -> None:
            if key is not None:
                act = acts[options[key]]
                self.app.push_screen(
                    Words("Reason"), lambda reason: act(reason) if reason is not None else None
                )

        self.app.push_screen(Choose(question, [(key, about[name]) for key, name in options.items()]), ask)

    def _ask_note(self, document: str, said: str, write: Callable[[str], None]) -> None:
        self.app.push_screen(
            Words(f"Note on {document}", said), lambda words: write(words) if words else None
        )

    # What is saved

    def _every_while(self) -> None:
        try:
            if not self.session.waiting:
                self.take_in()
            elif self.session.save_waiting().is_saved:
                self._tell("✓ saved  everything that was waiting", "$success")
            else:
                self._show_head()
        except SearchappError as error:
            self._tell(str(error), "$error")

    def _look_at_team(self) -> None:
        """Show what others have sent, and how many judgments wait to be sent; the network is the courier's affair."""
        courier = self.session.courier
        assert courier is not None
        if courier.fetched != self._fetched:
            self._fetched = courier.fetched
            self._every_while()
        if (self.session.unsent, courier.trouble) != self._told_of_team:
            self._show_head()

    def _tell_outcome(self, outcome: Outcome, what: str) -> None:
        """Say that an action is saved, or that it is not."""
        if outcome.is_saved:
            self._tell(f"✓ saved  {what}", "$success")
        else:
            self._tell("")

    def _tell(self, words: str, look: str = "$faint", add: bool = False) -> None:
        said = Content.styled(words, look)
        self._status = Content("   ").join([self._status, said]) if add else said
        self._show_head()

    def _show_head(self) -> None:
        head = self.query_one("#head", Plain)
        waiting = self.session.waiting
        head.set_class(bool(waiting), "-waiting")
        if waiting:
            why = self.session.not_saved or ""
            things = "1 judgment is" if waiting == 1 else f"{waiting} judgments are"
            words = Content.styled(f"▲ {things} NOT SAVED yet, tried again all the time: {why}", "bold")
            head.update(words, layout=False)
        else:
            count, trouble = self._of_team()
            head.update(
                Content.assemble((f"{self._title}  ", "bold"), count, self._status, trouble), layout=False
            )

    def _of_team(self) -> tuple[Content, Content]:
        """How many judgments wait for the cluster, and why if it does not take them."""
        courier = self.session.courier
        unsent, why = self.session.unsent, None if courier is None else courier.trouble
        self._told_of_team = (unsent, why)
        if not unsent and why is None:
            return Content(""), Content("")
        words = waiting_words(unsent)
        if why is None:
            return Content(""), Content.styled(f"  {words}", "$faint")  # it is about to be sent
        return Content.styled(f"▲ {words}  ", "bold $warning"), Content.styled(f"  {why}", "$faint")

    # Leaving

    def _quit(self) -> None:
        if self.session.waiting and not self.session.save_waiting().is_saved:
            self._ask_about_unsaved()
        else:
            self.app.exit()

    def _write_and_leave(self) -> None:
        try:
            told = rescue(self.session)
        except SearchappError as error:
            self._ask_about_unsaved(str(error))
        else:
            self.app.exit(message=told)

    def last_words(self) -> str | None:
        """Save what waits, in a file of its own if need be, when nobody can be asked; what is to be told of that."""
        if not self.session.waiting or self.session.save_waiting().is_saved:
            return None
        try:
            return rescue(self.session)
        except SearchappError as error:
            return str(error)

    def _ask_about_unsaved(self, why: str | None = None) -> None:
        count = self.session.waiting
        options = [
            ("t", "Try again"),
            ("w", "Write them to a file that `judgments import` takes, and leave"),
            ("l", "Leave without them: they are lost"),
        ]

        def answer(key: str | None) -> None:
            if key == "t":
                self._quit()
            elif key == "w":
                self._write_and_leave()
            elif key == "l":
                self.app.exit()
            self._show_head()

        self.app.push_screen(
            Choose(f"{count} judgments are not saved: {why or self.session.not_saved}", options), answer
        )


class WorkApp(OrderedApp):
    """Shows an annotator's screen until they leave it."""

    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012  # Textual declares it
    ESCAPE_TO_MINIMIZE = False

    def __init__(self, work: WorkScreen, settings: JudgeSettings) -> None:
        super().__init__()
        self.animation_level = "none"
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

    def _leave(self, number: int) -> None:
        """The system, or a terminal that was closed, ends the program: leave in order, and with all judgments."""
        self.exit(return_code=128 + number, message=self.work.last_words())
