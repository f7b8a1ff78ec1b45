"""Three nodes that the tests of this folder share, and commands that know the addresses of all of them."""

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
"""The short form is what finds most in a minute: a kill, full disks, a slow node, aliases that others move."""

KILLS = int(os.environ.get("SEARCHAPP_TEST_KILLS", "20" if FULL else "1"))
"""How often each loss of a node is repeated."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have those tests come last here that leave a node dead: it needn't start again for the next one."""
    here = [place for place, item in enumerate(items) if item.path.is_relative_to(Path(__file__).parent)]
    for place, item in zip(here, sorted((items[place] for place in here), key=leaves_dead), strict=True):
        items[place] = item


def leaves_dead(item: pytest.Item) -> bool:
    """Whether a test is marked as one that kills a node and does not start it again."""
    return item.get_closest_marker("leaves_dead") is not None


@pytest.fixture(scope="package", params=[CLUSTER])  # the parameter puts the word into the name of each test
def _nodes() -> Iterator[Cluster]:
    """The cluster, which belongs to one process: see `tests.scheduling`."""
    with tempfile.TemporaryDirectory(prefix="searchapp-snapshots-") as snapshots:
        Path(snapshots).chmod(0o777)  # the nodes run as another user
        more: dict[str, Setting] = {"path.repo": [snapshots], "cluster.info.update.interval": "10s"}
        try:
            # Nodes are started again and again: none of them lives for long, in the full form either.
            cluster = Cluster(3, java=BRIEF_LIFE, settings={**QUICK_DETECTION, **more}, within=MEMORY)
        except ServerUnavailable as error:
            no_server(error)
        with cluster:
            yield cluster


@pytest.fixture
def cluster(_nodes: Cluster) -> Iterator[Cluster]:
    """Three nodes that run and are whole; indexes that begin with `PREFIX` are deleted afterwards."""
    _nodes.recover()
    yield _nodes
    there = [node for node in _nodes.nodes if node.running]
    for node in there:
        node.resume()
    if there:  # one that is gone misses nothing: it forgets what was deleted meanwhile
        _nodes.server.delete_indices(PREFIX)


@pytest.fixture
def commands(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Runs commands of searchapp that have the addresses of all nodes."""
    return commands_on(",".join(cluster.urls), PREFIX, monkeypatch, tmp_path)


def commands_on(url: str, prefix: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Cli:
    """Runs commands of searchapp at an address, with a home folder of the test's own."""
    clear_variables(monkeypatch)
    monkeypatch.setenv("SEARCHAPP_HOME", str(folder / "home"))
    monkeypatch.setenv("SEARCHAPP_URL", url)
    monkeypatch.setenv("SEARCHAPP_INDEX_PREFIX", prefix)
    return run_command


@pytest.fixture(scope="session")
def words(tmp_path_factory: pytest.TempPathFactory) -> Words:
    """A small task and its undisturbed run."""
    return Words.make(tmp_path_factory.mktemp("words"))
