"""The shards of an index: how many it gets, what their copies hold, and what the server says of nodes and shards.

A document that is written twice leaves a deleted copy behind, and BM25 counts deleted copies, in the number of
documents and in the frequencies, until they are merged away; each copy of a shard merges when it likes. An index serves
only while no copy of a shard has any.

Elastic's advice ("Size your shards") is shards of 10 to 50 GB with at most 200 million documents, and no more of them
than that takes. searchapp's documents are sentences: some 700 bytes of index each, so that 20 million of them make a
shard of about 14 GB. More shards than nodes make a single search no faster, but one on every node lets all of them
work, as soon as each has enough to do.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from searchapp.engines.base import ShardedIndex, Survey
from searchapp.engines.elasticsearch.connection import FIRST_WAIT_SECONDS, Connection, NotYet, is_of_client
from searchapp.errors import EngineError, EngineRefused, EngineUnreachable
from searchapp.model import IndexInfo

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


class UnusableVersion(EngineUnreachable):
    """What a version under construction holds can't be used: it must be built again from the start."""


class LostShard(UnusableVersion):
    """A shard that was being filled is on a node that is gone: what it held is out of reach."""


class ShardMonitor:
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
            "look at the cluster's health and index again"
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


LARGEST = 20_000_000
"""The documents that one shard gets at most."""

WORTHWHILE = 250_000
"""The documents that a shard of its own on a further node takes at least."""

MOST = 64

COPIES_SECONDS = 60.0
"""How long is waited for replicas; those that come later come while the index serves."""


def shards_for(connection: Connection, documents: int) -> int:
    """The shards of an index of this many documents: one on each node that holds data, but none too small or too large.

    A user who may not ask for the cluster's nodes gets what fits a single one.

    Raises:
        EngineError: the server does not answer.
    """
    if connection.server.is_serverless:
        return 1  # it chooses by itself, and is sent nothing
    worthwhile = documents // WORTHWHILE
    nodes = _data_nodes(connection) if worthwhile > 1 else 1
    return min(MOST, max(1, -(-documents // LARGEST), min(nodes, worthwhile)))


def _data_nodes(connection: Connection) -> int:
    client = connection.client
    try:
        answer = connection.call(
            "count the nodes", lambda: client.cluster.health(filter_path="number_of_data_nodes")
        )
    except EngineRefused as error:
        if not is_of_client(error):
            raise
        connection.notify(
            "the number of shards is chosen as for one node: this user may not ask how many there are (the cluster "
            "privilege `monitor`); --shards N chooses another"
        )
        return 1
    return int(answer["number_of_data_nodes"])


def replicas_settings(replicas: int | None) -> dict[str, Any]:
    """The settings of an index that has this many replicas; with None, one as soon as there is a second node."""
    if replicas is None:
        return {"auto_expand_replicas": "0-1"}
    return {"auto_expand_replicas": False, "number_of_replicas": replicas}


def replicate(connection: Connection, info: IndexInfo, replicas: int) -> None:
    """Change the number of replicas of a version, and wait for them.

    Raises:
        EngineError: the server does not answer, or refuses.
    """
    settings = {"index": connection.server.allowed(replicas_settings(replicas))}
    client = connection.client
    connection.call(
        f"change the replicas of {info.version}",
        lambda: client.indices.put_settings(index=info.version, settings=settings),
    )
    await_replicas(connection, info.version, info.shards)


def await_replicas(connection: Connection, index: str, shards: int) -> None:
    """Wait until every shard has all of its copies, for some time; that some are missing is no error."""
    if waiting := await_copies(connection, index, shards, COPIES_SECONDS, lambda now: now.incomplete):
        connection.notify(
            f"{named(waiting)} of {index} found no node for a replica within {COPIES_SECONDS:.0f} s: "
            "it serves, but not when a node is lost"
        )


SLOW_MILLISECONDS = 50.0
SLOW_TIMES = 3.0
FEWEST_SEARCHES = 20
"""A copy of a shard is slow if it has answered this many searches, and took this long for one on average, and this many
times as long as the copies of its index do at the median."""


def survey(connection: Connection, prefix: str) -> Survey:
    """The nodes, as far as the one who asks may know of them, and every index whose name begins with a prefix.

    Raises:
        EngineError: the server does not answer.
    """
    server = connection.server
    if server.is_serverless:
        return Survey(server.version, is_serverless=True)
    nodes, health = _cluster(connection)
    return Survey(server.version, nodes, health, _indexes(connection, f"{prefix}-*"))


def _cluster(connection: Connection) -> tuple[Mapping[str, int] | None, str]:
    """How many nodes there are of each version, and how the cluster is; nothing for who may not ask."""
    client = connection.client
    try:
        only = "nodes.*.version"
        nodes = connection.call(
            "ask for the nodes", lambda: client.nodes.info(node_id="_all", metric="_none", filter_path=only)
        )
        health = connection.call("ask for the health", lambda: client.cluster.health(filter_path="status"))
    except EngineRefused:
        return None, ""
    versions = Counter(node["version"] for node in nodes.body.get("nodes", {}).values())
    return dict(sorted(versions.items())), str(health.body.get("status", ""))


def _indexes(connection: Connection, pattern: str) -> Mapping[str, ShardedIndex]:
    client = connection.client.options(ignore_status=404)
    try:
        chosen = connection.call(
            f"ask for the settings of {pattern}",
            lambda: client.indices.get_settings(index=pattern, name="index.number_of_*", flat_settings=True),
        )
        held = connection.call(
            f"ask for the shards of {pattern}",
            lambda: client.indices.stats(index=pattern, metric=["docs", "store", "search"], level="shards"),
        )
    except EngineError as error:
        if not isinstance(error, EngineRefused):
            raise
        return {}
    found = held.body.get("indices", {})
    return {
        name: _index(described["settings"], found.get(name, {}))
        for name, described in chosen.body.items()
        if isinstance(described, Mapping) and "settings" in described
    }


def _index(settings: Mapping[str, Any], described: Mapping[str, Any]) -> ShardedIndex:
    copies = [(shard, copy) for shard, all_of_it in described.get("shards", {}).items() for copy in all_of_it]
    total = described.get("total", {})
    searches = total.get("search", {})
    return ShardedIndex(
        shards=int(settings["index.number_of_shards"]),
        replicas=int(settings["index.number_of_replicas"]),
        copies=len(copies),
        size=int(total.get("store", {}).get("size_in_bytes", 0)),
        searches=int(searches.get("query_total", 0)),
        milliseconds=_mean(searches) or 0.0,
        slow=tuple(_slow(copies)),
    )


def _slow(copies: list[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """The copies that are slow, each as a clause."""
    means = [(shard, copy, _mean(copy.get("search", {}))) for shard, copy in copies]
    known = [mean for _, _, mean in means if mean is not None]
    if len(known) < 2:
        return []
    usual = statistics.median_low(known)
    return [
        f"shard {shard} on node {copy['routing']['node'][:8]} takes {mean:,.0f} ms a search, "
        f"the others {usual:,.0f} ms"
        for shard, copy, mean in means
        if mean is not None and mean >= SLOW_MILLISECONDS and mean >= SLOW_TIMES * usual
    ]


def _mean(searches: Mapping[str, Any]) -> float | None:
    """How long a search took on average, in milliseconds; None if there were too few to say."""
    number = int(searches.get("query_total", 0))
    return searches["query_time_in_millis"] / number if number >= FEWEST_SEARCHES else None
