"""A program on a pseudo-terminal whose screen and output a test can read."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from tests.emulator import UNREAD, Screen, Stream
from tests.forkserver import fork_server
from tests.profile import FULL

KEYS = {
    "enter": "\r", "escape": "\x1b", "up": "\x1b[A", "down": "\x1b[B", "home": "\x1b[H", "end": "\x1b[F", "tab": "\t",
    "space": " ",
}  # fmt: skip

SEARCHAPP = ("-m", "searchapp")


class Terminal:
    """A program on a pseudo-terminal whose screen can be read; `raw` is its complete output.

    `program` are Python's arguments, `environment` adds variables. The full profile starts a new interpreter; the
    short one forks searchapp from a process that has imported it, see `tests.forkserver`.
    """

    def __init__(
        self,
        *arguments: object,
        home: Path,
        columns: int = 120,
        lines: int = 40,
        program: Sequence[str] = SEARCHAPP,
        **environment: str,
    ) -> None:
        self._screen = Screen(columns, lines)
        self._stream = Stream(self._screen)
        # A test runner may set COLUMNS and LINES to the size of its own terminal, and programs prefer them.
        variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("SEARCHAPP_") and name not in ("COLUMNS", "LINES")
        }
        variables |= {
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "SEARCHAPP_HOME": str(home),
            **environment,
        }
        self._fork_server = fork_server() if program == SEARCHAPP and not FULL else None
        self._end, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        if self._fork_server:
            self._pid = self._fork_server.start(list(map(str, arguments)), variables, terminal)
        else:
            self._pid = os.fork()
            if self._pid == 0:
                os.login_tty(terminal)
                command = [sys.executable, *program, *map(str, arguments)]
                os.execve(sys.executable, command, variables)
        os.close(terminal)
        self.raw = b""
        self._text: str | None = None

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def text(self) -> str:
        if self._text is None:
            self._text = self._screen.text
        return self._text

    @property
    def is_raw(self) -> bool:
        """Whether each key reaches the program at once and without echo."""
        return not termios.tcgetattr(self._end)[3] & (termios.ICANON | termios.ECHO)

    def press(self, *keys: str) -> None:
        for key in keys:
            os.write(self._end, KEYS.get(key, key).encode())

    def wait_for(self, pattern: str, seconds: float = 15) -> re.Match[str]:
        """Wait until the text of the screen matches `pattern`."""
        deadline = time.monotonic() + seconds
        while not (result := re.search(pattern, self.text)):
            assert time.monotonic() < deadline, f"{pattern!r} is not in:\n{self.text}"
            self._read(0.05)
        return result

    def wait_for_end(self, seconds: float = 30) -> int:
        deadline = time.monotonic() + seconds
        while self._read(0.05):
            assert time.monotonic() < deadline, self.text
        return os.waitstatus_to_exitcode(self._ended())

    def signal(self, number: signal.Signals) -> None:
        os.kill(self._pid, number)

    def close(self) -> None:
        """End the program if it still runs; the screen stays readable."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            self._ended()
        if self._end >= 0:
            os.close(self._end)
            self._end = -1

    def _ended(self) -> int:
        """Wait for the exit status of the program."""
        status = self._fork_server.wait(self._pid) if self._fork_server else os.waitpid(self._pid, 0)[1]
        self._pid = 0
        return status

    def _read(self, seconds: float) -> bool:
        """Read the output of the program; False after its end."""
        if select.select([self._end], [], [], seconds)[0]:
            try:
                output = os.read(self._end, 1 << 16)
            except OSError:
                return False
            self.raw += output
            self._text = None
            self._stream.feed(UNREAD.sub(b"", output))
        return True
