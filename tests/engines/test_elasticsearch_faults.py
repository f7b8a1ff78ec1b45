"""What the engine does when the server, or the way to it, fails in the middle of the work."""

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
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits of milliseconds and little patience: what is tested is what is tried, and what is said in the end."""
    monkeypatch.setattr(connection, "PATIENCE_SECONDS", PATIENCE)
    monkeypatch.setattr(connection, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(connection, "LONGEST_WAIT_SECONDS", 0.1)


def test_a_server_that_is_not_elasticsearch(tmp_path: Path) -> None:
    with NotElasticsearch() as server, pytest.raises(EngineRefused, match="not an Elasticsearch"):
        ElasticsearchEngine.connect(Settings(home=tmp_path, url=server.url))


def test_a_server_that_is_too_old(tmp_path: Path) -> None:
    with OldElasticsearch() as server:
        with pytest.raises(
            EngineRefused, match="runs Elasticsearch 8.17.0, and searchapp works with 8.19 and 9.x: "
        ):
            ElasticsearchEngine.connect(Settings(home=tmp_path, url=server.url))


def test_a_busy_server_is_asked_again(behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy) -> None:
    fault_proxy.reject(3, path=BULK)
    behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    fault_proxy.reject(3, path=MSEARCH)
    (hits,) = behind_proxy.open("groups").search([match("field")])
    assert [hit.document_id for hit in hits] == ["3"]
    assert fault_proxy.count(path=BULK) == 4
    assert fault_proxy.count(path=MSEARCH) == 4


def test_a_document_that_is_rejected_alone_is_sent_again(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy
) -> None:
    fault_proxy.reject_documents({"2", "3"})
    assert behind_proxy.build("groups", spec_of(GROUPS), GROUPS).documents == len(GROUPS)
    assert fault_proxy.count(path=BULK) == 2


def test_a_cluster_that_chooses_a_master_is_waited_for_at_the_first_request(
    fault_proxy: FaultProxy, settings_for: Callable[..., Settings]
) -> None:
    fault_proxy.unavailable(3)
    with closing(ElasticsearchEngine.connect(settings_for(fault_proxy.url))) as engine:
        assert engine.info().version in RELEASES
    assert fault_proxy.count() == 4


def test_a_gateway_without_a_server_behind_it_is_told_at_once(
    fault_proxy: FaultProxy, settings_for: Callable[..., Settings]
) -> None:
    """It may as well be a wrong address."""
    fault_proxy.lose(None, status=502)
    with pytest.raises(EngineUnreachable, match="could not connect .*502"):
        ElasticsearchEngine.connect(settings_for(fault_proxy.url))
    assert fault_proxy.count() == 1


def test_a_full_disk_is_told_at_once(behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy) -> None:
    """The server answers 429 to that as well, but no patience helps."""
    reason = "index [x] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark]"
    fault_proxy.answer(429, "cluster_block_exception", reason, path=BULK, times=None)
    with pytest.raises(EngineRefused, match="is read-only .*flood-stage.*; free disk space"):
        behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    assert fault_proxy.count(path=BULK) == 1


def test_a_disk_that_is_full_in_the_middle_leaves_nothing(
    engine: ElasticsearchEngine,
    elasticsearch_url: str,
    index_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The block that the server sets itself, on what is built and on the locks: what is left can still be deleted."""
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 1)
    server, blocked = Server(elasticsearch_url), "index.blocks.read_only_allow_delete"
    old = engine.build("groups", spec_of(GROUPS), GROUPS)

    def filling() -> Iterator[Document]:
        for place, document in enumerate(GROUPS):
            if place == 1:
                answer = server.request("PUT", f"/{index_prefix}-*/_settings", {blocked: True})
                assert answer.status == 200, answer.body
            yield document

    sentence = r"could not index the document \d+: .* is read-only .*; free disk space or remove the block"
    with pytest.raises(EngineRefused, match=sentence):
        engine.build("groups", spec_of(GROUPS[:3]), filling())
    assert [version.info for version in engine._versions("groups").all()] == [old]
    server.request("PUT", f"/{index_prefix}-*/_settings", {blocked: None})
    assert engine.build("groups", spec_of(GROUPS[:3]), GROUPS[:3]).documents == 3


@pytest.mark.parametrize("path", [BULK, MSEARCH, r"/_refresh$", r"/_aliases$"])
def test_an_answer_that_breaks_off_is_asked_for_again(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy, path: str
) -> None:
    fault_proxy.cut(1, path=path)
    behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    (hits,) = behind_proxy.open("groups").search([match("field")])
    assert [hit.document_id for hit in hits] == ["3"]


@pytest.mark.parametrize("times", [1, 6])
def test_a_lost_answer_to_the_swap_loses_no_version(
    behind_proxy: ElasticsearchEngine, engine: ElasticsearchEngine, fault_proxy: FaultProxy, times: int
) -> None:
    """The server has swapped, but its answer, or all six of them, never arrive."""
    engine.build("groups", spec_of(GROUPS), GROUPS)
    fault_proxy.cut(times, path=r"/_aliases$")
    new = behind_proxy.build("groups", spec_of(GROUPS[:3]), GROUPS[:3])
    assert engine.index_info("groups") == new
    assert [version.info for version in engine._versions("groups").all()] == [new]
    assert len(engine.open("groups").find({"query": {"match_all": {}}})) == 3


def test_the_topic_of_a_refused_query_can_be_told(engine: ElasticsearchEngine) -> None:
    engine.build("groups", spec_of(GROUPS), GROUPS)
    too_long = match(" ".join(f"word{number}" for number in range(20_000)))
    bodies = [match("group")] * 70 + [too_long] + [match("group")]
    with pytest.raises(QueryRefused, match="maxClauseCount|too many") as caught:
        list(engine.open("groups").search(bodies))
    assert caught.value.place == 70


@pytest.mark.parametrize("path", [BULK, r"/_refresh$"])
def test_a_server_that_stays_busy_is_given_up_after_a_bounded_time(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy, path: str
) -> None:
    fault_proxy.reject(None, path=path)
    begun = time.monotonic()
    with pytest.raises(EngineRefused, match="too busy to .* even after 2 s"):
        behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    assert PATIENCE <= time.monotonic() - begun < 10 * PATIENCE
    assert fault_proxy.count(path=path) > 5
    fault_proxy.heal()
    assert behind_proxy.index_info("groups") is None


def test_a_document_that_stays_rejected_is_named(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy
) -> None:
    fault_proxy.reject_documents({"2"}, times=None)
    with pytest.raises(EngineRefused, match="too busy to index the document 2, even after 2 s"):
        behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    assert fault_proxy.count(path=BULK) > 5


def test_searching_a_server_that_stays_busy_ends(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy
) -> None:
    behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    index = behind_proxy.open("groups")
    fault_proxy.reject(None, path=MSEARCH)
    with pytest.raises(EngineRefused, match="too busy to search .* even after 2 s"):
        list(index.search([match("field")]))
    assert fault_proxy.count(path=MSEARCH) > 5


def test_a_gateway_error_passes(behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy) -> None:
    fault_proxy.unavailable(2, path=BULK)
    fault_proxy.unavailable(2, path=MSEARCH)
    behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    assert len(list(behind_proxy.open("groups").search([match("field")]))) == 1


def test_a_server_that_does_not_answer_in_time(
    fault_proxy: FaultProxy, settings_for: Callable[..., Settings]
) -> None:
    settings = settings_for(fault_proxy.url)
    impatient = connection.Connection.open(settings, attempts=2, timeout=0.5)
    with closing(ElasticsearchEngine(impatient, settings.index_prefix)) as engine:
        engine.build("groups", spec_of(GROUPS), GROUPS)
        index = engine.open("groups")
        fault_proxy.delay(3.0, times=None, path=MSEARCH)
        with pytest.raises(EngineUnreachable, match="did not answer in"):
            list(index.search([match("field")]))


def test_a_connection_lost_while_indexing_leaves_the_old_version(
    behind_proxy: ElasticsearchEngine,
    engine: ElasticsearchEngine,
    fault_proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = engine.build("groups", spec_of(GROUPS), GROUPS)
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 1)
    fault_proxy.refuse_from(2, path=BULK)
    said: list[str] = []
    behind_proxy._connection.notify = said.append
    with pytest.raises(EngineUnreachable, match=r"could not send documents to [\w-]+: start it"):
        behind_proxy.build("groups", spec_of(GROUPS[:3]), GROUPS[:3])
    assert said[-1] == f"{old.version} is still live"
    assert engine.index_info("groups") == old

    fault_proxy.heal()
    new = behind_proxy.build("groups", spec_of(GROUPS[:3]), GROUPS[:3])
    assert engine.index_info("groups") == new


LOST: dict[str, tuple[Callable[[Node], None], str]] = {
    "killed": (Node.kill, "no Elasticsearch answers at "),
    "frozen": (Node.pause, "did not answer in "),
}
"""What is done to a node, and what is said of it. A killed one has to start again: in the full profile."""


@pytest.mark.parametrize("fault", list(LOST) if FULL else ["frozen"])
def test_a_node_that_is_lost_half_way_and_comes_back(
    secured_node: Node,
    settings_for: Callable[..., Settings],
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
) -> None:
    """A real node, lost between two bulk requests; after its return the old version serves, the next builds."""
    settings = settings_for(
        secured_node.url,
        username=secured_node.username,
        password=secured_node.password,
        ca_certs=secured_node.ca_certs,
    )
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 1)
    monkeypatch.setattr(connection, "TIDYING_SECONDS", PATIENCE)
    lose, said = LOST[fault]
    own = connection.Connection.open(settings, timeout=5.0)
    with closing(ElasticsearchEngine(own, settings.index_prefix)) as engine:
        old = engine.build("groups", spec_of(GROUPS), GROUPS)

        def losing() -> Iterator[Document]:
            for place, document in enumerate(GROUPS[:3]):
                if place == 2:
                    lose(secured_node)
                yield document

        try:
            with pytest.raises(EngineError, match=said):
                engine.build("groups", spec_of(GROUPS[:3]), losing())
        finally:
            secured_node.recover()
        assert engine.index_info("groups") == old
        new = engine.build("groups", spec_of(GROUPS[:3]), GROUPS[:3])
        assert engine.index_info("groups") == new
        assert [version.info for version in engine._versions("groups").all()] == [new]
