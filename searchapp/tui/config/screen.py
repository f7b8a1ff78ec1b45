"""Every setting with its value and where it comes from; nothing can be changed here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.screen import Screen

from searchapp.config.files import PROJECT_FILE
from searchapp.config.sources import Found, Origin, Resolution
from searchapp.tui.bars import Entry, KeyLine
from searchapp.tui.content import Content, Plain, entitle
from searchapp.tui.dialogs import Help
from searchapp.tui.keys import KeyMap
from searchapp.tui.rows import Part, Rows, fitted, one_line
from searchapp.tui.screen import Pane
from searchapp.tui.themes import DARK, LIGHT

VALUE_SHARE = 0.55
"""The share of a line that a value may take of what the name leaves."""

MOVES = ("down", "up", "page_down", "page_up", "first", "last", "scroll_down", "scroll_up")
OTHERS = ("theme", "help", "quit")


class SettingRows(Rows):
    """The settings, one a line."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--some"}

    def __init__(self, found: Sequence[Found]) -> None:
        super().__init__(id="settings")
        self.found = found
        self._name_cells = max(len(one.setting.name) for one in found) + 2

    def parts(self, place: int, width: int) -> Sequence[Part]:
        one = self.found[place]
        left = width - self._name_cells - 2
        value_cells = int(left * VALUE_SHARE)
        is_default = one.source.origin is Origin.default
        return [
            ("▶ " if place == self.cursor else "  ", "rows--begun"),
            (fitted(one.setting.name, self._name_cells), "rows--text"),
            (fitted(one_line(one.shown, maths=False), value_cells - 2) + "  ", self._look_of(is_default)),
            (fitted(_origin(one), left - value_cells), "rows--faint"),
        ]

    def _look_of(self, is_default: bool) -> str:
        return "rows--faint" if is_default else "rows--some"


def _origin(found: Found) -> str:
    """Where a value comes from, in a word: which files there are is said elsewhere."""
    is_file = found.file is not None or not found.place
    return str(found.source.origin) if is_file else found.place


class ConfigScreen(Screen[None]):
    """The settings in a list, and below it what the one under the cursor is for, and what sets it.

    `keys` are those of the judging screen, of which the ones that move do so here.
    """

    def __init__(self, resolution: Resolution, keys: KeyMap) -> None:
        super().__init__()
        every = keys.only({"quit": ("Leave", "quit")}, *MOVES, *OTHERS).actions
        self.keys = KeyMap([one for one in every if not one.name.startswith("grade_")])
        self._resolution = resolution
        self._rows = SettingRows(list(resolution.found.values()))

    def compose(self) -> ComposeResult:
        yield Plain("Settings", id="head")
        yield self._rows
        with Pane(id="about"):
            yield Plain(id="words")
        words = {one.name: one.word for one in self.keys.actions}
        yield KeyLine([Entry(name, self.keys.shown(name), words[name]) for name in OTHERS], 1, id="keys")

    def on_mount(self) -> None:
        self.query_one("#head", Plain).update(
            Content.assemble(("Settings  ", "bold"), ("; ".join(self._resolution.about_files), "$faint"))
        )
        self._rows.show(len(self._rows.found), 0)
        self.set_focus(self._rows)
        self._describe()

    def take(self, event: events.Key) -> bool:
        name = "quit" if event.key == "escape" else self.keys.action(event.key)
        if name is not None:
            self.do(name)
        return True

    def do(self, name: str) -> None:
        """Do what a key stands for."""
        rows, about = self._rows, self.query_one("#about", Pane)
        doings: dict[str, Callable[[], object]] = {
            "down": lambda: rows.move(rows.cursor + 1),
            "up": lambda: rows.move(rows.cursor - 1),
            "page_down": lambda: rows.move(rows.cursor + rows.page),
            "page_up": lambda: rows.move(rows.cursor - rows.page),
            "first": lambda: rows.move(0),
            "last": lambda: rows.move(rows.count - 1),
            "scroll_down": lambda: about.scroll_page_down(animate=False),
            "scroll_up": lambda: about.scroll_page_up(animate=False),
            "theme": self._toggle_look,
            "help": lambda: self.app.push_screen(Help(self.keys)),
            "quit": self._leave,
        }
        doings[name]()

    @on(KeyLine.Pressed)
    def _pressed(self, event: KeyLine.Pressed) -> None:
        self.do(event.name)

    @on(Rows.Moved)
    def _moved(self) -> None:
        self._describe()

    def _describe(self) -> None:
        """Say everything of the setting under the cursor."""
        one = self._rows.found[self._rows.cursor]
        where = f"{one.source.origin}{f' ({one.where})' if one.where else ''}"
        ways = one.setting.ways(self._resolution.user_file, PROJECT_FILE)
        about = self.query_one("#about", Pane)
        entitle(about, one.setting.name)
        self.query_one("#words", Plain).update(
            Content.assemble(
                f"{one.setting.about}\n",
                *(("value    ", "$faint"), f"{one.shown}\n"),
                *(("from     ", "$faint"), f"{where}\n"),
                *(("set by   ", "$faint"), ways),
            )
        )
        about.scroll_home(animate=False)

    def _toggle_look(self) -> None:
        self.app.theme = DARK.name if self.app.theme == LIGHT.name else LIGHT.name

    def _leave(self) -> None:
        """Back to the screen below, or out of the program if there is none."""
        if len(self.app.screen_stack) > 1:
            self.dismiss(None)
        else:
            self.app.exit()
