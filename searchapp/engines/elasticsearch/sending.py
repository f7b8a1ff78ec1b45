"""Sends documents to a version that is being built, each of them once however often an answer is lost."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from elasticsearch.helpers import streaming_bulk

from searchapp.engines.elasticsearch.connection import SERVER_WAITS, Connection
from searchapp.engines.elasticsearch.copies import Watch
from searchapp.engines.elasticsearch.failures import NotYet, may_pass, reason
from searchapp.errors import EngineError, EngineRefused
from searchapp.model import Document
from searchapp.progress import Advance

BATCH_DOCUMENTS = 1000
BATCH_BYTES = 5 * 1024 * 1024

ALREADY_THERE = 409


def send(
    connection: Connection, alias: str, documents: Iterable[Document], watch: Watch, advance: Advance
) -> None:
    """Write documents through an alias, each by `create` under its own id.

    A request whose answer is lost is sent again, and finds its documents there (409): written again they would leave
    deleted copies, which count in the scores. Nobody else writes through the alias, so that what is there is the
    same.

    Raises:
        LostShard: a shard is on a node that is gone.
        EngineError: a document is refused, or the server stays too busy or away.
    """
    waiting = iter(documents)
    while batch := list(itertools.islice(waiting, BATCH_DOCUMENTS)):
        _send(connection, alias, batch, watch)
        advance(len(batch))


def _send(connection: Connection, alias: str, batch: list[Document], watch: Watch) -> None:
    left = batch

    def send_the_rest() -> None:
        nonlocal left
        sending, left, refused = left, [], None
        done = 0
        try:
            for document, result in zip(sending, _results(connection, alias, sending), strict=False):
                done += 1
                if result["status"] == ALREADY_THERE or not result.get("error"):
                    continue
                refused = _refused(connection, result)
                if not may_pass(result["status"], result["error"]):
                    raise refused
                left.append(document)
        finally:
            left += sending[done:]
        if refused is not None:
            raise NotYet(refused)

    watch.call("send documents; the index before it still serves", send_the_rest)


def _results(connection: Connection, alias: str, documents: list[Document]) -> Iterator[dict[str, Any]]:
    """What the server says of each document, in their order; a request that fails ends with its error."""
    outcomes = streaming_bulk(
        connection.client,
        ({"_op_type": "create", "_id": one.id, "_source": one.source()} for one in documents),
        index=alias,
        require_alias=True,  # a version that was deleted is not made again by the next write
        chunk_size=BATCH_DOCUMENTS,
        max_chunk_bytes=BATCH_BYTES,
        raise_on_error=False,
        max_retries=0,  # the helper would count attempts, however long each takes
        timeout=SERVER_WAITS,
    )
    for _ok, outcome in outcomes:
        yield outcome["create"]


def _refused(connection: Connection, result: dict[str, Any]) -> EngineError:
    detail = reason(result["error"])
    if may_pass(result["status"], result["error"]):
        return EngineRefused(
            f"{connection.url} is too busy to index the document {result['_id']}, "
            f"even after {connection.patience:.0f} s ({detail}): try again when it has less to do"
        )
    return EngineRefused(
        f"{connection.url} refused the document {result['_id']}: {detail}; nothing was changed"
    )
