"""Windows of `searchapp serve` exchange input and output with their programs and end them."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable

import psutil
import pytest
from aiohttp import WSMsgType

from searchapp.serving import server
from tests.serving.client import BEGIN, ECHO, Site, received, rest, script, send, serve

STUBBORN = f"""
import signal
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
{BEGIN}
time.sleep(600)
"""


def window_process(output: str) -> psutil.Process:
    """Return the process whose id a window has shown."""
    result = re.search(r"begun (\d+)", output)
    assert result
    return psutil.Process(int(result[1]))


def has_ended(program: psutil.Process) -> bool:
    try:
        return not program.is_running() or program.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two calls
        return True


def test_keys_and_sizes_reach_the_program() -> None:
    async def use(site: Site) -> None:
        await site.enter()
        browser = await site.window("?width=100&height=30")
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

    assert not serve(use)


def test_the_program_finds_its_window_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "7")
    monkeypatch.setenv("COLUMNS", "7")
    code = f"{BEGIN}put(b'D', json.dumps(dict(os.environ)).encode())\nput(b'D', b'<end>')"

    async def use(site: Site) -> None:
        await site.enter()
        variables = await received(await site.window("?width=99999&height=x"), "<end>")
        assert '"COLUMNS": "2000"' in variables and '"ROWS": "24"' in variables
        assert '"OWN": "value"' in variables
        assert '"LINES"' not in variables and '"TEXTUAL_DRIVER"' in variables
        assert site.token not in variables
        assert not any(cookie.value in variables for cookie in site.client.cookie_jar)

    serve(use, script(code, OWN="value"))


def test_malformed_messages_are_ignored() -> None:
    malformed = ["", "x", "{}", "[]", '["stdin"]', '["stdin", 5]', '["stdin", "\\ud800"]', '["resize", {}]',
                '["resize", {"width": "a", "height": 1}]', '["unknown"]', "[" * 5_000, '["stdin", NaN]', '["ping", {}]',
                '["stdin", "a", "b"]', "null"]  # fmt: skip

    async def use(site: Site) -> None:
        await site.enter()
        browser = await site.window()
        await received(browser, "begun")
        for message in malformed:
            await browser.send_str(message)
        await browser.send_bytes(b"x")
        await send(browser, "stdin", "<end>")
        assert await received(browser, "<end>") == "D<end>"

    assert not serve(use)


def test_a_message_above_the_limit_ends_a_window() -> None:
    async def use(site: Site) -> None:
        await site.enter()
        browser = await site.window()
        program = window_process(await received(browser, "begun"))
        await send(browser, "stdin", "x" * server.LONGEST_MESSAGE)
        await rest(browser)
        assert browser.close_code == 1009
        await wait_until(lambda: has_ended(program))

    serve(use)


def test_closing_a_window_ends_its_program() -> None:
    async def use(site: Site) -> None:
        await site.enter()
        first, second = await site.window(), await site.window()
        closed, open_ = (
            window_process(await received(first, "begun")),
            window_process(await received(second, "begun")),
        )
        await first.close()
        await wait_until(lambda: has_ended(closed))
        assert not has_ended(open_)

    assert not serve(use)


def test_the_end_of_the_server_ends_every_program() -> None:
    programs: list[psutil.Process] = []

    async def use(site: Site) -> None:
        await site.enter()
        for _ in range(3):
            programs.append(window_process(await received(await site.window(), "begun")))
        await site.window()  # whose program may still be about to start

    before = set(psutil.Process().children())
    assert not serve(use)
    assert all(map(has_ended, programs))
    assert not [child for child in psutil.Process().children() if child not in before]


@pytest.mark.parametrize("closed_by", ["window", "server"])
def test_a_program_that_does_not_end_is_killed(closed_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "END_SECONDS", 0.2)
    programs: list[psutil.Process] = []

    async def use(site: Site) -> None:
        await site.enter()
        browser = await site.window()
        programs.append(window_process(await received(browser, "begun")))
        if closed_by == "window":
            await browser.close()
            await wait_until(lambda: has_ended(programs[0]))

    messages = serve(use, script(STUBBORN))
    assert messages == ["the process of a window did not end in time and was killed"]
    assert has_ended(programs[0])


def test_a_program_whose_output_is_not_read_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "END_SECONDS", 0.5)
    code = f"{BEGIN}while True: put(b'D', b'x' * 100_000)"
    programs: list[psutil.Process] = []

    async def use(site: Site) -> None:
        await site.enter()
        browser = await site.window()
        programs.append(window_process(await received(browser, "begun")))
        await asyncio.sleep(0.3)

    start = time.monotonic()
    serve(use, script(code))
    assert has_ended(programs[0]) and time.monotonic() - start < 10


def test_standard_error_of_a_program_is_shown_and_reported() -> None:
    code = 'sys.stderr.write("searchapp: no \\x1b[2Jindex\\u202e\\n\\xe9" + "x" * 5000)\nsys.exit(3)'
    shown: list[str] = []

    async def use(site: Site) -> None:
        await site.enter()
        shown.append(await rest(await site.window()))

    messages = serve(use, script(code, PYTHONIOENCODING="utf-8"))
    assert messages[0] == "searchapp: no ␛[2Jindex<U+202E>"
    assert max(map(len, messages)) == server.LONGEST_LINE
    assert shown[0].startswith("\x1b[?1049l\x1b[0m\x1b[2J\x1b[Hsearchapp: no ␛[2Jindex<U+202E>\r\né")


def test_standard_error_after_the_exit_of_a_screen_is_shown() -> None:
    code = f"{BEGIN}put(b'M', b'{{\"type\": \"exit\"}}')\ntime.sleep(0.2)\nsys.stderr.write('all is saved')"

    async def use(site: Site) -> None:
        await site.enter()
        assert (await rest(await site.window())).endswith("all is saved\r\n")

    assert serve(use, script(code)) == ["all is saved"]


def test_a_program_that_cannot_be_started_is_reported() -> None:
    async def use(site: Site) -> None:
        await site.enter()
        assert await rest(await site.window()) == ""

    (message,) = serve(use, server.WindowProgram(("/nowhere/searchapp",), {}))
    assert "can't be started" in message


def test_the_number_of_windows_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_WINDOWS", 1)

    async def use(site: Site) -> None:
        await site.enter()
        first = await site.window()
        await received(first, "begun")
        assert "1 windows are open" in await rest(await site.window())
        await first.close()
        await wait_until(lambda: not site.server._windows)
        await received(await site.window(), "begun")

    serve(use, script(ECHO))


def test_a_client_with_the_cookie_can_download_a_file() -> None:
    code = f"""{BEGIN}
put(b"M", json.dumps({{"type": "deliver_file_start", "key": "k", "path": "/x/a.txt", "open_method": "download",
                       "mime_type": "text/plain", "encoding": "utf-8", "name": None}}).encode())
from textual._binary_encode import dump
chunks = [b"content", b""]
while get() is not None:
    if chunks:
        put(b"P", dump(("deliver_chunk", "k", chunks.pop(0))))
"""

    async def use(site: Site) -> None:
        await site.enter()
        browser = await site.window()
        while (message := await browser.receive()).type is not WSMsgType.TEXT:
            pass
        assert message.data == '["deliver_file_start", "k"]'
        async with site.client.get(f"{site.url}/download/k") as response:
            assert await response.read() == b"content"
            assert response.headers["Content-Disposition"] == "attachment; filename=a.txt"
        async with site.client.get(f"{site.url}/download/other") as response:
            assert response.status == 404

    serve(use, script(code))


def test_the_server_survives_a_broken_connection() -> None:
    """Abort the connection without closing it, as a killed browser does."""

    async def use(site: Site) -> None:
        await site.enter()
        browser = await site.window()
        program = window_process(await received(browser, "begun"))
        transport = browser._response.connection.transport  # type: ignore[union-attr]
        transport.abort()  # type: ignore[union-attr]
        await wait_until(lambda: has_ended(program))
        await received(await site.window(), "begun")

    assert not serve(use)


async def wait_until(condition: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)
