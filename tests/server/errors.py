"""What can go wrong before a test has its server."""

from __future__ import annotations

ADVICE = "install Docker, or Maven and Java 21 or newer, or set SEARCHAPP_TEST_URL"


class ServerError(Exception):
    """No server for the tests."""


class ServerUnavailable(ServerError):
    """This machine has no means to run an Elasticsearch: tests that need one are skipped."""


class ServerFailed(ServerError):
    """There is an Elasticsearch, and it does not start or does not answer: that is never skipped."""
