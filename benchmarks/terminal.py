"""A program on a pseudo-terminal, as people run it, whose keys are pressed and whose output is read by a script."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from pathlib import Path


class Terminal:
    """A program on a terminal of its own."""

    def __init__(
        self, command: list[str], environment: dict[str, str], columns: int = 160, lines: int = 45
    ) -> None:
        self.pid, self._end = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, environment)
        fcntl.ioctl(self._end, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, key: str) -> None:
        os.write(self._end, key.encode())

    def wait_for(self, *patterns: str, seconds: float = 30) -> str:
        """What is written until all patterns are in it, in pieces of one style."""
        seen = b""
        until = time.monotonic() + seconds
        while not all(re.search(pattern.encode(), seen) for pattern in patterns):
            if not select.select([self._end], [], [], max(0, until - time.monotonic()))[0]:
                raise SystemExit(f"nothing more came while waiting for {patterns}: {seen[-2000:]!r}")
            try:
                seen += os.read(self._end, 1 << 16)
            except OSError:
                raise SystemExit(f"the program has ended: {seen[-2000:].decode(errors='replace')}") from None
        return seen.decode(errors="replace")

    def drain(self, seconds: float) -> None:
        """Take in what is still written, until nothing was for so long."""
        while select.select([self._end], [], [], seconds)[0]:
            os.read(self._end, 1 << 16)

    @property
    def cpu_seconds(self) -> float:
        """What the program has worked so far, all threads together, as Linux counts it."""
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((one / "schedstat").read_text(encoding="ascii").split()[0]) for one in threads) / 1e9

    def close(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        while True:
            try:
                if not os.read(self._end, 1 << 16):
                    break
            except OSError:
                break
        os.waitpid(self.pid, 0)
