"""What the copies of an index's shards hold: whether all are there, and whether they rank by the right statistics.

A document that is written twice leaves a deleted copy behind, and BM25 counts deleted copies, in the number of
documents and in the frequencies, until they are merged away; each copy of a shard merges when it likes. An index
serves only while no copy of a shard has any.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from searchapp.engines.base import IndexInfo
from searchapp.engines.elasticsearch.connection import FIRST_WAIT_SECONDS, Connection
from searchapp.engines.elasticsearch.failures import NotYet
from searchapp.errors import EngineError, EngineRefused, EngineUnreachable

T = TypeVar("T")

LOST_SECONDS = 30.0
"""How long a shard that is being filled may have no node before it is given up: a node that only starts again is back
within that time."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of a shard that is at work: how many documents it holds, and how many deleted ones."""

    shard: int
    primary: bool
    documents: int
    deleted: int


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies of an index's shards that are at work, of `wanted` copies for each of `shards` shards.

    Where nobody may look at them, on a serverless project, nothing is missing and nothing deleted.
    """

    found: tuple[Copy, ...]
    shards: int
    wanted: int
    visible: bool = True

    @property
    def deleted(self) -> int:
        """The number of deleted documents, where the copies of a shard differ of the one with most."""
        most = [
            max((one.deleted for one in self.found if one.shard == shard), default=0)
            for shard in range(self.shards)
        ]
        return sum(most)

    @property
    def deleted_copies(self) -> str:
        """Their number for a sentence."""
        return f"{self.deleted:,} deleted {'copy' if self.deleted == 1 else 'copies'} of documents"

    @property
    def without_primary(self) -> list[int]:
        """The shards that nobody can write to or count on at the moment."""
        if not self.visible:
            return []
        there = {copy.shard for copy in self.found if copy.primary}
        return [shard for shard in range(self.shards) if shard not in there]

    @property
    def incomplete(self) -> list[int]:
        """The shards that lack a copy."""
        if not self.visible:
            return []
        counts = [sum(copy.shard == shard for copy in self.found) for shard in range(self.shards)]
        return [shard for shard, count in enumerate(counts) if count < self.wanted]


def copies(connection: Connection, index: str, shards: int) -> Copies:
    """The copies of an index of this many shards, as they are now; none when there is no such index.

    Raises:
        EngineError: the server does not answer, or refuses.
    """
    if connection.server.is_serverless:
        return Copies((), shards, 0, visible=False)
    client = connection.client.options(ignore_status=404)

    def ask() -> Copies:
        answer = client.indices.stats(index=index, metric="docs", level="shards")
        if answer.meta.status == 404:
            return Copies((), shards, 1)
        if answer["_shards"]["failed"]:
            raise NotYet(
                EngineUnreachable(
                    f"{connection.url} can't say what each copy of {index} holds: look at the cluster's health "
                    "and try again"
                )
            )
        described = answer.get("indices", {}).get(index, {}).get("shards", {})
        found = tuple(
            Copy(int(shard), copy["routing"]["primary"], copy["docs"]["count"], copy["docs"]["deleted"])
            for shard, of_shard in described.items()
            for copy in of_shard
        )
        return Copies(found, shards, answer["_shards"]["total"] // shards)

    return connection.call(f"look for deleted documents in {index}", ask)


def flaw(connection: Connection, info: IndexInfo) -> str:
    """Why an index must not serve, as the beginning of a sentence; empty when nothing is wrong with it."""
    index = info.version
    now = copies(connection, index, info.shards)
    if now.deleted:
        return f"{index} holds {now.deleted_copies}, which count in its scores"
    if now.without_primary:
        return ""  # not whole at the moment, which is another matter
    if sum(copy.documents for copy in now.found if copy.primary) == info.documents:
        return ""
    # The statistics count nested documents as well: only this count is of those that were sent.
    held = connection.call(f"count the documents of {index}", lambda: held_documents(connection, index))
    return "" if held == info.documents else f"{index} holds {held:,} documents instead of {info.documents:,}"


def require_sound(connection: Connection, info: IndexInfo) -> None:
    """Make sure that nothing is wrong with what an index holds.

    Raises:
        EngineRefused: something is.
    """
    if problem := flaw(connection, info):
        raise EngineRefused(f"{problem}: build it again with `searchapp index {info.name} --rebuild`")


def held_documents(connection: Connection, index: str) -> int:
    """How many documents an index holds.

    Raises:
        NotYet: not every shard answers.
    """
    answer = connection.client.count(index=index)
    require_all_shards(connection, f"count the documents of {index}", answer.body)
    return int(answer["count"])


def require_all_shards(connection: Connection, what: str, answer: dict[str, dict[str, int]]) -> None:
    """Refuse, for now, an answer that some shards have no part in.

    Raises:
        NotYet: a shard is missing.
    """
    shards = answer["_shards"]
    if shards["failed"] or shards["successful"] < shards["total"]:
        raise NotYet(
            EngineUnreachable(
                f"{connection.url} could not {what} on all shards: look at the cluster's health and try again"
            )
        )


class LostShard(EngineUnreachable):
    """A shard that was being filled is on a node that is gone: what it held is out of reach."""


class Watch:
    """Looks after the primary shards of an index that is being built."""

    def __init__(self, connection: Connection, index: str, shards: int) -> None:
        self._connection = connection
        self._index = index
        self._shards = shards
        self._lost_since: float | None = None

    def call(self, what: str, request: Callable[[], T]) -> T:
        """As `Connection.call`, but given up as soon as it is known that a shard is lost.

        Raises:
            LostShard: one is.
            EngineError: as `Connection.call`.
        """
        failed = False

        def watched() -> T:
            nonlocal failed
            if failed:
                self.require()
            failed = True
            return request()

        return self._connection.call(what, watched)

    def require(self) -> None:
        """Make sure that no shard has been without node for long.

        Raises:
            LostShard: one has.
            NotYet: one is, since a moment ago.
        """
        try:
            missing = copies(self._connection.tidying(), self._index, self._shards).without_primary
        except EngineError:
            return  # then this is not what is known to be wrong
        if not missing:
            self._lost_since = None
            return
        self._lost_since = self._lost_since or time.monotonic()
        lost = LostShard(
            f"{named(missing)} of {self._index} {_has(missing)} been without node for {LOST_SECONDS:.0f} s: "
            "look at the cluster's health and index again; the index before it still serves"
        )
        if time.monotonic() - self._lost_since > LOST_SECONDS:
            raise lost
        raise NotYet(lost)


def await_copies(
    connection: Connection, index: str, shards: int, seconds: float, missing: Callable[[Copies], list[int]]
) -> list[int]:
    """Wait until no shard is `missing` something, at most this long; returns the shards that still are."""
    deadline = time.monotonic() + seconds
    while waiting := missing(copies(connection, index, shards)):
        if time.monotonic() > deadline:
            break
        time.sleep(FIRST_WAIT_SECONDS)
    return waiting


def named(shards: list[int]) -> str:
    """Shards for a sentence: "shard 2", "shards 0 and 2"."""
    if len(shards) == 1:
        return f"shard {shards[0]}"
    return f"shards {', '.join(map(str, shards[:-1]))} and {shards[-1]}"


def _has(shards: list[int]) -> str:
    return "has" if len(shards) == 1 else "have"
