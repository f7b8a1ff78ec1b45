"""Declare all settings.

`Settings` is the record that other modules read; its fields declare their sources. `DECLARED` adds the
settings of screens, teams and settings files.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from searchapp.lucene.dataclass import dataclass
from searchapp.text import alternatives, choices_hint, suggestion

ON_DISK, SERVER = "embedded", "elasticsearch"
ENGINES = (ON_DISK, SERVER)
PROGRAM = "searchapp"
DEFAULT_URL = "http://localhost:9200"
DEFAULT_INDEX_PREFIX = "searchapp"
THEMES = ("dark", "light", "ansi-dark", "ansi-light")
SPACINGS = ("normal", "compact")
KEY_SETS = ("standard", "0.3")
# The folder of the embedded engine's indexes in the home directory.
INDEXES = "indexes"
# Roles of people in the metadata schema ir_metadata.
ROLES = ("experimenter", "reproducer")

Headers: TypeAlias = tuple[tuple[str, str], ...]
Value: TypeAlias = str | int | Path | tuple[Path, ...] | Headers

# Maximum characters of a value, because error messages repeat it.
LONGEST = 1_000


def addresses_in(text: str) -> tuple[str, ...]:
    """Split a text of addresses at commas, except those in passwords, and drop duplicates.

    >>> addresses_in("http://a:9200, https://me:x,y@b")
    ('http://a:9200', 'https://me:x,y@b')
    """
    return tuple(dict.fromkeys(address.strip() for address in re.split(r",(?=\s*https?://)", text)))


def address_of_cloud(cloud_id: str) -> str:
    """Decode the Elasticsearch address of a Cloud ID: a label, a colon and Base64 of
    `host[:port]$elasticsearch$kibana`.

    Raises:
        ValueError: the text is not a Cloud ID.
    """
    decoded = b64decode(cloud_id.rpartition(":")[2], validate=True).decode("ascii")
    match = re.fullmatch(r"([\w.-]+)(?::(\d*))?\$([\w.-]+)(?:\$.*)?", decoded, re.DOTALL)
    if match is None:
        raise ValueError("no host")
    host, port, name = match.groups()
    return f"https://{name}.{host}:{port or 443}"


def without_credentials(url: str) -> str:
    """Strip user, password and query from an address, even a malformed one."""
    # Up to the last @, because a password may contain any character, even unescaped.
    pattern = re.compile(r"^([a-z][a-z0-9+.-]*://)?.*@", re.DOTALL | re.IGNORECASE)
    return pattern.sub(r"\1", url).partition("?")[0]


def without_passwords(text: str) -> str:
    """Strip user and password from every address in a text."""
    return re.sub(r"(\b[a-z][a-z0-9+.-]*://)[^\s/?#]*@", r"\1", text, flags=re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SettingType:
    """Reads and formats the values of a setting.

    Args:
        read: takes a value, the setting's name, and the folder of its file (None for a flag or variable);
            raises `ValueError` with a message that repeats no secret
        show: formats a value without passwords
        is_address: a value may contain a password
        is_table: a value in a file is a table
    """

    read: Callable[[Any, str, Path | None], Value]
    show: Callable[[Any], str] = str
    is_address: bool = False
    is_table: bool = False


def _read_text(value: Any, name: str, folder: Path | None) -> str:
    if folder is not None:
        if not isinstance(value, str):
            raise ValueError(f"{name} must be a text in quotes")
        if not value.strip():
            raise ValueError(f"{name} is empty: give it a value, or leave it out")
        if len(value) > LONGEST:
            raise ValueError(f"{name} is longer than {LONGEST:,} characters")
    return str(value)


def _token(word: str, source: str) -> SettingType:
    def read(value: Any, name: str, folder: Path | None) -> Value:
        text = _read_text(value, name, folder)
        # The client checks a token from a variable when it connects.
        if folder is not None and not re.fullmatch(r"[!-~]+", text):
            raise ValueError(
                f"{name} contains a space, a line end or another character that no {word} contains: set "
                f"it to {source}"
            )
        return text

    return SettingType(read)


def _read_address(value: Any, name: str, folder: Path | None) -> str:
    text = _read_text(value, name, folder)
    if folder is None:  # the client checks it when it connects
        return text
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or not text.isprintable():
        raise ValueError(f"{name} is not an address such as {DEFAULT_URL}")
    return text


def _read_addresses(value: Any, name: str, folder: Path | None) -> Value:
    if folder is None:
        return str(value)
    texts = [
        _read_text(each, name, folder) for each in (value if isinstance(value, list) and value else [value])
    ]
    return ",".join(_read_address(address, name, folder) for text in texts for address in addresses_in(text))


def _show_addresses(value: str) -> str:
    return ", ".join(map(without_credentials, addresses_in(value)))


def _read_proxy(value: Any, name: str, folder: Path | None) -> Value:
    address = _read_address(value, name, folder or Path())
    if not address.startswith("http://"):  # the connection to the proxy itself has no TLS
        raise ValueError(f"{name} is not the address of an HTTP proxy: it must begin with http://")
    return address


def _read_cloud_id(value: Any, name: str, folder: Path | None) -> Value:
    text = _read_text(value, name, folder)
    try:
        address_of_cloud(text)
    except ValueError:
        raise ValueError(f"{name} is not a Cloud ID: copy it from the page of the deployment") from None
    return text


def _read_fingerprint(value: Any, name: str, folder: Path | None) -> Value:
    digits = _read_text(value, name, folder).strip().replace(":", "").lower()
    if not re.fullmatch(r"[0-9a-f]{64}", digits):
        raise ValueError(
            f"{name} is not a SHA-256 fingerprint: give 64 hexadecimal digits, with or without colons, as "
            "the server prints at its first start"
        )
    return digits


# Headers that the client sets itself; secrets have settings of their own.
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


def _read_headers(value: Any, name: str, folder: Path | None) -> Value:
    """Read headers from a table of a file, or from the lines of a variable."""
    if folder is None:
        lines = [line for line in value.splitlines() if line.strip()]
        if any(":" not in line for line in lines):
            raise ValueError(f"{name} must contain one header per line, such as X-Team: search")
        pairs = [line.partition(":")[::2] for line in lines]
    elif isinstance(value, Mapping):
        pairs = [(header, _read_text(text, name, folder)) for header, text in value.items()]
    else:
        raise ValueError(f'{name} must be a table, such as {name} = {{X-Team = "search"}}')
    headers = tuple((header.strip(), text.strip()) for header, text in pairs)
    for header, text in headers:
        if not re.fullmatch(r"[A-Za-z0-9-]{1,100}", header) or not re.fullmatch(r"[ -~]+", text):
            raise ValueError(f"{name} contains a header that is not ASCII: use ASCII characters")
        if header.lower() in RESERVED_HEADERS:
            raise ValueError(f"{name} must not contain {header}, which searchapp sets itself")
    return headers


def _read_engine(value: Any, name: str, folder: Path | None) -> Value:
    text = _read_text(value, name, folder)
    if text not in ENGINES:
        raise ValueError(f"there is no engine {choices_hint(text, ENGINES)}")
    return text


def _read_prefix(value: Any, name: str, folder: Path | None) -> Value:
    text = _read_text(value, name, folder)
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,99}", text):
        raise ValueError(f"{text!r} is not a valid {name}: use lower-case letters, digits, - and _")
    return text


def _read_switch(value: Any, name: str, folder: Path | None) -> Value:
    if folder is not None:
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be true or false, without quotes")
        return value
    if value.lower() in ("0", "false", "no", "off"):
        return False
    if value.lower() in ("1", "true", "yes", "on"):
        return True
    raise ValueError(f"{name} is {value!r}: set it to 1 or 0")


def _read_count(value: Any, name: str, folder: Path | None) -> Value:  # noqa: ARG001  # of a settings file
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1")
    return value


def _read_seed(value: Any, name: str, folder: Path | None) -> Value:
    if folder is None and str(value).isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError(f"{name} must be a whole number from 0")
    return value


def _read_path(value: Any, name: str, folder: Path | None) -> Path:
    """Read a path; one in a file is relative to that file and may begin with ~."""
    text = _read_text(value, name, folder)
    if folder is None:
        return Path(text)
    if "\0" in text:
        raise ValueError(f"{name} is not a valid file name")
    try:
        return folder / Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError(f"{name} begins with ~, but there is no such home directory") from error


def _read_folders(value: Any, name: str, folder: Path | None) -> Value:
    if not isinstance(value, list):
        raise ValueError(f'{name} must be a list of folders, such as ["/home/me/project"]')
    return tuple(_read_path(each, name, folder) for each in value)


def _choice(names: Sequence[str]) -> SettingType:
    def read(value: Any, name: str, folder: Path | None) -> Value:
        text = _read_text(value, name, folder)
        if text not in names:
            raise ValueError(f"{name} must be {alternatives(names)}, not {text!r}{suggestion(text, names)}")
        return text

    return SettingType(read)


def _read_keys(value: Any, name: str, folder: Path | None) -> Value:
    """Read a table of actions and keys as text; `tui.kit.keys` checks that the actions exist."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a table that begins with [{name}]")
    return ", ".join(
        f"{action}: {' '.join(_read_text(key, f'{name}.{action}', folder) for key in keys)}"
        for action, bound in value.items()
        for keys in [bound if isinstance(bound, list) else [bound]]
    )


TEXT = SettingType(_read_text)
PATH = SettingType(_read_path)
SWITCH = SettingType(_read_switch, lambda value: "true" if value else "false")
COUNT = SettingType(_read_count)
SEED = SettingType(_read_seed)
ADDRESS = SettingType(_read_address, without_credentials, is_address=True)
ADDRESSES = SettingType(_read_addresses, _show_addresses, is_address=True)

# The text shown for a secret.
SET = "set"


@dataclass(frozen=True, slots=True)
class SettingDeclaration:
    """One setting, and the sources that may set it."""

    # The part before a dot is the table in settings files.
    name: str
    about: str
    type: SettingType = field(default=TEXT, repr=False)
    default: Value | None = None
    # The text shown without value and default.
    unset: str = "not set"
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
        """Format a value without secrets and passwords."""
        if value is None:
            return self.unset
        return SET if self.secret else self.type.show(value)

    def holds_credentials(self, value: Value) -> bool:
        """Return whether a value is a secret or contains a password."""
        return self.secret or (self.type.is_address and "@" in str(value))

    def ways(self, user_file: Path, project_file: str) -> str:
        """List the sources that may set it, as the end of a sentence."""
        files = [str(user_file)] * self.by_user + [project_file] * self.by_project
        *others, last = [*filter(None, (self.flag, self.variable)), *files]
        return f"{', '.join(others)} or {last}" if others else last


@dataclass(frozen=True, slots=True)
class SecretSource:
    """A file that contains a secret, or a command that prints it; messages name `setting`."""

    setting: str
    path: Path | None = None
    command: str | None = field(default=None, repr=False)


def _setting(about: str, type_: SettingType = TEXT, *, absent: Any = None, **details: Any) -> Any:
    """Declare a field of `Settings` as a setting; `absent` is its value if no source sets it."""
    return field(
        default=details.get("default", absent),
        repr=not details.get("secret") and not type_.is_address,
        metadata={"about": about, "type": type_, **details},
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """The values that one command runs with."""

    home: Path = field(
        metadata={
            "about": "Home directory of indexes, judgments, models and fetched files.",
            "type": PATH,
            "unset": "in your data folder",
            "by_flag": True,
            "by_user": False,
            "by_project": True,
        }
    )
    engine: str = _setting(
        "The search engine. An address selects elasticsearch, unless the same source or an earlier one sets an engine.",
        SettingType(_read_engine),
        default=ON_DISK,
        by_flag=True,
        by_project=True,
    )
    url: str = _setting(
        "Address of an Elasticsearch server, or of several of its nodes; selects the engine elasticsearch. "
        "Judgments are shared there.",
        ADDRESSES,
        default=DEFAULT_URL,
        by_flag=True,
        by_project=True,
    )
    username: str | None = _setting("User name at the server, with a password.")
    password: str | SecretSource | None = _setting("Password at the server.", secret=True)
    api_key: str | SecretSource | None = _setting(
        "API key for the server, instead of user name and password.",
        _token("API key", "the value `encoded` from the creation of the key"),
        secret=True,
    )
    bearer_token: str | SecretSource | None = _setting(
        "Token for the server, such as a service account token, instead of user name and password.",
        _token("token", "the value from its creation"),
        secret=True,
    )
    ca_certs: Path | None = _setting(
        "PEM file of the authority that signed the server's certificate.",
        PATH,
        unset="the system's",
        by_project=True,
    )
    fingerprint: str | None = _setting(
        "SHA-256 of the trusted certificate, of the server or its authority, instead of `ca_certs`.",
        SettingType(_read_fingerprint),
        by_project=True,
    )
    headers: Headers = _setting(
        "Headers of every request, for example for a proxy in front of the server.",
        SettingType(_read_headers, is_table=True),
        absent=(),
        unset="none",
        secret=True,
    )
    proxy: str | None = _setting(
        "Address of the HTTP proxy to the server.",
        SettingType(_read_proxy, without_credentials, is_address=True),
        unset="none",
        by_project=True,
    )
    insecure: bool = _setting(
        "Whether credentials, and texts for models, may go to another machine without TLS.",
        SWITCH,
        default=False,
        by_flag=True,
    )
    model_hosts: str | None = _setting(
        "Other machines that texts may be sent to for models (embeddings, rerankers, judges): host names, separated "
        "by commas.",
        unset="none",
    )
    embedding_key: str | SecretSource | None = _setting(
        "API key for endpoints of embeddings.", _token("API key", "the key that was given"), secret=True
    )
    reranker_key: str | SecretSource | None = _setting(
        "API key for endpoints of rerankers.", _token("API key", "the key that was given"), secret=True
    )
    judge_key: str | SecretSource | None = _setting(
        "API key for endpoints of models that judge.",
        _token("API key", "the key that was given"),
        secret=True,
    )
    index_prefix: str = _setting(
        "Prefix of the names of indexes and aliases.",
        SettingType(_read_prefix),
        default=DEFAULT_INDEX_PREFIX,
        by_project=True,
    )
    shared: bool = _setting(
        "Whether judgments are exchanged with all users of the same server and prefix.",
        SWITCH,
        default=False,
        by_project=True,
    )
    data_mirror: str | None = _setting(
        "Address of a mirror to fetch official data from.",
        ADDRESS,
        unset="its sources",
        by_project=True,
    )
    seed: int | None = _setting(
        "Seed of the random numbers of commands, unless --seed is given.",
        SEED,
        unset="each command's own",
        by_project=True,
    )
    annotator: str | None = _setting(
        "Name of the annotator, unless --annotator is given.", unset="the name of the account"
    )
    quiet: bool = _setting(
        "Print results and errors only.",
        SWITCH,
        default=False,
        by_flag=True,
        by_variable=False,
        by_user=False,
    )
    # The source of the engine: "default", "--url", "SEARCHAPP_ENGINE", "url in FILE".
    engine_chosen_by: str = "default"
    # Whether a source names a server.
    url_given: bool = False
    # The header X-Opaque-Id of every request, which a server's logs contain.
    opaque_id: str = PROGRAM
    # The folder of the user file, if a project file sets another `home`.
    own_home: Path | None = None
    # The table `team` of the settings files.
    team: Mapping[str, str] = field(default_factory=dict)

    def seed_of(self, option: int | None, default: int) -> int:
        """Return the seed of an option, or else the set one, or else the command's own."""
        return next(seed for seed in (option, self.seed, default) if seed is not None)

    @property
    def address(self) -> str:
        """The server's addresses without credentials, for messages, files and logs."""
        return _show_addresses(self.url)

    @property
    def urls(self) -> tuple[str, ...]:
        return addresses_in(self.url)

    @property
    def uses_server(self) -> bool:
        return self.engine == SERVER

    @property
    def judgments(self) -> Path:
        """The default file of the judgment log."""
        return self.home / "judgments.sqlite"

    @property
    def of_user(self) -> Path:
        """The folder of the user file."""
        return self.own_home or self.home


# Suffixes of settings for a secret, its file, and the command that prints it.
WAYS = ("", "_file", "_command")

# Secrets with all WAYS.
SECRETS = ("password", "api_key", "bearer_token")

# The keys of endpoints of models, each with its WAYS, of which the first source that has any decides.
EMBEDDING_KEY, RERANKER_KEY, JUDGE_KEY = MODEL_KEYS = ("embedding_key", "reranker_key", "judge_key")
MODEL_KEY_WAYS = tuple(tuple(f"{name}{way}" for way in WAYS) for name in MODEL_KEYS)

# All come from the first source that has any.
CREDENTIALS = ("username", *(f"{name}{way}" for name in SECRETS for way in WAYS))

# Two ways to name a server; both come from the first source that has either.
PLACES = ("url", "cloud_id")


def _secret_ways(name: str) -> Iterator[SettingDeclaration]:
    shown = name.replace("_", " ").replace("api", "API")
    yield SettingDeclaration(f"{name}_file", f"File with the {shown}, in one line.", PATH)
    about = f"Command that prints the {shown}; run without a shell, at the first request that needs it."
    yield SettingDeclaration(f"{name}_command", about, secret=True)  # its words may contain the secret


def _screen(
    section: str, screens: str, screen: str = "", *more: SettingDeclaration
) -> Iterator[SettingDeclaration]:
    """Declare the theme, the spacing, `more` settings and the keys of a screen."""
    about = f"Theme of the {screens}: {alternatives(THEMES)}."
    yield SettingDeclaration(f"{section}.theme", about, _choice(THEMES), default=THEMES[0])
    about = f"Spacing of the {screens}: compact omits borders and blank cells."
    yield SettingDeclaration(f"{section}.spacing", about, _choice(SPACINGS), default=SPACINGS[0])
    yield from more
    about = f"Other keys for the actions of the {screen or screens}."
    yield SettingDeclaration(
        f"{section}.keys", about, SettingType(_read_keys, is_table=True), unset="as in its help"
    )


def _team(name: str, about: str, type_: SettingType = TEXT) -> SettingDeclaration:
    return SettingDeclaration(f"team.{name}", about, type_, by_project=True)


TEAM = (
    _team("team", "Name of the team; the table [team] is for `export --format ir-metadata`."),
    _team("name", "Name of the person who made the runs."),
    _team("orcid", "ORCID of this person."),
    _team("mail", "Mail address of this person."),
    _team("github", "GitHub page of this person."),
    _team("role", "Role of this person.", _choice(ROLES)),
    _team("repository", "Address of the repository with the recipes and task files."),
)


def _declare() -> Iterator[SettingDeclaration]:
    own = {
        each.name: SettingDeclaration(each.name, **each.metadata)
        for each in fields(Settings)
        if each.metadata
    }
    home, quiet = own.pop("home"), own.pop("quiet")
    for name, setting in own.items():
        yield setting
        if name == "url":
            about = "Cloud ID of an Elastic Cloud deployment, instead of its address."
            yield SettingDeclaration("cloud_id", about, SettingType(_read_cloud_id), by_project=True)
        if name in (*SECRETS, *MODEL_KEYS):
            yield from _secret_ways(name)
    about = f"Keys of all screens: {alternatives(KEY_SETS)}, the keys of version 0.3."
    yield SettingDeclaration("key_set", about, _choice(KEY_SETS), default=KEY_SETS[0], by_variable=False)
    about = "Whether judging goes to the next topic with unjudged documents when a topic is done."
    next_topic = SettingDeclaration("judge.next_topic", about, SWITCH, default=False)
    about = "Number of documents to judge in a session; the first line shows the progress."
    goal = SettingDeclaration("judge.goal", about, COUNT, unset="none")
    yield from _screen("judge", "judging screens", "judging screen", next_topic, goal)
    about = "Whether the search screen opens with its last search and position."
    restore = SettingDeclaration("search.restore", about, SWITCH, default=True)
    about = "Whether the search screen shows each hit on two lines, with a bar for its score."
    two_lines = SettingDeclaration("search.two_lines", about, SWITCH, default=False)
    yield from _screen("search", "search screen", "", restore, two_lines)
    yield from _screen("topics", "screen of topics")
    yield from _screen("compare", "compare screen")
    yield from _screen("browse", "home screen")
    yield from TEAM
    yield home
    about = "Whether a project file searchapp.toml is used."
    yield SettingDeclaration("project", about, SWITCH, default=True)
    yield SettingDeclaration(
        "trusted",
        "Folders whose project files are trusted, with their subfolders.",
        SettingType(_read_folders, lambda folders: ", ".join(map(str, folders))),
        unset="none",
        by_variable=False,
    )
    yield quiet
    about = "Print each server request or embedded search, and tracebacks of errors."
    yield replace(quiet, name="verbose", about=about)


# In the order of `searchapp config`.
DECLARED: Sequence[SettingDeclaration] = tuple(_declare())

BY_NAME = {setting.name: setting for setting in DECLARED}
