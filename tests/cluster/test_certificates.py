"""A node with a new certificate is rejected until the user trusts it."""

from __future__ import annotations

import gc
import hashlib
import shutil
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cluster.collection import Words
from tests.cluster.conftest import commands_on
from tests.cluster.test_faults import engine_error
from tests.server.node import Node

# The client library leaves sockets with failed TLS handshakes to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:.*ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")

PREFIX = "test-certificates"


@pytest.fixture
def secured(secured_node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """Return a function that runs commands on the secured node, as its user."""
    run = commands_on(secured_node.url, PREFIX, monkeypatch, tmp_path)
    monkeypatch.setenv("SEARCHAPP_USERNAME", str(secured_node.username))
    monkeypatch.setenv("SEARCHAPP_PASSWORD", str(secured_node.password))
    yield run
    secured_node.server.delete_indices(PREFIX)
    gc.collect()


def certificate_of(node: Node) -> str:
    """Return the certificate of a node."""
    return ssl.get_server_certificate(("127.0.0.1", int(node.url.rpartition(":")[2])))


def test_a_new_certificate_is_rejected_until_it_is_trusted(
    secured: Cli, secured_node: Node, words: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert secured_node.ca_certs is not None
    authority, before = tmp_path / "before.pem", certificate_of(secured_node)
    shutil.copy(secured_node.ca_certs, authority)
    fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(before)).hexdigest()
    monkeypatch.setenv("SEARCHAPP_CA_CERTS", str(authority))
    assert secured("index", words.task).code == 0
    secured_node.renew_certificates()
    deadline = time.monotonic() + 60
    while certificate_of(secured_node) == before:
        assert time.monotonic() < deadline, "the node still has its old certificate"
        time.sleep(0.2)
    rank = ("rank", words.task, "--split", "few", "--out", tmp_path / "run")
    message = engine_error(secured(*rank))
    assert "has a certificate that this machine does not trust" in message
    assert "whether it was replaced" in message
    monkeypatch.delenv("SEARCHAPP_CA_CERTS")
    monkeypatch.setenv("SEARCHAPP_FINGERPRINT", fingerprint)
    message = engine_error(secured(*rank))
    assert "has no certificate with the fingerprint" in message
    assert "whether the certificates were replaced" in message
    assert not (tmp_path / "run").exists()
    monkeypatch.delenv("SEARCHAPP_FINGERPRINT")
    monkeypatch.setenv("SEARCHAPP_CA_CERTS", str(secured_node.ca_certs))
    words.require_same(secured, tmp_path / "run")
