"""Numbers of shards and replicas of an index."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from searchapp.app.index import index_task
from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch import shards as sizing
from searchapp.engines.embedded import EmbeddedEngine
from searchapp.errors import EngineRefused, UsageError
from searchapp.progress import SilentProgress
from searchapp.resources import SAMPLES
from searchapp.tasks import load
from tests.engines.conftest import GROUPS, match, spec_of
from tests.server.rest import Server


@pytest.mark.parametrize(
    ("documents", "nodes", "shards"),
    [
        (0, 3, 1),
        (60_000, 9, 1),
        (499_999, 3, 1),
        (500_000, 3, 2),
        (1_000_000, 3, 3),
        (1_000_000, 1, 1),
        (20_000_000, 1, 1),
        (20_000_001, 1, 2),
        (90_000_000, 3, 5),
        (10**10, 3, 64),
    ],
)
def test_shards_fit_documents_and_nodes(
    engine: ElasticsearchEngine, monkeypatch: pytest.MonkeyPatch, documents: int, nodes: int, shards: int
) -> None:
    monkeypatch.setattr(sizing, "_data_nodes", lambda _: nodes)
    assert engine.shards_for(documents) == shards


def test_the_number_of_nodes_is_that_of_the_cluster(
    engine: ElasticsearchEngine, elasticsearch_url: str
) -> None:
    nodes = Server(elasticsearch_url).request("GET", "/_cluster/health").json()["number_of_data_nodes"]
    assert engine.shards_for(1_000_000) == min(4, nodes)


def replicas_of(url: str, version: str) -> tuple[str, str]:
    index = Server(url).request("GET", f"/{version}/_settings").json()[version]["settings"]["index"]
    return index["number_of_replicas"], index.get("auto_expand_replicas", "false")


def test_an_index_has_the_requested_replicas(
    engine: ElasticsearchEngine, elasticsearch_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizing, "COPIES_SECONDS", 0.5)
    automatic = engine.build("automatic", spec_of(GROUPS), GROUPS)
    assert replicas_of(elasticsearch_url, automatic.version)[1] == "0-1"
    none = engine.build("none", replace(spec_of(GROUPS), replicas=0), GROUPS)
    assert replicas_of(elasticsearch_url, none.version) == ("0", "false")
    messages: list[str] = []
    engine._connection.notify = messages.append
    more = engine.build("more", replace(spec_of(GROUPS), replicas=7), GROUPS)
    assert replicas_of(elasticsearch_url, more.version) == ("7", "false")
    assert messages == [
        f"shard 0 of {more.version} found no node for a replica within 0 s: the index is live, but "
        "fails if a node is lost"
    ]
    engine.replicate("more", 0)
    assert replicas_of(elasticsearch_url, more.version) == ("0", "false")
    assert len(engine.open("more").find(match("group"))) == 2
    with pytest.raises(EngineRefused, match="has no index .*-nothing to replicate"):
        engine.replicate("nothing", 1)


def test_an_index_keeps_its_shards_unless_another_number_is_requested(
    engine: ElasticsearchEngine, elasticsearch_url: str
) -> None:
    task = load("nlps")
    collection = task.collection(SAMPLES / "nlps")
    first = index_task(task, engine, collection, SilentProgress(), shards=3)
    assert first.info.shards == 3
    replicated = index_task(task, engine, collection, SilentProgress(), replicas=0)
    assert (replicated.built, replicated.info) == (False, first.info)
    assert replicas_of(elasticsearch_url, first.info.version) == ("0", "false")
    single = index_task(task, engine, collection, SilentProgress(), shards=1)
    assert (single.built, single.info.shards) == (True, 1)
    assert index_task(task, engine, collection, SilentProgress(), rebuild=True).info.shards == 1


@pytest.mark.parametrize(("options", "name"), [({"shards": 2}, "shards"), ({"replicas": 1}, "replicas")])
def test_the_embedded_engine_has_no_shards_or_replicas(
    settings_for: Callable[..., Settings], options: dict[str, Any], name: str
) -> None:
    task = load("nlps")
    with closing(EmbeddedEngine.at(settings_for("http://localhost"))) as engine:
        with pytest.raises(UsageError, match=f"the embedded engine has no {name}: leave out --{name}"):
            index_task(task, engine, task.collection(SAMPLES / "nlps"), SilentProgress(), **options)
        with pytest.raises(EngineRefused, match="can't have replicas"):
            engine.replicate("nlps", 1)
