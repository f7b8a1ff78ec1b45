"""The engine that is an Elasticsearch server or cluster (9.x), through the official client.

    connection   the client, and every way a request can fail turned into one sentence
    versions     names, ownership and clean-up: what `<prefix>-<task>` stands for on the server
    indexing     building a new version beside the old one and swapping the alias
    searching    a handle on one version: search, highlight, explain, analyze
    judgments    the index in which a team keeps its judgments

Nothing outside this package imports the client.
"""

from __future__ import annotations

from collections.abc import Iterable

from searchapp.engines.base import EngineInfo, IndexInfo, IndexSpec, StoredVersion
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.engines.elasticsearch.indexing import build
from searchapp.engines.elasticsearch.searching import ElasticsearchIndex
from searchapp.engines.elasticsearch.versions import Versions, all_stored
from searchapp.errors import EngineRefused
from searchapp.model import Document
from searchapp.progress import Advance, no_progress
from searchapp.settings import Settings

__all__ = ["ElasticsearchEngine"]


class ElasticsearchEngine:
    """An `Engine` whose index `name` is the alias `<prefix>-<name>` on a server."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        self._connection = connection
        self._prefix = prefix

    @classmethod
    def connect(cls, settings: Settings) -> ElasticsearchEngine:
        """Connect and make sure that an Elasticsearch of a fitting version answers.

        Raises:
            EngineUnreachable: no answer, or TLS failed.
            EngineRefused: wrong credentials, no Elasticsearch, or one that is too old.
        """
        return cls(Connection.open(settings), settings.index_prefix)

    def info(self) -> EngineInfo:
        return EngineInfo("elasticsearch", self._connection.server_version, self._connection.url)

    def index_info(self, name: str) -> IndexInfo | None:
        serving = self._versions(name).serving()
        return serving.info if serving else None

    def stored(self) -> list[StoredVersion]:
        return all_stored(self._connection, self._prefix)

    def build(
        self, name: str, spec: IndexSpec, documents: Iterable[Document], advance: Advance = no_progress
    ) -> IndexInfo:
        return build(self._connection, self._versions(name), spec, documents, advance)

    def open(self, name: str) -> ElasticsearchIndex:
        versions = self._versions(name)
        serving = versions.serving()
        if serving is None:
            raise EngineRefused(
                f"{self._connection.url} has no index {versions.alias}: make it with `searchapp index {name}`"
            )
        return ElasticsearchIndex(self._connection, versions, serving.info)

    def remove(self, name: str) -> None:
        versions = self._versions(name)
        versions.serving()  # refuses a name that is not ours
        versions.require_nobody_builds()
        for version in versions.all():
            versions.delete(version.info.version)

    def close(self) -> None:
        self._connection.close()

    def _versions(self, name: str) -> Versions:
        return Versions(self._connection, name, f"{self._prefix}-{name}")
