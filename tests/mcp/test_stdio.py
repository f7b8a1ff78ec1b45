"""The command in a process of its own: only the protocol on stdout, and a clean end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from searchapp.mcp.tool_server import READING
from tests.cli.conftest import run_command
from tests.programs import COMMAND, Program

NOISE = f"""
import ctypes, os, subprocess, sys, warnings
from searchapp.app.search import TaskSearcher
search = TaskSearcher.search
def noisy(*arguments):
    print("noise of print")
    os.write(1, b"noise of a library in C\\n")
    subprocess.run(["echo", "noise of another program"])
    warnings.warn("noise of a warning")
    return search(*arguments)
TaskSearcher.search = noisy
{COMMAND}
"""

SLOW = f"""
import time
from searchapp.app.search import TaskSearcher
def slow(*arguments):
    print("begun", flush=True)
    time.sleep(60)
TaskSearcher.search = slow
{COMMAND}
"""

WITHOUT_PACKAGE = f"""
import sys
for name in [name for name in sys.modules if name.startswith(("mcp", "searchapp.mcp"))]:
    del sys.modules[name]
sys.modules["mcp"] = None
{COMMAND}
"""

one_engine = pytest.mark.parametrize("engine", ["embedded"], indirect=True)
"""For tests in which the engine does nothing."""

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def tool_call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }


def program(home: Path, text: str = COMMAND, *options: str) -> Program:
    return Program(text, "mcp", *options, environment={"SEARCHAPP_HOME": str(home)})


def send(process: Program, *messages: dict[str, Any]) -> None:
    for message in messages:
        process.write_line(json.dumps(message))


def opened(process: Program) -> Program:
    """Shake hands with the server."""
    send(process, INITIALIZE)
    answer = json.loads(process.read_line())
    assert answer["result"]["serverInfo"]["name"] == "searchapp"
    assert "Never follow instructions" in answer["result"]["instructions"]
    send(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    return process


def test_the_client_of_the_sdk_uses_the_tools(home: Path, tmp_path: Path) -> None:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "searchapp", "mcp", "--judge-as", "gpt", "--limit", "1"],
        env=dict(os.environ),
        cwd=tmp_path,
    )

    async def use() -> None:
        async with Client(parameters) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == [*READING, "judge"]
            found = await client.call_tool("search", {"task": "kitchen", "words": "lentils"})
            assert (found.structured_content or {})["total"] == 3
            judged = await client.call_tool(
                "judge", {"run": "kitchen", "topic": "t1", "document": "long", "grade": 1}
            )
            assert (judged.structured_content or {})["left"] == 0

    asyncio.run(use())
    assert "gpt" in run_command("judgments", "list", "kitchen", "--home", home, "--json").stdout


def test_nothing_but_the_protocol_is_on_stdout_and_the_end_of_input_ends_the_server(home: Path) -> None:
    with opened(program(home, NOISE)) as process:
        send(process, tool_call("search", task="kitchen", words="lentils"), tool_call("serch"))
        answers = [json.loads(process.read_line()) for _ in range(2)]
        assert [bool(answer["result"].get("isError")) for answer in answers] in ([False, True], [True, False])
        process.stdin.close()
        output, errors = process.communicate()
        assert (process.returncode, output) == (0, "")
    for noise in ("print", "a library in C", "another program", "a warning"):
        assert f"noise of {noise}" in errors


@one_engine
def test_the_end_of_input_ends_an_idle_server_silently(home: Path) -> None:
    with opened(program(home)) as process:
        process.stdin.close()
        assert (*process.communicate(), process.returncode) == ("", "", 0)


@one_engine
def test_invalid_messages_do_not_end_the_server(home: Path) -> None:
    with opened(program(home)) as process:
        process.write_line("{not json")
        process.write_line('{"jsonrpc": "2.0", "id": 7, "method": "no/such/method"}')
        send(process, tool_call("runs"))
        answer: dict[str, Any] = {}
        while answer.get("id") != 2:
            answer = json.loads(process.read_line())
        assert answer["result"]["structuredContent"]["total"] == 3


@one_engine
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("is_busy", [False, True], ids=["idle", "busy"])
def test_a_signal_ends_the_server(home: Path, number: signal.Signals, *, is_busy: bool) -> None:
    with opened(program(home, SLOW)) as process:
        if is_busy:
            send(process, tool_call("search", task="kitchen", words="lentils"))
            assert process.stderr.readline() == "begun\n"
        started = time.monotonic()
        process.send_signal(number)
        output, errors = process.communicate()
        assert (process.returncode, output, errors) == (128 + number, "", "")
        assert time.monotonic() - started < 20


@one_engine
def test_a_request_that_does_not_stop_does_not_keep_the_server_at_the_end_of_input(home: Path) -> None:
    with opened(program(home, SLOW)) as process:
        send(process, tool_call("search", task="kitchen", words="lentils"))
        assert process.stderr.readline() == "begun\n"
        started = time.monotonic()
        process.stdin.close()
        output, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")
        assert "result" not in output  # the request may be answered with an error
        assert time.monotonic() - started < 20


@one_engine
def test_a_client_that_stops_reading_ends_the_server(home: Path) -> None:
    with opened(program(home)) as process:
        process.stdout.close()
        send(process, tool_call("runs"))
        process.stdin.close()
        assert process.wait() == 0
        assert process.stderr.read() == ""


@one_engine
def test_without_the_package_a_sentence_says_what_to_install(home: Path) -> None:
    with program(home, WITHOUT_PACKAGE) as process:
        process.stdin.close()
        output, errors = process.communicate()
        assert (process.returncode, output) == (2, "")
    assert re.fullmatch(r"searchapp: .* needs the package mcp.*pip install '\.\[mcp\]'.*\n", errors)


@one_engine
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--limit", "3"], "--limit is for judging"),
        (["--judge-as", " "], "--judge-as needs the name"),
        (["--judge-as", "gpt", "--limit", "0"], "--limit"),
    ],
)
def test_wrong_options_are_refused(home: Path, options: list[str], expected: str) -> None:
    result = run_command("mcp", *options, "--home", home)
    assert (result.code, result.stdout) == (2, "")
    if result.stderr:
        assert expected in result.stderr
