"""Nodes that are stopped and started one after the other, as the same version or a newer one, while commands run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from searchapp.engines.elasticsearch import shards
from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from tests.cli.conftest import Cli
from tests.cluster.collection import Words, renamed, stored
from tests.cluster.conftest import PREFIX
from tests.server.cluster import QUICK_DETECTION, Cluster
from tests.server.distribution import OLDER, VERSION
from tests.server.node import BRIEF_LIFE

pytestmark = pytest.mark.timeout(1800)


class Day:
    """What people do with a task again and again: index, rank, share a judgment."""

    def __init__(self, commands: Cli, words: Words, folder: Path) -> None:
        self.commands = commands
        self.words = words
        self.folder = folder
        self.judged: list[str] = []
        self.rounds = 0

    def go_on(self) -> None:
        """Do all of it once more; everything comes to its end, and is what it always was."""
        self.rounds += 1
        indexed = self.commands("index", self.words.task, "--shards", 3, "--rebuild")
        assert indexed.code == 0, indexed.stderr
        self.words.require_same(self.commands, self.folder / f"run{self.rounds}")
        self.judge()

    def judge(self) -> None:
        event = Author("ann").event("nlps", "t", f"d{len(self.judged)}", Action.grade, grade=1)
        with closing(JudgmentLog(self.folder / "home" / "judgments.sqlite")) as log:
            log.append([event])
        self.judged.append(event.id)
        done = self.commands("judgments", "sync")
        assert done.code == 0, done.stderr

    def is_stored(self, cluster: Cluster) -> bool:
        """Whether the index holds just the judgments that were shared."""
        return sorted(stored(cluster, f"{PREFIX}-judgments")) == sorted(self.judged)


def test_a_rolling_restart_disturbs_nobody(
    cluster: Cluster, commands: Cli, words: Words, tmp_path: Path
) -> None:
    day = Day(commands, words, tmp_path)
    day.go_on()

    def restart() -> None:
        for node in cluster.nodes:
            node.restart()
            cluster.await_whole()

    restarting = threading.Thread(target=restart)
    restarting.start()
    while restarting.is_alive():
        day.go_on()
    restarting.join()
    day.go_on()
    assert day.rounds > 3 and day.is_stored(cluster)


@pytest.fixture
def older(cluster: Cluster, commands: Cli, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Cluster]:
    """Makes three nodes of version 8 in place of the others, for the same commands."""

    def make() -> Cluster:
        cluster.stop()
        older = Cluster(3, java=BRIEF_LIFE, settings=QUICK_DETECTION, version=OLDER)
        monkeypatch.setenv("SEARCHAPP_URL", ",".join(older.urls))
        return older

    return make


def test_a_rolling_upgrade_changes_no_run(
    older: Callable[[], Cluster],
    commands: Cli,
    words: Words,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An index of version 8 is ranked all the time; others are built while nodes of both versions are there."""
    monkeypatch.setattr(shards, "COPIES_SECONDS", 5.0)  # no copy of a newer node's shard goes to an older one
    task = renamed(words.task, tmp_path / "another", "again")
    with older() as cluster:
        day = Day(commands, words, tmp_path)
        day.go_on()
        for place, node in enumerate(cluster.nodes, 1):
            cluster.upgrade(node, VERSION)
            words.require_same(commands, tmp_path / f"upgraded{place}", "dev")
            indexed = commands("index", task, "--shards", 3, "--rebuild")
            assert indexed.code == 0, indexed.stderr
            words.require_same(commands, tmp_path / f"again{place}", task=task)
            day.judge()
        told = commands("doctor", "--json")
        assert VERSION in told.stdout and OLDER not in told.stdout
        cluster.await_whole()
        day.go_on()
        assert day.is_stored(cluster) and len(day.judged) == 5
