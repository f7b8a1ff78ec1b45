"""TOML files of users: report unknown keys and wrong types, each with its line; write values as TOML."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, overload

from searchapp.files import parse_toml, read_bytes
from searchapp.formats.problems import Problems, shown
from searchapp.text import key_suggestion

_HEADER = re.compile(r"\s*\[\[?([^\[\]]+)\]\]?\s*(?:#.*)?")
_KEY = re.compile(
    r"\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'))*)\s*="
)
_PART = re.compile(r"[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'")
_PLACE = re.compile(r"(.*) \(at (line \d+, column \d+|end of document)\)")

Keys = tuple[str, ...]  # the key of a value in the file, through all tables


class TomlTable:
    """One table of a file, which checks the values that it returns.

    A missing or wrong value is None, or the default.
    """

    def __init__(self, file: TomlFile, keys: Keys, content: Mapping[str, Any]) -> None:
        self._file = file
        self._keys = keys
        self.content = content
        self._read_keys: list[str] = []

    @property
    def name(self) -> str:
        return self._keys[-1]

    def has(self, key: str) -> bool:
        return key in self.content

    def wrong(self, kind: str, detail: str, key: str | None = None) -> None:
        self._file.wrong(kind, detail, self._keys if key is None else (*self._keys, key))

    @overload
    def text(self, key: str, default: str, *, required: bool = False) -> str: ...

    @overload
    def text(self, key: str, default: None = None, *, required: bool = False) -> str | None: ...

    def text(self, key: str, default: str | None = None, *, required: bool = False) -> str | None:
        value = self._value(key, required=required)
        if value is None:
            return default
        if isinstance(value, str) and value.strip():
            return value
        self._mistyped(key, "text in quotes")
        return default

    def whole(self, key: str, default: int, lowest: int, highest: int | None = None) -> int:
        value = self._value(key)
        if value is None:
            return default
        if isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= (highest or value):
            return value
        limits = f"of at least {lowest}" if highest is None else f"from {lowest} to {highest}"
        self._mistyped(key, f"a whole number {limits}")
        return default

    def truth(self, key: str) -> bool | None:
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
        """Return a list of different texts; `single` accepts a text instead of a list."""
        value = self._value(key)
        if value is None:
            return None
        if single and isinstance(value, str):
            value = [value]
        if not (isinstance(value, list) and value and all(isinstance(text, str) and text for text in value)):
            self._mistyped(
                key, "text in quotes or a list of these" if single else "a list of texts in quotes"
            )
            return None
        for text in {text for text in value if value.count(text) > 1}:
            self.wrong("repeated value", f"{key} has {shown(text)!r} twice", key)
        return tuple(dict.fromkeys(value))

    def mapping(self, key: str) -> dict[str, str]:
        """Return a table of texts; a list maps each text to itself."""
        value = self._value(key)
        if isinstance(value, list) and all(isinstance(text, str) for text in value):
            return {text: text for text in value}
        if isinstance(value, dict) and all(isinstance(text, str) and text for text in value.values()):
            return value
        if value is not None:
            self._mistyped(key, "a list of columns, or a table { name = 'column' }")
        return {}

    def table(self, key: str, *, required: bool = False) -> TomlTable | None:
        value = self._value(key, required=required)
        if isinstance(value, dict):
            return TomlTable(self._file, (*self._keys, key), value)
        if value is not None:
            self._mistyped(key, f"a table [{'.'.join((*self._keys, key))}]")
        return None

    def tables(self, key: str) -> Iterator[TomlTable]:
        if outer := self.table(key):
            yield from filter(None, map(outer.table, outer.content))

    def raw(self, key: str) -> Any:
        return self._value(key)

    def finish(self) -> None:
        for key in self.content:
            if key not in self._read_keys:
                unknown = f"{shown(key)!r}{key_suggestion(key, self._read_keys)}"
                known = ", ".join(self._read_keys)
                self.wrong("unknown key", f"{self._title()} has {unknown}: the known keys are {known}", key)

    def _value(self, key: str, *, required: bool = False) -> Any:
        if key not in self._read_keys:
            self._read_keys.append(key)
        if required and key not in self.content:
            self.wrong("missing key", f"{self._title()} needs {key}")
        return self.content.get(key)

    def _title(self) -> str:
        return f"[{'.'.join(self._keys)}]" if self._keys else "the file"

    def _mistyped(self, key: str, expected: str) -> None:
        self.wrong("wrong value", f"{key} must be {expected}", key)


class TomlFile:
    """A parsed TOML file; `root` is its table, empty if the file is unreadable."""

    def __init__(self, path: Path, problems: Problems) -> None:
        self.path = path
        self.problems = problems
        self._lines: dict[Keys, int] = {}
        self.root = TomlTable(self, (), self._read())

    def wrong(self, kind: str, detail: str, keys: Keys = ()) -> None:
        """Report a problem with the line of a key, or of the nearest table around it."""
        while keys and keys not in self._lines:
            keys = keys[:-1]
        where = f"line {self._lines[keys]}" if keys else ""
        self.problems.add(self.path, kind, where, detail, skippable=False)

    def _read(self) -> dict[str, Any]:
        try:
            text = read_bytes(self.path).decode("utf-8-sig")
            content = parse_toml(text)
        except OSError as error:
            self.problems.add_unopened(self.path, error)
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            detail = f"byte 0x{error.object[error.start]:02x}; save the file as UTF-8"
            self.problems.add(self.path, "not UTF-8", f"line {line}", detail, skippable=False)
        except tomllib.TOMLDecodeError as error:
            match = _PLACE.fullmatch(str(error))
            where, message = (match[2].replace(",", ""), match[1]) if match else ("", str(error))
            detail = message[:1].lower() + message[1:]
            self.problems.add(self.path, "not TOML", where, detail, skippable=False)
        else:
            self._lines = _lines_of_keys(text)
            return content
        return {}


def _lines_of_keys(text: str) -> dict[Keys, int]:
    """Return the first line of each key or table, which TOML's parser does not provide."""
    # Approximate: a line of a multi-line text that looks like a key may yield a wrong line.
    lines: dict[Keys, int] = {}
    table: Keys = ()
    for number, line in enumerate(text.splitlines(), 1):
        if match := _HEADER.fullmatch(line):
            table = _parts(match[1])
            lines.setdefault(table, number)
        elif match := _KEY.match(line):
            lines.setdefault((*table, *_parts(match[1])), number)
    return lines


def _parts(key: str) -> Keys:
    return tuple(part.strip("\"'") for part in _PART.findall(key))


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def inline(value: Any) -> str:
    """Return a value as TOML in one line.

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
        inner = ", ".join(f"{key(name)} = {inline(item)}" for name, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(inline, value))}]"
    raise TypeError(f"TOML has no {type(value).__name__}")


def assignments(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a table."""
    for name, value in table.items():
        yield f"{key(name)} = {inline(value)}"


def key(name: str) -> str:
    """Return a key, in quotes where TOML requires them."""
    return name if _BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    """Return a basic string: TOML escapes like JSON, except for DEL and half surrogate pairs."""
    escaped = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
    return "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in escaped)
