"""Sends documents to a version that is being built, each of them once however often an answer is lost.

Several requests are under way at a time, so that the server's processors work while documents are drawn, and each is
bounded by count and bytes: what is held in memory does not grow with the collection.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from elasticsearch import ApiError

from searchapp.engines.elasticsearch.connection import SERVER_WAITS, Connection
from searchapp.engines.elasticsearch.copies import Watch
from searchapp.engines.elasticsearch.failures import (
    NotYet,
    forbidden,
    is_block,
    is_forbidden,
    may_pass,
    read_only,
    reason,
)
from searchapp.engines.elasticsearch.senders import Senders
from searchapp.errors import EngineBusy, EngineError, EngineRefused
from searchapp.model import Document
from searchapp.progress import Advance

BATCH_DOCUMENTS = 1000
BATCH_BYTES = 5 * 1024 * 1024

THREADS = 3
"""How many requests are under way at a time."""

ALREADY_THERE = 409
TOO_LARGE = 413


@dataclass(frozen=True, slots=True)
class Line:
    """A document as a bulk request has it: its id, and the two lines of JSON."""

    id: str
    action: bytes
    source: bytes


Batch = list[Line]


def send(
    connection: Connection,
    alias: str,
    documents: Iterable[Document],
    watch: Watch,
    advance: Advance,
    *,
    resumed: bool = False,
) -> None:
    """Write documents through an alias, each by `create` under its own id.

    A request whose answer is lost is sent again, and finds its documents there (409): written again they would leave
    deleted copies, which count in the scores. Nobody else writes through the alias, so that what is there is the
    same. With `resumed` it is asked first which documents are there, until none is.

    Raises:
        LostShard: a shard is on a node that is gone.
        EngineError: a document is refused, or the server stays too busy or away.
    """
    sending = _Sending(connection, alias, watch, resumed=resumed)
    for batch in sending.senders.sent(_batches(connection, documents)):
        advance(len(batch))


def _batches(connection: Connection, documents: Iterable[Document]) -> Iterator[Batch]:
    """Documents in groups of at most `BATCH_DOCUMENTS` and, a single larger one apart, `BATCH_BYTES`."""
    batch: Batch = []
    size = 0
    for document in documents:
        line = _line(connection, document)
        length = len(line.action) + len(line.source)
        if batch and (len(batch) == BATCH_DOCUMENTS or size + length > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += length
    if batch:
        yield batch


def _line(connection: Connection, document: Document) -> Line:
    serializer = connection.client.transport.serializers.get_serializer("application/json")
    action = serializer.dumps({"create": {"_id": document.id}})
    return Line(document.id, action, serializer.dumps(document.source()))


class _NoLongerSent(Exception):
    """Another batch has failed: this one is not sent again."""


class _Sending:
    """Sends one batch after the other, each until all of its documents are there."""

    def __init__(self, connection: Connection, alias: str, watch: Watch, *, resumed: bool) -> None:
        self._connection = connection
        self._alias = alias
        self._watch = watch
        self._what = f"send documents to {alias}; the index before it still serves"
        self.senders: Senders[Batch] = Senders(self._send, THREADS)
        # What was under way when a build broke off, and what came before it, may be there; nothing that follows is.
        self._new_to_see = 2 * THREADS + 1 if resumed else 0
        self._new_seen = 0

    def _send(self, batch: Batch) -> None:
        left = self._missing(batch)

        def send_the_rest() -> None:
            nonlocal left
            if self.senders.stopped:
                raise _NoLongerSent
            refused = None
            answered = self._results(left) if left else []
            again = left[len(answered) :]
            for line, result in zip(left, answered, strict=False):
                if result["status"] == ALREADY_THERE or not result.get("error"):
                    continue
                refused = _refused(self._connection, line.id, result)
                if not may_pass(result["status"], result["error"]):
                    raise refused
                again.append(line)
            left = again
            if left:
                raise NotYet(refused or _unanswered(self._connection, left[0].id))

        self._watch.call(self._what, send_the_rest)

    def _missing(self, batch: Batch) -> Batch:
        """The documents of a batch that are not known to be there."""
        if self._new_seen >= self._new_to_see:
            return batch
        answer = self._watch.call(
            f"look for documents in {self._alias}",
            lambda: self._connection.client.mget(
                index=self._alias,
                ids=[line.id for line in batch],
                source=False,
                filter_path=["docs._id", "docs.found"],
            ),
        )
        there = {one["_id"] for one in answer.get("docs", ()) if one.get("found")}
        self._new_seen = 0 if there else self._new_seen + 1
        return [line for line in batch if line.id not in there]

    def _results(self, batch: Batch) -> list[Mapping[str, Any]]:
        """What the server says of each document, in their order; what is too much at once is sent in two halves."""
        lines: list[Any] = [part for line in batch for part in (line.action, line.source)]
        try:
            answer = self._connection.client.bulk(
                index=self._alias,
                operations=lines,
                require_alias=True,  # a version that was deleted is not made again by the next write
                timeout=SERVER_WAITS,
                filter_path=["errors", "items.create.status", "items.create.error"],
            )
        except ApiError as error:
            if error.status_code != TOO_LARGE:
                raise
            if len(batch) == 1:
                raise _too_large(self._connection, batch[0]) from error
            half = len(batch) // 2
            return self._results(batch[:half]) + self._results(batch[half:])
        return [item["create"] for item in answer["items"]]


def _refused(connection: Connection, document: str, result: Mapping[str, Any]) -> EngineError:
    detail = reason(result["error"])
    if is_forbidden(result["error"]):
        return forbidden(connection.url, f"index the document {document}", detail)
    if may_pass(result["status"], result["error"]):
        return EngineBusy(
            f"{connection.url} is too busy to index the document {document}, "
            f"even after {connection.patience:.0f} s ({detail}): try again when it has less to do"
        )
    if is_block(result["error"]):
        return read_only(connection.url, f"index the document {document}", detail)
    return EngineRefused(f"{connection.url} refused the document {document}: {detail}; nothing was changed")


def _too_large(connection: Connection, line: Line) -> EngineError:
    return EngineRefused(
        f"{connection.url}, or a proxy before it, does not take the document {line.id} of {len(line.source):,} bytes: "
        "raise the limit (`http.max_content_length` of the server) or shorten the document; nothing was changed"
    )


def _unanswered(connection: Connection, document: str) -> EngineError:
    return EngineRefused(
        f"{connection.url} does not say what became of the document {document}: look at its health and index again"
    )
