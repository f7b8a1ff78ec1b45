"""The web server: a page with a terminal in it, for each window a program, and nothing for whoever has no token.

textual-serve's `AppService` knows how a program in a browser is talked to. `Window` adds what it leaves out: no shell,
what the program says on its standard error, and an end that comes for certain.
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
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.http_exceptions import BadHttpMessage
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager
from textual_serve.server import Server, to_int

from searchapp.files import parse_json, reason
from searchapp.serving.guard import PAGE, STATIC, WEBSOCKET, Guard, Handler, Listening
from searchapp.text import visible_line

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


OWN_PAGE = Path(__file__).with_name("page")
"""The page and what belongs to it: textual-serve's own asks a server elsewhere for its font."""

MOST_WINDOWS = 32
"""Each has a process with an index open."""

HEARTBEAT_SECONDS = 15
"""A browser that does not answer by then is gone, and its program ends."""

CLOSE_SECONDS = 2
"""For its last answer."""

LONGEST_MESSAGE = 1 << 20
"""In bytes: what a window sends at once, pasted text above all."""

FONT_SIZES = (8, 60)


class ScreenServer(Server):
    """Serves a program to browsers.

    Args:
        program: what is started for each window
        guard: who may come in
        title: what the page is called
        tell: is called with lines for whoever has started the server
    """

    def __init__(self, program: Program, guard: Guard, title: str, tell: Tell) -> None:
        super().__init__("", title=title)
        self._program = program
        self._guard = guard
        self._tell = tell
        self._page = string.Template((OWN_PAGE / "index.html").read_text(encoding="utf-8"))
        self._windows: set[Window] = set()
        self._ending = asyncio.Event()

    def end(self) -> None:
        """Let `run` return, once every program has ended."""
        self._ending.set()

    async def run(self, listening: Listening, begun: Callable[[], None]) -> None:
        """Serve until the process is asked to end; `begun` is called once browsers are answered.

        No program is left when it returns.
        """
        loop = asyncio.get_running_loop()
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            # What whoever started the program has it ignore stays ignored, as after `nohup`.
            if number is not None and signal.getsignal(number) != signal.SIG_IGN:
                with suppress(NotImplementedError):
                    loop.add_signal_handler(number, self.end)
        with _Reports(self._guard, self._tell):
            # No log of requests: it would have the token.
            runner = web.AppRunner(await self._make_app(), access_log=None, shutdown_timeout=1)
            await runner.setup()
            try:
                await web.SockSite(runner, listening.socket).start()
                begun()
                await self._ending.wait()
            finally:
                self.end()
                while self._windows:  # also one whose program is about to start
                    await asyncio.gather(*(window.stop() for window in self._windows))
                    await asyncio.sleep(0.01)
                await runner.cleanup()

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard.let_in, _refuse_long_paths])
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
        """The page."""
        least, most = FONT_SIZES
        size = max(least, min(to_int(request.query.get("fontsize", "16"), 16), most))
        page = self._page.substitute(title=html.escape(visible_line(self.title)), font_size=size)
        return web.Response(text=page, content_type="text/html")

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A window: a program starts with it and ends with it."""
        socket = web.WebSocketResponse(
            timeout=CLOSE_SECONDS, heartbeat=HEARTBEAT_SECONDS, max_msg_size=LONGEST_MESSAGE
        )
        await socket.prepare(request)
        if self._ending.is_set() or len(self._windows) >= MOST_WINDOWS:
            words = f"{MOST_WINDOWS} windows are open: close one, and start again."
            await socket.send_bytes((words if self._windows else "The server ends.").encode())
            await socket.close(code=WSCloseCode.TRY_AGAIN_LATER)
            return socket
        window = Window(
            self._program,
            socket.send_bytes,
            socket.send_str,
            socket.close,  # type: ignore[arg-type]  # what it returns is not looked at
            self.download_manager,
            self._tell,
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
            self._tell(f"the program behind a window can't be started: {reason(error)}")
        finally:
            await window.stop()
            self._windows.discard(window)
            await socket.close()
        return socket

    async def _read(self, socket: web.WebSocketResponse, window: Window) -> None:
        """Hand on what a browser sends; anything else does nothing."""
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                continue
            try:
                held = parse_json(message.data)
            except json.JSONDecodeError:
                continue
            match held:
                case ["stdin", str(text)]:
                    await window.type(text)
                case ["resize", {"width": int(width), "height": int(height)}]:
                    await window.set_terminal_size(width, height)
                case ["ping", str(when)]:
                    await socket.send_json(["pong", when[:100]])
                case ["focus"]:
                    await window.focus()
                case ["blur"]:
                    await window.blur()


SIZE = {"width": 80, "height": 24}
"""What a window says of its size, and what it is if it doesn't."""


@web.middleware
async def _refuse_long_paths(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer 404 for a path that is too long for a file: the handler of static files would fail."""
    try:
        return await handler(request)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise web.HTTPNotFound from None


class _Reports(logging.Handler):
    """What libraries log, as one sentence each, in which no token can be read."""

    LOGGERS = ("aiohttp", "asyncio", "textual-serve")

    def __init__(self, guard: Guard, tell: Tell) -> None:
        super().__init__(logging.WARNING)
        self._guard = guard
        self._report = tell
        self._before: list[tuple[logging.Logger, bool]] = []

    def __enter__(self) -> None:
        for logger in map(logging.getLogger, self.LOGGERS):
            self._before.append((logger, logger.propagate))
            logger.propagate = False
            logger.addHandler(self)

    def __exit__(self, *_: object) -> None:
        for logger, propagate in self._before:
            logger.propagate = propagate
            logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, BadHttpMessage):
            return  # whoever sent it has been told
        why = "" if error is None else f": {type(error).__name__}: {error}"
        self._report(f"the web server reports: {self._guard.redacted(record.getMessage() + why)}")
