"""Requests of a builder that died, which reach the server while another one builds, or later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine, connection, indexing
from searchapp.errors import EngineError, EngineRefused, EngineUnreachable
from searchapp.model import Document, IndexInfo
from tests.engines.conftest import deleted, spec_of
from tests.engines.test_elasticsearch_indexing import indexes
from tests.profile import FULL
from tests.server.faults import FaultProxy, Request, Response
from tests.server.rest import Server

OLD = [Document(str(number), f"an old text of {number}") for number in range(40)]
NEW = [Document(str(number), f"a new text of {number}") for number in range(60)]

BULK = r"/_bulk$"
SWAP = r"^/_aliases$"
SETTINGS = r"/_settings$"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(connection, "LONGEST_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(connection, "TIDYING_SECONDS", 1.0)
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 10)


def die(dying: FaultProxy, settings: Settings, documents: list[Document], act: str = "build") -> None:
    """Build or remove the index through a proxy that holds a request and then answers nothing any more."""
    own = connection.Connection.open(settings)
    own.own_patience = 0.2
    with closing(ElasticsearchEngine(own, settings.index_prefix)) as engine:
        with suppress(EngineUnreachable):
            if act == "build":
                engine.build("groups", spec_of(documents), documents)
            else:
                engine.remove("groups")
    assert dying.held, "the request that was to be held never came"


def require_sound(url: str, prefix: str, info: IndexInfo, documents: list[Document]) -> None:
    """Make sure, past the code under test, that a version alone serves, and holds exactly these documents once."""
    server = Server(url)
    alias = f"{prefix}-groups"
    assert indexes(url, prefix) == {info.version: [alias]}
    found = server.request("GET", f"/{alias}/_search?size=1000").json()["hits"]["hits"]
    assert {hit["_id"]: hit["_source"] for hit in found} == {one.id: one.source() for one in documents}
    assert len(found) == len(documents) and deleted(url, alias) == 0
    (described,) = server.request("GET", f"/{alias}/_settings").json().values()
    settings = described["settings"]["index"]
    assert settings["blocks"]["write"] == "true" and settings.get("refresh_interval") != "-1"
    assert settings["auto_expand_replicas"] == "0-1"


def releasing(before: int, dying: FaultProxy, target: FaultProxy, path: str = "") -> None:
    """Let what is held arrive just before the n-th request, to such a path, through another proxy."""

    def act(request: Request) -> Response | None:
        dying.release()
        return target._forward(request)

    target._add(act, None, path, 1, skip=before - 1)


def test_a_late_bulk_does_not_reach_the_index_that_is_built_after_a_removal(
    fault_proxy: FaultProxy,
    engine: ElasticsearchEngine,
    settings_for: Callable[..., Settings],
    elasticsearch_url: str,
    index_prefix: str,
) -> None:
    fault_proxy.hold(2, path=BULK)
    die(fault_proxy, settings_for(fault_proxy.url), OLD)
    engine.remove("groups")

    def late() -> Iterator[Document]:
        fault_proxy.release()
        yield from NEW

    info = engine.build("groups", spec_of(NEW), late())
    require_sound(elasticsearch_url, index_prefix, info, NEW)


def test_a_late_removal_does_not_reach_the_index_that_is_built_after_it(
    fault_proxy: FaultProxy,
    engine: ElasticsearchEngine,
    settings_for: Callable[..., Settings],
    elasticsearch_url: str,
    index_prefix: str,
) -> None:
    engine.build("groups", spec_of(OLD), OLD)
    fault_proxy.hold(1, method="DELETE")
    die(fault_proxy, settings_for(fault_proxy.url), [], "remove")
    engine.remove("groups")
    info = engine.build("groups", spec_of(NEW), NEW)
    fault_proxy.release()
    require_sound(elasticsearch_url, index_prefix, info, NEW)


@pytest.mark.parametrize("held", ["bulk", "swap", "settings", "block"])
def test_a_late_request_changes_nothing_wherever_it_meets_the_builder_that_goes_on(
    fault_proxy: FaultProxy,
    engine: ElasticsearchEngine,
    settings_for: Callable[..., Settings],
    elasticsearch_url: str,
    index_prefix: str,
    held: str,
) -> None:
    """The swap most of all: after it nothing of the new version was left where it met a certain window."""
    path = {"bulk": BULK, "swap": SWAP, "settings": SETTINGS, "block": r"/_block/write$"}[held]
    old = engine.build("groups", spec_of(OLD), OLD)
    requests = 0
    for before in range(2, 100, 3 if FULL else 40):
        with FaultProxy(elasticsearch_url) as dying, FaultProxy(elasticsearch_url) as meeting:
            dying.hold(2 if held == "bulk" else 1, path=path)
            die(dying, settings_for(dying.url), NEW)
            releasing(before, dying, meeting)
            with closing(ElasticsearchEngine.connect(settings_for(meeting.url))) as successor:
                # What was made to serve meanwhile is what this build would make: it may be refused, nothing else.
                with suppress(EngineError):
                    successor.build("groups", spec_of(NEW), NEW)
            dying.release()
            requests = meeting.count()
        serving = engine.index_info("groups")
        assert serving is not None
        if serving.version != old.version:
            again = engine.build("groups", spec_of(NEW), NEW)
            require_sound(elasticsearch_url, index_prefix, again, NEW)
        old = engine.build("groups", spec_of(OLD), OLD)
        require_sound(elasticsearch_url, index_prefix, old, OLD)
        if before > requests:
            break
    assert before > requests > 10


def test_a_late_swap_does_not_make_the_builder_that_goes_on_delete_what_serves(
    fault_proxy: FaultProxy,
    engine: ElasticsearchEngine,
    settings_for: Callable[..., Settings],
    elasticsearch_url: str,
    index_prefix: str,
) -> None:
    """It comes just before that builder looks, for the third time, what serves: then it swaps, and deletes that."""
    fault_proxy.hold(1, path=SWAP)
    die(fault_proxy, settings_for(fault_proxy.url), NEW)
    with FaultProxy(elasticsearch_url) as meeting:
        releasing(3, fault_proxy, meeting, f"^/{index_prefix}-groups$")
        with closing(ElasticsearchEngine.connect(settings_for(meeting.url))) as successor:
            info = successor.build("groups", spec_of(NEW), NEW)
    assert not fault_proxy.held
    require_sound(elasticsearch_url, index_prefix, info, NEW)


def test_what_a_builder_sent_from_files_that_have_changed_since_is_not_kept(
    fault_proxy: FaultProxy,
    engine: ElasticsearchEngine,
    settings_for: Callable[..., Settings],
    elasticsearch_url: str,
    index_prefix: str,
) -> None:
    """The files changed between the reading for the digest and the sending; then the builder was killed."""
    changed = [Document(one.id, "another text") if int(one.id) < 25 else one for one in NEW]
    settings = settings_for(fault_proxy.url)
    fault_proxy.refuse_from(5, path=BULK)
    own = connection.Connection.open(settings)
    own.own_patience = 0.2
    with closing(ElasticsearchEngine(own, settings.index_prefix)) as dying, pytest.raises(EngineUnreachable):
        dying.build("groups", spec_of(NEW), changed)
    said: list[str] = []
    engine._connection.notify = said.append
    info = engine.build("groups", spec_of(NEW), NEW)
    require_sound(elasticsearch_url, index_prefix, info, NEW)
    assert any("has the document" in one and "with other content" in one for one in said)


def test_documents_that_nobody_asks_for_any_more_are_not_kept(
    fault_proxy: FaultProxy,
    engine: ElasticsearchEngine,
    settings_for: Callable[..., Settings],
    elasticsearch_url: str,
    index_prefix: str,
) -> None:
    settings = settings_for(fault_proxy.url)
    fault_proxy.refuse_from(5, path=BULK)
    own = connection.Connection.open(settings)
    own.own_patience = 0.2
    with closing(ElasticsearchEngine(own, settings.index_prefix)) as dying, pytest.raises(EngineUnreachable):
        dying.build("groups", spec_of(NEW), [Document("more", "a text"), *NEW])
    info = engine.build("groups", spec_of(NEW), NEW)
    require_sound(elasticsearch_url, index_prefix, info, NEW)


def test_a_deleted_copy_in_what_is_built_begins_it_again(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    """As a shard writes one in place of an operation that it lost with its node."""

    class Disturbed:
        readings = 0

        def __iter__(self) -> Iterator[Document]:
            self.readings += 1
            yield from NEW
            if self.readings == 1:
                server = Server(elasticsearch_url)
                (version,) = indexes(elasticsearch_url, index_prefix)
                for _ in range(2):
                    server.request("PUT", f"/{version}/_doc/more?refresh=true", NEW[0].source())
                server.request("DELETE", f"/{version}/_doc/more?refresh=true")

    said: list[str] = []
    engine._connection.notify = said.append
    source = Disturbed()
    info = engine.build("groups", spec_of(NEW), source)
    assert source.readings == 2 and "starting over" in said[0] and "deleted cop" in said[0]
    require_sound(elasticsearch_url, index_prefix, info, NEW)


def test_an_index_that_was_opened_to_writes_does_not_rank_and_is_built_again(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    info = engine.build("groups", spec_of(NEW), NEW)
    settings = f"/{info.version}/_settings"
    server = Server(elasticsearch_url)
    for changed, sentence in (
        ({"index.blocks.write": None}, "is open to writes"),
        ({"index.blocks.write": True, "index.refresh_interval": "-1"}, "may hide documents"),
    ):
        assert server.request("PUT", settings, changed).status == 200
        assert sentence in engine.flaw("groups")
        with pytest.raises(
            EngineRefused, match=rf"{sentence}.*: build it again with `searchapp index groups"
        ):
            engine.open("groups")
