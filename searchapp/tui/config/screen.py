"""The screen of settings: every setting, its value, and its source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult

from searchapp.config.resolution import (
    PROJECT_FILE,
    Origin,
    Resolution,
    SettingLines,
    SettingValue,
    lines_to_set,
    toml_literal,
)
from searchapp.tui.kit.content import AS_WRITTEN, Content, Plain, entitle
from searchapp.tui.kit.descriptions import with_tilde
from searchapp.tui.kit.dialogs import CheckedDialog
from searchapp.tui.kit.keys import EVERYWHERE, KeyMap, PaneHelp
from searchapp.tui.kit.screen import Banner, KeyScreen, Pane, Part
from searchapp.tui.kit.widgets import KeyLine, RowList, RowPart, chip, fitted, one_line, shortened

PANES = {
    "settings": PaneHelp(
        "The settings", "Every setting, its value and its source.", (), ("open", "next_pane", "jump")
    ),
    "about": PaneHelp("The setting", "The purpose of the setting, and how to set it.", (), ("next_pane",)),
}


# The share of the line after the name for a value.
VALUE_SHARE = 0.55

# Narrower lists omit the source, which the description repeats.
NARROW_CELLS = 60

# Width of a path in a chip.
LONGEST_PATH = 40

ACTION_TEXTS = {
    "open": ("Type another value, and copy it as TOML for the settings file", "copy as TOML"),
    "quit": ("Leave", "quit"),
}

IN_LAST_LINE = ("open", "palette", "theme", "help", "quit")

COLUMNS = {"settings": "settings", "about": "about"}


class SettingRows(RowList):
    """The settings, one per line."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"rows--some"}

    def __init__(self, values: Sequence[SettingValue]) -> None:
        super().__init__(id="settings")
        self.values = values
        self._name_cells = max(len(value.setting.name) for value in values) + 2

    def parts(self, index: int, width: int) -> Sequence[RowPart]:
        value = self.values[index]
        left, value_cells = self._columns(width)
        look = "rows--faint" if value.source.origin is Origin.default else "rows--some"
        # The first line names the files.
        is_file = value.file is not None or not value.source_name
        origin = str(value.source.origin) if is_file else value.source_name
        return [
            ("▶ " if index == self.cursor else "  ", "rows--begun"),
            (fitted(value.setting.name, self._name_cells), "rows--text"),
            (fitted(one_line(with_tilde(value.shown), AS_WRITTEN), value_cells - 2) + "  ", look),
            (fitted(origin, left - value_cells), "rows--faint"),
        ]

    def head(self, width: int) -> Sequence[str]:
        left, value_cells = self._columns(width)
        source = "from" if value_cells < left else ""
        return "  ", fitted("setting", self._name_cells), fitted("value", value_cells), source

    def _columns(self, width: int) -> tuple[int, int]:
        left = width - self._name_cells - 2
        return left, int(left * VALUE_SHARE) if width >= NARROW_CELLS else left


class ConfigScreen(KeyScreen):
    """The settings in a list, and a description of one; `keys` are the judging screen's."""

    CSS_PATH = Path(__file__).with_name("config.tcss")
    AUTO_FOCUS = "#settings"
    ABOUT = PANES
    SCROLLED = "#about"

    def __init__(self, resolution: Resolution, keys: KeyMap) -> None:
        shared_actions = keys.subset(ACTION_TEXTS, *EVERYWHERE).actions
        own = KeyMap([action for action in shared_actions if not action.name.startswith("grade_")])
        super().__init__(own, Banner("Settings"), COLUMNS, ("settings",))
        self._resolution = resolution
        self._rows = SettingRows(list(resolution.values.values()))
        # The copied lines of the setting under the cursor.
        self._copied: SettingLines | None = None

    def compose(self) -> ComposeResult:
        yield self.head
        yield self._rows
        with Pane(id="about"):
            yield Plain(id="about-text")
        yield KeyLine(self._entries(*IN_LAST_LINE), 1, id="keys")

    def begin(self) -> None:
        self.head.show_chips(*self._chips())
        self.head.show_state(with_tilde("; ".join(self._resolution.about_files)), holds=lambda: True)
        self._rows.show(len(self._rows.values), 0)
        self._describe()

    def _chips(self) -> Iterator[Part]:
        """Yield the chips of the first line, the most important first."""
        changed = [value for value in self._rows.values if value.source.origin is not Origin.default]
        yield chip(f"{len(changed):,} of {len(self._rows.values):,} set", "$secondary")
        yield chip(f"home {shortened(with_tilde(str(self._resolution.settings.home)), LONGEST_PATH)}")

    def actions(self) -> dict[str, Callable[[], object]]:
        return {"open": self._ask_value}

    def take(self, event: events.Key) -> bool:
        if event.key == "escape":
            self.do("quit")
            return True
        return super().take(event)

    def cursor_moved(self, rows: RowList) -> None:  # noqa: ARG002  # there is one list
        self._copied = None
        self._describe()

    def _ask_value(self) -> None:
        value, file = self._rows.values[self._rows.cursor], self._resolution.user_file
        setting = value.setting
        if setting.type.is_table or not setting.by_user:
            ways = setting.ways(file, PROJECT_FILE)
            self.head.tell(with_tilde(f"{setting.name} can't be copied as TOML: use {ways}"), "$warning")
            return

        def prepare(typed: str) -> Callable[[], object]:
            lines = lines_to_set(setting.name, typed, file)
            return lambda: self._copy_lines(lines)

        is_shown = value.value is not None and not setting.holds_credentials(value.value)
        initial = toml_literal(value.value) if is_shown and value.value is not None else ""
        dialog = CheckedDialog(f"{setting.name}: {setting.about}", prepare, "copy as TOML", initial=initial)
        self.app.push_screen(dialog, lambda copy: copy() if copy is not None else None)

    def _copy_lines(self, lines: SettingLines) -> None:
        self.app.copy_to_clipboard(lines.text)
        self._copied = lines
        self._describe()

    def _describe(self) -> None:
        value = self._rows.values[self._rows.cursor]
        copied = with_tilde(f"copied: paste it {self._copied.place}\n") if self._copied else ""
        where = with_tilde(f"{value.source.origin}{f' ({value.where})' if value.where else ''}")
        ways = with_tilde(value.setting.ways(self._resolution.user_file, PROJECT_FILE))
        pane = self.query_one("#about", Pane)
        entitle(pane, value.setting.name)
        self.query_one("#about-text", Plain).update(
            Content.assemble(
                (copied, "$success"),
                f"{value.setting.about}\n",
                *(("value    ", "$faint"), f"{with_tilde(value.shown)}\n"),
                *(("from     ", "$faint"), f"{where}\n"),
                *(("set by   ", "$faint"), ways),
            )
        )
        pane.scroll_home(animate=False)


# The user file may have keys for grades of any task, which have no effect here.
GRADES = [str(grade) for grade in range(100)]
