"""A screen in a browser: `searchapp serve` starts it, and its standard streams are the way there."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any

from textual.drivers.web_driver import WebDriver

_GONE = getattr(signal, "SIGHUP", signal.SIGTERM)
"""What says that a terminal is gone."""


class BrowserDriver(WebDriver):
    """Textual's driver for browsers, which alone would let a screen live on that nobody can reach any more."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._write = self._send  # type: ignore[assignment]

    def start_application_mode(self) -> None:
        # After `nohup` it is ignored, until the screen listens to it: who begins for nobody would live on.
        if signal.getsignal(_GONE) == signal.SIG_IGN:
            signal.signal(_GONE, signal.SIG_DFL)
        super().start_application_mode()

    def run_input_thread(self) -> None:
        """Take what comes from the window; when the window is gone, end as when a terminal is."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            os.kill(os.getpid(), _GONE)

    def _send(self, data: bytes) -> None:
        with suppress(BrokenPipeError):  # nobody looks; the input says so too
            os.write(self.fileno, data)
