"""Which server is used: one that is given, or a node of our own, which several processes may share."""

from __future__ import annotations

import fcntl
import http.client
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .distribution import ServerFailed
from .node import Node
from .rest import Server

VARIABLE = "SEARCHAPP_TEST_URL"


def given_server() -> Server | None:
    """The server that SEARCHAPP_TEST_URL names, or None when it is unset.

    Raises:
        ServerFailed: it does not answer as Elasticsearch does. Whoever names a server means it, so that
            this is never a reason to look for another one.
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
    """The server that is given, or a node for the length of the block."""
    if server := given_server():
        yield server
        return
    with Node() as node:
        yield node.server


@contextmanager
def shared_server(folder: Path, make: Callable[[Path], Node]) -> Iterator[Server]:
    """One server for all processes that name the same folder.

    The first process starts it, while the others wait, and leaves its address in the folder. Each process holds the
    line on which the node takes orders. When the last process has closed it, or has ended, the node ends.

    Args:
        folder: where the processes find each other; made if it is not there
        make: a node that takes orders on the named pipe it is given

    Raises:
        ServerFailed: the server died while it started, or did not answer in time
    """
    folder.mkdir(parents=True, exist_ok=True)
    line, address = folder / "line", folder / "address"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # given back with the file, as at the end of the process
        held = None
        with suppress(OSError):  # there is none, or nobody takes orders there any more
            held = os.open(line, os.O_WRONLY | os.O_NONBLOCK)
        if held is None:
            line.unlink(missing_ok=True)
            os.mkfifo(line)
            node = make(line).start()
            held = os.open(line, os.O_WRONLY)
            address.write_text(node.url, encoding="utf-8")
            node.leave()
        server = Server(address.read_text(encoding="utf-8"))
    try:
        yield server
    finally:
        os.close(held)
