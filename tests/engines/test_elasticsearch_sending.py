"""Documents sent in parallel, each once, with little in memory."""

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


class Counting:
    """Batches that know how many of them are drawn and not done yet."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.done = 0
        self.most = 0

    def __iter__(self) -> Iterator[int]:
        for number in range(self.count):
            self.most = max(self.most, number + 1 - self.done)
            yield number


def test_no_more_batches_are_drawn_than_can_be_under_way() -> None:
    batches = Counting(50)
    senders: Senders[int] = Senders(lambda _: time.sleep(0.001), 3)
    for _batch in senders.send_all(batches):
        batches.done += 1
    assert batches.done == 50 and batches.most <= 2 * 3 + 1


def test_several_are_sent_at_once() -> None:
    together = threading.Barrier(3, timeout=10)  # breaks unless three come
    senders: Senders[int] = Senders(lambda _: _pass(together), 3)
    assert sorted(senders.send_all(range(3))) == [0, 1, 2]


def _pass(barrier: threading.Barrier) -> None:
    barrier.wait()


def test_after_one_failure_nothing_more_is_begun() -> None:
    begun: list[int] = []

    def send(batch: int) -> None:
        begun.append(batch)
        if batch == 4:
            raise EngineRefused("no")
        time.sleep(0.01)

    with pytest.raises(EngineRefused):
        list(Senders(send, 2).send_all(range(100)))
    so_far = len(begun)
    time.sleep(0.1)
    assert len(begun) == so_far <= 4 + 2 * 2 + 1


def test_who_waits_is_known_to_each_thread() -> None:
    seen: list[Patience | None] = []
    senders: Senders[int] = Senders(lambda _: seen.append(current_patience()), 2)
    waiting = Patience(request_seconds=1, retry_seconds=1)
    with waiting:
        list(senders.send_all(range(4)))
    assert seen == [waiting] * 4


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


def test_what_is_too_large_at_once_is_sent_in_halves(
    behind_proxy: ElasticsearchEngine, engine: ElasticsearchEngine, fault_proxy: FaultProxy
) -> None:
    """As behind a proxy that takes no more than some bytes a request."""
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
    """Answer 413 for bulk requests of more than some documents."""

    def limited(request: Request) -> Response | None:
        import gzip

        body = gzip.decompress(request.body) if "content-encoding" in request.headers else request.body
        if len(body.splitlines()) > 2 * documents:
            return Response.of_json(413, {"error": "too large"})
        return proxy._forward(request)

    proxy._add(limited, None, "/_bulk$", None)


def test_rejected_documents_alone_are_sent_again(
    behind_proxy: ElasticsearchEngine,
    engine: ElasticsearchEngine,
    fault_proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three times for each of many requests at once; what was taken the first time is not sent again."""
    monkeypatch.setattr(connection, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 10)
    rejected = {str(number) for number in range(0, 100, 10)}
    fault_proxy.reject_documents(rejected, times=10)
    behind_proxy.build("groups", spec_of(MANY), MANY)
    bodies = [request.body for request in fault_proxy.requests if request.path.endswith("/_bulk")]
    assert len(bodies) == 20
    assert len(engine.open("groups").find(match("group", 200))) == len(MANY)
