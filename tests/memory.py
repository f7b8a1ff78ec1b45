"""A file system in memory for the temporary files of tests and servers.

Most tests write files, and a server writes with each change of its cluster's state. On a disk, this takes a sixth of
the processor time of a test, and a quarter of the server's.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psutil

MEMORY = Path("/dev/shm")
PREFIX = "searchapp-tests-"

REQUIRED_DISK_BYTES = 4 << 30
"""Required free space; tests on real data with all servers write a third of it."""

REQUIRED_MEMORY_BYTES = 6 << 30
"""Required free memory for the files, test processes and servers."""


def in_memory() -> Path | None:
    """Find a file system in memory with enough space for the tests."""
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < REQUIRED_DISK_BYTES:
        return None
    return MEMORY if psutil.virtual_memory().available >= REQUIRED_MEMORY_BYTES else None


def own_folder(within: Path) -> Path:
    """Make the temporary folder of this process, and remove the folders of ended processes.

    Other users may enter it, because a server can run as another user.
    """
    for path in within.glob(f"{PREFIX}*"):
        pid = path.name.removeprefix(PREFIX)
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(path, ignore_errors=True)
    folder = within / f"{PREFIX}{os.getpid()}"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o711)
    return folder
