"""The full-screen interface for judging."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress

from textual.screen import Screen

from searchapp.judging.desk import Desk
from searchapp.runs.material import Material
from searchapp.tui.judge.keys import JudgeSettings
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.line import OrderedApp
from searchapp.tui.themes import DARK, LIGHT


class JudgeApp(OrderedApp):
    """Shows the judging screen until the annotator leaves it."""

    CSS_PATH = "judge.tcss"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012  # Textual declares it
    ESCAPE_TO_MINIMIZE = False

    def __init__(
        self, desk: Desk, material: Material, settings: JudgeSettings, title: str, start: str | None = None
    ) -> None:
        super().__init__()
        self.animation_level = "none"
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = (LIGHT if settings.theme == "light" else DARK).name
        self._judging = JudgeScreen(desk, material, settings.keys, start, title, self.toggle_look)

    def get_default_screen(self) -> Screen[None]:
        return self._judging

    def on_mount(self) -> None:
        for name in ("SIGTERM", "SIGHUP"):
            # Not every system has both, or lets them be waited for.
            with suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):
                number = getattr(signal, name)
                asyncio.get_running_loop().add_signal_handler(number, self._leave, number)

    def _leave(self, number: int) -> None:
        """The system, or a terminal that was closed, ends the program: leave in order, and with all judgments."""
        self.exit(return_code=128 + number, message=self._judging.last_words())

    def toggle_look(self) -> None:
        """Dark or light."""
        self.theme = DARK.name if self.theme == LIGHT.name else LIGHT.name
