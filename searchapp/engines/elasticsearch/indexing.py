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
    LostShard,
    Watch,
    await_copies,
    copies,
    flaw,
    held_documents,
    named,
    require_all_shards,
)
from searchapp.engines.elasticsearch.failures import is_there_already
from searchapp.engines.elasticsearch.locks import Lock, Locks
from searchapp.engines.elasticsearch.older import analysis_for
from searchapp.engines.elasticsearch.sending import send
from searchapp.engines.elasticsearch.versions import Version, Versions, building_alias
from searchapp.engines.index_settings import canonical
from searchapp.errors import EngineError, EngineRefused, EngineUnreachable
from searchapp.model import Document
from searchapp.progress import Advance

LONGEST_HIGHLIGHTED = 2**31 - 1
"""In characters: by default a longer text than a million would let every search that finds it fail."""

STARTS = 3
"""How often at most a version is begun because a node that held a part of the one before is gone."""

NUMBERS_TRIED = 6

SHARDS_SECONDS = 90.0
"""How long an empty shard may take to find a node: twice what a node that hangs takes to be put out of its cluster."""

COPIES_SECONDS = 60.0
"""How long is waited for replicas; those that come later come while the index serves."""


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
    what it made; one that is killed leaves it for the next to remove. Another process that builds this index is waited
    for; if what it built is what is asked for here, that serves and nothing is built.

    `documents` are drawn again from the start when a node is lost that held a part of them, unless they are an
    iterator, which can't be.
    """
    known = versions.serving()  # also refuses a name that is not ours before anything is made
    with locks.hold(versions.alias) as lock:
        serving = versions.serving()
        if serving is not None and _made_meanwhile(connection, serving, known, spec):
            return serving.info
        versions.remove_leftovers()
        builder = _Builder(connection, versions, lock, spec)
        starts = 1 if iter(documents) is documents else STARTS
        index = builder.completed(documents, advance, starts)
        return builder.serve(index)


def _made_meanwhile(connection: Connection, serving: Version, known: Version | None, spec: IndexSpec) -> bool:
    """Whether another builder has made what is asked for while this one waited."""
    made = serving.info
    return (
        (known is None or known.info.version != made.version)
        and (made.digest, made.shards, made.owner) == (spec.digest, spec.shards, spec.owner)
        and not flaw(connection, made)
    )


@dataclass(frozen=True, slots=True)
class _Builder:
    """Who makes a version of an index: with which connection, under which lock, and of what."""

    connection: Connection
    versions: Versions
    lock: Lock
    spec: IndexSpec

    def completed(self, documents: Iterable[Document], advance: Advance, starts: int) -> str:
        """A version that holds the documents; begun again, `starts` times at most, when a node of it is lost."""
        done = 0

        def counted(number: int) -> None:
            nonlocal done
            done += number
            advance(number)

        index = self._create()
        try:
            self._complete(index, documents, counted)
        except LostShard:
            self._discard(index)
            if starts == 1:
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
            self.lock.require()
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
        """Delete a version that was not completed. A server that is gone can't be tidied: the next run will do it."""
        versions = Versions(self.connection.tidying(), self.versions.name, self.versions.alias)
        with suppress(EngineError):
            versions.remove_unserved(index)

    def _create(self) -> str:
        """A new, empty version, whose shards may have no node yet."""
        spec, client = self.spec, self.connection.client
        body: dict[str, Any] = copy.deepcopy(canonical(spec.mapping))
        body["mappings"].setdefault("_meta", {})["searchapp"] = self.versions.meta(spec, self.lock.token)
        server = self.connection.server
        body["settings"] = {
            **body.get("settings", {}),
            "refresh_interval": "-1",  # nobody searches it yet
            **server.allowed(
                {
                    "number_of_shards": spec.shards,
                    # Replicas come when it is complete: each document would wait for the slowest of them, or for one
                    # that is on a node that has just gone.
                    "number_of_replicas": 0,
                    "auto_expand_replicas": False,
                    "highlight": {"max_analyzed_offset": LONGEST_HIGHLIGHTED},
                }
            ),
        }
        if "analysis" in body["settings"]:
            body["settings"]["analysis"] = analysis_for(server, body["settings"]["analysis"])
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

    def _complete(self, index: str, documents: Iterable[Document], advance: Advance) -> None:
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
        send(connection, building_alias(index), documents, watch, advance)
        self.lock.require()
        self._refresh(index, watch)
        self._check(index, watch)
        settings = {
            "index": {
                "refresh_interval": None,
                **connection.server.allowed({"auto_expand_replicas": "0-1"}),
                # Whatever is still on its way comes too late, and nobody changes what has been checked.
                "blocks.write": True,
            }
        }
        client = connection.client
        connection.call(
            f"finish {index}", lambda: client.indices.put_settings(index=index, settings=settings)
        )
        if waiting := await_copies(connection, index, shards, COPIES_SECONDS, lambda now: now.incomplete):
            connection.notify(
                f"{named(waiting)} of {index} found no node for a replica within {COPIES_SECONDS:.0f} s: "
                "it serves, but not when a node is lost"
            )
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
