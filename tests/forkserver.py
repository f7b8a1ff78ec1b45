"""A fork server that starts programs without the time of imports.

Starting the interpreter and importing take longer than most commands. `python forkserver.py` imports searchapp once,
and forks a process for each client, which forks a child for each order. The child gets its own arguments, environment,
working directory and terminal or pipes, and runs `python -m searchapp`, or `python -c` with code. It shares only
modules, and skips the interpreter's cleanup. The server ends with the process that started it.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import random
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

LONGEST_ORDER = 1 << 20

introducer: str | None = None
"""The socket of a process that connects several processes to one fork server; None without one."""

ASKS_FOR_PROGRAMS = b"programs"
"""The message to that process, sent with the socket for orders."""


class ForkServer:
    """The process of the fork server, and the socket to it."""

    def __init__(self) -> None:
        # The interpreter reads some variables only at its start. The variables of a program are part of its order.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SEARCHAPP_")}
        self._door, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(other.fileno())],
                pass_fds=[other.fileno()],
                cwd=Path(__file__).parents[1],
                env={**environment, "OPENBLAS_NUM_THREADS": "1"},
            )

    def introduce(self, line: int) -> None:
        """Let the server take orders from this socket, too."""
        socket.send_fds(self._door, [ASKS_FOR_PROGRAMS], [line])

    def close(self) -> None:
        """End the server; other sockets can still send orders, and running programs continue."""
        self._door.close()
        self._process.wait()


class Orders:
    """Orders to a fork server; `introduce` sends it the other end of the socket."""

    def __init__(self, introduce: Callable[[int], object]) -> None:
        self._line, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            introduce(other.fileno())

    def start(self, arguments: Sequence[str], environment: Mapping[str, str], terminal: int) -> int:
        """Start searchapp on a terminal; return its process id."""
        order = {"arguments": list(arguments), "environment": dict(environment), "folder": str(Path.cwd())}
        return self._start(order, [terminal])

    def start_text(
        self, text: str, arguments: Sequence[str], environment: Mapping[str, str], streams: Sequence[int]
    ) -> int:
        """Run Python code with these standard streams; return its process id."""
        order = {"arguments": list(arguments), "environment": dict(environment), "folder": str(Path.cwd())}
        return self._start({**order, "text": text}, streams)

    def wait(self, pid: int) -> int:
        """Wait for the end of a program; return the status of `os.waitpid`."""
        self._line.send(json.dumps({"wait": pid}).encode())
        return self._answer()

    def close(self) -> None:
        """Close the socket; running programs continue."""
        self._line.close()

    def _start(self, order: Mapping[str, object], streams: Sequence[int]) -> int:
        socket.send_fds(self._line, [json.dumps(order).encode()], list(streams))
        return self._answer()

    def _answer(self) -> int:
        answer = self._line.recv(64)
        assert answer, "the fork server has ended"
        return int(answer)


@cache
def fork_server() -> Orders | None:
    """Return the fork server of this process; None where forks of a process are unsafe."""
    if sys.platform != "linux":
        return None
    if introducer:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(introducer)
            return Orders(lambda line: socket.send_fds(connection, [ASKS_FOR_PROGRAMS], [line]))
    server = ForkServer()
    orders = Orders(server.introduce)
    atexit.register(server.close)
    atexit.register(orders.close)  # runs first
    return orders


def main() -> None:
    """Fork a process for each socket until the owner closes its own."""
    door = socket.socket(fileno=int(sys.argv[1]))
    # The folder of this file has a module `profile`, which would hide Python's.
    sys.path[0] = str(Path(__file__).parents[1])
    import typer.main

    import searchapp
    import searchapp.cli
    import tests.engines.conftest  # noqa: F401  # modules that the code of tests imports

    for module in pkgutil.walk_packages(searchapp.__path__, "searchapp."):
        if not module.name.endswith("__main__"):
            # The environment may lack the library of an extra.
            with suppress(ModuleNotFoundError):
                importlib.import_module(module.name)
    # Typer imports modules with the first command line, which takes as long as many commands.
    typer.main.get_command(searchapp.cli.app).make_context("searchapp", ["tasks"])
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the tests handle it; they close the line
    while lines := socket.recv_fds(door, len(ASKS_FOR_PROGRAMS), 1)[1]:
        if os.fork() == 0:
            door.close()
            take_orders(socket.socket(fileno=lines[0]))
            os._exit(0)
        os.close(lines[0])


def take_orders(line: socket.socket) -> None:
    """Fork a program for each order until the socket is closed; return in a program that ends by itself."""
    while True:
        message, descriptors, _flags, _address = socket.recv_fds(line, LONGEST_ORDER, 3)
        if not message:
            return
        order = json.loads(message)
        if "wait" in order:
            line.send(str(os.waitpid(order["wait"], 0)[1]).encode())
            continue
        pid = os.fork()
        if pid == 0:
            line.close()
            try:
                become(
                    order["arguments"], order["environment"], order["folder"], descriptors, order.get("text")
                )
            except SystemExit as end:
                leave(end.code)
                raise
            leave(None)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        line.send(str(pid).encode())


def become(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    folder: str,
    streams: Sequence[int],
    text: str | None,
) -> None:
    """Run `python -m searchapp`, or `python -c` with code, on this terminal or with these three streams."""
    begin(streams)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if text is not None:
        sys.argv = ["-c", *arguments]
        run(text)
        return
    sys.argv = ["searchapp", *arguments]
    runpy.run_module("searchapp", run_name="__main__", alter_sys=True)


def begin(streams: Sequence[int]) -> None:
    """Set up the terminal or the three streams, and new random seeds, as in a new process."""
    if len(streams) == 1:
        os.login_tty(*streams)
    else:
        for descriptor, stream in enumerate(streams):
            os.dup2(stream, descriptor)
            os.close(stream)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        mode = "w" if descriptor else "r"
        setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
        setattr(sys, f"__{name}__", getattr(sys, name))
    random.seed()


def run(text: str) -> None:
    """Run code as `python -c` does."""
    exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})


def leave(code: object) -> None:
    """End as the interpreter does, but without freeing objects; return if the exit code is a text.

    Freeing writes to each object and copies all shared memory, which takes nine tenths of the time of a short command.
    """
    if code is not None and not isinstance(code, int):
        return
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads that are not daemons
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        os._exit(120)  # like the interpreter
    sys.stderr.flush()
    os._exit((code or 0) & 0xFF)


if __name__ == "__main__":
    main()
