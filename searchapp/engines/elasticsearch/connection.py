"""The client, and the patience with which requests are repeated."""

from __future__ import annotations

import logging
import re
import ssl
import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import tenacity
from elastic_transport import ConnectionError as NoConnection
from elastic_transport import SerializationError, TransportError, Urllib3HttpNode
from elastic_transport.client_utils import DEFAULT
from elasticsearch import ApiError, AuthorizationException, Elasticsearch

from searchapp.engines.elasticsearch.failures import (
    OLDEST_SERVER,
    NotYet,
    is_passing,
    refusal,
    too_old,
    unreachable,
)
from searchapp.engines.waiting import require_wanted, who_waits
from searchapp.errors import EngineError, EngineRefused, UsageError
from searchapp.inputs import open_file
from searchapp.progress import Notify, no_notice
from searchapp.settings import Settings

PATIENCE_SECONDS = 120.0
"""How long a request is repeated where that can help. A node that hangs is put out of its cluster after some 40 s, and
one that starts again is back after less than a minute."""

FIRST_WAIT_SECONDS = 0.25
LONGEST_WAIT_SECONDS = 8.0
REQUEST_TIMEOUT_SECONDS = 60.0
TIDYING_SECONDS = 10.0
"""What a request is given that only tidies up after a failure."""

SERVER_WAITS = "10s"
"""How long the server itself waits for a shard that has no node: by default a minute, in which nobody hears of it."""

NOTICE_SECONDS = 5.0
"""After this time somebody who waits hears what for."""

T = TypeVar("T")

# The client logs each of its attempts as a warning, which Python would print: we report how they ended.
logging.getLogger("elastic_transport").addHandler(logging.NullHandler())


class Connection:
    """An open client and the address it talks to.

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
        self.server_version = "unknown"

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

        The first request is not retried, so that a wrong address is reported at once, unless the answer is that of an
        Elasticsearch that is busy, or choosing a master.
        """
        connection = cls(_client(settings, timeout), settings.address, attempts, timeout, notify=notify)
        try:
            connection.server_version = connection._check_server()
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def patience(self) -> float:
        """For how many seconds a request is repeated."""
        waiting = who_waits()
        return self.own_patience if waiting is None else min(self.own_patience, waiting.patience)

    @property
    def timeout(self) -> float:
        """How many seconds the server is given for a request."""
        return _shortened(self._own_timeout)

    def call(self, what: str, request: Callable[[], T], *, attempts: int | None = None) -> T:
        """The result of `request()`; `what` says in an error what was being done ("create the index x").

        A request that raises `NotYet` is repeated as one that the server puts off.

        Raises:
            EngineError: no answer that is of use came.
            NoLongerWanted: whoever waited for it has left.
        """
        waiting = who_waits()
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
            require_wanted()
            return request()

        try:
            return retrying(wanted)
        except NotYet as error:
            raise error.error from error
        except (ApiError, TransportError) as error:
            tried = retrying.statistics.get("delay_since_first_attempt", 0)
            raise self._translated(what, error, tried, first=attempts == 1) from error
        except RecursionError as error:
            raise EngineRefused(
                f"the answer of {self.url} is nested too deeply to be read ({what}): is it an Elasticsearch?"
            ) from error

    def tidying(self) -> Connection:
        """The same server, for requests that are made once and given little time: those that tidy up."""
        client = self.client.options(request_timeout=TIDYING_SECONDS)
        return Connection(client, self.url, 1, TIDYING_SECONDS)

    def translated(self, what: str, error: ApiError | TransportError) -> EngineError:
        """The client's exception as a sentence with what was done, where, and what to do about it."""
        return self._translated(what, error, 0)

    def close(self) -> None:
        self.client.close()

    def _translated(
        self, what: str, error: ApiError | TransportError, tried: float, *, first: bool = False
    ) -> EngineError:
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

    def _check_server(self) -> str:
        try:
            try:
                about = self.call("connect", self.client.info, attempts=1)
            except EngineError as error:
                if not _is_busy_elasticsearch(error.__cause__):
                    raise
                about = self.call("connect", self.client.info)
        except EngineRefused as error:
            if isinstance(error.__cause__, AuthorizationException):
                # An API key that may use our indexes but not ask for the cluster's state: nothing is wrong.
                return "unknown"
            raise
        try:
            number = about["version"]["number"]
        except (KeyError, TypeError) as error:
            raise EngineRefused(f"{self.url} is not an Elasticsearch: it reports no version") from error
        if _version(self.url, number) < OLDEST_SERVER:
            raise too_old(self.url, str(number))
        return str(number)


def _is_busy_elasticsearch(error: BaseException | None) -> bool:
    return isinstance(error, ApiError) and is_passing(error) and "x-elastic-product" in error.meta.headers


def _shortened(seconds: float) -> float:
    """What a server is given for a request: no more than whoever waits for it gives it."""
    waiting = who_waits()
    return seconds if waiting is None else min(seconds, waiting.request_seconds)


class _Node(Urllib3HttpNode):
    """The client's own way to a server, for which an answer of nothing is a connection that was lost."""

    def perform_request(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: Any = None,
        request_timeout: Any = DEFAULT,
    ) -> Any:
        if who_waits() is not None:
            given = self.config.request_timeout if request_timeout is DEFAULT else request_timeout
            request_timeout = _shortened(REQUEST_TIMEOUT_SECONDS if given is None else given)
        answer = super().perform_request(method, target, body, headers, request_timeout)
        if method != "HEAD" and 200 <= answer.meta.status < 300 and not answer.body:
            raise NoConnection("the answer is empty")
        return answer


def _client(settings: Settings, timeout: float) -> Elasticsearch:
    options: dict[str, Any] = {}
    if settings.ca_certs is not None and settings.url.startswith("https"):
        options["ssl_context"] = _trusting(settings.ca_certs)
    if settings.api_key:
        options["api_key"] = _api_key(settings.api_key)
    elif settings.username and settings.password:
        # Put together here: the client would refuse what is not ASCII, which the server takes.
        options["basic_auth"] = b64encode(f"{settings.username}:{settings.password}".encode()).decode()
    try:
        return Elasticsearch(
            _with_port(settings.url),
            node_class=_Node,
            request_timeout=timeout,
            max_retries=0,  # `Connection.call` retries: it waits longer each time, after a 429 too
            retry_backoff_base=FIRST_WAIT_SECONDS,
            retry_backoff_cap=LONGEST_WAIT_SECONDS,
            **options,
        )
    except ValueError:
        raise UsageError(
            f"{settings.address!r} is not an address of a server (it needs a scheme, http or https, and a host): "
            "use the form http://localhost:9200"
        ) from None  # what Python says of a wrong address quotes it, with the password


def _api_key(key: str) -> str:
    """The key, if it can stand in the header of a request: the error on one that can't would show it."""
    if not re.fullmatch(r"[!-~]+", key):
        raise UsageError(
            "SEARCHAPP_API_KEY holds a space, a line end or another character that no API key has: set it again, "
            "to the value `encoded` with which the key was made"
        )
    return key


def _trusting(ca_certs: Path) -> ssl.SSLContext:
    """A context that trusts the authorities in a PEM file; read here, so that a wrong file is reported as such."""
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
        raise ValueError("no scheme or no host")
    if parts.port is not None:
        return url
    default = 443 if parts.scheme == "https" else 9200
    return parts._replace(netloc=f"{parts.netloc}:{default}").geturl()


def _version(url: str, number: object) -> tuple[int, int]:
    """Major and minor of a server's version; what stands behind them can be anything.

    Raises:
        EngineRefused: the version begins with no number.
    """
    found = re.match(r"v?(\d+)(?:\.(\d+))?", number) if isinstance(number, str) else None
    if found is None:
        raise EngineRefused(
            f"{url} reports the version {str(number)[:40]!r}, which is not one of Elasticsearch: check the address"
        )
    return int(found[1]), int(found[2] or 0)
