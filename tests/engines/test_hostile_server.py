"""A server that is none, or answers what no Elasticsearch would: a sentence, whatever it says."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from searchapp.config.settings import Settings
from searchapp.engines.elasticsearch import ElasticsearchEngine
from searchapp.errors import EngineError, UsageError

VERSION = '{"version": {"number": %s}, "tagline": "You Know, for Search"}'
ANSWERS = {
    "nested without end": "[" * 100_000,
    "nested deeply": VERSION % ("[" * 5000 + "]" * 5000),
    "a number of too many digits": VERSION % ("9" * 5000),
    "a list": "[]",
    "text": '"9.1.0"',
    "nothing": "",
    "no JSON": "<html>",
}


@pytest.fixture(autouse=True)
def _no_collection(quick_collection: None) -> Iterator[None]:
    """No garbage is collected where the recursion is deepest: what is called for it there would fail."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@contextmanager
def answering(body: bytes, status: int = 200) -> Iterator[str]:
    """The address of a server that gives this answer to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("X-Elastic-Product", "Elasticsearch")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_told: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_that_cannot_be_read_is_a_sentence(tmp_path: Path, answer: str, status: int) -> None:
    with answering(ANSWERS[answer].encode(), status) as url, pytest.raises(EngineError) as raised:
        ElasticsearchEngine.connect(Settings(home=tmp_path, engine="elasticsearch", url=url)).close()
    assert url in str(raised.value)


def test_certificates_in_a_pipe_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    settings = Settings(home=tmp_path, url="https://localhost", ca_certs=tmp_path / "pipe")
    with pytest.raises(UsageError, match="it is a pipe, not a file"):
        ElasticsearchEngine.connect(settings)
