"""Versions of an index: which one is live, and the lock of its builder.

The pointer `current` is replaced by one rename, so a reader finds the old version or the new one whenever the
builder is killed. A version that is neither live nor has a segment of the live one is a leftover, removed by the next
holder of the lock. A CRC-32 follows the name in `current`: a turned bit must not make a leftover live.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from searchapp.errors import BeingBuilt, DataError, EngineRefused, SearchappError
from searchapp.lucene.index.arrays import synchronize
from searchapp.lucene.index.layout import Manifest, damaged, outdated, reading

LOCK = "lock"
CURRENT = "current"
NEXT = "current.next"

LAST_BREATH_SECONDS = 2.0
"""How long the helpers of a builder that was killed may take to notice, and to let go of the lock."""

_VERSION = re.compile(r"[0-9]{6,}")
_POINTER = re.compile(r"([0-9]{6,})(?: ([0-9a-f]{8}))?\n?")
"""What `current` says; that of an earlier searchapp has no checksum."""


class Versions:
    """The folder of one index."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def serving(self) -> Path | None:
        """The folder of the version that serves, None when there is none.

        Raises:
            EngineRefused: the folder holds something else.
            DataError: the pointer is damaged.
            SearchappError: it can't be read.
        """
        self._refuse_foreign()
        if not (self.folder / CURRENT).exists():
            return None
        with reading(self.folder, CURRENT):
            pointer = _POINTER.fullmatch(
                (self.folder / CURRENT).read_text(encoding="ascii", errors="replace")
            )
        if pointer is not None and pointer[2] is None:
            raise outdated(self.folder)
        if pointer is None or pointer[2] != _checksum(pointer[1]):
            raise damaged(self.folder, f"{CURRENT} names no version")
        return self.folder / pointer[1]

    @contextmanager
    def building(self, before: str) -> Iterator[Path]:
        """A new, empty folder to build a version in; it serves once the block ends without an error.

        `before` is the name of the version that served when the new one was asked for, see `serving_name`.

        Raises:
            BeingBuilt: another process is building this index, or has built it while this one waited for the lock:
                what it has built may be what is asked for.
            EngineRefused: the folder holds something else.
        """
        self._refuse_foreign()
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._locked() as waited_for:
            if self.serving_name() != before:
                raise BeingBuilt(f"the index in {self.folder}", waited_for)
            self._remove_leftovers()
            version = self.folder / f"{max([0, *map(int, self._names())]) + 1:06d}"
            try:
                version.mkdir()
                yield version
                self._let_serve(version)
            except BaseException:
                with suppress(OSError, SearchappError):  # what stays is removed by the next build
                    if self.serving_name() != version.name:  # else it serves: what failed came after that
                        self._remove_leftovers()
                raise
            self._remove_leftovers()

    def all(self) -> list[Path]:
        """The folders of every version, complete or not, oldest first."""
        if not self.folder.is_dir():
            return []
        return [self.folder / name for name in sorted(self._names(), key=int)]

    def is_being_built(self) -> bool:
        """Whether a process holds the lock at this moment."""
        try:
            with (self.folder / LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def remove(self) -> None:
        """Remove the index with all its versions; nothing happens if there is none.

        Raises:
            BeingBuilt: another process is building it.
            EngineRefused: the folder holds something else.
        """
        self._refuse_foreign()
        if not self.folder.exists():
            return
        with self._locked():
            (self.folder / CURRENT).unlink(missing_ok=True)  # first of all: from here on there is no index
            shutil.rmtree(self.folder)

    def _let_serve(self, version: Path) -> None:
        for file in version.iterdir():
            synchronize(file)
        synchronize(version)
        synchronize(self.folder)
        pointer = self.folder / NEXT
        pointer.write_text(f"{version.name} {_checksum(version.name)}\n", encoding="ascii")
        synchronize(pointer)
        pointer.replace(self.folder / CURRENT)
        synchronize(self.folder)

    @contextmanager
    def _locked(self) -> Iterator[str]:
        """Hold the lock of the index; who held it before is given, if this process had to wait."""
        # The lock belongs to the open file: the system gives it back however the process ends.
        with (self.folder / LOCK).open("a+", encoding="ascii") as lock:
            before = self._acquire(lock)
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield before

    def _acquire(self, lock: TextIO) -> str:
        """Take the lock; returns the number of the process that was waited for, "" if none was."""
        builder, waited = "", False
        until = time.monotonic() + LAST_BREATH_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return builder
            except BlockingIOError:
                lock.seek(0)
                builder = lock.read().strip()
            # Once is no proof: somebody may have looked whether there is a builder at this very moment.
            if waited and (_is_alive(builder) or time.monotonic() > until):
                raise BeingBuilt(f"the index in {self.folder}", builder)
            waited = True
            time.sleep(0.02)

    def _remove_leftovers(self) -> None:
        needed = self.needed()
        for name in self._names():
            if name not in needed:
                shutil.rmtree(self.folder / name, ignore_errors=True)
        with suppress(OSError):
            (self.folder / NEXT).unlink()

    def serving_name(self) -> str:
        """The name of the version that serves, "" if none does, or none can be found any more.

        Raises:
            SearchappError: the pointer can't be read at the moment.
        """
        try:
            serving = self.serving()
        except DataError:
            return ""
        return serving.name if serving else ""

    def needed(self) -> set[str]:
        """Return the names of the version that serves and of those whose segments it keeps.

        Where its manifest can't be read, all that are older than it count.

        Raises:
            SearchappError: the pointer can't be read at the moment.
        """
        serving = self.serving_name()
        if not serving:
            return set()
        try:
            return {serving, *Manifest.read(self.folder / serving).kept}
        except SearchappError:
            return {name for name in self._names() if int(name) <= int(serving)}

    def _names(self) -> list[str]:
        return [entry.name for entry in self.folder.iterdir() if _VERSION.fullmatch(entry.name)]

    def _refuse_foreign(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise EngineRefused(
                f"{self.folder} is a file, where the folder of an index should be: move it away"
            )
        for entry in self.folder.iterdir() if self.folder.is_dir() else ():
            if entry.name not in (LOCK, CURRENT, NEXT) and not _VERSION.fullmatch(entry.name):
                raise EngineRefused(
                    f"{self.folder} holds {entry.name}, which searchapp did not put there: "
                    "move it away, or choose another --home"
                )


def _checksum(name: str) -> str:
    return f"{zlib.crc32(name.encode()):08x}"


def _is_alive(pid: str) -> bool:
    """Whether there is a process of this number; a builder that has not told its number yet will do so."""
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
