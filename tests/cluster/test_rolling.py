"""Rolling restarts and upgrades of a cluster while commands run."""

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


class Workload:
    """The usual commands on a task: index, rank and share a judgment."""

    def __init__(self, commands: Cli, words: Words, folder: Path) -> None:
        self.commands = commands
        self.words = words
        self.folder = folder
        self.judged: list[str] = []
        self.rounds = 0

    def repeat(self) -> None:
        """Run the commands once more, and check that they succeed with the same run."""
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
        result = self.commands("judgments", "sync")
        assert result.code == 0, result.stderr

    def is_stored(self, cluster: Cluster) -> bool:
        """Whether the index has exactly the shared judgments."""
        return sorted(stored(cluster, f"{PREFIX}-judgments")) == sorted(self.judged)


def test_a_rolling_restart_disturbs_no_command(
    cluster: Cluster, commands: Cli, words: Words, tmp_path: Path
) -> None:
    workload = Workload(commands, words, tmp_path)
    workload.repeat()

    def restart() -> None:
        for node in cluster.nodes:
            node.restart()
            cluster.await_complete()

    restarting = threading.Thread(target=restart)
    restarting.start()
    while restarting.is_alive():
        workload.repeat()
    restarting.join()
    workload.repeat()
    assert workload.rounds > 3 and workload.is_stored(cluster)


@pytest.fixture
def older(cluster: Cluster, commands: Cli, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Cluster]:
    """Return a function that makes three nodes of version 8 for the same commands."""

    def make() -> Cluster:
        cluster.stop()
        old_cluster = Cluster(3, java=BRIEF_LIFE, settings=QUICK_DETECTION, version=OLDER)
        monkeypatch.setenv("SEARCHAPP_URL", ",".join(old_cluster.urls))
        return old_cluster

    return make


def test_a_rolling_upgrade_changes_no_run(
    older: Callable[[], Cluster],
    commands: Cli,
    words: Words,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An index of version 8 stays searchable, and another one is built in the mixed cluster."""
    monkeypatch.setattr(
        shards, "COPIES_SECONDS", 5.0
    )  # copies of shards of newer nodes can't be on older ones
    task = renamed(words.task, tmp_path / "another", "again")
    with older() as cluster:
        workload = Workload(commands, words, tmp_path)
        workload.repeat()
        for number, node in enumerate(cluster.nodes, 1):
            cluster.upgrade(node, VERSION)
            words.require_same(commands, tmp_path / f"upgraded{number}", "dev")
            indexed = commands("index", task, "--shards", 3, "--rebuild")
            assert indexed.code == 0, indexed.stderr
            words.require_same(commands, tmp_path / f"again{number}", task=task)
            workload.judge()
        report = commands("doctor", "--json").stdout
        assert VERSION in report and OLDER not in report
        cluster.await_complete()
        workload.repeat()
        assert workload.is_stored(cluster) and len(workload.judged) == 5
