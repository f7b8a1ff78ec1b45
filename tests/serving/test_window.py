"""The programs behind windows: what goes to them and comes from them, and that they end."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable

import psutil
import pytest
from aiohttp import WSMsgType

from searchapp.serving import server
from searchapp.serving import server as window
from tests.serving.client import BEGIN, ECHO, Serving, received, rest, script, send, serving

STUBBORN = f"""
import signal
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
{BEGIN}
time.sleep(600)
"""


def process(begun: str) -> psutil.Process:
    """The program that has said its number."""
    result = re.search(r"begun (\d+)", begun)
    assert result
    return psutil.Process(int(result[1]))


def is_gone(program: psutil.Process) -> bool:
    try:
        return not program.is_running() or program.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two questions
        return True


def test_keys_and_sizes_reach_the_program() -> None:
    async def use(one: Serving) -> None:
        await one.enter()
        browser = await one.window("?width=100&height=30")
        await received(browser, "begun")
        await send(browser, "stdin", "")
        await send(browser, "stdin", "é\x1b[A")
        assert "Dé\x1b[A" in await received(browser, "[A")
        await send(browser, "resize", {"width": 10**9, "height": -3})
        assert '{"type": "resize", "width": 2000, "height": 1}' in await received(browser, "}")
        await send(browser, "focus")
        assert await received(browser, '"focus"}')
        await send(browser, "ping", "12")
        message = await browser.receive()
        assert message.type is WSMsgType.TEXT and message.data == '["pong", "12"]'

    assert not serving(use)


def test_the_program_finds_its_window_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "7")
    monkeypatch.setenv("COLUMNS", "7")
    asks = f"{BEGIN}put(b'D', json.dumps(dict(os.environ)).encode())\nput(b'D', b'<end>')"

    async def use(one: Serving) -> None:
        await one.enter()
        told = await received(await one.window("?width=99999&height=x"), "<end>")
        assert '"COLUMNS": "2000"' in told and '"ROWS": "24"' in told and '"OWN": "kept"' in told
        assert '"LINES"' not in told and '"TEXTUAL_DRIVER"' in told
        assert one.token not in told
        assert not any(cookie.value in told for cookie in one.client.cookie_jar)

    serving(use, script(asks, OWN="kept"))


def test_nonsense_does_nothing() -> None:
    nonsense = ["", "x", "{}", "[]", '["stdin"]', '["stdin", 5]', '["stdin", "\\ud800"]', '["resize", {}]',
                '["resize", {"width": "a", "height": 1}]', '["unknown"]', "[" * 5_000, '["stdin", NaN]', '["ping", {}]',
                '["stdin", "a", "b"]', "null"]  # fmt: skip

    async def use(one: Serving) -> None:
        await one.enter()
        browser = await one.window()
        await received(browser, "begun")
        for message in nonsense:
            await browser.send_str(message)
        await browser.send_bytes(b"x")
        await send(browser, "stdin", "<end>")
        assert await received(browser, "<end>") == "D<end>"

    assert not serving(use)


def test_what_is_far_too_long_ends_a_window() -> None:
    async def use(one: Serving) -> None:
        await one.enter()
        browser = await one.window()
        program = process(await received(browser, "begun"))
        await send(browser, "stdin", "x" * server.LONGEST_MESSAGE)
        await rest(browser)
        assert browser.close_code == 1009
        await until(lambda: is_gone(program))

    serving(use)


def test_a_window_that_is_closed_ends_its_program() -> None:
    async def use(one: Serving) -> None:
        await one.enter()
        first, second = await one.window(), await one.window()
        gone, stays = process(await received(first, "begun")), process(await received(second, "begun"))
        await first.close()
        await until(lambda: is_gone(gone))
        assert not is_gone(stays)

    assert not serving(use)


def test_the_end_of_the_server_ends_every_program(monkeypatch: pytest.MonkeyPatch) -> None:
    programs: list[psutil.Process] = []

    async def use(one: Serving) -> None:
        await one.enter()
        for _ in range(3):
            programs.append(process(await received(await one.window(), "begun")))
        await one.window()  # whose program may still be about to start

    before = set(psutil.Process().children())
    assert not serving(use)
    assert all(map(is_gone, programs))
    assert not [child for child in psutil.Process().children() if child not in before]


@pytest.mark.parametrize("by", ["window", "server"])
def test_a_program_that_does_not_end_is_killed(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "END_SECONDS", 0.2)
    programs: list[psutil.Process] = []

    async def use(one: Serving) -> None:
        await one.enter()
        browser = await one.window()
        programs.append(process(await received(browser, "begun")))
        if by == "window":
            await browser.close()
            await until(lambda: is_gone(programs[0]))

    told = serving(use, script(STUBBORN))
    assert told == ["the process of a window did not end in time and was killed"]
    assert is_gone(programs[0])


def test_a_program_that_nobody_reads_from_is_ended_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "END_SECONDS", 0.5)
    flood = f"{BEGIN}while True: put(b'D', b'x' * 100_000)"
    programs: list[psutil.Process] = []

    async def use(one: Serving) -> None:
        await one.enter()
        browser = await one.window()
        programs.append(process(await received(browser, "begun")))
        await asyncio.sleep(0.3)

    begun = time.monotonic()
    serving(use, script(flood))
    assert is_gone(programs[0]) and time.monotonic() - begun < 10


def test_what_a_program_says_is_shown_and_told() -> None:
    fails = 'sys.stderr.write("searchapp: no \\x1b[2Jindex\\u202e\\n\\xe9" + "x" * 5000)\nsys.exit(3)'
    shown: list[str] = []

    async def use(one: Serving) -> None:
        await one.enter()
        shown.append(await rest(await one.window()))

    told = serving(use, script(fails, PYTHONIOENCODING="utf-8"))
    assert told[0] == "searchapp: no ␛[2Jindex<U+202E>"
    assert max(map(len, told)) == window.LONGEST_LINE
    assert shown[0].startswith("\x1b[?1049l\x1b[0m\x1b[2J\x1b[Hsearchapp: no ␛[2Jindex<U+202E>\r\né")


def test_a_program_that_leaves_has_its_last_words() -> None:
    leaves = f"{BEGIN}put(b'M', b'{{\"type\": \"exit\"}}')\ntime.sleep(0.2)\nsys.stderr.write('all is saved')"

    async def use(one: Serving) -> None:
        await one.enter()
        assert (await rest(await one.window())).endswith("all is saved\r\n")

    assert serving(use, script(leaves)) == ["all is saved"]


def test_a_program_that_is_not_there_is_told_of() -> None:
    async def use(one: Serving) -> None:
        await one.enter()
        assert await rest(await one.window()) == ""

    (told,) = serving(use, window.WindowProgram(("/nowhere/searchapp",), {}))
    assert "can't be started" in told


def test_there_are_so_many_windows_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_WINDOWS", 1)

    async def use(one: Serving) -> None:
        await one.enter()
        first = await one.window()
        await received(first, "begun")
        assert "1 windows are open" in await rest(await one.window())
        await first.close()
        await until(lambda: not one.server._windows)
        await received(await one.window(), "begun")

    serving(use, script(ECHO))


def test_a_file_goes_to_whoever_has_the_cookie() -> None:
    delivers = f"""{BEGIN}
put(b"M", json.dumps({{"type": "deliver_file_start", "key": "k", "path": "/x/a.txt", "open_method": "download",
                       "mime_type": "text/plain", "encoding": "utf-8", "name": None}}).encode())
from textual._binary_encode import dump
chunks = [b"held", b""]
while get() is not None:
    if chunks:
        put(b"P", dump(("deliver_chunk", "k", chunks.pop(0))))
"""

    async def use(one: Serving) -> None:
        await one.enter()
        browser = await one.window()
        while (message := await browser.receive()).type is not WSMsgType.TEXT:
            pass
        assert message.data == '["deliver_file_start", "k"]'
        async with one.client.get(f"{one.url}/download/k") as response:
            assert await response.read() == b"held"
            assert response.headers["Content-Disposition"] == "attachment; filename=a.txt"
        async with one.client.get(f"{one.url}/download/other") as response:
            assert response.status == 404

    serving(use, script(delivers))


def test_the_server_goes_on_when_a_window_breaks_off() -> None:
    """Not closed but cut, as by a browser that is killed."""

    async def use(one: Serving) -> None:
        await one.enter()
        browser = await one.window()
        program = process(await received(browser, "begun"))
        transport = browser._response.connection.transport  # type: ignore[union-attr]
        transport.abort()  # type: ignore[union-attr]
        await until(lambda: is_gone(program))
        await received(await one.window(), "begun")

    assert not serving(use)


async def until(holds: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)
