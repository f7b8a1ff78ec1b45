"""Files and values that somebody else has written, read at one door.

What is named as a file may be anything: a pipe that nobody writes to would keep its reader waiting for ever, a device
such as /dev/zero never ends. What is in it may be anything, too: JSON and TOML can be nested until Python's stack ends,
now or when the value is written again, and JSON can have numbers beyond all numbers and halves of characters, which
can't be written as UTF-8. All of that is an error here, of the one kind that a reader expects anyway.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn

MOST_LEVELS = 100
"""How deep lists and objects may be nested in each other."""

_HANDED_OVER = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
"""How the names begin of what is open already, such as the pipe of the shell's `<(command)`."""

_SUSPECT = re.compile(r"\\u[dD][89a-fA-F]|[0-9]{300}|[eE]\+?[0-9]{3}")
"""What a text has that may hold half a character, or a number beyond all numbers."""

_HALF = re.compile(
    r"(?<!\\)(?:\\\\)*(?:(\\u[dD][89abAB]..)(?!\\u[dD][c-fC-F])|"
    r"(?:\\u[dD][89abAB]..\\u[dD][c-fC-F]..)|(\\u[dD][c-fC-F]..))"
)


class NotAFile(OSError):
    """What is named as a file is a device, a pipe or no name at all."""


def open_file(path: Path) -> BufferedReader:
    """A file to read from; a pipe only if it is open already, as that of `<(command)` is.

    Raises:
        NotAFile: it is no file.
        OSError: it can't be opened.
    """
    try:
        return open(path, "rb", opener=_open)  # Path.open takes no opener
    except ValueError as error:  # NUL, or half a character
        raise NotAFile(errno.EINVAL, "that is no name that a file can have", str(path)) from error


def _open(path: str, flags: int) -> int:
    # Without waiting for somebody to write, if it is a pipe; what reads from it afterwards waits as usual.
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    is_pipe = stat.S_ISFIFO(mode)
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or (is_pipe and path.startswith(_HANDED_OVER)):
        os.set_blocking(descriptor, True)
        return descriptor
    os.close(descriptor)
    raise NotAFile(errno.EINVAL, f"it is a {'pipe' if is_pipe else 'device'}, not a file", path)


def read_bytes(path: Path) -> bytes:
    """All that is in a file.

    Raises:
        OSError: it can't be read, or is no file.
    """
    with open_file(path) as file:
        return file.read()


def read_text(path: Path, encoding: str = "utf-8") -> str:
    r"""The text in a file; CR and CRLF are read as LF.

    Raises:
        OSError: it can't be read, or is no file.
        UnicodeDecodeError: it is not in that encoding.
    """
    with io.TextIOWrapper(open_file(path), encoding=encoding) as file:
        return file.read()


def parse_json(text: str, *, file_names: bool = False) -> Any:
    """The value of a JSON text: its texts can be written in UTF-8, its numbers are finite, its levels not too many.

    With `file_names` its texts may be names of files, whose bytes need not be UTF-8.

    Raises:
        json.JSONDecodeError: it is not JSON, or has what only Python takes for it.
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
    # The text is looked at first, which is quick: most have nothing to look for in the value.
    problem = None
    if _SUSPECT.search(text):
        problem = _problem(value, "surrogateescape" if file_names else "strict")
    elif text.count("[") + text.count("{") > MOST_LEVELS and _is_too_deep(value):
        problem = _TOO_DEEP
    if problem:
        half = _half(text) if problem == _HALVED else None
        raise json.JSONDecodeError(problem, text, half or 0)
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text, nested in no more than `MOST_LEVELS`.

    Raises:
        tomllib.TOMLDecodeError: it is not TOML, or nested too deeply.
    """
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise tomllib.TOMLDecodeError(_TOO_DEEP) from error
    except ValueError as error:
        raise tomllib.TOMLDecodeError(_DIGITS) from error
    if _is_too_deep(value):
        raise tomllib.TOMLDecodeError(_TOO_DEEP)
    return value


_TOO_DEEP = f"lists and objects are nested more than {MOST_LEVELS} deep"
_HALVED = "an escape is half of a character"
_INFINITE = "a number is too large"
_DIGITS = "a number has too many digits"


class _Constant(ValueError):
    """NaN or an infinity, which Python reads although JSON has none."""


def _no_constant(name: str) -> NoReturn:
    raise _Constant(f"there is no {name} in JSON")


def _levels(value: object) -> Iterator[list[object]]:
    """A value, all that is in it, all that is in that, and so on: without recursion, at whatever depth."""
    level = [value]
    while level:
        yield level
        level = [inner for one in level for inner in _held(one)]


def _is_too_deep(value: object) -> bool:
    return any(depth > MOST_LEVELS for depth, _level in enumerate(_levels(value)))


def _held(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _problem(value: object, halves: str) -> str | None:
    """What is the matter with a JSON value, None if nothing; `halves` is how halves of characters are encoded."""
    for depth, level in enumerate(_levels(value)):
        if depth > MOST_LEVELS:
            return _TOO_DEEP
        for one in level:
            if isinstance(one, float | int) and not _is_finite(one):
                return _INFINITE
            if isinstance(one, str | dict) and not _encodable(
                (one,) if isinstance(one, str) else one, halves
            ):
                return _HALVED
    return None


def _is_finite(number: float) -> bool:
    """Whether a number is one that a float can be near to."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _encodable(texts: Iterable[str], halves: str) -> bool:
    try:
        for text in texts:
            text.encode("utf-8", halves)
    except UnicodeEncodeError:
        return False
    return True


def _half(text: str) -> int | None:
    """Where the first escape of half a character stands in a JSON text."""
    return next((match.start(match.lastindex) for match in _HALF.finditer(text) if match.lastindex), None)
