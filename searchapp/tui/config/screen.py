"""The screen of settings: every setting, its value, and where that comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult

from searchapp.config.resolution import PROJECT_FILE, Origin, Resolution, SettingValue
from searchapp.tui.kit import keys
from searchapp.tui.kit.content import AS_WRITTEN, Content, Plain, entitle
from searchapp.tui.kit.descriptions import with_tilde
from searchapp.tui.kit.keys import KeyMap, PaneHelp
from searchapp.tui.kit.screen import Banner, KeyApp, KeyScreen, Pane
from searchapp.tui.kit.widgets import KeyLine, RowList, RowPart, fitted, one_line

PANES = {
    "settings": PaneHelp(
        "The settings", "Every setting, its value, and where that comes from.", (), ("next_pane", "jump")
    ),
    "about": PaneHelp("The setting", "What it is for, and what sets it.", (), ("next_pane",)),
}


VALUE_SHARE = 0.55
"""The share of a line that a value may take of what the name leaves."""

MOVES = ("down", "up", "page_down", "page_up", "first", "last", "scroll_down", "scroll_up")
OTHERS = ("next_pane", "previous_pane", "jump", "theme", "copy", "palette", "help", "quit")
IN_LAST_LINE = ("theme", "help", "quit")

COLUMNS = {"settings": "settings", "about": "about"}


class SettingRows(RowList):
    """The settings, one a line."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--some"}

    def __init__(self, found: Sequence[SettingValue]) -> None:
        super().__init__(id="settings")
        self.found = found
        self._name_cells = max(len(one.setting.name) for one in found) + 2

    def parts(self, place: int, width: int) -> Sequence[RowPart]:
        one = self.found[place]
        left = width - self._name_cells - 2
        value_cells = int(left * VALUE_SHARE)
        is_default = one.source.origin is Origin.default
        return [
            ("▶ " if place == self.cursor else "  ", "rows--begun"),
            (fitted(one.setting.name, self._name_cells), "rows--text"),
            (
                fitted(one_line(with_tilde(one.shown), AS_WRITTEN), value_cells - 2) + "  ",
                self._look_of(is_default),
            ),
            (fitted(_origin(one), left - value_cells), "rows--faint"),
        ]

    def _look_of(self, is_default: bool) -> str:
        return "rows--faint" if is_default else "rows--some"


def _origin(found: SettingValue) -> str:
    """Where a value comes from, in a word: which files there are is said elsewhere."""
    is_file = found.file is not None or not found.place
    return str(found.source.origin) if is_file else found.place


class ConfigScreen(KeyScreen):
    """The settings in a list, and below it what the one under the cursor is for, and what sets it.

    `keys` are those of the judging screen, of which the ones that move do so here.
    """

    CSS_PATH = Path(__file__).with_name("config.tcss")
    AUTO_FOCUS = "#settings"
    ABOUT = PANES
    SCROLLED = "#about"

    def __init__(self, resolution: Resolution, keys: KeyMap) -> None:
        every = keys.subset({"quit": ("Leave", "quit")}, *MOVES, *OTHERS).actions
        own = KeyMap([one for one in every if not one.name.startswith("grade_")])
        super().__init__(own, Banner("Settings"), COLUMNS, ("settings",))
        self._resolution = resolution
        self._rows = SettingRows(list(resolution.values.values()))

    def compose(self) -> ComposeResult:
        yield self.head
        yield self._rows
        with Pane(id="about"):
            yield Plain(id="about-text")
        yield KeyLine(self._entries(*IN_LAST_LINE), 1, id="keys")

    def begin(self) -> None:
        self.head.tell(with_tilde("; ".join(self._resolution.about_files)))
        self._rows.show(len(self._rows.found), 0)
        self._describe()

    def actions(self) -> dict[str, Callable[[], object]]:
        return {}

    def take(self, event: events.Key) -> bool:
        if event.key == "escape":
            self.do("quit")
            return True
        return super().take(event)

    def cursor_moved(self, rows: RowList) -> None:  # noqa: ARG002  # there is one list
        self._describe()

    def _describe(self) -> None:
        """Say everything of the setting under the cursor."""
        one = self._rows.found[self._rows.cursor]
        where = with_tilde(f"{one.source.origin}{f' ({one.where})' if one.where else ''}")
        ways = with_tilde(one.setting.ways(self._resolution.user_file, PROJECT_FILE))
        pane = self.query_one("#about", Pane)
        entitle(pane, one.setting.name)
        self.query_one("#about-text", Plain).update(
            Content.assemble(
                f"{one.setting.about}\n",
                *(("value    ", "$faint"), f"{with_tilde(one.shown)}\n"),
                *(("from     ", "$faint"), f"{where}\n"),
                *(("set by   ", "$faint"), ways),
            )
        )
        pane.scroll_home(animate=False)


GRADES = [str(grade) for grade in range(100)]
"""A file may give the grades of any task keys, which do nothing here."""


class ConfigApp(KeyApp):
    """Shows the settings until somebody leaves them.

    Raises:
        DataError: the keys in the user's file contradict each other.
    """

    def __init__(self, resolution: Resolution) -> None:
        own = keys.load(resolution.settings.of_user, GRADES)
        super().__init__(ConfigScreen(resolution, own.keys), own.theme, own.spacing)
