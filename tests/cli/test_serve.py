"""`searchapp serve`: the program in a real browser, and the end of its processes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, CookieJar

from searchapp.cli.browse import _environment, _flags
from searchapp.cli.output import IN_BROWSER
from searchapp.config.resolution import resolution
from searchapp.serving.guard import listen
from tests.cli.conftest import SAMPLE, Cli
from tests.programs import COMMAND, Program
from tests.serving.browser import Browser
from tests.serving.client import received, rest, send

REDIRECT = """
import os, sys
output = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(output, 1)
os.dup2(output, 2)
"""


class Served:
    """`searchapp serve` in a process, with its output in a file."""

    def __init__(self, folder: Path, home: Path, *arguments: str) -> None:
        self.home = home
        self._file = folder / "output"
        self._file.touch()
        words = ("serve", *arguments, "--port", "0", "--home", home)
        self.process = Program(REDIRECT + COMMAND, self._file, *words)
        self.address = self.wait_for(r"open (http://\S+)\n")[1]
        self.url = self.address.partition("/?")[0]
        self.token = self.address.partition("token=")[2]

    @property
    def output(self) -> str:
        return self._file.read_text(encoding="utf-8")

    @property
    def programs(self) -> list[psutil.Process]:
        """The programs of the windows."""
        return list(psutil.Process(self.process.pid).children(recursive=True))

    def wait_for(self, pattern: str, seconds: float = 20) -> re.Match[str]:
        deadline = time.monotonic() + seconds
        while not (result := re.search(pattern, self.output)):
            assert time.monotonic() < deadline, self.output
            time.sleep(0.02)
        return result


Serve = Callable[..., Served]
Window = Callable[[], Awaitable[ClientWebSocketResponse]]


@pytest.fixture
def serve(tmp_path: Path, offline: Cli) -> Iterator[Serve]:
    """Serves the sample collection of the task nlps."""
    home = tmp_path / "home"
    assert offline("index", "nlps", "--data", SAMPLE, "--home", home).code == 0
    started: list[Served] = []

    def start(*arguments: str) -> Served:
        started.append(Served(tmp_path, home, *arguments))
        return started[-1]

    yield start
    for served in started:
        programs = served.programs if served.process.returncode is None else []
        served.process.close()
        for program in programs:
            with suppress(psutil.NoSuchProcess):
                program.kill()


def test_a_browser_finds_opens_and_grades_a_document(serve: Serve, offline: Cli, tmp_path: Path) -> None:
    served = serve("nlps", "--annotator", "ann", "--verbose")
    with Browser(tmp_path / "browser") as browser:
        browser.open(f"{served.url}/")
        assert "This page needs the token" in browser.page
        browser.open(served.address)
        browser.wait_for("nlps · 70 documents")
        assert browser.address == f"{served.url}/"
        (program,) = served.programs
        assert served.token not in repr((program.cmdline(), program.environ()))
        browser.press("compact hausdorff")
        browser.wait_for(r"Document 614 · rank 1 ")
        browser.press("enter", "down")
        browser.wait_for(r"Document 615 · rank 2 ")
        browser.press("t")
        browser.wait_for("Judge documents for the topic")
        browser.press("down", "enter")
        topic = browser.wait_for(r"judging topic (\d+)")[1]
        browser.wait_for(rf"Document {topic} · rank 1 ")
        browser.press("down")  # the first document is the topic itself
        document = browser.wait_for(r"Document (\d+) · rank 2 ")[1]
        browser.press("1")
        browser.wait_for("saved  1 ")
        browser.press("p")
        browser.wait_for(r"\$PAGER can't run in a browser")
        browser.press("y")
        browser.wait_for("to the browser's clipboard")
        messages = browser.console_messages
        assert not [message for message in messages if "Error" in message or "Refused" in message]
        browser.press("q")
        browser.wait_for("^The program has ended")
        assert "Start again" in browser.page
    assert not served.programs
    exported = tmp_path / "judgments.jsonl"
    assert offline("judgments", "export", "nlps", "--out", exported, "--home", served.home).code == 0
    event, detail = map(json.loads, exported.read_text(encoding="utf-8").splitlines())
    assert (detail["event"], detail["name"]) == (event["id"], "guidelines")
    expected = {"annotator": "ann", "topic_id": topic, "document_id": document, "grade": 1}
    assert event.items() >= expected.items()
    served.process.send_signal(signal.SIGINT)
    assert served.process.wait() == 0
    assert served.output.count(served.token) == 1


@pytest.mark.elasticsearch
@pytest.mark.shared_indexes
def test_a_window_searches_a_server(
    indexed_server: Cli, tmp_path: Path, elasticsearch_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEARCHAPP_URL")
    served = Served(tmp_path, tmp_path / "home", "nlps", "--url", elasticsearch_url, "--annotator", "ann")

    async def use(window: Window) -> None:
        socket = await window()
        await received(socket, "70 documents")
        await send(socket, "stdin", "compact hausdorff")
        await received(socket, "614")

    try:
        in_windows(served, use)
    finally:
        served.process.close()


def test_a_window_judges_a_run_and_ends_with_the_server(serve: Serve, offline: Cli, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert offline("rank", "nlps", "--data", SAMPLE, "--split", "dev", "--out", run).code == 0
    served = serve("nlps", "--run", str(run), "--annotator", "ann[/b]", "--blind", "--quiet")

    async def use(window: Window) -> None:
        first = await window()
        await received(first, " blind ")
        await asyncio.sleep(1)  # a grade is accepted only after the screen is painted
        await send(first, "stdin", "1")
        await received(first, "saved")
        second = await window()
        await received(second, "is already judging nlps in another window")
        await send(first, "stdin", "q")
        assert "all judgments are saved in" in await rest(first)
        programs = served.programs
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait() == 0
        assert len(programs) == 1 and not psutil.wait_procs(programs, 5)[1]

    in_windows(served, use)
    assert served.output.count(served.token) == 1 and "Traceback" not in served.output
    assert "all judgments are saved in" in served.output


def test_no_program_outlives_a_server_that_is_killed(serve: Serve) -> None:
    served = serve("nlps")

    async def use(window: Window) -> None:
        await received(await window(), "70 documents")
        await window()
        while len(programs := served.programs) < 2:
            await asyncio.sleep(0.01)
        served.process.send_signal(signal.SIGKILL)  # while the second program is starting
        assert not psutil.wait_procs(programs, 15)[1]

    in_windows(served, use)


def test_a_program_ends_if_its_window_is_closed_before_it_starts(tmp_path: Path, offline: Cli) -> None:
    """SIGHUP is ignored until the screen is shown, as with `nohup`."""
    home = tmp_path / "home"
    assert offline("index", "nlps", "--data", SAMPLE, "--home", home).code == 0
    code = (
        "import runpy, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
        f"sys.argv = ['searchapp', '--home', {str(home)!r}, 'search', '--', 'nlps']; "
        "runpy.run_module('searchapp', run_name='__main__')"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TEXTUAL_DRIVER": IN_BROWSER},
        input=b"",
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert result.returncode in (-signal.SIGHUP, 128 + signal.SIGHUP), result.stderr


def in_windows(served: Served, use: Callable[[Window], Awaitable[None]]) -> None:
    """Use windows without a browser."""

    async def open_and_use() -> None:
        async with (
            ClientSession(cookie_jar=CookieJar(unsafe=True)) as client,
            client.get(served.address),
            AsyncExitStack() as stack,
        ):

            async def window() -> ClientWebSocketResponse:
                connecting = client.ws_connect(f"{served.url}/ws", headers={"Origin": served.url})
                return await stack.enter_async_context(connecting)

            await use(window)

    asyncio.run(asyncio.wait_for(open_and_use(), 60))


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["nlsp"], 2, "unknown task 'nlsp' (did you mean nlps?)"),
        (["nlps", "--recipe", "x"], 2, "nlps has no recipe 'x'"),
        (["nlps"], 3, "there is no index"),
        (["nlps", "--run", "nowhere"], 2, "nowhere does not exist"),
        (["nlps", "--run", ".", "--recipe", "bm25"], 2, "give one of them"),
        (["--recipe", "bm25"], 2, "give the task"),
        (["nlps", "--blind"], 2, "--blind is for judging"),
        (["nlps", "--run", ".", "--public-url", "x"], 2, "--public-url must be like https://search.example.org"),
        (["nlps", "--run", ".", "--host", "192.0.2.1"], 2, "is not an address of this machine"),
        (["nlps", "--port", "65536"], 2, "--port"),
    ],
)  # fmt: skip
def test_serve_rejects_missing_runs_and_indexes(
    offline: Cli, arguments: list[str], code: int, sentence: str
) -> None:
    result = offline("serve", *arguments)
    assert (result.code, result.stdout) == (code, "") or code == 2
    assert sentence in " ".join(result.stderr.split())


def test_a_port_in_use_is_reported(offline: Cli) -> None:
    with listen("127.0.0.1", 0).socket as socket:
        port = socket.getsockname()[1]
        result = offline("serve", "nlps", "--run", ".", "--port", port)
    assert result.code == 1
    assert f"port {port} of 127.0.0.1 is in use: give another one with --port" in result.stderr


def test_programs_have_the_settings_of_the_server() -> None:
    url = "http://secret.localhost:9200"
    environ = {"SEARCHAPP_ENGINE": "embedded", "SEARCHAPP_API_KEY": "key"}
    for flags in (
        {"url": url},
        {"url": url, "engine": "embedded"},
        {"home": Path("h")},
        {"verbose": True},
        {},
    ):
        own = resolution(flags, environ)
        options = list(_flags(own))
        assert "secret" not in repr(options) and "key" not in repr(options)
        of_program = resolution(
            {"verbose": "--verbose" in options}
            | {option[2:].partition("=")[0]: option.partition("=")[2] for option in options if "=" in option},
            {**environ, **_environment(own)},
        )
        assert replace(of_program.settings, engine_chosen_by="") == replace(own.settings, engine_chosen_by="")
        assert of_program.values["verbose"].value == own.values["verbose"].value
