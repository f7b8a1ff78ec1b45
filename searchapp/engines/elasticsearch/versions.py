"""The versions of an index: find the live version, list stored versions, swap the alias, repair.

`searchapp-nlps` is an alias of one version, such as `searchapp-nlps-000007-5f0c9a3e`. The random last part makes
version names unique for ever. A version under construction has a building alias instead, whose name ends with the
token of its builder's lock, and through which the builder addresses it. To resume a version, a builder replaces this
alias by its own: late requests of a dead builder have no target.

`_meta.searchapp` in the mapping of a version marks searchapp's own indexes.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from searchapp.engines.base import IndexSpec, Repair, StoredVersion, VersionState
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.engines.elasticsearch.locks import Locks
from searchapp.engines.elasticsearch.searching import number_fields, sorts_by_id
from searchapp.engines.elasticsearch.shards import copies, count_documents
from searchapp.errors import EngineError, EngineRefused
from searchapp.files import digest_json
from searchapp.lucene.dataclass import dataclass
from searchapp.model import IndexInfo
from searchapp.text import counted

# Fields of `IndexInfo` that a version records in its mapping.
_RECORDED = ("documents", "digest", "mapping_digest", "documents_digest", "shards", "created", "owner")

VERSION_SUFFIX = re.compile(r"-(\d{6,})-[0-9a-f]{8}$")  # the number and the random part of a version's name


def building_alias(index: str, token: str) -> str:
    """Return the alias by which the builder with a lock's token addresses an unfinished version."""
    return f"{index}-building-{token}"


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """A version of an index made by searchapp."""

    info: IndexInfo
    serves: bool
    building: str  # its building alias, or empty
    is_closed: bool  # to writes
    refreshes: bool  # whether new segments become searchable
    numbers: frozenset[str] = frozenset()  # numeric fields
    sorts_by_id: bool = False  # whether hits are sorted by unmodified ids

    @property
    def lock(self) -> str:
        """The token of its builder's lock; empty without a building alias."""
        return self.building.removeprefix(building_alias(self.info.version, ""))


class Split(EngineRefused):
    """An alias points to several versions."""

    def __init__(self, url: str, alias: str, versions: list[str], name: str) -> None:
        super().__init__(
            f"{url} has the alias {alias} on {len(versions)} versions ({', '.join(versions)}): "
            f"repair it with `searchapp indexes repair {name}`"
        )


class IndexVersions:
    """The versions of the index `name` with the alias `alias`."""

    def __init__(self, connection: Connection, name: str, alias: str) -> None:
        self._connection = connection
        self.name = name
        self.alias = alias

    def serving(self) -> IndexVersion | None:
        """Return the live version, None without one.

        Raises:
            Split: the alias points to several versions.
            EngineRefused: as `behind`.
        """
        versions = self.with_alias()
        if len(versions) > 1:
            names = [version.info.version for version in versions]
            raise Split(self._connection.url, self.alias, names, self.name)
        return versions[0] if versions else None

    def with_alias(self) -> list[IndexVersion]:
        """Return the versions that have the alias, oldest first; several only after a failure.

        Raises:
            EngineRefused: another program made the alias, or an index of its name.
        """
        indexes = self._get(self.alias)
        versions = [version for index in sorted(indexes) if (version := self.version(index, indexes[index]))]
        if len(versions) < len(indexes):
            ours = {version.info.version for version in versions}
            foreign = ", ".join(sorted(set(indexes) - ours - {self.alias}))
            raise EngineRefused(
                f"{self._connection.url} has an index or alias {self.alias} that searchapp did not make"
                f"{f' (it leads to {foreign})' if foreign else ''}: "
                "choose another prefix with SEARCHAPP_INDEX_PREFIX, or remove it yourself"
            )
        return versions

    def all(self) -> list[IndexVersion]:
        """Return every version that searchapp has made, live or not, oldest first."""
        indexes = self._get(f"{self.alias}-*")
        versions = (self.version(index, described) for index, described in sorted(indexes.items()))
        return [version for version in versions if version is not None]

    def new_name(self) -> str:
        numbers = [int(match[1]) for index in self._get(f"{self.alias}-*") if (match := self._suffix(index))]
        return f"{self.alias}-{max(numbers, default=0) + 1:06d}-{secrets.token_hex(4)}"

    def take_over(self, version: IndexVersion, token: str) -> bool:
        """Replace a version's building alias by the alias of a lock's token; return False if it is gone."""
        index, own = version.info.version, building_alias(version.info.version, token)
        actions = [_remove(index, version.building), {"add": {"index": index, "alias": own}}]
        try:
            self._update(f"go on with {index}", actions)
        except EngineRefused:
            # The answer to an earlier attempt may have been lost.
            return own in self._get(index).get(index, {"aliases": ()})["aliases"]
        return True

    def swap(self, index: str, token: str, replaced: str | None) -> None:
        """Make a version built under a lock live, in place of another one or of none, in one request.

        Raises:
            EngineError: nothing was changed; another version may be live.
        """
        # The cluster checks that the new version has the sender's building alias, that the replaced version has the
        # serving alias, and that no other version is its write index. One of several concurrent swaps succeeds.
        actions: list[dict[str, Any]] = [
            {"add": {"index": index, "alias": self.alias, "is_write_index": True}},
            _remove(index, building_alias(index, token)),
        ]
        if replaced is not None:
            actions.append(_remove(replaced, self.alias))
        try:
            self._update(f"let {index} serve as {self.alias}", actions)
        except EngineError:
            # A repeated request is rejected if only the first response was lost; only the owner of the token can have
            # made this version live.
            after = self.serving()
            if after is None or after.info.version != index:
                raise

    def keep_only(self, index: str, others: list[str]) -> None:
        self._update(
            f"let {index} alone serve as {self.alias}",
            [
                *(_remove(other, self.alias) for other in others),
                {"add": {"index": index, "alias": self.alias, "is_write_index": True}},
            ],
        )

    def remove_leftovers(self, except_version: str | None = None) -> list[str]:
        """Delete the versions that are not live, except one, and return their names; requires the lock."""
        leftovers = [
            version.info.version
            for version in self.all()
            if not version.serves and version.info.version != except_version
        ]
        return [index for index in leftovers if self.remove_unserved(index)]

    def remove_unserved(self, index: str, token: str | None = None) -> bool:
        """Delete a version unless it is live; its builder can then no longer make it live.

        With the token of a lock, delete it only if no other builder has taken it over.
        """
        for _ in range(2):
            described = self._get(index).get(index)
            if described is None or self.alias in described["aliases"]:
                return False
            if not (building := _building(index, described)):
                self.delete(index)
                return True
            if token is not None and building != building_alias(index, token):
                return False
            # Without its building alias the version can't become live, so the next look-up is reliable.
            with suppress(EngineRefused):  # another process has changed it
                self._update(f"put {index} aside", [_remove(index, building)])
        raise EngineRefused(
            f"{self._connection.url} could not remove the incomplete index {index}: remove it yourself"
        )

    def delete(self, index: str) -> None:
        self._connection.look_up(
            f"delete the index {index}", lambda client: client.indices.delete(index=index)
        )

    def meta(self, spec: IndexSpec) -> dict[str, Any]:
        return {
            "alias": self.alias,
            "name": self.name,
            "digest": spec.digest,
            "mapping_digest": digest_json(spec.mapping),
            "documents_digest": spec.documents_digest,
            "documents": spec.documents,
            "shards": spec.shards,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "owner": spec.owner,
        }

    def _update(self, action: str, actions: list[dict[str, Any]]) -> None:
        self._connection.call(action, lambda client: client.indices.update_aliases(actions=actions))

    def _get(self, pattern: str) -> Mapping[str, Any]:
        return look_up(self._connection, pattern)

    def _suffix(self, index: str) -> re.Match[str] | None:
        match = VERSION_SUFFIX.search(index)
        return match if match and index[: match.start()] == self.alias else None

    def version(self, index: str, described: Mapping[str, Any]) -> IndexVersion | None:
        """Parse a description of an index; None unless searchapp made it for this alias."""
        meta = meta_of(described)
        if self._suffix(index) is None or meta.get("alias") != self.alias:
            return None
        try:
            info = IndexInfo(name=self.name, version=index, **{name: meta[name] for name in _RECORDED})
        except (KeyError, TypeError):
            return None  # edited by a user: no longer searchapp's
        settings = described["settings"]["index"]
        properties = described["mappings"].get("properties", {})
        return IndexVersion(
            info,
            serves=self.alias in described["aliases"],
            building=_building(index, described),
            is_closed=settings.get("blocks", {}).get("write") == "true",
            refreshes=settings.get("refresh_interval") != "-1",
            numbers=number_fields(properties),
            sorts_by_id=sorts_by_id(properties),
        )


def flaw(connection: Connection, version: IndexVersion) -> str:
    """Return why a version must not be live, as the beginning of a sentence; empty if it is sound."""
    index, documents = version.info.version, version.info.documents
    now = copies(connection, index, version.info.shards)
    if now.deleted:
        affect = "affects" if now.deleted == 1 else "affect"
        return f"{index} has {now.deleted_text}, which {affect} its scores"
    # The statistics include nested documents; `count_documents` counts only the documents sent.
    indexed = sum(copy.documents for copy in now.copies if copy.primary)
    if indexed != documents and not now.without_primary:
        count = count_documents(connection, index)
        if count != documents:
            return f"{index} has {counted(count, 'document')} instead of {documents:,}"
    if not version.is_closed:
        return f"{index} is open to writes (`index.blocks.write` is not true), so its content may change"
    if not version.refreshes:
        return f"{index} may hide documents (`index.refresh_interval` is -1)"
    return ""


def require_sound(connection: Connection, version: IndexVersion) -> None:
    """Reject a version with a flaw."""
    if problem := flaw(connection, version):
        raise EngineRefused(f"{problem}: build it again with `searchapp index {version.info.name} --rebuild`")


def look_up(connection: Connection, pattern: str) -> Mapping[str, Any]:
    """Return aliases, mappings and settings of the indexes that match a pattern."""
    answer = connection.look_up(
        f"look up {pattern}",
        lambda client: client.indices.get(index=pattern, features=["aliases", "mappings", "settings"]),
    )
    return answer or {}


def meta_of(described: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return searchapp's record in the mapping of an index; empty for other indexes."""
    meta = described["mappings"].get("_meta", {}).get("searchapp", {})
    return meta if isinstance(meta, Mapping) else {}


def _remove(index: str, alias: str) -> dict[str, Any]:
    return {"remove": {"index": index, "alias": alias, "must_exist": True}}


def _building(index: str, described: Mapping[str, Any]) -> str:
    prefix = building_alias(index, "")
    return next((alias for alias in described["aliases"] if alias.startswith(prefix)), "")


def all_stored(connection: Connection, locks: Locks, prefix: str) -> list[StoredVersion]:
    """Return every version of indexes with a name prefix that searchapp has made."""
    pattern = f"{prefix}-*"
    indexes = look_up(connection, pattern)
    sizes = _sizes(connection, pattern) if indexes else {}
    stored = []
    for index, described in sorted(indexes.items()):
        alias = VERSION_SUFFIX.sub("", index)
        versions = IndexVersions(connection, alias.removeprefix(f"{prefix}-"), alias)
        version = versions.version(index, described)
        name = meta_of(described).get("name")
        if version is None or name not in (None, versions.name):
            continue  # made by another program, or with another prefix
        state = VersionState.live if version.serves else VersionState.leftover
        if not version.serves and version.building and locks.is_held(alias, version.lock):
            state = VersionState.building
        size = sizes.get(index)
        stored.append(
            StoredVersion(versions.name, index, state, version.info, size, records_name=name is not None)
        )
    return stored


def _sizes(connection: Connection, pattern: str) -> dict[str, int]:
    """Return the bytes of indexes on disk; empty for a user without that privilege, and on a serverless project."""
    if connection.server.is_serverless:
        return {}
    try:
        answer = connection.look_up(
            f"ask for the sizes of {pattern}",
            lambda client: client.indices.stats(index=pattern, metric="store"),
        )
        return {
            index: int(described["total"]["store"]["size_in_bytes"])
            for index, described in (answer or {}).get("indices", {}).items()
        }
    except (EngineError, KeyError, TypeError, ValueError):
        return {}


def repair(connection: Connection, locks: Locks, versions: IndexVersions) -> Repair:
    """Keep the newest sound version as the only live one, and delete unfinished versions.

    Wait for another process that is building the index. Report a flaw of the content without repairing it.

    Raises:
        EngineRefused: another program made the alias, or the other process takes too long.
    """
    versions.with_alias()  # rejects another program's alias before the lock is created
    with locks.hold(versions.alias):
        versions_with_alias = versions.with_alias()
        survivor, flaws = _best(connection, versions_with_alias)
        if survivor is not None and len(versions_with_alias) > 1:
            others = [version.info.version for version in versions_with_alias if version is not survivor]
            versions.keep_only(survivor.info.version, others)
        removed = versions.remove_leftovers()
    if survivor is None:
        return Repair(versions.name, None, tuple(removed), f"no version of {versions.alias} is live")
    return Repair(versions.name, survivor.info.version, tuple(removed), flaws)


def _best(connection: Connection, versions: list[IndexVersion]) -> tuple[IndexVersion | None, str]:
    """Return the newest complete version without a flaw, else the newest version, and its flaw."""
    newest, problem = None, ""
    for version in reversed(versions):
        problem_of_version = flaw(connection, version)
        if (
            not problem_of_version
            and not copies(connection, version.info.version, version.info.shards).without_primary
        ):
            return version, ""
        if newest is None:
            newest, problem = version, problem_of_version
    return newest, problem
