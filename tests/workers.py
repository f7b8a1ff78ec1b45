"""Test processes as forks of a process that has imported the tests.

Imports, and in a fresh clone rewriting assertions, take most of the processor time before the first test of a process.
xdist starts its processes with the command of `--tx`: here a small program that sends its streams to the process that
has imported the tests, and waits for the fork.
"""

from __future__ import annotations

import gc
import os
import select
import shlex
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from _pytest.pathlib import import_path

from tests import forkserver

LONGEST_TEXT = 1 << 16

JOIN = """
import os, signal, socket, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
socket.send_fds(line, [sys.argv[-1].encode()], [0, 1, 2])
os.close(0)
os.close(1)
try:
    line.recv(1)
except ConnectionResetError:
    pass
"""
"""The program that xdist starts: it sends its last argument, the Python code to run, and ends with the fork.

The terminal sends SIGINT to the fork, too.
"""


def fork_workers(config: pytest.Config, modules: Iterable[Path]) -> None:
    """Let xdist's processes be forks of a process that imports the selected ones of these modules.

    That process is a fork of this process and ends with it.
    """
    folder_of_run = config.invocation_params.dir
    selected = [Path(folder_of_run, argument.partition("::")[0]).resolve() for argument in config.args]
    imported = [path for path in modules if any(path.is_relative_to(parent) for parent in selected)]
    folder = tempfile.mkdtemp(prefix="workers-")  # other users may not enter it
    address = f"{folder}/line"
    line = socket.socket(socket.AF_UNIX)
    line.bind(address)
    line.listen()
    ended, alive = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(alive)
            handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the tests handle it
            import_modules(config, imported)
            forkserver.introducer = address
            serve(line, ended, handler)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    line.close()
    os.close(ended)
    command = shlex.join([sys.executable, "-S", "-E", "-c", JOIN, address])
    config.option.tx = [f"popen//python={command}"] * len(config.option.tx)

    def end() -> None:
        os.close(alive)
        os.waitpid(pid, 0)
        shutil.rmtree(folder, ignore_errors=True)

    config.add_cleanup(end)


def import_modules(config: pytest.Config, paths: Iterable[Path]) -> None:
    """Import modules as pytest does, and leave errors to pytest."""
    for path in paths:
        try:
            with config._catch_configured_warnings(record=True):
                import_path(path, mode="importlib", root=config.rootpath, consider_namespace_packages=False)
        except BaseException:  # such as pytest.skip of a whole module
            for name, module in list(sys.modules.items()):
                if getattr(module, "__file__", None) == str(path):
                    del sys.modules[name]
    if "hypothesis" in sys.modules:
        from hypothesis.internal.conjecture.providers import _get_local_constants

        _get_local_constants()  # Hypothesis would search all modules for constants in each process
    gc.collect()
    gc.freeze()


def serve(line: socket.socket, ended: int, handler: Any) -> None:
    """Fork a process for each worker that connects, until the parent process has ended.

    A fork and the program that has joined for it end with each other. Forks that start programs share one fork server.
    """
    programs: forkserver.ForkServer | None = None
    # Process id and connection to the joined program, by a descriptor that is readable after the end of the fork.
    forks: dict[int, tuple[int, socket.socket]] = {}
    while True:
        joined = [connection for _pid, connection in forks.values()]
        sources: list[Any] = [line, ended, *forks, *joined]
        ready = select.select(sources, [], [])[0]
        if ended in ready:
            break
        for end, (pid, connection) in list(forks.items()):
            if connection in ready:
                signal.pidfd_send_signal(end, signal.SIGKILL)
            if end in ready or connection in ready:
                os.waitpid(pid, 0)
                connection.close()
                os.close(end)
                del forks[end]
        if line not in ready:
            continue
        connection = line.accept()[0]
        text, streams, _flags, _address = socket.recv_fds(connection, LONGEST_TEXT, 3)
        if text == forkserver.ASKS_FOR_PROGRAMS:
            programs = programs or forkserver.ForkServer()
            programs.introduce(streams[0])
            os.close(streams[0])
            connection.close()
            continue
        if (pid := os.fork()) == 0:
            for descriptor in (ended, *forks, *(other.detach() for other in (line, connection, *joined))):
                os.close(descriptor)
            signal.signal(signal.SIGINT, handler)
            forkserver.begin(streams)
            forkserver.run(text.decode())
            forkserver.leave(None)
        forks[os.pidfd_open(pid)] = (pid, connection)
        for stream in streams:
            os.close(stream)
    if programs:
        programs.close()
