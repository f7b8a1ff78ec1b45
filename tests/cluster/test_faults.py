"""Nodes that are slow or full, and aliases that others move: what commands say, and that nothing is lost."""

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
from tests.cluster.meanwhile import after
from tests.server.cluster import Cluster
from tests.server.faults import FaultProxy

pytestmark = pytest.mark.timeout(600)

ALIAS = f"{PREFIX}-own-words"
STRANGE = f"{PREFIX}-strange"


def refused(done: Result) -> str:
    """The one sentence of a command that the engine refused."""
    assert done.code == 3 and done.stdout == "", done.stderr
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("searchapp: ")]
    assert "Traceback" not in done.stderr
    return sentence


def aliases(cluster: Cluster) -> dict[str, list[str]]:
    """The versions of the task's index that are there, with their aliases."""
    answer = cluster.server.request("GET", f"/{ALIAS}-*/_alias").json()
    return {index: sorted(described["aliases"]) for index, described in answer.items()}


def test_a_slow_node_is_left_alone(
    cluster: Cluster, commands: Cli, words: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searchapp.engines.elasticsearch, "REQUEST_TIMEOUT_SECONDS", 2.0)
    monkeypatch.setattr(searching, "BATCH_BODIES", BATCH)
    assert commands("index", words.task, "--shards", 3).code == 0
    with ExitStack() as held:
        slow, *others = [held.enter_context(FaultProxy(node.server)) for node in cluster.nodes]
        slow.delay(10.0, None)
        monkeypatch.setenv("SEARCHAPP_URL", ",".join(proxy.url for proxy in (slow, *others)))
        words.require_same(commands, tmp_path / "run", "dev")
        asked = [proxy.count() for proxy in (slow, *others)]
        assert 1 <= asked[0] <= 3 < min(asked[1:])


@pytest.fixture
def roomy(cluster: Cluster) -> Iterator[None]:
    """Makes room on the disks again at the end, as an administrator would."""
    yield
    make_room(cluster)


DISK = "cluster.routing.allocation.disk"
LIMITS = [f"{DISK}.watermark.{name}" for name in ("low", "high", "flood_stage")]
FLOODED = "index.blocks.read_only_allow_delete"


def fill(cluster: Cluster) -> None:
    """Let the disks be as good as full, and wait until the cluster has closed all that is written to."""
    limits: dict[str, Any] = {f"{DISK}.threshold_enabled": True, **dict.fromkeys(LIMITS, "1000tb")}
    answer = cluster.server.request("PUT", "/_cluster/settings", {"persistent": limits})
    assert answer.status == 200, answer.body
    path = f"/{ALIAS}-*-building-*,{PREFIX}-judgments,{PREFIX}-locks/_settings?flat_settings=true"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = cluster.server.request("GET", path).json().values()
        if all(index["settings"].get(FLOODED) == "true" for index in found):
            return
        time.sleep(0.2)
    raise AssertionError(f"the cluster did not notice that its disks are full: {list(found)}")


def make_room(cluster: Cluster) -> None:
    """The contrary; the cluster would open the indexes by itself some seconds later."""
    limits = dict.fromkeys([f"{DISK}.threshold_enabled", *LIMITS])
    cluster.server.request("PUT", "/_cluster/settings", {"persistent": limits})
    path = f"/{PREFIX}*/_settings?expand_wildcards=all"
    cluster.server.request("PUT", path, {FLOODED: None}, timeout=60)


def test_full_disks_leave_nothing_half_built_and_the_old_version_serves(
    cluster: Cluster,
    commands: Cli,
    words: Words,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    roomy: None,
) -> None:
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", len(words) // 8)  # several at once are on their way
    assert commands("index", words.task, "--shards", 3).code == 0
    assert commands("judgments", "sync").code == 0
    with after(2, "/_bulk$", lambda: fill(cluster), at_once=True):
        done = commands("index", words.task, "--shards", 3, "--rebuild")
    said = refused(done)
    assert "could not index the document d" in said and "disk usage exceeded flood-stage watermark" in said
    assert said.endswith("free disk space or remove the block, then try again")
    assert list(aliases(cluster).values()) == [[ALIAS]]
    words.require_same(commands, tmp_path / "full")
    assert "is read-only" in refused(commands("index", words.task, "--shards", 3, "--rebuild"))

    with closing(JudgmentLog(tmp_path / "home" / "judgments.sqlite")) as log:
        log.append([Author("ann").event("nlps", "t", "d", Action.grade, grade=1)])
    said = refused(commands("judgments", "sync"))
    assert "flood-stage" in said and "1 unsent judgment in" in said

    make_room(cluster)
    assert commands("judgments", "sync", "--json").json["sent"] == 1
    assert commands("index", words.task, "--shards", 3, "--rebuild").code == 0
    assert list(aliases(cluster).values()) == [[ALIAS]]
    words.require_same(commands, tmp_path / "roomy")


def move(cluster: Cluster, *actions: dict[str, Any]) -> None:
    """Change aliases as anybody may."""
    answer = cluster.server.request("POST", "/_aliases", {"actions": list(actions)}, timeout=60)
    assert answer.status == 200, answer.body


def add(index: str) -> dict[str, Any]:
    return {"add": {"index": index, "alias": ALIAS}}


def remove(index: str) -> dict[str, Any]:
    return {"remove": {"index": index, "alias": ALIAS}}


@pytest.fixture
def strange(cluster: Cluster, commands: Cli, words: Words) -> str:
    """An index of somebody else, beside version 1 of the task's; returns the name of that version."""
    assert commands("index", words.task).code == 0
    assert cluster.server.request("PUT", f"/{STRANGE}/_doc/1?refresh=true", {"a": "b"}).status == 201
    (version,) = aliases(cluster)
    return version


def is_untouched(cluster: Cluster) -> bool:
    answer = cluster.server.request("GET", f"/{STRANGE}/_stats/docs").json()["_all"]["primaries"]["docs"]
    return bool(answer["count"] == 1 and answer["deleted"] == 0)


def test_an_alias_that_was_moved_to_another_index_is_refused_until_it_is_back(
    cluster: Cluster, commands: Cli, words: Words, tmp_path: Path, strange: str
) -> None:
    move(cluster, remove(strange), add(STRANGE))
    for command in (
        ("rank", words.task, "--split", "few", "--out", tmp_path / "run"),
        ("search", words.task, "word1"),
        ("index", words.task),
    ):
        said = refused(commands(*command))
        assert f"has an index or alias {ALIAS} that searchapp did not make (it leads to {STRANGE}): " in said
    assert is_untouched(cluster) and not (tmp_path / "run").exists()
    move(cluster, remove(STRANGE), add(strange))
    words.require_same(commands, tmp_path / "run")


def test_an_alias_that_was_removed_is_made_again_with_the_next_version(
    cluster: Cluster, commands: Cli, words: Words, tmp_path: Path, strange: str
) -> None:
    move(cluster, remove(strange))
    said = refused(commands("rank", words.task, "--split", "few", "--out", tmp_path / "run"))
    assert "words is not indexed yet: build the index with `searchapp index" in said
    assert commands("index", words.task).code == 0
    ((version, named),) = aliases(cluster).items()
    assert version != strange and named == [ALIAS]
    words.require_same(commands, tmp_path / "run")


def test_an_alias_that_is_moved_while_topics_are_ranked_changes_nothing(
    cluster: Cluster,
    commands: Cli,
    words: Words,
    tmp_path: Path,
    strange: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(searching, "BATCH_BODIES", BATCH)
    with after(3, "/_msearch$", lambda: move(cluster, remove(strange), add(STRANGE)), at_once=True):
        words.require_same(commands, tmp_path / "run", "dev")


def test_an_alias_that_is_moved_while_an_index_is_built_is_left_where_it_is(
    cluster: Cluster,
    commands: Cli,
    words: Words,
    tmp_path: Path,
    strange: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(indexing, "BATCH_DOCUMENTS", len(words) // 4)
    with after(2, "/_bulk$", lambda: move(cluster, remove(strange), add(STRANGE)), at_once=True):
        said = refused(commands("index", words.task, "--rebuild"))
    assert f"(it leads to {STRANGE})" in said
    assert aliases(cluster) == {strange: []} and is_untouched(cluster)
    move(cluster, remove(STRANGE), add(strange))
    words.require_same(commands, tmp_path / "run")
