"""Patience: short timeouts of interactive requests, and cancellation."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.base import (
    Index,
    Patience,
    RequestCancelled,
    current_patience,
    require_not_cancelled,
    without_cancellation,
)
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import EngineBusy, EngineUnreachable, Replaced
from tests.engines.conftest import GROUPS, match, spec_of
from tests.server.faults import FaultProxy


def test_patience_belongs_to_the_thread_that_sets_it() -> None:
    patiences: list[object] = []
    with Patience(1, 1) as patience:
        assert current_patience() is patience
        thread = threading.Thread(target=lambda: patiences.append(current_patience()))
        thread.start()
        thread.join()
        require_not_cancelled()
        patience.cancel()
        with pytest.raises(RequestCancelled):
            require_not_cancelled()
        with without_cancellation(30):
            require_not_cancelled()  # the work is shared
            assert current_patience() is not patience
        assert current_patience() is patience
    assert current_patience() is None and patiences == [None]
    with without_cancellation():
        assert current_patience() is None


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedEngine]:
    with closing(EmbeddedEngine.at(Settings(home=tmp_path))) as engine:
        engine.build("groups", spec_of(GROUPS), GROUPS)
        yield engine


def test_the_embedded_engine_stops_after_cancellation(embedded: EmbeddedEngine) -> None:
    index: Index = embedded.open("groups")
    searches: list[Callable[[], object]] = [
        lambda: index.find(match("group")),
        lambda: list(index.search([match("group")])),
        lambda: index.counts({"match_all": {}}, {}),
    ]
    for search in searches:
        search()
        with Patience(1, 1) as patience, pytest.raises(RequestCancelled):
            patience.cancel()
            search()


def test_a_twin_returns_the_same_hits_from_the_same_version(embedded: EmbeddedEngine) -> None:
    index = embedded.open("groups")
    with closing(index.twin()) as twin:
        assert twin.info == index.info and twin.find(match("group")) == index.find(match("group"))
    assert index.find(match("group"))  # works after its twin is closed
    embedded.build("groups", spec_of(GROUPS[1:]), GROUPS[1:])
    assert len(index.find(match("normal"))) == 2  # an open version stays searchable
    with pytest.raises(Replaced):
        index.twin()


def test_a_server_gets_only_the_time_of_the_patience(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy
) -> None:
    behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    index = behind_proxy.open("groups")
    fault_proxy.delay(30, times=None)
    begin = time.monotonic()
    with Patience(0.6, 0.1), pytest.raises(EngineUnreachable, match="did not answer in 1 s"):
        index.find(match("group"))
    assert time.monotonic() - begin < 10
    fault_proxy.heal()
    fault_proxy.reject(None)
    begin = time.monotonic()
    with Patience(10, 0.5), pytest.raises(EngineBusy, match="too busy"):
        index.find(match("group"))
    assert time.monotonic() - begin < 10
    fault_proxy.heal()
    assert index.twin().find(match("group")) == index.find(match("group"))


def test_cancellation_ends_repetitions(behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy) -> None:
    behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    index = behind_proxy.open("groups")
    fault_proxy.reject(None)
    begin = time.monotonic()
    with Patience(10, 60) as patience, pytest.raises(RequestCancelled):
        timer = threading.Timer(1.0, patience.cancel)
        timer.start()
        index.find(match("group"))
    timer.join()
    assert time.monotonic() - begin < 10
