"""What the program runs with: the engine's address and credentials, the state folder, how much it says.

Where the values come from is the affair of `searchapp.config`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ON_DISK, SERVER = "embedded", "elasticsearch"
ENGINES = (ON_DISK, SERVER)
DEFAULT_URL = "http://localhost:9200"
DEFAULT_INDEX_PREFIX = "searchapp"
THEMES = ("dark", "light", "ansi-dark", "ansi-light")
SPACINGS = ("normal", "compact")
INDEXES = "indexes"
"""The folder of the embedded engine's indexes in the home folder."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One resolved set of values.

    `engine_chosen_by` says what made the engine the one in use: "default", "--url", "SEARCHAPP_ENGINE", "url in FILE".
    Credentials are `api_key`, or `username` and `password`; those in `url` are used but never shown: what may be
    shown of it is `address`.
    `ca_certs` is a PEM file of the authorities that the server's certificate is checked against, the system's
    when None. Every index and alias that searchapp makes begins with `index_prefix`. `data_mirror` is an address that
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
    api_key: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_certs: Path | None = None
    index_prefix: str = DEFAULT_INDEX_PREFIX
    data_mirror: str | None = None
    shared: bool = False
    annotator: str | None = None
    own_home: Path | None = None
    team: Mapping[str, str] = field(default_factory=dict)
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

    @property
    def of_user(self) -> Path:
        """The folder with the user's own file."""
        return self.own_home or self.home


def without_credentials(url: str) -> str:
    """An address as it may be shown: without user, password and query, however wrong the rest of it is."""
    # Up to the last @: a password may hold any character, also one that a right address would escape.
    return re.sub(r"^([a-z][a-z0-9+.-]*://)?.*@", r"\1", url, flags=re.DOTALL | re.IGNORECASE).partition("?")[
        0
    ]


def without_passwords(text: str) -> str:
    """A text in which no address shows a user or a password."""
    return re.sub(r"(\b[a-z][a-z0-9+.-]*://)[^\s/?#]*@", r"\1", text, flags=re.IGNORECASE)
