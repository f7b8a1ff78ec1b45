"""The base of screens with keys, their panes and first line, and the pager."""

from __future__ import annotations

import gc
import os
import shlex
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import App, SuspendNotSupported
from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from searchapp.errors import SearchappError
from searchapp.judging.log import Presence
from searchapp.judging.session import Session
from searchapp.judging.team import waiting_label
from searchapp.lucene.dataclass import dataclass
from searchapp.text import visible, visible_line
from searchapp.tui.kit.content import Content, Plain
from searchapp.tui.kit.descriptions import error_text, unknown_grade_label, unsaved_label
from searchapp.tui.kit.dialogs import Choose, Help, Picking
from searchapp.tui.kit.jump import Jumping, targets
from searchapp.tui.kit.keys import KeyMap, PaneHelp, shown_key, types_nothing
from searchapp.tui.kit.palette import Offer, Palette
from searchapp.tui.kit.themes import next_theme
from searchapp.tui.kit.widgets import (
    SLIM_BELOW,
    KeyEntry,
    KeyLine,
    OrderedScreen,
    RowList,
    TextLine,
    chip,
    shortened,
)

# A key makes a list wider or narrower by this number of cells, or where panes are stacked taller or lower by this
# number of lines.
STEP_CELLS = 4
STEP_LINES = 2

# The least width of a list, and of the panes beside it; their least height where they are stacked.
LEAST_CELLS = 18
LEAST_LINES = 4


class Panes:
    """Arranges a screen's panes with the CSS classes `-zoom-NAME` and `-reading`.

    Args:
        screen: the screen
        columns: column ids by pane id, in the order of the next-pane key
        lists: ids of the panes that are lists, the main one first
    """

    def __init__(self, screen: KeyScreen, columns: Mapping[str, str], lists: Sequence[str]) -> None:
        self._screen = screen
        self._columns = columns
        self._lists = lists
        self._zoomed = ""
        # The list that had the focus before the lists were hidden.
        self._hidden_list = lists[0]
        self._widths: dict[str, int] = {}
        # The chosen heights of stacked columns.
        self._heights: dict[str, int] = {}

    def focus(self, widget: Widget) -> None:
        if self._zoomed and widget.id in self._columns:
            self._zoom(widget.id or "")
        if widget.id in self._lists and self.is_reading:
            self._read(False)
        self._screen.set_focus(widget)

    def next(self, step: int) -> None:
        panes = [self._screen.query_one(f"#{name}") for name in self._columns]
        if not self._zoomed:
            # The changes of the previous key may not be drawn yet.
            self._screen.app.stylesheet.update(self._screen)
            panes = [pane for pane in panes if _is_displayed(pane)]
        panes = [pane for pane in panes if not pane.disabled]
        if panes:
            focused = self._screen.focused
            index = panes.index(focused) if focused in panes else -1 if step > 0 else 0
            self.focus(panes[(index + step) % len(panes)])

    @property
    def is_reading(self) -> bool:
        return self._screen.has_class("-reading")

    def toggle_zoom(self) -> None:
        name = self._focused_of(self._columns)
        self._read(False)
        self._zoom("" if self._zoomed else name)

    def toggle_reading(self) -> None:
        self._zoom("")
        if not self.is_reading:
            self._hidden_list = self._focused_of(self._lists)
        self._read(not self.is_reading)
        self._screen.set_focus(None if self.is_reading else self._screen.query_one(f"#{self._hidden_list}"))

    def widen(self, steps: int) -> None:
        """Change the width, or where panes are stacked the height, of the focused or main list.

        If it is hidden, show it instead.
        """
        if self._zoomed or self.is_reading:
            self.show_all()
            return
        column = self._columns[self._focused_of(self._lists)]
        widget = self._screen.query_one(f"#{column}")
        others = [sibling for sibling in widget.siblings if isinstance(sibling, Widget) and sibling.display]
        if isinstance(widget.parent, Widget) and widget.parent.layout.name == "vertical":
            height = widget.outer_size.height + steps * STEP_LINES
            most = widget.parent.size.height - LEAST_LINES * len(others)
            self._heights[column] = max(LEAST_LINES, min(height, most))
            self._set_sizes()
            return
        width = widget.outer_size.width + steps * STEP_CELLS
        most = self._screen.size.width - LEAST_CELLS - sum(other.outer_size.width for other in others[:-1])
        self._widths[column] = max(LEAST_CELLS, min(width, most))
        self._set_sizes()

    def show_all(self) -> None:
        """Show every pane."""
        self._zoom("")
        self._read(False)

    @property
    def widths(self) -> Mapping[str, int]:
        return dict(self._widths)

    @widths.setter
    def widths(self, chosen: Mapping[str, int]) -> None:
        columns = {self._columns[name] for name in self._lists}
        most = max(LEAST_CELLS, self._screen.size.width - LEAST_CELLS)
        self._widths = {
            column: max(LEAST_CELLS, min(width, most))
            for column, width in chosen.items()
            if column in columns
        }
        self._set_sizes()

    def forget_sizes(self) -> None:
        for column in self._widths:
            self._screen.query_one(f"#{column}").styles.width = None
        for column in self._heights:
            self._screen.query_one(f"#{column}").styles.height = None
        self._widths.clear()
        self._heights.clear()

    def _focused_of(self, names: Iterable[str]) -> str:
        focused = self._screen.focused
        name = None if focused is None else focused.id
        return name if name is not None and name in names else self._lists[0]

    def _zoom(self, name: str) -> None:
        for column in self._columns:
            self._screen.set_class(column == name, f"-zoom-{column}")
        self._zoomed = name
        self._set_sizes()

    def _read(self, only: bool) -> None:
        self._screen.set_class(only, "-reading")
        self._set_sizes()

    def _set_sizes(self) -> None:
        is_shown = not self._zoomed and not self.is_reading
        for column, width in self._widths.items():
            self._screen.query_one(f"#{column}").styles.width = width if is_shown else None
        for column, height in self._heights.items():
            self._screen.query_one(f"#{column}").styles.height = height if is_shown else None
        if is_shown:
            self._screen.head.show_hiding()
            return
        words, action = ("one pane", "zoom") if self._zoomed else ("no lists", "reading")
        key = self._screen.keys.shown(action)
        self._screen.head.show_hiding(chip(f"{words}: {key} shows all"))


def _is_displayed(widget: Widget) -> bool:
    return all(node.display for node in widget.ancestors_with_self if isinstance(node, Widget))


# Longer titles are cut, so that the status stays visible.
TITLE_CELLS = 60

# A styled text of the first line.
Part = tuple[str, str]


@dataclass(frozen=True, eq=False, slots=True)
class Status:
    """A text of the first line, and whether it still applies."""

    text: Content
    holds: Callable[[], bool]


class Banner(Plain):
    """The first line: the title, chips, messages, and an activity or state.

    A message ends with the next action. The message of an action, and one that arrives without an action, such as an
    answer from a thread, do not replace each other. The state stays behind them while it applies.

    In a narrow line the messages take precedence over the chips, of which the first are the most important, and the
    chips over the end of the title.
    """

    def __init__(self, title: str) -> None:
        super().__init__(id="head")
        self._title = title
        self._chips: Sequence[Part] = ()
        # What the user has hidden, and the key that shows it.
        self._hiding: Sequence[Part] = ()
        self._answer: Status | None = None
        self._news: Status | None = None
        self._state: Status | None = None
        self._is_acting = False
        self._waits = False

    def tell(self, words: str, look: str = "$faint", *, holds: Callable[[], bool] = lambda: True) -> None:
        """Show a message until the next action, or until it no longer `holds`; end a wait."""
        self._waits = False
        message = Status(Content.styled(words, look), holds)
        if self._is_acting:
            self._answer = message
        else:
            self._news = message
        self._drop_ended()
        self.draw()

    def show_state(self, words: str, look: str = "$faint", *, holds: Callable[[], bool]) -> None:
        """Show a state instead of the previous one, while it `holds`."""
        self._state = Status(Content.styled(words, look), holds)
        self.draw()

    @contextmanager
    def acting(self) -> Iterator[None]:
        """End the present messages after an action, which may report its own."""
        if self._is_acting:
            yield
            return
        before = self._answer, self._news
        self._is_acting = True
        try:
            yield
        finally:
            self._is_acting = False
            ended = [message for message in before if message and message in (self._answer, self._news)]
            if self._answer in ended:
                self._answer = None
            if self._news in ended:
                self._news = None
            if self._drop_ended() or ended:
                self.draw()

    def clear_ended(self) -> None:
        if self._drop_ended():
            self.draw()

    def _drop_ended(self) -> bool:
        """Drop what no longer applies; return whether there was any."""
        before = self._answer, self._news, self._state
        self._answer, self._news, self._state = (
            status if status is not None and status.holds() else None for status in before
        )
        return before != (self._answer, self._news, self._state)

    def wait(self, words: str = "") -> None:
        self._waits = True
        self.show_state(words, holds=lambda: self._waits)

    @property
    def is_waiting(self) -> bool:
        return self._waits

    def end_wait(self) -> None:
        self._waits = False
        self.clear_ended()

    def retitle(self, title: str) -> None:
        self._title = title
        self.draw()

    def show_chips(self, *chips: Part) -> None:
        if chips != self._chips:
            self._chips = chips
            self.draw()

    def show_hiding(self, *chips: Part) -> None:
        if chips != self._hiding:
            self._hiding = chips
            self.draw()

    @property
    def chips(self) -> Sequence[Part]:
        """The chips, the most important first."""
        return self._chips

    @property
    def status(self) -> Content:
        shown = [status.text for status in (self._answer, self._news, self._state) if status is not None]
        return Content("   ").join(shown)

    def on_resize(self) -> None:
        self.draw()

    def draw(self) -> None:
        room = self.size.width or self.app.size.width - 2
        status, chips = self.status, [*self._hiding, *self.chips]
        # A message in a slim line hides chips until the next action, or it could not be read.
        has_message = self._answer is not None or self._news is not None
        share = 2 / 3 if has_message and room < SLIM_BELOW else 1 / 3
        kept = min(status.cell_length, int(room * share))
        least = min(cell_len(visible_line(self._title)), room // 4)
        while chips and least + _cells(chips) + kept > room:
            chips.pop()
        left = room - _cells(chips) - status.cell_length
        title = shortened(self._title, max(least, min(TITLE_CELLS, left)))
        parts: list[Content | str | Part] = [(title, "bold"), "  "]
        for each in chips:
            parts += [each, " "]
        self.update(Content.assemble(*parts, " " * bool(chips), status), layout=False)


def _cells(chips: Sequence[Part]) -> int:
    return 2 + sum(cell_len(words) + 1 for words, _look in chips) + bool(chips)


class SessionBanner(Banner):
    """The first line of an annotator's screen, with unsaved and unsent judgments."""

    def __init__(self, title: str, session: Session | None = None, presence: Presence | None = None) -> None:
        super().__init__(title)
        # Number of documents to judge in the session, if the annotator has a goal.
        self.goal: int | None = None
        # None until judging begins.
        self.session = session
        self._presence = presence
        self._drawn: object = None

    def draw_if_changed(self) -> None:
        if self._surroundings() != self._drawn:
            self.draw()

    def draw(self) -> None:
        self._drawn = self._surroundings()
        session = self.session
        is_unsaved = session is not None and session.waiting > 0
        self.set_class(is_unsaved, "-waiting")
        if session is not None and is_unsaved:
            words = Content.styled(unsaved_label(session.waiting, session.not_saved), "bold")
            self.update(words, layout=False)
        else:
            super().draw()

    @property
    def chips(self) -> Sequence[Part]:
        chips = []
        unsent, trouble, others = self._surroundings()
        if trouble is not None:
            chips.append(chip(f"▲ {waiting_label(unsent)}", "bold $warning"))
        if others:
            chips.append(chip(f"▲ {others + 1} windows", "bold $warning"))
        if self.goal is not None and self.session is not None:
            judged = self.session.judged_here
            is_reached = judged >= self.goal
            look = "bold $success" if is_reached else "bold $primary"
            chips.append(chip(f"{judged:,}/{self.goal:,}{' ✓' * is_reached}", look))
        chips += self._chips
        if self.session is not None and self.session.synchronizer is not None and trouble is None:
            is_sent = not unsent
            chips.append(
                chip("shared" if is_sent else waiting_label(unsent), "$success" if is_sent else "$faint")
            )
        return chips

    @property
    def status(self) -> Content:
        trouble, status = self._surroundings()[1], super().status
        return status if trouble is None else Content.assemble(status, (f"  {trouble}", "$faint"))

    def _surroundings(self) -> tuple[int, str | None, int]:
        session, others = self.session, 0 if self._presence is None else len(self._presence.others)
        if session is None:
            return 0, None, others
        trouble = None if session.synchronizer is None else session.synchronizer.trouble
        return session.unsent, trouble, others


def freeze_objects(*, after_others: bool) -> None:
    """Exclude existing objects from garbage collection, which would delay keys by a quarter of a second.

    With `after_others`, collect the objects of closed screens first.
    """
    if after_others:
        gc.collect()
    gc.freeze()


def show_in_pager(app: App[None], text: str, environment: Mapping[str, str] = os.environ) -> None:
    """Show a text in the program of `$PAGER`, and wait for its end.

    Raises:
        SearchappError: the program or the terminal is missing.
    """
    if app.is_web:
        raise SearchappError("$PAGER can't run in a browser: read the document in its pane")
    named = environment.get("PAGER") or "less"
    try:
        command = shlex.split(named)
    except ValueError as error:
        raise SearchappError(f"PAGER is {named!r}, which is not a valid command: {error}") from error
    try:
        with app.suspend():
            subprocess.run(
                command, input=visible(text).encode("utf-8", "replace"), check=False, env=dict(environment)
            )
    except SuspendNotSupported as error:
        raise SearchappError("this terminal can't show a pager") from error
    except (OSError, IndexError) as error:
        raise SearchappError(f"{named!r} can't be run: set PAGER to a program that displays text") from error


# Actions available in a line of text, by keys that type no character.
BESIDE_LINE = ("palette", "help", "jump", "quit")


def saves(name: str) -> bool:
    """Return whether an action appends to the judgment log at once."""
    return name.startswith("grade_") or name in ("skip", "cant_tell", "undo", "redo")


class Pane(VerticalScroll, can_focus=True, inherit_bindings=False):
    """A pane that scrolls; the screen acts on its keys."""


class KeyScreen(OrderedScreen[None]):
    """A screen with configurable keys.

    A subclass sets CSS_PATH. Its rules apply to the whole app, so each begins with the class of the screen.

    Args:
        keys: the actions by their keys
        head: the first line
        columns: see `Panes`
        lists: see `Panes`
    """

    # The pane that the scroll keys scroll.
    SCROLLED: ClassVar[str] = "#document"

    # Help texts by pane id.
    ABOUT: ClassVar[Mapping[str, PaneHelp]] = {}

    # Whether keys append to the judgment log: keys before the first paint are then discarded.
    SAVES_GRADES: ClassVar[bool] = False

    # The names of the grades.
    labels: Sequence[str] = ()

    head: Banner

    def __init__(self, keys: KeyMap, head: Banner, columns: Mapping[str, str], lists: Sequence[str]) -> None:
        super().__init__()
        self.css_path = [Path(__file__).with_name("screen.tcss"), *self.css_path]
        self.keys = keys
        self.head = head
        self.panes = Panes(self, columns, lists)
        self._main_list = lists[0]
        # Called once the screen is removed and no timer or answer uses its resources any more.
        self.after_removal: Callable[[], object] = lambda: None

    def on_mount(self) -> None:
        self.begin()
        self.head.draw()
        self.start_work()
        freeze_objects(after_others=not self._is_lowest)

    def on_unmount(self) -> None:
        gc.unfreeze()
        self.after_removal()

    def on_resize(self) -> None:
        self.panes.forget_sizes()  # they may not fit the new size

    def tell_error(self, error: Exception) -> None:
        self.head.tell(error_text(error), "$error")

    # For subclasses

    def begin(self) -> None:
        raise NotImplementedError

    def start_work(self) -> None:
        """Start background work, after the panes are filled."""

    def actions(self) -> Mapping[str, Callable[[], object]]:
        """Return the functions of the actions by name, except for `_common`."""
        raise NotImplementedError

    def give(self, grade: int) -> None:
        raise NotImplementedError

    def help(self) -> Help:
        return Help(self.keys, about=self.about_focused)

    @property
    def about_focused(self) -> PaneHelp | None:
        focused = self.focused
        name = None if focused is None else focused.id
        return self.ABOUT.get(name or self._main_list)

    def leave(self) -> None:
        self.go_back()

    def last_words(self) -> str | None:
        """Save unsaved work without asking; return a sentence about it, if needed."""
        return None

    def leave_line(self, line: TextLine) -> None:
        """Act on Escape in a line of text."""
        raise NotImplementedError

    def offers(self) -> Iterable[Offer]:
        return ()

    def offers_everywhere(self) -> Iterable[Offer]:
        """Return offers that the screens above this one have too."""
        return ()

    def further_offers(self) -> Iterable[Offer]:
        """Return offers that take longer to compute; called in another thread."""
        return ()

    def go_back(self, message: str | None = None) -> None:
        """Return to the screen below with a message, or end the program."""
        if self._is_lowest:
            self.app.exit(message=message)
            return
        self.dismiss(None)
        below = front(self.app)
        if below is not None:
            below.await_paint()  # discards keys that were typed for the closed screen
            if message:
                below.head.tell(message, "$warning")

    @property
    def _is_lowest(self) -> bool:
        return self.app.screen_stack[0] is self

    # Keys

    def take(self, event: events.Key) -> bool:
        line = self.focused
        if isinstance(line, TextLine):
            with self.head.acting():
                return self.take_in_line(line, event)
        if not self.SAVES_GRADES or self.is_painted_before(
            event
        ):  # otherwise the user has not seen the document
            name = self.keys.action(event.key)
            if name is None:
                self.refuse(event)
            else:
                self.do(name)
        return True

    def take_in_line(self, line: TextLine, event: events.Key) -> bool:
        if event.key == "escape":
            self.leave_line(line)
        elif not line.take(event):
            name = self.keys.action(event.key)
            if name not in BESIDE_LINE or not types_nothing(event.key):
                return False
            self.do(name)
        return True

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.widget is not self.head:  # its text can be selected and copied
            with self.head.acting():
                pass

    def refuse(self, event: events.Key) -> None:
        with self.head.acting():
            self._refuse(event)

    def _refuse(self, event: events.Key) -> None:
        if self.labels and event.key.isdecimal():
            self.head.tell(unknown_grade_label(event.key, self.labels), "$warning")
            return
        typed = (event.character or "").strip() if event.is_printable else ""
        key = typed or shown_key(event.key)
        self.head.tell(f"{key} does nothing here: {self.keys.shown('help')} lists the keys", "$warning")

    @on(KeyLine.Pressed)
    def _pressed(self, event: KeyLine.Pressed) -> None:
        if self.is_active:
            self.do(event.name)

    def do(self, name: str) -> None:
        """Run an action, draw its changes once, and report its error; a screen that was left runs none."""
        if self in self.app.screen_stack and not self.app._exit:
            self._attempt(partial(self.act, name))

    def _attempt(self, action: Callable[[], object]) -> None:
        with self.head.acting():
            try:
                with self.app.batch_update():
                    action()
            except SearchappError as error:
                self.tell_error(error)

    def pick(self, dialog: Picking, then: Callable[[int], object]) -> None:
        def choose(index: int | None) -> None:
            if index is not None:
                self._attempt(lambda: then(index))

        self.app.push_screen(dialog, choose)

    def later(self, callback: Callable[[], object]) -> None:

        def run() -> None:
            with self.app.batch_update():
                callback()

        self.call_later(run)

    def act(self, name: str) -> None:
        if name.startswith("grade_"):
            self.give(int(name.removeprefix("grade_")))
        else:
            (self._common() | dict(self.actions()))[name]()

    def _common(self) -> dict[str, Callable[[], object]]:
        scrolled = self.query_one(self.SCROLLED)
        half = scrolled.size.height // 2
        return {
            "down": lambda: self._move(1),
            "up": lambda: self._move(-1),
            "page_down": lambda: self._move(1, by_page=True),
            "page_up": lambda: self._move(-1, by_page=True),
            "first": lambda: self._move_to_end(first=True),
            "last": lambda: self._move_to_end(first=False),
            "next_pane": lambda: self.panes.next(1),
            "previous_pane": lambda: self.panes.next(-1),
            "zoom": self.panes.toggle_zoom,
            "reading": self.panes.toggle_reading,
            "wider": lambda: self.panes.widen(1),
            "narrower": lambda: self.panes.widen(-1),
            "scroll_down": lambda: scrolled.scroll_relative(y=half, animate=False),
            "scroll_up": lambda: scrolled.scroll_relative(y=-half, animate=False),
            "jump": lambda: self.app.push_screen(Jumping(self, targets(self, self.panes.focus))),
            "theme": self._change_theme,
            "copy": self._copy,
            "palette": self._open_palette,
            "help": lambda: self.app.push_screen(self.help()),
            "quit": self.leave,
        }

    def _entries(self, *names: str) -> list[KeyEntry]:
        return [KeyEntry(name, self.keys.shown(name), self.keys[name].word) for name in names]

    def _grade_entries(self, labels: Sequence[str], *others: str) -> list[KeyEntry]:
        names = [f"grade_{grade}" for grade in range(len(labels))]
        words = ["" if label == str(grade) else label for grade, label in enumerate(labels)]
        grades = [
            KeyEntry(name, self.keys.shown(name), word) for name, word in zip(names, words, strict=True)
        ]
        return [*grades, *self._entries(*others)]

    def _open_palette(self) -> None:
        offers = [
            Offer(action.about, partial(self.do, action.name), key=self.keys.shown(action.name))
            for action in self.keys.actions
            if action.name != "palette"
        ]
        for screen in key_screens(self.app):
            offers += screen.offers_everywhere()
        offers += self.offers()
        self.app.push_screen(Palette(offers, lambda: list(self.further_offers())))

    def _change_theme(self) -> None:
        name = next_theme(self.app)
        self.head.tell(f'theme {name}: theme = "{name}" in settings.toml makes it the default')

    def _copy(self) -> None:
        text = self.get_selected_text()
        if text:
            self.app.copy_to_clipboard(text)
        else:
            self.head.tell(
                f"select text with the mouse, and {self.keys.shown('copy')} copies it; "
                f"{self.keys.shown('quit')} leaves"
            )

    def _move(self, lines: int, by_page: bool = False) -> None:
        pane = self._moved_pane
        if isinstance(pane, RowList):
            pane.move(pane.cursor + lines * (pane.page if by_page else 1))
        else:
            pane.scroll_relative(y=lines * (pane.size.height - 1 if by_page else 1), animate=False)

    def _move_to_end(self, first: bool) -> None:
        pane = self._moved_pane
        if isinstance(pane, RowList):
            pane.move(0 if first else pane.count - 1)
        else:
            (pane.scroll_home if first else pane.scroll_end)(animate=False)

    @property
    def _moved_pane(self) -> Widget:
        focused = self.focused
        if focused is None or isinstance(focused, TextLine):
            return self.query_one(f"#{self._main_list}")
        return focused

    def ask(
        self, question: str, yes: Callable[[], object], *, others: Mapping[str, str] | None = None
    ) -> None:
        """Ask for confirmation; `others` maps alternative actions to their descriptions."""
        options = [("y", "Yes"), ("n", "No")]
        actions: dict[str, str] = {}
        for name, about in (others or {}).items():
            key = self.keys.first(name)
            if key and key not in ("y", "n", "escape"):
                actions[key] = name
                options.append((key, about))

        def answer(key: str | None) -> None:
            if key == "y":
                self._attempt(yes)
            if key in actions:
                self.do(actions[key])

        self.app.push_screen(Choose(question, options), answer)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR:
            self.head.tell(f"{event.worker.name} failed: {error_text(event.worker.error)}", "$error")


def key_screens(app: App[None]) -> list[KeyScreen]:
    """Return the screens without dialogs, the front one first."""
    return [screen for screen in reversed(app.screen_stack) if isinstance(screen, KeyScreen)]


def front(app: App[None]) -> KeyScreen | None:
    """Return the front screen below its dialogs, if any."""
    return next(iter(key_screens(app)), None)
