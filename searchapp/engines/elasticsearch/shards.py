"""The shards of an index: their number, the documents of their copies, replicas, and a survey of nodes and shards."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from elastic_transport import ObjectApiResponse
from elasticsearch import Elasticsearch

from searchapp.engines.base import ShardedIndex, Survey
from searchapp.engines.elasticsearch.connection import FIRST_WAIT_SECONDS, Connection, NotYet, is_of_client
from searchapp.errors import EngineError, EngineRefused, EngineUnreachable
from searchapp.lucene.dataclass import dataclass
from searchapp.model import IndexInfo
from searchapp.text import have

T = TypeVar("T")

LOST_SECONDS = 30.0  # a shard without a node is given up after this time, in which a node restarts


@dataclass(frozen=True, slots=True)
class Copy:
    """An active copy of a shard, with its numbers of documents and of deleted documents."""

    shard: int
    primary: bool
    documents: int
    deleted: int


@dataclass(frozen=True, slots=True)
class Copies:
    """The active copies of an index's `shards`, each of which should have `expected` copies."""

    copies: tuple[Copy, ...]
    shards: int
    expected: int
    visible: bool = True  # false on a serverless project; then no copy is missing

    # A document that is written twice leaves a deleted copy. BM25 counts deleted copies until they are merged away, and
    # each copy of a shard merges at its own time. Therefore a live index must not contain any.
    @property
    def deleted(self) -> int:
        """The number of deleted documents; the maximum over the copies of a shard."""
        most: Counter[int] = Counter()
        for copy in self.copies:
            most[copy.shard] = max(most[copy.shard], copy.deleted)
        return most.total()

    @property
    def deleted_text(self) -> str:
        return (
            f"{self.deleted:,} deleted {'copy of a document' if self.deleted == 1 else 'copies of documents'}"
        )

    @property
    def without_primary(self) -> list[int]:
        """The shards without an active primary, which reject writes and counts."""
        return self._below(1, Counter(copy.shard for copy in self.copies if copy.primary))

    @property
    def incomplete(self) -> list[int]:
        return self._below(self.expected, Counter(copy.shard for copy in self.copies))

    def _below(self, expected: int, counts: Counter[int]) -> list[int]:
        return [shard for shard in range(self.shards) if self.visible and counts[shard] < expected]


def copies(connection: Connection, index: str, shards: int) -> Copies:
    """Return the copies of an index with this many shards; empty for a missing index."""
    if connection.server.is_serverless:
        return Copies((), shards, 0, visible=False)

    def request_stats(client: Elasticsearch) -> ObjectApiResponse[Any]:
        answer = client.indices.stats(index=index, metric="docs", level="shards")
        if answer.meta.status != 404 and answer["_shards"]["failed"]:
            raise NotYet(
                EngineUnreachable(
                    f"{connection.url} can't report the content of each copy of {index}: check the "
                    "cluster's health and try again"
                )
            )
        return answer

    answer = connection.look_up(f"look for deleted documents in {index}", request_stats)
    if answer is None:
        return Copies((), shards, 1)
    found_copies = tuple(
        Copy(int(shard), copy["routing"]["primary"], copy["docs"]["count"], copy["docs"]["deleted"])
        for shard, of_shard in answer.get("indices", {}).get(index, {}).get("shards", {}).items()
        for copy in of_shard
    )
    return Copies(found_copies, shards, answer["_shards"]["total"] // shards)


def count_documents(connection: Connection, index: str, call: Callable[..., Any] | None = None) -> int:
    """Return the number of documents of an index; `call` replaces `connection.call`."""
    action = f"count the documents of {index}"

    def count(client: Elasticsearch) -> int:
        answer = client.count(index=index)
        require_all_shards(connection, action, answer.body)
        return int(answer["count"])

    return int((call or connection.call)(action, count))


def require_all_shards(connection: Connection, action: str, answer: dict[str, dict[str, int]]) -> None:
    """Reject an answer to which a shard did not contribute."""
    shards = answer["_shards"]
    if shards["failed"] or shards["successful"] < shards["total"]:
        raise NotYet(
            EngineUnreachable(
                f"{connection.url} could not {action} on all shards: check the cluster's health and try again"
            )
        )


class UnusableVersion(EngineUnreachable):
    """The content of an unfinished version is unusable: build it again from the start."""


class LostShard(UnusableVersion):
    """The node of a shard of an unfinished version is gone."""


class ShardMonitor:
    """Checks the primary shards of an index during its build."""

    def __init__(self, connection: Connection, index: str, shards: int) -> None:
        self._connection = connection
        self._index = index
        self._shards = shards
        self._lost_since: float | None = None

    def call(self, action: str, request: Callable[[Elasticsearch], T]) -> T:
        """Send a request as `Connection.call`, but stop once a shard is lost.

        Raises:
            LostShard: a shard is lost.
        """
        is_repeated = False

        def send(client: Elasticsearch) -> T:
            nonlocal is_repeated
            if is_repeated:
                self.require()
            is_repeated = True
            return request(client)

        return self._connection.call(action, send)

    def require(self) -> None:
        """Check that no shard has been without a node for `LOST_SECONDS`.

        Raises:
            LostShard: a shard has.
            NotYet: a shard has been without a node for a shorter time.
        """
        try:
            missing = copies(self._connection.cleanup_connection(), self._index, self._shards).without_primary
        except EngineError:
            return  # the state of the shards is unknown
        if not missing:
            self._lost_since = None
            return
        self._lost_since = self._lost_since or time.monotonic()
        error = LostShard(
            f"{shards_text(missing)} of {self._index} {have(len(missing))} been without a node for "
            f"{LOST_SECONDS:.0f} s: check the cluster's health and index again"
        )
        if time.monotonic() - self._lost_since > LOST_SECONDS:
            raise error
        raise NotYet(error)


def await_copies(
    connection: Connection, index: str, shards: int, seconds: float, missing: Callable[[Copies], list[int]]
) -> list[int]:
    """Wait up to `seconds` until `missing` returns no shard; return the shards that are still missing."""
    deadline = time.monotonic() + seconds
    while waiting := missing(copies(connection, index, shards)):
        if time.monotonic() > deadline:
            break
        time.sleep(FIRST_WAIT_SECONDS)
    return waiting


def shards_text(shards: list[int]) -> str:
    """Return the shards for a sentence: "shard 2", "shards 0 and 2"."""
    *others, last = shards
    return f"shards {', '.join(map(str, others))} and {last}" if others else f"shard {last}"


# Maximum number of documents of a shard: 14 GB at about 700 bytes per sentence. Elastic recommends 10 to 50 GB ("Size
# your shards").
LARGEST = 20_000_000

WORTHWHILE = 250_000  # minimum number of documents of a shard on an additional node

MOST = 64

COPIES_SECONDS = 60.0  # the build waits for replicas this long; later ones are added to the live index


def shards_for(connection: Connection, documents: int) -> int:
    """Return the number of shards for this many documents: one per data node, within the limits on their size."""
    if connection.server.is_serverless:
        return 1  # not sent: a serverless project chooses the number
    worthwhile = documents // WORTHWHILE
    nodes = _data_nodes(connection) if worthwhile > 1 else 1
    return min(MOST, max(1, -(-documents // LARGEST), min(nodes, worthwhile)))


def _data_nodes(connection: Connection) -> int:
    try:
        answer = connection.call(
            "count the nodes", lambda client: client.cluster.health(filter_path="number_of_data_nodes")
        )
    except EngineRefused as error:
        if not is_of_client(error):
            raise
        connection.notify(
            "the number of shards is chosen for one node, because this user lacks the cluster "
            "privilege `monitor`; --shards N sets another number"
        )
        return 1
    return int(answer["number_of_data_nodes"])


def replicas_settings(replicas: int | None) -> dict[str, Any]:
    """Return the settings for this many replicas; None: one as soon as there is a second node."""
    if replicas is None:
        return {"auto_expand_replicas": "0-1"}
    return {"auto_expand_replicas": False, "number_of_replicas": replicas}


def replicate(connection: Connection, info: IndexInfo, replicas: int) -> None:
    """Change the number of replicas of a version, and wait for them."""
    settings = {"index": connection.server.supported_settings(replicas_settings(replicas))}
    connection.call(
        f"change the replicas of {info.version}",
        lambda client: client.indices.put_settings(index=info.version, settings=settings),
    )
    await_replicas(connection, info.version, info.shards)


def await_replicas(connection: Connection, index: str, shards: int) -> None:
    """Wait until every shard has all copies; notify the user of missing ones after `COPIES_SECONDS`."""
    if waiting := await_copies(connection, index, shards, COPIES_SECONDS, lambda now: now.incomplete):
        connection.notify(
            f"{shards_text(waiting)} of {index} found no node for a replica within "
            f"{COPIES_SECONDS:.0f} s: the index is live, but fails if a node is lost"
        )


# A copy of a shard is slow if it has answered at least `FEWEST_SEARCHES` searches, and its mean time is at least
# `SLOW_MILLISECONDS` and `SLOW_TIMES` the median of the copies of its index.
SLOW_MILLISECONDS = 50.0
SLOW_TIMES = 3.0
FEWEST_SEARCHES = 20


def survey(connection: Connection, prefix: str) -> Survey:
    """Return the nodes visible to the user, and every index with a name prefix."""
    server = connection.server
    if server.is_serverless:
        return Survey(server.version, is_serverless=True)
    nodes, health = _cluster(connection)
    return Survey(server.version, nodes, health, _indexes(connection, f"{prefix}-*"))


def _cluster(connection: Connection) -> tuple[Mapping[str, int] | None, str]:
    """Return the number of nodes of each version, and the health; empty for a user without that privilege."""
    try:
        versions = Counter(node_versions(connection, "ask for the nodes"))
        health = connection.call(
            "ask for the health", lambda client: client.cluster.health(filter_path="status")
        )
    except EngineRefused:
        return None, ""
    return dict(sorted(versions.items())), str(health.body.get("status", ""))


def node_versions(connection: Connection, action: str) -> list[str]:
    """Return the version of each node."""
    answer = connection.call(
        action,
        lambda client: client.nodes.info(node_id="_all", metric="_none", filter_path="nodes.*.version"),
    )
    return [node["version"] for node in answer.body.get("nodes", {}).values()]


def _indexes(connection: Connection, pattern: str) -> Mapping[str, ShardedIndex]:
    try:
        settings = connection.look_up(
            f"ask for the settings of {pattern}",
            lambda client: client.indices.get_settings(
                index=pattern, name="index.number_of_*", flat_settings=True
            ),
        )
        stats = connection.look_up(
            f"ask for the shards of {pattern}",
            lambda client: client.indices.stats(
                index=pattern, metric=["docs", "store", "search"], level="shards"
            ),
        )
    except EngineRefused:
        return {}
    indices = (stats or {}).get("indices", {})
    return {
        name: _index(described["settings"], indices.get(name, {}))
        for name, described in (settings or {}).items()
    }


def _index(settings: Mapping[str, Any], described: Mapping[str, Any]) -> ShardedIndex:
    copies = [(shard, copy) for shard, of_shard in described.get("shards", {}).items() for copy in of_shard]
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
    means = [(shard, copy, _mean(copy.get("search", {}))) for shard, copy in copies]
    known = [mean for _, _, mean in means if mean is not None]
    if len(known) < 2:
        return []
    usual = statistics.median_low(known)
    return [
        f"shard {shard} on node {copy['routing']['node'][:8]} takes {mean:,.0f} ms per search, the "
        f"others {usual:,.0f} ms"
        for shard, copy, mean in means
        if mean is not None and mean >= SLOW_MILLISECONDS and mean >= SLOW_TIMES * usual
    ]


def _mean(searches: Mapping[str, Any]) -> float | None:
    """Return the mean time of a search in milliseconds; None below `FEWEST_SEARCHES`."""
    number = int(searches.get("query_total", 0))
    return searches["query_time_in_millis"] / number if number >= FEWEST_SEARCHES else None
