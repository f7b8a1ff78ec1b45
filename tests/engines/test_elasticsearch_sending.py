"""Documents are sent once, in parallel and with bounded memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from searchapp.engines.base import Patience, current_patience
from searchapp.engines.elasticsearch import ElasticsearchEngine, connection, indexing
from searchapp.engines.elasticsearch.indexing import Senders
from searchapp.errors import EngineRefused
from searchapp.model import Document
from tests.engines.conftest import GROUPS, match, spec_of
from tests.server.faults import FaultProxy, Request, Response

MANY = [Document(str(number), f"group {number}") for number in range(100)]


class CountingBatches:
    """Batches that count how many of them are under way at most."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.sent = 0
        self.maximum = 0

    def __iter__(self) -> Iterator[int]:
        for number in range(self.count):
            self.maximum = max(self.maximum, number + 1 - self.sent)
            yield number


def test_only_as_many_batches_are_read_as_can_be_under_way() -> None:
    batches = CountingBatches(50)
    senders: Senders[int] = Senders(lambda _: time.sleep(0.001), 3)
    for _batch in senders.send_all(batches):
        batches.sent += 1
    assert batches.sent == 50 and batches.maximum <= 2 * 3 + 1


def test_several_batches_are_sent_at_once() -> None:
    barrier = threading.Barrier(3, timeout=10)  # breaks unless three threads reach it
    senders: Senders[int] = Senders(lambda _: _pass(barrier), 3)
    assert sorted(senders.send_all(range(3))) == [0, 1, 2]


def _pass(barrier: threading.Barrier) -> None:
    barrier.wait()


def test_no_batch_is_sent_after_a_failure() -> None:
    started: list[int] = []

    def send(batch: int) -> None:
        started.append(batch)
        if batch == 4:
            raise EngineRefused("no")
        time.sleep(0.01)

    with pytest.raises(EngineRefused):
        list(Senders(send, 2).send_all(range(100)))
    count = len(started)
    time.sleep(0.1)
    assert len(started) == count <= 4 + 2 * 2 + 1


def test_each_thread_has_the_patience_of_the_caller() -> None:
    patiences: list[Patience | None] = []
    senders: Senders[int] = Senders(lambda _: patiences.append(current_patience()), 2)
    patience = Patience(request_seconds=1, retry_seconds=1)
    with patience:
        list(senders.send_all(range(4)))
    assert patiences == [patience] * 4


def test_requests_are_bounded_by_bytes_as_well(
    engine: ElasticsearchEngine,
    behind_proxy: ElasticsearchEngine,
    fault_proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(indexing, "BATCH_BYTES", 1_000)
    documents = [*MANY, Document("long", "group " * 1_000)]
    behind_proxy.build("groups", spec_of(documents), documents)
    bulk = [request for request in fault_proxy.requests if request.path.endswith("/_bulk")]
    assert len(bulk) > 4
    assert len(engine.open("groups").find(match("group", 200))) == len(documents)


def test_a_too_large_request_is_sent_in_halves(
    behind_proxy: ElasticsearchEngine, engine: ElasticsearchEngine, fault_proxy: FaultProxy
) -> None:
    """A proxy can limit the bytes of a request."""
    _limit(fault_proxy, documents=30)
    behind_proxy.build("groups", spec_of(MANY), MANY)
    assert len(engine.open("groups").find(match("group", 200))) == len(MANY)


def test_a_document_that_is_too_large_alone_is_named(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy
) -> None:
    _limit(fault_proxy, documents=0)
    with pytest.raises(EngineRefused, match=r"rejects the document 1 of \d+ bytes: raise the limit"):
        behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    assert behind_proxy.index_info("groups") is None


def _limit(proxy: FaultProxy, documents: int) -> None:
    """Answer 413 to bulk requests of more documents."""

    def limited(request: Request) -> Response | None:
        import gzip

        body = gzip.decompress(request.body) if "content-encoding" in request.headers else request.body
        if len(body.splitlines()) > 2 * documents:
            return Response.of_json(413, {"error": "too large"})
        return proxy._forward(request)

    proxy._add(limited, None, "/_bulk$", None)


def test_only_rejected_documents_are_sent_again(
    behind_proxy: ElasticsearchEngine,
    engine: ElasticsearchEngine,
    fault_proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Accepted documents of the same requests are not sent again."""
    monkeypatch.setattr(connection, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 10)
    rejected = {str(number) for number in range(0, 100, 10)}
    fault_proxy.reject_documents(rejected, times=10)
    behind_proxy.build("groups", spec_of(MANY), MANY)
    bodies = [request.body for request in fault_proxy.requests if request.path.endswith("/_bulk")]
    assert len(bodies) == 20
    assert len(engine.open("groups").find(match("group", 200))) == len(MANY)
