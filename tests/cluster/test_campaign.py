"""Random faults on three nodes, some of which are paused or killed, see `tests.campaign`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import client, shards
from searchapp.model import Document
from tests.campaign import TIMEOUT_SECONDS, Campaign, run_batch
from tests.cluster.conftest import PREFIX
from tests.profile import FULL
from tests.server.cluster import Cluster

BATCHES = 20 if FULL else 1
FAULTS = 5 if FULL else 2

pytestmark = pytest.mark.timeout(3600 if FULL else 600)


@dataclass
class ClusterCampaign(Campaign):
    """Faults of a single node, and nodes that are paused, or killed and started again."""

    cluster: Cluster | None = None

    def disturb(self, before: list[Document], documents: list[Document], after: list[Document]) -> None:
        number = sum(self.counts.values()) % FAULTS
        if number == 1:
            self.pause(documents, after)
        elif number == 3:
            self.kill(documents)
        else:
            super().disturb(before, documents, after)

    def pause(self, documents: list[Document], after: list[Document]) -> None:
        """Pause the node of a builder until the builder has ended; the node executes its last requests later."""
        assert self.cluster is not None
        paused = self.dice.choice(self.cluster.nodes[1:])
        other_urls = ",".join(node.url for node in self.cluster.nodes if node is not paused)
        position = self.dice.randrange(len(documents))

        def pause_node() -> Iterator[Document]:
            for number, document in enumerate(documents):
                if number == position:
                    paused.pause()
                yield document

        built = self.try_build(
            paused.url, documents, patience=0.2, timeout=TIMEOUT_SECONDS, source=pause_node()
        )
        assert not built
        timer = threading.Timer(self.dice.uniform(0, 5), paused.resume)
        timer.start()
        try:
            self.try_build(other_urls, after, patience=60.0)
        finally:
            timer.join()
        self.cluster.await_complete(status="yellow")
        self.count("node paused until its builder ended")

    def kill(self, documents: list[Document]) -> None:
        """Kill a node during a build, and start it again at once."""
        assert self.cluster is not None
        killed = self.dice.choice(self.cluster.nodes[1:])
        position = self.dice.randrange(len(documents))
        readings = 0

        class DocumentsWithKill:
            def __iter__(self) -> Iterator[Document]:
                nonlocal readings
                readings += 1
                for number, document in enumerate(documents):
                    if number == position and readings == 1:
                        killed.kill()
                        killed.launch()
                    yield document

        self.try_build(",".join(self.cluster.urls), documents, patience=60.0, source=DocumentsWithKill())
        self.cluster.start()
        self.count("node killed and restarted")


@pytest.mark.parametrize("batch", range(BATCHES))
def test_faults_leave_no_wrong_document(
    cluster: Cluster,
    tmp_path: Path,
    batch: int,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shards, "LOST_SECONDS", 3.0)
    monkeypatch.setattr(client, "ALIVE_AFTER_SECONDS", TIMEOUT_SECONDS / 3)
    monkeypatch.setattr(client, "ALIVE_SECONDS", TIMEOUT_SECONDS / 3)
    settings = Settings(home=tmp_path, index_prefix=PREFIX)
    campaign = ClusterCampaign(settings, cluster.nodes[0].url, seed=batch, shards=3, cluster=cluster)
    run_batch(request.node.name, campaign, FAULTS)
