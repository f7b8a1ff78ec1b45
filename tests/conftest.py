"""Fixtures and hooks of all tests: Elasticsearch nodes, the real data, temporary folders and test processes."""

from __future__ import annotations

import gc
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import NoReturn

import hypothesis
import pytest
import typer.main
import typer.testing

from tests.memory import in_memory, own_folder
from tests.profile import FULL, PROFILE
from tests.real import RealRuns, real_data
from tests.scheduling import OLDER, SECURED
from tests.scheduling import (
    pytest_xdist_make_scheduler as pytest_xdist_make_scheduler,
)  # pytest finds the hook by its name
from tests.server import distribution
from tests.server.distribution import Distribution, ServerFailed, ServerUnavailable
from tests.server.faults import FaultProxy
from tests.server.node import BRIEF_LIFE, Node
from tests.server.rest import Server
from tests.server.shared import given_server, shared_server
from tests.workers import fork_workers

SERVER_FIXTURES = {
    "elasticsearch_url",
    "compared_url",
    "index_prefix",
    "secured_node",
    "cluster",
    "fault_proxy",
}
DATA_FIXTURES = {"nlps_data", "real_runs"}

JAVA = () if FULL else BRIEF_LIFE
"""Options of the servers' Java."""

MEMORY = None if FULL else in_memory()
"""The parent of the folders of servers and tests; None for the default of the machine."""

TEST_SECONDS = 1800 if FULL else 300
"""The time limit of a test, without fixtures of servers, which may be downloaded."""

hypothesis.settings.register_profile("short", max_examples=50, deadline=None)
hypothesis.settings.register_profile("full", max_examples=1000, deadline=None)
hypothesis.settings.load_profile(PROFILE)

# Typer builds the command line again on each invocation, which takes longer than many commands.
typer.testing._get_command = cache(typer.main.get_command)  # type: ignore[attr-defined]

if not FULL:
    # No test simulates a loss of power, which alone shows missing synchronization with the disk.
    os.fsync = lambda fd: None  # `os.fsync` has this parameter name


IN_MEMORY: pytest.StashKey[Path] = pytest.StashKey()


@pytest.hookimpl(tryfirst=True)  # before pytest chooses the folder of temporary folders
def pytest_configure(config: pytest.Config) -> None:
    """Put temporary folders in memory, unless `--basetemp` is set, and let started programs be interrupted."""
    if MEMORY and not config.option.basetemp and not hasattr(config, "workerinput"):
        folder = config.stash[IN_MEMORY] = own_folder(MEMORY)
        config.option.basetemp = str(folder / "tests")
        set_temporary_folder(folder / "tmp")
    gc.disable()  # collected tests stay; searching them for garbage takes a tenth of the collection time
    make_interruptible()


@pytest.hookimpl(trylast=True)  # after the hook of Hypothesis and before xdist starts its processes
def pytest_sessionstart(session: pytest.Session) -> None:
    """Let test processes be forks of a process that has imported the tests."""
    config = session.config
    if not FULL and sys.platform == "linux" and config.option.numprocesses and not config.option.collectonly:
        tests = (path for path in sorted(Path(__file__).parent.rglob("*.py")) if is_rewritten(path))
        fork_workers(config, tests)


def is_rewritten(path: Path) -> bool:
    """Return whether pytest rewrites the assertions of a module."""
    return path.name == "conftest.py" or path.name.startswith("test_")


def set_temporary_folder(folder: Path) -> None:
    """Set the temporary folder of this process and its children."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o1777)  # like /tmp, also for a server that runs as another user
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None  # the module reads TMPDIR again


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the folders in memory."""
    if folder := config.stash.get(IN_MEMORY, None):
        shutil.rmtree(folder, ignore_errors=True)


def make_interruptible() -> None:
    """Let started programs receive SIGINT, also if the test process ignores it.

    Scripts and many runners start background processes with SIGINT ignored, and new programs inherit that. Programs do
    not inherit a handler, so that this process installs a handler that does nothing.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:  # the signature is that of the hook
    """Return the number of processors plus 2, because tests often wait for a server, a terminal or a lock.

    With one additional process, a fifth of the time of two processors stayed unused.
    """
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(tryfirst=True)  # before pytest evaluates `-m`
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that use a server or the real data, by their fixtures, and set time limits."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & SERVER_FIXTURES:
            item.add_marker("elasticsearch")
        if fixtures & DATA_FIXTURES:
            item.add_marker("data")
        if not item.get_closest_marker("timeout"):
            on_server = item.get_closest_marker("elasticsearch") is not None
            item.add_marker(pytest.mark.timeout(TEST_SECONDS, func_only=on_server))


def no_server(error: ServerUnavailable) -> NoReturn:
    """Skip a test that lacks a server; fail it in continuous integration."""
    if os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail(str(error), pytrace=False)
    pytest.skip(str(error))


def pytest_collection_finish() -> None:
    """Exclude modules and collected tests from garbage collection.

    Searching them takes a fifth of the processor time of a screen's test, and forks would copy their memory. Cycles of
    tests are still collected, but less often.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(500_000, 10, 10)
    gc.enable()


@pytest.fixture(scope="session")
def _common(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of all test processes of this session."""
    folder = tmp_path_factory.getbasetemp()
    return (
        folder.parent if hasattr(pytestconfig, "workerinput") else folder
    )  # a folder for each process of xdist is in it


@pytest.fixture(scope="session")
def _elasticsearch(_common: Path) -> Iterator[Server]:
    """The server of all test processes: the server in SEARCHAPP_TEST_URL, or a node that the tests start."""
    with ExitStack() as stack:
        try:
            server = given_server() or stack.enter_context(
                shared_server(_common / "elasticsearch", make_node)
            )
        except ServerUnavailable as error:
            no_server(error)
        except ServerFailed as error:
            pytest.fail(str(error), pytrace=False)
        yield server


def make_node(line: Path) -> Node:
    """Make the node of all test processes."""
    # The maximum number of clauses depends on the heap; 8.19 allows the same number with half of it.
    heap = "1g" if distribution.wanted_version() == distribution.VERSION else "512m"
    return Node(heap=heap, java=JAVA, within=MEMORY, line=line)


@pytest.fixture(scope="session")
def elasticsearch_url(_elasticsearch: Server) -> str:
    """The address of a real Elasticsearch without security, such as `http://127.0.0.1:40123`."""
    return _elasticsearch.url


@pytest.fixture(scope="session", params=["newest", OLDER])
def compared_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an Elasticsearch to compare the embedded engine with: the session's server, or version 8.

    One test process starts the node of version 8, see `tests.scheduling`. It is skipped if the session's server has
    that version.
    """
    if request.param != OLDER:
        yield request.getfixturevalue("elasticsearch_url")
        return
    if "SEARCHAPP_TEST_URL" not in os.environ and distribution.wanted_version() == distribution.OLDER:
        pytest.skip("the session's server is of this version")
    try:
        node = Node(Distribution.find(distribution.OLDER), java=JAVA, within=MEMORY)
    except ServerUnavailable as error:
        no_server(error)
    with node:
        yield node.url


@pytest.fixture
def compared_prefix(compared_url: str) -> Iterator[str]:
    """Like `index_prefix`, for the server at `compared_url`."""
    prefix = f"test-{secrets.token_hex(6)}"
    yield prefix
    Server(compared_url).delete_indices(prefix)


@pytest.fixture
def index_prefix(_elasticsearch: Server) -> Iterator[str]:
    """A prefix that no other test uses; indices and aliases that begin with it are deleted afterwards."""
    prefix = f"test-{secrets.token_hex(6)}"
    yield prefix
    _elasticsearch.delete_indices(prefix)


@pytest.fixture(scope="session", params=[SECURED])  # the parameter is part of the name of each test
def secured_node() -> Iterator[Node]:
    """A node with TLS and a password, see `tests.server.node.Node`.

    One test process uses it, see `tests.scheduling`, so that a test may stop it; the test starts it again.
    """
    try:
        node = Node(security=True, java=JAVA, within=MEMORY)
    except ServerUnavailable as error:
        no_server(error)
    with node:
        yield node


@pytest.fixture
def fault_proxy(_elasticsearch: Server) -> Iterator[FaultProxy]:
    """A proxy in front of the session's server, which injects the faults that the test asks for."""
    with FaultProxy(_elasticsearch) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def nlps_data() -> Path:
    """The folder of the real NLPS data."""
    return real_data("nlps")


@pytest.fixture(scope="session")
def real_runs(_common: Path) -> RealRuns:
    """Indexes and runs of the real data on the embedded engine, made once for all tests."""
    return RealRuns(_common / "real")
