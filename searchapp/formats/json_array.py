"""Reads a JSON file that holds one list, entry by entry, each with the line it begins in.

The files of SMART are such lists. They are small enough to be held as one text (a few megabytes), which the
standard library then parses one entry at a time; it knows no lines of entries, so they are counted here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeGuard

from searchapp.formats.encoding import add_undecodable
from searchapp.formats.json_stream import type_name
from searchapp.formats.problems import Problems, shown
from searchapp.inputs import read_bytes

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
