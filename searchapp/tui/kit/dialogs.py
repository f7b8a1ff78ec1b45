"""Dialogs: a question, a line for words, a text that scrolls, a list to choose from, the help.

`SteadyScreen`, the base of dialogs and screens, is drawn once where several things change one after the other: Textual
draws a screen whenever it has laid it out, three times before the first key, and each time sends all of it to the
terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from rich.cells import cell_len
from textual import events, on
from textual._time import get_time
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Size
from textual.screen import ModalScreen, Screen, ScreenResultType

from searchapp.text import visible_line
from searchapp.tui.kit.content import Content, Plain
from searchapp.tui.kit.keys import KeyMap, PaneHelp, shown_key
from searchapp.tui.kit.line import Line
from searchapp.tui.kit.widgets import Part, Rows, TextPane, fitted

WIDE_FROM = 110
"""Screens of so many columns are wide, others narrow."""

WIDTHS = [(0, "-narrow"), (WIDE_FROM, "-wide")]
"""The classes of screens, each with the columns from which on they have it."""


class SteadyScreen(Screen[ScreenResultType]):
    """A screen that is drawn by its timer alone, and once for each of its turns."""

    _is_put_off = False
    _painted: float | None = None
    _held_back: Sequence[Callable[[], object]] = ()

    def when_in_front(self, do: Callable[[], object]) -> None:
        """Do something now, or as soon as nothing stands on the screen any more.

        What comes of a question that took long puts nothing under the fingers of whoever types elsewhere by then.
        """
        if self.is_active:
            do()
        else:
            self._held_back = [*self._held_back, do]

    @on(events.ScreenResume)
    def _came_to_front(self) -> None:
        while self._held_back and self.is_active:
            do, *self._held_back = self._held_back
            do()

    def await_paint(self) -> None:
        """Count the screen as unpainted until it is drawn the next time."""
        self._painted = None
        self.refresh()

    def is_painted_before(self, event: events.Event) -> bool:
        """Whether the screen was painted when an event happened: an annotator saw what it is about."""
        return self._painted is not None and self._painted <= event.time

    @property
    def is_painted(self) -> bool:
        return self._painted is not None

    @property
    def is_drawn(self) -> bool:
        """Whether no drawing is put off."""
        return not self._is_put_off

    def on_compose(self) -> None:
        """Be narrow or wide before the panes are there, which would have to be given all of their looks again."""
        is_wide = self.app.size.width >= WIDE_FROM
        self.update_classes({"-wide": is_wide, "-narrow": not is_wide})

    @on(events.ScreenResume)
    def _resumed(self, event: events.ScreenResume) -> None:
        if self.app.screen_stack[0] is self and not self.stack_updates:
            event.refresh_styles = False  # the panes have just been given their looks

    def _compositor_refresh(self) -> None:
        if self is self.app.screen:
            self._is_put_off = True  # the compositor keeps what has changed
            self._update_timer.resume()
        else:
            super()._compositor_refresh()

    def _on_timer_update(self) -> None:
        super()._on_timer_update()
        if self.app._batch_count:
            self._update_timer.resume()  # nothing tells the screen when the batch ends
        elif self._is_put_off:
            self._is_put_off = False
            self._update_timer.pause()
            super()._compositor_refresh()
            if self._painted is None:
                self._painted = get_time()

    async def _invoke_and_clear_callbacks(self) -> None:
        if self._is_put_off:
            self._update_timer.resume()  # what is called after drawing is called after its turn
        else:
            await super()._invoke_and_clear_callbacks()


class Dialog(ModalScreen[ScreenResultType], SteadyScreen[ScreenResultType]):
    """A question, a list or a text that stands on a screen; it looks as Textual's, which so comes first."""


Option = tuple[str, str]
"""A key, and what it means."""


def _question(text: str) -> VerticalScroll:
    """A question of any length, which leaves room for its answers: what is too long scrolls."""
    return VerticalScroll(Plain(Content(text)), classes="question", can_focus=False)


class Choose(Dialog[str | None]):
    """A question that one key answers: gives that key, or None for Escape."""

    def __init__(self, question: str, options: Sequence[Option]) -> None:
        super().__init__()
        self._question = question
        self._options = [*options, ("escape", "Back")]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield _question(self._question)
            for place, (key, meaning) in enumerate(self._options):
                line = Content.assemble((f" {shown_key(key):>4} ", "bold $primary"), f" {meaning}")
                yield Plain(line, classes="option", id=f"option-{place}")

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


class Words(Dialog[str | None]):
    """Asks for words: gives them, or None for Escape."""

    def __init__(self, question: str, initial: str = "") -> None:
        super().__init__()
        self._question = question
        self._line = Line(lambda words: self.dismiss(words.strip()), text=initial)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield _question(self._question)
            yield self._line
            yield Plain("↵ save    esc back", classes="hint")

    def take(self, event: events.Key) -> bool:
        if event.key == "escape":
            self.dismiss(None)
            return True
        return self._line.take(event)


class Help(Dialog[None]):
    """All keys; `about` is the pane with the focus, `before` are groups of things to type, with what they mean."""

    def __init__(
        self,
        keys: KeyMap,
        before: Mapping[str, Sequence[Option]] | None = None,
        about: PaneHelp | None = None,
    ) -> None:
        super().__init__()
        self._keys = keys
        self._before = before or {}
        self._about = about

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog help"):
            if self._about is not None:
                yield from self._of_pane(self._about)
            for group, things in self._before.items():
                yield _group(group)
                for typed, about in things:
                    yield _typed(typed, about)
            for group, actions in groupby(self._keys.actions, key=lambda action: action.group):
                yield _group(group)
                for action in actions:
                    yield _keys(self._keys.all_shown(action.name), action.about)
            yield Plain(
                Content.styled(
                    f"Other keys: [{self._keys.section}.keys] in the file settings.toml of the home folder.",
                    "$faint",
                ),
                classes="group",
            )

    def _of_pane(self, about: PaneHelp) -> ComposeResult:
        yield Plain(Content.styled(about.title, "bold $accent"))
        yield Plain(about.words)
        for typed, meaning in about.typed:
            yield _typed(typed, meaning)
        meanings = {one.name: one.about for one in self._keys.actions}
        for name in about.actions:
            shown = self._keys.shown(name, in_line=True) if about.line else self._keys.all_shown(name)
            if shown:
                yield _keys(shown, meanings[name])

    def take(self, event: events.Key) -> bool:
        scroll = self.query_one(VerticalScroll)
        moves: dict[str, Callable[..., None]]
        moves = {
            "down": scroll.scroll_down,
            "up": scroll.scroll_up,
            "j": scroll.scroll_down,
            "k": scroll.scroll_up,
        }
        moves |= {
            "pagedown": scroll.scroll_page_down,
            "pageup": scroll.scroll_page_up,
            "space": scroll.scroll_page_down,
        }
        moves |= {"home": scroll.scroll_home, "end": scroll.scroll_end}
        if event.key in moves:
            moves[event.key](animate=False)
        else:
            self.dismiss(None)
        return True


def _group(name: str) -> Plain:
    return Plain(Content.styled(name, "bold $accent"), classes="group")


def _typed(typed: str, about: str) -> Plain:
    return Plain(Content.assemble((f"{typed:<18}", "bold $primary"), about))


def _keys(keys: str, about: str) -> Plain:
    return Plain(Content.assemble((f"{keys:<12}", "bold $primary"), about))


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


NAME_SHARE = 0.4
"""The share of a line that a name may take where something is said of it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A line of a list: what is chosen, and what is said of it; `sign` stands before it."""

    name: str
    about: str = ""
    sign: str = ""


class ChoiceRows(Rows):
    """Choices, one line each."""

    def __init__(self) -> None:
        super().__init__(id="choices")
        self.choices: Sequence[Choice] = ()
        self._sign_cells = self._name_cells = 0
        self._lines = 0

    def offer(self, choices: Sequence[Choice], cursor: int, lines: int) -> None:
        """Show choices; the list is as high as this many lines, whether there are as many choices or fewer."""
        if lines != self._lines:
            self._lines = lines
            self.refresh(layout=True)
        self.choices = choices
        self._sign_cells = max((cell_len(one.sign) for one in choices), default=0)
        self._name_cells = max((cell_len(visible_line(one.name)) for one in choices), default=0)
        self.show(len(choices), cursor)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        return self._lines

    def parts(self, place: int, width: int) -> Sequence[Part]:
        one = self.choices[place]
        signs = self._sign_cells
        sign = f"{fitted(one.sign, signs)} " if signs else ""
        left = width - 2 - len(sign)
        parts = [("▶ " if place == self.cursor else "  ", "rows--begun"), (sign, "rows--begun")]
        if one.about:
            cells = min(self._name_cells, max(left // 2, int(left * NAME_SHARE)))
            parts += [
                (fitted(one.name, cells) + "  ", "rows--text"),
                (fitted(one.about, left - cells - 2), "rows--faint"),
            ]
        else:
            parts.append((fitted(one.name, left), "rows--text"))
        return parts


class Picking(Dialog[int | None]):
    """Asks for one of several things: gives its place among them, or None for Escape."""

    def __init__(self, question: str, choices: Sequence[Choice], chosen: int = 0) -> None:
        super().__init__()
        self._question = question
        self._every = choices
        self._chosen = chosen
        self._places: Sequence[int] = range(len(choices))
        self._words = Line(
            lambda _words: self._choose(), lambda _words: self._narrow(), hint="words to look for"
        )
        self.rows = ChoiceRows()

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog picking"):
            yield Plain(Content(self._question), classes="question")
            yield self._words
            yield self.rows
            yield Plain(self.hint, classes="hint")

    @property
    def hint(self) -> str:
        """What the keys do."""
        return "↑↓ move    ↵ choose    esc back"

    def on_mount(self) -> None:
        self._narrow(self._chosen)

    def take(self, event: events.Key) -> bool:
        rows = self.rows
        moves: dict[str, Callable[[], object]] = {
            "escape": lambda: self.dismiss(None),
            "enter": self._choose,
            "down": lambda: rows.move(rows.cursor + 1),
            "up": lambda: rows.move(rows.cursor - 1),
            "tab": lambda: rows.move((rows.cursor + 1) % max(1, rows.count)),
            "shift+tab": lambda: rows.move((rows.cursor - 1) % max(1, rows.count)),
            "pagedown": lambda: rows.move(rows.cursor + rows.page),
            "pageup": lambda: rows.move(rows.cursor - rows.page),
        }
        moves |= self.further()
        if event.key in moves:
            moves[event.key]()
        else:
            self._words.take(event)
        return True

    def further(self) -> dict[str, Callable[[], object]]:
        """What further keys do."""
        return {}

    def chosen(self, place: int) -> None:
        """Do with the choice at a place what is to be done."""
        self.dismiss(place)

    def fitting(self, words: str) -> Sequence[int]:
        """The places of the choices that typed words leave: the one of that name first, then by their names alone."""
        sought = words.lower().split()

        def farness(place: int) -> int:
            name = self._every[place].name.lower()
            if name == words.strip().lower():
                return 0
            return 1 if all(word in name for word in sought) else 2

        found = [
            place
            for place, one in enumerate(self._every)
            if all(word in f"{one.name} {one.about}".lower() for word in sought)
        ]
        return sorted(found, key=farness)

    @property
    def choices(self) -> Sequence[Choice]:
        """All that there are."""
        return self._every

    @property
    def place(self) -> int | None:
        """The place of the choice that the cursor is on; None if none is left."""
        return self._places[self.rows.cursor] if self.rows.count else None

    def ask(self, question: str) -> None:
        """Ask in other words."""
        self._question = question
        self.query_one(".question", Plain).update(Content(question))

    def replace(self, choices: Sequence[Choice]) -> None:
        """Offer other choices, the cursor on the one of the same name if there is one, else on the same line."""
        place = self.place
        name = None if place is None else self._every[place].name
        self._every = choices
        self._narrow(None)
        names = [self._every[one].name for one in self._places]
        if name in names:
            self.rows.put(names.index(name))

    @on(Rows.Picked)
    def _picked(self, event: Rows.Picked) -> None:
        event.stop()
        self._choose()

    def _choose(self) -> None:
        place = self.place
        if place is not None:
            self.chosen(place)

    def _narrow(self, cursor: int | None = 0) -> None:
        self._places = self.fitting(self._words.value)
        choices = [self._every[place] for place in self._places]
        # As high as all of them are many, so that nothing moves while somebody types.
        self.rows.offer(choices, self.rows.cursor if cursor is None else cursor, len(self._every))
