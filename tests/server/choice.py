"""Where the server of a test session comes from."""

from __future__ import annotations

import http.client
import os

from .distribution import wanted_version
from .docker import Docker
from .errors import ADVICE, ServerFailed, ServerUnavailable
from .node import Host
from .rest import Server
from .unpacked import Unpacked

VARIABLE = "SEARCHAPP_TEST_URL"


def given_server() -> Server | None:
    """The server that SEARCHAPP_TEST_URL names, or None when it is unset.

    Raises:
        ServerFailed: it does not answer as Elasticsearch does. Whoever names a server means it, so that
            this is never a reason to look for another one.
    """
    url = os.environ.get(VARIABLE, "").rstrip("/")
    if not url:
        return None
    server = Server(url)
    try:
        answer = server.request("GET", "/")
    except (OSError, http.client.HTTPException) as error:
        raise ServerFailed(f"{VARIABLE} names {url}, which does not answer: {error}") from error
    if answer.status != 200 or answer.headers.get("x-elastic-product") != "Elasticsearch":
        raise ServerFailed(
            f"{VARIABLE} names {url}, which answers {answer.status} and not as Elasticsearch does"
        )
    return server


def find_host(version: str | None = None) -> Host:
    """The first way to run a node that works here: Docker, then an unpacked distribution.

    Of the version that the session's tests run on, if none is given.

    Raises:
        ServerFailed: SEARCHAPP_TEST_VERSION names none that there is
        ServerUnavailable: none works; the message says why, and what to install
    """
    reasons = []
    for kind in (Docker, Unpacked):
        try:
            return kind.find(version or wanted_version())
        except ServerUnavailable as error:
            reasons.append(str(error))
    raise ServerUnavailable(f"no Elasticsearch to test against: {ADVICE} ({'; '.join(reasons)})")
