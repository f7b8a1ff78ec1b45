"""A file system in memory for what tests and their servers write: nothing of it is to outlive them.

Most tests write files, and a server writes with each change of its cluster's state. On a disk that takes a sixth of the
processor time of a test, and a quarter of a server's; only a loss of power would show that it was not one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psutil

MEMORY = Path("/dev/shm")
PREFIX = "searchapp-tests-"

ROOM_BYTES = 4 << 30
"""Free space that is required there in bytes; tests on real data with all servers write a third of it."""

LEFT_BYTES = 6 << 30
"""Free memory that is required in bytes: test processes and servers need the rest."""


def in_memory() -> Path | None:
    """Find a file system in memory with enough space for the tests."""
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < ROOM_BYTES:
        return None
    return MEMORY if psutil.virtual_memory().available >= LEFT_BYTES else None


def own_folder(within: Path) -> Path:
    """Make the temporary folder of this process, and remove those of ended processes.

    Others may enter it, as a server that runs as another user does.
    """
    for path in within.glob(f"{PREFIX}*"):
        pid = path.name.removeprefix(PREFIX)
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(path, ignore_errors=True)
    folder = within / f"{PREFIX}{os.getpid()}"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o711)
    return folder
