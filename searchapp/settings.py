"""What the program runs with: the engine's address and credentials, the state folder, how much it says.

Where the values come from is the affair of `searchapp.config`.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

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
