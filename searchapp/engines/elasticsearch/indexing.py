"""Builds a new version of an index beside the old one, and swaps the alias to it.

Each document is indexed exactly once, even if responses are lost.
"""

from __future__ import annotations

import copy
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, TypeVar

from elasticsearch import ApiError, Elasticsearch

from searchapp.engines.base import IndexSpec, TranslatedErrors
from searchapp.engines.elasticsearch.analysis import analysis_for
from searchapp.engines.elasticsearch.client import Server
from searchapp.engines.elasticsearch.connection import (
    SERVER_WAITS,
    Connection,
    NotYet,
    forbidden,
    is_block,
    is_forbidden,
    is_of_client,
    may_pass,
    read_only,
    reason,
)
from searchapp.engines.elasticsearch.locks import Lock, Locks
from searchapp.engines.elasticsearch.shards import (
    LOST_SECONDS,
    ShardMonitor,
    UnusableVersion,
    await_copies,
    await_replicas,
    copies,
    count_documents,
    node_versions,
    replicas_settings,
    require_all_shards,
    shards_text,
)
from searchapp.engines.elasticsearch.versions import IndexVersion, IndexVersions, building_alias, flaw
from searchapp.errors import EngineBusy, EngineError, EngineRefused, EngineUnreachable
from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.index.index_settings import canonical, mapped_fields
from searchapp.lucene.index.mapping import DENSE_VECTOR
from searchapp.model import Document, IndexInfo
from searchapp.progress import Advance
from searchapp.text import counted

LEAVING_SECONDS = 1.0  # time to join an obsolete thread; a thread that waits for a server ends later

T = TypeVar("T")


class Senders(Generic[T]):
    """Calls `send` with each batch in `threads` threads; the queue holds as many batches again.

    After a failure no further batch begins, and `stopped` signals running calls to give up.
    """

    def __init__(self, send: Callable[[T], None], threads: int) -> None:
        self._send = send
        self._limit = threads
        self._threads: list[threading.Thread] = []
        self._waiting: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[T, BaseException | None]] = queue.SimpleQueue()
        self._stop = threading.Event()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def send_all(self, batches: Iterable[T]) -> Iterator[T]:
        """Yield each batch once it is sent, in any order; draw batches as needed.

        Raises:
            BaseException: drawing or sending a batch failed; batches under way may still arrive.
        """
        under_way = 0
        try:
            for batch in batches:
                self._start_thread()
                self._waiting.put(batch)
                under_way += 1
                while under_way == 2 * self._limit or not self._done.empty():
                    yield self._next_done()
                    under_way -= 1
            for _ in range(under_way):
                yield self._next_done()
        finally:
            self._stop.set()
            for _ in self._threads:
                self._waiting.put(None)
            for thread in self._threads:
                thread.join(LEAVING_SECONDS)

    def _start_thread(self) -> None:
        if len(self._threads) < self._limit:
            # The context contains the `Patience` of this thread.
            work = copy_context().run
            thread = threading.Thread(target=work, args=(self._work,), name="sender", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _next_done(self) -> T:
        batch, error = self._done.get()
        if error is not None:
            raise error
        return batch

    def _work(self) -> None:
        while (batch := self._waiting.get()) is not None and not self.stopped:
            try:
                self._send(batch)
            except BaseException as error:
                self._done.put((batch, error))
                return
            self._done.put((batch, None))


BATCH_DOCUMENTS = 1000
BATCH_BYTES = 5 * 1024 * 1024

THREADS = 3  # the number of concurrent requests

ALREADY_THERE = 409
TOO_LARGE = 413


@dataclass(frozen=True, slots=True)
class BulkItem:
    """A document in a bulk request: its id and two lines of JSON."""

    id: str
    action: bytes
    source: bytes


Batch = list[BulkItem]


class _SendingStopped(Exception):
    """Another batch has failed."""


class BulkWriter:
    """Writes and looks up documents of an unfinished version.

    Args:
        alias: the building alias; no other process writes through it.
        monitor: repeats requests while no shard is lost.
        vectors: the fields of vectors.
    """

    def __init__(
        self, connection: Connection, alias: str, monitor: ShardMonitor, vectors: Set[str] = frozenset()
    ) -> None:
        self._connection = connection
        self._alias = alias
        self._monitor = monitor
        self._vectors = vectors
        self._serializer = connection.client.transport.serializers.get_serializer("application/json")

    def send(self, documents: Iterable[Document], advance: Advance, *, resumed: bool = False) -> None:
        """Write each document by `create` under its own id.

        A repeated request finds its documents present (409). Overwriting them would leave deleted copies, which count
        in scores. With `resumed`, look each batch up first, and send only missing documents.

        Raises:
            LostShard: the node of a shard is gone.
            UnusableVersion: with `resumed`, a document has other content.
        """

        def send_batch(batch: Batch) -> None:
            remaining = self._missing(batch) if resumed else batch

            def send_rest(_client: Elasticsearch) -> None:
                nonlocal remaining
                if senders.stopped:
                    raise _SendingStopped
                remaining, error = self._send_once(remaining)
                if remaining:
                    raise NotYet(error or _unanswered(self._connection, remaining[0].id))

            self._monitor.call(f"send documents to {self._alias}", send_rest)

        senders: Senders[Batch] = Senders(send_batch, THREADS)
        for batch in senders.send_all(self._batches(documents)):
            advance(len(batch))

    def compare(self, documents: Iterable[Document]) -> None:
        """Verify that the index contains each document with exactly this content.

        Raises:
            UnusableVersion: a document is missing or differs.
            LostShard: the node of a shard is gone.
        """

        def require_batch(batch: Batch) -> None:
            if missing := self._missing(batch):
                raise UnusableVersion(f"{self._alias} has lost the document {missing[0].id}: index again")

        for _ in Senders(require_batch, THREADS).send_all(self._batches(documents)):
            pass

    def _batches(self, documents: Iterable[Document]) -> Iterator[Batch]:
        batch: Batch = []
        size = 0
        for document in documents:
            action = self._serializer.dumps({"create": {"_id": document.id}})
            item = BulkItem(document.id, action, self._serializer.dumps(document.source()))
            length = len(item.action) + len(item.source)
            if batch and (len(batch) == BATCH_DOCUMENTS or size + length > BATCH_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(item)
            size += length
        if batch:
            yield batch

    def _send_once(self, batch: Batch) -> tuple[Batch, EngineError | None]:
        results = self._results(batch) if batch else []
        again = batch[len(results) :]
        error: EngineError | None = None
        for item, result in zip(batch, results, strict=False):
            if result["status"] == ALREADY_THERE or not result.get("error"):
                continue
            error = _refused(self._connection, item.id, result)
            if not may_pass(result["status"], result["error"]):
                raise error
            again.append(item)
        return again, error

    def _results(self, batch: Batch) -> list[Mapping[str, Any]]:
        lines: list[Any] = [line for item in batch for line in (item.action, item.source)]
        try:
            answer = self._connection.client.bulk(
                index=self._alias,
                operations=lines,
                require_alias=True,  # otherwise a write would recreate a deleted version
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

    def _missing(self, batch: Batch) -> Batch:
        def look_up(client: Elasticsearch) -> list[Mapping[str, Any]]:
            documents: list[Mapping[str, Any]] = client.mget(
                index=self._alias, ids=[item.id for item in batch]
            )["docs"]
            for document in documents:
                if "error" in document:
                    raise NotYet(_unanswered(self._connection, document["_id"]))
            return documents

        missing = []
        documents = self._monitor.call(f"look for documents in {self._alias}", look_up)
        for item, document in zip(batch, documents, strict=True):
            if not document["found"]:
                missing.append(item)
            elif self._compared(document.get("_source")) != self._compared(
                self._serializer.loads(item.source)
            ):
                raise UnusableVersion(
                    f"{self._alias} has the document {item.id} with other content: index again"
                )
        return missing

    def _compared(self, source: Any, prefix: str = "") -> Any:
        """Return a source, or a part of it whose path is `prefix`, without vectors, which 9.2 and later leave out."""
        if isinstance(source, list):
            return [self._compared(part, prefix) for part in source]
        if not isinstance(source, dict) or not self._vectors:
            return source
        return {
            key: self._compared(value, f"{prefix}{key}.")
            for key, value in source.items()
            if prefix + key not in self._vectors
        }


def _refused(connection: Connection, document: str, result: Mapping[str, Any]) -> EngineError:
    error = result["error"]
    detail, action = reason(error), f"index the document {document}"
    if is_forbidden(error):
        return forbidden(connection.url, action, detail)
    if may_pass(result["status"], error):
        return EngineBusy(
            f"{connection.url} is too busy to {action}, "
            f"even after {connection.patience:.0f} s ({detail}): try again later"
        )
    if is_block(error):
        return read_only(connection.url, action, detail)
    return EngineRefused(f"{connection.url} refused the document {document}: {detail}; nothing was changed")


def _too_large(connection: Connection, item: BulkItem) -> EngineError:
    return EngineRefused(
        f"{connection.url}, or a proxy in front of it, rejects the document {item.id} of {len(item.source):,} bytes: "
        "raise the limit (`http.max_content_length` of the server) or shorten the document; nothing was changed"
    )


def _unanswered(connection: Connection, document: str) -> EngineError:
    return EngineRefused(
        f"{connection.url} did not report whether it indexed the document {document}: check its health "
        "and index again"
    )


# Characters. With the default of a million, a longer text would fail every search that matches it.
LONGEST_HIGHLIGHTED = 2**31 - 1

STARTS = 3  # maximum number of attempts when the content of a version is unusable

# Settings during the build.
WITHOUT_REPLICAS = {
    # Added at the end: otherwise each document waits for the slowest replica, or for one on a lost node.
    "number_of_replicas": 0,
    "auto_expand_replicas": False,
}

# Time limit for the allocation of an empty shard: twice the time after which a cluster removes a hanging node.
SHARDS_SECONDS = 90.0


def build(
    connection: Connection,
    versions: IndexVersions,
    locks: Locks,
    spec: IndexSpec,
    documents: Iterable[Document],
    advance: Advance,
) -> IndexInfo:
    """Create, fill and check a version, swap the alias to it atomically, and delete the version it replaces.

    A failed build removes its version. An interrupted one leaves it to the next build, which resumes it for the same
    documents and mapping, and otherwise removes it. If another process builds this index, wait, and reuse its result
    if it is the requested one.

    `documents` are iterated again after the loss of a node, and to compare them with a resumed version. A one-shot
    iterator supports neither.
    """
    previous = versions.serving()  # also rejects another program's alias before the lock is created
    with locks.hold(versions.alias) as lock:
        serving = versions.serving()
        is_new = serving is not None and (previous is None or previous.info.version != serving.info.version)
        if serving is not None and is_new and _is_of(serving, spec) and not flaw(connection, serving):
            return serving.info  # another process has built it meanwhile
        starts = 1 if iter(documents) is documents else STARTS
        unfinished = [version for version in versions.all() if version.building and _is_of(version, spec)]
        begun = unfinished[-1] if unfinished and starts > 1 else None
        versions.remove_leftovers(except_version=begun.info.version if begun else None)
        builder = _Builder(connection, versions, lock, spec)
        try:
            index = builder.complete(documents, advance, starts, begun)
        except (EngineUnreachable, EngineBusy):
            if serving is not None:
                connection.notify(f"{serving.info.version} is still live")
            raise
        return builder.serve(index)


def _is_of(version: IndexVersion, spec: IndexSpec) -> bool:
    info = version.info
    return (info.digest, info.shards, info.owner) == (spec.digest, spec.shards, spec.owner)


@dataclass(frozen=True, slots=True)
class _Builder:
    connection: Connection
    versions: IndexVersions
    lock: Lock
    spec: IndexSpec

    def complete(
        self,
        documents: Iterable[Document],
        advance: Advance,
        starts: int,
        begun: IndexVersion | None = None,
    ) -> str:
        done = 0

        def count(number: int) -> None:
            nonlocal done
            done += number
            advance(number)

        resumed = self._resume(begun) if begun is not None else None
        index = resumed.info.version if resumed is not None else self._create()
        try:
            self._fill(index, documents, count, resumed)
        except UnusableVersion as error:
            self._discard(index)
            if starts == 1:
                raise
            spoilt = error
        except (KeyboardInterrupt, EngineUnreachable, EngineBusy):
            if done:
                self.connection.notify(f"{index} keeps its documents: run the same command to continue")
            else:
                self._discard(index)
            raise
        except BaseException:
            self._discard(index)
            self.lock.require()  # its loss to another builder explains the failure better
            raise
        else:
            return index
        self.connection.notify(f"starting over: {spoilt}")
        advance(-done)
        return self.complete(documents, advance, starts - 1)

    def serve(self, index: str) -> IndexInfo:
        """Make a complete version live, and delete the version it replaces."""
        versions = self.versions
        try:
            self.lock.confirm()
            previous = versions.serving()
            replaced = previous.info.version if previous is not None else None
            versions.swap(index, self.lock.token, replaced)
        except BaseException:
            self._discard(index)
            raise
        if replaced is not None:
            with suppress(EngineError):  # otherwise it remains as a leftover
                versions.remove_unserved(replaced)
        serving = versions.serving()
        if serving is None or serving.info.version != index:
            raise EngineRefused(
                f"{index} was replaced by another version immediately: `searchapp indexes list` shows which version "
                "is live"
            )
        return serving.info

    def _discard(self, index: str) -> None:
        """Delete an unfinished version if the server responds and no other builder has taken it over."""
        versions = IndexVersions(
            self.connection.cleanup_connection(), self.versions.name, self.versions.alias
        )
        with suppress(EngineError):
            self.lock.require_ours()
            versions.remove_unserved(index, self.lock.token)

    def _resume(self, begun: IndexVersion) -> IndexVersion | None:
        connection, spec, versions = self.connection, self.spec, self.versions
        index = begun.info.version
        if not versions.take_over(begun, self.lock.token):
            return None  # it is live, or was removed
        lost = await_copies(connection, index, spec.shards, LOST_SECONDS, lambda now: now.without_primary)
        if lost or copies(connection, index, spec.shards).deleted:
            self._discard(index)
            return None
        self._refresh(index, ShardMonitor(connection, index, spec.shards))
        count = count_documents(connection, index)
        connection.notify(
            f"continuing with {index}, which has {count:,} of {counted(spec.documents, 'document')} already"
        )
        # Read it again: the previous builder may have closed it before it lost the alias.
        return next((version for version in versions.all() if version.info.version == index), None)

    def _body(self) -> dict[str, Any]:
        with TranslatedErrors():
            body: dict[str, Any] = copy.deepcopy(canonical(self.spec.mapping))
        body["mappings"].setdefault("_meta", {})["searchapp"] = self.versions.meta(self.spec)
        server = self.connection.server
        body["settings"] = {
            **body.get("settings", {}),
            "refresh_interval": "-1",  # not searched yet
            **server.supported_settings(
                {
                    "number_of_shards": self.spec.shards,
                    **WITHOUT_REPLICAS,
                    "highlight": {"max_analyzed_offset": LONGEST_HIGHLIGHTED},
                }
            ),
        }
        return body

    def _oldest(self) -> Server:
        """Return the oldest node that may hold a shard; of unknown version if the user lacks access.

        During the upgrade of a cluster, nodes of both versions fill an index.
        """
        server = self.connection.server
        if server.is_serverless or server.may_be_older:
            return server
        try:
            nodes = map(Server, node_versions(self.connection, "ask for the versions of the nodes"))
        except EngineRefused as error:
            if not is_of_client(error):
                raise
            return Server()
        return next((node for node in nodes if node.is_older), server)

    def _create(self) -> str:
        body = self._body()
        if "analysis" in body["settings"]:
            body["settings"]["analysis"] = analysis_for(self._oldest(), body["settings"]["analysis"])
        index = self.versions.new_name()
        self.connection.create_index(
            f"create the index {index} from its mapping",
            index,
            settings=body["settings"],
            mappings=body["mappings"],
            aliases={building_alias(index, self.lock.token): {}},
        )
        return index

    def _fill(
        self, index: str, documents: Iterable[Document], advance: Advance, resumed: IndexVersion | None
    ) -> None:
        """Fill a version, verify that it contains every document once, and add replicas.

        Every change uses the building alias, which a builder that takes the version over removes.
        """
        connection, shards, alias = self.connection, self.spec.shards, building_alias(index, self.lock.token)
        if waiting := await_copies(
            connection, index, shards, SHARDS_SECONDS, lambda now: now.without_primary
        ):
            raise EngineUnreachable(
                f"{shards_text(waiting)} of {index} found no node within {SHARDS_SECONDS:.0f} s: check "
                "the cluster's health and disks, and index again"
            )
        monitor = ShardMonitor(connection, index, shards)
        properties = self.spec.mapping.get("mappings", {}).get("properties", {})
        vectors = frozenset(field.name for field in mapped_fields(properties) if field.type == DENSE_VECTOR)
        writer = BulkWriter(connection, alias, monitor, vectors)
        if resumed is None or not resumed.is_closed:
            writer.send(documents, advance, resumed=resumed is not None)
        else:
            advance(self.spec.documents)
        self.lock.confirm()
        # The server responds after pending writes, so that a late write is either checked below or rejected.
        connection.call(
            f"close {index} to writes", lambda client: client.indices.add_block(index=alias, block="write")
        )
        self._refresh(index, monitor)
        self._check(index, monitor, resumed)
        settings = {
            "index": {
                "refresh_interval": None,
                **connection.server.supported_settings(replicas_settings(self.spec.replicas)),
            }
        }
        connection.call(
            f"finish {index}", lambda client: client.indices.put_settings(index=alias, settings=settings)
        )
        await_replicas(connection, index, shards)
        self._check(index, monitor, resumed)
        if resumed is not None:
            writer.compare(documents)

    def _refresh(self, index: str, monitor: ShardMonitor) -> None:
        alias = building_alias(index, self.lock.token)

        def send(client: Elasticsearch, action: str) -> None:
            answer = getattr(client.indices, action)(index=alias)
            require_all_shards(self.connection, f"{action} {index}", answer.body)

        monitor.call(f"refresh {index}", partial(send, action="refresh"))
        if not self.connection.server.is_serverless:  # which flushes on its own schedule
            monitor.call(f"flush {index}", partial(send, action="flush"))

    def _check(self, index: str, monitor: ShardMonitor, resumed: IndexVersion | None) -> None:
        count = count_documents(self.connection, index, monitor.call)
        if count != self.spec.documents:
            problem = f"{index} has {counted(count, 'document')} instead of {self.spec.documents:,}"
            if resumed is not None:
                raise UnusableVersion(f"{problem}: index again")
            raise EngineRefused(f"{problem}: another program writes to it; index again")
        now = copies(self.connection, index, self.spec.shards)
        if now.deleted:
            # A shard also writes a deleted copy for an operation lost with a node. That copy counts in no score, but
            # looks the same.
            raise UnusableVersion(
                f"{index} has {now.deleted_text}, which would affect its scores: index again"
            )
