"""TOML that a person writes: reject unknown keys and wrong types, each with its line; write values as TOML."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from searchapp.files import parse_toml, read_bytes
from searchapp.formats.problems import Problems, shown
from searchapp.text import suggestion

_HEADER = re.compile(r"\s*\[\[?([^\[\]]+)\]\]?\s*(?:#.*)?")
_KEY = re.compile(
    r"\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'))*)\s*="
)
_PART = re.compile(r"[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'")
_PLACE = re.compile(r"(.*) \(at (line \d+, column \d+|end of document)\)")

Place = tuple[str, ...]


class TomlTable:
    """One table of the file, by its place there; asked for its values, it reports what is wrong with them.

    What is absent or wrong is None, or the default. `finish` reports the keys that nobody has asked for.
    """

    def __init__(self, file: TomlFile, place: Place, held: Mapping[str, Any]) -> None:
        self._file = file
        self._place = place
        self._held = held
        self._asked: list[str] = []

    @property
    def name(self) -> str:
        """The last part of its place."""
        return self._place[-1]

    @property
    def held(self) -> Mapping[str, Any]:
        """What stands in it, unchecked."""
        return self._held

    def keys(self) -> list[str]:
        return list(self._held)

    def has(self, key: str) -> bool:
        return key in self._held

    def wrong(self, kind: str, detail: str, key: str | None = None) -> None:
        self._file.wrong(kind, detail, self._place if key is None else (*self._place, key))

    def text(self, key: str, default: str | None = None, *, required: bool = False) -> str | None:
        """A text that is not blank."""
        value = self._value(key, required=required)
        if value is None:
            return default
        if isinstance(value, str) and value.strip():
            return value
        self._mistyped(key, "text in quotes")
        return default

    def whole(self, key: str, default: int, lowest: int, highest: int | None = None) -> int:
        """A whole number in a range, which has no end where no `highest` is given."""
        value = self._value(key)
        if value is None:
            return default
        if isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= (highest or value):
            return value
        self._mistyped(key, f"a whole number from {lowest} {'on' if highest is None else f'to {highest}'}")
        return default

    def truth(self, key: str) -> bool | None:
        """A value that is true or false, None where it is not there."""
        value = self._value(key)
        if isinstance(value, bool | None):
            return value
        self._mistyped(key, "true or false")
        return None

    def text_or_whole(self, key: str, default: str | int) -> str | int:
        value = self._value(key)
        if value is None:
            return default
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return value
        self._mistyped(key, "text in quotes or a whole number")
        return default

    def texts(self, key: str, *, single: bool = False) -> tuple[str, ...] | None:
        """A list of different texts; with `single` one text stands for a list of it."""
        value = self._value(key)
        if value is None:
            return None
        if single and isinstance(value, str):
            value = [value]
        if not isinstance(value, list) or not value or not all(isinstance(one, str) and one for one in value):
            self._mistyped(key, "text in quotes or a list of such" if single else "a list of texts in quotes")
            return None
        for one in {one for one in value if value.count(one) > 1}:
            self.wrong("repeated value", f"{key} has {shown(one)!r} twice", key)
        return tuple(dict.fromkeys(value))

    def mapping(self, key: str) -> dict[str, str]:
        """A table of texts; a list of texts stands for each under its own name."""
        value = self._value(key)
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return {one: one for one in value}
        if isinstance(value, dict) and all(isinstance(one, str) and one for one in value.values()):
            return value
        if value is not None:
            self._mistyped(key, "a list of columns, or a table { name = 'column' }")
        return {}

    def table(self, key: str, *, required: bool = False) -> TomlTable | None:
        value = self._value(key, required=required)
        if isinstance(value, dict):
            return TomlTable(self._file, (*self._place, key), value)
        if value is not None:
            self._mistyped(key, f"a table [{'.'.join((*self._place, key))}]")
        return None

    def tables(self, key: str) -> Iterator[TomlTable]:
        """The tables in a table, in their order."""
        outer = self.table(key)
        for name in outer.keys() if outer else ():
            assert outer is not None
            if (inner := outer.table(name)) is not None:
                yield inner

    def raw(self, key: str) -> Any:
        return self._value(key)

    def finish(self) -> None:
        """Tell the keys that mean nothing here."""
        for key in self._held:
            if key not in self._asked:
                known = ", ".join(self._asked)
                where = f"[{'.'.join(self._place)}]" if self._place else "the file"
                named = f"{shown(key)!r}{suggestion(key, self._asked)}"
                self.wrong("unknown key", f"{where} has {named}: there are {known}", key)

    def _value(self, key: str, *, required: bool = False) -> Any:
        if key not in self._asked:
            self._asked.append(key)
        if required and key not in self._held:
            where = f"[{'.'.join(self._place)}]" if self._place else "the file"
            self.wrong("missing key", f"{where} needs {key}")
        return self._held.get(key)

    def _mistyped(self, key: str, expected: str) -> None:
        self.wrong("wrong value", f"{key} must be {expected}", key)


class TomlFile:
    """A TOML file that has been parsed; `root` is its table, empty when it could not be."""

    def __init__(self, path: Path, problems: Problems) -> None:
        self.path = path
        self.problems = problems
        self._lines: dict[Place, int] = {}
        self.root = TomlTable(self, (), self._read())

    def wrong(self, kind: str, detail: str, place: Place = ()) -> None:
        """Tell a problem of a place in the file."""
        while place and place not in self._lines:
            place = place[:-1]
        where = f"line {self._lines[place]}" if place else ""
        self.problems.add(self.path, kind, where, detail, skippable=False)

    def _read(self) -> dict[str, Any]:
        try:
            text = read_bytes(self.path).decode("utf-8-sig")
            held = parse_toml(text)
        except OSError as error:
            self.problems.add_unopened(self.path, error)
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            detail = f"byte 0x{error.object[error.start]:02x}; save the file as UTF-8"
            self.problems.add(self.path, "not UTF-8", f"line {line}", detail, skippable=False)
        except tomllib.TOMLDecodeError as error:
            match = _PLACE.fullmatch(str(error))
            where, said = (match[2].replace(",", ""), match[1]) if match else ("", str(error))
            detail = said[:1].lower() + said[1:]
            self.problems.add(self.path, "not TOML", where, detail, skippable=False)
        else:
            self._lines = _places(text)
            return held
        return {}


def _places(text: str) -> dict[Place, int]:
    """The line in which each key or table first stands.

    TOML's parser does not say. A line of a text over several lines that looks like a key is taken for one, which
    a message may be wrong by.
    """
    found: dict[Place, int] = {}
    table: Place = ()
    for number, line in enumerate(text.splitlines(), 1):
        if match := _HEADER.fullmatch(line):
            table = _parts(match[1])
            found.setdefault(table, number)
        elif match := _KEY.match(line):
            found.setdefault((*table, *_parts(match[1])), number)
    return found


def _parts(key: str) -> Place:
    return tuple(part.strip("\"'") for part in _PART.findall(key))


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def inline(value: Any) -> str:
    """A value in one line.

    >>> inline({"a": [1, 2.0, True], "b c": "so"})
    '{ a = [1, 2.0, true], "b c" = "so" }'

    Raises:
        TypeError: TOML has no such value.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key(name)} = {inline(one)}" for name, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(inline, value))}]"
    raise TypeError(f"TOML has no {type(value).__name__}")


def assignments(table: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a table."""
    for name, value in table.items():
        yield f"{key(name)} = {inline(value)}"


def key(name: str) -> str:
    """A key, in quotes where it needs them."""
    return name if _BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    """A basic string: TOML's escapes are those of JSON, but for DEL and halves of characters."""
    escaped = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
    return "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in escaped)
