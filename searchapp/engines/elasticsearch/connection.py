"""The connection to a server, which retries requests and translates failures into errors of searchapp."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import tenacity
from elastic_transport import ConnectionError as NoConnection
from elastic_transport import (
    ConnectionTimeout,
    ObjectApiResponse,
    SerializationError,
    TlsError,
    TransportError,
)
from elasticsearch import (
    ApiError,
    AuthenticationException,
    AuthorizationException,
    Elasticsearch,
    UnsupportedProductError,
)

from searchapp.config.credentials import forget_secrets
from searchapp.config.settings import Settings
from searchapp.engines.base import current_patience, require_not_cancelled
from searchapp.engines.elasticsearch.client import (
    NOT_PINNED,
    REQUEST_TIMEOUT_SECONDS,
    Server,
    identify_server,
    limited_timeout,
    make_client,
    refuse_product,
    refuse_version,
)
from searchapp.engines.elasticsearch.rights import missing_right
from searchapp.errors import EngineBusy, EngineError, EngineRefused, EngineUnreachable
from searchapp.progress import Notify, no_notice

RETRIED_STATUS = (429, 502, 503, 504)  # a full queue, or a node that restarts behind a proxy

# Types of errors of a cluster that has just lost a node, with any status.
PASSING_KINDS = frozenset(
    {
        "connect_transport_exception",
        "node_closed_exception",
        "node_disconnected_exception",
        "node_not_connected_exception",
        "no_shard_available_action_exception",
        "receive_timeout_transport_exception",
        "search_context_missing_exception",
        "shard_not_found_exception",
        "unavailable_shards_exception",
    }
)


_BLOCK = "cluster_block_exception"


class Forbidden(EngineRefused):
    """The user lacks a privilege."""


class NotYet(Exception):
    """An incomplete answer, after which `call` repeats the request; it raises `error` at the end."""

    def __init__(self, error: EngineError) -> None:
        self.error = error
        super().__init__(str(error))


def is_passing(error: BaseException) -> bool:
    """Return whether a later attempt can succeed."""
    if isinstance(error, ApiError):
        return may_pass(error.status_code, error.body)
    if isinstance(error, TlsError):
        return False
    # The server was identified as Elasticsearch, so an answer other than JSON is incomplete.
    return isinstance(error, NoConnection | ConnectionTimeout | SerializationError | NotYet)


def may_pass(status: int, error: object) -> bool:
    """Return whether a later attempt can succeed after this status and error."""
    types = set(kinds(error))
    if status == 429 and _BLOCK in types:
        return False  # the disk is full
    return status in RETRIED_STATUS or not PASSING_KINDS.isdisjoint(types)


def kinds(error: object) -> Iterator[str]:
    """Yield the types in an error body of Elasticsearch, its causes, and failures of shards."""
    if isinstance(error, dict):
        if isinstance(error.get("type"), str):
            yield error["type"]
        for name in ("error", "caused_by", "root_cause", "failed_shards", "failures", "reason"):
            yield from kinds(error.get(name))
    elif isinstance(error, list):
        for item in error:
            yield from kinds(item)


def reason(error: Any) -> str:
    """Return the innermost reason in an error body of Elasticsearch."""
    while isinstance(error, dict):
        causes = error.get("root_cause")
        deeper = error.get("caused_by") or error.get("error")
        if not deeper and causes and causes[0].get("reason") != error.get("reason"):
            deeper = causes[0]
        if not deeper:
            return str(error.get("reason") or error.get("type") or error)
        error = deeper
    return str(error)


def unreadable(error: BaseException | None) -> str | None:
    """Return why a server could not parse a request, or rejected its size; None for other errors."""
    if not isinstance(error, ApiError) or error.status_code not in (400, 413):
        return None
    return _detail(error)


def is_of_client(error: EngineError) -> bool:
    """Return whether the user's credentials or privileges caused a rejection."""
    cause = error.__cause__
    return isinstance(error, Forbidden) or isinstance(cause, AuthenticationException | AuthorizationException)


def is_blocked(error: EngineError) -> bool:
    """Return whether a read-only index or cluster caused a rejection."""
    cause = error.__cause__
    return isinstance(cause, ApiError) and is_block(cause.body)


def unreachable(url: str, action: str, error: TransportError, timeout: float) -> EngineError:
    """Return the error for a request without a usable answer within `timeout` seconds."""
    if isinstance(error, TlsError):
        # The message of OpenSSL; `str(error)` is only "TLS error".
        return EngineUnreachable(_of_tls(url, str(error.message)))
    if isinstance(error, ConnectionTimeout):
        return EngineUnreachable(
            f"{url} did not answer in {timeout:.0f} s, so searchapp could not {action}: check the "
            "server's load and try again"
        )
    if isinstance(error, SerializationError):
        return EngineRefused(f"{url} is not an Elasticsearch: its answer is not JSON; check the address")
    return EngineUnreachable(
        f"no Elasticsearch answers at {url}, so searchapp could not {action}: "
        "start it, or give its address with --url or SEARCHAPP_URL"
    )


# Messages by a part of the TLS library's error.
_TLS_ERRORS = {
    NOT_PINNED: (
        "{url} has no certificate with the fingerprint in SEARCHAPP_FINGERPRINT: ask its administrator "
        "whether the certificates were replaced, and for the new fingerprint; if they were not, another server "
        "answers there"
    ),
    "certificate has expired": (
        "the certificate of {url} has expired: the server's administrator must renew it, "
        "unless this machine's clock is wrong"
    ),
    "certificate is not yet valid": (
        "the certificate of {url} is not valid yet: check the clocks of this machine and of the server"
    ),
    "mismatch": (
        "the certificate of {url} is for another host name: use the host name in the certificate as "
        "the address, or install a certificate for this one on the server"
    ),
    "CERTIFICATE_VERIFY_FAILED": (
        "{url} has a certificate that this machine does not trust: "
        "set SEARCHAPP_CA_CERTS to the PEM file of the authority that signed it, or SEARCHAPP_FINGERPRINT to the "
        "fingerprint that the server printed at its first start; if it was trusted before, ask its "
        "administrator whether it was replaced"
    ),
}


def _of_tls(url: str, cause: str) -> str:
    for part, sentence in _TLS_ERRORS.items():
        if part in cause:
            return sentence.replace("{url}", url)
    return f"the TLS handshake with {url} failed ({cause}): is it an https address?"


def refusal(url: str, action: str, error: ApiError, seconds: float) -> EngineError:
    """Translate the server's rejection, after `seconds` of attempts."""
    body, status = error.body, error.status_code
    tried = f", even after {seconds:.0f} s" if seconds >= 1 else ""
    detail = _detail(error)
    if isinstance(error, UnsupportedProductError):
        return EngineRefused(f"{url} answers, but it is not an Elasticsearch: check the address")
    if isinstance(error, AuthenticationException):
        return EngineRefused(
            f"{url} does not accept the credentials: "
            "check the user name and password, API key or bearer token; `searchapp config` shows their sources"
        )
    if "media_type_header_exception" in kinds(body):
        return refuse_version(url, "of another version")
    if _BLOCK in kinds(body) and not may_pass(status, body):
        return read_only(url, action, detail)
    if isinstance(error, AuthorizationException):
        return forbidden(url, action, detail)
    if status == 429:
        return EngineBusy(f"{url} is too busy to {action}{tried} ({detail}): try again later")
    if may_pass(status, body):
        return EngineUnreachable(
            f"{url} could not {action}{tried} (status {status}: {detail}): "
            "check the server's health and try again"
        )
    return EngineRefused(f"{url} refused to {action}: {detail}")


def is_block(error: object) -> bool:
    """Return whether an error body reports a read-only index or cluster."""
    return _BLOCK in kinds(error)


def read_only(url: str, action: str, detail: str) -> EngineRefused:
    """Return the error for a read-only index: an administrator's block, or a full disk."""
    return EngineRefused(
        f"{url} could not {action}: the index or the cluster is read-only ({detail}); "
        "free disk space or remove the block, then try again"
    )


def is_forbidden(error: object) -> bool:
    """Return whether an error body reports a missing privilege."""
    return "security_exception" in kinds(error)


def forbidden(url: str, action: str, detail: str) -> Forbidden:
    """Return the error for a missing privilege, with its name if the server reports it."""
    return Forbidden(
        f"{url} does not allow this user to {action} ({missing_right(detail) or detail}): "
        "ask for a role or key that allows it; `searchapp doctor --roles` prints the roles"
    )


def _detail(error: ApiError) -> str:
    body = error.body
    return reason(body.get("error", body)) if isinstance(body, dict) else str(error.message)


# Time limit of retries. A cluster removes a hanging node after about 40 s, and a node restarts within a minute.
PATIENCE_SECONDS = 120.0

FIRST_WAIT_SECONDS = 0.25
LONGEST_WAIT_SECONDS = 8.0
TIDYING_SECONDS = 10.0  # time limit of clean-up requests after a failure

SERVER_WAITS = "10s"  # time that the server waits for a shard without a node; its default is a minute

NOTICE_SECONDS = 5.0  # retries are reported to the user after this time

T = TypeVar("T")


class Connection:
    """An open client and its server.

    `call` is the only way to send a request. It retries for `patience` seconds and at most `attempts` times, and
    raises failures as `EngineError`. The thread's `Patience` lowers these limits.
    """

    def __init__(
        self,
        client: Elasticsearch,
        url: str,
        attempts: int | None = None,
        timeout: float = REQUEST_TIMEOUT_SECONDS,
        *,
        patience: float | None = None,
        notify: Notify = no_notice,
    ) -> None:
        self.client = client
        self.url = url
        self.attempts = attempts
        self.own_patience = PATIENCE_SECONDS if patience is None else patience
        self._own_timeout = timeout
        self.notify = notify
        self.server = Server()

    @classmethod
    def open(
        cls,
        settings: Settings,
        attempts: int | None = None,
        timeout: float = REQUEST_TIMEOUT_SECONDS,
        *,
        notify: Notify = no_notice,
    ) -> Connection:
        """Connect with the settings' address and credentials, and check the server.

        Raises:
            EngineError: the server does not respond, or is not supported.
        """
        client, wire = make_client(settings, timeout)
        connection = cls(client, settings.address, attempts, timeout, notify=notify)
        try:
            connection.server = connection._probe(len(settings.urls))
        except BaseException:
            connection.close()
            raise
        if not connection.server.is_serverless:  # which accepts bodies without a version
            wire.is_plain, wire.media_version = False, connection.server.media_version
        return connection

    @property
    def patience(self) -> float:
        """Time limit of retries in seconds."""
        patience = current_patience()
        return self.own_patience if patience is None else min(self.own_patience, patience.retry_seconds)

    def call(self, action: str, request: Callable[[Elasticsearch], T], *, attempts: int | None = None) -> T:
        """Return the result of `request(client)`; `action` names the action in errors ("create the index x").

        A request that raises `NotYet` is repeated.

        Raises:
            EngineError: no usable answer arrived.
            RequestCancelled: the caller has cancelled the request.
        """
        patience = current_patience()
        stop: tenacity.stop.stop_base = tenacity.stop_after_delay(self.patience)
        if limit := attempts or self.attempts:
            stop = tenacity.stop_any(stop, tenacity.stop_after_attempt(limit))
        retrying = tenacity.Retrying(
            stop=stop,
            wait=tenacity.wait_exponential(multiplier=FIRST_WAIT_SECONDS, max=LONGEST_WAIT_SECONDS),
            retry=tenacity.retry_if_exception(is_passing),
            before_sleep=self._notifier(action),
            sleep=time.sleep if patience is None else patience.sleep,
            reraise=True,
        )

        def send() -> T:
            require_not_cancelled()
            return request(self.client)

        try:
            return retrying(send)
        except NotYet as error:
            raise error.error from error
        except (ApiError, TransportError) as error:
            seconds = retrying.statistics.get("delay_since_first_attempt", 0)
            raise self.translate(action, error, seconds, is_first=attempts is not None) from error
        except RecursionError as error:
            raise EngineRefused(
                f"the answer of {self.url} is nested too deeply to be read ({action}): is it an Elasticsearch?"
            ) from error

    def look_up(self, action: str, request: Callable[[Elasticsearch], ObjectApiResponse[Any]]) -> Any:
        """Return the body of the answer as `call` does; None for status 404."""
        client = self.client.options(ignore_status=404)
        answer = self.call(action, lambda _client: request(client))
        return None if answer.meta.status == 404 else answer.body

    def create_index(self, action: str, index: str, **body: Any) -> None:
        """Create an index, unless another process or an earlier attempt has created it."""
        try:
            self.call(action, lambda client: client.indices.create(index=index, **body))
        except EngineRefused as error:
            cause = error.__cause__
            if not isinstance(cause, ApiError) or "resource_already_exists_exception" not in kinds(
                cause.body
            ):
                raise

    def cleanup_connection(self) -> Connection:
        """Return a connection for clean-up requests, which are sent once with a short time limit."""
        client = self.client.options(request_timeout=TIDYING_SECONDS)
        cleanup_connection = Connection(client, self.url, 1, TIDYING_SECONDS)
        cleanup_connection.server = self.server
        return cleanup_connection

    def translate(
        self, action: str, error: ApiError | TransportError, seconds: float = 0, *, is_first: bool = False
    ) -> EngineError:
        """Translate an exception of the client into an error with action, address and advice."""
        if isinstance(error, AuthenticationException):
            forget_secrets()
        if isinstance(error, ApiError):
            return refusal(self.url, action, error, seconds)
        if isinstance(error, SerializationError) and not is_first:
            error = NoConnection("broken answers")
        return unreachable(self.url, action, error, limited_timeout(self._own_timeout))

    def close(self) -> None:
        self.client.close()

    def _notifier(self, action: str) -> Callable[[tenacity.RetryCallState], None]:
        began, is_told = time.monotonic(), False

        def notify(_state: tenacity.RetryCallState) -> None:
            nonlocal is_told
            if not is_told and time.monotonic() - began >= NOTICE_SECONDS:
                is_told = True
                self.notify(
                    f"{self.url} could not {action} yet: trying again for up to {self.patience:.0f} s"
                )

        return notify

    def _probe(self, addresses: int) -> Server:
        """Identify the server; the version is unknown for a user without access to it."""
        try:
            try:
                # One attempt per address reports a wrong address at once.
                about = self.call("connect", lambda client: client.info(), attempts=addresses)
            except EngineError as error:
                cause = error.__cause__
                is_elasticsearch = isinstance(cause, ApiError) and "x-elastic-product" in cause.meta.headers
                if cause is None or not is_elasticsearch or not is_passing(cause):
                    raise
                about = self.call("connect", lambda client: client.info())
        except EngineRefused as error:
            cause = error.__cause__
            if isinstance(cause, AuthorizationException):
                return Server()  # an API key with privileges on indexes only
            if isinstance(cause, UnsupportedProductError):
                raise refuse_product(self.url, cause.body) or error from cause
            raise
        return identify_server(self.url, about.body)
