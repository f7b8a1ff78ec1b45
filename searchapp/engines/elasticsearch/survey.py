"""What a server says of its nodes, and of the shards of searchapp's indexes: for those who look after it."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping
from typing import Any

from searchapp.engines.base import ShardedIndex, Survey
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.errors import EngineError, EngineRefused

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
