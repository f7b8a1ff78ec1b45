"""Failures of the server or the connection during work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine, connection, indexing
from searchapp.errors import EngineError, EngineRefused, EngineUnreachable, QueryRefused
from searchapp.model import Document
from tests.engines.conftest import GROUPS, match, spec_of
from tests.profile import FULL
from tests.server.distribution import RELEASES
from tests.server.faults import FaultProxy, NotElasticsearch, OldElasticsearch
from tests.server.node import Node
from tests.server.rest import Server

BULK = r"/_bulk$"
MSEARCH = r"/_msearch$"


PATIENCE = 2.0


@pytest.fixture(autouse=True)
def short_patience(short_waits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten waits and patience, which do not change the attempts and messages that are tested."""
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", PATIENCE)


def test_a_server_that_is_not_elasticsearch_is_rejected(tmp_path: Path) -> None:
    with NotElasticsearch() as server, pytest.raises(EngineRefused, match="not an Elasticsearch"):
        ElasticsearchEngine.connect(Settings(home=tmp_path, url=server.url))


def test_an_outdated_server_is_rejected(tmp_path: Path) -> None:
    with OldElasticsearch() as server:
        with pytest.raises(
            EngineRefused, match="runs Elasticsearch 8.17.0, and searchapp works with 8.19 and 9.x: "
        ):
            ElasticsearchEngine.connect(Settings(home=tmp_path, url=server.url))


def test_requests_to_a_busy_server_are_repeated(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy
) -> None:
    fault_proxy.reject(3, path=BULK)
    behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    fault_proxy.reject(3, path=MSEARCH)
    (hits,) = behind_proxy.open("groups").search([match("field")])
    assert [hit.document_id for hit in hits] == ["3"]
    assert fault_proxy.count(path=BULK) == 4
    assert fault_proxy.count(path=MSEARCH) == 4


def test_a_single_rejected_document_is_sent_again(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy
) -> None:
    fault_proxy.reject_documents({"2", "3"})
    assert behind_proxy.build("groups", spec_of(GROUPS), GROUPS).documents == len(GROUPS)
    assert fault_proxy.count(path=BULK) == 2


def test_the_first_request_waits_for_the_election_of_a_master(
    fault_proxy: FaultProxy, settings_for: Callable[..., Settings]
) -> None:
    fault_proxy.unavailable(3)
    with closing(ElasticsearchEngine.connect(settings_for(fault_proxy.url))) as engine:
        assert engine.info().version in RELEASES
    assert fault_proxy.count() == 4


def test_a_bad_gateway_is_reported_at_once(
    fault_proxy: FaultProxy, settings_for: Callable[..., Settings]
) -> None:
    """The address may be wrong."""
    fault_proxy.lose(None, status=502)
    with pytest.raises(EngineUnreachable, match="could not connect .*502"):
        ElasticsearchEngine.connect(settings_for(fault_proxy.url))
    assert fault_proxy.count() == 1


def test_a_full_disk_is_reported_at_once(behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy) -> None:
    """The server sends status 429 for a full disk too, but repetition does not help."""
    reason = "index [x] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark]"
    fault_proxy.answer(429, "cluster_block_exception", reason, path=BULK, times=None)
    with pytest.raises(EngineRefused, match="is read-only .*flood-stage.*; free disk space"):
        behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    assert fault_proxy.count(path=BULK) == 1


def test_a_disk_that_fills_during_a_build_leaves_no_new_version(
    engine: ElasticsearchEngine,
    elasticsearch_url: str,
    index_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The block of the server, on the new version and the locks, still allows deletions."""
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 1)
    server, blocked = Server(elasticsearch_url), "index.blocks.read_only_allow_delete"
    old = engine.build("groups", spec_of(GROUPS), GROUPS)

    def filling() -> Iterator[Document]:
        for number, document in enumerate(GROUPS):
            if number == 1:
                answer = server.request("PUT", f"/{index_prefix}-*/_settings", {blocked: True})
                assert answer.status == 200, answer.body
            yield document

    message = r"could not index the document \d+: .* is read-only .*; free disk space or remove the block"
    with pytest.raises(EngineRefused, match=message):
        engine.build("groups", spec_of(GROUPS[:3]), filling())
    assert [version.info for version in engine._versions("groups").all()] == [old]
    server.request("PUT", f"/{index_prefix}-*/_settings", {blocked: None})
    assert engine.build("groups", spec_of(GROUPS[:3]), GROUPS[:3]).documents == 3


@pytest.mark.parametrize("path", [BULK, MSEARCH, r"/_refresh$", r"/_aliases$"])
def test_requests_with_truncated_responses_are_repeated(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy, path: str
) -> None:
    fault_proxy.cut(1, path=path)
    behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    (hits,) = behind_proxy.open("groups").search([match("field")])
    assert [hit.document_id for hit in hits] == ["3"]


@pytest.mark.parametrize("times", [1, 6])
def test_lost_responses_to_the_swap_lose_no_version(
    behind_proxy: ElasticsearchEngine, engine: ElasticsearchEngine, fault_proxy: FaultProxy, times: int
) -> None:
    """The server swaps, but the response, or all six responses, are lost."""
    engine.build("groups", spec_of(GROUPS), GROUPS)
    fault_proxy.cut(times, path=r"/_aliases$")
    new = behind_proxy.build("groups", spec_of(GROUPS[:3]), GROUPS[:3])
    assert engine.index_info("groups") == new
    assert [version.info for version in engine._versions("groups").all()] == [new]
    assert len(engine.open("groups").find({"query": {"match_all": {}}})) == 3


def test_the_position_of_a_rejected_query_is_reported(engine: ElasticsearchEngine) -> None:
    engine.build("groups", spec_of(GROUPS), GROUPS)
    too_long = match(" ".join(f"word{number}" for number in range(20_000)))
    bodies = [match("group")] * 70 + [too_long] + [match("group")]
    with pytest.raises(QueryRefused, match="maxClauseCount|too many") as error:
        list(engine.open("groups").search(bodies))
    assert error.value.place == 70


@pytest.mark.parametrize("path", [BULK, r"/_refresh$"])
def test_a_server_that_stays_busy_is_abandoned_after_a_limited_time(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy, path: str
) -> None:
    fault_proxy.reject(None, path=path)
    start = time.monotonic()
    with pytest.raises(EngineRefused, match=r"too busy to .* even after \d+ s"):
        behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    assert PATIENCE <= time.monotonic() - start < 10 * PATIENCE
    assert fault_proxy.count(path=path) > 5
    fault_proxy.heal()
    assert behind_proxy.index_info("groups") is None


def test_a_document_that_stays_rejected_is_named(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy
) -> None:
    fault_proxy.reject_documents({"2"}, times=None)
    with pytest.raises(EngineRefused, match=r"too busy to index the document 2, even after \d+ s"):
        behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    assert fault_proxy.count(path=BULK) > 5


def test_searches_on_a_server_that_stays_busy_end(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy
) -> None:
    behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    index = behind_proxy.open("groups")
    fault_proxy.reject(None, path=MSEARCH)
    with pytest.raises(EngineRefused, match=r"too busy to search .* even after \d+ s"):
        list(index.search([match("field")]))
    assert fault_proxy.count(path=MSEARCH) > 5


def test_requests_are_repeated_after_gateway_errors(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy
) -> None:
    fault_proxy.unavailable(2, path=BULK)
    fault_proxy.unavailable(2, path=MSEARCH)
    behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    assert len(list(behind_proxy.open("groups").search([match("field")]))) == 1


def test_a_timeout_is_reported(fault_proxy: FaultProxy, settings_for: Callable[..., Settings]) -> None:
    settings = settings_for(fault_proxy.url)
    impatient = connection.Connection.open(settings, attempts=2, timeout=0.5)
    with closing(ElasticsearchEngine(impatient, settings.index_prefix)) as engine:
        engine.build("groups", spec_of(GROUPS), GROUPS)
        index = engine.open("groups")
        fault_proxy.delay(3.0, times=None, path=MSEARCH)
        with pytest.raises(EngineUnreachable, match="did not answer in"):
            list(index.search([match("field")]))


def test_a_lost_connection_leaves_the_old_version_live(
    behind_proxy: ElasticsearchEngine,
    engine: ElasticsearchEngine,
    fault_proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = engine.build("groups", spec_of(GROUPS), GROUPS)
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 1)
    fault_proxy.refuse_from(2, path=BULK)
    messages: list[str] = []
    behind_proxy._connection.notify = messages.append
    with pytest.raises(EngineUnreachable, match=r"could not send documents to [\w-]+: start it"):
        behind_proxy.build("groups", spec_of(GROUPS[:3]), GROUPS[:3])
    assert messages[-1] == f"{old.version} is still live"
    assert engine.index_info("groups") == old

    fault_proxy.heal()
    new = behind_proxy.build("groups", spec_of(GROUPS[:3]), GROUPS[:3])
    assert engine.index_info("groups") == new


NODE_FAULTS: dict[str, tuple[Callable[[Node], None], str]] = {
    "killed": (Node.kill, "no Elasticsearch answers at "),
    "frozen": (Node.pause, "did not answer in "),
}
"""Faults of a node and their messages. A killed node must start again, so only the full profile kills it."""


@pytest.mark.parametrize("fault", list(NODE_FAULTS) if FULL else ["frozen"])
def test_a_node_that_fails_during_a_build_and_recovers(
    secured_node: Node,
    settings_for: Callable[..., Settings],
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
) -> None:
    """The node fails between two bulk requests; then the old version is live, and the next build succeeds."""
    settings = settings_for(
        secured_node.url,
        username=secured_node.username,
        password=secured_node.password,
        ca_certs=secured_node.ca_certs,
    )
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 1)
    monkeypatch.setattr(connection, "TIDYING_SECONDS", PATIENCE)
    fail, message = NODE_FAULTS[fault]
    own = connection.Connection.open(settings, timeout=5.0)
    with closing(ElasticsearchEngine(own, settings.index_prefix)) as engine:
        old = engine.build("groups", spec_of(GROUPS), GROUPS)

        def losing() -> Iterator[Document]:
            for number, document in enumerate(GROUPS[:3]):
                if number == 2:
                    fail(secured_node)
                yield document

        try:
            with pytest.raises(EngineError, match=message):
                engine.build("groups", spec_of(GROUPS[:3]), losing())
        finally:
            secured_node.recover()
        assert engine.index_info("groups") == old
        new = engine.build("groups", spec_of(GROUPS[:3]), GROUPS[:3])
        assert engine.index_info("groups") == new
        assert [version.info for version in engine._versions("groups").all()] == [new]
