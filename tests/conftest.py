"""Fixtures for the whole suite: a real Elasticsearch, the real data, and how long Hypothesis searches."""

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
from tests.scheduling import pytest_xdist_make_scheduler as pytest_xdist_make_scheduler  # a hook, by its name
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

# Typer makes the whole command line anew each time that a test invokes it, which takes longer than many commands.
typer.testing._get_command = cache(typer.main.get_command)  # type: ignore[attr-defined]

if not FULL:
    # Only a loss of power shows what was not synchronized with the disk, and no test makes one.
    os.fsync = lambda fd: None  # the name is part of its type


IN_MEMORY: pytest.StashKey[Path] = pytest.StashKey()


@pytest.hookimpl(tryfirst=True)  # before pytest looks where temporary folders are to be
def pytest_configure(config: pytest.Config) -> None:
    """Put temporary folders in memory, unless an option names a place, and let programs be interrupted."""
    if MEMORY and not config.option.basetemp and not hasattr(config, "workerinput"):
        folder = config.stash[IN_MEMORY] = own_folder(MEMORY)
        config.option.basetemp = str(folder / "tests")
        have_temporary_folders_in(folder / "tmp")
    gc.disable()  # what is collected stays: to look through it again and again takes a tenth of collecting
    be_interruptible()


@pytest.hookimpl(trylast=True)  # after Hypothesis, which begins then, and before xdist starts its processes
def pytest_sessionstart(session: pytest.Session) -> None:
    """Let test processes be forks of one that has imported the tests."""
    config = session.config
    if not FULL and sys.platform == "linux" and config.option.numprocesses and not config.option.collectonly:
        tests = (path for path in sorted(Path(__file__).parent.rglob("*.py")) if is_rewritten(path))
        fork_workers(config, tests)


def is_rewritten(path: Path) -> bool:
    """Whether pytest rewrites the assertions of a module."""
    return path.name == "conftest.py" or path.name.startswith("test_")


def have_temporary_folders_in(folder: Path) -> None:
    """Set the temporary folder of this process and its children."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o1777)  # as any such place, also for a server that runs as another user
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None  # what was found before is looked for again


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the folders in memory."""
    if folder := config.stash.get(IN_MEMORY, None):
        shutil.rmtree(folder, ignore_errors=True)


def be_interruptible() -> None:
    """Let the programs that tests start be interrupted, also where nobody can interrupt the tests.

    In the background of a script, and with many runners, SIGINT is ignored, and stays so in every new program. What a
    process handles is at its default in one, so that here it is handled: by going on.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:  # the hook's own signature
    """Two processes more than there are processors: much of a test waits for a server, a terminal or a lock.

    With one more a fifth of two processors' time went by unused.
    """
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(tryfirst=True)  # before pytest looks at `-m`
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use a server or the real data by their fixtures."""
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
    """Let the garbage collector pass over what stays to the end: modules and thousands of tests.

    It would look through them again and again, which takes a fifth of the processor time of a screen's test. What is
    forked off shares that memory for longer, too. Cycles that tests leave are still collected, only in larger heaps.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(500_000, 10, 10)
    gc.enable()


@pytest.fixture(scope="session")
def _common(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of all test processes of this session."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if hasattr(pytestconfig, "workerinput") else folder  # each of xdist's has one in it


@pytest.fixture(scope="session")
def _elasticsearch(_common: Path) -> Iterator[Server]:
    """The server of all test processes: the one that SEARCHAPP_TEST_URL names, or a node of our own."""
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
    """The node of all test processes."""
    # From the heap follows how many clauses a query may have; for the same number 8.19 needs half of it.
    heap = "1g" if distribution.wanted_version() == distribution.VERSION else "512m"
    return Node(heap=heap, java=JAVA, within=MEMORY, line=line)


@pytest.fixture(scope="session")
def elasticsearch_url(_elasticsearch: Server) -> str:
    """The address of a real Elasticsearch without security, such as `http://127.0.0.1:40123`."""
    return _elasticsearch.url


@pytest.fixture(scope="session", params=["newest", OLDER])
def compared_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an Elasticsearch to compare the embedded engine with: the session's, then one of version 8.

    The second belongs to one process, see `tests.scheduling`, unless the session's is of that version anyway.
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
    """As `index_prefix`, for the server at `compared_url`."""
    prefix = f"test-{secrets.token_hex(6)}"
    yield prefix
    Server(compared_url).delete_indices(prefix)


@pytest.fixture
def index_prefix(_elasticsearch: Server) -> Iterator[str]:
    """A prefix that no other test uses; indices and aliases that begin with it are deleted afterwards."""
    prefix = f"test-{secrets.token_hex(6)}"
    yield prefix
    _elasticsearch.delete_indices(prefix)


@pytest.fixture(scope="session", params=[SECURED])  # the parameter puts the word into the name of each test
def secured_node() -> Iterator[Node]:
    """A node with TLS and a password, see `tests.server.node.Node`; a test that stops it starts it again.

    It belongs to one process, so that a test may stop it: see `tests.scheduling`.
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
