"""All settings: the record that the program runs with, the kinds of values, and the one table of settings.

`Settings` is what every other module reads. A `Kind` reads a value from text and from a file, and shows it. `DECLARED`
is the table from which values, checks, `searchapp config` and its screen are made.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from searchapp.text import alternatives, choices_hint, suggestion

ON_DISK, SERVER = "embedded", "elasticsearch"
ENGINES = (ON_DISK, SERVER)
PROGRAM = "searchapp"
DEFAULT_URL = "http://localhost:9200"
DEFAULT_INDEX_PREFIX = "searchapp"
THEMES = ("dark", "light", "ansi-dark", "ansi-light")
SPACINGS = ("normal", "compact")
INDEXES = "indexes"
"""The folder of the embedded engine's indexes in the home folder."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a secret is kept until it is needed: a file that holds it, or a command that prints it.

    `named` is the setting as a person knows it who is told of an error.
    """

    named: str
    path: Path | None = None
    command: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """One resolved set of values.

    `engine_chosen_by` says what made the engine the one in use: "default", "--url", "SEARCHAPP_ENGINE", "url in FILE".
    `url` is the address of a server, or those of several nodes of its cluster with commas between them: `urls`.
    Credentials are `api_key`, `bearer_token`, or `username` and `password`; those in `url` are used but never shown:
    what may be shown of it is `address`. Without TLS they go to another machine only if `insecure` allows it.
    `ca_certs` is a PEM file of the authorities that the server's certificate is checked against, the system's when
    None; `fingerprint` is the SHA-256, in hexadecimal digits, of the one certificate that is believed instead.
    `headers` are sent with every request, and `opaque_id`, by which a server's owner knows it; `proxy` hands it on.
    Every index and alias that searchapp makes begins with `index_prefix`. `data_mirror` is an address that
    official data is fetched from instead of its sources. With `shared`, judgments are exchanged with everybody who
    uses the same server and prefix: the one at `url`, which is the engine as well unless another one is chosen.
    `url_given` says that somebody has named it. `annotator` judges where no other one is named. `own_home` is the home
    folder with the user's own file, where a project file names another one as `home`. `team` says whose runs they are.
    """

    home: Path
    engine: str = ON_DISK
    engine_chosen_by: str = "default"
    url: str = field(default=DEFAULT_URL, repr=False)
    url_given: bool = False
    api_key: str | Kept | None = field(default=None, repr=False)
    bearer_token: str | Kept | None = field(default=None, repr=False)
    username: str | None = None
    password: str | Kept | None = field(default=None, repr=False)
    ca_certs: Path | None = None
    fingerprint: str | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    proxy: str | None = field(default=None, repr=False)
    insecure: bool = False
    opaque_id: str = PROGRAM
    index_prefix: str = DEFAULT_INDEX_PREFIX
    data_mirror: str | None = None
    shared: bool = False
    annotator: str | None = None
    own_home: Path | None = None
    team: Mapping[str, str] = field(default_factory=dict)
    quiet: bool = False

    @property
    def address(self) -> str:
        """The server's address, or addresses, as they may be shown, stored and logged."""
        return ", ".join(map(without_credentials, self.urls))

    @property
    def urls(self) -> tuple[str, ...]:
        """Every address of the server."""
        return addresses_in(self.url)

    @property
    def uses_server(self) -> bool:
        """Whether indexes are on a server, and not on this machine's disk."""
        return self.engine == SERVER

    @property
    def judgments(self) -> Path:
        """The file with all judgments, unless another one is named."""
        return self.home / "judgments.sqlite"

    @property
    def of_user(self) -> Path:
        """The folder with the user's own file."""
        return self.own_home or self.home


def addresses_in(text: str) -> tuple[str, ...]:
    """The addresses in a text with commas between them, each once; a comma may also stand in a password.

    >>> addresses_in("http://a:9200, https://me:x,y@b")
    ('http://a:9200', 'https://me:x,y@b')
    """
    return tuple(dict.fromkeys(one.strip() for one in re.split(r",(?=\s*https?://)", text)))


def address_of_cloud(cloud_id: str) -> str:
    """The address of the Elasticsearch that a Cloud ID names.

    It is a label, a colon and, in Base64, `host[:port]$elasticsearch$kibana`.

    Raises:
        ValueError: it is none.
    """
    told = b64decode(cloud_id.rpartition(":")[2], validate=True).decode("ascii")
    host, name = told.split("$")[:2]
    host, _, port = host.partition(":")
    if (
        not re.fullmatch(r"[\w.-]+", host)
        or not re.fullmatch(r"[\w.-]+", name)
        or not re.fullmatch(r"\d*", port)
    ):
        raise ValueError("no host")
    return f"https://{name}.{host}:{port or 443}"


def without_credentials(url: str) -> str:
    """An address as it may be shown: without user, password and query, however wrong the rest of it is."""
    # Up to the last @: a password may hold any character, also one that a right address would escape.
    return re.sub(r"^([a-z][a-z0-9+.-]*://)?.*@", r"\1", url, flags=re.DOTALL | re.IGNORECASE).partition("?")[
        0
    ]


def without_passwords(text: str) -> str:
    """A text in which no address shows a user or a password."""
    return re.sub(r"(\b[a-z][a-z0-9+.-]*://)[^\s/?#]*@", r"\1", text, flags=re.IGNORECASE)


Headers: TypeAlias = tuple[tuple[str, str], ...]
Value: TypeAlias = str | bool | Path | tuple[Path, ...] | Headers

LONGEST = 1_000
"""In characters: no address, path or name is longer, and a message can repeat what is refused."""


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

    word, made = "API key", "the value `encoded` with which the key was made"

    def from_toml(self, held: object, named: str, folder: Path) -> Value:  # noqa: ARG002
        text = _text(held, named)
        if not re.fullmatch(r"[!-~]+", text):
            raise ValueError(
                f"{named} holds a space, a line end or another character that no {self.word} has: "
                f"set it to {self.made}"
            )
        return text


class Token(ApiKey):
    """A bearer token; the same."""

    word, made = "token", "the value that was given with it"


class Addresses(Kind):
    """The addresses of a server's nodes, one or several; as a value, with commas between them."""

    def from_toml(self, held: object, named: str, folder: Path) -> Value:
        each = held if isinstance(held, list) and held else [held]
        texts = [one for text in each for one in addresses_in(_text(text, named))]
        return ",".join(str(Address().from_toml(text, named, folder)) for text in texts)

    def shown(self, value: Value) -> str:
        return ", ".join(map(without_credentials, addresses_in(str(value))))


class CloudId(Kind):
    """What Elastic Cloud names a deployment by."""

    def from_text(self, text: str, named: str) -> Value:
        try:
            address_of_cloud(text)
        except ValueError:
            raise ValueError(f"{named} is no Cloud ID: copy it from the deployment's page") from None
        return text


class Fingerprint(Kind):
    """The SHA-256 of a certificate; as a value, 64 small hexadecimal digits."""

    def from_text(self, text: str, named: str) -> Value:
        digits = text.strip().replace(":", "").lower()
        if not re.fullmatch(r"[0-9a-f]{64}", digits):
            raise ValueError(
                f"{named} is no SHA-256 fingerprint: one has 64 hexadecimal digits, with or without colons, as the "
                "server prints it at its first start"
            )
        return digits


class HeadersKind(Kind):
    """Headers of requests: a table in a file, a line each in a variable."""

    def from_text(self, text: str, named: str) -> Value:
        lines = [line for line in text.splitlines() if line.strip()]
        if any(":" not in line for line in lines):
            raise ValueError(f"{named} must hold one header a line, as in X-Team: search")
        return self._checked([line.partition(":")[::2] for line in lines], named)

    def from_toml(self, held: object, named: str, folder: Path) -> Value:  # noqa: ARG002
        if not isinstance(held, Mapping):
            raise ValueError(f'{named} must be a table, as in {named} = {{X-Team = "search"}}')
        return self._checked([(name, _text(value, named)) for name, value in held.items()], named)

    def _checked(self, pairs: Sequence[Sequence[str]], named: str) -> Headers:
        headers = tuple((name.strip(), value.strip()) for name, value in pairs)
        for name, value in headers:
            if not re.fullmatch(r"[A-Za-z0-9-]{1,100}", name) or not re.fullmatch(r"[ -~]+", value):
                raise ValueError(
                    f"{named} has a header whose name or value can't be sent: use ASCII characters"
                )
            if name.lower() in RESERVED_HEADERS:
                raise ValueError(f"{named} must not have {name}, which searchapp sets itself")
        return headers


RESERVED_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "proxy-authorization",
        "transfer-encoding",
        "x-opaque-id",
    }
)
"""What searchapp says itself; a secret has settings of its own."""


class Engine(Kind):
    """The name of an engine."""

    def from_text(self, text: str, named: str) -> Value:  # noqa: ARG002  # the message says what it is
        if text not in ENGINES:
            raise ValueError(f"there is no engine {choices_hint(text, ENGINES)}")
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


class Proxy(Address):
    """The address of a proxy, which is spoken to without TLS; what goes through it to a server may have its own."""

    def from_text(self, text: str, named: str) -> Value:
        return self.from_toml(text, named, Path())

    def from_toml(self, held: object, named: str, folder: Path) -> Value:
        text = super().from_toml(held, named, folder)
        if not str(text).startswith("http://"):
            raise ValueError(f"{named} is no HTTP proxy: its address begins with http://")
        return text


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
            raise ValueError(
                f"{named} must be {alternatives(self._names)}, not {text!r}{suggestion(text, self._names)}"
            )
        return text


class Keys(Kind):
    """Actions and the keys that they have instead of their own; which there are, and which go together, is not said."""

    def from_toml(self, held: object, named: str, folder: Path) -> Value:  # noqa: ARG002
        if not isinstance(held, Mapping):
            raise ValueError(f"{named} must be a table: [{named}] begins one")
        return ", ".join(f"{name}: {_keys(keys, f'{named}.{name}')}" for name, keys in held.items())


def _keys(held: object, named: str) -> str:
    return " ".join(_text(one, named) for one in (held if isinstance(held, list) else [held]))


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


SET = "set"
"""What is shown of a secret."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One setting.

    `name` is its key in files. A global option (`flag`), a variable of the environment (`variable`), a file of the
    user's or of a project may set it if `by_flag` and the like say so; no variable sets what is in a table. `told` is
    what is shown where there is neither a value nor a default.
    """

    name: str
    about: str
    kind: Kind = field(default_factory=Kind, repr=False)
    default: Value | None = None
    told: str = "not set"
    secret: bool = False
    by_flag: bool = False
    by_variable: bool = True
    by_user: bool = True
    by_project: bool = False

    @property
    def flag(self) -> str:
        return f"--{self.name}" if self.by_flag else ""

    @property
    def variable(self) -> str:
        return f"SEARCHAPP_{self.name.upper()}" if self.by_variable and "." not in self.name else ""

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


WAYS = ("", "_file", "_command")
"""Ends of the names of settings that have a secret, that name a file with it, and a command that prints it."""


def _secret(name: str, about: str, kind: Kind) -> Sequence[Declared]:
    """The settings that a secret can be had by. A command may have it among its words, and is shown as little."""
    shown = name.replace("_", " ").replace("api", "API")
    return (
        Declared(name, about, kind, secret=True),
        Declared(f"{name}_file", f"File with the {shown}, in one line.", PathKind()),
        Declared(
            f"{name}_command",
            f"Command that prints the {shown}; it is run without a shell, when a server is first asked.",
            secret=True,
        ),
    )


def _screen(section: str, screens: str, screen: str) -> Sequence[Declared]:
    """Declare what each screen has: its look, its spacing and its keys."""
    spacing = f"Compact leaves out borders and blank cells of the {screens}."
    keys = f"Other keys for the actions of the {screen}."
    return (
        Declared(
            f"{section}.theme",
            f"The look of the {screens}: {alternatives(THEMES)}.",
            OneOf(*THEMES),
            default=THEMES[0],
        ),
        Declared(f"{section}.spacing", spacing, OneOf(*SPACINGS), default=SPACINGS[0]),
        Declared(f"{section}.keys", keys, Keys(), told="as in its help"),
    )


_SEARCH_SCREEN = _screen("search", "search screen", "search screen")


ROLES = ("experimenter", "reproducer")
"""Of whoever makes a run, by the community's schema of metadata."""


def _team(name: str, about: str, kind: Kind | None = None) -> Declared:
    return Declared(f"team.{name}", about, kind or Kind(), by_project=True)


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


DECLARED: Sequence[Declared] = (
    Declared(
        "engine",
        "The search engine. An address chooses elasticsearch, unless an engine is named at least as near by.",
        Engine(),
        default=ENGINES[0],
        by_flag=True,
        by_project=True,
    ),
    Declared(
        "url",
        "Address of an Elasticsearch server, or of several nodes of one, which is then the engine; judgments are "
        "shared there.",
        Addresses(),
        default=DEFAULT_URL,
        by_flag=True,
        by_project=True,
    ),
    Declared(
        "cloud_id",
        "What Elastic Cloud names a deployment by, instead of its address.",
        CloudId(),
        by_project=True,
    ),
    Declared("username", "User name at the server, with a password."),
    *_secret("password", "Password at the server.", Kind()),
    *_secret("api_key", "API key for the server, instead of user name and password.", ApiKey()),
    *_secret(
        "bearer_token", "Token for the server, such as one of a service account, instead of them.", Token()
    ),
    Declared(
        "ca_certs",
        "PEM file of the authority that signed the server's certificate.",
        PathKind(),
        told="the system's",
        by_project=True,
    ),
    Declared(
        "fingerprint",
        "SHA-256 of the certificate that is believed, of the server or its authority, instead of authorities.",
        Fingerprint(),
        by_project=True,
    ),
    Declared(
        "headers",
        "Headers that are sent with every request, for what stands before a server.",
        HeadersKind(),
        told="none",
        secret=True,
    ),
    Declared(
        "proxy",
        "Address of an HTTP proxy that the server is reached through.",
        Proxy(),
        told="none",
        by_project=True,
    ),
    Declared(
        "insecure",
        "Whether credentials may go to another machine without TLS.",
        Switch(),
        default=False,
        by_flag=True,
    ),
    Declared(
        "index_prefix",
        "What the names of indexes and aliases begin with.",
        Prefix(),
        default=DEFAULT_INDEX_PREFIX,
        by_project=True,
    ),
    Declared(
        "shared",
        "Whether judgments are exchanged with everybody who uses the same server and prefix.",
        Switch(),
        default=False,
        by_project=True,
    ),
    Declared(
        "data_mirror",
        "Where official data is fetched from instead of its sources.",
        Address(),
        told="its sources",
        by_project=True,
    ),
    Declared("annotator", "Who judges, where --annotator doesn't say it.", told="the name of the account"),
    *_screen("judge", "judging screens", "judging screen"),
    *_SEARCH_SCREEN[:-1],
    Declared("search.restore", "Whether the search screen opens where it was left.", Switch(), default=True),
    _SEARCH_SCREEN[-1],
    *_screen("topics", "screen of topics", "screen of topics"),
    *_screen("compare", "compare screen", "compare screen"),
    *_screen("browse", "home screen", "home screen"),
    *TEAM,
    Declared(
        "home",
        "searchapp's own folder: indexes, judgments, fetched files.",
        PathKind(),
        told="in your data folder",
        by_flag=True,
        by_user=False,
        by_project=True,
    ),
    Declared("project", "Whether a project file searchapp.toml is looked for.", Switch(), default=True),
    Declared(
        "trusted",
        "Folders whose project files are used, with all that is in them.",
        Folders(),
        told="none",
        by_variable=False,
    ),
    Declared(
        "quiet",
        "Print results and errors only.",
        Switch(),
        default=False,
        by_flag=True,
        by_variable=False,
        by_user=False,
    ),
    Declared(
        "verbose",
        "Print each request to a server or search of the embedded engine, and tracebacks with errors.",
        Switch(),
        default=False,
        by_flag=True,
        by_variable=False,
        by_user=False,
    ),
)
"""The settings, in the order in which they are shown."""

BY_NAME = {one.name: one for one in DECLARED}

SECRETS = ("password", "api_key", "bearer_token")
"""Each may also stand in a file, or be printed by a command, which settings of their own name."""

CREDENTIALS = ("username", *(f"{name}{way}" for name in SECRETS for way in WAYS))
"""They belong together: all come from where the first of them is found."""

PLACES = ("url", "cloud_id")
"""Two ways to say where a server is: the nearest source that has one of them says it."""


def holds_credentials(setting: Declared, value: Value) -> bool:
    """Whether a value is a secret, or has one in it as an address can."""
    return setting.secret or (isinstance(setting.kind, Address | Addresses) and "@" in str(value))
