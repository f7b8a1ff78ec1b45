"""Building a new version of an index beside the old one, and letting it serve in one step."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from elastic_transport import TransportError
from elasticsearch import ApiError
from elasticsearch.helpers import streaming_bulk

from searchapp.digests import digest_json
from searchapp.engines.base import IndexInfo, IndexSpec
from searchapp.engines.elasticsearch.connection import (
    ATTEMPTS,
    FIRST_WAIT_SECONDS,
    LONGEST_WAIT_SECONDS,
    RETRIED_STATUS,
    Connection,
    reason,
)
from searchapp.engines.elasticsearch.versions import Versions, building_alias
from searchapp.engines.index_settings import canonical
from searchapp.errors import EngineError, EngineRefused
from searchapp.model import Document
from searchapp.progress import Advance

LONGEST_HIGHLIGHTED = 2**31 - 1
"""In characters: by default a longer text than a million would let every search that finds it fail."""

BATCH_DOCUMENTS = 1000
BATCH_BYTES = 5 * 1024 * 1024


def build(
    connection: Connection,
    versions: Versions,
    spec: IndexSpec,
    documents: Iterable[Document],
    advance: Advance,
) -> IndexInfo:
    """Create, fill and check a version, then swap the alias to it and drop the version it replaces.

    Until the swap, which is one atomic request, searches see the old version only. A build that fails removes
    what it made; one that is killed leaves it for the next to remove.
    """
    versions.serving()  # refuses a name that is not ours before anything is made
    versions.remove_leftovers()
    index = _create(connection, versions, spec)
    try:
        _fill(connection, index, documents, advance)
        _check(connection, index, spec)
        replaced = _swap(connection, versions, index)
    except BaseException:
        # Also after Ctrl-C. A server that is gone can't be tidied: the next run will do it.
        with suppress(EngineError):
            _discard(connection, versions, index)
        raise
    if replaced is not None:
        with suppress(EngineError):  # it serves no more; if it can't be deleted, it is a leftover
            versions.delete(replaced)
    serving = versions.serving()
    assert serving is not None  # we have just swapped it in
    return serving.info


def _create(connection: Connection, versions: Versions, spec: IndexSpec) -> str:
    body: dict[str, Any] = copy.deepcopy(canonical(spec.mapping))
    mapping_digest = digest_json(spec.mapping)
    body["mappings"].setdefault("_meta", {})["searchapp"] = versions.meta(spec, mapping_digest)
    body["settings"] = {
        **body.get("settings", {}),
        "number_of_shards": spec.shards,
        "auto_expand_replicas": "0-1",
        "refresh_interval": "-1",  # nobody searches it yet
        "highlight": {"max_analyzed_offset": LONGEST_HIGHLIGHTED},
    }
    for _ in range(ATTEMPTS):
        index = versions.next_name()
        try:
            connection.call(
                f"create the index {index} from its mapping",
                lambda index=index: connection.client.indices.create(  # type: ignore[misc]
                    index=index,
                    settings=body["settings"],
                    mappings=body["mappings"],
                    aliases={building_alias(index): {}},
                ),
            )
        except EngineRefused as error:
            if not _is_taken(error):
                raise
            continue  # somebody else has begun to build at the same moment, under the same number
        return index
    raise EngineRefused(f"too many builds of {versions.alias} begin at once: index again when they are done")


def _is_taken(error: EngineRefused) -> bool:
    cause = error.__cause__
    return isinstance(cause, ApiError) and "resource_already_exists" in str(cause)


def _fill(connection: Connection, index: str, documents: Iterable[Document], advance: Advance) -> None:
    def actions() -> Iterator[dict[str, Any]]:
        for document in documents:
            yield {"_id": document.id, "_source": document.source()}

    # A lost connection is retried by the client, a rejection, of all documents or of some, by the helper.
    patient = connection.client.options(max_retries=ATTEMPTS - 1, retry_on_timeout=True, retry_on_status=())
    outcomes = streaming_bulk(
        patient,
        actions(),
        index=building_alias(index),
        require_alias=True,
        chunk_size=BATCH_DOCUMENTS,
        max_chunk_bytes=BATCH_BYTES,
        raise_on_error=False,
        retry_on_status=RETRIED_STATUS,
        max_retries=ATTEMPTS - 1,
        initial_backoff=FIRST_WAIT_SECONDS,
        max_backoff=LONGEST_WAIT_SECONDS,
    )
    try:
        for ok, outcome in outcomes:
            if not ok:
                raise _refused_document(connection, outcome["index"])
            advance(1)
    except (ApiError, TransportError) as error:
        raise connection.translated("send documents; what served before still serves", error) from error


def _refused_document(connection: Connection, outcome: dict[str, Any]) -> EngineError:
    detail = reason(outcome.get("error"))
    if outcome.get("status") in RETRIED_STATUS:
        return EngineRefused(
            f"{connection.url} is too busy to index the document {outcome['_id']}, "
            f"even after {ATTEMPTS} attempts ({detail}): try again when it has less to do"
        )
    return EngineRefused(
        f"{connection.url} refused the document {outcome['_id']}: {detail}; nothing was changed"
    )


def _check(connection: Connection, index: str, spec: IndexSpec) -> None:
    """Make the version searchable and make sure that it holds every document, once."""
    client = connection.client
    connection.call(f"refresh {index}", lambda: client.indices.refresh(index=index))
    held = connection.call(f"count {index}", lambda: client.count(index=index))["count"]
    if held != spec.documents:
        raise EngineRefused(
            f"{index} holds {held} documents instead of {spec.documents}: "
            "something else writes to it; index again"
        )
    settings = {"index": {"refresh_interval": None}}
    connection.call(f"finish {index}", lambda: client.indices.put_settings(index=index, settings=settings))


def _swap(connection: Connection, versions: Versions, index: str) -> str | None:
    """Let a version serve; returns the one that served before.

    The actions may be sent twice without harm, so an answer that is lost on the way can be asked for again.
    Whatever the answer is, what counts in the end is which version serves.
    """
    before = versions.serving()
    actions: list[dict[str, Any]] = [
        {"add": {"index": index, "alias": versions.alias}},
        {"remove": {"index": index, "alias": building_alias(index), "must_exist": False}},
    ]
    if before is not None:
        old = before.info.version
        actions.append({"remove": {"index": old, "alias": versions.alias, "must_exist": False}})
    try:
        connection.call(
            f"let {index} serve as {versions.alias}",
            lambda: connection.client.indices.update_aliases(actions=actions),
        )
    except EngineError:
        after = versions.serving()
        if after is None or after.info.version != index:
            raise
    return before.info.version if before is not None else None


def _discard(connection: Connection, versions: Versions, index: str) -> None:
    """Delete a version that was not completed, unless it serves after all or its state can't be learned."""
    patience = Versions(
        Connection(connection.client, connection.url, attempts=1), versions.name, versions.alias
    )
    serving = patience.serving()
    if serving is None or serving.info.version != index:
        patience.delete(index)
