"""JSON files: read the members of one object, read the entries of one list with their lines, load as a scorer does.

`read_members` and `read_entries` decode one member or entry after the other, so that a problem in the middle of a file
has its place, and what precedes it is read. `load` reads a file as the organisers' scripts do, and reports what they
would report where they stop.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeGuard, TypeVar

from searchapp.errors import DataError, NotScorable
from searchapp.files import read_bytes, unreadable
from searchapp.formats.encoding import add_undecodable, undecodable
from searchapp.formats.problems import Problems, encodable, shown, unusable_id

T = TypeVar("T")

_LONGEST_INTEGER = 4000
"""Digits of the longest integer that is read as one; Python's own limit is 4300."""

_BOM = "\ufeff"
_BLANK = re.compile(r"[ \t\r\n]*")
_NO_NUMBER = re.compile(r'"(?:[^"\\]++|\\.)*+"|(NaN|-?Infinity)', re.DOTALL)


class _Unreadable(Exception):
    """The file as a whole is not what is expected; the arguments are a problem's kind, where and detail."""


def read_members(path: Path, problems: Problems) -> Iterator[tuple[str, Any]]:
    """Key and value of each member of the file's object, in order; a repeated key comes again each time.

    Integers are exact, other numbers come as Decimal. A byte-order mark is accepted. What is wrong with the file as a
    whole goes to `problems` as one problem, after the members that precede the place.
    """
    return _read(path, problems, _members, bom=True)


def _read(path: Path, problems: Problems, parse: Callable[[str], Iterator[T]], *, bom: bool) -> Iterator[T]:
    """What is made of a file's text; what is wrong with the file as a whole goes to `problems` as one problem."""
    try:
        text = read_bytes(path).decode()
        if text.startswith(_BOM):
            if not bom:
                raise _Unreadable("byte-order mark", "line 1", "save the file as UTF-8 without one")
            text = text[1:]
        yield from parse(text)
    except OSError as error:
        problems.add_unopened(path, error)
    except UnicodeDecodeError as error:
        add_undecodable(path, error, problems)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        problems.add(path, "not JSON", where, error.msg[:1].lower() + error.msg[1:], skippable=False)
    except _Unreadable as error:
        kind, where, detail = error.args
        problems.add(path, kind, where, detail, skippable=False)


def _members(text: str) -> Iterator[tuple[str, Any]]:
    decoder = json.JSONDecoder(parse_int=_integer, parse_float=_fraction, parse_constant=_no_constant)
    at = _begin(text, "a JSON object is expected")
    if text[at] != "{":
        value, _end = _decoded(decoder, text, at)
        raise _Unreadable("wrong shape", "", f"the file holds {type_name(value)}, not an object")
    at = _blank(text, at + 1)
    is_next = text[at : at + 1] != "}"
    while is_next:
        if text[at : at + 1] != '"':
            _misplaced(text)
        key, at = decoder.raw_decode(text, at)
        at = _blank(text, at)
        if text[at : at + 1] != ":":
            _misplaced(text)
        value, at = _decoded(decoder, text, _blank(text, at + 1))
        at = _blank(text, at)
        is_next = text[at : at + 1] == ","
        if not is_next and text[at : at + 1] != "}":
            _misplaced(text)
        yield key, value
        if is_next:
            at = _blank(text, at + 1)
    if text[_blank(text, at + 1) :]:
        _misplaced(text)


def _misplaced(text: str) -> NoReturn:
    """Report what stands between members and should not, as the standard library does.

    Raises:
        json.JSONDecodeError: with the place.
    """
    json.loads(text, parse_int=_integer)
    raise AssertionError("the standard library reads what this module does not")


class _TooLong:
    """Stands for an integer that is too long to be read."""


def _integer(digits: str) -> int | _TooLong:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else _TooLong()


def _fraction(digits: str) -> Decimal:
    try:
        return Decimal(digits)
    except ArithmeticError as error:
        raise _Unreadable("not JSON", "", "it has a number that is out of range") from error


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


def read_entries(path: Path, problems: Problems, *, bom: bool = False) -> Iterator[Entry]:
    """The entries of the file's list in their order; an object with a key twice is `RepeatedKeys`.

    A byte-order mark is a problem unless `bom` allows it: most official scripts stop on one. What is wrong with
    the file as a whole goes to `problems` as one problem, after the entries that precede the place.
    """
    return _read(path, problems, _entries, bom=bom)


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


class EntryReader:
    """Reads one entry of a file, an object, key by key; it is `good` until a problem is found.

    `where` is the place of the entry, for people; `value` is the entry.
    """

    def __init__(self, path: Path, where: str, value: Any, problems: Problems) -> None:
        self.value = value
        self.where = where
        self.good = True
        self._path = path
        self._problems = problems

    def wrong(self, kind: str, detail: str = "") -> None:
        """Record a problem of the entry."""
        self.good = False
        self._problems.add(self._path, kind, self.where, detail)

    def lacks(self, key: str, holder: Iterable[str] | None = None, where: str = "") -> None:
        """Record that the entry, or an object in it, lacks a key."""
        self.good = False
        self._problems.add_missing(
            self._path, key, self.where + where, self.value if holder is None else holder
        )

    def note(self, kind: str, detail: str) -> None:
        """Record something odd for which the entry is not left out."""
        self._problems.note(self._path, kind, self.where, detail)

    def text_of(self, key: str) -> str:
        """The text of a key, which must be there and not be blank."""
        if key not in self.value:
            self.lacks(key)
            return ""
        return self.text(self.value[key], key)

    def text(self, value: object, name: str) -> str:
        """A value, `name` for people, as text that is not blank."""
        if not isinstance(value, str):
            self.wrong("wrong type", f"{name} is {type_name(value)}, not a string")
            return ""
        if not value.strip():
            self.wrong("blank text", f"{name} must not be blank")
        elif not encodable(value):
            self.wrong("lone surrogate", f"{name} has an escape that is half of a character")
        return value

    def list_of(self, key: str) -> list[Any] | None:
        """The list of a key, which must be there."""
        listed = self.value.get(key)
        if key not in self.value:
            self.lacks(key)
        elif not isinstance(listed, list):
            self.wrong("wrong type", f"{key} is {type_name(listed)}, not a list")
        else:
            return listed
        return None

    def official_id(self, first: OfficialId | None) -> OfficialId | None:
        """The usable id of the entry, of the type of the file's first id; None if it has none.

        From then on the place of the entry names the id.
        """
        if not isinstance(self.value, dict):
            self.wrong("wrong type", f"the entry is {type_name(self.value)}, not an object")
        elif "id" not in self.value:
            self.lacks("id")
        elif detail := other_type_of_id(self.value["id"], first):
            self.wrong("wrong type", detail)
        elif problem := unusable_id(str(self.value["id"])):
            self.wrong(problem[0], f"{shown(str(self.value['id']))}: {problem[1]}")
        else:
            id_: OfficialId = self.value["id"]
            self.where += f": question {shown(str(id_))}"
            return id_
        return None


def _entries(text: str) -> Iterator[Entry]:
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)
    at = _begin(text, "a JSON list is expected")
    if text[at] != "[":
        value, _end = _decoded(decoder, text, at, "line 1")
        raise _Unreadable("wrong shape", "", f"the file holds {type_name(value)}, not a list")
    line = 1 + text.count("\n", 0, at)
    counted, at = at, _blank(text, at + 1)
    if text[at : at + 1] != "]":
        while True:
            line, counted = line + text.count("\n", counted, at), at
            value, end = _decoded(decoder, text, at, f"line {line}")
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


def _begin(text: str, expected: str) -> int:
    """The place of the first character that is not blank."""
    at = _blank(text, 0)
    if not text[at:]:
        raise _Unreadable("empty file", "", expected)
    return at


def _decoded(decoder: json.JSONDecoder, text: str, at: int, where: str = "") -> tuple[Any, int]:
    try:
        return decoder.raw_decode(text, at)
    except json.JSONDecodeError:
        raise
    except _ConstantError as error:
        found = next((match for match in _NO_NUMBER.finditer(text, at) if match[1]), None)
        message = f"there is no {error} in JSON"
        raise json.JSONDecodeError(message, text, found.start() if found else at) from error
    except RecursionError as error:
        raise _Unreadable("not JSON", where, "it is nested too deeply") from error
    except ValueError as error:  # an integer of more digits than Python converts
        raise _Unreadable("not JSON", where, "a number has too many digits") from error


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
