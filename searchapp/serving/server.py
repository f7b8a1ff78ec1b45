"""The web server: a page with a terminal in it, for each window a program, and nothing for whoever has no token."""

from __future__ import annotations

import asyncio
import html
import json
import logging
import signal
import string
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.http_exceptions import BadHttpMessage
from textual_serve.server import Server, to_int

from searchapp.files import reason
from searchapp.inputs import parse_json
from searchapp.serving.guard import PAGE, STATIC, WEBSOCKET, Guard
from searchapp.serving.listening import Listening
from searchapp.serving.window import Program, Tell, Window
from searchapp.visible import visible_line

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
        app = web.Application(middlewares=[self._guard.let_in])
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
