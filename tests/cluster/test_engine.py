"""A cluster of three real nodes, one of which is killed, frozen or gone while an index is built or searched.

Requests go to the first node; it is another one that fails.
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
from tests.cluster.meanwhile import after
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
def once(told: threading.Event, action: Callable[[], None]) -> Iterator[None]:
    """Run an action as soon as something was told, or after 30 seconds: a busy machine may take its time."""

    def run() -> None:
        told.wait(30)
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
def test_every_copy_ranks_as_one_shard_alone_does(
    cluster: Cluster, engine: ElasticsearchEngine, documents: list[Document], bodies: list[Body], shards: int
) -> None:
    bodies = bodies if FULL else bodies[::2]
    engine.build("one", replace(spec_of(documents), replicas=0), documents)
    alone = ranked(engine, bodies, "one")
    said: list[str] = []
    engine._connection.notify = said.append
    info = engine.build("words", replace(spec_of(documents, shards=shards), replicas=2), documents)
    assert len(copies.copies(engine._connection, info.version, shards).copies) == 3 * shards and not said
    for _ in range(3):  # each time the cluster chooses which copies answer
        assert ranked(engine, bodies) == alone


class Slowly:
    """Documents that come over some seconds; each time that they are asked for."""

    def __init__(self, documents: list[Document], seconds: float) -> None:
        self.documents = documents
        self.seconds = seconds
        self.readings = 0

    def __iter__(self) -> Iterator[Document]:
        self.readings += 1
        for place, document in enumerate(self.documents):
            if place % 100 == 0:
                time.sleep(self.seconds * 100 / len(self.documents))
            yield document


def other_than_first(cluster: Cluster, index: str) -> Node:
    """A node that holds a primary of the index, and is not the one that requests go to."""
    held = [cluster.holder(index, shard) for shard in range(SHARDS)]
    return next(node for node in held if node is not cluster.nodes[0])


FAULTS: dict[str, Callable[[Node], None]] = {"killed": Node.kill, "frozen": Node.pause}
LOST = list(FAULTS) if FULL else ["frozen"]
"""The short profile kills a node in `test_kills` alone: it has to start again, where a frozen one only goes on."""


@pytest.mark.parametrize("fault", LOST)
@pytest.mark.parametrize("_time", range(TIMES))
def test_a_node_lost_while_topics_are_ranked_changes_nothing(
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
    begun = time.monotonic()  # and as long as it is gone, another index can be built
    engine.build("more", spec_of(documents, shards=SHARDS), documents)
    assert time.monotonic() - begun < 90
    assert ranked(engine, bodies, "more") == undisturbed


@pytest.mark.parametrize("fault", LOST)
@pytest.mark.parametrize("_time", range(TIMES))
def test_a_node_lost_while_an_index_is_built_costs_a_new_start_at_most(
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
    said: list[str] = []
    engine._connection.notify = said.append
    source = Slowly(documents, 4)

    def fail() -> None:
        (version,) = cluster.server.request("GET", "/_alias/test-cluster-words-*-building-*").json()
        FAULTS[fault](other_than_first(cluster, version))

    begun = time.monotonic()
    with meanwhile(fail, after=3):
        engine.build("words", spec_of(documents, shards=SHARDS), source)
    assert time.monotonic() - begun < 90
    assert source.readings == 2 and "starting over" in " ".join(said)
    assert ranked(engine, bodies) == ranked(engine, bodies, "undisturbed")


def test_documents_that_can_be_drawn_once_are_not_begun_anew(
    cluster: Cluster, engine: ElasticsearchEngine, documents: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "LOST_SECONDS", 2.0)
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 100)

    def once() -> Iterator[Document]:
        for place, document in enumerate(documents):
            if place == len(documents) // 2:
                (version,) = cluster.server.request("GET", "/_alias/test-cluster-words-*-building-*").json()
                other_than_first(cluster, version).pause()
            yield document

    with pytest.raises(EngineUnreachable, match=r"shards? .* without a node for 2 s: .* index again"):
        engine.build("words", spec_of(documents, shards=SHARDS), once())


def without_replicas(cluster: Cluster, index: str) -> None:
    settings = {"index.auto_expand_replicas": False, "index.number_of_replicas": 0}
    assert cluster.server.request("PUT", f"/{index}/_settings", settings).status == 200


@pytest.mark.parametrize("fault", LOST)
def test_shards_that_are_gone_are_waited_for_and_never_left_out(
    cluster: Cluster, engine: ElasticsearchEngine, documents: list[Document], bodies: list[Body], fault: str
) -> None:
    """No replica serves in their place: an answer without them must not be used."""
    engine.build("words", spec_of(documents, shards=SHARDS), documents)
    undisturbed = ranked(engine, bodies)
    without_replicas(cluster, "test-cluster-words")
    cluster.await_whole()
    index = engine.open("words")
    version = index.info.version
    FAULTS[fault](other_than_first(cluster, "test-cluster-words"))

    engine._connection.own_patience = 3
    begun = time.monotonic()
    sentence = rf"searched only some shards of {version}, even after 3 s .*: check the cluster's health"
    with pytest.raises(EngineUnreachable, match=sentence):
        list(index.search(bodies))
    with pytest.raises(EngineUnreachable, match=sentence):
        index.find(bodies[0])
    assert time.monotonic() - begun < 60  # not the minutes of a batch

    said: list[str] = []
    told = threading.Event()

    def notify(sentence: str) -> None:
        said.append(sentence)
        told.set()

    engine._connection.notify = notify
    engine._connection.own_patience = connection.PATIENCE_SECONDS
    with once(told, cluster.recover):
        assert list(index.search(bodies)) == undisturbed
    (sentence,) = said
    assert f"could not search in {version} yet: trying again for up to 120 s" in sentence


def test_every_copy_is_looked_at_for_deleted_documents(
    cluster: Cluster, engine: ElasticsearchEngine, documents: list[Document]
) -> None:
    info = engine.build("words", spec_of(documents), documents)
    assert len(copies.copies(engine._connection, info.version, 1).copies) == 2
    spoil(cluster.nodes[0].url, "test-cluster-words")
    with pytest.raises(EngineRefused, match="has 1 deleted copy"):  # one, on each copy
        engine.open("words")
