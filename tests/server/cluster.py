"""A cluster of several Elasticsearch nodes on the loopback address."""

from __future__ import annotations

import http.client
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from .distribution import Distribution, ServerFailed
from .node import START_SECONDS, Node, Setting, free_port
from .rest import Server

COMPLETE_SECONDS = 120.0

# Settings that remove an unresponsive node from the cluster after seconds; the default is 30 s.
QUICK_DETECTION: Mapping[str, Setting] = {
    f"cluster.fault_detection.{check}.{name}": value
    for check in ("follower_check", "leader_check")
    for name, value in (("interval", "200ms"), ("timeout", "1s"), ("retry_count", "2"))
}


class Cluster:
    """A cluster: `with Cluster(nodes=3) as cluster: ... cluster.nodes[0].url ... cluster.nodes[2].kill()`.

    All nodes can become master, so that the cluster works while more than half of them run.

    Args:
        nodes: The number of nodes.
        heap: Heap size of each node's Java, such as `512m`.
        java: Further options of each node's Java.
        settings: Further settings of every node's elasticsearch.yml.
        version: The version of all nodes; by default that of the session's tests.
        within: Folder for the nodes' temporary folders, see `Node`.

    Raises:
        ServerUnavailable: This machine can't run a node.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        heap: str = "512m",
        java: Sequence[str] = (),
        settings: Mapping[str, Setting] | None = None,
        version: str | None = None,
        within: Path | None = None,
    ) -> None:
        distribution = Distribution.find(version)
        name = f"searchapp-test-{secrets.token_hex(4)}"
        ports = {f"{name}-{number}": free_port() for number in range(nodes)}
        common: dict[str, Setting] = {
            "cluster.name": name,
            "discovery.seed_hosts": [f"127.0.0.1:{port}" for port in ports.values()],
            "cluster.initial_master_nodes": list(ports),
            **(settings or {}),
        }
        self.nodes = [
            Node(
                distribution,
                heap=heap,
                name=node,
                java=java,
                settings={**common, "transport.port": str(port)},
                within=within,
            )
            for node, port in ports.items()
        ]

    def start(self) -> Self:
        """Start the nodes that do not run, and wait until the cluster is complete.

        Raises:
            ServerFailed: A node ended or did not answer in time.
        """
        deadline = time.monotonic() + START_SECONDS
        starting = [node for node in self.nodes if not node.running]
        for node in starting:
            node.launch()
        for node in starting:
            node.await_answer(deadline)
        self.await_complete()
        return self

    def recover(self) -> None:
        """Resume paused nodes, start those that do not run, and wait until the cluster is complete.

        Raises:
            ServerFailed: A node ended or did not answer in time.
        """
        for node in self.nodes:
            if node.running:
                node.resume()
        self.start()

    def await_complete(self, seconds: float = COMPLETE_SECONDS, *, status: str = "green") -> None:
        """Wait until all running nodes are in the cluster and all shard copies are allocated.

        With the status `yellow`, copies that can't be allocated are ignored.

        Raises:
            ServerFailed: The cluster is not complete in time.
        """
        nodes = sum(node.running for node in self.nodes)
        conditions = f"wait_for_nodes={nodes}&wait_for_status={status}&wait_for_no_relocating_shards=true"
        conditions += "&wait_for_no_initializing_shards=true&wait_for_events=languid"
        deadline = time.monotonic() + seconds
        answer = None
        while time.monotonic() < deadline:
            try:
                answer = self.server.request("GET", f"/_cluster/health?{conditions}&timeout=5s")
                if answer.status == 200:
                    return
            except (OSError, http.client.HTTPException):
                time.sleep(0.2)
        state = answer.body.decode() if answer else "no answer"
        raise ServerFailed(f"the cluster did not become complete within {seconds:.0f} s: {state}")

    @property
    def urls(self) -> list[str]:
        """The addresses of all nodes."""
        return [node.url for node in self.nodes]

    @property
    def master(self) -> Node:
        """The elected master.

        Raises:
            LookupError: The cluster has no master.
        """
        for master in self.server.request("GET", "/_cat/master?format=json").json():
            return next(node for node in self.nodes if node.name == master["node"])
        raise LookupError("the cluster has no master")

    def stop(self) -> None:
        """Stop all nodes; their data remain for another `start`."""
        for node in self.nodes:
            node.stop()

    def upgrade(self, node: Node, version: str) -> None:
        """Stop a node and start it with a newer version and the same data, while the others run.

        In a mixed cluster, copies of shards on newer nodes can't be allocated on older ones.

        Raises:
            ServerFailed: The node ended, or the cluster did not become complete in time.
        """
        node.upgrade(version)
        node.start()
        self.await_complete(status="yellow")

    @property
    def server(self) -> Server:
        """The first running node, as a server for plain requests."""
        return next(node for node in self.nodes if node.running).server

    def holder(self, index: str, shard: int = 0, *, primary: bool = True) -> Node:
        """Return the node that has the primary or a replica of a shard.

        Raises:
            LookupError: There is no such node.
        """
        path = f"/_cat/shards/{index}?format=json&h=shard,prirep,node"
        for copy in self.server.request("GET", path).json():
            if int(copy["shard"]) == shard and (copy["prirep"] == "p") == primary and copy["node"]:
                return next(node for node in self.nodes if node.name == copy["node"])
        raise LookupError(f"no node holds shard {shard} of {index}")

    def close(self) -> None:
        """Stop the nodes and remove their folders."""
        for node in self.nodes:
            node.kill()  # faster than a regular stop
            node.close()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()
