"""The two files that settings may stand in: the user's in the home folder, and a project's.

    ~/.local/share/searchapp/settings.toml     a user's own; with the keys of [judge], [search], [topics] and [browse]
    .../project/searchapp.toml                 a project's, found upwards from the working directory

Both are TOML with the names of `declared` as keys. A project file comes with a folder that somebody else may have made:
it can hold no password, and `sources` uses what it says only in a folder that the user trusts.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from searchapp.config.declared import DECLARED, Declared, holds_credentials
from searchapp.config.kinds import Value
from searchapp.errors import DataError, InvalidFiles, Problem
from searchapp.inputs import open_file, parse_toml
from searchapp.names import meant

USER_FILE = "settings.toml"
PROJECT_FILE = "searchapp.toml"

TABLES = frozenset(name for name, _, key in (one.name.partition(".") for one in DECLARED) if key)
"""The tables that settings are in; what the `keys` of a screen may hold is the affair of `tui.keys`."""

KeyPath: TypeAlias = tuple[str, ...]
"""A key behind the tables that it is in."""

BY_PATH = {tuple(one.name.split(".")): one for one in DECLARED}

LARGEST = 1 << 14
"""In bytes: no settings need more, and TOML's reader takes seconds for a key of some ten thousand parts."""

MOST_LINES = 500
"""Of a value: to find the end of a longer one takes long."""


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file that was read, and the values in it, which are all right.

    `values` may be secrets, as `text` is where they stand; `is_private` says that nobody but its owner can read it.
    """

    path: Path
    is_private: bool
    text: str = field(repr=False)
    values: Mapping[str, Value] = field(repr=False)

    def line(self, name: str) -> int | None:
        """The line on which a key stands, counted from 1; None if it can't be found."""
        return lines_of(self.text).get(tuple(name.split(".")))


def find_project(folder: Path) -> Path | None:
    """The project file of a folder: in it, or in the nearest folder above that has one.

    The search ends with the user's own folder where it comes to that, else with the root. A folder of the file's name
    is passed over; a link that leads nowhere, a pipe or a file without the right to read it is found, and then refused.
    """
    try:
        last = Path.home().resolve()
    except (OSError, RuntimeError):
        last = None
    for one in (folder, *folder.parents):
        path = one / PROJECT_FILE
        if os.path.lexists(path) and not os.path.isdir(path):  # noqa: PTH112  # pathlib's fails on what is hidden
            return path
        if one == last:
            break
    return None


def read_user_file(path: Path) -> SettingsFile | None:
    """The user's file; None if there is none.

    Raises:
        DataError: it can't be read, or something in it is wrong.
    """
    try:
        return _read(path, is_project=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        if not os.access(path.parent, os.X_OK):
            return None  # nothing in such a home folder can be used, which others say
        raise _unreadable(path, error) from error
    except OSError as error:
        raise _unreadable(path, error) from error


def read_project_file(path: Path) -> SettingsFile:
    """A project file.

    Raises:
        DataError: it can't be read, or something in it is wrong.
    """
    try:
        return _read(path, is_project=True)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(f"{path} can't be read: {(error.strerror or str(error)).lower()}")


def _read(path: Path, is_project: bool) -> SettingsFile:
    with open_file(path) as file:
        status = os.fstat(file.fileno())
        held = file.read(LARGEST + 1)
    if len(held) > LARGEST:
        raise DataError(f"{path} is larger than {LARGEST >> 10} KiB: that is no settings file")
    try:
        text = held.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        described = parse_toml(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{path}: not TOML: {error}") from error
    is_private = not stat.S_IMODE(status.st_mode) & 0o077 and status.st_uid == os.geteuid()
    return SettingsFile(path, is_private, text, _checked(path, text, described, is_project))


def _checked(path: Path, text: str, described: Mapping[str, object], is_project: bool) -> dict[str, Value]:
    """The values of a file.

    Raises:
        InvalidFiles: a key that is none, or a value that can't be; every one is named with its line.
    """
    values: dict[str, Value] = {}
    wrong: dict[KeyPath, tuple[str, str]] = {}
    for key, held in _flat(described):
        try:
            values[".".join(key)] = _value(key, held, path, is_project)
        except _Wrong as error:
            kind, what = error.args
            wrong[key] = kind, what
        except ValueError as error:
            wrong[key] = "wrong value", str(error)
    if wrong:
        lines = lines_of(text)
        raise InvalidFiles(
            [
                Problem(str(path), kind, f"line {lines[key]}" if key in lines else "", what)
                for key, (kind, what) in wrong.items()
            ]
        )
    return values


def _flat(described: Mapping[str, object]) -> Iterator[tuple[KeyPath, object]]:
    """The keys of a file, where those in a table of settings are keys by themselves."""
    for name, held in described.items():
        if name in TABLES and isinstance(held, Mapping):
            yield from (((name, inner), value) for inner, value in held.items())
        else:
            yield (name,), held


class _Wrong(ValueError):
    """A key that is wrong itself, whatever its value is; its arguments are the kind of problem, and the sentence."""


def _value(key: KeyPath, held: object, path: Path, is_project: bool) -> Value:
    setting = BY_PATH.get(key)
    named = ".".join(key)
    known = [one.name for one in DECLARED if (one.by_project if is_project else one.by_user)]
    if setting is None and key[0] in TABLES and len(key) == 1:
        raise ValueError(f"{named} must be a table: [{named}] begins one")
    if setting is None:
        raise _Wrong(
            "unknown setting", f"{named[:80]!r}{meant(named[:80], known)}: `searchapp config` lists all"
        )
    if named not in known:
        raise _Wrong("misplaced setting", _misplaced(setting, is_project))
    value = setting.kind.from_toml(held, named, path.parent)
    if is_project and holds_credentials(setting, value):
        raise _Wrong(
            "misplaced password",
            f"{named} has a user name or a password in it, which a project file must not hold: "
            f"set them with SEARCHAPP_USERNAME and SEARCHAPP_PASSWORD, or in the user's {USER_FILE}",
        )
    return value


def _misplaced(setting: Declared, is_project: bool) -> str:
    where = "a project file" if is_project else "the user's file"
    why = ", which others may read" if is_project and setting.secret else ""
    ways = setting.ways(Path(f"the user's {USER_FILE}"), f"a project's {PROJECT_FILE}")
    return f"{setting.name} must not be set in {where}{why}: use {ways}"


_HEADER = re.compile(r"\s*\[")


def lines_of(text: str) -> dict[KeyPath, int]:
    r"""The line on which each key and each table of a valid TOML text is first set, counted from 1.

    TOML's own reader says what each statement sets, so that no way of writing a key is missed, and nothing that only
    looks like one, in a text of several lines for instance, is taken for it. A key behind a very long value is missing.

    >>> lines_of('a = 1\n"url" = "x"\n[b]\nc.d = 1\n')
    {('a',): 1, ('url',): 2, ('b',): 3, ('b', 'c'): 4, ('b', 'c', 'd'): 4}
    """
    lines: dict[KeyPath, int] = {}
    begun, statement = 1, ""
    table: KeyPath = ()
    for number, line in enumerate(text.split("\n"), start=1):
        if number - begun > MOST_LINES:
            break
        statement += f"{line}\n"
        try:
            found = parse_toml(statement)
        except tomllib.TOMLDecodeError:
            continue  # it goes on
        if _HEADER.match(statement):
            table = ()
        paths = [table + path for path in _paths(found)]
        for path in paths:
            lines.setdefault(path, begun)
        if _HEADER.match(statement):
            table = paths[-1]
        begun, statement = number + 1, ""
    return lines


def _paths(table: Mapping[str, object]) -> Iterator[KeyPath]:
    """The paths of all that is in a table, what is in others behind those."""
    waiting: list[tuple[KeyPath, Mapping[str, object]]] = [((), table)]
    while waiting:
        above, held = waiting.pop()
        for name, value in held.items():
            yield (*above, name)
            if isinstance(value, Mapping):
                waiting.append(((*above, name), value))
