"""Streams the members of one large JSON object, and says in a person's terms why a file is not one.

The members come from ijson, whose C parser is fast but cannot be asked for everything:

- it replaces lone surrogate escapes by question marks (or reports them as bad UTF-8), and crashes on integers
  longer than Python converts. A first pass looks for both, and such a file is read by the standard library,
  whole;
- its messages have no line and column. After an error the standard library is asked for the place.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

import ijson

from searchapp.formats.encoding import remedy
from searchapp.formats.problems import Problems
from searchapp.inputs import open_file, read_text

_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 20
_LONGEST_INTEGER = 4000
"""Digits of the longest integer that is read as one; Python's own limit is 4300."""

_NOT_FOR_IJSON = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"  # the first half of a pair without the second
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"  # the second half without the first
    r"|[0-9]{4000}"
)
_STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]++|\\.)*+"|(NaN|-?Infinity)', re.DOTALL)


class _NoObjectError(Exception):
    """The file as a whole is not one JSON object; the arguments are a problem's kind, where and detail."""


def read_members(path: Path, problems: Problems) -> Iterator[tuple[str, Any]]:
    """Key and value of each member of the file's object, in order; a repeated key comes again each time.

    Integers are exact, other numbers come as Decimal or float. A byte-order mark is accepted. What is wrong
    with the file as a whole goes to `problems` as one problem, after the members that precede the place.
    """
    try:
        scan = _scan(path)
        if not scan.opens_object:
            _explain(path)
        if scan.for_ijson:
            yield from _streamed(path, scan.start)
        else:
            yield from _loaded(path)
    except OSError as error:
        problems.add_unopened(path, error)
    except _NoObjectError as error:
        kind, where, detail = error.args
        problems.add(path, kind, where, detail, skippable=False)


def type_name(value: object) -> str:
    """What JSON calls a value, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, _TooLong):
        return "a number of too many digits"
    names = {str: "a string", int: "an integer", float: "a fraction", Decimal: "a fraction", list: "a list"}
    return names.get(type(value), "an object")


@dataclass(frozen=True, slots=True)
class _Scan:
    """What the first pass has seen: where the text starts, behind a byte-order mark, and how to read it."""

    start: int
    opens_object: bool
    for_ijson: bool


def _scan(path: Path) -> _Scan:
    """Pass once over the file's bytes.

    Raises:
        _NoObjectError: the file is not UTF-8, or blank.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    first, for_ijson, tail, lines, offset = "", True, "", 1, 0
    with open_file(path) as file:
        start = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
        offset = file.seek(start)
        while True:
            chunk = file.read(_CHUNK)
            pending = len(decoder.getstate()[0])
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                line = lines + error.object[: error.start].count(b"\n")
                byte = f"byte 0x{error.object[error.start]:02x} at offset {offset - pending + error.start}"
                detail = f"{byte} is not valid there; {remedy(path)}"
                raise _NoObjectError("not UTF-8", f"line {line}", detail) from error
            if not chunk:
                break
            first = first or text.lstrip(" \t\r\n")[:1]
            # What matters may lie across two chunks, so that the end of one is looked at again with the next.
            for_ijson = for_ijson and not _NOT_FOR_IJSON.search(tail + text)
            tail = text[-_LONGEST_INTEGER:]
            lines += text.count("\n")
            offset += len(chunk)
    if not first:
        raise _NoObjectError("empty file", "", "a JSON object is expected")
    return _Scan(start, first == "{", for_ijson)


def _streamed(path: Path, start: int) -> Iterator[tuple[str, Any]]:
    with open_file(path) as file:
        file.seek(start)
        try:
            yield from ijson.kvitems(file, "")
        except (ijson.JSONError, ArithmeticError, UnicodeError):
            _explain(path)


class _Members:
    """An object with its repeated keys. It is no list, so that nobody takes it for one."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


def _plain(value: object) -> object:
    return {key: _plain(inner) for key, inner in value.pairs} if isinstance(value, _Members) else value


def _loaded(path: Path) -> Iterator[tuple[str, Any]]:
    """The members of a file that ijson is not to be trusted with."""
    for key, value in _parse(read_text(path, "utf-8-sig")).pairs:
        yield key, _plain(value)


def _explain(path: Path) -> NoReturn:
    """Say why the file is no JSON object, and where.

    Raises:
        _NoObjectError: always.
    """
    value = _parse(read_text(path, "utf-8-sig"))
    if not isinstance(value, _Members):
        raise _NoObjectError("wrong shape", "", f"the file holds {type_name(value)}, not an object")
    raise _NoObjectError("not JSON", "", "it has a number that is out of range")


def _parse(text: str) -> Any:
    """The value of the whole text, objects as `_Members`.

    Raises:
        _NoObjectError: it is not JSON.
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_Members,
            parse_int=_integer,
            parse_constant=lambda _name: _no_constant(text),
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise _NoObjectError("not JSON", where, error.msg[:1].lower() + error.msg[1:]) from error
    except RecursionError as error:
        raise _NoObjectError("not JSON", "", "it is nested too deeply") from error


class _TooLong:
    """Stands for an integer that is too long to be read."""


def _integer(digits: str) -> int | _TooLong:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else _TooLong()


def _no_constant(text: str) -> NoReturn:
    """NaN and the infinities, which the standard library reads although JSON has none."""
    for match in _STRING_OR_CONSTANT.finditer(text):
        if match[1]:
            raise json.JSONDecodeError(f"there is no {match[1]} in JSON", text, match.start())
    raise json.JSONDecodeError("there is no NaN in JSON", text, 0)
