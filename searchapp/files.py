"""Files and folders that are written whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from searchapp.errors import SearchappError, UsageError

ABANDONED_SECONDS = 3600.0


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
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file")
    if not replace and path.exists():
        raise UsageError(f"{path} exists already: choose another name, or replace it with --overwrite")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}: make it, or choose another place")
    if path.exists() and not path.is_file():
        # A device or a pipe can't be replaced, only written to.
        yield from _written_directly(path)
        return
    temporary = _beside(path)
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise SearchappError(_failed(path, error)) from error
    finally:
        temporary.unlink(missing_ok=True)


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
    if path.exists() and not replace:
        raise UsageError(f"{path} exists already: choose another name, or replace it with --overwrite")
    made = [parent for parent in path.parents if not parent.exists()]
    temporary = _beside(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path)
        temporary.mkdir()
        yield temporary
        for file in temporary.iterdir():
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
        sync_folder(temporary)
        _put_in_place(temporary, path)
        sync_folder(path.parent)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        if isinstance(error, OSError):
            raise SearchappError(_failed(path, error)) from error
        raise


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
        raise UsageError(f"{nearest} is no folder that may be written to: choose another place")


def _put_in_place(temporary: Path, path: Path) -> None:
    """Rename a finished folder to its name; what stood there is moved away first and comes back on failure."""
    if not path.exists():
        temporary.rename(path)
        return
    old = _beside(path)
    path.rename(old)
    try:
        temporary.rename(path)
    except OSError:
        old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _beside(path: Path) -> Path:
    """A hidden name in the same folder, hence on the same file system, that nothing else uses."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")


def _remove_abandoned(path: Path) -> None:
    """Remove what processes that were killed have left of this path; the young may still be at work."""
    pattern = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{12}\.tmp")
    for entry in path.parent.iterdir():
        if pattern.fullmatch(entry.name) and time.time() - entry.lstat().st_mtime > ABANDONED_SECONDS:
            shutil.rmtree(entry, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder, and what they stand for, survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _failed(path: Path, error: OSError) -> str:
    return f"{path} could not be written: {(error.strerror or str(error)).lower()}; nothing was left behind"
