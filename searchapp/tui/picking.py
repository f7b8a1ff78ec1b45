"""A list that somebody chooses from: typed words leave the lines that have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Size

from searchapp.tui.content import Content, Plain
from searchapp.tui.drawing import Dialog
from searchapp.tui.line import Line
from searchapp.tui.rows import Part, Rows, fitted
from searchapp.visible import visible_line

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
