"""Three nodes that the tests of this folder share, and commands with the addresses of all nodes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, clear_variables, run_command
from tests.cluster.collection import Words
from tests.conftest import MEMORY, no_server
from tests.profile import FULL
from tests.scheduling import CLUSTER
from tests.server.cluster import QUICK_DETECTION, Cluster
from tests.server.distribution import ServerUnavailable
from tests.server.node import BRIEF_LIFE, Setting

PREFIX = "test-cluster"

ONLY_FULL = ("certificates", "comparison", "red", "rolling", "search_screen", "snapshots")

collect_ignore = [] if FULL else [f"test_{name}.py" for name in ONLY_FULL]
"""The short profile runs the most effective tests in a minute: a kill, full disks, a slow node, moved aliases."""

KILLS = int(os.environ.get("SEARCHAPP_TEST_KILLS", "20" if FULL else "1"))
"""Number of repetitions of each loss of a node."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests that leave a dead node last, so that it must not start again for the next test."""
    positions = [
        number for number, item in enumerate(items) if item.path.is_relative_to(Path(__file__).parent)
    ]
    ordered = sorted((items[number] for number in positions), key=leaves_dead)
    for number, item in zip(positions, ordered, strict=True):
        items[number] = item


def leaves_dead(item: pytest.Item) -> bool:
    """Whether a test has the mark of tests that kill a node and do not start it again."""
    return item.get_closest_marker("leaves_dead") is not None


@pytest.fixture(scope="package", params=[CLUSTER])  # the parameter adds the word to the name of each test
def _nodes() -> Iterator[Cluster]:
    """Start the cluster, in one process, see `tests.scheduling`."""
    with tempfile.TemporaryDirectory(prefix="searchapp-snapshots-") as snapshots:
        Path(snapshots).chmod(0o777)  # the nodes run as another user
        more: dict[str, Setting] = {"path.repo": [snapshots], "cluster.info.update.interval": "10s"}
        try:
            # nodes are restarted often, so that none runs for long, also in the full profile
            cluster = Cluster(3, java=BRIEF_LIFE, settings={**QUICK_DETECTION, **more}, within=MEMORY)
        except ServerUnavailable as error:
            no_server(error)
        with cluster:
            yield cluster


@pytest.fixture
def cluster(_nodes: Cluster) -> Iterator[Cluster]:
    """Recover the three nodes before a test, and delete indexes that begin with `PREFIX` after it."""
    _nodes.recover()
    yield _nodes
    running = [node for node in _nodes.nodes if node.running]
    for node in running:
        node.resume()
    if running:  # dead nodes drop deleted indexes when they start
        _nodes.server.delete_indices(PREFIX)


@pytest.fixture
def commands(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Return a function that runs commands with the addresses of all nodes."""
    return commands_on(",".join(cluster.urls), PREFIX, monkeypatch, tmp_path)


def commands_on(url: str, prefix: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Cli:
    """Return a function that runs commands with an address and the test's own home folder."""
    clear_variables(monkeypatch)
    monkeypatch.setenv("SEARCHAPP_HOME", str(folder / "home"))
    monkeypatch.setenv("SEARCHAPP_URL", url)
    monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", prefix)
    return run_command


@pytest.fixture(scope="session")
def words(tmp_path_factory: pytest.TempPathFactory) -> Words:
    """Make a small task and its undisturbed run."""
    return Words.make(tmp_path_factory.mktemp("words"))
