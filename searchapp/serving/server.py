"""The web server: a page with a terminal, and a process of the program for each browser window.

textual-serve's `AppService` implements the protocol between program and browser. `BrowserWindow` starts the
program without a shell, reports its standard error, and guarantees its end.
"""

from __future__ import annotations

import asyncio
import errno
import html
import json
import logging
import os
import signal
import string
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.http_exceptions import BadHttpMessage
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager
from textual_serve.server import Server, to_int

from searchapp.files import parse_json, reason
from searchapp.lucene.dataclass import dataclass
from searchapp.serving.guard import PAGE, STATIC, WEBSOCKET, Guard, Handler, Listening
from searchapp.text import visible_line

# The line that a program writes before its first packet.
PRELUDE = b"__GANGLION__\n"

# After this time a program that does not end is killed.
END_SECONDS = 8.0

# Maximum lines of standard error that a window shows at the end.
LAST_LINES = 30
LONGEST_LINE = 2_000
# Maximum columns and lines of a window.
LARGEST = 2_000

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class WindowProgram:
    """The program of each window."""

    arguments: Sequence[str]
    # Added to the server's variables.
    environment: Mapping[str, str] = field(repr=False)


class BrowserWindow(AppService):
    """A browser window and its program; `report` receives each line of its standard error."""

    def __init__(
        self,
        program: WindowProgram,
        write: Callable[[bytes], Awaitable[None]],
        write_message: Callable[[str], Awaitable[None]],
        close: Callable[[], Awaitable[None]],
        downloads: DownloadManager,
        report: Report,
    ) -> None:
        super().__init__(
            "", write_bytes=write, write_str=write_message, close=close, download_manager=downloads
        )
        self._program = program
        self._report = report
        self._lines: deque[str] = deque(maxlen=LAST_LINES)
        self._is_drawing = False
        self._is_leaving = False
        self._is_open = True
        self._stopping: asyncio.Task[None] | None = None

    async def ended(self) -> None:
        if self._task is not None:
            await asyncio.shield(self._task)

    async def type(self, text: str) -> None:
        """Send keys, mouse events and pasted text to the program."""
        if text:  # after an empty packet, the program would wait for more
            await self.send_bytes(text.encode("utf-8", "replace"))

    async def set_terminal_size(self, width: int, height: int) -> None:
        await super().set_terminal_size(bounded(width), bounded(height))

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        environment: dict[str, str] = super()._build_environment(bounded(width), bounded(height))
        environment.pop("LINES", None)  # describes the server's own terminal
        return {**environment, **self._program.environment}

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        self._process = await asyncio.create_subprocess_exec(
            *self._program.arguments,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(width, height),
            start_new_session=True,  # Ctrl-C ends the server, which ends its programs
        )
        assert self._process.stdin is not None
        self._stdin = self._process.stdin
        return self._process

    async def run(self) -> None:
        """Forward the program's output until it ends, then show its standard error in the window."""
        assert self._process is not None
        listening = asyncio.create_task(self._listen(self._process))
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await self._forward(self._process)
            await self._process.wait()
            await listening
            await self._show_last_words()
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    async def stop(self) -> None:
        """End the program as closing a terminal does, or else kill it."""
        process, task = self._process, self._task
        if process is None or task is None:
            return
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._end(process, task))
        await asyncio.shield(self._stopping)

    async def on_data(self, payload: bytes) -> None:
        # Keep reading after the browser has closed, because a program that cannot write cannot end.
        if self._is_open:
            try:
                await super().on_data(payload)
            except (ConnectionError, RuntimeError):
                self._is_open = False

    async def on_meta(self, data: bytes) -> None:
        if parse_json(data.decode()).get("type") == "exit":
            self._is_leaving = True  # more output follows
        elif self._is_open:
            with suppress(ConnectionError, RuntimeError):
                await super().on_meta(data)

    async def _forward(self, process: Process) -> None:
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
        assert process.stderr is not None
        rest = b""
        while True:
            read = await process.stderr.read(1 << 12)
            *lines, rest = (rest + read).split(b"\n")
            if not read or len(rest) > LONGEST_LINE:
                lines.append(rest)
                rest = b""
            for line in lines:
                text = visible_line(line.decode("utf-8", "replace").rstrip("\r")[:LONGEST_LINE])
                if text.strip():
                    self._lines.append(text)
                    self._report(text)
            if not read:
                break

    async def _show_last_words(self) -> None:
        """Show the program's standard error: why it did not start, or where judgments are."""
        text = "\r\n".join(self._lines) or "The program has ended."
        # Switch to the main screen, clear it, and start at its first line.
        await self.on_data(f"\x1b[?1049l\x1b[0m\x1b[2J\x1b[H{text}\r\n".encode())

    async def _end(self, process: Process, task: asyncio.Task[None]) -> None:
        await self._download_manager.cancel_app_downloads(app_service_id=self.app_service_id)
        if not self._is_leaving:
            if self._is_drawing:
                self.stdin.close()  # Textual's driver treats it as the end of the terminal
            else:
                with suppress(ProcessLookupError):
                    process.terminate()
        try:
            await asyncio.wait_for(asyncio.shield(task), END_SECONDS)
        except TimeoutError:
            _kill(process)
            task.cancel()  # it may wait for a browser that has stopped reading
            await asyncio.wait({task})
            await process.communicate()  # lets asyncio read the output to its end
            self._report("the process of a window did not end in time and was killed")


def bounded(size: int) -> int:
    """Limit a number of columns or lines."""
    return max(1, min(size, LARGEST))


def _kill(process: Process) -> None:
    with suppress(ProcessLookupError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


# textual-serve's own page loads its font from another site.
OWN_PAGE = Path(__file__).with_name("page")

# Maximum number of windows: each has a process with an open index.
MOST_WINDOWS = 32

# A browser that is silent for longer is gone, and its program ends.
HEARTBEAT_SECONDS = 15

# Time for a browser to confirm the end of its connection.
CLOSE_SECONDS = 2

# Maximum bytes of a browser's message; pasted text is the longest.
LONGEST_MESSAGE = 1 << 20

FONT_SIZES = (8, 60)


class ScreenServer(Server):
    """Serves a program to browsers; `report` receives lines for the user who started the server."""

    def __init__(self, program: WindowProgram, guard: Guard, title: str, report: Report) -> None:
        super().__init__("", title=title)
        self._program = program
        self._guard = guard
        self._report = report
        self._page = string.Template((OWN_PAGE / "index.html").read_text(encoding="utf-8"))
        self._windows: set[BrowserWindow] = set()
        self._ending = asyncio.Event()

    def end(self) -> None:
        """Make `run` end all programs and return."""
        self._ending.set()

    async def run(self, listening: Listening, started: Callable[[], None]) -> None:
        """Serve until a signal or `end`, and end all programs; call `started` when the server accepts
        requests."""
        loop = asyncio.get_running_loop()
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            # Keep ignoring a signal that the parent process ignores, as `nohup` does.
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                with suppress(NotImplementedError):
                    loop.add_signal_handler(number, self.end)
        with _LibraryLog(self._guard, self._report):
            # No access log, because it would contain the token.
            runner = web.AppRunner(await self._make_app(), access_log=None, shutdown_timeout=1)
            await runner.setup()
            try:
                await web.SockSite(runner, listening.socket).start()
                started()
                await self._ending.wait()
            finally:
                self.end()
                while self._windows:  # also a window whose program is about to start
                    await asyncio.gather(*(window.stop() for window in self._windows))
                    await asyncio.sleep(0.01)
                await runner.cleanup()

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard.authorize, _refuse_long_paths])
        app.on_response_prepare.append(self._guard.harden)
        app.add_routes(
            [
                web.get(PAGE, self.handle_index),
                web.get(WEBSOCKET, self.handle_websocket),
                web.get("/download/{key}", self.handle_download),
                *(
                    web.static(path, folder)
                    for path, folder in zip(STATIC, (self.statics_path, OWN_PAGE), strict=True)
                ),
            ]
        )
        return app

    async def handle_index(self, request: web.Request) -> web.Response:
        least, most = FONT_SIZES
        size = max(least, min(to_int(request.query.get("fontsize", "16"), 16), most))
        page = self._page.substitute(title=html.escape(visible_line(self.title)), font_size=size)
        return web.Response(text=page, content_type="text/html")

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a window, whose program starts and ends with the connection."""
        socket = web.WebSocketResponse(
            timeout=CLOSE_SECONDS, heartbeat=HEARTBEAT_SECONDS, max_msg_size=LONGEST_MESSAGE
        )
        await socket.prepare(request)
        if self._ending.is_set() or len(self._windows) >= MOST_WINDOWS:
            words = f"{MOST_WINDOWS} windows are open, the maximum: close one, and reload this page."
            await socket.send_bytes((words if self._windows else "The server has stopped.").encode())
            await socket.close(code=WSCloseCode.TRY_AGAIN_LATER)
            return socket
        window = BrowserWindow(
            self._program,
            socket.send_bytes,
            socket.send_str,
            socket.close,  # type: ignore[arg-type]  # its result is not used
            self.download_manager,
            self._report,
        )
        self._windows.add(window)
        try:
            size = (to_int(request.query.get(name, ""), usual) for name, usual in SIZE.items())
            await window.start(*size)
            reading = asyncio.create_task(self._read(socket, window))
            ended = asyncio.create_task(window.ended())
            await asyncio.wait({reading, ended}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                await socket.close()
            ended.cancel()
            with suppress(ConnectionError):
                await reading
        except OSError as error:
            self._report(f"the process of a window can't be started: {reason(error)}")
        finally:
            await window.stop()
            self._windows.discard(window)
            await socket.close()
        return socket

    async def _read(self, socket: web.WebSocketResponse, window: BrowserWindow) -> None:
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                continue
            try:
                content = parse_json(message.data)
            except json.JSONDecodeError:
                continue
            match content:
                case ["stdin", str(text)]:
                    await window.type(text)
                case ["resize", {"width": int(width), "height": int(height)}]:
                    await window.set_terminal_size(width, height)
                case ["ping", str(time)]:
                    await socket.send_json(["pong", time[:100]])
                case ["focus"]:
                    await window.focus()
                case ["blur"]:
                    await window.blur()


# Parameters of a window's size, with defaults.
SIZE = {"width": 80, "height": 24}


@web.middleware
async def _refuse_long_paths(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer 404 to a path that is too long for a file name; the handler of static files would fail."""
    try:
        return await handler(request)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise web.HTTPNotFound from None


class _LibraryLog(logging.Handler):
    """Reports warnings of libraries in one sentence each, without tokens."""

    LOGGERS = ("aiohttp", "asyncio", "textual-serve")

    def __init__(self, guard: Guard, report: Report) -> None:
        super().__init__(logging.WARNING)
        self._guard = guard
        self._report = report
        self._propagated: dict[logging.Logger, bool] = {}

    def __enter__(self) -> None:
        for logger in map(logging.getLogger, self.LOGGERS):
            self._propagated[logger] = logger.propagate
            logger.propagate = False
            logger.addHandler(self)

    def __exit__(self, *_: object) -> None:
        for logger, propagate in self._propagated.items():
            logger.propagate = propagate
            logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, BadHttpMessage):
            return  # the client received an error
        why = "" if error is None else f": {type(error).__name__}: {error}"
        self._report(f"the web server reports: {self._guard.redacted(record.getMessage() + why)}")
