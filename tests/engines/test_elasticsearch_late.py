"""Requests of a killed builder that reach the server late, during or after another build."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine, connection, indexing
from searchapp.errors import EngineError, EngineRefused, EngineUnreachable
from searchapp.model import Document, IndexInfo
from tests.engines.conftest import deleted, indexes, spec_of
from tests.profile import FULL
from tests.server.faults import FaultProxy, Request, Response
from tests.server.rest import Server

OLD = [Document(str(number), f"an old text of {number}") for number in range(40)]
NEW = [Document(str(number), f"a new text of {number}") for number in range(60)]

BULK = r"/_bulk$"
SWAP = r"^/_aliases$"
SETTINGS = r"/_settings$"


@pytest.fixture(autouse=True)
def short_tidying(short_waits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "TIDYING_SECONDS", 1.0)
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", 10)


def impatient_engine(settings: Settings) -> closing[ElasticsearchEngine]:
    """Return an engine that soon gives up requests, as a context manager."""
    own = connection.Connection.open(settings)
    own.own_patience = 0.2
    return closing(ElasticsearchEngine(own, settings.index_prefix))


def break_off(dying: FaultProxy, settings: Settings, documents: list[Document], act: str = "build") -> None:
    """Build or remove the index through a proxy that holds one request and answers none after it."""
    with impatient_engine(settings) as engine, suppress(EngineUnreachable):
        if act == "build":
            engine.build("groups", spec_of(documents), documents)
        else:
            engine.remove("groups")
    assert dying.held, "the request to hold was not sent"


def require_sound(url: str, prefix: str, info: IndexInfo, documents: list[Document]) -> None:
    """Check by own requests that this version alone is live and has each document once."""
    server = Server(url)
    alias = f"{prefix}-groups"
    assert indexes(url, prefix) == {info.version: [alias]}
    hits = server.request("GET", f"/{alias}/_search?size=1000").json()["hits"]["hits"]
    expected = {document.id: document.source() for document in documents}
    assert {hit["_id"]: hit["_source"] for hit in hits} == expected
    assert len(hits) == len(documents) and deleted(url, alias) == 0
    (response,) = server.request("GET", f"/{alias}/_settings").json().values()
    settings = response["settings"]["index"]
    assert settings["blocks"]["write"] == "true" and settings.get("refresh_interval") != "-1"
    assert settings["auto_expand_replicas"] == "0-1"


def release_before(number: int, dying: FaultProxy, target: FaultProxy, path: str = "") -> None:
    """Release the held request just before the n-th request to a path through another proxy."""

    def release(request: Request) -> Response | None:
        dying.release()
        return target._forward(request)

    target._add(release, None, path, 1, skip=number - 1)


def test_a_late_bulk_request_does_not_change_an_index_built_after_a_removal(
    fault_proxy: FaultProxy,
    engine: ElasticsearchEngine,
    settings_for: Callable[..., Settings],
    elasticsearch_url: str,
    index_prefix: str,
) -> None:
    fault_proxy.hold(2, path=BULK)
    break_off(fault_proxy, settings_for(fault_proxy.url), OLD)
    engine.remove("groups")

    def release_while_reading() -> Iterator[Document]:
        fault_proxy.release()
        yield from NEW

    info = engine.build("groups", spec_of(NEW), release_while_reading())
    require_sound(elasticsearch_url, index_prefix, info, NEW)


def test_a_late_removal_does_not_remove_an_index_built_after_it(
    fault_proxy: FaultProxy,
    engine: ElasticsearchEngine,
    settings_for: Callable[..., Settings],
    elasticsearch_url: str,
    index_prefix: str,
) -> None:
    engine.build("groups", spec_of(OLD), OLD)
    fault_proxy.hold(1, method="DELETE")
    break_off(fault_proxy, settings_for(fault_proxy.url), [], "remove")
    engine.remove("groups")
    info = engine.build("groups", spec_of(NEW), NEW)
    fault_proxy.release()
    require_sound(elasticsearch_url, index_prefix, info, NEW)


@pytest.mark.parametrize("kind", ["bulk", "swap", "settings", "block"])
def test_a_late_request_changes_nothing_at_any_point_of_the_next_build(
    fault_proxy: FaultProxy,
    engine: ElasticsearchEngine,
    settings_for: Callable[..., Settings],
    elasticsearch_url: str,
    index_prefix: str,
    kind: str,
) -> None:
    """A late swap once left no version behind if it arrived between two particular requests."""
    path = {"bulk": BULK, "swap": SWAP, "settings": SETTINGS, "block": r"/_block/write$"}[kind]
    old = engine.build("groups", spec_of(OLD), OLD)
    requests = 0
    for number in range(2, 100, 3 if FULL else 40):
        with FaultProxy(elasticsearch_url) as dying, FaultProxy(elasticsearch_url) as meeting:
            dying.hold(2 if kind == "bulk" else 1, path=path)
            break_off(dying, settings_for(dying.url), NEW)
            release_before(number, dying, meeting)
            with closing(ElasticsearchEngine.connect(settings_for(meeting.url))) as successor:
                # the late swap can make the same version live, so that this build is rejected
                with suppress(EngineError):
                    successor.build("groups", spec_of(NEW), NEW)
            dying.release()
            requests = meeting.count()
        live = engine.index_info("groups")
        assert live is not None
        if live.version != old.version:
            new = engine.build("groups", spec_of(NEW), NEW)
            require_sound(elasticsearch_url, index_prefix, new, NEW)
        old = engine.build("groups", spec_of(OLD), OLD)
        require_sound(elasticsearch_url, index_prefix, old, OLD)
        if number > requests:
            break
    assert number > requests > 10


def test_a_late_swap_does_not_make_the_next_builder_delete_the_live_version(
    fault_proxy: FaultProxy,
    engine: ElasticsearchEngine,
    settings_for: Callable[..., Settings],
    elasticsearch_url: str,
    index_prefix: str,
) -> None:
    """The late swap arrives just before the builder checks the live version for the third time."""
    fault_proxy.hold(1, path=SWAP)
    break_off(fault_proxy, settings_for(fault_proxy.url), NEW)
    with FaultProxy(elasticsearch_url) as meeting:
        release_before(3, fault_proxy, meeting, f"^/{index_prefix}-groups$")
        with closing(ElasticsearchEngine.connect(settings_for(meeting.url))) as successor:
            info = successor.build("groups", spec_of(NEW), NEW)
    assert not fault_proxy.held
    require_sound(elasticsearch_url, index_prefix, info, NEW)


def test_documents_sent_from_changed_files_are_not_kept(
    fault_proxy: FaultProxy,
    engine: ElasticsearchEngine,
    settings_for: Callable[..., Settings],
    elasticsearch_url: str,
    index_prefix: str,
) -> None:
    """The files changed after their digest was computed, and then the builder was killed."""
    changed = [
        Document(document.id, "another text") if int(document.id) < 25 else document for document in NEW
    ]
    settings = settings_for(fault_proxy.url)
    fault_proxy.refuse_from(5, path=BULK)
    with impatient_engine(settings) as dying, pytest.raises(EngineUnreachable):
        dying.build("groups", spec_of(NEW), changed)
    messages: list[str] = []
    engine._connection.notify = messages.append
    info = engine.build("groups", spec_of(NEW), NEW)
    require_sound(elasticsearch_url, index_prefix, info, NEW)
    assert any("has the document" in text and "with other content" in text for text in messages)


def test_documents_that_are_no_longer_in_the_collection_are_not_kept(
    fault_proxy: FaultProxy,
    engine: ElasticsearchEngine,
    settings_for: Callable[..., Settings],
    elasticsearch_url: str,
    index_prefix: str,
) -> None:
    settings = settings_for(fault_proxy.url)
    fault_proxy.refuse_from(5, path=BULK)
    with impatient_engine(settings) as dying, pytest.raises(EngineUnreachable):
        dying.build("groups", spec_of(NEW), [Document("more", "a text"), *NEW])
    info = engine.build("groups", spec_of(NEW), NEW)
    require_sound(elasticsearch_url, index_prefix, info, NEW)


def test_a_deleted_copy_in_an_unfinished_version_restarts_the_build(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    """A shard writes such a copy in place of an operation that it lost with its node."""

    class DisturbedDocuments:
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

    messages: list[str] = []
    engine._connection.notify = messages.append
    source = DisturbedDocuments()
    info = engine.build("groups", spec_of(NEW), source)
    assert source.readings == 2 and "starting over" in messages[0] and "deleted cop" in messages[0]
    require_sound(elasticsearch_url, index_prefix, info, NEW)


def test_an_index_that_accepts_writes_is_not_opened_and_must_be_built_again(
    engine: ElasticsearchEngine, elasticsearch_url: str, index_prefix: str
) -> None:
    info = engine.build("groups", spec_of(NEW), NEW)
    settings = f"/{info.version}/_settings"
    server = Server(elasticsearch_url)
    for change, message in (
        ({"index.blocks.write": None}, "is open to writes"),
        ({"index.blocks.write": True, "index.refresh_interval": "-1"}, "may hide documents"),
    ):
        assert server.request("PUT", settings, change).status == 200
        assert message in engine.flaw("groups")
        with pytest.raises(EngineRefused, match=rf"{message}.*: build it again with `searchapp index groups"):
            engine.open("groups")
