"""The versions of an index: the live version, the lock of the builder, and garbage collection.

One rename replaces the pointer `current`, so that a reader finds the old or the new version even if the builder is
killed. The next holder of the lock removes versions that are neither live nor contain a segment of the live one.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO, TypeVar

from searchapp.lucene.errors import (
    OTHER_FOLDER,
    CorruptIndex,
    IndexLocked,
    InvalidInput,
    LuceneError,
    Refused,
)
from searchapp.lucene.index.layout import IndexManifest, reading

LOCK = "lock"
CURRENT = "current"
NEXT = "current.next"

GRACE_SECONDS = 2.0  # time for the worker processes of a killed builder to end and release its lock

OPEN_ATTEMPTS = 5  # attempts to open a version while newer ones replace it

_VERSION = re.compile(r"[0-9]{6,}")
_POINTER = re.compile(r"([0-9]{6,}) ([0-9a-f]{8})\n?")

T = TypeVar("T")


def synchronize(path: Path) -> None:
    """Write a file or a folder to disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class IndexFolder:
    """The folder of an index, with its versions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def live(self) -> Path | None:
        """Return the folder of the live version; None without one.

        Raises:
            Refused: the folder contains other files.
            InvalidInput: the pointer is damaged.
        """
        self._refuse_foreign()
        if not (self.folder / CURRENT).exists():
            return None
        with reading(self.folder, CURRENT):
            text = (self.folder / CURRENT).read_text(encoding="ascii", errors="replace")
        pointer = _POINTER.fullmatch(text)
        if pointer is None or pointer[2] != _checksum(pointer[1]):
            raise CorruptIndex(self.folder, f"{CURRENT} names no version")
        return self.folder / pointer[1]

    def read_live(self, read: Callable[[Path], T]) -> T | None:
        """Apply a function to the live version; return None without one.

        Raises:
            InvalidInput: the version is damaged or missing, and no newer one has replaced it.
        """
        for attempt in range(OPEN_ATTEMPTS):
            folder = self.live()
            if folder is None:
                return None
            try:
                return read(folder)
            except InvalidInput:
                if self.live() == folder or attempt == OPEN_ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    @contextmanager
    def building(self, before: str) -> Iterator[Path]:
        """Create an empty folder for a version, and make the version live at the end of the block.

        `before` is the `live_name` when the new version was requested.

        Raises:
            IndexLocked: another process builds this index, or has just built it.
            Refused: the folder contains other files.
        """
        self._refuse_foreign()
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._locked() as other_builder:
            if self.live_name() != before:
                raise IndexLocked(f"the index in {self.folder}", other_builder)
            self._collect_garbage()
            version = self.folder / f"{max([0, *map(int, self._names())]) + 1:06d}"
            try:
                version.mkdir()
                yield version
                self._publish(version)
            except BaseException:
                with suppress(OSError, LuceneError):  # the next build collects the rest
                    if self.live_name() != version.name:  # not yet published
                        self._collect_garbage()
                raise
            self._collect_garbage()

    def all(self) -> list[Path]:
        """Return the folders of all versions, complete or not, oldest first."""
        if not self.folder.is_dir():
            return []
        return [self.folder / name for name in sorted(self._names(), key=int)]

    def is_being_built(self) -> bool:
        try:
            with (self.folder / LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def remove(self) -> None:
        """Remove the index with all its versions, if it exists.

        Raises:
            IndexLocked: another process builds it.
            Refused: the folder contains other files.
        """
        self._refuse_foreign()
        if not self.folder.exists():
            return
        with self._locked():
            # The pointer first, so that no reader opens a part of the index.
            (self.folder / CURRENT).unlink(missing_ok=True)
            shutil.rmtree(self.folder)

    def _publish(self, version: Path) -> None:
        for path in (*version.iterdir(), version, self.folder):
            synchronize(path)
        pointer = self.folder / NEXT
        pointer.write_text(f"{version.name} {_checksum(version.name)}\n", encoding="ascii")
        synchronize(pointer)
        pointer.replace(self.folder / CURRENT)
        synchronize(self.folder)

    @contextmanager
    def _locked(self) -> Iterator[str]:
        """Hold the lock; yield the process number of the builder that was waited for, else ""."""
        # The lock belongs to the open file, so that the system releases it when the process ends.
        with (self.folder / LOCK).open("a+", encoding="ascii") as lock:
            other_builder = self._acquire(lock)
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield other_builder

    def _acquire(self, lock: TextIO) -> str:
        builder, has_waited = "", False
        deadline = time.monotonic() + GRACE_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return builder
            except BlockingIOError:
                lock.seek(0)
                builder = lock.read().strip()
            # The first failure may come from a process in `is_being_built`.
            if has_waited and (_is_alive(builder) or time.monotonic() > deadline):
                raise IndexLocked(f"the index in {self.folder}", builder)
            has_waited = True
            time.sleep(0.02)

    def _collect_garbage(self) -> None:
        needed = self.needed()
        for name in self._names():
            if name not in needed:
                shutil.rmtree(self.folder / name, ignore_errors=True)
        with suppress(OSError):
            (self.folder / NEXT).unlink()

    def live_name(self) -> str:
        """Return the name of the live version; "" without one, or if the pointer is damaged."""
        try:
            live = self.live()
        except InvalidInput:
            return ""
        return live.name if live else ""

    def needed(self) -> set[str]:
        """Return the names of the live version and of those whose segments it keeps.

        Without a readable manifest, all older versions count as needed.
        """
        live = self.live_name()
        if not live:
            return set()
        try:
            return {live, *IndexManifest.read(self.folder / live).kept}
        except LuceneError:
            return {name for name in self._names() if int(name) <= int(live)}

    def _names(self) -> list[str]:
        return [entry.name for entry in self.folder.iterdir() if _VERSION.fullmatch(entry.name)]

    def _refuse_foreign(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise Refused(f"{self.folder} is a file instead of the folder of an index: move it away")
        for entry in self.folder.iterdir() if self.folder.is_dir() else ():
            if entry.name not in (LOCK, CURRENT, NEXT) and not _VERSION.fullmatch(entry.name):
                raise Refused(
                    f"{self.folder} contains {entry.name}, which is not part of an index: move it "
                    f"away, or {OTHER_FOLDER}"
                )


def _checksum(name: str) -> str:
    return f"{zlib.crc32(name.encode()):08x}"


def _is_alive(pid: str) -> bool:
    """Return whether a process has this number; "": the builder has not written its number yet."""
    try:
        with suppress(PermissionError):  # a process of another user
            os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    return True
