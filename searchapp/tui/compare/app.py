"""The full-screen interface for comparing runs."""

from __future__ import annotations

from searchapp.settings import SPACINGS
from searchapp.tui.compare.screen import CompareScreen
from searchapp.tui.screen import KeyApp


class CompareApp(KeyApp):
    """Shows the compare screen until it is left."""

    def __init__(self, compared: CompareScreen, theme: str, spacing: str = SPACINGS[0]) -> None:
        super().__init__(compared, theme, spacing)
        self.compared = compared
