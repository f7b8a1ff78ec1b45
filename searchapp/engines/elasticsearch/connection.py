"""The connection to a server: the patience with which requests are repeated, and every failure as one sentence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

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

from searchapp.config.settings import Settings
from searchapp.engines.base import current_patience, require_not_cancelled
from searchapp.engines.elasticsearch.client import (
    NOT_PINNED,
    REQUEST_TIMEOUT_SECONDS,
    Server,
    forget,
    make_client,
    recognised,
    refused_product,
    shortened,
    too_old,
)
from searchapp.engines.elasticsearch.rights import lacks
from searchapp.errors import EngineBusy, EngineError, EngineRefused, EngineUnreachable
from searchapp.progress import Notify, no_notice

RETRIED_STATUS = (429, 502, 503, 504)
"""Answers that ask for patience: a full queue, a node that is restarting behind a proxy."""

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
"""Kinds of errors of a cluster that has just lost a node, whatever their status: 500 or 404 for some."""


_BLOCK = "cluster_block_exception"


class Forbidden(EngineRefused):
    """The user lacks a right."""


class NotYet(Exception):
    """An answer that is not whole, or not yet what is waited for; `error` is what is said if it stays so."""

    def __init__(self, error: EngineError) -> None:
        self.error = error
        super().__init__(str(error))


def is_passing(error: BaseException) -> bool:
    """Whether trying again later can help."""
    if isinstance(error, ApiError):
        return may_pass(error.status_code, error.body)
    if isinstance(error, TransportError):
        # An answer that is no JSON has been cut short: that the server is an Elasticsearch was seen before.
        return isinstance(error, NoConnection | ConnectionTimeout | SerializationError) and not isinstance(
            error, TlsError
        )
    return isinstance(error, NotYet)


def may_pass(status: int, error: object) -> bool:
    """The same for an answer, or an item of one: its status and the object that describes its error."""
    found = set(kinds(error))
    if status == 429 and _BLOCK in found:
        return False  # the disk is full: nothing is written until somebody has made room
    return status in RETRIED_STATUS or not PASSING_KINDS.isdisjoint(found)


def kinds(error: object) -> Iterator[str]:
    """The types of an error, of its causes, and of what shards report, from an error body of Elasticsearch."""
    if isinstance(error, dict):
        if isinstance(error.get("type"), str):
            yield error["type"]
        for name in ("error", "caused_by", "root_cause", "failed_shards", "failures", "reason"):
            yield from kinds(error.get(name))
    elif isinstance(error, list):
        for one in error:
            yield from kinds(one)


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


def unreadable(error: BaseException | None) -> str | None:
    """Why a server could make nothing of what it was sent, or would not read that much; else None."""
    if not isinstance(error, ApiError) or error.status_code not in (400, 413):
        return None
    return _detail(error)


def is_of_client(error: EngineError) -> bool:
    """Whether a request was refused for who made it, whatever it asked for."""
    cause = error.__cause__
    return isinstance(error, Forbidden) or isinstance(cause, AuthenticationException | AuthorizationException)


def is_there_already(error: EngineError) -> bool:
    """Whether an index could not be made because there is one of its name."""
    cause = error.__cause__
    return isinstance(cause, ApiError) and "resource_already_exists_exception" in kinds(cause.body)


def is_blocked(error: EngineError) -> bool:
    """Whether a request was refused because the index or the cluster takes no changes, as when a disk is full."""
    cause = error.__cause__
    return isinstance(cause, ApiError) and is_block(cause.body)


def unreachable(url: str, what: str, error: TransportError, timeout: float) -> EngineError:
    """A sentence on why no usable answer came; `timeout` is what the server was given, in seconds."""
    if isinstance(error, TlsError):
        # What OpenSSL said: `str(error)` says no more than "TLS error".
        return EngineUnreachable(_of_tls(url, str(error.message)))
    if isinstance(error, ConnectionTimeout):
        return EngineUnreachable(
            f"{url} did not answer in {timeout:.0f} s, so searchapp could not {what}: "
            "look at the server's load and try again"
        )
    if isinstance(error, SerializationError):
        return EngineRefused(f"{url} is not an Elasticsearch: its answer is not JSON; check the address")
    return EngineUnreachable(
        f"no Elasticsearch answers at {url}, so searchapp could not {what}: "
        "start it, or give its address with --url or SEARCHAPP_URL"
    )


def _of_tls(url: str, cause: str) -> str:
    if NOT_PINNED in cause:
        return (
            f"{url} shows no certificate with the fingerprint in SEARCHAPP_FINGERPRINT: ask its administrator whether "
            "certificates were made anew, and for the new fingerprint; if they were not, somebody else answers there"
        )
    if "certificate has expired" in cause:
        return (
            f"the certificate of {url} has expired: the server's administrator must renew it, "
            "unless this machine's clock is wrong"
        )
    if "certificate is not yet valid" in cause:
        return f"the certificate of {url} is not valid yet: look at this machine's clock, and at the server's"
    if "mismatch" in cause:
        return (
            f"the certificate of {url} is made out to another name: use the host name that stands in the "
            "certificate as the address, or get the server a certificate for this one"
        )
    if "CERTIFICATE_VERIFY_FAILED" in cause:
        return (
            f"{url} shows a certificate that is not trusted here: "
            "set SEARCHAPP_CA_CERTS to the PEM file of the authority that signed it, or SEARCHAPP_FINGERPRINT to the "
            "fingerprint that the server printed at its first start; if it was trusted before, ask its administrator "
            "whether it was changed"
        )
    return f"the TLS handshake with {url} failed ({cause}): is it an https address?"


def refusal(url: str, what: str, error: ApiError, seconds: float) -> EngineError:
    """A sentence on an answer that says no, the last one after asking for `seconds`."""
    body, status = error.body, error.status_code
    tried = f", even after {seconds:.0f} s" if seconds >= 1 else ""
    detail = _detail(error)
    if isinstance(error, UnsupportedProductError):
        return EngineRefused(f"{url} answers, but it is not an Elasticsearch: check the address")
    if isinstance(error, AuthenticationException):
        return EngineRefused(
            f"{url} does not accept the credentials: "
            "check the user name and password, API key or bearer token; `searchapp config` says where they come from"
        )
    if "media_type_header_exception" in kinds(body):
        return too_old(url, "of another version")
    if _BLOCK in kinds(body) and not may_pass(status, body):
        return read_only(url, what, detail)
    if isinstance(error, AuthorizationException):
        return forbidden(url, what, detail)
    if status == 429:
        return EngineBusy(f"{url} is too busy to {what}{tried} ({detail}): try again when it has less to do")
    if may_pass(status, body):
        return EngineUnreachable(
            f"{url} could not {what}{tried} (status {status}: {detail}): "
            "look at the server's health and try again"
        )
    return EngineRefused(f"{url} refused to {what}: {detail}")


def is_block(error: object) -> bool:
    """Whether an error of a part of an answer says that the index or the cluster takes no changes."""
    return _BLOCK in kinds(error)


def read_only(url: str, what: str, detail: str) -> EngineRefused:
    """A sentence on an index that takes no changes: an administrator's wish, or that of a server whose disk is full."""
    return EngineRefused(
        f"{url} could not {what}: the index or the cluster is read-only ({detail}); "
        "free disk space or remove the block, then try again"
    )


def is_forbidden(error: object) -> bool:
    """Whether an error of a part of an answer, an item or a search, says that the user lacks a right."""
    return "security_exception" in kinds(error)


def forbidden(url: str, what: str, detail: str) -> Forbidden:
    """A sentence on a right that the user lacks, with its name where the server says it."""
    return Forbidden(
        f"{url} does not allow this user to {what} ({lacks(detail) or detail}): ask for a role or key that may, "
        "`searchapp doctor --roles` prints them"
    )


def _detail(error: ApiError) -> str:
    """What an answer that says no gives as its reason."""
    body = error.body
    return reason(body.get("error", body)) if isinstance(body, dict) else str(error.message)


PATIENCE_SECONDS = 120.0
"""How long a request is repeated where that can help. A node that hangs is put out of its cluster after some 40 s, and
one that starts again is back after less than a minute."""

FIRST_WAIT_SECONDS = 0.25
LONGEST_WAIT_SECONDS = 8.0
TIDYING_SECONDS = 10.0
"""What a request is given that only tidies up after a failure."""

SERVER_WAITS = "10s"
"""How long the server itself waits for a shard that has no node: by default a minute, in which nobody hears of it."""

NOTICE_SECONDS = 5.0
"""After this time somebody who waits hears what for."""

T = TypeVar("T")


class Connection:
    """An open client, the address or addresses that it talks to, and who answers there.

    `call` is the only way a request is made: it waits and tries again where that can help, for `patience` seconds
    and at most `attempts` times, and turns whatever remains into an `EngineError`. `notify` is called when that
    takes time. Where somebody waits for the answer (`engines.waiting`), their patience holds if it is less.
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
        """Connect with the settings' address and credentials, and check who answers.

        The first request is made once for each address, so that a wrong one is reported at once, unless the answer is
        that of an Elasticsearch that is busy, or choosing a master.
        """
        client, wire = make_client(settings, timeout)
        connection = cls(client, settings.address, attempts, timeout, notify=notify)
        try:
            connection.server = connection._probe(len(settings.urls))
        except BaseException:
            connection.close()
            raise
        if not connection.server.is_serverless:  # which takes bodies of no version
            wire.speak(connection.server.media_version)
        return connection

    @property
    def patience(self) -> float:
        """For how many seconds a request is repeated."""
        waiting = current_patience()
        return self.own_patience if waiting is None else min(self.own_patience, waiting.patience)

    @property
    def timeout(self) -> float:
        """How many seconds the server is given for a request."""
        return shortened(self._own_timeout)

    def call(self, what: str, request: Callable[[], T], *, attempts: int | None = None) -> T:
        """The result of `request()`; `what` says in an error what was being done ("create the index x").

        A request that raises `NotYet` is repeated as one that the server puts off.

        Raises:
            EngineError: no answer that is of use came.
            RequestCancelled: whoever waited for it has left.
        """
        waiting = current_patience()
        stop: tenacity.stop.stop_base = tenacity.stop_after_delay(self.patience)
        if limit := attempts or self.attempts:
            stop = tenacity.stop_any(stop, tenacity.stop_after_attempt(limit))
        retrying = tenacity.Retrying(
            stop=stop,
            wait=tenacity.wait_exponential(multiplier=FIRST_WAIT_SECONDS, max=LONGEST_WAIT_SECONDS),
            retry=tenacity.retry_if_exception(is_passing),
            before_sleep=self._noticing(what),
            sleep=time.sleep if waiting is None else waiting.pause,
            reraise=True,
        )

        def wanted() -> T:
            require_not_cancelled()
            return request()

        try:
            return retrying(wanted)
        except NotYet as error:
            raise error.error from error
        except (ApiError, TransportError) as error:
            tried = retrying.statistics.get("delay_since_first_attempt", 0)
            raise self._translated(what, error, tried, first=attempts is not None) from error
        except RecursionError as error:
            raise EngineRefused(
                f"the answer of {self.url} is nested too deeply to be read ({what}): is it an Elasticsearch?"
            ) from error

    def tidying(self) -> Connection:
        """The same server, for requests that are made once and given little time: those that tidy up."""
        client = self.client.options(request_timeout=TIDYING_SECONDS)
        tidying = Connection(client, self.url, 1, TIDYING_SECONDS)
        tidying.server = self.server
        return tidying

    def translated(self, what: str, error: ApiError | TransportError) -> EngineError:
        """The client's exception as a sentence with what was done, where, and what to do about it."""
        return self._translated(what, error, 0)

    def close(self) -> None:
        self.client.close()

    def _translated(
        self, what: str, error: ApiError | TransportError, tried: float, *, first: bool = False
    ) -> EngineError:
        if isinstance(error, AuthenticationException):
            forget()
        if isinstance(error, ApiError):
            return refusal(self.url, what, error, tried)
        if isinstance(error, SerializationError) and not first:
            return unreachable(self.url, what, NoConnection("broken answers"), self.timeout)
        return unreachable(self.url, what, error, self.timeout)

    def _noticing(self, what: str) -> Callable[[tenacity.RetryCallState], None]:
        """What is called between two attempts: it reports, once, that a retry is waited for."""
        began, told = time.monotonic(), False

        def notice(_state: tenacity.RetryCallState) -> None:
            nonlocal told
            if not told and time.monotonic() - began >= NOTICE_SECONDS:
                told = True
                self.notify(f"{self.url} could not {what} yet: trying again for up to {self.patience:.0f} s")

        return notice

    def _probe(self, addresses: int) -> Server:
        """Who answers; the version is unknown where whoever asks may not know it.

        Raises:
            EngineError: nobody, or none that searchapp works with.
        """
        try:
            try:
                about = self.call("connect", self.client.info, attempts=addresses)
            except EngineError as error:
                if not _is_busy_elasticsearch(error.__cause__):
                    raise
                about = self.call("connect", self.client.info)
        except EngineRefused as error:
            cause = error.__cause__
            if isinstance(cause, AuthorizationException):
                # An API key that may use our indexes but not ask for the cluster's state: nothing is wrong.
                return Server()
            if isinstance(cause, UnsupportedProductError):
                raise refused_product(self.url, cause.body) or error from cause
            raise
        return recognised(self.url, about.body)


def _is_busy_elasticsearch(error: BaseException | None) -> bool:
    return isinstance(error, ApiError) and is_passing(error) and "x-elastic-product" in error.meta.headers
