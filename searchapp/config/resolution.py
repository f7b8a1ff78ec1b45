"""Resolve each setting from a flag, an environment variable, the project file, the user file or its default.

    ~/.local/share/searchapp/settings.toml     user file
    .../project/searchapp.toml                 project file, in the working directory or above it

The first source in this order applies. A project file may come from an untrusted person: it must not contain
passwords, and it may change values only if the user file trusts its folder. Contradicting or incomplete
values are errors.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from searchapp.config.settings import (
    BY_NAME,
    CREDENTIALS,
    DECLARED,
    DEFAULT_URL,
    MODEL_KEY_WAYS,
    MODEL_KEYS,
    PLACES,
    PROGRAM,
    SECRETS,
    SERVER,
    TEAM,
    WAYS,
    SecretSource,
    SettingDeclaration,
    Settings,
    Value,
    address_of_cloud,
)
from searchapp.errors import DataError, InvalidFiles, Problem, UsageError
from searchapp.files import open_file, parse_toml
from searchapp.lucene.dataclass import dataclass
from searchapp.text import be, suggestion

USER_FILE = "settings.toml"
PROJECT_FILE = "searchapp.toml"

# The tables that contain settings.
TABLES = frozenset(table for table, dot, _ in (name.partition(".") for name in BY_NAME) if dot)

# The names of tables and the key in them.
KeyPath: TypeAlias = tuple[str, ...]

# Maximum bytes of a settings file: the TOML parser takes seconds for a key of ten thousand parts.
LARGEST = 1 << 14

# Maximum lines of a value: finding the end of a longer one is slow.
MOST_LINES = 500


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file with valid values."""

    path: Path
    # Only its owner can read it.
    is_private: bool
    text: str = field(repr=False)
    values: Mapping[str, Value] = field(repr=False)

    def line(self, name: str) -> int | None:
        """Return the line of a key, from 1, or None."""
        return lines_of(self.text).get(tuple(name.split(".")))


def find_project(folder: Path) -> Path | None:
    """Return the project file of a folder or the nearest folder above it, up to the user's own folder.

    Also returns broken links, pipes and unreadable files, but no folders.
    """
    try:
        last = Path.home().resolve()
    except (OSError, RuntimeError):
        last = None
    for parent in (folder, *folder.parents):
        path = parent / PROJECT_FILE
        if os.path.lexists(path) and not os.path.isdir(path):  # noqa: PTH112  # pathlib's fails on hidden files
            return path
        if parent == last:
            break
    return None


def read_user_file(path: Path) -> SettingsFile | None:
    """Read the user file, if it exists.

    Raises:
        DataError: the file cannot be read or has errors.
    """
    try:
        return _read(path, is_project=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        # Other errors report a folder without access.
        if isinstance(error, PermissionError) and not os.access(path.parent, os.X_OK):
            return None
        raise _unreadable(path, error) from error


def read_project_file(path: Path) -> SettingsFile:
    """Read a project file.

    Raises:
        DataError: the file cannot be read or has errors.
    """
    try:
        return _read(path, is_project=True)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(f"{path} can't be read: {(error.strerror or str(error)).lower()}")


def _read(path: Path, *, is_project: bool) -> SettingsFile:
    with open_file(path) as file:
        status = os.fstat(file.fileno())
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise DataError(f"{path} is larger than {LARGEST >> 10} KiB, too large for a settings file")
    try:
        text = content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        table = parse_toml(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{path}: not TOML: {error}") from error
    is_private = not stat.S_IMODE(status.st_mode) & 0o077 and status.st_uid == os.geteuid()
    values: dict[str, Value] = {}
    errors: dict[KeyPath, tuple[str, ...]] = {}
    for key, value in _flat(table):
        try:
            values[".".join(key)] = _checked(key, value, path, is_project=is_project)
        except ValueError as error:
            errors[key] = error.args
    if errors:
        lines = lines_of(text)
        raise InvalidFiles(
            [
                Problem(
                    str(path),
                    kind[0] if kind else "wrong value",
                    f"line {lines[key]}" if key in lines else "",
                    sentence,
                )
                for key, (*kind, sentence) in errors.items()
            ]
        )
    return SettingsFile(path, is_private, text, values)


def _flat(table: Mapping[str, object]) -> Iterator[tuple[KeyPath, object]]:
    for name, value in table.items():
        if name in TABLES and isinstance(value, Mapping):
            yield from (((name, inner), each) for inner, each in value.items())
        else:
            yield (name,), value


def _checked(key: KeyPath, value: object, path: Path, *, is_project: bool) -> Value:
    """Check and convert the value of a key.

    Raises:
        ValueError: the key or value is wrong. The arguments are the kind, if not "wrong value", and the
            sentence.
    """
    name = ".".join(key)
    # A quoted key that contains a dot is not the key of a table.
    setting = BY_NAME.get(name) if name.count(".") == len(key) - 1 else None
    known = [each.name for each in DECLARED if (each.by_project if is_project else each.by_user)]
    if setting is None and name in TABLES:
        raise ValueError(f"{name} must be a table that begins with [{name}]")
    if setting is None:
        raise ValueError(
            "unknown setting",
            f"{name[:80]!r}{suggestion(name[:80], known)}: `searchapp config` lists all settings",
        )
    if name not in known:
        where = "a project file" if is_project else "the user's file"
        why = ", which others can read" if is_project and setting.secret else ""
        ways = setting.ways(Path(f"the user's {USER_FILE}"), f"a project's {PROJECT_FILE}")
        raise ValueError("misplaced setting", f"{name} must not be set in {where}{why}: use {ways}")
    read = setting.type.read(value, name, path.parent)
    if is_project and setting.holds_credentials(read):
        raise ValueError(
            "misplaced password",
            f"{name} contains a user name or a password, which a project file must not contain: set them "
            f"with SEARCHAPP_USERNAME and SEARCHAPP_PASSWORD, or in the user's {USER_FILE}",
        )
    return read


@dataclass(frozen=True, slots=True)
class SettingLines:
    """The lines of a settings file that set one value."""

    text: str = field(repr=False)
    # Where they belong in the file.
    place: str


def lines_to_set(name: str, typed: str, path: Path) -> SettingLines:
    """Return the lines that set a setting in the user file `path` to a typed value: TOML, or a text without quotes.

    Raises:
        UsageError: the user file must not have this setting, or the value is wrong.
        DataError: the file cannot be read or has errors.
    """
    value: object = typed
    literal = toml_literal(typed)
    with suppress(tomllib.TOMLDecodeError):
        parsed = parse_toml(f"value = {typed}")
        if parsed.keys() == {"value"}:
            value, literal = parsed["value"], typed
    try:
        _checked(tuple(name.split(".")), value, path, is_project=False)
    except ValueError as error:
        raise UsageError(error.args[-1]) from error
    file = read_user_file(path)
    text = "" if file is None else file.text
    lines = lines_of(text)
    table, _, key = name.rpartition(".")
    assignment = f"{key} = {literal}"
    if line := lines.get(tuple(name.split("."))):
        return SettingLines(assignment, f"in place of {key} in line {line} of {path}")
    if not table:  # behind a header it would belong to the table
        return SettingLines(assignment, f"as the first line of {path}")
    if line := lines.get((table,)):
        is_header = _HEADER.match(text.split("\n")[line - 1]) is not None
        return SettingLines(
            assignment if is_header else f"{name} = {literal}", f"below line {line} of {path}"
        )
    return SettingLines(f"[{table}]\n{assignment}", f"at the end of {path}")


def toml_literal(value: Value) -> str:
    """Return a value that is no table in TOML."""
    if isinstance(value, tuple):
        return f"[{', '.join(toml_literal(str(each)) for each in value)}]"
    if isinstance(value, int):
        return str(value).lower()
    # The escapes of JSON, and one more control character.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


_HEADER = re.compile(r"\s*\[")


def lines_of(text: str) -> dict[KeyPath, int]:
    r"""Map each key and table of a valid TOML text to the line, from 1, that first sets it.

    Omits keys after a value of more than MOST_LINES.

    >>> lines_of('a = 1\n"url" = "x"\n[b]\nc.d = 1\n')
    {('a',): 1, ('url',): 2, ('b',): 3, ('b', 'c'): 4, ('b', 'c', 'd'): 4}
    """
    lines: dict[KeyPath, int] = {}
    start, statement = 1, ""
    table: KeyPath = ()
    for number, line in enumerate(text.split("\n"), start=1):
        if number - start > MOST_LINES:
            break
        statement += f"{line}\n"
        try:
            parsed = parse_toml(statement)
        except tomllib.TOMLDecodeError:
            continue  # the statement is incomplete
        is_header = _HEADER.match(statement) is not None
        paths = [(*(() if is_header else table), *path) for path in _paths(parsed)]
        for path in paths:
            lines.setdefault(path, start)
        if is_header:
            table = paths[-1]
        start, statement = number + 1, ""
    return lines


def _paths(table: Mapping[str, object]) -> Iterator[KeyPath]:
    queue: list[tuple[KeyPath, Mapping[str, object]]] = [((), table)]
    while queue:
        above, content = queue.pop()
        for name, value in content.items():
            yield (*above, name)
            if isinstance(value, Mapping):
                queue.append(((*above, name), value))


class Origin(StrEnum):
    """The kinds of sources."""

    flag = "flag"
    environment = "environment"
    project = "project file"
    user = "user file"
    default = "default"


@dataclass(frozen=True, slots=True)
class SettingSource:
    """The values of one source by setting."""

    origin: Origin
    values: Mapping[str, Value] = field(repr=False)
    file: SettingsFile | None = None


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A setting's value and its source."""

    setting: SettingDeclaration
    source: SettingSource
    # The setting's name in the source: `url` may set the engine.
    key: str
    value: Value | None = field(repr=False)

    @property
    def shown(self) -> str:
        """The value without secrets."""
        return self.setting.shown(self.value)

    @property
    def plain(self) -> str | int | list[str] | None:
        """The JSON value without secrets."""
        if self.value is None or isinstance(self.value, int):
            return self.value
        if isinstance(self.value, tuple) and not self.setting.secret:
            return list(map(str, self.value))
        return self.shown

    @property
    def file(self) -> Path | None:
        return None if self.source.file is None else self.source.file.path

    @property
    def line(self) -> int | None:
        return None if self.source.file is None else self.source.file.line(self.key)

    @property
    def where(self) -> str:
        """The flag, the variable, or the file and its line; empty for a default."""
        return self.source_name if self.line is None else f"{self.source_name}:{self.line}"

    @property
    def source_name(self) -> str:
        """The flag, the variable or the file; empty for a default."""
        setting = BY_NAME[self.key]
        if self.source.origin is Origin.flag:
            return setting.flag
        if self.source.origin is Origin.environment:
            return setting.variable
        return "" if self.file is None else str(self.file)

    @property
    def chosen_by(self) -> str:
        """The source, as part of a sentence."""
        return f"{self.key} in {self.file}" if self.file is not None else self.source_name or "default"


SettingValues: TypeAlias = Mapping[str, SettingValue]


def _settings_of(values: SettingValues, own_home: Path, opaque_id: str) -> Settings:
    """Make the settings from their values.

    Raises:
        UsageError: values contradict each other or are incomplete.
    """
    _require_credentials(values)

    fields_set: dict[str, object] = {
        each.name: values[each.name].value
        for each in fields(Settings)
        if each.name in values and values[each.name].value is not None
    }
    fields_set |= {name: _secret(values, name) for name in (*SECRETS, *MODEL_KEYS)}
    derived: dict[str, Any] = {
        "home": own_home,
        **fields_set,
        "engine_chosen_by": values["engine"].chosen_by,
        "url": _address(values),
        "url_given": any(
            values[name].value and values[name].source.origin is not Origin.default for name in PLACES
        ),
        "opaque_id": opaque_id,
        "own_home": own_home,
        "team": {
            setting.name.partition(".")[2]: str(value)
            for setting in TEAM
            if (value := values[setting.name].value) is not None
        },
    }
    return Settings(**derived)


def _address(values: SettingValues) -> str:
    url, cloud_id = (values[name] for name in PLACES)
    if cloud_id.value is None:
        return str(url.value or DEFAULT_URL)
    if url.value is not None:
        raise UsageError(
            f"both an address and a Cloud ID are set: leave out {url.chosen_by} or {cloud_id.chosen_by}"
        )
    return address_of_cloud(str(cloud_id.value))


def _given_secret(values: SettingValues, name: str) -> SettingValue | None:
    """Return the value, file or command of a secret, if set.

    Raises:
        UsageError: several are set.
    """
    given = [value for way in WAYS if (value := values[name + way]).value is not None]
    if len(given) > 1:
        raise UsageError(f"both {given[0].chosen_by} and {given[1].chosen_by} are set: leave out one of them")
    return given[0] if given else None


def _secret(values: SettingValues, name: str) -> str | SecretSource | None:
    given = _given_secret(values, name)
    if given is None:
        return None
    if given.key == name:
        return str(given.value)
    if isinstance(given.value, Path):
        return SecretSource(given.chosen_by, path=given.value)
    return SecretSource(given.chosen_by, command=str(given.value))


def _require_credentials(values: SettingValues) -> None:
    """Check that at most one kind of credentials is set, completely."""
    username, password = values["username"], _given_secret(values, "password")
    kinds = {
        "an API key": _given_secret(values, "api_key"),
        "a bearer token": _given_secret(values, "bearer_token"),
        "a user name": username if username.value else None,
    }
    given = [(kind, value) for kind, value in kinds.items() if value is not None]
    if len(given) > 1:
        (kind, first), (other, second) = given[:2]
        raise UsageError(
            f"both {kind} and {other} are set: leave out {first.chosen_by} or {second.chosen_by}"
        )
    if bool(username.value) != (password is not None):
        present, name = (username, "password") if password is None else (password, "username")
        missing = f"{name} there" if present.file is not None else BY_NAME[name].variable
        raise UsageError(f"{present.chosen_by} is set without {missing}: set both or neither")


@dataclass(frozen=True, slots=True)
class Resolution:
    """The settings, and the source of each value."""

    settings: Settings
    values: SettingValues
    # May not exist.
    user_file: Path
    project_file: Path | None
    is_user_file_there: bool
    # False for a file that changes nothing in an untrusted folder.
    is_project_file_used: bool
    warnings: Sequence[str]

    @property
    def about_files(self) -> Sequence[str]:
        """A line for each settings file."""
        user = f"user file: {self.user_file}{'' if self.is_user_file_there else ' (does not exist)'}"
        if self.project_file is not None:
            use = (
                ""
                if self.is_project_file_used
                else " (not trusted and not used; it would not change any value)"
            )
            return user, f"project file: {self.project_file}{use}"
        switch = self.values["project"]
        why = "" if switch.value else f" (project files are disabled by {switch.chosen_by})"
        return user, f"project file: none{why}"


def resolve(flags: Mapping[str, object], environ: Mapping[str, str], folder: Path | None = None) -> Settings:
    """Resolve only the settings; see `resolution`."""
    return resolution(flags, environ, folder).settings


def resolution(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    folder: Path | None = None,
    *,
    opaque_id: str = PROGRAM,
) -> Resolution:
    """Resolve each setting from flags, the environment, files and defaults.

    Args:
        flags: values by setting; None if absent
        environ: environment variables
        folder: where the search for a project file begins; default: the working directory
        opaque_id: the id that requests send to a server

    Raises:
        UsageError: unknown engine, contradicting or incomplete credentials, or a project file that changes a
            value in an untrusted folder.
        DataError: a settings file cannot be read or has errors.
    """
    of_flags = _flag_source(flags)
    given = [of_flags, _environment_source(environ, of_flags.values)]
    own_home = _home(given)
    user_file = own_home / USER_FILE
    read = read_user_file(user_file)
    warnings: list[str] = []
    user = []
    if read is not None:
        user = [SettingSource(Origin.user, _without_readable_secrets(read, warnings), read)]
    without_project = _merge([*given, *user], own_home)
    values = without_project
    project = _project_file(folder) if without_project["project"].value else None
    if project is not None:
        values = _merge([*given, SettingSource(Origin.project, project.values, project), *user], own_home)
        if not _is_trusted(project.path.parent, without_project["trusted"].value):
            _require_no_change(values, without_project, project, user_file)
            values = without_project
    return Resolution(
        settings=_settings_of(values, own_home, opaque_id),
        values=values,
        user_file=user_file,
        project_file=None if project is None else project.path,
        is_user_file_there=read is not None,
        is_project_file_used=project is not None and values is not without_project,
        warnings=warnings,
    )


# The sources


def _flag_source(flags: Mapping[str, object]) -> SettingSource:
    values: dict[str, Value] = {}
    for setting in DECLARED:
        given = flags.get(setting.name) if setting.flag else None
        if given is True:
            values[setting.name] = True
        elif given:
            text = ",".join(given) if isinstance(given, list) else str(given)
            if setting.holds_credentials(text):
                raise UsageError(
                    f"{setting.flag} contains a user name or a password, but all users of this machine can "
                    "read command lines: set SEARCHAPP_USERNAME and SEARCHAPP_PASSWORD instead, or set "
                    f"{setting.variable} to the whole address"
                )
            values[setting.name] = _from_text(setting, text, setting.flag)
    return SettingSource(Origin.flag, values)


def _environment_source(environ: Mapping[str, str], flags: Mapping[str, Value]) -> SettingSource:
    """Read the variables of settings that no flag sets; the others may be invalid."""
    set_already = {*flags, *(("engine", *PLACES) if "url" in flags else ())}
    values = {
        setting.name: _from_text(setting, text, setting.variable)
        for setting in DECLARED
        if setting.variable and setting.name not in set_already and (text := environ.get(setting.variable))
    }
    return SettingSource(Origin.environment, values)


def _from_text(setting: SettingDeclaration, text: str, name: str) -> Value:
    try:
        return setting.type.read(text, name, None)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _project_file(folder: Path | None) -> SettingsFile | None:
    try:
        path = find_project(folder or Path.cwd())
    except OSError:  # the working directory was removed
        return None
    return None if path is None else read_project_file(path)


def _home(given: Sequence[SettingSource]) -> Path:
    for source in given:
        if "home" in source.values:
            return Path(str(source.values["home"]))
    import platformdirs

    return platformdirs.user_data_path("searchapp", appauthor=False)


def _without_readable_secrets(file: SettingsFile, warnings: list[str]) -> Mapping[str, Value]:
    """Drop the secrets of a user file that others can read."""
    secret = [name for name, value in file.values.items() if BY_NAME[name].holds_credentials(value)]
    if file.is_private or not secret:
        return file.values
    warnings.append(
        f"other users can read {file.path}, so its {_listed(file, secret)} "
        f"{be(len(secret))} not used: run `chmod 600` on it"
    )
    dropped = {*secret, *(CREDENTIALS if not set(secret).isdisjoint(CREDENTIALS) else ())}
    return {name: value for name, value in file.values.items() if name not in dropped}


# Precedence


def _merge(sources: Sequence[SettingSource], own_home: Path) -> dict[str, SettingValue]:
    defaults = {setting.name: setting.default for setting in DECLARED if setting.default is not None}
    all_sources = [*sources, SettingSource(Origin.default, {**defaults, "home": own_home})]
    values = {name: _first(name, all_sources) for name in BY_NAME}
    for group in (CREDENTIALS, *MODEL_KEY_WAYS, PLACES):
        source = next((source for source in all_sources if not source.values.keys().isdisjoint(group)), None)
        if source is not None:
            values |= {name: _first(name, [source]) for name in group}
    # The first source with an address also chooses the engine, unless it names one.
    for source in sources:
        key = next((name for name in ("engine", *PLACES) if name in source.values), None)
        if key is not None:
            engine = source.values[key] if key == "engine" else SERVER
            values["engine"] = SettingValue(BY_NAME["engine"], source, key, engine)
            break
    return values


def _first(name: str, sources: Iterable[SettingSource]) -> SettingValue:
    for source in sources:
        if name in source.values:
            return SettingValue(BY_NAME[name], source, name, source.values[name])
    return SettingValue(BY_NAME[name], SettingSource(Origin.default, {}), name, None)


def _is_trusted(folder: Path, trusted: Value | None) -> bool:
    real = folder.resolve()
    # `realpath` accepts a cycle of links; `resolve` would fail.
    return isinstance(trusted, tuple) and any(
        isinstance(path, Path) and real.is_relative_to(os.path.realpath(path)) for path in trusted
    )


def _require_no_change(
    values: SettingValues, without_project: SettingValues, project: SettingsFile, user_file: Path
) -> None:
    """Reject the project file of an untrusted folder if it changes any value."""
    changed = [
        value.key
        for name, value in values.items()
        if value.source.origin is Origin.project and value.value != without_project[name].value
    ]
    if changed:
        folder = json.dumps(str(project.path.parent), ensure_ascii=False)
        line = f"{folder} to trusted in" if without_project["trusted"].value else f"trusted = [{folder}] to"
        raise UsageError(
            f"{project.path} sets {_listed(project, list(dict.fromkeys(changed)))}, but its folder is not "
            f"trusted: check the file and add {line} {user_file}, or ignore the file with SEARCHAPP_PROJECT=0"
        )


def _listed(file: SettingsFile, names: Sequence[str]) -> str:
    parts = [name if (line := file.line(name)) is None else f"{name} (line {line})" for name in names]
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
