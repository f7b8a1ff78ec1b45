"""Malformed responses of a server end with an error that names the server."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.errors import EngineError, UsageError
from tests.server.faults import PRODUCT, LoopbackServer, Request, Response

VERSION = '{"version": {"number": %s}, "tagline": "You Know, for Search"}'
ANSWERS = {
    "nested, unclosed": "[" * 100_000,
    "nested deeply": VERSION % ("[" * 5000 + "]" * 5000),
    "a number with too many digits": VERSION % ("9" * 5000),
    "a list": "[]",
    "text": '"9.1.0"',
    "nothing": "",
    "not JSON": "<html>",
}


@pytest.fixture(autouse=True)
def _no_collection(quick_collection: None) -> Iterator[None]:
    """Disable garbage collection, because its callbacks would fail in the deepest recursion."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class FixedServer(LoopbackServer):
    """A server that sends one response to all requests."""

    def __init__(self, body: str, status: int) -> None:
        super().__init__()
        self._response = Response(status, {"Content-Type": "application/json", **PRODUCT}, body.encode())

    def respond(self, request: Request) -> Response:
        return self._response


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("answer", ANSWERS)
def test_malformed_responses_are_reported_with_the_address(tmp_path: Path, answer: str, status: int) -> None:
    with FixedServer(ANSWERS[answer], status) as server, pytest.raises(EngineError) as error:
        ElasticsearchEngine.connect(Settings(home=tmp_path, engine="elasticsearch", url=server.url)).close()
    assert server.url in str(error.value)


def test_certificates_in_a_pipe_are_rejected(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    settings = Settings(home=tmp_path, url="https://localhost", ca_certs=tmp_path / "pipe")
    with pytest.raises(UsageError, match="it is a pipe, not a file"):
        ElasticsearchEngine.connect(settings)
