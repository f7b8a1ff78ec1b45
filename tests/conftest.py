"""Fixtures for the whole suite: a real Elasticsearch, the real data, and how long Hypothesis searches."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.real_data import real_data
from tests.server.choice import given_server
from tests.server.errors import ServerFailed, ServerUnavailable
from tests.server.faults import FaultProxy
from tests.server.node import Node
from tests.server.rest import Server

SERVER_FIXTURES = {"elasticsearch_url", "index_prefix", "secured_node", "fault_proxy"}
DATA_FIXTURES = {"nlps_data"}

PROFILE = os.environ.get("SEARCHAPP_TEST_PROFILE", "short")

SEED = int(os.environ.get("SEARCHAPP_TEST_SEED", "1"))
"""Names the cases of `tests.search`."""

# The time limit of a test does not count for its fixtures, which may have to download a server.
TEST_SECONDS = 300 if PROFILE == "short" else 1800

hypothesis.settings.register_profile("short", max_examples=50, deadline=None)
hypothesis.settings.register_profile("full", max_examples=1000, deadline=None)
hypothesis.settings.load_profile(PROFILE)


def pytest_configure() -> None:
    """Let the programs that tests start be interrupted, also where nobody can interrupt the tests.

    In the background of a script, and with many runners, SIGINT is ignored, and stays so in every new program. What a
    process handles is at its default in one, so that here it is handled: by going on.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:  # the hook's own signature
    """One process more than there are processors: much of a test waits for a server, a terminal or a lock."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(tryfirst=True)  # before pytest looks at `-m`
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use a server or the real data by what they ask for."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if fixtures & SERVER_FIXTURES:
            item.add_marker("elasticsearch")
        if fixtures & DATA_FIXTURES:
            item.add_marker("data")
        if item.get_closest_marker("elasticsearch") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(TEST_SECONDS, func_only=True))


def no_server(error: ServerUnavailable) -> None:
    """Skip the test for want of a server; under CI, where one must be there, fail it."""
    if os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail(str(error), pytrace=False)
    pytest.skip(str(error))


@pytest.fixture(scope="session")
def _elasticsearch() -> Iterator[Server]:
    """The session's server: the one that SEARCHAPP_TEST_URL names, or a node of our own."""
    try:
        if server := given_server():
            yield server
            return
        node = Node()
    except ServerUnavailable as error:
        no_server(error)
    except ServerFailed as error:
        pytest.fail(str(error), pytrace=False)
    with node:
        yield node.server


@pytest.fixture(scope="session")
def elasticsearch_url(_elasticsearch: Server) -> str:
    """The address of a real Elasticsearch without security, such as `http://127.0.0.1:40123`."""
    return _elasticsearch.url


@pytest.fixture
def index_prefix(_elasticsearch: Server) -> Iterator[str]:
    """A prefix that no other test uses; indices and aliases that begin with it are deleted afterwards."""
    prefix = f"test-{secrets.token_hex(6)}"
    yield prefix
    _elasticsearch.delete_indices(prefix)


@pytest.fixture(scope="session")
def secured_node() -> Iterator[Node]:
    """A node with TLS and a password, see `tests.server.node.Node`; a test that stops it starts it again."""
    try:
        node = Node(security=True)
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
