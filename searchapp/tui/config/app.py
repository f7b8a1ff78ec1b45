"""The full-screen interface for looking through the settings."""

from __future__ import annotations

from pathlib import Path

from textual.screen import Screen

from searchapp.config.sources import Resolution
from searchapp.console import HarmlessConsole
from searchapp.tui import keys
from searchapp.tui.config.screen import ConfigScreen
from searchapp.tui.line import OrderedApp
from searchapp.tui.screen import LOOKS
from searchapp.tui.themes import DARK, LIGHT

GRADES = [str(grade) for grade in range(100)]
"""A file may give the grades of any task keys, which do nothing here."""


class ConfigApp(OrderedApp):
    """Shows the settings until somebody leaves them.

    Raises:
        DataError: the keys in the user's file contradict each other.
    """

    CSS_PATH = [LOOKS, Path(__file__).with_name("config.tcss")]  # noqa: RUF012  # Textual declares it
    ENABLE_COMMAND_PALETTE = False
    ESCAPE_TO_MINIMIZE = False

    def __init__(self, resolution: Resolution) -> None:
        super().__init__()
        self.animation_level = "none"
        self.error_console = HarmlessConsole(stderr=True)
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        own = keys.load(resolution.settings.of_user, GRADES)
        self.theme = (LIGHT if own.theme == "light" else DARK).name
        self._main = ConfigScreen(resolution, own.keys)

    def get_default_screen(self) -> Screen[None]:
        return self._main
