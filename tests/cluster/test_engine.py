"""Loss of a cluster's node while an index is built or searched.

Requests go to the first node, and another one fails.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine, connection, indexing, searching
from searchapp.engines.elasticsearch import shards as copies
from searchapp.errors import EngineRefused, EngineUnreachable
from searchapp.model import Body, Document, Hits
from tests.cluster.conftest import KILLS, PREFIX
from tests.cluster.triggers import after
from tests.engines.conftest import match, spec_of, spoil
from tests.profile import FULL
from tests.server.cluster import Cluster
from tests.server.node import Node

pytestmark = pytest.mark.timeout(3600 if FULL else 600)

TIMES = KILLS
WORDS = [f"word{number}" for number in range(60)]
SHARDS = 3


@pytest.fixture
def engine(cluster: Cluster, tmp_path: Path) -> Iterator[ElasticsearchEngine]:
    settings = Settings(home=tmp_path, url=cluster.nodes[0].url, index_prefix=PREFIX)
    with closing(ElasticsearchEngine.connect(settings)) as engine:
        yield engine


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    dice = random.Random(1)
    return [
        Document(f"d{number}", " ".join(dice.choices(WORDS, k=12))) for number in range(1500 if FULL else 600)
    ]


@pytest.fixture(scope="module")
def bodies() -> list[Body]:
    dice = random.Random(2)
    return [match(" ".join(dice.choices(WORDS, k=4)), 50) for _ in range(640 if FULL else 48)]


@contextmanager
def meanwhile(action: Callable[[], None], after: float) -> Iterator[None]:
    """Run an action, some seconds into the block."""
    timer = threading.Timer(after, action)
    timer.start()
    try:
        yield
    finally:
        timer.join()


@contextmanager
def run_after(event: threading.Event, action: Callable[[], None]) -> Iterator[None]:
    """Run an action after an event, or after 30 seconds, because a busy machine can be slow."""

    def run() -> None:
        event.wait(30)
        action()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def ranked(engine: ElasticsearchEngine, bodies: list[Body], name: str = "words") -> list[Hits]:
    return list(engine.open(name).search(bodies))


@pytest.mark.parametrize("shards", [1, 3, 7] if FULL else [3])
def test_every_copy_ranks_like_a_single_shard(
    cluster: Cluster, engine: ElasticsearchEngine, documents: list[Document], bodies: list[Body], shards: int
) -> None:
    bodies = bodies if FULL else bodies[::2]
    engine.build("one", replace(spec_of(documents), replicas=0), documents)
    expected = ranked(engine, bodies, "one")
    messages: list[str] = []
    engine._connection.notify = messages.append
    info = engine.build("words", replace(spec_of(documents, shards=shards), replicas=2), documents)
    assert len(copies.copies(engine._connection, info.version, shards).copies) == 3 * shards and not messages
    for _ in range(3):  # each time the cluster selects other copies
        assert ranked(engine, bodies) == expected


class SlowDocuments:
    """Documents whose iteration takes some seconds; `readings` counts the iterations."""

    def __init__(self, documents: list[Document], seconds: float) -> None:
        self.documents = documents
        self.seconds = seconds
        self.readings = 0

    def __iter__(self) -> Iterator[Document]:
        self.readings += 1
        for number, document in enumerate(self.documents):
            if number % 100 == 0:
                time.sleep(self.seconds * 100 / len(self.documents))
            yield document


def other_than_first(cluster: Cluster, index: str) -> Node:
    """Return a node with a primary of the index, other than the one that gets the requests."""
    holders = [cluster.holder(index, shard) for shard in range(SHARDS)]
    return next(node for node in holders if node is not cluster.nodes[0])


FAULTS: dict[str, Callable[[Node], None]] = {"killed": Node.kill, "frozen": Node.pause}
TESTED_FAULTS = list(FAULTS) if FULL else ["frozen"]
"""The short profile kills nodes only in `test_kills`, because they must start again."""


@pytest.mark.parametrize("fault", TESTED_FAULTS)
@pytest.mark.parametrize("_time", range(TIMES))
def test_the_loss_of_a_node_changes_no_ranking(
    cluster: Cluster,
    engine: ElasticsearchEngine,
    documents: list[Document],
    bodies: list[Body],
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    _time: int,
) -> None:
    monkeypatch.setattr(searching, "BATCH_BODIES", min(64, len(bodies) // 2))
    engine.build("words", spec_of(documents, shards=SHARDS), documents)
    undisturbed = ranked(engine, bodies)
    victim = other_than_first(cluster, "test-cluster-words")
    with after(random.randint(1, 4), "/_msearch$", lambda: FAULTS[fault](victim)):
        assert ranked(engine, bodies * 3) == undisturbed * 3
    start = time.monotonic()  # another index can be built without the node
    engine.build("more", spec_of(documents, shards=SHARDS), documents)
    assert time.monotonic() - start < 90
    assert ranked(engine, bodies, "more") == undisturbed


@pytest.mark.parametrize("fault", TESTED_FAULTS)
@pytest.mark.parametrize("_time", range(TIMES))
def test_the_loss_of_a_node_restarts_a_build_at_most_once(
    cluster: Cluster,
    engine: ElasticsearchEngine,
    documents: list[Document],
    bodies: list[Body],
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    _time: int,
) -> None:
    monkeypatch.setattr(copies, "LOST_SECONDS", 3.0)
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 100)
    engine.build("undisturbed", spec_of(documents, shards=SHARDS), documents)
    messages: list[str] = []
    engine._connection.notify = messages.append
    source = SlowDocuments(documents, 4)

    def fail() -> None:
        (version,) = cluster.server.request("GET", "/_alias/test-cluster-words-*-building-*").json()
        FAULTS[fault](other_than_first(cluster, version))

    start = time.monotonic()
    with meanwhile(fail, after=3):
        engine.build("words", spec_of(documents, shards=SHARDS), source)
    assert time.monotonic() - start < 90
    assert source.readings == 2 and "starting over" in " ".join(messages)
    assert ranked(engine, bodies) == ranked(engine, bodies, "undisturbed")


def test_a_build_of_documents_that_can_be_read_only_once_is_not_restarted(
    cluster: Cluster, engine: ElasticsearchEngine, documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "LOST_SECONDS", 2.0)
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 100)

    def pause_halfway() -> Iterator[Document]:
        for number, document in enumerate(documents):
            if number == len(documents) // 2:
                (version,) = cluster.server.request("GET", "/_alias/test-cluster-words-*-building-*").json()
                other_than_first(cluster, version).pause()
            yield document

    with pytest.raises(EngineUnreachable, match=r"shards? .* without a node for 2 s: .* index again"):
        engine.build("words", spec_of(documents, shards=SHARDS), pause_halfway())


def remove_replicas(cluster: Cluster, index: str) -> None:
    settings = {"index.auto_expand_replicas": False, "index.number_of_replicas": 0}
    assert cluster.server.request("PUT", f"/{index}/_settings", settings).status == 200


@pytest.mark.parametrize("fault", TESTED_FAULTS)
def test_missing_shards_are_waited_for_and_never_ignored(
    cluster: Cluster, engine: ElasticsearchEngine, documents: list[Document], bodies: list[Body], fault: str
) -> None:
    """The index has no replicas, and incomplete results must not be used."""
    engine.build("words", spec_of(documents, shards=SHARDS), documents)
    undisturbed = ranked(engine, bodies)
    remove_replicas(cluster, "test-cluster-words")
    cluster.await_complete()
    index = engine.open("words")
    version = index.info.version
    FAULTS[fault](other_than_first(cluster, "test-cluster-words"))

    engine._connection.own_patience = 3
    start = time.monotonic()
    message = rf"searched only some shards of {version}, even after 3 s .*: check the cluster's health"
    with pytest.raises(EngineUnreachable, match=message):
        list(index.search(bodies))
    with pytest.raises(EngineUnreachable, match=message):
        index.find(bodies[0])
    assert time.monotonic() - start < 60  # less than the minutes for a batch

    messages: list[str] = []
    notified = threading.Event()

    def notify(text: str) -> None:
        messages.append(text)
        notified.set()

    engine._connection.notify = notify
    engine._connection.own_patience = connection.PATIENCE_SECONDS
    with run_after(notified, cluster.recover):
        assert list(index.search(bodies)) == undisturbed
    (notification,) = messages
    assert f"could not search in {version} yet: trying again for up to 120 s" in notification


def test_every_copy_is_checked_for_deleted_documents(
    cluster: Cluster, engine: ElasticsearchEngine, documents: list[Document]
) -> None:
    info = engine.build("words", spec_of(documents), documents)
    assert len(copies.copies(engine._connection, info.version, 1).copies) == 2
    spoil(cluster.nodes[0].url, "test-cluster-words")
    with pytest.raises(EngineRefused, match="has 1 deleted copy"):  # one on each copy
        engine.open("words")
