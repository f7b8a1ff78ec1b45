"""The server of the tests: the one in SEARCHAPP_TEST_URL, or a node that several processes share."""

from __future__ import annotations

import fcntl
import http.client
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .distribution import ServerFailed
from .node import Node
from .rest import Server

VARIABLE = "SEARCHAPP_TEST_URL"


def given_server() -> Server | None:
    """Return the server in SEARCHAPP_TEST_URL, None if it is unset.

    Raises:
        ServerFailed: The server does not answer as Elasticsearch does. An explicit server is never replaced by another.
    """
    url = os.environ.get(VARIABLE, "").rstrip("/")
    if not url:
        return None
    server = Server(url)
    try:
        answer = server.request("GET", "/")
    except (OSError, http.client.HTTPException) as error:
        raise ServerFailed(f"{VARIABLE} names {url}, which does not answer: {error}") from error
    if answer.status != 200 or answer.headers.get("x-elastic-product") != "Elasticsearch":
        raise ServerFailed(
            f"{VARIABLE} names {url}, which answers {answer.status} and not as Elasticsearch does"
        )
    return server


@contextmanager
def any_server() -> Iterator[Server]:
    """Yield the server in SEARCHAPP_TEST_URL, or a node that runs during the block."""
    if server := given_server():
        yield server
        return
    with Node() as node:
        yield node.server


def _join(line: Path, address: Path) -> int | None:
    """Open the pipe of the running node; None without one, also while one is ending and still reads its pipe."""
    try:
        pipe = os.open(line, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        Server(address.read_text(encoding="utf-8")).request("GET", "/")
    except (OSError, http.client.HTTPException):
        os.close(pipe)
        return None
    return pipe


@contextmanager
def shared_server(folder: Path, make: Callable[[Path], Node]) -> Iterator[Server]:
    """Yield one server for all processes that use the same folder.

    The first process starts the node, while the others wait, and writes its address into the folder. Each process holds
    the pipe of the node's orders open. The node ends when the last process has closed the pipe or has ended.

    Args:
        folder: Folder of the lock, the pipe and the address; created if it is missing.
        make: Makes a node that takes orders on a named pipe.

    Raises:
        ServerFailed: The server ended during its start, or did not answer in time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    line, address = folder / "line", folder / "address"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released with the file, also at the end of the process
        pipe = _join(line, address)
        if pipe is None:
            line.unlink(missing_ok=True)
            os.mkfifo(line)
            node = make(line).start()
            pipe = os.open(line, os.O_WRONLY)
            address.write_text(node.url, encoding="utf-8")
            node.leave()
        server = Server(address.read_text(encoding="utf-8"))
    try:
        yield server
    finally:
        os.close(pipe)
