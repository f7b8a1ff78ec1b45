"""Several Elasticsearch nodes on the loopback address that make one cluster."""

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

WHOLE_SECONDS = 120.0

# How soon a node that stops answering is put out of the cluster: by default 30 s, which a test would only wait for.
QUICK_DETECTION: Mapping[str, Setting] = {
    f"cluster.fault_detection.{check}.{name}": value
    for check in ("follower_check", "leader_check")
    for name, value in (("interval", "200ms"), ("timeout", "1s"), ("retry_count", "2"))
}


class Cluster:
    """A cluster: `with Cluster(nodes=3) as cluster: ... cluster.nodes[0].url ... cluster.nodes[2].kill()`.

    They are of equal rank, so that the cluster goes on while more than half of them are there.

    Args:
        nodes: how many
        heap: of each node's Java, such as `512m`
        java: further options of each node's Java
        settings: further lines of every node's elasticsearch.yml
        version: of every node; that of the session's tests if not given
        within: where the nodes' temporary folders are made, see `Node`

    Raises:
        ServerUnavailable: this machine has no means to run one
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
        together: dict[str, Setting] = {
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
                settings={**together, "transport.port": str(port)},
                within=within,
            )
            for node, port in ports.items()
        ]

    def start(self) -> Self:
        """Start what does not run, and wait until the cluster is whole.

        Raises:
            ServerFailed: a node died, or did not answer in time
        """
        deadline = time.monotonic() + START_SECONDS
        starting = [node for node in self.nodes if not node.running]
        for node in starting:
            node.launch()
        for node in starting:
            node.await_answer(deadline)
        self.await_whole()
        return self

    def recover(self) -> None:
        """Let what is paused go on, start what does not run, and wait until the cluster is whole.

        Raises:
            ServerFailed: a node died, or did not answer in time
        """
        for node in self.nodes:
            if node.running:
                node.resume()
        self.start()

    def await_whole(self, seconds: float = WHOLE_SECONDS, *, status: str = "green") -> None:
        """Wait until every node that runs is in the cluster, and every copy of every shard has its place.

        With the status `yellow`, every copy that finds a place.

        Raises:
            ServerFailed: it is not by then
        """
        nodes = sum(node.running for node in self.nodes)
        wanted = f"wait_for_nodes={nodes}&wait_for_status={status}&wait_for_no_relocating_shards=true"
        wanted += "&wait_for_no_initializing_shards=true&wait_for_events=languid"
        deadline = time.monotonic() + seconds
        answer = None
        while time.monotonic() < deadline:
            try:
                answer = self.server.request("GET", f"/_cluster/health?{wanted}&timeout=5s")
                if answer.status == 200:
                    return
            except (OSError, http.client.HTTPException):
                time.sleep(0.2)
        state = answer.body.decode() if answer else "no answer"
        raise ServerFailed(f"the cluster did not become whole within {seconds:.0f} s: {state}")

    @property
    def urls(self) -> list[str]:
        """The addresses of all nodes."""
        return [node.url for node in self.nodes]

    @property
    def master(self) -> Node:
        """The node that the others have chosen.

        Raises:
            LookupError: they have chosen none
        """
        for master in self.server.request("GET", "/_cat/master?format=json").json():
            return next(node for node in self.nodes if node.name == master["node"])
        raise LookupError("the cluster has no master")

    def stop(self) -> None:
        """Stop all nodes; their data stay for another `start`."""
        for node in self.nodes:
            node.stop()

    def upgrade(self, node: Node, version: str) -> None:
        """Stop a node, and start it as one of a newer version with the same data; the others go on meanwhile.

        While there are both versions, a copy of a shard on a newer node may find no place on the older ones.

        Raises:
            ServerFailed: it died, or the cluster did not become whole in time
        """
        node.upgrade(version)
        node.start()
        self.await_whole(status="yellow")

    @property
    def server(self) -> Server:
        """The first node that runs, as something to send plain requests to."""
        return next(node for node in self.nodes if node.running).server

    def holder(self, index: str, shard: int = 0, *, primary: bool = True) -> Node:
        """The node that holds the primary of a shard, or a replica of it.

        Raises:
            LookupError: no node does
        """
        path = f"/_cat/shards/{index}?format=json&h=shard,prirep,node"
        for copy in self.server.request("GET", path).json():
            if int(copy["shard"]) == shard and (copy["prirep"] == "p") == primary and copy["node"]:
                return next(node for node in self.nodes if node.name == copy["node"])
        raise LookupError(f"no node holds shard {shard} of {index}")

    def close(self) -> None:
        """Stop the nodes and remove all that they left."""
        for node in self.nodes:
            node.kill()  # nothing of them is kept
            node.close()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()
