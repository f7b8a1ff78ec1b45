"""The survey of nodes and shards of a server, and its warnings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from searchapp.app.doctor import Verdict, _nodes, _spread
from searchapp.config.settings import Settings
from searchapp.engines.base import ShardedIndex, Survey
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.engines.elasticsearch.shards import _index
from tests.engines.conftest import GROUPS, match, spec_of
from tests.server.faults import FaultProxy
from tests.server.rest import Server


def test_a_server_reports_the_shards_of_its_indexes(
    engine: ElasticsearchEngine, elasticsearch_url: str
) -> None:
    version = engine.build("groups", spec_of(GROUPS, shards=3), GROUPS).version
    index = engine.open("groups")
    for _ in range(25):
        list(index.search([match("group")]))
    survey = engine.survey()
    number = Server(elasticsearch_url).request("GET", "/").json()["version"]["number"]
    assert survey.nodes == {number: 1} and survey.health in ("green", "yellow", "red")
    groups = survey.indexes[version]
    assert (groups.shards, groups.replicas, groups.copies) == (3, 0, 3)
    assert groups.size > 1000 and groups.searches >= 75 and groups.slow == ()


def test_users_without_the_right_to_see_nodes_see_indexes(
    fault_proxy: FaultProxy, settings_for: Callable[..., Settings]
) -> None:
    fault_proxy.answer(403, "security_exception", path="^/_(nodes|cluster)", times=None)
    with closing(ElasticsearchEngine.connect(settings_for(fault_proxy.url))) as engine:
        version = engine.build("groups", spec_of(GROUPS), GROUPS).version
        survey = engine.survey()
    assert survey.nodes is None and version in survey.indexes
    assert _nodes(survey).verdict is Verdict.ok and "not known" in _nodes(survey).finding


SETTINGS = {"index.number_of_shards": "2", "index.number_of_replicas": "1"}


def copy(node: str, searches: int, milliseconds: int) -> dict[str, object]:
    search = {"query_total": searches, "query_time_in_millis": milliseconds}
    return {"routing": {"node": node, "primary": True}, "search": search}


def index_statistics(*times: tuple[int, int]) -> dict[str, object]:
    """Return statistics of two copies of two shards, with the number and time of their searches."""
    copies = [copy(f"node-{number}-with-a-long-id", *searches) for number, searches in enumerate(times)]
    total = {"query_total": 100, "query_time_in_millis": 500}
    return {
        "shards": {"0": copies[:2], "1": copies[2:]},
        "total": {"store": {"size_in_bytes": 3 << 20}, "search": total},
    }


def test_a_copy_that_is_slower_than_the_others_is_reported() -> None:
    index = _index(SETTINGS, index_statistics((100, 1000), (100, 900), (100, 9000), (100, 1000)))
    assert index.slow == ("shard 1 on node node-2-w takes 90 ms per search, the others 10 ms",)
    check = _spread("nlps", index)
    assert check.verdict is Verdict.warning
    assert check.finding.startswith(
        "2 shards, 1 replica, 3.0 MiB, 5.0 ms per search on a shard; slow: shard 1 on node"
    )


@pytest.mark.parametrize(
    "times",
    [
        ((100, 1000), (100, 900), (3, 9000), (100, 1000)),  # too few searches
        ((100, 10), (100, 9), (100, 900), (100, 10)),  # 9 ms are fast enough
        ((100, 9000), (100, 9000), (100, 9500), (100, 9000)),  # as slow as the others
    ],
)
def test_other_copies_are_not_reported(times: tuple[tuple[int, int], ...]) -> None:
    assert _index(SETTINGS, index_statistics(*times)).slow == ()


def test_missing_copies_old_nodes_and_red_health_are_warnings() -> None:
    spread = ShardedIndex(shards=3, replicas=1, copies=5, size=0, searches=0, milliseconds=0)
    assert (
        "3 shards, 1 replica, 0.0 MiB; only 5 of 6 shard copies are allocated"
        in _spread("nlps", spread).finding
    )
    mixed = _nodes(Survey("9.4.3", {"8.19.13": 1, "9.4.3": 2}, "green"))
    assert mixed.verdict is Verdict.warning
    assert mixed.finding.startswith(
        "1 of version 8.19.13 and 2 of version 9.4.3; cluster health green: finish the upgrade"
    )
    assert _nodes(Survey("9.4.3", {"9.4.3": 3}, "red")).verdict is Verdict.warning
    assert _nodes(Survey("9.4.3", {"9.4.3": 3}, "green")).verdict is Verdict.ok
