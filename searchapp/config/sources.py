"""Which value of each setting holds, and where it comes from.

    flag  >  environment  >  project file  >  user's file  >  default

A project file may come with somebody else's folder. What it says changes nothing in silence: where it would change
anything, its folder must be one that the user's own file trusts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from searchapp.config.declared import (
    BY_NAME,
    CREDENTIALS,
    DECLARED,
    PLACES,
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
from searchapp.config.found import Found, Origin, Source
from searchapp.config.kinds import Value
from searchapp.config.made import settings_of
from searchapp.errors import UsageError
from searchapp.settings import ENGINES, PROGRAM, Settings


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
