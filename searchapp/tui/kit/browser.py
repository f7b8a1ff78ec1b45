"""The driver of a screen in a browser, connected to `searchapp serve` by its standard streams."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any

from textual.drivers.web_driver import WebDriver

# The signal of a closed terminal.
_GONE = getattr(signal, "SIGHUP", signal.SIGTERM)


class BrowserDriver(WebDriver):
    """Textual's driver for browsers; closing the window ends the program."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._write = self._send  # type: ignore[assignment]

    def start_application_mode(self) -> None:
        # `nohup` ignores the signal, and the program would never end.
        if signal.getsignal(_GONE) == signal.SIG_IGN:
            signal.signal(_GONE, signal.SIG_DFL)
        super().start_application_mode()

    def run_input_thread(self) -> None:
        super().run_input_thread()
        if not self.exit_event.is_set():
            os.kill(os.getpid(), _GONE)

    def _send(self, data: bytes) -> None:
        with suppress(BrokenPipeError):  # the window is closed, and the input ends too
            os.write(self.fileno, data)
