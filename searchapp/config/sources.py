"""Which value of each setting holds, and where it comes from.

    flag  >  environment  >  project file  >  user's file  >  default

A project file may come with somebody else's folder. What it says changes nothing in silence: where it would change
anything, its folder must be one that the user's own file trusts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from searchapp.config.declared import (
    BY_NAME,
    CREDENTIALS,
    DECLARED,
    PLACES,
    TEAM,
    WAYS,
    Declared,
    holds_credentials,
)
from searchapp.config.files import (
    USER_FILE,
    SettingsFile,
    find_project,
    read_project_file,
    read_user_file,
)
from searchapp.config.kinds import Value
from searchapp.errors import UsageError
from searchapp.settings import (
    DEFAULT_INDEX_PREFIX,
    DEFAULT_URL,
    ENGINES,
    PROGRAM,
    Kept,
    Settings,
    address_of_cloud,
)


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
        settings=_settings(found, own_home, opaque_id),
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


def _settings(found: Mapping[str, Found], own_home: Path, opaque_id: str) -> Settings:
    def text(name: str) -> str | None:
        value = found[name].value
        return None if value is None else str(value)

    def path(name: str) -> Path | None:
        value = found[name].value
        return value if isinstance(value, Path) else None

    _require_credentials(found)
    return Settings(
        home=path("home") or own_home,
        engine=text("engine") or ENGINES[0],
        engine_chosen_by=found["engine"].chosen_by,
        url=_address(found),
        url_given=any(
            found[name].value and found[name].source.origin is not Origin.default for name in PLACES
        ),
        api_key=_secret(found, "api_key"),
        bearer_token=_secret(found, "bearer_token"),
        username=text("username"),
        password=_secret(found, "password"),
        ca_certs=path("ca_certs"),
        fingerprint=text("fingerprint"),
        headers=_headers(found["headers"].value),
        proxy=text("proxy"),
        insecure=bool(found["insecure"].value),
        opaque_id=opaque_id,
        index_prefix=text("index_prefix") or DEFAULT_INDEX_PREFIX,
        data_mirror=text("data_mirror"),
        shared=bool(found["shared"].value),
        annotator=text("annotator"),
        own_home=own_home,
        team={one.name.partition(".")[2]: value for one in TEAM if (value := text(one.name)) is not None},
        quiet=bool(found["quiet"].value),
    )


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


def _headers(value: Value | None) -> tuple[tuple[str, str], ...]:
    pairs = value if isinstance(value, tuple) else ()
    return tuple(pair for pair in pairs if isinstance(pair, tuple))


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
