"""The versions of an index: which of them serves, which are stored, and how an index is repaired.

`searchapp-nlps` is an alias of one version, `searchapp-nlps-000007-5f0c9a3e`. The random last part keeps names of
versions unique for ever. A version under construction has a building alias instead, whose name ends with the token of
its builder's lock. The builder addresses the version through that alias alone. A builder that resumes a version
replaces the alias by its own in one conditional request.

A request can reach the server long after its sender has died. Its target no longer exists then: the version was
deleted, or another builder took its building alias away. The swap, one atomic request, has conditions that the cluster
checks: the new version still has the building alias of the sender, the replaced version still has the serving alias,
and no other version is the write index of the serving alias. One of several concurrent swaps succeeds.

Each version records its source in its mapping's `_meta.searchapp`, by which searchapp recognizes its own indexes.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from searchapp.engines.base import IndexSpec, Repair, StoredVersion, VersionState
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.engines.elasticsearch.locks import Locks
from searchapp.engines.elasticsearch.searching import number_fields, sorts_by_id
from searchapp.engines.elasticsearch.shards import copies, count_documents
from searchapp.errors import EngineError, EngineRefused
from searchapp.files import digest_json
from searchapp.model import IndexInfo
from searchapp.text import counted

_RECORDED = ("documents", "digest", "mapping_digest", "documents_digest", "shards", "created", "owner")
"""The fields of `IndexInfo` that a version records in its mapping."""

VERSION_SUFFIX = re.compile(r"-(\d{6,})-[0-9a-f]{8}$")
"""The rest of a version's name after the alias: its number, and a random part."""


def building_alias(index: str, token: str) -> str:
    """Return the alias by which the builder with a lock's token addresses a version until it serves."""
    return f"{index}-building-{token}"


@dataclass(frozen=True, slots=True)
class IndexVersion:
    """One version of an index that searchapp has made.

    Args:
        info: its source
        serves: whether it has the serving alias
        building: its building alias, or empty
        is_closed: whether it is closed to writes
        refreshes: whether new segments become searchable
        numbers: the numeric fields of its mapping
        sorts_by_id: whether its hits are sorted by unmodified ids
    """

    info: IndexInfo
    serves: bool
    building: str
    is_closed: bool
    refreshes: bool
    numbers: frozenset[str] = frozenset()
    sorts_by_id: bool = False

    @property
    def lock(self) -> str:
        """The token of the lock of its builder; empty when it has no building alias."""
        return self.building.removeprefix(building_alias(self.info.version, ""))


class Split(EngineRefused):
    """An alias leads to several versions at once."""

    def __init__(self, url: str, alias: str, versions: list[str], name: str) -> None:
        super().__init__(
            f"{url} has the alias {alias} on {len(versions)} versions at once ({', '.join(versions)}): "
            f"repair it with `searchapp indexes repair {name}`"
        )


class IndexVersions:
    """The versions of the index `name`, whose alias is `alias`."""

    def __init__(self, connection: Connection, name: str, alias: str) -> None:
        self._connection = connection
        self.name = name
        self.alias = alias

    def serving(self) -> IndexVersion | None:
        """Return the version behind the alias, None when there is no alias.

        Raises:
            Split: there are several.
            EngineRefused: searchapp did not make the alias, or an index of its name.
        """
        versions = self.behind()
        if len(versions) > 1:
            names = [version.info.version for version in versions]
            raise Split(self._connection.url, self.alias, names, self.name)
        return versions[0] if versions else None

    def behind(self) -> list[IndexVersion]:
        """Return the versions that have the alias, oldest first: one at most, unless something is wrong.

        Raises:
            EngineRefused: searchapp did not make the alias, or an index of its name.
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
        """Return every version that searchapp has made, serving or not, oldest first."""
        indexes = self._get(f"{self.alias}-*")
        versions = (self.version(index, described) for index, described in sorted(indexes.items()))
        return [version for version in versions if version is not None]

    def new_name(self) -> str:
        """Return a name for a version that no index has, had, or will get again."""
        numbers = [int(match[1]) for index in self._get(f"{self.alias}-*") if (match := self._suffix(index))]
        return f"{self.alias}-{max(numbers, default=0) + 1:06d}-{secrets.token_hex(4)}"

    def take_over(self, version: IndexVersion, token: str) -> bool:
        """Replace the building alias of a version by that of a lock's token; return False when it is no longer there.

        From then on no request of the previous builder reaches the version.
        """
        index, own = version.info.version, building_alias(version.info.version, token)
        actions = [_remove(index, version.building), {"add": {"index": index, "alias": own}}]
        try:
            self._update(f"go on with {index}", actions)
        except EngineRefused:
            # The answer to an earlier attempt may have been lost.
            return own in self._get(index).get(index, {"aliases": ()})["aliases"]
        return True

    def swap(self, index: str, token: str, replaced: str | None) -> None:
        """Let a version that was built under a lock serve, in place of another one or of none, in one request.

        The request may be repeated after a lost answer. The repetition is refused, and the serving version decides:
        only the
        owner of the token can have made this one serve.

        Raises:
            EngineError: nothing was changed; another version may serve by now.
        """
        actions: list[dict[str, Any]] = [
            # An alias has one write index: so a first build can't join another one.
            {"add": {"index": index, "alias": self.alias, "is_write_index": True}},
            _remove(index, building_alias(index, token)),
        ]
        if replaced is not None:
            actions.append(_remove(replaced, self.alias))
        try:
            self._update(f"let {index} serve as {self.alias}", actions)
        except EngineError:
            after = self.serving()
            if after is None or after.info.version != index:
                raise

    def keep_only(self, kept: str, others: list[str]) -> None:
        """Let one of the versions behind the alias serve alone, in one request.

        Raises:
            EngineError: nothing was changed.
        """
        self._update(
            f"let {kept} alone serve as {self.alias}",
            [
                *(_remove(other, self.alias) for other in others),
                {"add": {"index": kept, "alias": self.alias, "is_write_index": True}},
            ],
        )

    def remove_leftovers(self, except_version: str | None = None) -> list[str]:
        """Delete the versions that do not serve, except one, and return their names; the lock must be held."""
        leftovers = [
            version.info.version
            for version in self.all()
            if not version.serves and version.info.version != except_version
        ]
        return [index for index in leftovers if self.remove_unserved(index)]

    def remove_unserved(self, index: str, token: str | None = None) -> bool:
        """Delete a version unless it serves; its builder can then no longer let it serve.

        With the token of a lock it is deleted only as long as no other builder has taken it over. Its building alias
        goes
        first: without it the swap is refused, so that this sees a version that serves by now, and one that does not
        never will.
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
            with suppress(EngineRefused):  # another process has changed it, which the next look shows
                self._update(f"put {index} aside", [_remove(index, building)])
        raise EngineRefused(
            f"{self._connection.url} could not put {index} aside, which was not completed: remove it yourself"
        )

    def delete(self, index: str) -> None:
        """Delete a version; one that is already gone is no error."""
        self._connection.look_up(
            f"delete the index {index}", lambda client: client.indices.delete(index=index)
        )

    def meta(self, spec: IndexSpec) -> dict[str, Any]:
        """Return the `_meta.searchapp` of a new version."""
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

    def _update(self, what: str, actions: list[dict[str, Any]]) -> None:
        self._connection.call(what, lambda client: client.indices.update_aliases(actions=actions))

    def _get(self, pattern: str) -> Mapping[str, Any]:
        return look_up(self._connection, pattern)

    def _suffix(self, index: str) -> re.Match[str] | None:
        match = VERSION_SUFFIX.search(index)
        return match if match and index[: match.start()] == self.alias else None

    def version(self, index: str, described: Mapping[str, Any]) -> IndexVersion | None:
        """Return the record of an index, None when searchapp has not made it for this alias."""
        meta = meta_of(described)
        if self._suffix(index) is None or meta.get("alias") != self.alias:
            return None
        try:
            info = IndexInfo(name=self.name, version=index, **{name: meta[name] for name in _RECORDED})
        except (KeyError, TypeError):
            return None  # a user has edited it: then it is not ours any more
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
    """Return why a version must not serve, as the beginning of a sentence; empty when it is sound."""
    index, documents = version.info.version, version.info.documents
    now = copies(connection, index, version.info.shards)
    if now.deleted:
        return f"{index} holds {now.deleted_text}, which count in its scores"
    # The statistics count nested documents as well: only `count_documents` is about those that were sent.
    indexed = sum(copy.documents for copy in now.copies if copy.primary)
    if indexed != documents and not now.without_primary:
        count = count_documents(connection, index)
        if count != documents:
            return f"{index} holds {counted(count, 'document')} instead of {documents:,}"
    if not version.is_closed:
        return f"{index} is open to writes (`index.blocks.write` is not true), so that its content is not certain"
    if not version.refreshes:
        return f"{index} does not show all that it holds (`index.refresh_interval` is -1)"
    return ""


def require_sound(connection: Connection, version: IndexVersion) -> None:
    """Make sure that a version has no flaw.

    Raises:
        EngineRefused: it has one.
    """
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
    """Return the record that searchapp has written into the mapping of an index; empty for other indexes."""
    meta = described["mappings"].get("_meta", {}).get("searchapp", {})
    return meta if isinstance(meta, Mapping) else {}


def _remove(index: str, alias: str) -> dict[str, Any]:
    return {"remove": {"index": index, "alias": alias, "must_exist": True}}


def _building(index: str, described: Mapping[str, Any]) -> str:
    prefix = building_alias(index, "")
    return next((alias for alias in described["aliases"] if alias.startswith(prefix)), "")


def all_stored(connection: Connection, locks: Locks, prefix: str) -> list[StoredVersion]:
    """Return every version that searchapp has made of indexes whose names begin with a prefix.

    Raises:
        EngineError: the server does not answer, or refuses.
    """
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
            continue  # it is another's, or of an index with another prefix
        state = VersionState.serves if version.serves else VersionState.leftover
        if not version.serves and version.building and locks.is_held(alias, version.lock):
            state = VersionState.building
        size = sizes.get(index)
        stored.append(
            StoredVersion(versions.name, index, state, version.info, size, says_name=name is not None)
        )
    return stored


def _sizes(connection: Connection, pattern: str) -> dict[str, int]:
    """Return the bytes of indexes on disk; none for a user without that right, and on a serverless project."""
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
    """Let one version of an index serve alone, and delete what builders have left.

    Of several versions that serve at once the newest sound one stays. The content of an index is not repaired, but a
    flaw
    is reported. An index that another process is building is waited for.

    Raises:
        EngineRefused: searchapp did not make the alias, or the other process takes too long.
        EngineUnreachable: the server does not answer.
    """
    versions.behind()  # refuses a name that is not ours before anything is made
    with locks.hold(versions.alias):
        behind = versions.behind()
        kept, flaws = _best(connection, behind)
        if kept is not None and len(behind) > 1:
            versions.keep_only(kept.info.version, [one.info.version for one in behind if one is not kept])
        removed = versions.remove_leftovers()
    if kept is None:
        return Repair(versions.name, None, tuple(removed), f"no version of {versions.alias} serves")
    return Repair(versions.name, kept.info.version, tuple(removed), flaws)


def _best(connection: Connection, behind: list[IndexVersion]) -> tuple[IndexVersion | None, str]:
    """Return the newest complete version without a flaw, else the newest, and its flaw."""
    newest, problem = None, ""
    for version in reversed(behind):
        problem_of_version = flaw(connection, version)
        if (
            not problem_of_version
            and not copies(connection, version.info.version, version.info.shards).without_primary
        ):
            return version, ""
        if newest is None:
            newest, problem = version, problem_of_version
    return newest, problem
