"""The full-screen interface for adjudicating."""

from __future__ import annotations

from pathlib import Path

from searchapp.app.pages import Pages
from searchapp.judging.disputes import Adjudication
from searchapp.judging.presence import Presence
from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.keys import ScreenSettings
from searchapp.tui.screen import LOOKS
from searchapp.tui.work import WorkApp


class AdjudicateApp(WorkApp):
    """Shows the adjudicating screen until it is left."""

    CSS_PATH = [LOOKS, Path(__file__).with_name("adjudicate.tcss")]  # noqa: RUF012  # Textual declares it

    def __init__(
        self,
        adjudication: Adjudication,
        run_pages: Pages,
        settings: ScreenSettings,
        title: str,
        presence: Presence | None = None,
    ) -> None:
        super().__init__(AdjudicateScreen(adjudication, run_pages, settings.keys, title, presence), settings)
