"""All settings that there are: the one table that values, checks, `searchapp config` and its screen are made from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from searchapp.names import meant, one_of, refused
from searchapp.settings import (
    DEFAULT_INDEX_PREFIX,
    DEFAULT_URL,
    ENGINES,
    SPACINGS,
    THEMES,
    without_credentials,
)

Value: TypeAlias = str | bool | Path | tuple[Path, ...]

LONGEST = 1_000
"""In characters: no address, path or name is longer, and a message can repeat what is refused."""

SET = "set"
"""What is shown of a secret."""


class Kind:
    """What a setting holds; this one a text. `named` is the setting as the person knows it who is told of an error."""

    def from_text(self, text: str, named: str) -> Value:  # noqa: ARG002  # for subclasses
        """The value that a flag or a variable holds.

        Raises:
            ValueError: it holds none; the message is a clause for people.
        """
        return text

    def from_toml(self, held: object, named: str, folder: Path) -> Value:  # noqa: ARG002  # for subclasses
        """The value that a file in `folder` holds.

        Raises:
            ValueError: it holds none; the message is a clause for people, in which no secret is repeated.
        """
        return self.from_text(_text(held, named), named)

    def shown(self, value: Value) -> str:
        return str(value)


class ApiKey(Kind):
    """A key for a server; one in a variable is checked by whoever connects."""

    def from_toml(self, held: object, named: str, folder: Path) -> Value:  # noqa: ARG002
        text = _text(held, named)
        if not re.fullmatch(r"[!-~]+", text):
            raise ValueError(
                f"{named} holds a space, a line end or another character that no API key has: set it to the value "
                "`encoded` with which the key was made"
            )
        return text


class Engine(Kind):
    """The name of an engine."""

    def from_text(self, text: str, named: str) -> Value:  # noqa: ARG002  # the message says what it is
        if text not in ENGINES:
            raise ValueError(f"there is no engine {refused(text, ENGINES)}")
        return text


class Prefix(Kind):
    """What names of indexes begin with."""

    def from_text(self, text: str, named: str) -> Value:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,99}", text):
            raise ValueError(
                f"{text!r} can't begin the names of indexes: {named} takes small letters, digits, - and _"
            )
        return text


class Address(Kind):
    """The address of a server; a flag or a variable is checked by whoever connects."""

    def from_toml(self, held: object, named: str, folder: Path) -> Value:  # noqa: ARG002
        from urllib.parse import urlsplit

        text = _text(held, named)
        try:
            parts = urlsplit(text)
            is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_right = False
        if not is_right or not text.isprintable():
            raise ValueError(f"{named} is no address: one looks like {DEFAULT_URL}")
        return text

    def shown(self, value: Value) -> str:
        return without_credentials(str(value))


class Switch(Kind):
    """On or off."""

    def from_text(self, text: str, named: str) -> Value:
        if text.lower() in ("0", "false", "no", "off"):
            return False
        if text.lower() in ("1", "true", "yes", "on"):
            return True
        raise ValueError(f"{named} is {text!r}: set it to 1 or 0")

    def from_toml(self, held: object, named: str, folder: Path) -> Value:  # noqa: ARG002
        if not isinstance(held, bool):
            raise ValueError(f"{named} must be true or false, without quotes")
        return held

    def shown(self, value: Value) -> str:
        return "true" if value else "false"


class PathKind(Kind):
    """A file or folder; in a file relative to the file's folder, where ~ is the user's own folder."""

    def from_text(self, text: str, named: str) -> Value:  # noqa: ARG002
        return Path(text)

    def from_toml(self, held: object, named: str, folder: Path) -> Value:
        return _path(_text(held, named), named, folder)


class Folders(Kind):
    """Any number of folders; they are named in files only."""

    def from_toml(self, held: object, named: str, folder: Path) -> Value:
        if not isinstance(held, list):
            raise ValueError(f'{named} must be a list of folders, such as ["/home/me/project"]')
        return tuple(_path(_text(one, named), named, folder) for one in held)

    def shown(self, value: Value) -> str:
        return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


class OneOf(Kind):
    """One of several names."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def from_text(self, text: str, named: str) -> Value:
        if text not in self._names:
            raise ValueError(f"{named} must be {one_of(self._names)}, not {text!r}{meant(text, self._names)}")
        return text


class Keys(Kind):
    """Actions and the keys that they have instead of their own; which there are, and which go together, is not said."""

    def from_toml(self, held: object, named: str, folder: Path) -> Value:  # noqa: ARG002
        if not isinstance(held, Mapping):
            raise ValueError(f"{named} must be a table: [{named}] begins one")
        return ", ".join(f"{name}: {_keys(keys, f'{named}.{name}')}" for name, keys in held.items())


def _keys(held: object, named: str) -> str:
    return " ".join(_text(one, named) for one in (held if isinstance(held, list) else [held]))


@dataclass(frozen=True, slots=True)
class Declared:
    """One setting.

    `name` is its key in files. `flag` and `variable` are the global option and the variable of the environment that
    set it, "" without one. A file of the user's, or of a project, may hold it if `by_user` or `by_project` says so.
    `told` is what is shown where there is neither a value nor a default.
    """

    name: str
    about: str
    kind: Kind = field(default_factory=Kind, repr=False)
    flag: str = ""
    variable: str = ""
    default: Value | None = None
    told: str = ""
    secret: bool = False
    by_user: bool = True
    by_project: bool = False

    def shown(self, value: Value | None) -> str:
        """A value as it may be shown: of a secret only that it is set, of an address no password."""
        if value is None:
            return self.told
        return SET if self.secret else self.kind.shown(value)

    def ways(self, user_file: Path, project_file: str) -> str:
        """What sets it, for the end of a sentence."""
        files = [str(user_file)] * self.by_user + [project_file] * self.by_project
        *others, last = [*filter(None, (self.flag, self.variable)), *files]
        return f"{', '.join(others)} or {last}" if others else last


def _theme(section: str, screen: str) -> Declared:
    about = f"The look of the {screen}: {one_of(THEMES)}."
    return Declared(f"{section}.theme", about, OneOf(*THEMES), default=THEMES[0])


ROLES = ("experimenter", "reproducer")
"""Of whoever makes a run, by the community's schema of metadata."""


def _team(name: str, about: str, kind: Kind | None = None) -> Declared:
    return Declared(f"team.{name}", about, kind or Kind(), told="not set", by_project=True)


TEAM = (
    _team("team", "Name of the team, for `export --format ir-metadata`, as all of this table is."),
    _team("name", "Who made the runs."),
    _team("orcid", "Their ORCID."),
    _team("mail", "Their mail address."),
    _team("github", "Their page at GitHub."),
    _team("role", "Whether they experiment or reproduce.", OneOf(*ROLES)),
    _team("repository", "Address of the repository with the recipes and task files."),
)
"""What a project says of the people whose runs they are."""


def _spacing(section: str, screen: str) -> Declared:
    about = f"Compact leaves out borders and blank cells of the {screen}."
    return Declared(f"{section}.spacing", about, OneOf(*SPACINGS), default=SPACINGS[0])


DECLARED: Sequence[Declared] = (
    Declared(
        "engine",
        "The search engine. An address chooses elasticsearch, unless an engine is named at least as near by.",
        Engine(),
        "--engine",
        "SEARCHAPP_ENGINE",
        ENGINES[0],
        by_project=True,
    ),
    Declared(
        "url",
        "Address of an Elasticsearch server, which is then the engine; judgments are shared there.",
        Address(),
        "--url",
        "SEARCHAPP_URL",
        DEFAULT_URL,
        by_project=True,
    ),
    Declared(
        "username", "User name at the server, with a password.", variable="SEARCHAPP_USERNAME", told="not set"
    ),
    Declared(
        "password", "Password at the server.", variable="SEARCHAPP_PASSWORD", told="not set", secret=True
    ),
    Declared(
        "api_key",
        "API key for the server, instead of them.",
        ApiKey(),
        variable="SEARCHAPP_API_KEY",
        told="not set",
        secret=True,
    ),
    Declared(
        "ca_certs",
        "PEM file of the authority that signed the server's certificate.",
        PathKind(),
        variable="SEARCHAPP_CA_CERTS",
        told="the system's",
        by_project=True,
    ),
    Declared(
        "index_prefix",
        "What the names of indexes and aliases begin with.",
        Prefix(),
        variable="SEARCHAPP_INDEX_PREFIX",
        default=DEFAULT_INDEX_PREFIX,
        by_project=True,
    ),
    Declared(
        "shared",
        "Whether judgments are exchanged with everybody who uses the same server and prefix.",
        Switch(),
        variable="SEARCHAPP_SHARED",
        default=False,
        by_project=True,
    ),
    Declared(
        "data_mirror",
        "Where official data is fetched from instead of its sources.",
        Address(),
        variable="SEARCHAPP_DATA_MIRROR",
        told="its sources",
        by_project=True,
    ),
    Declared(
        "annotator",
        "Who judges, where --annotator doesn't say it.",
        variable="SEARCHAPP_ANNOTATOR",
        told="the name of the account",
    ),
    _theme("judge", "judging screens"),
    _spacing("judge", "judging screens"),
    Declared(
        "judge.keys", "Other keys for the actions of the judging screen.", Keys(), told="as in its help"
    ),
    _theme("search", "search screen"),
    _spacing("search", "search screen"),
    Declared(
        "search.restore",
        "Whether the search screen opens where it was left.",
        Switch(),
        default=True,
    ),
    Declared(
        "search.keys", "Other keys for the actions of the search screen.", Keys(), told="as in its help"
    ),
    _theme("topics", "screen of topics"),
    _spacing("topics", "screen of topics"),
    Declared(
        "topics.keys", "Other keys for the actions of the screen of topics.", Keys(), told="as in its help"
    ),
    _theme("browse", "home screen"),
    _spacing("browse", "home screen"),
    Declared("browse.keys", "Other keys for the actions of the home screen.", Keys(), told="as in its help"),
    *TEAM,
    Declared(
        "home",
        "searchapp's own folder: indexes, judgments, fetched files.",
        PathKind(),
        "--home",
        "SEARCHAPP_HOME",
        told="in your data folder",
        by_user=False,
        by_project=True,
    ),
    Declared(
        "project",
        "Whether a project file searchapp.toml is looked for.",
        Switch(),
        variable="SEARCHAPP_PROJECT",
        default=True,
    ),
    Declared(
        "trusted",
        "Folders whose project files are used, with all that is in them.",
        Folders(),
        told="none",
    ),
    Declared("quiet", "Print results and errors only.", Switch(), "--quiet", default=False, by_user=False),
    Declared("verbose", "Print tracebacks with errors.", Switch(), "--verbose", default=False, by_user=False),
)
"""The settings, in the order in which they are shown."""

BY_NAME = {one.name: one for one in DECLARED}

CREDENTIALS = ("username", "password", "api_key")
"""They belong together: all come from where the first of them is found."""


def holds_credentials(setting: Declared, value: Value) -> bool:
    """Whether a value is a secret, or has one in it as an address can."""
    return setting.secret or (isinstance(setting.kind, Address) and "@" in str(value))


def _text(held: object, named: str) -> str:
    if not isinstance(held, str):
        raise ValueError(f"{named} must be a text in quotes")
    if not held.strip():
        raise ValueError(f"{named} is empty: give it a value, or leave it out")
    if len(held) > LONGEST:
        raise ValueError(f"{named} is longer than {LONGEST:,} characters")
    return held


def _path(text: str, named: str, folder: Path) -> Path:
    if "\0" in text:
        raise ValueError(f"{named} is no name that a file can have")
    try:
        return folder / Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError(f"{named} begins with ~ and nobody knows whose folder that is") from error
