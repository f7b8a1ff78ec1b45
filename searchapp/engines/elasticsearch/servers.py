"""Who answers at an address: which versions of Elasticsearch searchapp works with, and what it says of others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from searchapp.errors import EngineRefused

OLDEST_SERVER = (8, 19)
"""The last minor version of 8, and all that came later. The tests run on it and on the newest."""

SUPPORTED = "8.19 and 9.x"
UNKNOWN = "unknown"

SHARED_MEDIA_VERSION = 8
"""The version of request and answer bodies that servers of 8.x and 9.x both take."""


@dataclass(frozen=True, slots=True)
class Server:
    """What the root of a server says of it.

    `version` is "unknown" where whoever asks may not know it. A serverless project has no shards, replicas or nodes
    that its users could see or choose.
    """

    version: str = UNKNOWN
    is_serverless: bool = False

    def allowed(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of an index that a serverless project chooses itself, and refuses; all of them anywhere else."""
        return {} if self.is_serverless else dict(settings)

    @property
    def is_older(self) -> bool:
        """Whether it is of version 8. A serverless project is of no version, and says 8.11 for the sake of clients."""
        return not self.is_serverless and self.version.removeprefix("v").partition(".")[0] == "8"

    @property
    def may_be_older(self) -> bool:
        """Whether it is of version 8, or nobody here may know of which version it is."""
        return self.is_older or self.version == UNKNOWN

    @property
    def media_version(self) -> int | None:
        """The version of bodies to ask for; None for the client's own."""
        return SHARED_MEDIA_VERSION if self.may_be_older else None


def recognised(url: str, about: object) -> Server:
    """The server that says this of itself.

    Raises:
        EngineRefused: it is none that searchapp works with.
    """
    version = about.get("version") if isinstance(about, Mapping) else None
    if not isinstance(version, Mapping) or "number" not in version:
        raise EngineRefused(f"{url} is not an Elasticsearch: it reports no version")
    number, flavor = version["number"], version.get("build_flavor")
    if is_opensearch(about):
        raise _opensearch(url, number)
    if _numbers(url, number) < OLDEST_SERVER and flavor != "serverless":
        raise too_old(url, str(number))
    return Server(str(number), flavor == "serverless")


def is_opensearch(about: object) -> bool:
    """Whether the root of a server says that it is an OpenSearch, also one that gives a version of Elasticsearch."""
    if not isinstance(about, Mapping):
        return False
    version = about.get("version")
    distribution = version.get("distribution") if isinstance(version, Mapping) else None
    return distribution == "opensearch" or "OpenSearch" in str(about.get("tagline", ""))


def refused_product(url: str, about: object) -> EngineRefused | None:
    """What is said of a server that does not name itself as Elasticsearch, if what it says of itself tells more."""
    if is_opensearch(about):
        version = about.get("version") if isinstance(about, Mapping) else None
        return _opensearch(url, version.get("number") if isinstance(version, Mapping) else None)
    if isinstance(about, Mapping) and about.get("tagline") == "You Know, for Search":
        try:  # before 7.14 no server named itself
            recognised(url, about)
        except EngineRefused as error:
            return error
    return None


def too_old(url: str, number: str) -> EngineRefused:
    """A sentence on a server of an earlier version."""
    return EngineRefused(
        f"{url} runs Elasticsearch {number}, and searchapp works with {SUPPORTED}: upgrade the server"
    )


def _opensearch(url: str, number: object) -> EngineRefused:
    name = (
        f"OpenSearch {number}"
        if isinstance(number, str) and re.fullmatch(r"[\w.-]{1,40}", number)
        else "OpenSearch"
    )
    return EngineRefused(
        f"{url} runs {name}, which searchapp does not work with: nobody has shown that it ranks as Elasticsearch does, "
        f"and the client speaks to Elasticsearch only; use one of {SUPPORTED}, or the embedded engine"
    )


def _numbers(url: str, number: object) -> tuple[int, int]:
    """Major and minor of a server's version; what stands behind them can be anything.

    Raises:
        EngineRefused: the version begins with no number.
    """
    found = re.match(r"v?(\d{1,9})(?:\.(\d{1,9}))?", number) if isinstance(number, str) else None
    if found is None:
        raise EngineRefused(
            f"{url} reports the version {str(number)[:40]!r}, which is not one of Elasticsearch: check the address"
        )
    return int(found[1]), int(found[2] or 0)
