"""The client, bounded retries, and every way a request can fail turned into one sentence."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import tenacity
from elastic_transport import ConnectionError as NoConnection
from elastic_transport import ConnectionTimeout, SerializationError, TlsError, TransportError
from elasticsearch import (
    ApiError,
    AuthenticationException,
    AuthorizationException,
    Elasticsearch,
    UnsupportedProductError,
)

from searchapp.errors import EngineError, EngineRefused, EngineUnreachable, UsageError
from searchapp.inputs import open_file
from searchapp.settings import Settings

OLDEST_SERVER = (9, 0)
RETRIED_STATUS = (429, 502, 503, 504)
"""Answers that ask for patience: a full queue, a node that is restarting behind a proxy."""

ATTEMPTS = 6
FIRST_WAIT_SECONDS = 0.25
LONGEST_WAIT_SECONDS = 8.0
REQUEST_TIMEOUT_SECONDS = 60.0

T = TypeVar("T")

# The client logs each of its attempts as a warning, which Python would print: what came of them is told by us.
logging.getLogger("elastic_transport").addHandler(logging.NullHandler())


class Connection:
    """An open client and the address it talks to.

    `call` is the only way a request is made: it waits and tries again where that can help, at most `ATTEMPTS`
    times, and turns whatever remains into an `EngineError`.
    """

    def __init__(
        self,
        client: Elasticsearch,
        url: str,
        attempts: int = ATTEMPTS,
        timeout: float = REQUEST_TIMEOUT_SECONDS,
    ) -> None:
        self.client = client
        self.timeout = timeout
        self.url = url
        self.attempts = attempts
        self.server_version = "unknown"

    @classmethod
    def open(
        cls, settings: Settings, attempts: int = ATTEMPTS, timeout: float = REQUEST_TIMEOUT_SECONDS
    ) -> Connection:
        """Connect with the settings' address and credentials, and check who answers.

        The first request is not retried: a wrong address should be told at once.
        """
        url = without_credentials(settings.url)
        connection = cls(_client(settings, timeout), url, attempts, timeout)
        try:
            connection.server_version = connection._check_server()
        except EngineError:
            connection.close()
            raise
        return connection

    def call(self, what: str, request: Callable[[], T], *, attempts: int | None = None) -> T:
        """The result of `request()`; `what` says in an error what was being done ("create the index x")."""
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(attempts or self.attempts),
            wait=tenacity.wait_exponential(multiplier=FIRST_WAIT_SECONDS, max=LONGEST_WAIT_SECONDS),
            retry=tenacity.retry_if_exception(_is_passing),
            reraise=True,
        )
        try:
            return retrying(request)
        except (ApiError, TransportError) as error:
            raise self.translated(what, error, attempts) from error
        except RecursionError as error:
            raise EngineRefused(
                f"the answer of {self.url} is nested too deeply to be read ({what}): is it an Elasticsearch?"
            ) from error

    def translated(
        self, what: str, error: ApiError | TransportError, attempts: int | None = None
    ) -> EngineError:
        """The client's exception as a sentence with what was done, where, and what to do about it."""
        if isinstance(error, ApiError):
            return _refusal(self.url, what, error, attempts or self.attempts)
        return _unreachable(self.url, what, error, self.timeout)

    def close(self) -> None:
        self.client.close()

    def _check_server(self) -> str:
        try:
            number = str(self.call("connect", self.client.info, attempts=1)["version"]["number"])
        except EngineRefused as error:
            if isinstance(error.__cause__, AuthorizationException):
                # An API key that may use our indexes but not ask for the cluster's state: nothing is wrong.
                return "unknown"
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise EngineRefused(f"{self.url} is not an Elasticsearch: it tells no version") from error
        if _version(number) < OLDEST_SERVER:
            raise EngineRefused(_too_old(self.url, number))
        return number


def reason(error: Any) -> str:
    """The innermost reason in an error body of Elasticsearch: the outer ones only repeat what was asked."""
    while isinstance(error, dict):
        causes = error.get("root_cause")
        deeper = error.get("caused_by") or error.get("error")
        if not deeper and causes and causes[0].get("reason") != error.get("reason"):
            deeper = causes[0]
        if not deeper:
            return str(error.get("reason") or error.get("type") or error)
        error = deeper
    return str(error)


def _client(settings: Settings, timeout: float) -> Elasticsearch:
    options: dict[str, Any] = {}
    if settings.ca_certs is not None and settings.url.startswith("https"):
        options["ssl_context"] = _trusting(settings.ca_certs)
    if settings.api_key:
        options["api_key"] = settings.api_key
    elif settings.username and settings.password:
        options["basic_auth"] = (settings.username, settings.password)
    try:
        return Elasticsearch(
            _with_port(settings.url),
            request_timeout=timeout,
            max_retries=0,  # `Connection.call` retries: it waits longer each time, after a 429 too
            retry_backoff_base=FIRST_WAIT_SECONDS,
            retry_backoff_cap=LONGEST_WAIT_SECONDS,
            **options,
        )
    except ValueError as error:
        problem = str(error).rstrip(".")
        raise UsageError(
            f"{without_credentials(settings.url)!r} is no address of a server ({problem}): "
            "use the form http://localhost:9200"
        ) from error


def _trusting(ca_certs: Path) -> ssl.SSLContext:
    """A context that trusts the authorities in a PEM file; read here, so that a wrong file is told as such."""
    try:
        with open_file(ca_certs):  # a pipe would keep the library waiting
            return ssl.create_default_context(cafile=str(ca_certs))
    except ssl.SSLError as error:
        raise UsageError(f"{ca_certs} holds no certificates in PEM form ({error.reason})") from error
    except OSError as error:
        raise UsageError(
            f"{ca_certs} can't be read ({error.strerror}): SEARCHAPP_CA_CERTS must name a PEM file"
        ) from error


def _with_port(url: str) -> str:
    """The address with its port written out, as the client demands: 443 for https, 9200 for http."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it needs a scheme, http or https, and a host")
    if parts.port is not None:
        return url
    default = 443 if parts.scheme == "https" else 9200
    return parts._replace(netloc=f"{parts.netloc}:{default}").geturl()


def without_credentials(url: str) -> str:
    """The address as it may be shown: without user and password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.rpartition("@")[2]
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _version(number: str) -> tuple[int, int]:
    major, minor, *_rest = number.split("-")[0].split(".")
    return int(major), int(minor)


def _too_old(url: str, number: str) -> str:
    oldest = ".".join(map(str, OLDEST_SERVER))
    return f"{url} runs Elasticsearch {number}, searchapp needs {oldest} or newer: upgrade the server"


def _is_passing(error: BaseException) -> bool:
    """Whether trying again later can help."""
    if isinstance(error, ApiError):
        return error.status_code in RETRIED_STATUS
    return isinstance(error, NoConnection | ConnectionTimeout) and not isinstance(error, TlsError)


def _unreachable(url: str, what: str, error: TransportError, timeout: float) -> EngineError:
    if isinstance(error, TlsError):
        cause = str(error.message)  # what OpenSSL said; `str(error)` says no more than "TLS error"
        if "CERTIFICATE_VERIFY_FAILED" in cause:
            return EngineUnreachable(
                f"{url} shows a certificate that is not trusted here: "
                "set SEARCHAPP_CA_CERTS to the PEM file of the authority that signed it"
            )
        return EngineUnreachable(f"the TLS handshake with {url} failed ({cause}): is it an https address?")
    if isinstance(error, ConnectionTimeout):
        return EngineUnreachable(
            f"{url} did not answer in {timeout:.0f} s, so searchapp could not {what}: "
            "look at the server's load and try again"
        )
    if isinstance(error, SerializationError):
        return EngineRefused(f"{url} is not an Elasticsearch: its answer is no JSON; check the address")
    return EngineUnreachable(
        f"no Elasticsearch answers at {url}, so searchapp could not {what}: "
        "start it, or give its address with --url or SEARCHAPP_URL"
    )


def _refusal(url: str, what: str, error: ApiError, attempts: int) -> EngineError:
    body, status = error.body, error.status_code
    tried = f", even after {attempts} attempts" if attempts > 1 else ""
    detail = reason(body.get("error", body)) if isinstance(body, dict) else str(error.message)
    kind = (
        body["error"].get("type", "")
        if isinstance(body, dict) and isinstance(body.get("error"), dict)
        else ""
    )
    if isinstance(error, UnsupportedProductError):
        return EngineRefused(f"{url} answers, but it is not an Elasticsearch: check the address")
    if isinstance(error, AuthenticationException):
        return EngineRefused(
            f"{url} does not accept the credentials: "
            "check SEARCHAPP_USERNAME and SEARCHAPP_PASSWORD, or SEARCHAPP_API_KEY"
        )
    if kind == "media_type_header_exception":
        return EngineRefused(_too_old(url, "8 or older"))
    if kind == "cluster_block_exception":
        return EngineRefused(
            f"{url} could not {what}: the index or the cluster is read-only ({detail}); "
            "free disk space or remove the block, then try again"
        )
    if isinstance(error, AuthorizationException):
        return EngineRefused(
            f"{url} does not allow this user to {what} ({detail}): ask for a role or key that may"
        )
    if status == 429:
        return EngineRefused(
            f"{url} is too busy to {what}{tried} ({detail}): try again when it has less to do"
        )
    if status in RETRIED_STATUS:
        return EngineUnreachable(
            f"{url} could not {what}{tried} (status {status}: {detail}): "
            "look at the server's health and try again"
        )
    return EngineRefused(f"{url} refused to {what}: {detail}")
