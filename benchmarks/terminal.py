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

ASKS_FOR_FRAMES, HAS_FRAMES, FRAME_ENDS = b"\x1b[?2026$p", b"\x1b[?2026;2$y", b"\x1b[?2026l"
"""Synchronized output: whether the terminal knows it, that it does, and the end of what belongs together."""


class Terminal:
    """A program on a terminal of its own, which emulates nothing: what is written is searched for what is waited for.

    Of what programs ask of a terminal one thing is answered, that it knows synchronized output, as most by now do. So
    it is known where a frame ends.
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
        """When what was read last had come, by `time.perf_counter`."""

    def press(self, key: str) -> None:
        os.write(self._end, key.encode())

    def wait_for(self, *patterns: str, seconds: float = 30) -> str:
        """What is written until all patterns are in it and the frame that they are in is whole."""
        seen = b""
        until = time.monotonic() + seconds
        while not self._is_whole(seen, patterns):
            if not select.select([self._end], [], [], max(0, until - time.monotonic()))[0]:
                raise SystemExit(f"nothing more came while waiting for {patterns}: {seen[-2000:]!r}")
            try:
                seen += self._read()
            except OSError:
                raise SystemExit(f"the program has ended: {seen[-2000:].decode(errors='replace')}") from None
        return seen.decode(errors="replace")

    def _is_whole(self, seen: bytes, patterns: tuple[str, ...]) -> bool:
        found = [re.search(pattern.encode(), seen) for pattern in patterns]
        ends = [match.end() for match in found if match is not None]
        if len(ends) < len(patterns):
            return False
        return not self._has_frames or seen.find(FRAME_ENDS, max(ends)) >= 0

    def _read(self) -> bytes:
        read = os.read(self._end, 1 << 16)
        self.arrived = time.perf_counter()
        if ASKS_FOR_FRAMES in read:
            os.write(self._end, HAS_FRAMES)
        self._has_frames |= FRAME_ENDS in read
        return read

    def drain(self, seconds: float) -> None:
        """Take in what is still written, until nothing was for so long."""
        while select.select([self._end], [], [], seconds)[0]:
            self._read()

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
