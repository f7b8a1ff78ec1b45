"""Read foreign files, write files and folders atomically, and compute their digests.

An unfinished file or folder has a hidden name beside the final one, `.NAME.searchapp-<16 digits>.tmp`, and a
lock, which the system releases when the process ends. The next writer in that folder removes unlocked ones.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from itertools import takewhile
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.model import Document
from searchapp.text import visible

# The deepest nesting of JSON and TOML.
MOST_LEVELS = 100

# Prefixes of open descriptors, such as the pipe of the shell's `<(command)`.
_HANDED_OVER = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")

# Matches JSON that may contain a lone surrogate or an infinite number.
_SUSPECT = re.compile(r"\\u[dD][89a-fA-F]|[0-9]{300}|[eE]\+?[0-9]{3}")

_HALF = re.compile(
    r"(?<!\\)(?:\\\\)*(?:(\\u[dD][89abAB]..)(?!\\u[dD][c-fC-F])|"
    r"(?:\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|(\\u[dD][c-fC-F]..))"
)


class NotAFileError(OSError):
    """The path is a device, a pipe or an invalid file name."""


def open_file(path: Path) -> BufferedReader:
    """Open a regular file for reading, or a pipe that is open already.

    Raises:
        NotAFileError: the path is not a file.
        OSError: the file cannot be opened.
    """
    try:
        return open(path, "rb", opener=_open)  # Path.open takes no opener
    except ValueError as error:  # NUL, or half a character
        raise NotAFileError(errno.EINVAL, "not a valid file name", str(path)) from error


def _open(path: str, flags: int) -> int:
    # O_NONBLOCK: opening a pipe would wait for its writer. Reading from it waits as usual.
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    is_pipe = stat.S_ISFIFO(mode)
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (is_pipe and path.startswith(_HANDED_OVER)):
        os.set_blocking(descriptor, True)
        return descriptor
    os.close(descriptor)
    raise NotAFileError(errno.EINVAL, f"it is a {'pipe' if is_pipe else 'device'}, not a file", path)


def read_bytes(path: Path) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: the file cannot be read.
    """
    with open_file(path) as file:
        return file.read()


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Return the text of a file, with CR and CRLF as LF.

    Raises:
        OSError: the file cannot be read.
        UnicodeDecodeError: the encoding is wrong.
    """
    with io.TextIOWrapper(open_file(path), encoding=encoding) as file:
        return file.read()


def parse_json(text: str, *, file_names: bool = False) -> Any:
    """Parse JSON; reject NaN, infinities, lone surrogates and more than `MOST_LEVELS` levels.

    With `file_names`, strings may be file names that are not UTF-8.

    Raises:
        json.JSONDecodeError: the text is invalid.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError:
        raise
    except RecursionError as error:
        raise json.JSONDecodeError(_TOO_DEEP, text, 0) from error
    except ValueError as error:
        raise json.JSONDecodeError(
            str(error) if isinstance(error, _Constant) else _DIGITS, text, 0
        ) from error
    # Searching the text is fast, and few values need the slower check.
    is_suspect = _SUSPECT.search(text) is not None
    problem = None
    if is_suspect or text.count("[") + text.count("{") > MOST_LEVELS:
        problem = _problem(value, "surrogateescape" if file_names else "strict", levels_only=not is_suspect)
    if problem:
        halves = (match for match in _HALF.finditer(text) if match.lastindex)
        half = next(halves, None) if problem == _HALVED else None
        raise json.JSONDecodeError(problem, text, half.start(half.lastindex or 0) if half else 0)
    return value


def without_halves(json_text: str) -> str:
    r"""Return JSON with the replacement character instead of escapes that are half of a surrogate pair.

    >>> without_halves(r'"\ud83d\ude00 \ud83d \\ud83d"')
    '"\\ud83d\\ude00 \\ufffd \\\\ud83d"'
    """
    return _HALF.sub(lambda match: match[0][:-6] + r"\ufffd" if match.lastindex else match[0], json_text)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML with at most `MOST_LEVELS` levels.

    Raises:
        tomllib.TOMLDecodeError: the text is invalid.
    """
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise tomllib.TOMLDecodeError(_TOO_DEEP) from error
    except ValueError as error:
        raise tomllib.TOMLDecodeError(_DIGITS) from error
    if problem := _problem(value, levels_only=True):
        raise tomllib.TOMLDecodeError(problem)
    return value


_TOO_DEEP = f"lists and objects are nested more than {MOST_LEVELS} deep"
_HALVED = "an escape is half of a surrogate pair"
_INFINITE = "a number is too large"
_DIGITS = "a number has too many digits"


class _Constant(ValueError):
    pass


def _no_constant(name: str) -> NoReturn:
    raise _Constant(f"there is no {name} in JSON")


def _problem(value: object, surrogates: str = "strict", *, levels_only: bool = False) -> str | None:
    """Return the problem of a JSON value, or None; `surrogates` is an error handler of `str.encode`."""
    level = [value]
    for _depth in range(MOST_LEVELS + 1):
        if not level:
            return None
        for item in level if not levels_only else ():
            if isinstance(item, float | int) and not _is_finite(item):
                return _INFINITE
            if isinstance(item, str | dict) and not _encodable(item, surrogates):
                return _HALVED
        level = [inner for item in level for inner in _children(item)]
    return _TOO_DEEP if level else None


def _children(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # of an integer beyond all floats
        return False


def _encodable(texts: str | Iterable[str], surrogates: str) -> bool:
    try:
        "".join(texts).encode("utf-8", surrogates)
    except UnicodeEncodeError:
        return False
    return True


# Commands write to stdout instead of a file of this name.
STDOUT = Path("-")

# Where locks are not supported, an older temporary file counts as abandoned.
ABANDONED_SECONDS = 3600.0

# How long processes may take to end after their parent was killed.
LEAVING_SECONDS = 2.0

_OURS = re.compile(r"\.(?P<name>.+)\.searchapp-[0-9a-f]{16}\.(?P<kind>tmp|old)")
_OLDER = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{12}\.tmp")


def first_existing(folder: Path, names: Sequence[str]) -> Path:
    """Return the path of the first name that exists in the folder, or else of the first name."""
    paths = [folder / name for name in names]
    return next((path for path in paths if path.exists()), paths[0])


@contextmanager
def atomic_file(path: Path, *, replace: bool = True) -> Iterator[BinaryIO]:
    """Yield a binary file that gets its name, or goes to `STDOUT`, only once it is complete.

    Raises:
        UsageError: the file exists and `replace` is false, or its folder does not exist.
        SearchappError: the file cannot be written.
    """
    if path == STDOUT:
        with io.BytesIO() as content:
            yield content
            _write_stdout(content.getvalue())
        return
    path = path.resolve()  # replaces the target of a link, not the link
    require_place(path, replace=replace)
    if path.exists() and not path.is_file():
        try:
            with path.open("wb") as device:  # a device cannot be replaced
                yield device
        except OSError as error:
            raise SearchappError(_failed(path, error)) from error
        return
    _remove_abandoned(path)
    temporary = None
    try:
        temporary, descriptor = _create_temporary(path)
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
    """Check that a file can be created, before the work for it begins.

    Raises:
        UsageError: the file exists and `replace` is false, or its folder does not exist.
    """
    if path == STDOUT:
        return
    path = path.resolve()
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file")
    if not replace and path.exists():
        raise UsageError(f"{path} exists already: choose another name, or replace it with --overwrite")
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}: create it, or choose another one")


def require_folder(path: Path) -> None:
    """Reject `STDOUT` as the name of a folder.

    Raises:
        UsageError: the path is `STDOUT`.
    """
    if path == STDOUT:
        raise UsageError("several files can't be written to stdout: give a folder with --out")


def _write_stdout(content: bytes) -> None:
    if sys.stdout.isatty():
        sys.stdout.write(visible(content.decode("utf-8", "replace")))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    sys.stdout.flush()


@contextmanager
def atomic_folder(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield a folder that gets its name only once its files are complete and on disk.

    Raises:
        UsageError: the folder exists and `replace` is false.
        SearchappError: the folder cannot be written.
    """
    require_folder(path)
    path = path.resolve()  # replaces the target of a link, not the link
    _remove_abandoned(path)
    if path.exists() and not replace:
        raise UsageError(f"{path} exists already: choose another name, or replace it with --overwrite")
    created_parents = [parent for parent in path.parents if not parent.exists()]
    temporary = descriptor = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary, descriptor = _create_temporary(path, folder=True)
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_dir():
                sync_folder(file)
                continue
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
        sync_folder(temporary)
        _put_in_place(temporary, path)
        sync_folder(path.parent)
    except BaseException as error:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        for parent in created_parents:
            with suppress(OSError):
                parent.rmdir()
        if isinstance(error, OSError):
            raise SearchappError(_failed(path, error)) from error
        raise
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file that is read, changed and written; create its folder.

    Raises:
        SearchappError: the folder cannot be created or the lock cannot be taken.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _exclusive(path.with_name(f"{path.name}.lock"), "ab"):
            yield
    except OSError as error:
        raise SearchappError(f"{path} could not be written: {reason(error)}") from error


@contextmanager
def lock_on(path: Path) -> Iterator[None]:
    """Hold the lock of an existing file.

    Raises:
        SearchappError: the file cannot be opened or locked.
    """
    try:
        with _exclusive(path, "rb"):
            yield
    except OSError as error:
        raise SearchappError(f"{path} can't be locked: {reason(error)}") from error


@contextmanager
def _exclusive(path: Path, mode: str) -> Iterator[None]:
    # The lock belongs to the open file: the system releases it however the process ends.
    with path.open(mode) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def exclusive_folder(folder: Path, refusal: str) -> Iterator[None]:
    """Create a folder and hold its lock until the block or the process ends.

    Raises:
        SearchappError: another process holds the lock. The message is `refusal` with the id of that process
            for `{process}`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a+b")
    except OSError as error:
        raise SearchappError(f"{folder} is not writable: {reason(error)}") from error
    with lock:
        until = time.monotonic() + LEAVING_SECONDS
        while _lock(lock.fileno()) is False:
            if time.monotonic() > until:
                lock.seek(0)
                process = lock.read(20).decode("ascii", "replace").strip() or "unknown"
                raise SearchappError(refusal.replace("{process}", process))
            time.sleep(LEAVING_SECONDS / 20)
        with suppress(OSError):  # only messages of other processes need the id
            lock.truncate(0)
            lock.write(str(os.getpid()).encode())
            lock.flush()
        yield


def write_files(
    out: Path, writers: Mapping[str, Callable[[BinaryIO], object]], *, replace: bool = False
) -> None:
    """Write one file as `out`, or several into a folder of that name, atomically.

    Raises:
        UsageError: `out` exists and `replace` is false.
    """
    if len(writers) == 1:
        (writer,) = writers.values()
        with atomic_file(out, replace=replace) as file:
            writer(file)
        return
    with atomic_folder(out, replace=replace) as folder:
        for name, writer in writers.items():
            with (folder / name).open("wb") as file:
                writer(file)


def require_writable(folder: Path) -> None:
    """Check that a folder, or its nearest existing parent, is writable.

    Raises:
        UsageError: the folder is not writable.
    """
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise UsageError(f"{nearest} is not a writable folder: choose another one")


def _put_in_place(temporary: Path, path: Path) -> None:
    """Rename a finished folder to its name; restore the previous one on failure."""
    if not path.exists():
        temporary.rename(path)
        return
    old = beside(path, "old")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _lock(descriptor)  # else another process could remove the old folder as abandoned
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
    """Return an unused hidden name in the same folder, hence on the same file system."""
    return path.with_name(f".{path.name}.searchapp-{secrets.token_hex(8)}.{kind}")


def _create_temporary(path: Path, *, folder: bool = False) -> tuple[Path, int]:
    """Create a temporary file or folder beside a path, and return it open and locked."""
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
                continue  # another process removed it as abandoned before it was locked
            with suppress(OSError):
                temporary.rmdir()
            raise
        if _lock(descriptor) is not False and _is_same_file(temporary, descriptor):
            return temporary, descriptor
        os.close(descriptor)


def _is_same_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> bool | None:
    """Lock an open file or folder; return False if it is locked already, None where locks are not supported."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _remove_abandoned(path: Path) -> None:
    """Remove files and folders of killed processes, and restore a folder that one has moved away."""
    with suppress(OSError):
        for entry in list(os.scandir(path.parent)):
            own = _OURS.fullmatch(entry.name)
            of_older_version = _OLDER.fullmatch(entry.name)
            if own or (of_older_version and of_older_version["name"] == path.name):
                with suppress(OSError):
                    _remove_if_abandoned(Path(entry.path), locks=own is not None)


def _remove_if_abandoned(entry: Path, *, locks: bool) -> None:
    descriptor = os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        is_locked = _lock(descriptor) if locks else None
        old_enough = time.time() - os.fstat(descriptor).st_mtime > ABANDONED_SECONDS
        if is_locked is False or (is_locked is None and not old_enough):
            return
        match = _OURS.fullmatch(entry.name)
        if match and match["kind"] == "old" and not (original := entry.with_name(match["name"])).exists():
            entry.rename(original)
        elif entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink()
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the entries of a folder survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def reason(error: OSError) -> str:
    """Return the system's reason for an error, with advice where it is not obvious."""
    words = (error.strerror or str(error)).lower()
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"{words}: allow more with `ulimit -n 1024`"
    return words


def unreadable(path: Path, error: OSError) -> DataError:
    """Return the error for a file that is missing or unreadable."""
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: there is no such file")
    return DataError(f"{path} can't be read: {reason(error)}")


def _failed(path: Path, error: OSError) -> str:
    return f"{path} could not be written: {reason(error)}; no partial file remains"


NESTED_TOO_DEEP = "has objects or lists nested more than about 900 levels deep: flatten them"


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """Return the paths without their common folders.

    >>> distinct_names([Path("runs/a/best"), Path("runs/b/best")])
    ['a/best', 'b/best']
    """
    shared = len(shared_parts([path.parent for path in paths]))
    return [str(Path(*path.parts[shared:])) for path in paths]


def shared_parts(folders: Sequence[Path]) -> list[str]:
    """Return the common first parts of several paths."""
    levels = zip(*(folder.parts for folder in folders), strict=False)
    return [parts[0] for parts in takewhile(lambda parts: len(set(parts)) == 1, levels)]


def replace_nonfinite(value: Any, instead: str | None) -> Any:
    """Replace infinities and NaN in a JSON value."""
    if isinstance(value, float) and not math.isfinite(value):
        return instead
    if isinstance(value, dict):
        return {key: replace_nonfinite(item, instead) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [replace_nonfinite(item, instead) for item in value]
    return value


def digest_json(value: Any) -> str:
    """Return the SHA-256 of a JSON value, independent of key order and spacing."""
    return hashlib.sha256(_canonical(value)).hexdigest()


def digest_text(text: str) -> str:
    """Return the first 16 hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        DataError: the file cannot be read.
    """
    try:
        with open_file(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from error


def data_digests(data: Path, files: Iterable[Path]) -> dict[str, str]:
    """Return the digests of files by their names in a data folder.

    Raises:
        DataError: a file cannot be read.
    """
    return {data_name(data, file): digest_file(file) for file in files}


def file_states(files: Iterable[Path]) -> list[tuple[str, int, int]]:
    """Return path, size and modification time of each file; -1 for a file that can't be accessed."""
    states = []
    for file in files:
        try:
            status = file.stat()
            states.append((str(file), status.st_size, status.st_mtime_ns))
        except OSError:
            states.append((str(file), -1, -1))
    return states


def data_name(data: Path, file: Path) -> str:
    """Return the path of a file relative to a folder, with slashes; its absolute path if it is outside."""
    return (file.relative_to(data) if file.is_relative_to(data) else file.resolve()).as_posix()


class DocumentsDigest:
    """Counts and digests a stream of documents.

    >>> digest = DocumentsDigest()
    >>> documents = list(digest.watch([Document("1", "Every field is a ring.")]))
    >>> digest.count
    1
    """

    def __init__(self) -> None:
        self.count = 0
        self._hash = hashlib.sha256()

    def watch(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents.

        Raises:
            DataError: a document is nested too deeply for JSON.
        """
        for document in documents:
            self.count += 1
            try:
                self._hash.update(_canonical(document.source()))
            except RecursionError as error:
                raise DataError(f"the document {document.id} {NESTED_TOO_DEEP}") from error
            self._hash.update(b"\n")
            yield document

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _canonical(value: Any) -> bytes:
    text = _JSON.encode(value)
    return text.encode("utf-8", "backslashreplace")  # a lone surrogate as a JSON escape
