"""Test processes as forks of one that has imported the tests.

Imports take most of the processor time before the first test of a process, and so does rewriting assertions in a fresh
clone. xdist starts its processes with the command of `--tx`: here a small program that sends its streams to the process
that has imported the tests, and waits for the fork.
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
"""What xdist starts: it sends the last argument, which is the text of Python to run, and ends with the fork.

An interruption reaches the fork by itself.
"""


def fork_workers(config: pytest.Config, modules: Iterable[Path]) -> None:
    """Have xdist's processes be forks of one that imports these modules, those of them that are asked for.

    That one is a fork of this process and ends with it.
    """
    asked = [Path(config.invocation_params.dir, one.partition("::")[0]).resolve() for one in config.args]
    wanted = [path for path in modules if any(path.is_relative_to(one) for one in asked)]
    folder = tempfile.mkdtemp(prefix="workers-")  # which nobody else may enter
    place = f"{folder}/line"
    line = socket.socket(socket.AF_UNIX)
    line.bind(place)
    line.listen()
    ended, alive = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(alive)
            handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the tests
            import_modules(config, wanted)
            forkserver.introducer = place
            serve(line, ended, handler)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    line.close()
    os.close(ended)
    command = shlex.join([sys.executable, "-S", "-E", "-c", JOIN, place])
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
        except BaseException:  # a test that is skipped with its module ends in one
            for name, module in list(sys.modules.items()):
                if getattr(module, "__file__", None) == str(path):
                    del sys.modules[name]
    if "hypothesis" in sys.modules:
        from hypothesis.internal.conjecture.providers import _get_local_constants

        _get_local_constants()  # those in all modules, for which Hypothesis looks otherwise in each process
    gc.collect()
    gc.freeze()


def serve(line: socket.socket, ended: int, handler: Any) -> None:
    """Fork a process for each worker that connects, until the parent process has ended.

    A fork and the one that has joined for it end with each other. Forks that ask for programs share one fork server.
    """
    programs: forkserver.ForkServer | None = None
    # By a descriptor that can be read once the fork has ended: its process id, and the one that has joined for it.
    forks: dict[int, tuple[int, socket.socket]] = {}
    while True:
        joined = [connection for _pid, connection in forks.values()]
        heard: list[Any] = [line, ended, *forks, *joined]
        ready = select.select(heard, [], [])[0]
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
            for descriptor in (ended, *forks, *(one.detach() for one in (line, connection, *joined))):
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
