"""The full-screen interface for judging."""

from __future__ import annotations

from pathlib import Path

from searchapp.app.material import Material
from searchapp.judging.desk import Desk
from searchapp.judging.presence import Presence
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.keys import ScreenSettings
from searchapp.tui.screen import LOOKS
from searchapp.tui.work import WorkApp


class JudgeApp(WorkApp):
    """Shows the judging screen until the annotator leaves it."""

    CSS_PATH = [LOOKS, Path(__file__).with_name("judge.tcss")]  # noqa: RUF012  # Textual declares it

    def __init__(
        self,
        desk: Desk,
        material: Material,
        settings: ScreenSettings,
        title: str,
        start: str | None = None,
        presence: Presence | None = None,
    ) -> None:
        super().__init__(JudgeScreen(desk, material, settings.keys, start, title, presence), settings)
