from __future__ import annotations

from collections.abc import Iterator

import pytest

from searchapp.fetching import download
from tests.fetching.server import FileServer


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A file server that is reached without a proxy, with short waits between attempts."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setattr(download, "FIRST_WAIT_SECONDS", 0.01)
    with FileServer() as server:
        yield server
