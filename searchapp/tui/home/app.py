"""The home of the terminal interface."""

from __future__ import annotations

from pathlib import Path

from searchapp.config.sources import Resolution
from searchapp.tui.home import actions
from searchapp.tui.home.screen import HomeScreen
from searchapp.tui.screen import KeyApp


class HomeApp(KeyApp):
    """Shows the home screen, and what is opened from it, until it is left.

    Runs are looked for in `folder` too.

    Raises:
        DataError: the keys in the user's file contradict each other.
    """

    def __init__(self, resolution: Resolution, folder: Path) -> None:
        own = actions.load(resolution.settings.of_user)
        self.home = HomeScreen(resolution, folder, own.keys)
        super().__init__(self.home, own.theme, own.spacing)
