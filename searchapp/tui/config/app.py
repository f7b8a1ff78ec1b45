"""The full-screen interface for looking through the settings."""

from __future__ import annotations

from searchapp.config.sources import Resolution
from searchapp.tui import keys
from searchapp.tui.config.screen import ConfigScreen
from searchapp.tui.screen import KeyApp

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
