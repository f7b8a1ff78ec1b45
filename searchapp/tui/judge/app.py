"""The full-screen interface for judging."""

from __future__ import annotations

from searchapp.app.run_pages import RunPages
from searchapp.judging.judging_session import JudgingSession
from searchapp.judging.presence import Presence
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.keys import ScreenSettings
from searchapp.tui.work import WorkApp


class JudgeApp(WorkApp):
    """Shows the judging screen until the annotator leaves it."""

    def __init__(
        self,
        judging: JudgingSession,
        run_pages: RunPages,
        settings: ScreenSettings,
        title: str,
        start: str | None = None,
        presence: Presence | None = None,
    ) -> None:
        super().__init__(JudgeScreen(judging, run_pages, settings.keys, start, title, presence), settings)
