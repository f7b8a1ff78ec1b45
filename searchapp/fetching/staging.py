"""Where files lie until all of a task's are there: a hidden folder inside the task's, with a lock."""

from __future__ import annotations

import fcntl
import filecmp
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from searchapp.errors import SearchappError, UsageError
from searchapp.files import reason, sync_folder

NAME = ".fetching"
LOCK = "lock"


class Staging:
    """The folder `.fetching` in a task's folder: `downloads` with what has arrived or is arriving, `files` with what
    is ready, under the paths that it will have. It outlives a failure, so that the next attempt resumes from it.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        self.folder = target / NAME
        self.downloads = self.folder / "downloads"
        self.files = self.folder / "files"

    def remove(self) -> None:
        """Remove it, when all that was in it is in place; the lock last, for others come in after it."""
        shutil.rmtree(self.downloads, ignore_errors=True)
        shutil.rmtree(self.files, ignore_errors=True)
        with suppress(OSError):
            (self.folder / LOCK).unlink(missing_ok=True)
            self.folder.rmdir()

    def keep_only(self, paths: Collection[str], downloads: Collection[str]) -> None:
        """Remove what is not wanted: half an archive, files of an earlier list of sources."""
        for path in self.ready():
            if path not in paths:
                (self.files / path).unlink()
        for file in self.downloads.iterdir():
            if file.stem not in downloads:
                file.unlink()

    def ready(self) -> list[str]:
        """The paths of the files that are ready, with slashes."""
        return sorted(
            file.relative_to(self.files).as_posix() for file in self.files.rglob("*") if file.is_file()
        )

    def kept_bytes(self) -> int:
        """How much of what was to be fetched is here already."""
        return sum(
            file.stat().st_size for file in self.folder.rglob("*") if file.is_file() and file.name != LOCK
        )

    def conflicts(self) -> list[str]:
        """The paths of ready files in whose place other files lie."""
        return [
            path
            for path in self.ready()
            if (self.target / path).exists()
            and not filecmp.cmp(self.files / path, self.target / path, shallow=False)
        ]

    def put_in_place(self) -> None:
        """Move everything that is ready to where it belongs, and remove this folder.

        A folder that is not there yet appears with all its files at once: a reader never sees only a part.
        """
        for entry in sorted(self.files.iterdir()):
            if entry.is_dir() and (self.target / entry.name).is_dir():
                for path in self.ready():
                    if path.split("/")[0] == entry.name:
                        place = self.target / path
                        place.parent.mkdir(parents=True, exist_ok=True)
                        (self.files / path).replace(place)
            else:
                entry.replace(self.target / entry.name)
        sync_folder(self.target)


@contextmanager
def locked(target: Path) -> Iterator[Staging]:
    """The staging folder of a task's folder, for one process at a time; the folders are made if need be.

    Raises:
        SearchappError: another process is fetching into this folder.
        UsageError: the folder can't be made or written to.
    """
    staging = Staging(target)
    made = [folder for folder in (target, *target.parents) if not folder.exists()]
    try:
        staging.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{target} can't be used: {reason(error)}: choose another folder") from error
    descriptor = _lock(staging)
    try:
        staging.downloads.mkdir(exist_ok=True)
        staging.files.mkdir(exist_ok=True)
        yield staging
    finally:
        if not any(file.is_file() and file.name != LOCK for file in staging.folder.rglob("*")):
            staging.remove()
            with suppress(OSError):  # one that holds something stays, and so do those above it
                for folder in made:
                    folder.rmdir()
        os.close(descriptor)


def _lock(staging: Staging) -> int:
    """An open file that holds the lock; the system gives it back however the process ends."""
    path = staging.folder / LOCK
    while True:
        staging.folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            continue  # who was here before has just removed the folder
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(descriptor, 20).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise SearchappError(
                f"process {holder} is fetching into {staging.target} at this moment: wait until it is done"
            ) from error
        # The lock of a file that was removed since keeps nobody else out.
        try:
            if path.stat().st_ino == os.fstat(descriptor).st_ino:
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, str(os.getpid()).encode("ascii"), 0)
                return descriptor
        except FileNotFoundError:
            pass
        os.close(descriptor)
