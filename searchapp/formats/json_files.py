"""JSON files, decoded member by member or entry by entry, or loaded as an official script loads them."""

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
from searchapp.formats.problems import EntryProblems, Problems, encodable, shown, unusable_id

T = TypeVar("T")

_LONGEST_INTEGER = 4000  # digits of the longest integer that is read; Python's own limit is 4300

READ_AT_ONCE = 1 << 26  # characters of an object whose members are all read at once

_BLANK = re.compile(r"[ \t\r\n]*")
_NO_NUMBER = re.compile(r'"(?:[^"\\]++|\\.)*+"|(NaN|-?Infinity)', re.DOTALL)


class _UnreadableFile(Exception):
    """The whole file is unreadable; the arguments are kind, place and detail of the problem."""


def read_members(path: Path, problems: Problems) -> Iterator[tuple[str, Any]]:
    """Yield key and value of each member of the file's object, in order and with repeated keys.

    Integers are exact, other numbers are Decimal. A problem of the whole file is reported once, after the members
    before its position.
    """
    return _read(path, problems, _members, bom=True)


class ListEntry(NamedTuple):
    """One entry of a list and the number of its first line."""

    line: int
    value: Any


class RepeatedKeys(dict[str, Any]):
    """An object that has keys more than once, with their last values."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        names = [name for name, _value in pairs]
        self.names = sorted({name for name in names if names.count(name) > 1})


def read_entries(path: Path, problems: Problems, *, bom: bool = False) -> Iterator[ListEntry]:
    """Yield the entries of the file's list; an object with a repeated key is `RepeatedKeys`.

    Without `bom` a byte-order mark is a problem: most official scripts stop on one.
    """
    return _read(path, problems, _entries, bom=bom)


def _read(path: Path, problems: Problems, parse: Callable[[str], Iterator[T]], *, bom: bool) -> Iterator[T]:
    try:
        text = read_bytes(path).decode()
        if text.startswith("\ufeff"):
            if not bom:
                raise _UnreadableFile("byte-order mark", "line 1", "save the file as UTF-8 without one")
            text = text[1:]
        yield from parse(text)
    except OSError as error:
        problems.add_unopened(path, error)
    except UnicodeDecodeError as error:
        add_undecodable(path, error, problems)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        problems.add(path, "not JSON", where, error.msg[:1].lower() + error.msg[1:], skippable=False)
    except _UnreadableFile as error:
        kind, where, detail = error.args
        problems.add(path, kind, where, detail, skippable=False)


def _members(text: str) -> Iterator[tuple[str, Any]]:
    if len(text) <= READ_AT_ONCE and (members := _all_members(text)) is not None:
        yield from members
        return
    decoder = json.JSONDecoder(parse_int=_integer, parse_float=_fraction, parse_constant=_no_constant)
    at = _begin(decoder, text, "{", "object")
    is_next = text[at : at + 1] != "}"
    while is_next:
        if text[at : at + 1] != '"':
            _raise_misplaced(text)
        key, at = decoder.raw_decode(text, at)
        at = _skip_blanks(text, at)
        if text[at : at + 1] != ":":
            _raise_misplaced(text)
        value, at = _decode(decoder, text, _skip_blanks(text, at + 1))
        at = _skip_blanks(text, at)
        is_next = text[at : at + 1] == ","
        if not is_next and text[at : at + 1] != "}":
            _raise_misplaced(text)
        yield key, value
        if is_next:
            at = _skip_blanks(text, at + 1)
    if text[_skip_blanks(text, at + 1) :]:
        _raise_misplaced(text)


def _all_members(text: str) -> list[tuple[str, Any]] | None:
    """Return the members of a valid object, in less time but more memory than one by one; None for any other text."""
    members: list[tuple[str, Any]] = []

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal members
        members = pairs  # the outermost object is the last
        return dict(pairs)

    try:
        value = json.loads(
            text,
            object_pairs_hook=keep,
            parse_int=_integer,
            parse_float=_fraction,
            parse_constant=_no_constant,
        )
    except (ValueError, RecursionError, _ConstantError, _UnreadableFile):
        return None
    return members if isinstance(value, dict) else None


def _entries(text: str) -> Iterator[ListEntry]:
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)
    at, counted_to, line = _begin(decoder, text, "[", "list"), 0, 1
    is_next = text[at : at + 1] != "]"
    while is_next:
        line, counted_to = line + text.count("\n", counted_to, at), at
        value, at = _decode(decoder, text, at, f"line {line}")
        yield ListEntry(line, value)
        at = _skip_blanks(text, at)
        is_next = text[at : at + 1] == ","
        if not is_next and text[at : at + 1] != "]":
            raise json.JSONDecodeError("expecting ',' or ']' after an entry of the list", text, at)
        if is_next:
            at = _skip_blanks(text, at + 1)
    rest = _skip_blanks(text, at + 1)
    if text[rest:]:
        raise json.JSONDecodeError("there is text after the end of the list", text, rest)


def _begin(decoder: json.JSONDecoder, text: str, bracket: str, noun: str) -> int:
    """Return the position of the first character after the opening bracket that is not blank."""
    at = _skip_blanks(text, 0)
    if not text[at:]:
        raise _UnreadableFile("empty file", "", f"a JSON {noun} is expected")
    if text[at] != bracket:
        value, _end = _decode(decoder, text, at, "line 1" if bracket == "[" else "")
        article = "an" if noun == "object" else "a"
        raise _UnreadableFile(
            "wrong shape", "", f"the file contains {type_name(value)}, not {article} {noun}"
        )
    return _skip_blanks(text, at + 1)


def _raise_misplaced(text: str) -> NoReturn:
    """Raise the standard library's error about a misplaced character between members.

    Raises:
        json.JSONDecodeError: with the position.
    """
    json.loads(text, parse_int=_integer)
    raise AssertionError("the standard library reads what this module does not")


def _decode(decoder: json.JSONDecoder, text: str, at: int, where: str = "") -> tuple[Any, int]:
    try:
        return decoder.raw_decode(text, at)
    except json.JSONDecodeError:
        raise
    except _ConstantError as error:
        match = next((match for match in _NO_NUMBER.finditer(text, at) if match[1]), None)
        message = f"there is no {error} in JSON"
        raise json.JSONDecodeError(message, text, match.start() if match else at) from error
    except RecursionError as error:
        raise _UnreadableFile("not JSON", where, "it is nested too deeply") from error
    except ValueError as error:  # an integer of more digits than Python converts
        raise _UnreadableFile("not JSON", where, "a number has too many digits") from error


class _LongInteger:
    """An integer that is too long to be read."""


def _integer(digits: str) -> int | _LongInteger:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else _LongInteger()


def _fraction(digits: str) -> Decimal:
    try:
        return Decimal(digits)
    except ArithmeticError as error:
        raise _UnreadableFile("not JSON", "", "it has a number that is out of range") from error


class _ConstantError(Exception):
    """NaN or an infinity, which the standard library reads although JSON excludes them."""


def _no_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    return value if len(value) == len(pairs) else RepeatedKeys(pairs)


def _skip_blanks(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    assert match is not None, "the pattern matches the empty text, too"
    return match.end()


def type_name(value: object) -> str:
    """Return JSON's name for the type of a value, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, _LongInteger):
        return "a number with too many digits"
    names = {str: "a string", int: "an integer", float: "a fraction", Decimal: "a fraction", list: "a list"}
    return names.get(type(value), "an object")


# An id with its JSON type: official scorers distinguish the number 7 from the text "7".
OfficialId = str | int


def official_ids(path: Path, *, bom: bool = False) -> dict[str, OfficialId]:
    """Return the ids of the file's objects with their JSON types, by their text; nothing else is checked.

    Raises:
        InvalidFiles: the file is missing, or contains no list.
    """
    problems = Problems(lenient=True)
    ids: dict[str, OfficialId] = {}
    for entry in read_entries(path, problems, bom=bom):
        id_ = entry.value.get("id") if isinstance(entry.value, dict) else None
        if is_id(id_):
            ids.setdefault(str(id_), id_)
    problems.raise_if_any("the official file needs the ids of this file: give its folder with --data")
    return ids


def is_id(value: object) -> TypeGuard[OfficialId]:
    """Return whether a value is text or an integer; in Python, unlike JSON, booleans are integers."""
    return isinstance(value, str | int) and not isinstance(value, bool)


class EntryReader(EntryProblems):
    """Reads an entry of a file, an object, key by key, and reports its problems."""

    def __init__(self, path: Path, where: str, value: Any, problems: Problems) -> None:
        super().__init__(path, where, problems)
        self.value = value

    def lacks(self, key: str, keys: Iterable[str] | None = None, where: str = "") -> None:
        """Report that the entry, or an object in it with other `keys`, lacks a key."""
        self.good = False
        self.problems.add_missing(self.path, key, self.where + where, self.value if keys is None else keys)

    def is_object(self, name: str) -> bool:
        """Report an entry that is not an object; return whether it is one."""
        if not isinstance(self.value, dict):
            self.wrong("wrong type", f"{name} is {type_name(self.value)}, not an object")
        return isinstance(self.value, dict)

    def text_of(self, key: str) -> str:
        if key not in self.value:
            self.lacks(key)
            return ""
        return self.text(self.value[key], key)

    def text(self, value: object, name: str) -> str:
        """Return a value, `name` in messages, as text that is not blank."""
        if not isinstance(value, str):
            self.wrong("wrong type", f"{name} is {type_name(value)}, not a string")
            return ""
        if not value.strip():
            self.wrong("blank text", f"{name} must not be blank")
        else:
            self.check_encodable(value, name)
        return value

    def check_encodable(self, text: str, name: str) -> None:
        if not encodable(text):
            self.wrong("lone surrogate", f"{name} has an escape that is half of a surrogate pair")

    def list_of(self, key: str) -> list[Any] | None:
        value = self.value.get(key)
        if key not in self.value:
            self.lacks(key)
        elif not isinstance(value, list):
            self.wrong("wrong type", f"{key} is {type_name(value)}, not a list")
        else:
            return value
        return None

    def official_id(self, first: OfficialId | None) -> OfficialId | None:
        """Return the entry's id, of the type of the file's first id; None if it is unusable.

        Later problems of the entry name the id.
        """
        if not self.is_object("the entry"):
            return None
        id_: OfficialId = self.value.get("id")
        if "id" not in self.value:
            self.lacks("id")
        elif not is_id(id_):
            self.wrong("wrong type", f"id is {type_name(id_)}, not a string or an integer")
        # The scorers distinguish the two types: a file with both has been altered.
        elif first is not None and type(id_) is not type(first):
            self.wrong("wrong type", f"id is {type_name(id_)}, and {type_name(first)} in the first entry")
        elif problem := unusable_id(str(id_)):
            self.wrong(problem[0], f"{shown(str(id_))}: {problem[1]}")
        else:
            self.where += f": question {shown(str(id_))}"
            return id_
        return None


def load_list(path: Path, noun: str, *, bom: bool = False) -> list[dict[str, Any]]:
    """Return the objects in a file's list as an official script loads them; `noun` names them in messages.

    Raises:
        NotScorable: the file is not JSON in UTF-8.
        DataError: the file can't be opened, or is not a list of objects.
    """
    value = load(path, bom=bom)
    if not isinstance(value, list):
        raise DataError(
            f"{path}: it must contain a list of {noun}, not {type(value).__name__}: see the task's format"
        )
    for number, entry in enumerate(value, 1):
        if not isinstance(entry, dict):
            raise DataError(f"{path}: entry {number} must be an object, not {type(entry).__name__}")
    return value


def load(path: Path, *, bom: bool = False) -> Any:
    """Return the value in a file as an official script loads it.

    Raises:
        NotScorable: the file is not JSON in UTF-8.
        DataError: the file can't be opened.
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
        raise NotScorable(f"{path} is not readable JSON", official(error)) from error


def official(error: Exception) -> str:
    """Return an exception as Python prints it."""
    return f"{type(error).__name__}: {error}"
