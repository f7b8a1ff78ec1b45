"""One server for all the processes that run the tests.

The process that first needs the server starts it and leaves its address in a folder that all of them know. It is also
the one to stop it: the node's line to its parent is a pipe, which nobody else can hold. Each process that uses the
server holds a shared lock, which the system takes back from one that dies; the starter stops the server once it holds
that lock alone.
"""

from __future__ import annotations

import fcntl
import http.client
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TextIO

from .node import Node
from .rest import Server

PAUSE_SECONDS = 0.2
PATIENCE_SECONDS = (
    1800.0  # with others that use the server: then something is wrong, and the starter stops it
)


class SharedServer:
    """A process's part in the server that it shares with others.

    Args:
        folder: where the processes find each other; made if it is not there
        start: starts a node, for the process that comes first
    """

    def __init__(self, folder: Path, start: Callable[[], Node]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._start = start
        self._node: Node | None = None
        self._use: TextIO | None = None

    @property
    def started_here(self) -> bool:
        """Whether this process started the server, and is the one to stop it."""
        return self._node is not None

    def open(self) -> Server:
        """The server that serves already, or else one that is started now; others wait for it meanwhile.

        Raises:
            ServerFailed: the server died while it started, or did not answer in time
        """
        with self._alone():
            server = self._serving()
            if server is None:
                self._node = self._start().start()
                server = self._node.server
                self._address.write_text(server.url, encoding="utf-8")
            self._use = (self._folder / "in-use").open("w")
            fcntl.flock(self._use, fcntl.LOCK_SH)
            return server

    def close(self) -> None:
        """Leave the server to the others; the process that started it waits until they are done, and stops it."""
        if self._use is None:
            return
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._left(at_all_costs=time.monotonic() > deadline):
            time.sleep(PAUSE_SECONDS)
        self._use = None

    def _left(self, *, at_all_costs: bool) -> bool:
        """Whether this process is done with the server; its starter is not while others use it, if it can wait."""
        assert self._use is not None
        # pytest may have removed the folder: then all others are done.
        with self._alone() if self._folder.is_dir() else nullcontext():
            if self._node is not None:
                try:
                    fcntl.flock(self._use, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if not at_all_costs:
                        return False
                self._address.unlink(missing_ok=True)  # whoever comes now starts another one
                self._node.close()
                self._node = None
            fcntl.flock(self._use, fcntl.LOCK_UN)  # closing is not enough where a process was forked off
            self._use.close()
            return True

    def _serving(self) -> Server | None:
        """The server whose address is there; None also if its starter died, and the server with it."""
        if not self._address.exists():
            return None
        server = Server(self._address.read_text(encoding="utf-8"))
        try:
            return server if server.request("GET", "/").status == 200 else None
        except (OSError, http.client.HTTPException):
            return None

    @property
    def _address(self) -> Path:
        return self._folder / "address"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Be the only process that looks for the server, starts it or leaves it."""
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield  # closing the file gives the lock back, as does the end of the process
