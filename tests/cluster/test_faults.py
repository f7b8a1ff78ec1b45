"""Slow and full nodes, and aliases moved by other users: messages of commands, and no lost data."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

import searchapp.engines.elasticsearch
from searchapp.engines.elasticsearch import indexing, searching
from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from tests.cli.conftest import Cli, Result
from tests.cluster.collection import BATCH, Words
from tests.cluster.conftest import PREFIX
from tests.cluster.triggers import after
from tests.server.cluster import Cluster
from tests.server.faults import FaultProxy

pytestmark = pytest.mark.timeout(600)

ALIAS = f"{PREFIX}-own-words"
FOREIGN = f"{PREFIX}-foreign"


def engine_error(result: Result) -> str:
    """Return the message of a command that the engine rejected."""
    assert result.code == 3 and result.stdout == "", result.stderr
    (message,) = [line for line in result.stderr.splitlines() if line.startswith("searchapp: ")]
    assert "Traceback" not in result.stderr
    return message


def aliases(cluster: Cluster) -> dict[str, list[str]]:
    """Return the aliases of each version of the task's index."""
    response = cluster.server.request("GET", f"/{ALIAS}-*/_alias").json()
    return {name: sorted(index["aliases"]) for name, index in response.items()}


def test_a_slow_node_gets_few_requests(
    cluster: Cluster, commands: Cli, words: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searchapp.engines.elasticsearch, "REQUEST_TIMEOUT_SECONDS", 2.0)
    monkeypatch.setattr(searching, "BATCH_BODIES", BATCH)
    assert commands("index", words.task, "--shards", 3).code == 0
    with ExitStack() as stack:
        slow, *others = [stack.enter_context(FaultProxy(node.server)) for node in cluster.nodes]
        slow.delay(10.0, None)
        monkeypatch.setenv("SEARCHAPP_URL", ",".join(proxy.url for proxy in (slow, *others)))
        words.require_same(commands, tmp_path / "run", "dev")
        assert 1 <= slow.count() <= 3 < min(proxy.count() for proxy in others)


@pytest.fixture
def free_disks_afterwards(cluster: Cluster) -> Iterator[None]:
    """Free the disks after the test, as an administrator does."""
    yield
    free_disks(cluster)


DISK = "cluster.routing.allocation.disk"
LIMITS = [f"{DISK}.watermark.{name}" for name in ("low", "high", "flood_stage")]
FLOODED = "index.blocks.read_only_allow_delete"


def fill_disks(cluster: Cluster) -> None:
    """Make the disks count as full, and wait until the cluster has blocked writes to the indexes."""
    limits: dict[str, Any] = {f"{DISK}.threshold_enabled": True, **dict.fromkeys(LIMITS, "1000tb")}
    answer = cluster.server.request("PUT", "/_cluster/settings", {"persistent": limits})
    assert answer.status == 200, answer.body
    path = f"/{ALIAS}-*-building-*,{PREFIX}-judgments,{PREFIX}-locks/_settings?flat_settings=true"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        indexes = cluster.server.request("GET", path).json().values()
        if all(index["settings"].get(FLOODED) == "true" for index in indexes):
            return
        time.sleep(0.2)
    raise AssertionError(f"the cluster did not block writes on full disks: {list(indexes)}")


def free_disks(cluster: Cluster) -> None:
    """Undo `fill_disks`; the cluster itself would remove the blocks some seconds later."""
    limits = dict.fromkeys([f"{DISK}.threshold_enabled", *LIMITS])
    cluster.server.request("PUT", "/_cluster/settings", {"persistent": limits})
    path = f"/{PREFIX}*/_settings?expand_wildcards=all"
    cluster.server.request("PUT", path, {FLOODED: None}, timeout=60)


def test_full_disks_leave_only_the_old_version(
    cluster: Cluster,
    commands: Cli,
    words: Words,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    free_disks_afterwards: None,
) -> None:
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", len(words) // 8)  # several requests are under way
    assert commands("index", words.task, "--shards", 3).code == 0
    assert commands("judgments", "sync").code == 0
    with after(2, "/_bulk$", lambda: fill_disks(cluster), at_once=True):
        result = commands("index", words.task, "--shards", 3, "--rebuild")
    message = engine_error(result)
    assert "could not index the document d" in message
    assert "disk usage exceeded flood-stage watermark" in message
    assert message.endswith("free disk space or remove the block, then try again")
    assert list(aliases(cluster).values()) == [[ALIAS]]
    words.require_same(commands, tmp_path / "full")
    assert "is read-only" in engine_error(commands("index", words.task, "--shards", 3, "--rebuild"))

    with closing(JudgmentLog(tmp_path / "home" / "judgments.sqlite")) as log:
        log.append([Author("ann").event("nlps", "t", "d", Action.grade, grade=1)])
    message = engine_error(commands("judgments", "sync"))
    assert "flood-stage" in message and "1 unsent judgment in" in message

    free_disks(cluster)
    assert commands("judgments", "sync", "--json").json["sent"] == 1
    assert commands("index", words.task, "--shards", 3, "--rebuild").code == 0
    assert list(aliases(cluster).values()) == [[ALIAS]]
    words.require_same(commands, tmp_path / "free")


def move(cluster: Cluster, *actions: dict[str, Any]) -> None:
    """Change aliases."""
    response = cluster.server.request("POST", "/_aliases", {"actions": list(actions)}, timeout=60)
    assert response.status == 200, response.body


def add(index: str) -> dict[str, Any]:
    return {"add": {"index": index, "alias": ALIAS}}


def remove(index: str) -> dict[str, Any]:
    return {"remove": {"index": index, "alias": ALIAS}}


@pytest.fixture
def version(cluster: Cluster, commands: Cli, words: Words) -> str:
    """Index the task and create a foreign index, and return the name of the task's version."""
    assert commands("index", words.task).code == 0
    assert cluster.server.request("PUT", f"/{FOREIGN}/_doc/1?refresh=true", {"a": "b"}).status == 201
    (name,) = aliases(cluster)
    return name


def is_foreign_index_unchanged(cluster: Cluster) -> bool:
    counts = cluster.server.request("GET", f"/{FOREIGN}/_stats/docs").json()["_all"]["primaries"]["docs"]
    return bool(counts["count"] == 1 and counts["deleted"] == 0)


def test_an_alias_on_a_foreign_index_is_rejected_until_it_is_moved_back(
    cluster: Cluster, commands: Cli, words: Words, tmp_path: Path, version: str
) -> None:
    move(cluster, remove(version), add(FOREIGN))
    for command in (
        ("rank", words.task, "--split", "few", "--out", tmp_path / "run"),
        ("search", words.task, "word1"),
        ("index", words.task),
    ):
        message = engine_error(commands(*command))
        assert (
            f"has an index or alias {ALIAS} that searchapp did not make (it leads to {FOREIGN}): " in message
        )
    assert is_foreign_index_unchanged(cluster) and not (tmp_path / "run").exists()
    move(cluster, remove(FOREIGN), add(version))
    words.require_same(commands, tmp_path / "run")


def test_a_removed_alias_is_created_again_with_the_next_version(
    cluster: Cluster, commands: Cli, words: Words, tmp_path: Path, version: str
) -> None:
    move(cluster, remove(version))
    message = engine_error(commands("rank", words.task, "--split", "few", "--out", tmp_path / "run"))
    assert "words is not indexed yet: build the index with `searchapp index" in message
    assert commands("index", words.task).code == 0
    ((new_version, names),) = aliases(cluster).items()
    assert new_version != version and names == [ALIAS]
    words.require_same(commands, tmp_path / "run")


def test_moving_the_alias_changes_no_ranking_under_way(
    cluster: Cluster,
    commands: Cli,
    words: Words,
    tmp_path: Path,
    version: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(searching, "BATCH_BODIES", BATCH)
    with after(3, "/_msearch$", lambda: move(cluster, remove(version), add(FOREIGN)), at_once=True):
        words.require_same(commands, tmp_path / "run", "dev")


def test_an_alias_that_is_moved_during_a_build_is_not_moved_back(
    cluster: Cluster,
    commands: Cli,
    words: Words,
    tmp_path: Path,
    version: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", len(words) // 4)
    with after(2, "/_bulk$", lambda: move(cluster, remove(version), add(FOREIGN)), at_once=True):
        message = engine_error(commands("index", words.task, "--rebuild"))
    assert f"(it leads to {FOREIGN})" in message
    assert aliases(cluster) == {version: []} and is_foreign_index_unchanged(cluster)
    move(cluster, remove(FOREIGN), add(version))
    words.require_same(commands, tmp_path / "run")
