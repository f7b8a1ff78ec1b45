"""The engine on an Elasticsearch server or cluster (8.19 and 9.x), through the official client.

    client       client from settings: addresses, TLS, proxies, credentials, versions, request log
    rights       minimal roles, and the privilege whose lack an answer reports
    connection   retries, and translation of failures into errors
    analysis     adaptations for Elasticsearch 8, and the steps of an analyzer
    shards       number and copies of shards, replicas, survey
    searching    a handle on one version: search, highlight, explain, analyze
    foreign      indexes of other programs, which are only read
    versions     names, ownership, soundness, clean-up and repair of versions
    locks        one builder at a time for each index
    indexing     building a version and swapping the alias
    judgments    the index of a team's judgments

All requests raise `EngineError` if the server does not respond, or rejects them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from elasticsearch import ApiError

from searchapp.config.settings import Settings
from searchapp.engines.base import EngineInfo, IndexSpec, Repair, RightsOfUse, StoredVersion, Survey
from searchapp.engines.elasticsearch.client import REQUEST_TIMEOUT_SECONDS
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.engines.elasticsearch.foreign import PointInTimeIndex, foreign_info, open_foreign, read_foreign
from searchapp.engines.elasticsearch.indexing import build
from searchapp.engines.elasticsearch.locks import Locks
from searchapp.engines.elasticsearch.rights import ROLES
from searchapp.engines.elasticsearch.searching import ElasticsearchIndex
from searchapp.engines.elasticsearch.shards import replicate, shards_for, survey
from searchapp.engines.elasticsearch.versions import IndexVersions, all_stored, flaw, repair, require_sound
from searchapp.errors import EngineRefused
from searchapp.model import Document, ForeignIndex, IndexInfo
from searchapp.progress import Advance, Notify, no_notice, no_progress

if TYPE_CHECKING:
    from searchapp.lucene.index.segments import SegmentPlan

__all__ = ["ElasticsearchEngine"]


class ElasticsearchEngine:
    """An `Engine` whose index `name` is the alias `<prefix>-<name>` on a server."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        self.has_shards = not connection.server.is_serverless
        self._connection = connection
        self._prefix = prefix
        self._locks = Locks(connection, prefix)
        self._opened: list[PointInTimeIndex] = []

    @classmethod
    def connect(
        cls,
        settings: Settings,
        notify: Notify = no_notice,
        *,
        attempts: int | None = None,
        timeout: float | None = None,
    ) -> ElasticsearchEngine:
        """Connect, and check that the server is a supported Elasticsearch; see `open_engine`.

        Raises:
            EngineUnreachable: the server does not respond, or TLS failed.
            EngineRefused: wrong credentials, or the server is not supported.
        """
        seconds = REQUEST_TIMEOUT_SECONDS if timeout is None else timeout
        return cls(Connection.open(settings, attempts, seconds, notify=notify), settings.index_prefix)

    def info(self) -> EngineInfo:
        return EngineInfo("elasticsearch", self._connection.server.version, self._connection.url)

    def index_info(self, name: str) -> IndexInfo | None:
        serving = self._versions(name).serving()
        return serving.info if serving else None

    def flaw(self, name: str) -> str:
        serving = self._versions(name).serving()
        return flaw(self._connection, serving) if serving else ""

    def stored(self) -> list[StoredVersion]:
        return all_stored(self._connection, self._locks, self._prefix)

    def compare(self, name: str, mapping: Mapping[str, Any]) -> None:
        """Return None: every version is built from the start."""

    def build(
        self,
        name: str,
        spec: IndexSpec,
        documents: Iterable[Document],
        advance: Advance = no_progress,
        carried: SegmentPlan | None = None,  # noqa: ARG002  # always None, see `compare`
    ) -> IndexInfo:
        return build(self._connection, self._versions(name), self._locks, spec, documents, advance)

    def shards_for(self, documents: int) -> int:
        return shards_for(self._connection, documents)

    def replicate(self, name: str, replicas: int) -> None:
        versions = self._versions(name)
        with self._locks.hold(versions.alias):
            serving = versions.serving()
            if serving is None:
                raise EngineRefused(f"{self._connection.url} has no index {versions.alias} to replicate")
            replicate(self._connection, serving.info, replicas)

    def open(self, name: str) -> ElasticsearchIndex:
        versions = self._versions(name)
        serving = versions.serving()
        if serving is None:
            raise EngineRefused(
                f"{self._connection.url} has no index {versions.alias}: create it with `searchapp index {name}`"
            )
        require_sound(self._connection, serving)
        return ElasticsearchIndex(
            self._connection, serving.info, serving.numbers, sorts_by_id=serving.sorts_by_id
        )

    def remove(self, name: str) -> None:
        versions = self._versions(name)
        versions.with_alias()  # rejects another program's alias
        with self._locks.hold(versions.alias, wait=0):
            for version in versions.all():
                versions.delete(version.info.version)
        if not self.stored():
            self._locks.remove()

    def repair(self, name: str) -> Repair:
        """Make the alias point to one version, and delete unfinished versions."""
        return repair(self._connection, self._locks, self._versions(name))

    def rights(self) -> list[RightsOfUse] | None:
        """Return the privileges that the user lacks for each use; None if the server's security is off."""
        uses = []
        for role in ROLES:
            body = role.body(self._prefix)
            try:
                answer = self._connection.call(
                    "ask for the rights of this user",
                    lambda client, body=body: client.security.has_privileges(  # type: ignore[misc]
                        cluster=body["cluster"], index=body["indices"]
                    ),
                )
            except EngineRefused as error:
                if isinstance(error.__cause__, ApiError) and error.__cause__.status_code in (400, 405):
                    return None
                raise
            missing = [
                f"`{name}` on the cluster" for name, is_there in answer["cluster"].items() if not is_there
            ]
            for entry in body["indices"]:
                (names,) = entry["names"]
                lacking = [
                    f"`{privilege}`"
                    for privilege in entry["privileges"]
                    if not answer["index"][names][privilege]
                ]
                missing += [f"{', '.join(lacking)} on {names}"] if lacking else []
            uses.append(RightsOfUse(role.name, role.use, tuple(missing)))
        return uses

    def survey(self) -> Survey:
        return survey(self._connection, self._prefix)

    def read_foreign(self, index: str) -> dict[str, Any]:
        """Return the mapping and analysis of another program's index, as a create-index body.

        Raises:
            EngineRefused: there is none, or it can't be read.
        """
        return read_foreign(self._connection, index).mapping

    def foreign_info(self, name: str, foreign: ForeignIndex, mapping: Mapping[str, Any]) -> IndexInfo:
        return foreign_info(self._connection, name, foreign, mapping)

    def open_foreign(self, name: str, foreign: ForeignIndex, mapping: Mapping[str, Any]) -> PointInTimeIndex:
        index = open_foreign(self._connection, name, foreign, mapping)
        self._opened.append(index)
        return index

    def close(self) -> None:
        for index in self._opened:
            index.close()
        self._connection.close()

    def _versions(self, name: str) -> IndexVersions:
        return IndexVersions(self._connection, name, f"{self._prefix}-{name}")
