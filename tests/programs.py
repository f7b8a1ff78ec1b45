"""Python code that tests run in processes of its own, to exchange lines with, to stop and to kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import IO, Self

from tests.forkserver import fork_server
from tests.profile import FULL

COMMAND = "import sys; sys.argv[0] = 'searchapp'; from searchapp.cli import main; main()"
"""The code of `searchapp`, whose arguments are those of a command line."""


class Program:
    """What `python -c TEXT` with these arguments is, with pipes for its streams; killed at the end if it still runs.

    In the full profile each is a new Python; in the short one a fork of a process that has imported searchapp, see
    `tests.forkserver`.

    Args:
        text: what is run
        arguments: `sys.argv[1:]` of it
        environment: what it finds besides the tests' own
    """

    def __init__(
        self,
        text: str,
        *arguments: object,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        words = list(map(str, arguments))
        own = {**os.environ, **(environment or {})}
        (into, put), (out, said), (errors, complained) = (os.pipe() for _ in range(3))
        streams = [into, said, complained]
        self._wait: Callable[[], int]
        if (server := fork_server()) and not FULL:
            pid = self.pid = server.start_text(text, words, own, streams)
            self._wait = lambda: os.waitstatus_to_exitcode(server.wait(pid))
        else:
            command = [sys.executable, "-c", text, *words]
            process = subprocess.Popen(command, env=own, stdin=into, stdout=said, stderr=complained)
            self.pid, self._wait = process.pid, process.wait
        for stream in streams:
            os.close(stream)
        self.stdin: IO[str] = os.fdopen(put, "w", encoding="utf-8")
        self.stdout: IO[str] = os.fdopen(out, encoding="utf-8")
        self.stderr: IO[str] = os.fdopen(errors, encoding="utf-8")
        self.returncode: int | None = None
        """As in `subprocess.Popen`; None before a wait for the end."""

    def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        self.stdin.write(f"{line}\n")
        self.stdin.flush()

    def heard(self) -> str:
        """Return the next line of standard output without its end; empty at the end."""
        return self.stdout.readline().rstrip("\n")

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait for the end; returns `returncode`."""
        if self.returncode is None:
            self.returncode = self._wait()
        return self.returncode

    def ended(self) -> tuple[str, str]:
        """Wait for the end; returns the rest of the output and the errors, both smaller than a pipe."""
        self.wait()
        return self.stdout.read(), self.stderr.read()

    def close(self) -> None:
        """Kill the process if it still runs."""
        self.send_signal(signal.SIGKILL)
        self.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
