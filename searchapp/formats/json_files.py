"""JSON files: stream the members of one object, read the entries of one list with their lines, load as a scorer does.

`read_members` streams a large object with ijson, whose C parser is fast but has two gaps:

- it replaces lone surrogate escapes by question marks (or reports them as bad UTF-8), and crashes on integers longer
  than Python converts. A first pass looks for both, and the standard library reads such a file as a whole;
- its messages have no line and column. After an error the standard library is asked for the place.

`read_entries` reads a list of a few megabytes (the files of SMART) entry by entry with the line that each begins in.
`load` reads a file as the organisers' scripts do, and reports what they would report where they stop.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeGuard

import ijson

from searchapp.errors import DataError, NotScorable
from searchapp.files import open_file, read_bytes, read_text, unreadable
from searchapp.formats.encoding import add_undecodable, remedy, undecodable
from searchapp.formats.problems import Problems, shown

_BOM_BYTES = b"\xef\xbb\xbf"
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
        start = len(_BOM_BYTES) if file.read(len(_BOM_BYTES)) == _BOM_BYTES else 0
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
            parse_constant=lambda _name: _reject_constant(text),
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


def _reject_constant(text: str) -> NoReturn:
    """NaN and the infinities, which the standard library reads although JSON has none."""
    for match in _STRING_OR_CONSTANT.finditer(text):
        if match[1]:
            raise json.JSONDecodeError(f"there is no {match[1]} in JSON", text, match.start())
    raise json.JSONDecodeError("there is no NaN in JSON", text, 0)


_BOM = "\ufeff"
_BLANK = re.compile(r"[ \t\r\n]*")
_NO_NUMBER = re.compile(r'"(?:[^"\\]++|\\.)*+"|(NaN|-?Infinity)', re.DOTALL)


class Entry(NamedTuple):
    """One entry of the list and the line that it begins in."""

    line: int
    value: Any


class RepeatedKeys(dict[str, Any]):
    """An object that has keys more than once: its last values, as the standard library has it."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = [name for name, _value in pairs]
        self.names = sorted({name for name in names if names.count(name) > 1})


OfficialId = str | int
"""An id as a file has it: the official scorers tell the number 7 from the text "7"."""


class _NoListError(Exception):
    """The file is not one JSON list; the arguments are a problem's kind, where and detail."""


def read_entries(path: Path, problems: Problems, *, bom: bool = False) -> Iterator[Entry]:
    """The entries of the file's list in their order; an object with a key twice is `RepeatedKeys`.

    A byte-order mark is a problem unless `bom` allows it: most official scripts stop on one. What is wrong with
    the file as a whole goes to `problems` as one problem, after the entries that precede the place.
    """
    try:
        text = read_bytes(path).decode()
        if text.startswith(_BOM):
            if not bom:
                raise _NoListError("byte-order mark", "line 1", "save the file as UTF-8 without one")
            text = text[1:]
        yield from _entries(text)
    except OSError as error:
        problems.add_unopened(path, error)
    except UnicodeDecodeError as error:
        add_undecodable(path, error, problems)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        problems.add(path, "not JSON", where, error.msg[:1].lower() + error.msg[1:], skippable=False)
    except _NoListError as error:
        kind, where, detail = error.args
        problems.add(path, kind, where, detail, skippable=False)


def official_ids(path: Path, *, bom: bool = False) -> dict[str, OfficialId]:
    """The ids of the file's objects as they stand there, by their text; nothing else is checked.

    Raises:
        InvalidFiles: the file is missing, or holds no list.
    """
    problems = Problems(lenient=True)
    ids: dict[str, OfficialId] = {}
    for entry in read_entries(path, problems, bom=bom):
        id_ = entry.value.get("id") if isinstance(entry.value, dict) else None
        if is_id(id_):
            ids.setdefault(str(id_), id_)
    problems.raise_if_any(
        "its ids go into the official file as they stand there: name the folder that has it with --data"
    )
    return ids


def is_id(value: object) -> TypeGuard[OfficialId]:
    """Whether a value can be an id: text or an integer, which to Python true and false are and to JSON not."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def other_type_of_id(id_: object, first: OfficialId | None) -> str | None:
    """Why a value is no id of a file whose first id is `first`, None for a good one.

    A file has ids of one type: where both occur, something has been made of them that the scorers tell apart.
    """
    if not is_id(id_):
        return f"id is {type_name(id_)}, not a string or an integer"
    if first is not None and type(id_) is not type(first):
        return f"id is {type_name(id_)}, and {type_name(first)} in the first entry"
    return None


def place(entry: Entry, id_: object = None) -> str:
    """Where an entry is, for people: `line 12`, or `line 12: question x1` when its id is known."""
    return f"line {entry.line}: question {shown(id_)}" if isinstance(id_, str) else f"line {entry.line}"


def _entries(text: str) -> Iterator[Entry]:
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)
    at = _blank(text, 0)
    if not text[at:]:
        raise _NoListError("empty file", "", "a JSON list is expected")
    if text[at] != "[":
        value, _end = _decoded(decoder, text, at, 1)
        raise _NoListError("wrong shape", "", f"the file holds {type_name(value)}, not a list")
    line = 1 + text.count("\n", 0, at)
    counted, at = at, _blank(text, at + 1)
    if text[at : at + 1] != "]":
        while True:
            line, counted = line + text.count("\n", counted, at), at
            value, end = _decoded(decoder, text, at, line)
            yield Entry(line, value)
            at = _blank(text, end)
            if text[at : at + 1] == "]":
                break
            if text[at : at + 1] != ",":
                raise json.JSONDecodeError("expecting ',' or ']' after an entry of the list", text, at)
            at = _blank(text, at + 1)
    rest = _blank(text, at + 1)
    if text[rest:]:
        raise json.JSONDecodeError("there is more after the end of the list", text, rest)


def _decoded(decoder: json.JSONDecoder, text: str, at: int, line: int) -> tuple[Any, int]:
    try:
        return decoder.raw_decode(text, at)
    except json.JSONDecodeError:
        raise
    except _ConstantError as error:
        found = next((match for match in _NO_NUMBER.finditer(text, at) if match[1]), None)
        message = f"there is no {error} in JSON"
        raise json.JSONDecodeError(message, text, found.start() if found else at) from error
    except RecursionError as error:
        raise _NoListError("not JSON", f"line {line}", "it is nested too deeply") from error
    except ValueError as error:  # an integer of more digits than Python converts
        raise _NoListError("not JSON", f"line {line}", "a number has too many digits") from error


class _ConstantError(Exception):
    """NaN or an infinity, which the standard library reads although JSON has none."""


def _no_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    return plain if len(plain) == len(pairs) else RepeatedKeys(pairs)


def _blank(text: str, at: int) -> int:
    """The place of the next character that is not blank."""
    match = _BLANK.match(text, at)
    assert match is not None, "it matches nothing, too"
    return match.end()


def load_list(path: Path, noun: str, *, bom: bool = False) -> list[dict[str, Any]]:
    """The objects that a file's list holds; nothing else is checked. `noun` names them in messages.

    NaN and infinities are read, of a repeated key the last value is kept; a byte-order mark is accepted with
    `bom` only.

    Raises:
        NotScorable: not UTF-8, not JSON.
        DataError: the file cannot be opened, or it is JSON of another shape.
    """
    value = load(path, bom=bom)
    if not isinstance(value, list):
        raise DataError(
            f"{path}: it must hold a list of {noun}, not {type(value).__name__}: see the task's format"
        )
    for number, entry in enumerate(value, 1):
        if not isinstance(entry, dict):
            raise DataError(f"{path}: entry {number} must be an object, not {type(entry).__name__}")
    return value


def load(path: Path, *, bom: bool = False) -> Any:
    """The value that a file holds.

    Raises:
        NotScorable: not UTF-8, not JSON.
        DataError: the file cannot be opened.
    """
    try:
        return json.loads(read_bytes(path).decode("utf-8-sig" if bom else "utf-8"))
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        raise NotScorable(undecodable(path, error), official(error)) from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise NotScorable(f"{path}: {where}: not JSON", f"json.decoder.JSONDecodeError: {error}") from error
    except (ValueError, RecursionError) as error:  # an integer of more than 4300 digits; brackets without end
        raise NotScorable(f"{path} is not JSON that can be read", official(error)) from error


def official(error: Exception) -> str:
    """An exception as the organisers' script would report it."""
    return f"{type(error).__name__}: {error}"
