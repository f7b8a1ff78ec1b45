"""Files and folders that are written whole or not at all.

What is being written has a hidden name beside its own, `.NAME.searchapp-<16 digits>.tmp`, and a lock, which the system
gives back however the process ends: the next one that writes there removes what nobody holds any more.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from searchapp.errors import DataError, SearchappError, UsageError

ABANDONED_SECONDS = 3600.0
"""The age from which on a thing is taken for left over where nothing can be locked, or was not by an older version."""

LEAVING_SECONDS = 2.0
"""How long processes may take to end after the one that started them was killed."""

_OURS = re.compile(r"\.(?P<name>.+)\.searchapp-[0-9a-f]{16}\.(?P<kind>tmp|old)")
_OLDER = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{12}\.tmp")


def first_there(folder: Path, names: Sequence[str]) -> Path:
    """The file in a folder that has the first of several names; of the first name, where no file has any."""
    paths = [folder / name for name in names]
    return next((path for path in paths if path.exists()), paths[0])


@contextmanager
def whole_file(path: Path, *, replace: bool = True) -> Iterator[BinaryIO]:
    """A binary file to write to that appears under its name only once it is complete and on disk.

    Raises:
        UsageError: the file exists and may not be replaced, or its folder does not exist.
        SearchappError: the disk is full, or the folder may not be written to.
    """
    path = path.resolve()  # where a link leads to is what is replaced, not the link
    require_place(path, replace=replace)
    if path.exists() and not path.is_file():
        # A device or a pipe can't be replaced, only written to.
        yield from _written_directly(path)
        return
    _remove_abandoned(path)
    temporary = None
    try:
        temporary, descriptor = _begun(path)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise SearchappError(_failed(path, error)) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def require_place(path: Path, *, replace: bool) -> None:
    """Make sure that a file can be written there, before any work is done for it.

    Raises:
        UsageError: the file exists and may not be replaced, or its folder does not exist.
    """
    path = path.resolve()
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file")
    if not replace and path.exists():
        raise UsageError(f"{path} exists already: choose another name, or replace it with --overwrite")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}: make it, or choose another place")


def _written_directly(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("wb") as file:
            yield file
    except OSError as error:
        raise SearchappError(_failed(path, error)) from error


@contextmanager
def whole_folder(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """A folder to fill that appears under its name only once everything in it is complete and on disk.

    Raises:
        UsageError: the folder exists and may not be replaced.
        SearchappError: the disk is full, or the parent may not be written to.
    """
    path = path.resolve()  # where a link leads to is what is replaced, not the link
    _remove_abandoned(path)
    if path.exists() and not replace:
        raise UsageError(f"{path} exists already: choose another name, or replace it with --overwrite")
    made = [parent for parent in path.parents if not parent.exists()]
    temporary = descriptor = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary, descriptor = _begun(path, folder=True)
        yield temporary
        for file in temporary.iterdir():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
        sync_folder(temporary)
        _put_in_place(temporary, path)
        sync_folder(path.parent)
    except BaseException as error:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        if isinstance(error, OSError):
            raise SearchappError(_failed(path, error)) from error
        raise
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes from changing a file that is read, changed and written; its folder is made if need be.

    Raises:
        SearchappError: the folder can't be made, or the lock not be taken.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The lock belongs to the open file: the system gives it back however the process ends.
        with path.with_name(f"{path.name}.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise SearchappError(f"{path} could not be written: {reason(error)}") from error


@contextmanager
def locked_by(path: Path) -> Iterator[None]:
    """Keep other processes out that lock by the same file, which is there and is not written to itself.

    Raises:
        SearchappError: it can't be opened, or the lock not be taken.
    """
    try:
        with path.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise SearchappError(f"{path} could not be locked: {reason(error)}") from error


@contextmanager
def alone_in(folder: Path, refusal: str) -> Iterator[None]:
    """Be the only process that works in a folder, which is made if need be; the system ends that with the process.

    Raises:
        SearchappError: another one does: the message is `refusal`, with its number in the place of {process}.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a+b")
    except OSError as error:
        raise SearchappError(f"{folder} could not be written to: {reason(error)}") from error
    with lock:
        until = time.monotonic() + LEAVING_SECONDS
        while _lock(lock.fileno()) is False:
            if time.monotonic() > until:
                lock.seek(0)
                process = lock.read(20).decode("ascii", "replace").strip() or "unknown"
                raise SearchappError(refusal.replace("{process}", process))
            time.sleep(LEAVING_SECONDS / 20)
        with suppress(OSError):  # the number is for the message of another process alone
            lock.truncate(0)
            lock.write(str(os.getpid()).encode())
            lock.flush()
        yield


def write_files(
    out: Path, writers: Mapping[str, Callable[[BinaryIO], object]], *, replace: bool = False
) -> None:
    """Write one file as `out`, or several into a folder of that name, whole or not at all.

    Raises:
        UsageError: something stands there already, and `replace` is not set.
    """
    if len(writers) == 1:
        (writer,) = writers.values()
        with whole_file(out, replace=replace) as file:
            writer(file)
        return
    with whole_folder(out, replace=replace) as folder:
        for name, writer in writers.items():
            with (folder / name).open("wb") as file:
                writer(file)


def require_writable(folder: Path) -> None:
    """Make sure that a folder, or the nearest one above it that exists, may be written to.

    Raises:
        UsageError: it may not.
    """
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise UsageError(f"{nearest} is not a folder that can be written to: choose another place")


def _put_in_place(temporary: Path, path: Path) -> None:
    """Rename a finished folder to its name; what stood there is moved away first and comes back on failure."""
    if not path.exists():
        temporary.rename(path)
        return
    old = beside(path, "old")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _lock(descriptor)  # nobody shall take for left over what this process may have to put back
        path.rename(old)
        try:
            temporary.rename(path)
        except OSError:
            old.rename(path)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        os.close(descriptor)


def beside(path: Path, kind: str = "tmp") -> Path:
    """A hidden name in the same folder, hence on the same file system, that nothing else uses."""
    return path.with_name(f".{path.name}.searchapp-{secrets.token_hex(8)}.{kind}")


def _begun(path: Path, *, folder: bool = False) -> tuple[Path, int]:
    """A new file or folder beside a path, open and locked."""
    while True:
        temporary = beside(path, "tmp")
        if folder:
            temporary.mkdir()
        try:
            descriptor = os.open(
                temporary, os.O_RDONLY if folder else os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666
            )
        except OSError as error:
            if folder and isinstance(error, FileNotFoundError):
                continue  # another process took it for left over before it was locked
            with suppress(OSError):
                temporary.rmdir()
            raise
        if _lock(descriptor) is not False and _is_still_there(temporary, descriptor):
            return temporary, descriptor
        os.close(descriptor)


def _is_still_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> bool | None:
    """Hold the lock of an open file or folder; False if another process does, None where there are no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _remove_abandoned(path: Path) -> None:
    """Remove what processes that were killed have left in the folder of a path; none of it is needed.

    What stood in the place of a folder, and was moved away when the process was killed, is put back.
    """
    with suppress(OSError):
        for entry in list(os.scandir(path.parent)):
            ours = _OURS.fullmatch(entry.name)
            older = _OLDER.fullmatch(entry.name)
            if ours or (older and older["name"] == path.name):
                with suppress(OSError):
                    _remove_if_abandoned(Path(entry.path), locks=ours is not None)


def _remove_if_abandoned(entry: Path, *, locks: bool) -> None:
    descriptor = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        held = _lock(descriptor) if locks else None
        old_enough = time.time() - os.fstat(descriptor).st_mtime > ABANDONED_SECONDS
        if held is False or (held is None and not old_enough):
            return
        match = _OURS.fullmatch(entry.name)
        if match and match["kind"] == "old" and not (place := entry.with_name(match["name"])).exists():
            entry.rename(place)
        elif entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink()
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder, and what they stand for, survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def reason(error: OSError) -> str:
    """Why the system refused, in words, with what to do where that is not plain."""
    words = (error.strerror or str(error)).lower()
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"{words}: allow more with `ulimit -n 1024`"
    return words


def unreadable(path: Path, error: OSError) -> DataError:
    """The error that a file can't be read: there is none, or the system says why."""
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: there is no such file")
    return DataError(f"{path} can't be read: {reason(error)}")


def _failed(path: Path, error: OSError) -> str:
    return f"{path} could not be written: {reason(error)}; nothing was left behind"
