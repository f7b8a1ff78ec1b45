"""Python code that tests run in separate processes."""

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
"""The code of the command `searchapp`."""


class Program:
    """A process of `python -c TEXT` with pipes for its streams; it is killed on exit.

    The full profile starts a new interpreter, the short one a fork of a process that has imported searchapp, see
    `tests.forkserver`.

    Args:
        text: the code
        arguments: its `sys.argv[1:]`
        environment: variables in addition to those of the tests
    """

    def __init__(self, text: str, *arguments: object, environment: Mapping[str, str] | None = None) -> None:
        words = list(map(str, arguments))
        variables = {**os.environ, **(environment or {})}
        (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = (os.pipe() for _ in range(3))
        streams = [stdin, stdout, stderr]
        self._wait: Callable[[], int]
        if (server := fork_server()) and not FULL:
            pid = self.pid = server.start_text(text, words, variables, streams)
            self._wait = lambda: os.waitstatus_to_exitcode(server.wait(pid))
        else:
            command = [sys.executable, "-c", text, *words]
            process = subprocess.Popen(command, env=variables, stdin=stdin, stdout=stdout, stderr=stderr)
            self.pid, self._wait = process.pid, process.wait
        for stream in streams:
            os.close(stream)
        self.stdin: IO[str] = os.fdopen(to_stdin, "w", encoding="utf-8")
        self.stdout: IO[str] = os.fdopen(from_stdout, encoding="utf-8")
        self.stderr: IO[str] = os.fdopen(from_stderr, encoding="utf-8")
        self.returncode: int | None = None
        """The exit code as in `subprocess.Popen`; None before `wait`."""

    def write_line(self, line: str) -> None:
        """Write a line to standard input."""
        self.stdin.write(f"{line}\n")
        self.stdin.flush()

    def read_line(self) -> str:
        """Return the next line of standard output without its line end; empty at the end of the output."""
        return self.stdout.readline().rstrip("\n")

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait for the end; return the exit code."""
        if self.returncode is None:
            self.returncode = self._wait()
        return self.returncode

    def communicate(self) -> tuple[str, str]:
        """Wait for the end; return the rest of output and errors, which must fit into pipes."""
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
