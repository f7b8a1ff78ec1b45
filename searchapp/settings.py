"""What the program runs with: the engine's address and credentials, the state folder, how much it says.

A value comes from the flag, else from the environment, else from the default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from searchapp.errors import UsageError
from searchapp.names import refused

ON_DISK, SERVER = "embedded", "elasticsearch"
ENGINES = (ON_DISK, SERVER)
DEFAULT_URL = "http://localhost:9200"
DEFAULT_INDEX_PREFIX = "searchapp"
INDEXES = "indexes"
"""The folder of the embedded engine's indexes in the home folder."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One resolved set of values.

    `engine_chosen_by` says what made the engine the one in use: "default", "--url", "SEARCHAPP_ENGINE".
    Credentials are `api_key`, or `username` and `password`; those in `url` are used but never shown: what may be
    shown of it is `address`.
    `ca_certs` is a PEM file of the authorities that the server's certificate is checked against, the system's
    when None. Every index and alias that searchapp makes begins with `index_prefix`. `data_mirror` is an address that
    official data is fetched from instead of its sources. With `shared`, judgments are exchanged with everybody who
    uses the same server and prefix: the one at `url`, which is the engine as well unless another one is chosen.
    `url_given` says that somebody has named it.
    """

    home: Path
    engine: str = ON_DISK
    engine_chosen_by: str = "default"
    url: str = field(default=DEFAULT_URL, repr=False)
    url_given: bool = False
    api_key: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_certs: Path | None = None
    index_prefix: str = DEFAULT_INDEX_PREFIX
    data_mirror: str | None = None
    shared: bool = False
    quiet: bool = False

    @property
    def address(self) -> str:
        """The server's address as it may be shown, stored and logged."""
        return without_credentials(self.url)

    @property
    def uses_server(self) -> bool:
        """Whether indexes are on a server, and not on this machine's disk."""
        return self.engine == SERVER

    @property
    def judgments(self) -> Path:
        """The file with all judgments, unless another one is named."""
        return self.home / "judgments.sqlite"


def without_credentials(url: str) -> str:
    """An address as it may be shown: without user, password and query, however wrong the rest of it is."""
    # Up to the last @: a password may hold any character, also one that a right address would escape.
    return re.sub(r"^([a-z][a-z0-9+.-]*://)?.*@", r"\1", url, flags=re.DOTALL | re.IGNORECASE).partition("?")[
        0
    ]


def without_passwords(text: str) -> str:
    """A text in which no address shows a user or a password."""
    return re.sub(r"(\b[a-z][a-z0-9+.-]*://)[^\s/?#]*@", r"\1", text, flags=re.IGNORECASE)


def resolve(flags: Mapping[str, object], environ: Mapping[str, str]) -> Settings:
    """Settings from flags (absent or None: not given) and the environment.

    Raises:
        UsageError: an engine that does not exist, a password without a user name, or both an API key and a
            user name.
    """

    def value(name: str) -> str | None:
        flag = flags.get(name)
        return str(flag) if flag is not None else environ.get(f"SEARCHAPP_{name.upper()}") or None

    engine, chosen_by = _engine(flags, environ)
    if engine not in ENGINES:
        raise UsageError(f"there is no engine {refused(engine, ENGINES)}")
    username, password, api_key = value("username"), value("password"), value("api_key")
    if api_key and username:
        raise UsageError(
            "both an API key and a user name are set: unset SEARCHAPP_API_KEY or SEARCHAPP_USERNAME"
        )
    if bool(username) != bool(password):
        given, missing = ("USERNAME", "PASSWORD") if username else ("PASSWORD", "USERNAME")
        raise UsageError(f"SEARCHAPP_{given} is set without SEARCHAPP_{missing}: set both or neither")
    prefix = value("index_prefix") or DEFAULT_INDEX_PREFIX
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,99}", prefix):
        raise UsageError(
            f"{prefix!r} can't begin the names of indexes: SEARCHAPP_INDEX_PREFIX takes lower-case letters, digits, "
            "- and _"
        )
    ca_certs, home = value("ca_certs"), value("home")
    return Settings(
        home=Path(home) if home else _default_home(),
        engine=engine,
        engine_chosen_by=chosen_by,
        url=value("url") or DEFAULT_URL,
        url_given=bool(value("url")),
        api_key=api_key,
        username=username,
        password=password,
        ca_certs=Path(ca_certs) if ca_certs else None,
        index_prefix=prefix,
        data_mirror=value("data_mirror"),
        shared=_switch("SEARCHAPP_SHARED", value("shared")),
        quiet=bool(flags.get("quiet")),
    )


def _engine(flags: Mapping[str, object], environ: Mapping[str, str]) -> tuple[str, str]:
    """The engine, and what chose it: its name, or an address, which only a server has."""
    if flags.get("engine"):
        return str(flags["engine"]), "--engine"
    if flags.get("url"):
        return SERVER, "--url"
    if environ.get("SEARCHAPP_ENGINE"):
        return environ["SEARCHAPP_ENGINE"], "SEARCHAPP_ENGINE"
    if environ.get("SEARCHAPP_URL"):
        return SERVER, "SEARCHAPP_URL"
    return ON_DISK, "default"


def _switch(name: str, value: str | None) -> bool:
    if value is None or value.lower() in ("0", "false", "no", "off"):
        return False
    if value.lower() in ("1", "true", "yes", "on"):
        return True
    raise UsageError(f"{name} is {value!r}: set it to 1 or 0")


def _default_home() -> Path:
    import platformdirs

    return platformdirs.user_data_path("searchapp", appauthor=False)
