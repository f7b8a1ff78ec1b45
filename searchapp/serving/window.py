"""The program behind one window of a browser.

textual-serve's `AppService` knows how a program in a browser is talked to. Here is what it leaves out: no shell, what
the program says on its standard error, and an end that comes for certain.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from searchapp.inputs import parse_json
from searchapp.visible import visible_line

PRELUDE = b"__GANGLION__\n"
"""What a program writes before it shows its screen."""

END_SECONDS = 8.0
"""A program that has not ended by then is killed."""

LAST_LINES = 30
"""This many lines of what it said stay readable in the window."""
LONGEST_LINE = 2_000
LARGEST = 2_000
"""In columns or lines: no window is larger."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Program:
    """What is started for each window: its command line, and what it finds in its environment besides the server's."""

    arguments: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)


class Window(AppService):
    """A window and its program.

    Args:
        program: what is started
        write: sends what the program draws
        write_message: sends it what else a browser can do for it
        close: closes the connection
        downloads: what hands files to the browser
        tell: is called with each line that the program writes on its standard error
    """

    def __init__(
        self,
        program: Program,
        write: Callable[[bytes], Awaitable[None]],
        write_message: Callable[[str], Awaitable[None]],
        close: Callable[[], Awaitable[None]],
        downloads: DownloadManager,
        tell: Tell,
    ) -> None:
        super().__init__(
            "", write_bytes=write, write_str=write_message, close=close, download_manager=downloads
        )
        self._program = program
        self._tell = tell
        self._said: deque[str] = deque(maxlen=LAST_LINES)
        self._is_drawing = False
        self._is_leaving = False
        self._is_open = True
        self._stopping: asyncio.Task[None] | None = None

    async def ended(self) -> None:
        """Wait until the program has ended by itself."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def type(self, text: str) -> None:
        """Hand keys, mouse and pasted text on to the program."""
        if text:  # a packet without content would keep the program waiting
            await self.send_bytes(text.encode("utf-8", "replace"))

    async def set_terminal_size(self, width: int, height: int) -> None:
        await super().set_terminal_size(bounded(width), bounded(height))

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        environment: dict[str, str] = super()._build_environment(bounded(width), bounded(height))
        environment.pop("LINES", None)  # those of the server's own terminal
        return {**environment, **self._program.environment}

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        self._process = await asyncio.create_subprocess_exec(
            *self._program.arguments,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(width, height),
            start_new_session=True,  # Ctrl-C in the server's terminal is for the server, which ends all in order
        )
        assert self._process.stdin is not None
        self._stdin = self._process.stdin
        return self._process

    async def run(self) -> None:
        """Hand on what the program draws, until it ends; then show in the window what it said."""
        assert self._process is not None
        listening = asyncio.create_task(self._listen(self._process))
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await self._hand_on(self._process)
            await self._process.wait()
            await listening
            await self._show_last_words()
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    async def stop(self) -> None:
        """End the program if one runs, as the end of a terminal does; by force if it takes too long."""
        process, task = self._process, self._task
        if process is None or task is None:
            return
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._end(process, task))
        await asyncio.shield(self._stopping)

    async def on_data(self, payload: bytes) -> None:
        # What nobody sees any more is read all the same: a program that can't write can't end either.
        if self._is_open:
            try:
                await super().on_data(payload)
            except (ConnectionError, RuntimeError):
                self._is_open = False

    async def on_meta(self, data: bytes) -> None:
        if parse_json(data.decode()).get("type") == "exit":
            self._is_leaving = True  # and its last words are still to come
        elif self._is_open:
            with suppress(ConnectionError, RuntimeError):
                await super().on_meta(data)

    async def _hand_on(self, process: Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            if line == PRELUDE:
                break
        self._is_drawing = True
        handlers = {b"D": self.on_data, b"M": self.on_meta, b"P": self.on_packed}
        while True:
            kind = await process.stdout.readexactly(1)
            size = int.from_bytes(await process.stdout.readexactly(4), "big")
            payload = await process.stdout.readexactly(size)
            if kind in handlers:
                await handlers[kind](payload)

    async def _listen(self, process: Process) -> None:
        """Take down and tell what the program writes on its standard error."""
        assert process.stderr is not None
        begun = b""
        while read := await process.stderr.read(1 << 12):
            *lines, begun = (begun + read).split(b"\n")
            for line in lines:
                self._hear(line)
            if len(begun) > LONGEST_LINE:
                self._hear(begun)
                begun = b""
        if begun:
            self._hear(begun)

    def _hear(self, line: bytes) -> None:
        said = visible_line(line.decode("utf-8", "replace").rstrip("\r")[:LONGEST_LINE])
        if said.strip():
            self._said.append(said)
            self._tell(said)

    async def _show_last_words(self) -> None:
        """Write into the window what the program said: why it did not begin, or where judgments are."""
        said = "\r\n".join(self._said) or "The program has ended."
        # The main screen, cleared, from its first line on.
        await self.on_data(f"\x1b[?1049l\x1b[0m\x1b[2J\x1b[H{said}\r\n".encode())

    async def _end(self, process: Process, task: asyncio.Task[None]) -> None:
        await self._download_manager.cancel_app_downloads(app_service_id=self.app_service_id)
        if not self._is_leaving:
            if self._is_drawing:
                self.stdin.close()  # its driver takes this for the end of its terminal
            else:
                with suppress(ProcessLookupError):
                    process.terminate()
        try:
            await asyncio.wait_for(asyncio.shield(task), END_SECONDS)
        except TimeoutError:
            _kill(process)
            task.cancel()  # it may wait for a browser that reads nothing
            await asyncio.wait({task})
            await (
                process.communicate()
            )  # a process has not ended for asyncio before all is read that it wrote
            self._tell("the program behind a window did not end in time and was killed")


def bounded(size: int) -> int:
    """A number of columns or lines that a window can have."""
    return max(1, min(size, LARGEST))


def _kill(process: Process) -> None:
    """End a program by force, and what it has started."""
    with suppress(ProcessLookupError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
