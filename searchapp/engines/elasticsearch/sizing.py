"""How many shards an index gets, and how many copies of each of them there are.

Elastic's advice ("Size your shards") is shards of 10 to 50 GB with at most 200 million documents, and no more of them
than that takes. searchapp's documents are sentences: some 700 bytes of index each, so that 20 million of them make a
shard of about 14 GB. More shards than nodes make a single search no faster, but one on every node lets all of them
work, as soon as each has enough to do.
"""

from __future__ import annotations

from typing import Any

from searchapp.engines.base import IndexInfo
from searchapp.engines.elasticsearch.connection import Connection
from searchapp.engines.elasticsearch.copies import await_copies, named
from searchapp.engines.elasticsearch.failures import is_of_client
from searchapp.errors import EngineRefused

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
