"""What the name of an index stands for on the server.

`searchapp-nlps` is an alias; behind it lies one version, `searchapp-nlps-000007`. A version under construction
has the alias `searchapp-nlps-000008-building` instead, through which alone it is written to, so that a version
that somebody has deleted since is not created again by the next write. Each version says in its mapping's
`_meta.searchapp` what it was built from and by whom: that is how searchapp knows its own.

Which version serves is changed by one request, and that on conditions which the cluster itself checks: the new
version still has its building alias, the old one still has the alias, and no other is its write index. Of several
builders who swap at once one succeeds, and a builder whose building alias was taken away never does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from searchapp.digests import digest_json
from searchapp.engines.base import IndexInfo, IndexSpec
from searchapp.engines.elasticsearch.builder import Builder
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.engines.elasticsearch.hits import sorts_by_id
from searchapp.engines.elasticsearch.whole import number_fields
from searchapp.errors import EngineError, EngineRefused

ABANDONED_AFTER = timedelta(hours=24)
"""A version that an earlier searchapp, which knew no locks, builds on another machine is a leftover after this time."""


def building_alias(index: str) -> str:
    """The alias that a version has while it is built, and that alone is written to."""
    return f"{index}-building"


@dataclass(frozen=True, slots=True)
class Version:
    """One index that searchapp has made: complete and serving, being built, or left over.

    `lock` is the token of the lock under which it was built, empty where an earlier searchapp built it. `numbers` are
    the fields on numbers of its mapping, `sorts_by_id` is whether its hits are sorted by ids as they are.
    """

    info: IndexInfo
    serves: bool
    complete: bool
    builder: Builder
    lock: str = ""
    numbers: frozenset[str] = frozenset()
    sorts_by_id: bool = False

    def may_be_at_work(self) -> bool:
        """Whether an earlier searchapp, which knew no locks, may still be building it."""
        if self.serves or self.complete or self.lock:
            return False
        if self.builder.is_here():
            return self.builder.is_alive() and not self.builder.is_this_process()
        return datetime.now(UTC) - datetime.fromisoformat(self.info.created) < ABANDONED_AFTER


class Split(EngineRefused):
    """An alias is on several versions, which an earlier searchapp's builders at once could leave."""

    def __init__(self, url: str, alias: str, versions: list[str], name: str) -> None:
        super().__init__(
            f"{url} has the alias {alias} on {len(versions)} versions at once ({', '.join(versions)}): "
            f"repair it with `searchapp indexes repair {name}`"
        )


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
            Split: there are several.
            EngineRefused: the alias, or an index of its name, is somebody else's.
        """
        versions = self.behind()
        if len(versions) > 1:
            names = [version.info.version for version in versions]
            raise Split(self._connection.url, self.alias, names, self.name)
        return versions[0] if versions else None

    def behind(self) -> list[Version]:
        """The versions that have the alias, oldest first: one at most, unless something is wrong.

        Raises:
            EngineRefused: the alias, or an index of its name, is somebody else's.
        """
        indexes = self._get(self.alias)
        versions = [version for index in sorted(indexes) if (version := self.version(index, indexes[index]))]
        if len(versions) < len(indexes):
            ours = {version.info.version for version in versions}
            others = ", ".join(sorted(set(indexes) - ours - {self.alias}))
            raise EngineRefused(
                f"{self._connection.url} has an index or alias {self.alias} that searchapp did not make"
                f"{f' (it leads to {others})' if others else ''}: "
                "choose another prefix with SEARCHAPP_INDEX_PREFIX, or remove it yourself"
            )
        return versions

    def all(self) -> list[Version]:
        """Every version that searchapp has made, serving or not, oldest first."""
        indexes = self._get(f"{self.alias}-*")
        found = (self.version(index, described) for index, described in sorted(indexes.items()))
        return [version for version in found if version is not None]

    def next_number(self, last: int) -> int:
        """A number that no index has yet, and that is higher than `last`."""
        numbers = [self._number(index) for index in self._get(f"{self.alias}-*")]
        return max([last, *(number for number in numbers if number)]) + 1

    def of_number(self, number: int) -> str:
        """What the version with a number is called."""
        return f"{self.alias}-{number:06d}"

    def lock_of(self, index: str) -> str:
        """The token of the lock under which a version is built; empty when there is no such version of ours."""
        described = self._get(index).get(index)
        version = self.version(index, described) if described else None
        return version.lock if version else ""

    def swap(self, index: str, replaced: str | None) -> None:
        """Let a version that was built serve, in place of another one or of none, in one request.

        The request may be repeated after a lost answer: then it is refused, and what counts is which version serves.

        Raises:
            EngineError: nothing was changed; another version may serve by now.
        """
        actions: list[dict[str, Any]] = [
            # That no two versions can be write indexes of one alias is what keeps a first build from joining another.
            {"add": {"index": index, "alias": self.alias, "is_write_index": True}},
            {"remove": {"index": index, "alias": building_alias(index), "must_exist": True}},
        ]
        if replaced is not None:
            actions.append({"remove": {"index": replaced, "alias": self.alias, "must_exist": True}})
        try:
            self._update(f"let {index} serve as {self.alias}", actions)
        except EngineError:
            after = self.serving()
            if after is None or after.info.version != index:
                raise

    def keep_only(self, kept: str, others: list[str]) -> None:
        """Let one of the versions behind the alias go on serving, and the others no more, in one request.

        Raises:
            EngineError: nothing was changed.
        """
        self._update(
            f"let {kept} alone serve as {self.alias}",
            [
                *({"remove": {"index": one, "alias": self.alias, "must_exist": True}} for one in others),
                {"add": {"index": kept, "alias": self.alias, "is_write_index": True}},
            ],
        )

    def remove_leftovers(self, but: str | None = None) -> list[str]:
        """Delete the versions that builders before have left, and return their names; the lock must be held.

        One of them can be kept.

        Raises:
            EngineRefused: an earlier searchapp on this machine is building this index right now.
        """
        removed = []
        for version in self.all():
            if version.serves or version.info.version == but:
                continue
            if version.may_be_at_work():
                if version.builder.is_here():
                    raise EngineRefused(
                        f"{version.builder} is building {version.info.version} at this moment: "
                        "wait until it is done"
                    )
                continue
            if self.remove_unserved(version.info.version):
                removed.append(version.info.version)
        return removed

    def remove_unserved(self, index: str) -> bool:
        """Delete a version unless it serves; its builder can then no longer let it serve.

        Its building alias goes first: without it the swap is refused, so that a version that serves by now is seen,
        and one that does not never will.
        """
        aside = [{"remove": {"index": index, "alias": building_alias(index), "must_exist": True}}]
        with suppress(EngineRefused):  # it has none, which is as good
            self._update(f"put {index} aside", aside)
        described = self._get(index).get(index)
        if described is None or self.alias in described["aliases"]:
            return False
        if building_alias(index) in described["aliases"]:
            raise EngineRefused(
                f"{self._connection.url} could not put {index} aside, which was not completed: "
                "remove it yourself"
            )
        self.delete(index)
        return True

    def require_nobody_builds(self) -> None:
        """Make sure that no earlier searchapp, which knew no locks, is building this index.

        Raises:
            EngineRefused: one is, or may be, on another machine.
        """
        for version in self.all():
            if version.may_be_at_work():
                raise EngineRefused(
                    f"{version.builder} is building {version.info.version} at this moment: wait until it is done"
                )

    def delete(self, index: str) -> None:
        """Delete a version; one that is already gone is no error."""
        client = self._client.options(ignore_status=404)
        self._connection.call(f"delete the index {index}", lambda: client.indices.delete(index=index))

    def meta(self, spec: IndexSpec, lock: str) -> dict[str, Any]:
        """What goes into `_meta.searchapp` of a version that this process builds."""
        builder = asdict(Builder.this_process())
        del builder["booted"]  # an earlier searchapp would not know the version for its own
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
            "builder": builder,
            "lock": lock,
        }

    def _update(self, what: str, actions: list[dict[str, Any]]) -> None:
        self._connection.call(what, lambda: self._client.indices.update_aliases(actions=actions))

    def _get(self, pattern: str) -> Mapping[str, Any]:
        return look_up(self._connection, pattern)

    def _number(self, index: str) -> int | None:
        return _number(index, self.alias)

    def version(self, index: str, described: Mapping[str, Any]) -> Version | None:
        """The record of an index, None when searchapp has not made it for this alias."""
        meta = meta_of(described)
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
        properties = described["mappings"].get("properties", {})
        return Version(
            info,
            self.alias in aliases,
            building_alias(index) not in aliases,
            builder,
            meta.get("lock", ""),
            number_fields(properties),
            sorts_by_id(properties),
        )


def look_up(connection: Connection, pattern: str) -> Mapping[str, Any]:
    """Aliases and mappings of the indexes that a pattern fits."""
    client = connection.client.options(ignore_status=404)
    answer = connection.call(
        f"look up {pattern}", lambda: client.indices.get(index=pattern, features=["aliases", "mappings"])
    )
    return {} if answer.meta.status == 404 else answer.body


def meta_of(described: Mapping[str, Any]) -> Mapping[str, Any]:
    """What searchapp has written into the mapping of an index when it made it; nothing in that of others."""
    meta = described["mappings"].get("_meta", {}).get("searchapp", {})
    return meta if isinstance(meta, Mapping) else {}


def _number(index: str, alias: str) -> int | None:
    match = re.fullmatch(re.escape(alias) + r"-(\d{6,})", index)
    return int(match[1]) if match else None
