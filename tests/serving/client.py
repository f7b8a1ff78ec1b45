"""A server of `searchapp.serving` in the tests' own process, with small programs behind its windows."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import ClientSession, WSMsgType

from searchapp.serving.guard import Guard, Listening, listen
from searchapp.serving.server import ScreenServer, WindowProgram

SECONDS = 20

_PUT = """
import json, os, sys, time
def put(kind, data):
    sys.stdout.buffer.write(kind + len(data).to_bytes(4, "big") + data)
    sys.stdout.buffer.flush()
def get():
    head = sys.stdin.buffer.read(5)
    return (head[:1], sys.stdin.buffer.read(int.from_bytes(head[1:], "big"))) if len(head) == 5 else None
"""
BEGIN = 'sys.stdout.buffer.write(b"__GANGLION__\\n")\nput(b"D", b"begun %d" % os.getpid())\n'
ECHO = f"{BEGIN}while (packet := get()) is not None: put(b'D', packet[0] + packet[1])\n"
"""Returns every packet until its window is closed."""


def script(code: str, **environment: str) -> WindowProgram:
    """Return a program of a few lines that can use `put` and `get` for packets."""
    return WindowProgram((sys.executable, "-c", _PUT + code), environment)


@dataclass
class Site:
    """A server with a client that has no cookie yet; `messages` are those of the server."""

    server: ScreenServer
    guard: Guard
    listening: Listening
    client: ClientSession
    messages: list[str] = field(default_factory=list)
    windows: list[aiohttp.ClientWebSocketResponse] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.listening.url

    @property
    def token(self) -> str:
        return self.guard.address.partition("token=")[2]

    async def enter(self) -> None:
        """Exchange the token for the cookie."""
        async with self.client.get(self.guard.address, allow_redirects=False) as response:
            assert response.status == 303

    async def window(self, query: str = "", **headers: str) -> aiohttp.ClientWebSocketResponse:
        opened = await self.client.ws_connect(
            f"{self.url}/ws{query}", headers={"Origin": self.url, **headers}, max_msg_size=0
        )
        self.windows.append(opened)
        return opened


def serve(
    use: Callable[[Site], Awaitable[None]],
    program: WindowProgram | None = None,
    *,
    host: str = "127.0.0.1",
    public_url: str | None = None,
) -> list[str]:
    """Start a server, run `use` with it, end it and return its messages."""

    async def run() -> list[str]:
        async with _serve(program or script(ECHO), host, public_url) as site:
            await asyncio.wait_for(use(site), SECONDS)
        return site.messages

    return asyncio.run(run())


@asynccontextmanager
async def _serve(program: WindowProgram, host: str, public_url: str | None) -> AsyncIterator[Site]:
    listening = listen(host, 0)
    with listening.socket:
        guard = Guard(listening, public_url)
        messages: list[str] = []
        server = ScreenServer(program, guard, "a <title>\u202e", messages.append)
        started = asyncio.Event()
        running = asyncio.create_task(server.run(listening, started.set))
        await started.wait()
        # By default aiohttp refuses cookies of numeric addresses.
        async with ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
            site = Site(server, guard, listening, client, messages)
            try:
                yield site
            finally:
                server.end()
                await asyncio.wait_for(running, SECONDS)
                for window in site.windows:
                    await window.close()


async def received(window: aiohttp.ClientWebSocketResponse, ending: str) -> str:
    """Return what a window receives up to and including `ending`."""
    read = b""
    while ending.encode() not in read:
        try:
            message = await asyncio.wait_for(window.receive(), 15)
        except TimeoutError:
            raise AssertionError(f"{ending!r} is not in {read!r}") from None
        if message.type is not WSMsgType.BINARY:
            raise AssertionError(f"{ending!r} is not in {read!r}, then {message}")
        read += message.data
    return read.decode()


async def rest(window: aiohttp.ClientWebSocketResponse) -> str:
    """Return what a window receives until it is closed."""
    read = b""
    async for message in window:
        if message.type is WSMsgType.BINARY:
            read += message.data
    return read.decode()


async def send(window: aiohttp.ClientWebSocketResponse, *message: object) -> None:
    await window.send_str(json.dumps(message))
