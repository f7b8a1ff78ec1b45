"""The process that builds an index: on which machine, and whether it is still there."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Builder:
    """The process that builds a version: its machine, number, and start, in seconds since 1970.

    Numbers are given again to other processes; together with the start they are not. `booted` is when the machine
    started: two machines, or containers, may have one name. It is 0 where an earlier searchapp did not write it.
    """

    host: str
    pid: int
    started: float
    booted: float = 0.0

    @classmethod
    def this_process(cls) -> Builder:
        return cls(socket.gethostname(), os.getpid(), psutil.Process().create_time(), psutil.boot_time())

    def is_here(self) -> bool:
        """Whether it is, or was, a process of this machine."""
        return self.host == socket.gethostname() and (
            not self.booted or abs(self.booted - psutil.boot_time()) < 60
        )

    def is_this_process(self) -> bool:
        return self.pid == os.getpid() and self.is_alive()

    def is_alive(self) -> bool:
        """Whether the process is there; only this machine's processes can be looked up."""
        try:
            return bool(abs(psutil.Process(self.pid).create_time() - self.started) < 1)
        except psutil.Error:
            return False

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"
