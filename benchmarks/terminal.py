"""A program on a pseudo-terminal: press keys and read its output."""

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

FRAMES_REQUEST, FRAMES_SUPPORTED, FRAME_END = b"\x1b[?2026$p", b"\x1b[?2026;2$y", b"\x1b[?2026l"
"""Synchronized output: the query for support, the answer, and the end of a frame."""


class Terminal:
    """A program on a pseudo-terminal that is not emulated: its output is searched for patterns.

    The terminal only answers the query for synchronized output, so that the end of a frame is known.
    """

    def __init__(
        self, command: list[str], environment: dict[str, str], columns: int = 160, lines: int = 45
    ) -> None:
        self.pid, self._end = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, environment)
        fcntl.ioctl(self._end, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._has_frames = False
        self.arrived = 0.0
        """The time of the last read by `time.perf_counter`."""

    def press(self, key: str) -> None:
        os.write(self._end, key.encode())

    def wait_for(self, *patterns: str, seconds: float = 30) -> str:
        """Return the output until all patterns have arrived in a complete frame."""
        output = b""
        end = time.monotonic() + seconds
        while not self._is_complete(output, patterns):
            if not select.select([self._end], [], [], max(0, end - time.monotonic()))[0]:
                raise SystemExit(f"no output while waiting for {patterns}: {output[-2000:]!r}")
            try:
                output += self._read()
            except OSError:
                raise SystemExit(
                    f"the program has ended: {output[-2000:].decode(errors='replace')}"
                ) from None
        return output.decode(errors="replace")

    def _is_complete(self, output: bytes, patterns: tuple[str, ...]) -> bool:
        matches = [re.search(pattern.encode(), output) for pattern in patterns]
        ends = [match.end() for match in matches if match is not None]
        if len(ends) < len(patterns):
            return False
        return not self._has_frames or output.find(FRAME_END, max(ends)) >= 0

    def _read(self) -> bytes:
        output = os.read(self._end, 1 << 16)
        self.arrived = time.perf_counter()
        if FRAMES_REQUEST in output:
            os.write(self._end, FRAMES_SUPPORTED)
        self._has_frames |= FRAME_END in output
        return output

    def drain(self, seconds: float) -> None:
        """Read output until there was none for these seconds."""
        while select.select([self._end], [], [], seconds)[0]:
            self._read()

    @property
    def cpu_seconds(self) -> float:
        """The processor time of all threads of the program on Linux."""
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        return (
            sum(int((thread / "schedstat").read_text(encoding="ascii").split()[0]) for thread in threads)
            / 1e9
        )

    def close(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        while True:
            try:
                if not os.read(self._end, 1 << 16):
                    break
            except OSError:
                break
        os.waitpid(self.pid, 0)
