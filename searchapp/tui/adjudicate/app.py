"""The full-screen interface for adjudicating."""

from __future__ import annotations

from searchapp.app.pages import Pages
from searchapp.judging.disputes import Adjudication
from searchapp.judging.presence import Presence
from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.keys import ScreenSettings
from searchapp.tui.work import WorkApp


class AdjudicateApp(WorkApp):
    """Shows the adjudicating screen until it is left."""

    def __init__(
        self,
        adjudication: Adjudication,
        run_pages: Pages,
        settings: ScreenSettings,
        title: str,
        presence: Presence | None = None,
    ) -> None:
        super().__init__(AdjudicateScreen(adjudication, run_pages, settings.keys, title, presence), settings)
