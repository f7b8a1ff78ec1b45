"""The full-screen interface for searching."""

from __future__ import annotations

from searchapp.tui.keys import ScreenSettings
from searchapp.tui.screen import KeyApp
from searchapp.tui.search.opening import Opened
from searchapp.tui.search.screen import SearchScreen


class SearchApp(KeyApp):
    """Shows the search screen until whoever searches leaves it."""

    def __init__(self, opened: Opened, settings: ScreenSettings) -> None:
        self.search = SearchScreen(opened, settings.keys)
        super().__init__(self.search, settings.theme, settings.spacing)
