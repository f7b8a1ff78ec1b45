"""The client, and the patience with which requests are repeated."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import tenacity
from elastic_transport import ConnectionError as NoConnection
from elastic_transport import SerializationError, TransportError
from elasticsearch import (
    ApiError,
    AuthenticationException,
    AuthorizationException,
    Elasticsearch,
    UnsupportedProductError,
)

from searchapp.engines.elasticsearch.client import make_client
from searchapp.engines.elasticsearch.credentials import forget
from searchapp.engines.elasticsearch.failures import NotYet, is_passing, refusal, unreachable
from searchapp.engines.elasticsearch.nodes import REQUEST_TIMEOUT_SECONDS, shortened
from searchapp.engines.elasticsearch.servers import Server, recognised, refused_product
from searchapp.engines.waiting import require_wanted, who_waits
from searchapp.errors import EngineError, EngineRefused
from searchapp.progress import Notify, no_notice
from searchapp.settings import Settings

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
        waiting = who_waits()
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
