"""What the name of an index stands for on the server.

`searchapp-nlps` is an alias; behind it lies one version, `searchapp-nlps-000007`. A version under construction
has the alias `searchapp-nlps-000008-building` instead, through which alone it is written to, so that a version
that somebody has deleted meanwhile is not created again by the next write. Each version says in its mapping's
`_meta.searchapp` what it was built from and by which process: that is how searchapp knows its own, and how it
tells a version that is being built from the leftovers of a run that was killed.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil

from searchapp.engines.base import IndexInfo, IndexSpec, State, StoredVersion
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.errors import EngineError, EngineRefused

ABANDONED_AFTER = timedelta(hours=24)
"""A version built on another machine, where we can't look for its process, is a leftover after this time."""


def building_alias(index: str) -> str:
    """The alias that a version has while it is built, and that alone is written to."""
    return f"{index}-building"


@dataclass(frozen=True, slots=True)
class Builder:
    """The process that builds a version: its machine, number, and start, in seconds since 1970.

    Numbers are given again to other processes; together with the start they are not.
    """

    host: str
    pid: int
    started: float

    @classmethod
    def this_process(cls) -> Builder:
        return cls(socket.gethostname(), os.getpid(), psutil.Process().create_time())

    def is_here(self) -> bool:
        return self.host == socket.gethostname()

    def is_another_at_work(self) -> bool:
        """Whether it is a living process other than this one; only this machine's processes can be looked up."""
        try:
            same = abs(psutil.Process(self.pid).create_time() - self.started) < 1
        except psutil.Error:
            return False
        return same and self.pid != os.getpid()


@dataclass(frozen=True, slots=True)
class Version:
    """One index that searchapp has made: complete and serving, being built, or left over."""

    info: IndexInfo
    serves: bool
    complete: bool
    builder: Builder

    def is_being_built(self) -> bool:
        """Whether the process that builds it may still be at work."""
        if self.serves or self.complete:
            return False
        if self.builder.is_here():
            return self.builder.is_another_at_work()
        return datetime.now(UTC) - datetime.fromisoformat(self.info.created) < ABANDONED_AFTER


class Versions:
    """The versions of the index `name`, whose alias is `alias`."""

    def __init__(self, connection: Connection, name: str, alias: str) -> None:
        self._connection = connection
        self._client = connection.client
        self.name = name
        self.alias = alias

    def serving(self) -> Version | None:
        """The version behind the alias, None when there is no alias.

        Raises:
            EngineRefused: the alias, or an index of its name, is somebody else's.
        """
        indexes = self._get(self.alias)
        if not indexes:
            return None
        versions = [self._version(index, described) for index, described in indexes.items()]
        if len(versions) > 1 or versions[0] is None:
            raise EngineRefused(
                f"{self._connection.url} has an index or alias {self.alias} that searchapp did not make: "
                "choose another prefix with SEARCHAPP_INDEX_PREFIX, or remove it yourself"
            )
        return versions[0]

    def all(self) -> list[Version]:
        """Every version that searchapp has made, serving or not, oldest first."""
        indexes = self._get(f"{self.alias}-*")
        found = (self._version(index, described) for index, described in sorted(indexes.items()))
        return [version for version in found if version is not None]

    def next_name(self) -> str:
        """A name that no index has yet."""
        numbers = [self._number(index) for index in self._get(f"{self.alias}-*")]
        return f"{self.alias}-{max([0, *(number for number in numbers if number)]) + 1:06d}"

    def remove_leftovers(self) -> list[str]:
        """Delete the versions that killed runs have left, and return their names.

        Raises:
            EngineRefused: another process on this machine is building this index right now.
        """
        removed = []
        for version in self.all():
            if version.serves:
                continue
            if version.is_being_built():
                if version.builder.is_here():
                    raise EngineRefused(
                        f"process {version.builder.pid} is building {version.info.version} at this moment: "
                        "wait until it is done"
                    )
                continue
            self.delete(version.info.version)
            removed.append(version.info.version)
        return removed

    def require_nobody_builds(self) -> None:
        """Make sure that no other process is building this index.

        Raises:
            EngineRefused: one is, or may be, on another machine.
        """
        for version in self.all():
            if version.is_being_built():
                where = "" if version.builder.is_here() else f" on {version.builder.host}"
                raise EngineRefused(
                    f"process {version.builder.pid}{where} is building {version.info.version} at this moment: "
                    "wait until it is done"
                )

    def delete(self, index: str) -> None:
        """Delete a version; one that is already gone is no error."""
        client = self._client.options(ignore_status=404)
        self._connection.call(f"delete the index {index}", lambda: client.indices.delete(index=index))

    def meta(self, spec: IndexSpec, mapping_digest: str) -> dict[str, Any]:
        """What goes into `_meta.searchapp` of a version that this process builds."""
        return {
            "alias": self.alias,
            "name": self.name,
            "digest": spec.digest,
            "mapping_digest": mapping_digest,
            "documents_digest": spec.documents_digest,
            "documents": spec.documents,
            "shards": spec.shards,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "owner": spec.owner,
            "builder": asdict(Builder.this_process()),
        }

    def stored(self, index: str, described: Mapping[str, Any], bytes_: int | None) -> StoredVersion | None:
        """An index as one of these versions; None when it is none, or of an index with another prefix."""
        version = self._version(index, described)
        name = _made_by_searchapp(described).get("name")
        if version is None or name not in (None, self.name):
            return None
        state = State.building if version.is_being_built() else State.leftover
        state = State.serves if version.serves else state
        return StoredVersion(self.name, index, state, version.info, bytes_, says_name=name is not None)

    def _get(self, pattern: str) -> Mapping[str, Any]:
        return _indexes(self._connection, pattern)

    def _number(self, index: str) -> int | None:
        match = re.fullmatch(re.escape(self.alias) + r"-(\d{6,})", index)
        return int(match[1]) if match else None

    def _version(self, index: str, described: Mapping[str, Any]) -> Version | None:
        """The record of an index, None when searchapp has not made it for this alias."""
        meta = _made_by_searchapp(described)
        if self._number(index) is None or meta.get("alias") != self.alias:
            return None
        try:
            info = IndexInfo(
                name=self.name,
                version=index,
                documents=meta["documents"],
                digest=meta["digest"],
                mapping_digest=meta["mapping_digest"],
                documents_digest=meta["documents_digest"],
                shards=meta["shards"],
                created=meta["created"],
                owner=meta.get("owner", ""),
            )
            builder = Builder(**meta["builder"])
        except (KeyError, TypeError):
            return None  # somebody has edited it: then it is not ours any more
        aliases = described["aliases"]
        return Version(info, self.alias in aliases, building_alias(index) not in aliases, builder)


def all_stored(connection: Connection, prefix: str) -> list[StoredVersion]:
    """Every version of every index whose name begins with a prefix, as far as searchapp has made it."""
    pattern = f"{prefix}-*"
    indexes = _indexes(connection, pattern)
    sizes = _sizes(connection, pattern) if indexes else {}
    found = []
    for index, described in sorted(indexes.items()):
        alias = re.sub(r"-\d{6,}$", "", index)
        versions = Versions(connection, alias.removeprefix(f"{prefix}-"), alias)
        found.append(versions.stored(index, described, sizes.get(index)))
    return [version for version in found if version is not None]


def _indexes(connection: Connection, pattern: str) -> Mapping[str, Any]:
    client = connection.client.options(ignore_status=404)
    answer = connection.call(
        f"look up {pattern}",
        lambda: client.indices.get(index=pattern, features=["aliases", "mappings"]),
    )
    return {} if answer.meta.status == 404 else answer.body


def _made_by_searchapp(described: Mapping[str, Any]) -> Mapping[str, Any]:
    """What searchapp has written into the mapping of an index when it made it; nothing in that of others."""
    meta = described["mappings"].get("_meta", {}).get("searchapp", {})
    return meta if isinstance(meta, Mapping) else {}


def _sizes(connection: Connection, pattern: str) -> dict[str, int]:
    """The bytes that indexes take on disk; nothing for a user who may not ask for that."""
    client = connection.client.options(ignore_status=404)
    try:
        answer = connection.call(
            f"ask for the sizes of {pattern}", lambda: client.indices.stats(index=pattern, metric="store")
        )
        return {
            index: int(described["total"]["store"]["size_in_bytes"])
            for index, described in answer.body.get("indices", {}).items()
        }
    except (EngineError, KeyError, TypeError, ValueError):
        return {}
