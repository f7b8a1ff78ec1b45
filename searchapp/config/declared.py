"""All settings that there are: the one table that values, checks, `searchapp config` and its screen are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from searchapp.config.kinds import (
    Address,
    Addresses,
    ApiKey,
    CloudId,
    Engine,
    Fingerprint,
    Folders,
    HeadersKind,
    Keys,
    Kind,
    OneOf,
    PathKind,
    Prefix,
    Proxy,
    Switch,
    Token,
    Value,
)
from searchapp.names import one_of
from searchapp.settings import DEFAULT_INDEX_PREFIX, DEFAULT_URL, ENGINES, SPACINGS, THEMES

SET = "set"
"""What is shown of a secret."""


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


WAYS = ("", "_file", "_command")
"""Ends of the names of settings that have a secret, that name a file with it, and a command that prints it."""


def _secret(name: str, about: str, kind: Kind) -> Sequence[Declared]:
    """The settings that a secret can be had by. A command may have it among its words, and is shown as little."""
    variable, told, shown = (
        f"SEARCHAPP_{name.upper()}",
        "not set",
        name.replace("_", " ").replace("api", "API"),
    )
    return (
        Declared(name, about, kind, variable=variable, told=told, secret=True),
        Declared(
            f"{name}_file",
            f"File with the {shown}, in one line.",
            PathKind(),
            variable=f"{variable}_FILE",
            told=told,
        ),
        Declared(
            f"{name}_command",
            f"Command that prints the {shown}; it is run without a shell, when a server is first asked.",
            Kind(),
            variable=f"{variable}_COMMAND",
            told=told,
            secret=True,
        ),
    )


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
        "Address of an Elasticsearch server, or of several nodes of one, which is then the engine; judgments are "
        "shared there.",
        Addresses(),
        "--url",
        "SEARCHAPP_URL",
        DEFAULT_URL,
        by_project=True,
    ),
    Declared(
        "cloud_id",
        "What Elastic Cloud names a deployment by, instead of its address.",
        CloudId(),
        variable="SEARCHAPP_CLOUD_ID",
        told="not set",
        by_project=True,
    ),
    Declared(
        "username", "User name at the server, with a password.", variable="SEARCHAPP_USERNAME", told="not set"
    ),
    *_secret("password", "Password at the server.", Kind()),
    *_secret("api_key", "API key for the server, instead of user name and password.", ApiKey()),
    *_secret(
        "bearer_token", "Token for the server, such as one of a service account, instead of them.", Token()
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
        "fingerprint",
        "SHA-256 of the certificate that is believed, of the server or its authority, instead of authorities.",
        Fingerprint(),
        variable="SEARCHAPP_FINGERPRINT",
        told="not set",
        by_project=True,
    ),
    Declared(
        "headers",
        "Headers that are sent with every request, for what stands before a server.",
        HeadersKind(),
        variable="SEARCHAPP_HEADERS",
        told="none",
        secret=True,
    ),
    Declared(
        "proxy",
        "Address of an HTTP proxy that the server is reached through.",
        Proxy(),
        variable="SEARCHAPP_PROXY",
        told="none",
        by_project=True,
    ),
    Declared(
        "insecure",
        "Whether credentials may go to another machine without TLS.",
        Switch(),
        "--insecure",
        "SEARCHAPP_INSECURE",
        False,
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
    _theme("compare", "compare screen"),
    _spacing("compare", "compare screen"),
    Declared(
        "compare.keys", "Other keys for the actions of the compare screen.", Keys(), told="as in its help"
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
    Declared(
        "verbose",
        "Print each request to a server or search of the embedded engine, and tracebacks with errors.",
        Switch(),
        "--verbose",
        default=False,
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
