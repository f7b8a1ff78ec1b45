"""What a server says of its nodes and shards, and what of it is worth a warning."""

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


def test_a_real_server_says_how_its_indexes_are_spread(
    engine: ElasticsearchEngine, elasticsearch_url: str
) -> None:
    version = engine.build("groups", spec_of(GROUPS, shards=3), GROUPS).version
    index = engine.open("groups")
    for _ in range(25):
        list(index.search([match("group")]))
    survey = engine.survey()
    number = Server(elasticsearch_url).request("GET", "/").json()["version"]["number"]
    assert survey.nodes == {number: 1} and survey.health in ("green", "yellow", "red")
    found = survey.indexes[version]
    assert (found.shards, found.replicas, found.copies) == (3, 0, 3)
    assert found.size > 1000 and found.searches >= 75 and found.slow == ()


def test_who_may_not_ask_for_nodes_still_sees_indexes(
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


def described(*times: tuple[int, int]) -> dict[str, object]:
    """Two copies of each of two shards, with the searches that each has answered and how long they took."""
    copies = [copy(f"node-{number}-with-a-long-id", *one) for number, one in enumerate(times)]
    total = {"query_total": 100, "query_time_in_millis": 500}
    return {
        "shards": {"0": copies[:2], "1": copies[2:]},
        "total": {"store": {"size_in_bytes": 3 << 20}, "search": total},
    }


def test_a_copy_is_slow_beside_the_others_of_its_index() -> None:
    index = _index(SETTINGS, described((100, 1000), (100, 900), (100, 9000), (100, 1000)))
    assert index.slow == ("shard 1 on node node-2-w takes 90 ms per search, the others 10 ms",)
    check = _spread("nlps", index)
    assert check.verdict is Verdict.warning
    assert check.finding.startswith(
        "2 shards, 1 replica, 3.0 MiB, 5.0 ms per search on a shard; slow: shard 1 on node"
    )


@pytest.mark.parametrize(
    "times",
    [
        ((100, 1000), (100, 900), (3, 9000), (100, 1000)),  # too few to say
        ((100, 10), (100, 9), (100, 900), (100, 10)),  # 9 ms trouble nobody
        ((100, 9000), (100, 9000), (100, 9500), (100, 9000)),  # as slow as the others
    ],
)
def test_a_copy_is_not_slow(times: tuple[tuple[int, int], ...]) -> None:
    assert _index(SETTINGS, described(*times)).slow == ()


def test_what_is_worth_a_warning() -> None:
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
