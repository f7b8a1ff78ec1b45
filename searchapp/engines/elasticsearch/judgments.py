"""The indexes of a team's judgments on a shared cluster: an `EventIndex`, and beside it the details of the events.

`<prefix>-judgments` is an alias of an index with one shard, and so is `<prefix>-judgments-details`. A record, an event
or a detail, is written once, by `create` under its own id, and never changed. All writes up to the shard's global
checkpoint are on every copy of the shard, so that a reader who stops there misses no record of a concurrent writer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic

import tenacity
from elastic_transport import TransportError
from elasticsearch import ApiError
from elasticsearch.helpers import streaming_bulk

from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch.connection import (
    FIRST_WAIT_SECONDS,
    LONGEST_WAIT_SECONDS,
    RETRIED_STATUS,
    Connection,
    forbidden,
    is_forbidden,
    reason,
)
from searchapp.errors import DataError, EngineRefused, EngineUnreachable
from searchapp.judging import team
from searchapp.judging.events import Detail, Event
from searchapp.judging.team import IndexState, R, RecordPage
from searchapp.lucene.dataclass import dataclass

BATCH_BYTES = 5 * 1024 * 1024
READY_SECONDS = 5.0
LONGEST_ID_BYTES = 512  # limit of Elasticsearch

_KEYWORD = {"type": "keyword", "ignore_above": 8191}  # longer values are stored but not indexed
_WORDS = {"type": "keyword", "index": False, "doc_values": False}
_NUMBER = {"type": "long"}


@dataclass(frozen=True, slots=True)
class _Holding(Generic[R]):
    """What an index stores."""

    # In the metadata of the index, like `format`.
    name: str
    format: int
    fields: Mapping[str, Mapping[str, Any]]
    # Reads a document.
    read: Callable[[Mapping[str, Any]], R]
    # One document, in messages.
    record: str


_EVENT_FIELDS: dict[str, dict[str, Any]] = {
    # Times are keywords: Elasticsearch's dates reject some ISO 8601 forms and years.
    **dict.fromkeys(
        ("id", "time", "annotator", "kind", "channel", "task", "topic_id", "document_id"), _KEYWORD
    ),
    "action": _KEYWORD,
    "grade": _NUMBER,
    "text": _WORDS,
    "run": _KEYWORD,
    "rank": _NUMBER,
    "refers": _KEYWORD,
    "saw_others": {"type": "boolean"},
}
_EVENTS = _Holding("judgments", 2, _EVENT_FIELDS, Event.from_json, "judgment")
_DETAILS = _Holding(
    "judgment details",
    1,
    {"event": _KEYWORD, "name": _KEYWORD, "value": {"type": "object", "enabled": False}},
    Detail.from_json,
    "detail of a judgment",
)


def address_of(settings: Settings) -> str:
    """Return the name of the index of these settings, for messages and the log."""
    return f"{settings.address}/{_alias_of(settings)}"


def _alias_of(settings: Settings) -> str:
    return f"{settings.index_prefix}-judgments"


class _SharedRecords(Generic[R]):
    """The records of all users of the same cluster and alias."""

    def __init__(self, connection: Connection, server: str, alias: str, holding: _Holding[R]) -> None:
        self._connection = connection
        self._client = connection.client
        self._alias = alias
        self._holding: _Holding[R] = holding
        self._name = f"{alias}-000001"
        self.address = f"{server}/{alias}"
        self._checked = ""

    def state(self) -> IndexState:
        """Return the state of the index; create it if it is missing.

        Raises:
            EngineUnreachable: the server does not respond.
            EngineRefused: another program made the index or alias, or it has another format.
        """
        state = self._primary()
        if state is None or state.identity != self._checked:
            self._make_or_check()
            # A new index, or a node that has just started, may not be ready yet.
            ready = tenacity.Retrying(
                stop=tenacity.stop_after_delay(READY_SECONDS),
                wait=tenacity.wait_fixed(FIRST_WAIT_SECONDS),
                retry=tenacity.retry_if_result(lambda state: state is None),
                retry_error_callback=lambda _: None,
            )
            state = ready(self._primary)
        if state is None:
            raise EngineUnreachable(
                f"{self.address} has no active shard: check the server's health and try again"
            )
        self._checked = state.identity
        return state

    def _make_or_check(self) -> None:
        if (described := self._described()) is None:
            self._create()
            described = self._described()
        if described is None:
            raise EngineRefused(
                f"{self._connection.url} has the index {self._name}, but no alias {self._alias} for "
                "it: add the alias, or remove the index"
            )
        self._check(described)

    def _primary(self) -> IndexState | None:
        stats = self._connection.look_up(
            f"look up {self._alias}",
            lambda client: client.indices.stats(index=self._alias, metric="docs", level="shards"),
        )
        indexes = list(stats["indices"].values()) if stats else []
        for index in indexes if len(indexes) == 1 else ():
            for copy in index["shards"].get("0", ()):
                if copy["routing"]["primary"] and copy.get("seq_no") and copy.get("commit"):
                    # The history changes when the shard was restored from a snapshot or lost data.
                    history = copy["commit"]["user_data"]["history_uuid"]
                    return IndexState(f"{index['uuid']}/{history}", copy["seq_no"]["global_checkpoint"])
        return None

    def send(self, records: Sequence[R]) -> tuple[int, tuple[str, ...]]:
        by_id_ = {_document_id(record): record for record in records}
        new = 0
        existing: list[str] = []
        connection = self._connection
        # Try each address at least once.
        retries = max((connection.attempts or 1) - 1, self._client.transport.max_retries)
        patient = self._client.options(max_retries=retries, retry_on_timeout=True, retry_on_status=())
        outcomes = streaming_bulk(
            patient,
            (
                {"_op_type": "create", "_id": id_, "_source": record.to_json()}
                for id_, record in by_id_.items()
            ),
            index=self._alias,
            require_alias=True,  # otherwise a write would recreate a deleted index without its mapping
            chunk_size=team.EVENTS_AT_ONCE,
            max_chunk_bytes=BATCH_BYTES,
            raise_on_error=False,
            retry_on_status=RETRIED_STATUS,
            max_retries=(connection.attempts or 1) - 1,
            initial_backoff=FIRST_WAIT_SECONDS,
            max_backoff=LONGEST_WAIT_SECONDS,
        )
        try:
            for ok, outcome in outcomes:
                if ok:
                    new += 1
                    continue
                result = outcome["create"]
                if is_forbidden(result.get("error")):
                    detail = reason(result["error"])
                    raise forbidden(self._connection.url, f"send judgments to {self._alias}", detail)
                if result["status"] != 409:
                    why = reason(result.get("error"))
                    raise EngineRefused(
                        f"{self.address} rejected the {self._holding.record} {result['_id']} ({why}): it "
                        "stays on this machine and is sent again later"
                    )
                existing.append(result["_id"])
        except (ApiError, TransportError) as error:
            raise connection.translate(f"send judgments to {self._alias}", error) from error
        return new, self._different(existing, by_id_)

    def fetch(self, after: int, up_to: int) -> RecordPage[R]:
        # A search finds the events below the checkpoint only after a refresh.
        refreshed = self._connection.call(
            f"refresh {self._alias}", lambda client: client.indices.refresh(index=self._alias)
        )
        if refreshed["_shards"]["failed"]:
            raise EngineRefused(
                f"{self.address} could not be refreshed: check the server's health and try again"
            )
        answer = self._connection.call(
            "fetch judgments",
            lambda client: client.search(
                index=self._alias,
                query={"range": {"_seq_no": {"gt": after, "lte": up_to}}},
                sort=[{"_seq_no": "asc"}],
                size=team.EVENTS_AT_ONCE,
                track_total_hits=False,
                allow_partial_search_results=False,
            ),
        )
        hits = answer["hits"]["hits"]
        records = [self._record(hit) for hit in hits]
        return RecordPage(
            tuple(record for record in records if not isinstance(record, str)),
            hits[-1]["sort"][0] if hits else None,
            tuple(problem for problem in records if isinstance(problem, str)),
        )

    def _record(self, hit: Mapping[str, Any]) -> R | str:
        """Return the record of a document, or a sentence that describes why it is invalid."""
        try:
            record: R = self._holding.read(hit["_source"])
            return record
        except DataError as error:
            return f"{self.address} has a document {hit['_id']} that is not a {self._holding.record}: {error}"

    def _different(self, ids: Sequence[str], by_id: Mapping[str, R]) -> tuple[str, ...]:
        if not ids:
            return ()
        answer = self._connection.call(
            "look up judgments", lambda client: client.mget(index=self._alias, ids=list(ids))
        )
        documents = {document["_id"]: document for document in answer["docs"] if document.get("found")}
        if len(documents) < len(ids):
            raise EngineRefused(
                f"{self.address} is losing judgments while others are sent: check whether another "
                "program deletes them"
            )
        return tuple(by_id[id_].id for id_ in ids if self._record(documents[id_]) != by_id[id_])

    # The index

    def exists(self) -> bool:
        return self._described() is not None

    def _described(self) -> Any:
        return self._connection.look_up(
            f"look up {self._alias}", lambda client: client.indices.get(index=self._alias)
        )

    def _create(self) -> None:
        self._connection.create_index(
            f"create the index {self._name}",
            self._name,
            settings=self._connection.server.supported_settings(
                {"number_of_shards": 1, "auto_expand_replicas": "0-1"}
            ),
            mappings={
                "dynamic": "strict",
                "_meta": {"searchapp": {"holds": self._holding.name, "format": self._holding.format}},
                "properties": self._holding.fields,
            },
            aliases={self._alias: {}},
        )

    def _check(self, described: Mapping[str, Any]) -> None:
        (name, index), *other_indexes = described.items()
        meta = index["mappings"].get("_meta", {}).get("searchapp", {})
        if (
            other_indexes
            or name == self._alias
            or meta.get("holds") != self._holding.name
            or index["settings"]["index"]["number_of_shards"] != "1"
        ):
            raise EngineRefused(
                f"{self._connection.url} has an index or alias {self._alias} that searchapp did not create: "
                "choose another prefix with SEARCHAPP_INDEX_PREFIX, or remove it yourself"
            )
        made_as = meta.get("format")
        expected = self._holding.format
        if isinstance(made_as, int) and made_as > expected:
            raise EngineRefused(
                f"{self.address} was created by a newer version of searchapp: update searchapp"
            )
        if made_as != expected:
            raise EngineRefused(
                f"{self.address} has the format {made_as}, this searchapp reads {expected}: remove the "
                f"index {name}, and create it again from the logs with `searchapp judgments sync`, "
                "once on each machine"
            )


class JudgmentIndex(_SharedRecords[Event]):
    """The judgments of all users of the same cluster and prefix; `details` are those of the judgments."""

    def __init__(self, connection: Connection, settings: Settings) -> None:
        alias = _alias_of(settings)
        super().__init__(connection, settings.address, alias, _EVENTS)
        self.details = _SharedRecords(connection, settings.address, f"{alias}-details", _DETAILS)

    @classmethod
    def connect(cls, settings: Settings, attempts: int, timeout: float) -> JudgmentIndex:
        """Connect; send every request up to `attempts` times, with `timeout` seconds each.

        Raises:
            EngineUnreachable: the server does not respond, or TLS failed.
            EngineRefused: wrong credentials, or the server is not supported.
        """
        connection = Connection.open(settings, attempts, timeout)
        if connection.server.is_serverless:
            connection.close()
            raise EngineRefused(
                f"{connection.url} is a serverless project, which does not report which judgments are "
                "stored safely: share judgments through a server or cluster, or with `searchapp judgments export`"
            )
        return cls(connection, settings)

    def has_details(self) -> bool:
        return self.details.exists()

    def close(self) -> None:
        self._connection.close()

    def _create(self) -> None:
        super()._create()
        # Only the first user of a team needs the privilege to create indexes.
        self.details.state()


def _document_id(record: Event | Detail) -> str:
    encoded = record.id.encode("utf-8", "surrogatepass")
    return record.id if len(encoded) <= LONGEST_ID_BYTES else f"sha256:{hashlib.sha256(encoded).hexdigest()}"
