"""Building a new version of an index beside the old one, and letting it serve in one step.

Each document is sent until it is written once, however often an answer is lost. Several requests are under way at a
time, so that the server's processors work while documents are read, and each is bounded by count and bytes: what is
held in memory does not grow with the collection.
"""

from __future__ import annotations

import copy
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from elasticsearch import ApiError

from searchapp.engines.base import IndexSpec
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
    is_there_already,
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
    held_documents,
    named,
    replicas_settings,
    require_all_shards,
)
from searchapp.engines.elasticsearch.versions import IndexVersion, IndexVersions, building_alias, flaw
from searchapp.errors import EngineBusy, EngineError, EngineRefused, EngineUnreachable
from searchapp.lucene.index.index_settings import canonical
from searchapp.model import Document, IndexInfo
from searchapp.progress import Advance
from searchapp.text import counted

LEAVING_SECONDS = 1.0
"""How long a thread that is no longer needed is waited for; one that waits for a server ends by itself."""

T = TypeVar("T")


class Senders(Generic[T]):
    """Calls `send` with each batch, `threads` of them at once, and once more as many may wait for their turn.

    A thread starts when there is something for it to do. As soon as one batch fails no other is begun; `stopped` says
    so to a `send` that repeats its request.
    """

    def __init__(self, send: Callable[[T], None], threads: int) -> None:
        self._send = send
        self._most = threads
        self._threads: list[threading.Thread] = []
        self._waiting: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[tuple[T, BaseException | None]] = queue.SimpleQueue()
        self._stop = threading.Event()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def sent(self, batches: Iterable[T]) -> Iterator[T]:
        """The batches as they are done, in any order; they are drawn as needed.

        Raises:
            BaseException: what drawing a batch or sending one raised; those that are on their way may still arrive.
        """
        under_way = 0
        try:
            for batch in batches:
                self._hand_over(batch)
                under_way += 1
                while under_way == 2 * self._most or not self._ended.empty():
                    yield self._one_done()
                    under_way -= 1
            for _ in range(under_way):
                yield self._one_done()
        finally:
            self._stop.set()
            for _ in self._threads:
                self._waiting.put(None)
            for thread in self._threads:
                thread.join(LEAVING_SECONDS)

    def _hand_over(self, batch: T) -> None:
        if len(self._threads) < self._most:
            # Who waits for an engine's answer (`engines.waiting`) is known to each thread that asks.
            thread = threading.Thread(
                target=copy_context().run, args=(self._work,), name="sender", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        self._waiting.put(batch)

    def _one_done(self) -> T:
        batch, error = self._ended.get()
        if error is not None:
            raise error
        return batch

    def _work(self) -> None:
        while (batch := self._waiting.get()) is not None and not self.stopped:
            try:
                self._send(batch)
            except BaseException as error:
                self._ended.put((batch, error))
                return
            self._ended.put((batch, None))


BATCH_DOCUMENTS = 1000
BATCH_BYTES = 5 * 1024 * 1024

THREADS = 3
"""How many requests are under way at a time."""

ALREADY_THERE = 409
TOO_LARGE = 413


@dataclass(frozen=True, slots=True)
class BulkItem:
    """A document as a bulk request has it: its id, and the two lines of JSON."""

    id: str
    action: bytes
    source: bytes


Batch = list[BulkItem]


def send(
    connection: Connection,
    alias: str,
    documents: Iterable[Document],
    watch: ShardMonitor,
    advance: Advance,
    *,
    resumed: bool = False,
) -> None:
    """Write documents through an alias, each by `create` under its own id.

    A request whose answer is lost is sent again, and finds its documents there (409): written again they would leave
    deleted copies, which count in the scores. Nobody else writes through the alias. With `resumed` each batch is looked
    up first, and only the documents are sent that are not there.

    Raises:
        LostShard: a shard is on a node that is gone.
        Spoilt: with `resumed`, a document is there with another content.
        EngineError: a document is refused, or the server stays too busy or away.
    """
    sending = _Sending(connection, alias, watch, resumed=resumed)
    for batch in sending.senders.sent(_batches(connection, documents)):
        advance(len(batch))


def compare(connection: Connection, alias: str, documents: Iterable[Document], watch: ShardMonitor) -> None:
    """Make sure that each document is there with exactly this content.

    Raises:
        Spoilt: one is not.
        LostShard: a shard is on a node that is gone.
        EngineError: the server stays too busy or away.
    """

    def require_all(batch: Batch) -> None:
        if missing := _missing(connection, alias, batch, watch):
            raise UnusableVersion(f"{alias} lacks the document {missing[0].id}: index again")

    for _ in Senders(require_all, THREADS).sent(_batches(connection, documents)):
        pass


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


def _line(connection: Connection, document: Document) -> BulkItem:
    serializer = connection.client.transport.serializers.get_serializer("application/json")
    action = serializer.dumps({"create": {"_id": document.id}})
    return BulkItem(document.id, action, serializer.dumps(document.source()))


class _NoLongerSent(Exception):
    """Another batch has failed: this one is not sent again."""


class _Sending:
    """Sends one batch after the other, each until all of its documents are there."""

    def __init__(self, connection: Connection, alias: str, watch: ShardMonitor, *, resumed: bool) -> None:
        self._connection = connection
        self._alias = alias
        self._watch = watch
        self._resumed = resumed
        self.senders: Senders[Batch] = Senders(self._send, THREADS)

    def _send(self, batch: Batch) -> None:
        left = _missing(self._connection, self._alias, batch, self._watch) if self._resumed else batch

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

        self._watch.call(f"send documents to {self._alias}", send_the_rest)

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


def _missing(connection: Connection, alias: str, batch: Batch, watch: ShardMonitor) -> Batch:
    """The documents of a batch that are not there.

    Raises:
        Spoilt: one is there with another content.
    """

    def look_up() -> list[Mapping[str, Any]]:
        answer = connection.client.mget(index=alias, ids=[line.id for line in batch])
        found: list[Mapping[str, Any]] = answer["docs"]
        for one in found:
            if "error" in one:
                raise NotYet(_unanswered(connection, one["_id"]))
        return found

    serializer = connection.client.transport.serializers.get_serializer("application/json")
    answered = watch.call(f"look for documents in {alias}", look_up)
    for line, one in zip(batch, answered, strict=True):
        if one["found"] and one.get("_source") != serializer.loads(line.source):
            raise UnusableVersion(f"{alias} holds the document {line.id} with another content: index again")
    return [line for line, one in zip(batch, answered, strict=True) if not one["found"]]


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


def _too_large(connection: Connection, line: BulkItem) -> EngineError:
    return EngineRefused(
        f"{connection.url}, or a proxy before it, does not take the document {line.id} of {len(line.source):,} bytes: "
        "raise the limit (`http.max_content_length` of the server) or shorten the document; nothing was changed"
    )


def _unanswered(connection: Connection, document: str) -> EngineError:
    return EngineRefused(
        f"{connection.url} does not say what became of the document {document}: look at its health and index again"
    )


LONGEST_HIGHLIGHTED = 2**31 - 1
"""In characters: by default a longer text than a million would let every search that finds it fail."""

STARTS = 3
"""How often at most a version is begun because what the one before held could not be used."""

WITHOUT_REPLICAS = {
    # Replicas come when it is complete: each document would wait for the slowest of them, or for one that is on a node
    # that has just gone.
    "number_of_replicas": 0,
    "auto_expand_replicas": False,
}
"""Settings of a version that is being filled, where there are replicas."""

SHARDS_SECONDS = 90.0
"""How long an empty shard may take to find a node: twice what a node that hangs takes to be put out of its cluster."""


def build(
    connection: Connection,
    versions: IndexVersions,
    locks: Locks,
    spec: IndexSpec,
    documents: Iterable[Document],
    advance: Advance,
) -> IndexInfo:
    """Create, fill and check a version, then swap the alias to it and drop the version it replaces.

    Until the swap, which is one atomic request, searches see the old version only. A build that fails removes
    what it made. One that is interrupted or killed, or whose server goes away, leaves it: the next build goes on with
    it if it is of the same documents and mapping, else removes it. Another process that builds this index is waited
    for; if what it built is what is asked for here, that serves and nothing is built.

    `documents` are drawn again when a node is lost that held a part of them, and to compare what was begun by another
    builder. An iterator can't be drawn again: then the build ends with an error, and nothing is gone on with.
    """
    known = versions.serving()  # also refuses a name that is not ours before anything is made
    with locks.hold(versions.alias) as lock:
        serving = versions.serving()
        if serving is not None and _made_meanwhile(connection, serving, known, spec):
            return serving.info
        starts = 1 if iter(documents) is documents else STARTS
        begun = _begun(versions, spec) if starts > 1 else None
        versions.remove_leftovers(but=begun.info.version if begun else None)
        builder = _Builder(connection, versions, lock, spec)
        try:
            index = builder.completed(documents, advance, starts, begun)
        except (EngineUnreachable, EngineBusy):
            if serving is not None:
                connection.notify(f"{serving.info.version} still serves")
            raise
        return builder.serve(index)


def _made_meanwhile(
    connection: Connection, serving: IndexVersion, known: IndexVersion | None, spec: IndexSpec
) -> bool:
    """Whether another builder has made what is asked for while this one waited."""
    made = serving.info
    return (
        (known is None or known.info.version != made.version)
        and (made.digest, made.shards, made.owner) == (spec.digest, spec.shards, spec.owner)
        and not flaw(connection, serving)
    )


def _begun(versions: IndexVersions, spec: IndexSpec) -> IndexVersion | None:
    """A version of what is asked for here that another builder has begun and left; the lock must be held."""
    for version in reversed(versions.all()):
        made = version.info
        wanted = (made.digest, made.shards, made.owner) == (spec.digest, spec.shards, spec.owner)
        if wanted and version.building:
            return version
    return None


@dataclass(frozen=True, slots=True)
class _Builder:
    """Who makes a version of an index: with which connection, under which lock, and of what."""

    connection: Connection
    versions: IndexVersions
    lock: Lock
    spec: IndexSpec

    def completed(
        self, documents: Iterable[Document], advance: Advance, starts: int, begun: IndexVersion | None = None
    ) -> str:
        """A version that holds the documents; begun again, `starts` times at most, when what it holds can't be used.

        One that was `begun` before is gone on with, if it is sound.
        """
        done = 0

        def completed(number: int) -> None:
            nonlocal done
            done += number
            advance(number)

        resumed = self._resumed(begun) if begun is not None else None
        index = resumed.info.version if resumed is not None else self._create()
        try:
            self._complete(index, documents, completed, resumed)
        except UnusableVersion as error:
            self._discard(index)
            if starts == 1:
                raise
            spoilt = error
        except (KeyboardInterrupt, EngineUnreachable, EngineBusy):
            if done:
                self.connection.notify(f"{index} keeps what it holds: the same command goes on with it")
            else:
                self._discard(index)
            raise
        except BaseException:
            self._discard(index)
            self.lock.require()  # if it is somebody else's by now, that says more than what came of it
            raise
        else:
            return index
        self.connection.notify(f"starting again: {spoilt}")
        advance(-done)
        return self.completed(documents, advance, starts - 1)

    def serve(self, index: str) -> IndexInfo:
        """Let a complete version serve, and drop the one that it replaces."""
        versions = self.versions
        try:
            self.lock.confirm()
            before = versions.serving()
            replaced = before.info.version if before is not None else None
            versions.swap(index, self.lock.token, replaced)
        except BaseException:
            self._discard(index)
            raise
        if replaced is not None:
            with suppress(EngineError):  # it serves no more; if it can't be deleted, it is a leftover
                versions.remove_unserved(replaced)
        serving = versions.serving()
        if serving is None or serving.info.version != index:
            raise EngineRefused(f"{index} was replaced by another version at once: look at what serves now")
        return serving.info

    def _discard(self, index: str) -> None:
        """Delete a version that was not completed. A server that is gone can't be tidied: the next run will do it.

        A builder that has taken the lock over has taken the version over too, or removed it.
        """
        versions = IndexVersions(self.connection.tidying(), self.versions.name, self.versions.alias)
        with suppress(EngineError):
            self.lock.require_ours()
            versions.remove_unserved(index, self.lock.token)

    def _resumed(self, begun: IndexVersion) -> IndexVersion | None:
        """Take over a version that another builder has begun, as it is then; None, and no version, if it is unsound."""
        connection, spec, versions = self.connection, self.spec, self.versions
        index = begun.info.version
        if not versions.take_over(begun, self.lock.token):
            return None  # it serves by now, or was removed
        lost = await_copies(connection, index, spec.shards, LOST_SECONDS, lambda now: now.without_primary)
        if lost or copies(connection, index, spec.shards).deleted:
            self._discard(index)
            return None
        self._refresh(index, ShardMonitor(connection, index, spec.shards))
        held = connection.call(f"count the documents of {index}", lambda: held_documents(connection, index))
        connection.notify(
            f"going on with {index}, which holds {held:,} of {counted(spec.documents, 'document')} already"
        )
        # The builder before may have closed it between the first look and the loss of its alias.
        return next((one for one in versions.all() if one.info.version == index), None)

    def _body(self) -> dict[str, Any]:
        """The settings and mappings of a version that is to be filled."""
        body: dict[str, Any] = copy.deepcopy(canonical(self.spec.mapping))
        body["mappings"].setdefault("_meta", {})["searchapp"] = self.versions.meta(self.spec)
        server = self.connection.server
        body["settings"] = {
            **body.get("settings", {}),
            "refresh_interval": "-1",  # nobody searches it yet
            **server.allowed(
                {
                    "number_of_shards": self.spec.shards,
                    **WITHOUT_REPLICAS,
                    "highlight": {"max_analyzed_offset": LONGEST_HIGHLIGHTED},
                }
            ),
        }
        return body

    def _oldest(self) -> Server:
        """The oldest node that may hold a shard; of unknown version where the user may not ask for the nodes.

        While a cluster is upgraded a version is filled by nodes of both versions, whichever of them answered first.
        """
        client, server = self.connection.client, self.connection.server
        if server.is_serverless or server.may_be_older:
            return server
        try:
            answer = self.connection.call(
                "ask for the versions of the nodes",
                lambda: client.nodes.info(node_id="_all", metric="_none", filter_path="nodes.*.version"),
            )
        except EngineRefused as error:
            if not is_of_client(error):
                raise
            return Server()
        nodes = [Server(node["version"]) for node in answer.body.get("nodes", {}).values()]
        return next((node for node in nodes if node.is_older), server)

    def _create(self) -> str:
        """A new, empty version, whose shards may have no node yet."""
        client, body = self.connection.client, self._body()
        if "analysis" in body["settings"]:
            body["settings"]["analysis"] = analysis_for(self._oldest(), body["settings"]["analysis"])
        index = self.versions.new_name()
        try:
            self.connection.call(
                f"create the index {index} from its mapping",
                lambda: client.indices.create(
                    index=index,
                    settings=body["settings"],
                    mappings=body["mappings"],
                    aliases={building_alias(index, self.lock.token): {}},
                ),
            )
        except EngineRefused as error:
            if not is_there_already(error):  # else the answer to an earlier attempt was lost
                raise
        return index

    def _complete(
        self, index: str, documents: Iterable[Document], advance: Advance, resumed: IndexVersion | None
    ) -> None:
        """Fill a version, make sure that it holds every document once, and give its shards their replicas.

        Every change is made through the building alias, which a builder that takes the version over removes.
        """
        connection, shards, alias = self.connection, self.spec.shards, building_alias(index, self.lock.token)
        if waiting := await_copies(
            connection, index, shards, SHARDS_SECONDS, lambda now: now.without_primary
        ):
            raise EngineUnreachable(
                f"{named(waiting)} of {index} found no node within {SHARDS_SECONDS:.0f} s: look at the cluster's "
                "health and disks, and index again"
            )
        watch = ShardMonitor(connection, index, shards)
        if resumed is None or not resumed.is_closed:
            send(connection, alias, documents, watch, advance, resumed=resumed is not None)
        else:
            advance(self.spec.documents)
        self.lock.confirm()
        indices = connection.client.indices
        # The server answers when every write that it has begun is done: what is late is in what is checked, or comes
        # too late.
        connection.call(f"close {index} to writes", lambda: indices.add_block(index=alias, block="write"))
        self._refresh(index, watch)
        self._check(index, watch, resumed)
        settings = {
            "index": {
                "refresh_interval": None,
                **connection.server.allowed(replicas_settings(self.spec.replicas)),
            }
        }
        connection.call(f"finish {index}", lambda: indices.put_settings(index=alias, settings=settings))
        await_replicas(connection, index, shards)
        self._check(index, watch, resumed)
        if resumed is not None:
            compare(connection, alias, documents, watch)

    def _refresh(self, index: str, watch: ShardMonitor) -> None:
        """Make what was sent searchable, and written to disk, on every shard."""
        indices, alias = self.connection.client.indices, building_alias(index, self.lock.token)
        acts = [("refresh", indices.refresh)]
        if not self.connection.server.is_serverless:  # which writes to its own store, when it thinks fit
            acts.append(("flush", indices.flush))
        for what, act in acts:
            watch.call(
                f"{what} {index}",
                lambda what=what, act=act: require_all_shards(  # type: ignore[misc]
                    self.connection, f"{what} {index}", act(index=alias).body
                ),
            )

    def _check(self, index: str, watch: ShardMonitor, resumed: IndexVersion | None) -> None:
        """Make sure that a version holds every document, once, on every copy of its shards."""
        held = watch.call(f"count the documents of {index}", lambda: held_documents(self.connection, index))
        if held != self.spec.documents:
            problem = f"{index} holds {counted(held, 'document')} instead of {self.spec.documents:,}"
            if resumed is not None:
                raise UnusableVersion(f"{problem}: index again")
            raise EngineRefused(f"{problem}: something else writes to it; index again")
        now = copies(self.connection, index, self.spec.shards)
        if now.deleted:
            # A shard also writes such a copy in place of an operation that it lost with a node. That one counts in no
            # score, but nothing shows the difference.
            raise UnusableVersion(
                f"{index} holds {now.deleted_copies}, which would count in its scores: index again"
            )
