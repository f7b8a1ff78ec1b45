"""Somebody who waits for an engine, and has less patience than a batch of topics, or leaves."""

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


def test_whoever_waits_is_known_in_the_thread_that_asks_and_nowhere_else() -> None:
    seen: list[object] = []
    with Patience(1, 1) as waiting:
        assert current_patience() is waiting
        thread = threading.Thread(target=lambda: seen.append(current_patience()))
        thread.start()
        thread.join()
        require_not_cancelled()
        waiting.cancel()
        with pytest.raises(RequestCancelled):
            require_not_cancelled()
        with without_cancellation(30):
            require_not_cancelled()  # others will want it
            assert current_patience() is not waiting
        assert current_patience() is waiting
    assert current_patience() is None and seen == [None]
    with without_cancellation():
        assert current_patience() is None


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedEngine]:
    with closing(EmbeddedEngine.at(Settings(home=tmp_path))) as engine:
        engine.build("groups", spec_of(GROUPS), GROUPS)
        yield engine


def test_the_embedded_engine_stops_for_those_who_have_left(embedded: EmbeddedEngine) -> None:
    index: Index = embedded.open("groups")
    asked: list[Callable[[], object]] = [
        lambda: index.find(match("group")),
        lambda: list(index.search([match("group")])),
        lambda: index.counts({"match_all": {}}, {}),
    ]
    for ask in asked:
        ask()
        with Patience(1, 1) as waiting, pytest.raises(RequestCancelled):
            waiting.cancel()
            ask()


def test_a_twin_answers_the_same_from_the_same_version(embedded: EmbeddedEngine) -> None:
    index = embedded.open("groups")
    with closing(index.twin()) as twin:
        assert twin.info == index.info and twin.find(match("group")) == index.find(match("group"))
    assert index.find(match("group"))  # which goes on when its twin is closed
    embedded.build("groups", spec_of(GROUPS[1:]), GROUPS[1:])
    assert len(index.find(match("normal"))) == 2  # what is open answers
    with pytest.raises(Replaced):
        index.twin()


def test_a_server_is_given_no_more_time_than_whoever_waits_has(
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


def test_what_is_repeated_ends_when_whoever_waits_leaves(
    behind_proxy: ElasticsearchEngine, fault_proxy: FaultProxy
) -> None:
    behind_proxy.build("groups", spec_of(GROUPS), GROUPS)
    index = behind_proxy.open("groups")
    fault_proxy.reject(None)
    begin = time.monotonic()
    with Patience(10, 60) as waiting, pytest.raises(RequestCancelled):
        timer = threading.Timer(1.0, waiting.cancel)
        timer.start()
        index.find(match("group"))
    timer.join()
    assert time.monotonic() - begin < 10
