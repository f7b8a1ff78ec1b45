"""Which value of each setting holds, and where it comes from.

    flag  >  environment  >  project file  >  user's file  >  default

    ~/.local/share/searchapp/settings.toml     a user's own; with the keys of [judge], [search], [topics] and [browse]
    .../project/searchapp.toml                 a project's, found upwards from the working directory

Both files are TOML with the names of `searchapp.config.settings` as keys. A project file comes with a folder that
somebody else may have made: it can hold no password, and where it would change anything its folder must be one that the
user's own file trusts. What is said twice or only half is refused: an address beside a Cloud ID, an API key beside a
user name, a password that a file holds and a command prints.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from searchapp.config.settings import (
    BY_NAME,
    CREDENTIALS,
    DECLARED,
    DEFAULT_URL,
    ENGINES,
    PLACES,
    PROGRAM,
    TEAM,
    WAYS,
    Declared,
    Kept,
    Settings,
    Value,
    address_of_cloud,
    holds_credentials,
)
from searchapp.errors import DataError, InvalidFiles, Problem, UsageError
from searchapp.files import open_file, parse_toml
from searchapp.text import suggestion

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
            "unknown setting", f"{named[:80]!r}{suggestion(named[:80], known)}: `searchapp config` lists all"
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


class Origin(StrEnum):
    """Where a value comes from."""

    flag = "flag"
    environment = "environment"
    project = "project file"
    user = "user file"
    default = "default"


@dataclass(frozen=True, slots=True)
class Source:
    """Everything that one origin sets, by the names of settings."""

    origin: Origin
    values: Mapping[str, Value] = field(repr=False)
    file: SettingsFile | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A setting's value, and the source that has it; `key` is what names it there: `url` for an engine, too."""

    setting: Declared
    source: Source
    key: str
    value: Value | None = field(repr=False)

    @property
    def shown(self) -> str:
        """The value as it may be shown."""
        return self.setting.shown(self.value)

    @property
    def plain(self) -> str | bool | list[str] | None:
        """The same for JSON, None where there is no value."""
        if self.value is None or isinstance(self.value, bool):
            return self.value
        if self.setting.secret:
            return self.shown
        return [str(one) for one in self.value] if isinstance(self.value, tuple) else self.shown

    @property
    def file(self) -> Path | None:
        return None if self.source.file is None else self.source.file.path

    @property
    def line(self) -> int | None:
        """The line of the file."""
        return None if self.source.file is None else self.source.file.line(self.key)

    @property
    def where(self) -> str:
        """The flag, the variable, or the file and its line; nothing for a default."""
        line = self.line
        return self.place if line is None else f"{self.place}:{line}"

    @property
    def place(self) -> str:
        """The flag, the variable or the file; nothing for a default."""
        setting = BY_NAME[self.key]
        if self.source.origin is Origin.flag:
            return setting.flag
        if self.source.origin is Origin.environment:
            return setting.variable
        return "" if self.file is None else str(self.file)

    @property
    def chosen_by(self) -> str:
        """What set it, in the middle of a sentence."""
        if self.source.origin is Origin.default:
            return "default"
        return f"{self.key} in {self.file}" if self.file is not None else self.place


def settings_of(found: Mapping[str, Found], own_home: Path, opaque_id: str) -> Settings:
    """The settings that the values which hold make together.

    `own_home` is the home folder with the user's own file, `opaque_id` what a server's owner knows requests by.

    Raises:
        UsageError: values that exclude each other, or one without the other that it needs.
    """

    _require_credentials(found)
    team = {
        one.name.partition(".")[2]: str(held) for one in TEAM if (held := found[one.name].value) is not None
    }
    made: dict[str, Any] = {
        "engine_chosen_by": found["engine"].chosen_by,
        "url": _address(found),
        "url_given": any(
            found[name].value and found[name].source.origin is not Origin.default for name in PLACES
        ),
        "api_key": _secret(found, "api_key"),
        "bearer_token": _secret(found, "bearer_token"),
        "password": _secret(found, "password"),
        "opaque_id": opaque_id,
        "own_home": own_home,
        "team": team,
    }
    # All other fields have the values of the settings of their names, in the types that the kinds of these read.
    of_name = [found[one.name] for one in fields(Settings) if one.name in found]
    plain: dict[str, Any] = {one.setting.name: one.value for one in of_name if one.value is not None}
    return Settings(**{"home": own_home, **plain, **made})


def _address(found: Mapping[str, Found]) -> str:
    """Where the server is.

    Raises:
        UsageError: it is said twice.
    """
    url, cloud_id = (found[name] for name in PLACES)
    if cloud_id.value is None:
        return str(url.value or DEFAULT_URL)
    if url.value is not None:
        raise UsageError(
            f"both an address and a Cloud ID are set: leave out {url.chosen_by} or {cloud_id.chosen_by}"
        )
    return address_of_cloud(str(cloud_id.value))


def _given(found: Mapping[str, Found], name: str) -> Found | None:
    """What a secret is had by, if it is: itself, a file or a command.

    Raises:
        UsageError: more than one.
    """
    given = [one for way in WAYS if (one := found[name + way]).value is not None]
    if len(given) > 1:
        raise UsageError(
            f"{given[0].chosen_by} and {given[1].chosen_by} are set, and either says what the other does: leave one out"
        )
    return given[0] if given else None


def _secret(found: Mapping[str, Found], name: str) -> str | Kept | None:
    """A secret, or where it is kept."""
    given = _given(found, name)
    if given is None:
        return None
    if given.key == name:
        return str(given.value)
    if isinstance(given.value, Path):
        return Kept(given.chosen_by, path=given.value)
    return Kept(given.chosen_by, command=str(given.value))


def _require_credentials(found: Mapping[str, Found]) -> None:
    """Make sure that there is one way at most to say who asks, and that it is whole."""
    username, password = found["username"], _given(found, "password")
    told = {
        "an API key": _given(found, "api_key"),
        "a bearer token": _given(found, "bearer_token"),
        "a user name": username if username.value else None,
    }
    given = [(what, one) for what, one in told.items() if one is not None]
    if len(given) > 1:
        (what, first), (other, second) = given[:2]
        raise UsageError(
            f"both {what} and {other} are set: leave out {first.chosen_by} or {second.chosen_by}"
        )
    if bool(username.value) != (password is not None):
        there, name = (username, "password") if password is None else (password, "username")
        missing = f"{name} there" if there.file is not None else BY_NAME[name].variable
        raise UsageError(f"{there.chosen_by} is set without {missing}: set both or neither")


@dataclass(frozen=True, slots=True)
class Resolution:
    """The settings, and for each of them where its value comes from.

    `user_file` is where the user's file is or would be, `project_file` the one that was found, if any. One of a folder
    that is not trusted is not used: it changes nothing, or there would be an error. `warnings` are sentences for the
    person.
    """

    settings: Settings
    found: Mapping[str, Found]
    user_file: Path
    project_file: Path | None
    is_user_file_there: bool
    is_project_file_used: bool
    warnings: Sequence[str]

    @property
    def about_files(self) -> Sequence[str]:
        """Which files there are, in a line each."""
        user = f"user file: {self.user_file}{'' if self.is_user_file_there else ' (there is none)'}"
        if self.project_file is not None:
            use = "" if self.is_project_file_used else " (not trusted and not used: it would change nothing)"
            return user, f"project file: {self.project_file}{use}"
        switch = self.found["project"]
        why = "" if switch.value else f" ({switch.chosen_by} says that none is looked for)"
        return user, f"project file: none{why}"


def resolve(flags: Mapping[str, object], environ: Mapping[str, str], folder: Path | None = None) -> Settings:
    """The settings alone, see `resolution`."""
    return resolution(flags, environ, folder).settings


def resolution(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    folder: Path | None = None,
    *,
    opaque_id: str = PROGRAM,
) -> Resolution:
    """What holds, from flags (absent or None: not given), the environment, files and defaults.

    `folder` is the one whose project file holds, the working directory by default; `opaque_id` is what a server's
    owner knows requests by.

    Raises:
        UsageError: an engine that does not exist, a password without a user name, both an API key and a user name, or
            a project file that would change something in a folder that is not trusted.
        DataError: a settings file can't be read, or something in it is wrong.
    """
    of_flags = _of_flags(flags)
    given = [of_flags, _of_environment(environ, of_flags.values)]
    own_home = _home(given)
    user_file = own_home / USER_FILE
    read = read_user_file(user_file)
    warnings: list[str] = []
    user = [] if read is None else [Source(Origin.user, _without_open_secrets(read, warnings), read)]
    without = _merged([*given, *user], own_home)
    project = _project(folder) if without["project"].value else None
    found = without
    if project is not None:
        found = _merged([*given, Source(Origin.project, project.values, project), *user], own_home)
        if not _is_trusted(project.path, without["trusted"].value):
            _require_no_change(found, without, project, user_file)
            found = without
    return Resolution(
        settings=settings_of(found, own_home, opaque_id),
        found=found,
        user_file=user_file,
        project_file=None if project is None else project.path,
        is_user_file_there=read is not None,
        is_project_file_used=project is not None and found is not without,
        warnings=warnings,
    )


# The sources


def _of_flags(flags: Mapping[str, object]) -> Source:
    values: dict[str, Value] = {}
    for setting in DECLARED:
        held = flags.get(setting.name) if setting.flag else None
        if held is True:
            values[setting.name] = True
        elif held:
            text = ",".join(held) if isinstance(held, list) else str(held)
            if holds_credentials(setting, text):
                raise UsageError(
                    f"{setting.flag} has a user name or a password in it, and everybody on this machine can read the "
                    "command lines of others: set SEARCHAPP_USERNAME and SEARCHAPP_PASSWORD instead, or "
                    f"{setting.variable} to the whole address"
                )
            values[setting.name] = _from_text(setting, text, setting.flag)
    return Source(Origin.flag, values)


def _of_environment(environ: Mapping[str, str], flags: Mapping[str, Value]) -> Source:
    """What variables set; what a flag has set already may be nonsense there."""
    set_already = {*flags, *(("engine", *PLACES) if "url" in flags else ())}
    held = {setting.name: environ.get(setting.variable) for setting in DECLARED if setting.variable}
    values = {
        name: _from_text(BY_NAME[name], text, BY_NAME[name].variable)
        for name, text in held.items()
        if text and name not in set_already
    }
    return Source(Origin.environment, values)


def _from_text(setting: Declared, text: str, named: str) -> Value:
    try:
        return setting.kind.from_text(text, named)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _project(folder: Path | None) -> SettingsFile | None:
    try:
        folder = Path.cwd() if folder is None else folder
    except OSError:  # the working directory was removed
        return None
    path = find_project(folder)
    return None if path is None else read_project_file(path)


def _home(given: Sequence[Source]) -> Path:
    """The user's home folder: no file can say where it is, for the user's file is in it."""
    named = next((Path(str(one.values["home"])) for one in given if "home" in one.values), None)
    if named is not None:
        return named
    import platformdirs

    return platformdirs.user_data_path("searchapp", appauthor=False)


def _without_open_secrets(file: SettingsFile, warnings: list[str]) -> Mapping[str, Value]:
    """The values of the user's file; secrets only if nobody else can read it."""
    secret = [name for name, value in file.values.items() if holds_credentials(BY_NAME[name], value)]
    if file.is_private or not secret:
        return file.values
    warnings.append(
        f"{file.path} can be read by others, so {_listed(file, secret)} in it {'is' if len(secret) == 1 else 'are'} "
        f"not used: run `chmod 600` on it"
    )
    dropped = {*secret, *(CREDENTIALS if any(name in CREDENTIALS for name in secret) else ())}
    return {name: value for name, value in file.values.items() if name not in dropped}


# What holds


def _merged(sources: Sequence[Source], own_home: Path) -> dict[str, Found]:
    """What holds if these are all sources, the first one first."""
    defaults = {one.name: one.default for one in DECLARED if one.default is not None}
    every = [*sources, Source(Origin.default, {**defaults, "home": own_home})]
    found = {setting.name: _first(setting, every) for setting in DECLARED}
    for together in (CREDENTIALS, PLACES):
        for source in every:
            if any(name in source.values for name in together):
                found |= {name: _first(BY_NAME[name], [source]) for name in together}
                break
    found["engine"] = _engine(every)
    return found


def _first(setting: Declared, sources: Sequence[Source]) -> Found:
    source = next((one for one in sources if setting.name in one.values), None)
    if source is None:
        return Found(setting, Source(Origin.default, {}), setting.name, None)
    return Found(setting, source, setting.name, source.values[setting.name])


def _engine(sources: Sequence[Source]) -> Found:
    """The engine: the nearest source that names it, or an address, which only a server has."""
    engine = BY_NAME["engine"]
    for source in sources:
        if "engine" in source.values:
            return Found(engine, source, "engine", source.values["engine"])
        place = next((name for name in PLACES if name in source.values), None)
        if place is not None and source.origin is not Origin.default:
            return Found(engine, source, place, ENGINES[1])
    raise AssertionError("there is a default")


def _is_trusted(path: Path, folders: Value | None) -> bool:
    place = path.parent.resolve()
    listed = folders if isinstance(folders, tuple) else ()
    # A loop of links leads nowhere to `realpath`; `resolve` would fail.
    return any(
        isinstance(folder, Path) and place.is_relative_to(os.path.realpath(folder)) for folder in listed
    )


def _require_no_change(
    found: Mapping[str, Found], without: Mapping[str, Found], project: SettingsFile, user_file: Path
) -> None:
    """Refuse a project file of a folder that is not trusted, unless all would be the same without it."""
    changed = [
        one.key
        for name, one in found.items()
        if one.source.origin is Origin.project and one.value != without[name].value
    ]
    if changed:
        folder = json.dumps(str(project.path.parent), ensure_ascii=False)
        line = f"{folder} to trusted in" if without["trusted"].value else f"trusted = [{folder}] to"
        raise UsageError(
            f"{project.path} sets {_listed(project, list(dict.fromkeys(changed)))}, and you have not said that you "
            f"trust its folder: look into it, and add {line} {user_file}, or leave the file out "
            "with SEARCHAPP_PROJECT=0"
        )


def _listed(file: SettingsFile, names: Sequence[str]) -> str:
    """Settings with their lines, in words."""
    parts = [name if (line := file.line(name)) is None else f"{name} (line {line})" for name in names]
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
