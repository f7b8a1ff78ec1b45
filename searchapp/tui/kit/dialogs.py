"""Dialogs: a question, a line for words, a text that scrolls, a list to choose from, the help."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, islice, takewhile
from pathlib import Path
from typing import Any, ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Size
from textual.screen import ModalScreen, ScreenResultType
from textual.widget import Widget

from searchapp.errors import SearchappError
from searchapp.lucene.dataclass import dataclass
from searchapp.text import visible_line
from searchapp.tui.kit.content import Content, Plain
from searchapp.tui.kit.keys import HelpRow, KeyMap, PaneHelp, shown_key
from searchapp.tui.kit.widgets import LOW_BELOW, OrderedScreen, RowList, RowPart, TextLine, TextPane, fitted


class Dialog(ModalScreen[ScreenResultType], OrderedScreen[ScreenResultType]):
    """A dialog. ModalScreen comes first because its style takes precedence."""


def _question(text: str) -> VerticalScroll:
    return VerticalScroll(Plain(Content(text)), classes="question", can_focus=False)


class Choose(Dialog[str | None]):
    """Asks a question with one key per answer; returns the key, or None for Escape."""

    def __init__(self, question: str, options: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._question = question
        self._options = [*options, ("escape", "Back")]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield _question(self._question)
            for index, (key, meaning) in enumerate(self._options):
                line = Content.assemble((f" {shown_key(key):>4} ", "bold $primary"), f" {meaning}")
                yield Plain(line, classes="option", id=f"option-{index}")

    def take(self, event: events.Key) -> bool:
        question = self.query_one(VerticalScroll)
        if event.key in (key for key, _meaning in self._options):
            self._answer(event.key)
        elif event.key in ("down", "pagedown"):
            question.scroll_page_down(animate=False)
        elif event.key in ("up", "pageup"):
            question.scroll_page_up(animate=False)
        return True

    def on_click(self, event: events.Click) -> None:
        if event.widget is not None and (event.widget.id or "").startswith("option-"):
            self._answer(self._options[int(str(event.widget.id).removeprefix("option-"))][0])

    def _answer(self, key: str) -> None:
        self.dismiss(None if key == "escape" else key)


class WordsDialog(Dialog[str | None]):
    """Asks for words; returns them, or None for Escape. `action` says what Enter does."""

    def __init__(self, question: str, initial: str = "", *, action: str = "save") -> None:
        super().__init__()
        self._question = question
        self._action = action
        self._line = TextLine(lambda words: self.dismiss(words.strip()), text=initial)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield _question(self._question)
            yield self._line
            yield Plain(f"↵ {self._action}    esc back", classes="hint")

    def take(self, event: events.Key) -> bool:
        if event.key == "escape":
            self.dismiss(None)
            return True
        return self._line.take(event)


# The entries of a folder that are read to complete a path, and the completions that are listed.
READ_ENTRIES = 10_000
LISTED_COMPLETIONS = 8


def path_completions(typed: str, suffix: str = "") -> list[str]:
    """Return the folders whose paths begin with the typed text, and the files that also end with `suffix`, if any.

    Raises:
        OSError, RuntimeError: the folder cannot be read, or `~` names no user.
    """
    if typed == "~":
        return ["~/"]
    folder, fragment = _split(typed)
    names = []
    with os.scandir(Path(folder or ".").expanduser()) as entries:
        for entry in islice(entries, READ_ENTRIES):
            name = entry.name
            is_hidden = name.startswith(".") and not fragment.startswith(".")
            # A name with control characters would not survive in a line of text.
            if not name.startswith(fragment) or is_hidden or visible_line(name) != name:
                continue
            if entry.is_dir():
                names.append(name + os.sep)
            elif suffix and name.lower().endswith(suffix):
                names.append(name)
    return [folder + name for name in sorted(names)]


def _split(path: str) -> tuple[str, str]:
    start = path.rfind(os.sep) + 1
    return path[:start], path[start:]


class CheckedDialog(Dialog[Callable[[], object] | None]):
    """Asks for a text that is checked; returns the prepared action, or None for Escape.

    Args:
        question: the question
        prepare: takes the typed text and returns the action, or raises an error, which the dialog shows so that the
            user can correct the text
        action: what Enter does
        initial: the text to begin with
    """

    # What the text is, and further keys.
    WANTED: ClassVar[str] = "a value"
    MORE_KEYS: ClassVar[str] = ""

    def __init__(
        self, question: str, prepare: Callable[[str], Callable[[], object]], action: str, *, initial: str = ""
    ) -> None:
        super().__init__()
        self._question = question
        self._prepare = prepare
        self._action = action
        self._line = TextLine(self._submit, lambda _words: self._tell(""), text=initial)
        self._news = Plain(id="news")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield _question(self._question)
            yield self._line
            yield self._news
            yield Plain(f"↵ {self._action}    {self.MORE_KEYS}esc back", classes="hint")

    def take(self, event: events.Key) -> bool:
        if event.key == "escape":
            self.dismiss(None)
            return True
        return self._line.take(event)

    def _submit(self, words: str) -> None:
        words = words.strip()
        if not words:
            self._tell(f"type {self.WANTED}", "$warning")
            return
        try:
            act = self._prepare(words)
        except SearchappError as error:
            self._tell(str(error), "$error")
        else:
            self.dismiss(act)

    def _tell(self, words: str, look: str = "$faint") -> None:
        self._news.update(Content.styled(words, look))


class PathDialog(CheckedDialog):
    """Asks for a path, which Tab completes.

    `suffix` is that of the wanted files, in lower case; without one, a folder is wanted.
    """

    WANTED = "a path"
    MORE_KEYS = "tab complete    "

    def __init__(
        self,
        question: str,
        prepare: Callable[[str], Callable[[], object]],
        action: str,
        *,
        suffix: str = "",
        initial: str = "",
    ) -> None:
        super().__init__(question, prepare, action, initial=initial)
        self._suffix = suffix

    def take(self, event: events.Key) -> bool:
        if event.key == "tab":
            self._complete(self._line.value)
            return True
        return super().take(event)

    def _complete(self, typed: str) -> None:
        def complete() -> None:  # in a thread, because the folder may be on a slow server
            try:
                found = path_completions(typed, self._suffix)
            except (OSError, RuntimeError, ValueError):
                found = []
            self.app.call_from_thread(self._show_completions, typed, found)

        self.run_worker(complete, "to complete the path", thread=True, exclusive=True, exit_on_error=False)

    def _show_completions(self, typed: str, found: Sequence[str]) -> None:
        if not self.is_attached or self._line.value != typed:
            return  # the user has typed on
        if not found:
            self._tell("no match", "$warning")
            return
        pairs = zip(min(found), max(found), strict=False)
        common = "".join(first for first, _last in takewhile(lambda pair: pair[0] == pair[1], pairs))
        if len(common) > len(typed):
            self._line.value = common
            self._line.cursor_position = len(common)
            self._tell("")
        else:
            names = [path.removeprefix(_split(typed)[0]) for path in found]
            rest = f" and {len(names) - LISTED_COMPLETIONS:,} more" if len(names) > LISTED_COMPLETIONS else ""
            self._tell("  ".join(names[:LISTED_COMPLETIONS]) + rest)


_SCROLLS: Mapping[str, Callable[..., Any]] = {
    "down": Widget.scroll_down, "j": Widget.scroll_down, "up": Widget.scroll_up, "k": Widget.scroll_up,
    "pagedown": Widget.scroll_page_down, "space": Widget.scroll_page_down, "pageup": Widget.scroll_page_up,
    "ctrl+d": Widget.scroll_page_down, "ctrl+u": Widget.scroll_page_up, "ctrl+f": Widget.scroll_page_down,
    "ctrl+b": Widget.scroll_page_up, "home": Widget.scroll_home, "end": Widget.scroll_end,
    "g": Widget.scroll_home, "G": Widget.scroll_end,
}  # fmt: skip


class ScrollDialog(Dialog[None]):
    """Content that keys scroll; other keys close it."""

    # The widget that scrolls.
    SCROLLED: ClassVar[type[Widget]] = TextPane

    def key_actions(self) -> dict[str, Callable[[], object]]:
        return {}

    def take(self, event: events.Key) -> bool:
        actions = self.key_actions()
        if event.key in actions:
            actions[event.key]()
        elif event.key in _SCROLLS:
            _SCROLLS[event.key](self.query_one(self.SCROLLED), animate=False)
        else:
            self.dismiss(None)
        return True


class Help(ScrollDialog):
    """All keys of a screen, after `groups` of texts to type and help about the focused pane."""

    SCROLLED = VerticalScroll

    def __init__(
        self,
        keys: KeyMap,
        groups: Mapping[str, Sequence[HelpRow]] | None = None,
        about: PaneHelp | None = None,
    ) -> None:
        super().__init__()
        self._keys = keys
        self._groups = groups or {}
        self._about = about

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog help"):
            if self._about is not None:
                yield from self._about_pane(self._about)
            for group, rows in self._groups.items():
                yield _help_title(group, classes="group")
                for row in rows:
                    yield _help_row(row, 18)
            for group, actions in groupby(self._keys.actions, key=lambda action: action.group):
                yield _help_title(group, classes="group")
                for action in actions:
                    yield _help_row((self._keys.all_shown(action.name), action.about), 12, action.name)
            words = (
                f"To change keys, edit [{self._keys.section}.keys] in settings.toml in the home directory: it "
                f"gives the actions, by their names at the right, other keys."
            )
            yield Plain(Content.styled(words, "$faint"), classes="group")

    def _about_pane(self, about: PaneHelp) -> ComposeResult:
        yield _help_title(about.title)
        yield Plain(about.words)
        for row in about.typed:
            yield _help_row(row, 18)
        for name in about.actions:
            shown = self._keys.shown(name, in_line=True) if about.line else self._keys.all_shown(name)
            if shown:
                yield _help_row((shown, self._keys[name].about), 12)


def _help_title(words: str, classes: str | None = None) -> Plain:
    return Plain(Content.styled(words, "bold $accent"), classes=classes)


def _help_row(row: HelpRow, cells: int, name: str = "") -> Plain:
    typed, about = row
    return Plain(Content.assemble((f"{typed:<{cells}}", "bold $primary"), about, (f"  {name}", "$faint")))


DIALOG_CELLS = 120

# Lines of a dialog around its text: border, padding, heading, hint.
AROUND_LINES = 8
# On a low screen, which the dialog may fill: border, heading, hint.
LOW_AROUND_LINES = 4


class TextDialog(ScrollDialog):
    """A text below a heading; a subclass supplies it."""

    # Use the maximum height, so that another text does not change the size.
    IS_FULL: ClassVar[bool] = False

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
        return "↑↓ scroll    esc back"

    def text(self) -> Content:
        """Return the text, for lines of `room` cells."""
        raise NotImplementedError

    def on_mount(self) -> None:
        self.draw()

    def on_resize(self) -> None:
        self.draw()

    def draw(self, *, changed: bool = True) -> None:
        shown = self.text()
        # The height of the text, but the heading and the hint stay visible.
        heading_lines = len(self._heading) // max(1, self.room)
        is_low = self.app.size.height < LOW_BELOW
        most = (
            self.app.size.height - LOW_AROUND_LINES
            if is_low
            else int(self.app.size.height * 0.9) - AROUND_LINES
        )
        room = max(3, most - heading_lines)
        self._pane.styles.height = room if self.IS_FULL else min(shown.plain.count("\n") + 1, room)
        self._pane.show(shown, changed=changed)

    @property
    def room(self) -> int:
        return min(DIALOG_CELLS, int(self.app.size.width * 0.94)) - 7


# The keys of a report.
REPORT_KEYS = "↑↓ scroll    esc back"


class ReportDialog(ScrollDialog):
    """A text that can grow."""

    def __init__(self, title: str, text: Content | None = None) -> None:
        super().__init__()
        self._title = title
        self._lines = [] if text is None else [text]
        self._pane = TextPane(id="report")
        self._hint = Plain(REPORT_KEYS, classes="hint")
        # The user has closed it and needs no further lines.
        self.was_closed = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog report"):
            yield Plain(Content(self._title), classes="question")
            yield self._pane
            yield self._hint

    def on_mount(self) -> None:
        self.set_focus(self._pane)
        self._draw()

    def on_unmount(self) -> None:
        self.was_closed = True

    def add(self, line: Content) -> None:
        self._lines.append(line)
        self._draw()

    def finish(self, message: str) -> None:
        """Show that the text is complete, beside the keys, because its end may be out of view."""
        self._hint.update(f"{REPORT_KEYS}    {message}")

    def _draw(self) -> None:
        if self.is_attached:
            self._pane.show(Content("\n").join(self._lines), changed=False)


# Maximum share of a line for the name of a choice with a description.
NAME_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class Choice:
    """A line of a list of choices."""

    name: str
    about: str = ""
    # Shown before the name.
    sign: str = ""


class ChoiceRows(RowList):
    """Choices, one line each."""

    def __init__(self) -> None:
        super().__init__(id="choices", empty="no match")
        self.choices: Sequence[Choice] = ()
        self._sign_cells = self._name_cells = 0
        self._lines = 0

    def offer(self, choices: Sequence[Choice], cursor: int, lines: int) -> None:
        if lines != self._lines:
            self._lines = lines
            self.refresh(layout=True)
        self.choices = choices
        self._sign_cells = max((cell_len(choice.sign) for choice in choices), default=0)
        self._name_cells = max((cell_len(visible_line(choice.name)) for choice in choices), default=0)
        self.show(len(choices), cursor)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return self._lines

    def parts(self, index: int, width: int) -> Sequence[RowPart]:
        choice = self.choices[index]
        sign = f"{fitted(choice.sign, self._sign_cells)} " if self._sign_cells else ""
        left = width - 2 - len(sign)
        parts = [("▶ " if index == self.cursor else "  ", "rows--begun"), (sign, "rows--begun")]
        if not choice.about:
            return [*parts, (fitted(choice.name, left), "rows--text")]
        cells = min(self._name_cells, max(left // 2, int(left * NAME_SHARE)))
        return [
            *parts,
            (fitted(choice.name, cells) + "  ", "rows--text"),
            (fitted(choice.about, left - cells - 2), "rows--faint"),
        ]


class Picking(Dialog[int | None]):
    """Asks for a choice; returns its index, or None for Escape."""

    def __init__(self, question: str, choices: Sequence[Choice], chosen: int = 0) -> None:
        super().__init__()
        self._question = question
        self._all_choices = choices
        self._chosen = chosen
        # Indexes of the listed choices.
        self._indexes: Sequence[int] = range(len(choices))
        self._words = TextLine(lambda _words: self._choose(), lambda _words: self._narrow(), hint="filter")
        self.rows = ChoiceRows()

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog picking"):
            yield Plain(Content(self._question), classes="question")
            yield self._words
            yield self.rows
            yield Plain(self.hint, classes="hint")

    @property
    def hint(self) -> str:
        return "↑↓ move    ↵ choose    esc back"

    def on_mount(self) -> None:
        self._narrow(self._chosen)

    def take(self, event: events.Key) -> bool:
        rows = self.rows
        moves: dict[str, Callable[[], object]] = {
            "escape": lambda: self.dismiss(None),
            "enter": self._choose,
            **rows.moves_by_key(),
            "tab": lambda: rows.move((rows.cursor + 1) % max(1, rows.count)),
            "shift+tab": lambda: rows.move((rows.cursor - 1) % max(1, rows.count)),
        }
        moves |= self.key_actions()
        if event.key in moves:
            moves[event.key]()
        else:
            self._words.take(event)
        return True

    def key_actions(self) -> dict[str, Callable[[], object]]:
        return {}

    def chosen(self, index: int) -> None:
        self.dismiss(index)

    def fitting(self, words: str) -> Sequence[int]:
        """Return the indexes of choices with all words: an equal name first, then other names."""
        wanted = words.lower().split()

        def distance(index: int) -> int:
            name = self._all_choices[index].name.lower()
            if name == words.strip().lower():
                return 0
            return 1 if all(word in name for word in wanted) else 2

        fitting = [
            index
            for index, choice in enumerate(self._all_choices)
            if all(word in f"{choice.name} {choice.about}".lower() for word in wanted)
        ]
        return sorted(fitting, key=distance)

    @property
    def choices(self) -> Sequence[Choice]:
        return self._all_choices

    @property
    def index(self) -> int | None:
        return self._indexes[self.rows.cursor] if self.rows.count else None

    def ask(self, question: str) -> None:
        self._question = question
        self.query_one(".question", Plain).update(Content(question))

    def replace(self, choices: Sequence[Choice]) -> None:
        """Offer other choices; the cursor stays on its name, or else on its line."""
        index = self.index
        name = None if index is None else self._all_choices[index].name
        self._all_choices = choices
        self._narrow(None)
        names = [self._all_choices[index].name for index in self._indexes]
        if name in names:
            self.rows.put(names.index(name))

    @on(RowList.Picked)
    def _picked(self, event: RowList.Picked) -> None:
        event.stop()
        self._choose()

    def _choose(self) -> None:
        if self.index is not None:
            self.chosen(self.index)

    def _narrow(self, cursor: int | None = 0) -> None:
        self._indexes = self.fitting(self._words.value)
        choices = [self._all_choices[index] for index in self._indexes]
        # A constant height, so that the dialog does not move while the user types.
        self.rows.offer(choices, self.rows.cursor if cursor is None else cursor, len(self._all_choices))
