"""Building a new version of an index beside the old one, and letting it serve in one step."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from searchapp.engines.base import IndexInfo, IndexSpec
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.engines.elasticsearch.copies import (
    LOST_SECONDS,
    LostShard,
    Watch,
    await_copies,
    copies,
    flaw,
    held_documents,
    named,
    require_all_shards,
)
from searchapp.engines.elasticsearch.failures import is_of_client, is_there_already
from searchapp.engines.elasticsearch.locks import Lock, Locks
from searchapp.engines.elasticsearch.older import analysis_for
from searchapp.engines.elasticsearch.sending import send
from searchapp.engines.elasticsearch.servers import Server
from searchapp.engines.elasticsearch.sizing import await_replicas, replicas_settings
from searchapp.engines.elasticsearch.versions import Version, Versions, building_alias
from searchapp.engines.index_settings import canonical
from searchapp.errors import EngineBusy, EngineError, EngineRefused, EngineUnreachable
from searchapp.model import Document
from searchapp.progress import Advance

LONGEST_HIGHLIGHTED = 2**31 - 1
"""In characters: by default a longer text than a million would let every search that finds it fail."""

STARTS = 3
"""How often at most a version is begun because a node that held a part of the one before is gone."""

NUMBERS_TRIED = 6

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
    versions: Versions,
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

    `documents` are drawn again from the start when a node is lost that held a part of them, unless they are an
    iterator, which can't be.
    """
    known = versions.serving()  # also refuses a name that is not ours before anything is made
    with locks.hold(versions.alias) as lock:
        serving = versions.serving()
        if serving is not None and _made_meanwhile(connection, serving, known, spec):
            return serving.info
        begun = _begun(versions, spec)
        versions.remove_leftovers(but=begun)
        builder = _Builder(connection, versions, lock, spec)
        starts = 1 if iter(documents) is documents else STARTS
        index = builder.completed(documents, advance, starts, begun)
        return builder.serve(index)


def _made_meanwhile(connection: Connection, serving: Version, known: Version | None, spec: IndexSpec) -> bool:
    """Whether another builder has made what is asked for while this one waited."""
    made = serving.info
    return (
        (known is None or known.info.version != made.version)
        and (made.digest, made.shards, made.owner) == (spec.digest, spec.shards, spec.owner)
        and not flaw(connection, made)
    )


def _begun(versions: Versions, spec: IndexSpec) -> str | None:
    """A version of what is asked for here that another builder has begun and left; the lock must be held."""
    for version in reversed(versions.all()):
        made = version.info
        wanted = (made.digest, made.shards, made.owner) == (spec.digest, spec.shards, spec.owner)
        if wanted and version.lock and not version.serves and not version.complete:
            return made.version
    return None


@dataclass(frozen=True, slots=True)
class _Builder:
    """Who makes a version of an index: with which connection, under which lock, and of what."""

    connection: Connection
    versions: Versions
    lock: Lock
    spec: IndexSpec

    def completed(
        self, documents: Iterable[Document], advance: Advance, starts: int, begun: str | None = None
    ) -> str:
        """A version that holds the documents; begun again, `starts` times at most, when a node of it is lost.

        One that was `begun` before is gone on with, if it is sound.
        """
        done = 0

        def counted(number: int) -> None:
            nonlocal done
            done += number
            advance(number)

        resumed = begun is not None and self._resume(begun)
        index = begun if begun is not None and resumed else self._create()
        try:
            self._complete(index, documents, counted, resumed=resumed)
        except LostShard:
            self._discard(index)
            if starts == 1:
                raise
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
        self.connection.notify(f"a node that held a part of {index} is gone: starting again on the others")
        advance(-done)
        return self.completed(documents, advance, starts - 1)

    def serve(self, index: str) -> IndexInfo:
        """Let a complete version serve, and drop the one that it replaces."""
        versions = self.versions
        try:
            self.lock.confirm()
            before = versions.serving()
            replaced = before.info.version if before is not None else None
            versions.swap(index, replaced)
        except BaseException:
            self._discard(index)
            raise
        if replaced is not None:
            with suppress(EngineError):  # it serves no more; if it can't be deleted, it is a leftover
                versions.delete(replaced)
        serving = versions.serving()
        if serving is None or serving.info.version != index:
            raise EngineRefused(f"{index} was replaced by another version at once: look at what serves now")
        return serving.info

    def _discard(self, index: str) -> None:
        """Delete a version that was not completed. A server that is gone can't be tidied: the next run will do it.

        Whoever has taken the lock over has taken the version over too, or removed it.
        """
        versions = Versions(self.connection.tidying(), self.versions.name, self.versions.alias)
        with suppress(EngineError):
            self.lock.require_ours()
            versions.remove_unserved(index)

    def _resume(self, index: str) -> bool:
        """Take over a version that another builder has begun; False, and without the version, if it is not sound."""
        connection, spec = self.connection, self.spec
        lost = await_copies(connection, index, spec.shards, LOST_SECONDS, lambda now: now.without_primary)
        if lost or copies(connection, index, spec.shards).deleted:
            self._discard(index)
            return False
        client = connection.client
        meta = self._body()["mappings"]["_meta"]
        # It may have been closed to writes already, and have got its replicas.
        allowed = connection.server.allowed(WITHOUT_REPLICAS)
        settings = {"index": {"refresh_interval": "-1", "blocks.write": None, **allowed}}
        connection.call(
            f"go on with {index}", lambda: client.indices.put_settings(index=index, settings=settings)
        )
        connection.call(f"go on with {index}", lambda: client.indices.put_mapping(index=index, meta=meta))
        self._refresh(index, Watch(connection, index, spec.shards))
        held = connection.call(f"count the documents of {index}", lambda: held_documents(connection, index))
        connection.notify(
            f"going on with {index}, which holds {held:,} of {spec.documents:,} documents already"
        )
        return True

    def _body(self) -> dict[str, Any]:
        """The settings and mappings of a version that is to be filled."""
        body: dict[str, Any] = copy.deepcopy(canonical(self.spec.mapping))
        body["mappings"].setdefault("_meta", {})["searchapp"] = self.versions.meta(self.spec, self.lock.token)
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
        for _ in range(NUMBERS_TRIED):
            number = self.versions.next_number(self.lock.last)
            self.lock.note(number)
            index = self.versions.of_number(number)
            try:
                self.connection.call(
                    f"create the index {index} from its mapping",
                    lambda index=index: client.indices.create(  # type: ignore[misc]
                        index=index,
                        settings=body["settings"],
                        mappings=body["mappings"],
                        aliases={building_alias(index): {}},
                    ),
                )
            except EngineRefused as error:
                if not is_there_already(error):
                    raise
                if self.versions.lock_of(index) != self.lock.token:
                    continue  # somebody else's, of an earlier searchapp or of another maker
                # Ours: the answer to an earlier attempt was lost.
            return index
        raise EngineRefused(
            f"the names after {self.versions.alias}-{self.lock.last:06d} are taken by indexes that searchapp did not "
            "make: choose another prefix with SEARCHAPP_INDEX_PREFIX, or remove them yourself"
        )

    def _complete(
        self, index: str, documents: Iterable[Document], advance: Advance, *, resumed: bool
    ) -> None:
        """Fill a version, make sure that it holds every document once, and give its shards their replicas."""
        connection, shards = self.connection, self.spec.shards
        if waiting := await_copies(
            connection, index, shards, SHARDS_SECONDS, lambda now: now.without_primary
        ):
            raise EngineUnreachable(
                f"{named(waiting)} of {index} found no node within {SHARDS_SECONDS:.0f} s: look at the cluster's "
                "health and disks, and index again"
            )
        watch = Watch(connection, index, shards)
        send(connection, building_alias(index), documents, watch, advance, resumed=resumed)
        self.lock.confirm()
        self._refresh(index, watch)
        self._check(index, watch)
        settings = {
            "index": {
                "refresh_interval": None,
                **connection.server.allowed(replicas_settings(self.spec.replicas)),
                # Whatever is still on its way comes too late, and nobody changes what has been checked.
                "blocks.write": True,
            }
        }
        client = connection.client
        connection.call(
            f"finish {index}", lambda: client.indices.put_settings(index=index, settings=settings)
        )
        await_replicas(connection, index, shards)
        self._check(index, watch)

    def _refresh(self, index: str, watch: Watch) -> None:
        """Make what was sent searchable, and written to disk, on every shard."""
        indices = self.connection.client.indices
        acts = [("refresh", indices.refresh)]
        if not self.connection.server.is_serverless:  # which writes to its own store, when it thinks fit
            acts.append(("flush", indices.flush))
        for what, act in acts:
            watch.call(
                f"{what} {index}",
                lambda what=what, act=act: require_all_shards(  # type: ignore[misc]
                    self.connection, f"{what} {index}", act(index=index).body
                ),
            )

    def _check(self, index: str, watch: Watch) -> None:
        """Make sure that a version holds every document, once, on every copy of its shards."""
        held = watch.call(f"count the documents of {index}", lambda: held_documents(self.connection, index))
        if held != self.spec.documents:
            raise EngineRefused(
                f"{index} holds {held} documents instead of {self.spec.documents}: "
                "something else writes to it; index again"
            )
        now = copies(self.connection, index, self.spec.shards)
        if now.deleted:
            raise EngineRefused(
                f"{index} holds {now.deleted_copies}, which would count in its scores: "
                "something else writes to it; index again"
            )
