"""The index of a team's judgments on a shared cluster, an `EventIndex`.

`<prefix>-judgments` is an alias of an index with one shard. An event is written once, by `create` under its own id,
and never changed. All writes up to the shard's global checkpoint are on every copy of the shard, so that a reader who
stops there misses no event of a concurrent writer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

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
from searchapp.judging.events import Event
from searchapp.judging.team import EventPage, IndexState

FORMAT = 2
BATCH_BYTES = 5 * 1024 * 1024
READY_SECONDS = 5.0
LONGEST_ID_BYTES = 512  # limit of Elasticsearch

_KEYWORD = {"type": "keyword", "ignore_above": 8191}  # longer values are stored but not indexed
_WORDS = {"type": "keyword", "index": False, "doc_values": False}
_NUMBER = {"type": "long"}
_FIELDS: dict[str, dict[str, Any]] = {
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


def address_of(settings: Settings) -> str:
    """Return the name of the index of these settings, for messages and the log."""
    return f"{settings.address}/{_alias_of(settings)}"


def _alias_of(settings: Settings) -> str:
    return f"{settings.index_prefix}-judgments"


class JudgmentIndex:
    """The judgments of all users of the same cluster and prefix."""

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection = connection
        self._client = connection.client
        self._alias = _alias_of(settings)
        self._name = f"{self._alias}-000001"
        self.address = address_of(settings)
        self._checked = ""

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

    def send(self, events: Sequence[Event]) -> tuple[int, tuple[str, ...]]:
        by_id_ = {_document_id(event): event for event in events}
        new = 0
        existing: list[str] = []
        connection = self._connection
        # Try each address at least once.
        retries = max((connection.attempts or 1) - 1, self._client.transport.max_retries)
        patient = self._client.options(max_retries=retries, retry_on_timeout=True, retry_on_status=())
        outcomes = streaming_bulk(
            patient,
            ({"_op_type": "create", "_id": id_, "_source": event.to_json()} for id_, event in by_id_.items()),
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
                    raise EngineRefused(
                        f"{self.address} rejected the judgment {result['_id']} ({reason(result.get('error'))}): "
                        "it stays on this machine and is sent again later"
                    )
                existing.append(result["_id"])
        except (ApiError, TransportError) as error:
            raise connection.translate(f"send judgments to {self._alias}", error) from error
        return new, self._different(existing, by_id_)

    def fetch(self, after: int, up_to: int) -> EventPage:
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
        events = [self._event(hit) for hit in hits]
        return EventPage(
            tuple(event for event in events if isinstance(event, Event)),
            hits[-1]["sort"][0] if hits else None,
            tuple(problem for problem in events if isinstance(problem, str)),
        )

    def close(self) -> None:
        self._connection.close()

    def _event(self, hit: Mapping[str, Any]) -> Event | str:
        """Return the event of a document, or a sentence that describes why it is invalid."""
        try:
            return Event.from_json(hit["_source"])
        except DataError as error:
            return f"{self.address} has a document {hit['_id']} that is not a judgment: {error}"

    def _different(self, ids: Sequence[str], by_id: Mapping[str, Event]) -> tuple[str, ...]:
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
        return tuple(by_id[id_].id for id_ in ids if self._event(documents[id_]) != by_id[id_])

    # The index

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
                "_meta": {"searchapp": {"holds": "judgments", "format": FORMAT}},
                "properties": _FIELDS,
            },
            aliases={self._alias: {}},
        )

    def _check(self, described: Mapping[str, Any]) -> None:
        (name, index), *other_indexes = described.items()
        meta = index["mappings"].get("_meta", {}).get("searchapp", {})
        if (
            other_indexes
            or name == self._alias
            or meta.get("holds") != "judgments"
            or index["settings"]["index"]["number_of_shards"] != "1"
        ):
            raise EngineRefused(
                f"{self._connection.url} has an index or alias {self._alias} that searchapp did not create: "
                "choose another prefix with SEARCHAPP_INDEX_PREFIX, or remove it yourself"
            )
        made_as = meta.get("format")
        if isinstance(made_as, int) and made_as > FORMAT:
            raise EngineRefused(
                f"{self.address} was created by a newer version of searchapp: update searchapp"
            )
        if made_as != FORMAT:
            raise EngineRefused(
                f"{self.address} has the format {made_as}, this searchapp reads {FORMAT}: remove the "
                f"index {name}, and create it again from the logs with `searchapp judgments sync`, "
                "once on each machine"
            )


def _document_id(event: Event) -> str:
    encoded = event.id.encode("utf-8", "surrogatepass")
    return event.id if len(encoded) <= LONGEST_ID_BYTES else f"sha256:{hashlib.sha256(encoded).hexdigest()}"
