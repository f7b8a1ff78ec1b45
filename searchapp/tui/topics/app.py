"""The full-screen interface for walking topics."""

from __future__ import annotations

from searchapp.settings import SPACINGS
from searchapp.tui.screen import KeyApp
from searchapp.tui.topics.screen import TopicsScreen


class TopicsApp(KeyApp):
    """Shows the screen of topics until it is left."""

    def __init__(self, topics: TopicsScreen, theme: str, spacing: str = SPACINGS[0]) -> None:
        super().__init__(topics, theme, spacing)
        self.topics = topics
