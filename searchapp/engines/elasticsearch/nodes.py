"""The client's way to one address: which version it speaks, how long it waits, what proxy it goes through, its log."""

from __future__ import annotations

import logging
import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

import urllib3
from elastic_transport import ConnectionError as NoConnection
from elastic_transport import HttpHeaders, NodeConfig, TransportError, Urllib3HttpNode
from elastic_transport.client_utils import DEFAULT

from searchapp.engines.elasticsearch.servers import SHARED_MEDIA_VERSION
from searchapp.engines.elasticsearch.tls import Pinned, proxy_headers
from searchapp.engines.waiting import who_waits
from searchapp.settings import without_credentials

REQUEST_TIMEOUT_SECONDS = 60.0

REQUESTS = logging.getLogger("searchapp.requests")
"""A line for each request, at the level INFO: never with a body, a header or the query of an address."""

_MEDIA_TYPE = re.compile(r"application/vnd\.elasticsearch\+([\w-]+)\s*;\s*compatible-with=\d+")
_REFUSED_MEDIA_TYPE = b"media_type_header_exception"


@dataclass(slots=True)
class Wire:
    """What all nodes of a client share.

    `media_version` is the version of bodies that they ask for, None for the client's own; `is_plain` that they ask for
    bodies of no version, as long as nobody knows who answers. `opaque_id` is what a server's own logs name them by.
    `pinned` is the certificate that all of them must be believed by.
    """

    opaque_id: str
    proxy: str | None = None
    pinned: Pinned | None = None
    is_plain: bool = True
    media_version: int | None = None

    def speak(self, media_version: int | None) -> None:
        """From here on, ask for bodies of this version."""
        self.is_plain, self.media_version = False, media_version

    def spoken(self, headers: HttpHeaders | None) -> HttpHeaders:
        """The headers of a request in the version that is spoken."""
        spoken = HttpHeaders() if headers is None else headers.copy()
        for name in ("accept", "content-type"):
            if name in spoken:
                spoken[name] = _MEDIA_TYPE.sub(self._media_type, spoken[name])
        return spoken

    def _media_type(self, found: re.Match[str]) -> str:
        if self.is_plain:
            return f"application/{found[1]}"
        if self.media_version is None:
            return found[0]
        return f"application/vnd.elasticsearch+{found[1]}; compatible-with={self.media_version}"


class Node(Urllib3HttpNode):
    """The client's own way to a server, for which an answer of nothing is a connection that was lost."""

    wire: ClassVar[Wire]
    """The same for all nodes of a client, which has a class of its own for them."""

    def __init__(self, config: NodeConfig) -> None:
        super().__init__(config)
        if self.wire.proxy is not None or config.ssl_context is not None:
            self.pool.close()
            self.pool = self._pool(config)

    def perform_request(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        headers: HttpHeaders | None = None,
        request_timeout: Any = DEFAULT,
    ) -> Any:
        if who_waits() is not None:
            given = self.config.request_timeout if request_timeout is DEFAULT else request_timeout
            request_timeout = shortened(REQUEST_TIMEOUT_SECONDS if given is None else given)
        answer = self._perform(method, target, body, headers, request_timeout)
        if answer.meta.status == 400 and _REFUSED_MEDIA_TYPE in answer.body and not self.wire.is_plain:
            # A node of 8.x in a cluster that is being upgraded, whose other nodes are of 9.x already. It has not looked
            # at the request, and the others take the older version as well.
            self.wire.media_version = SHARED_MEDIA_VERSION
            answer = self._perform(method, target, body, headers, request_timeout)
        if method != "HEAD" and 200 <= answer.meta.status < 300 and not answer.body:
            raise NoConnection("the answer is empty")
        return answer

    def _perform(
        self, method: str, target: str, body: bytes | None, headers: HttpHeaders | None, timeout: Any
    ) -> Any:
        """One request, which is logged."""
        began, outcome, received = time.perf_counter(), "", 0
        try:
            if self.wire.pinned is not None:
                given = self.config.request_timeout if timeout is DEFAULT else timeout
                self.wire.pinned.learn(self.config, self.wire.proxy, given or REQUEST_TIMEOUT_SECONDS)
            answer = super().perform_request(method, target, body, self.wire.spoken(headers), timeout)
            outcome, received = str(answer.meta.status), len(answer.body)
            return answer
        except TransportError as error:
            outcome = type(error).__name__
            raise
        finally:
            if REQUESTS.isEnabledFor(logging.INFO):
                REQUESTS.info(
                    "%s %s at %s: %s, %.0f ms, %d bytes sent, %d received, %s",
                    method,
                    urlsplit(target).path,
                    without_credentials(self.base_url),
                    outcome or "broken off",
                    (time.perf_counter() - began) * 1000,
                    len(body or b""),
                    received,
                    self.wire.opaque_id,
                )

    def _pool(self, config: NodeConfig) -> Any:
        """What the client's own pool can't be: one through a proxy, or one that trusts only whom its context trusts.

        To a context that it is given, the client's own pool adds the authorities of the package certifi.
        """
        options: dict[str, Any] = {
            "timeout": urllib3.Timeout(total=config.request_timeout),
            "maxsize": config.connections_per_node,
            "block": True,
        }
        if config.scheme == "https":
            context = config.ssl_context or ssl.create_default_context()
            options |= {"ssl_context": context, "cert_reqs": "CERT_REQUIRED"}
            if not context.check_hostname:
                options["assert_hostname"] = False
        if self.wire.proxy is not None:
            return _ThroughProxy(config, self.wire.proxy, options)
        kind = urllib3.HTTPSConnectionPool if config.scheme == "https" else urllib3.HTTPConnectionPool
        return kind(config.host, config.port, **options)

    def _log_request(self, *_: Any, **__: Any) -> None:
        """Nothing: the client's own log has headers and bodies in it."""


class _ThroughProxy:
    """What takes the place of a node's pool where requests go through a proxy."""

    def __init__(self, config: NodeConfig, proxy: str, options: Mapping[str, Any]) -> None:
        host = f"[{config.host}]" if ":" in config.host else config.host
        self._base = f"{config.scheme}://{host}:{config.port}"
        self._manager = urllib3.ProxyManager(
            without_credentials(proxy), num_pools=1, proxy_headers=proxy_headers(proxy), **options
        )

    def urlopen(self, method: str, target: str, **options: Any) -> Any:
        # To headers for a proxy, the library adds an `Accept` of its own, unless there is one that is spelt as that is.
        options["headers"] = {name.title(): value for name, value in options["headers"].items()}
        return self._manager.urlopen(method, self._base + target, redirect=False, **options)

    def close(self) -> None:
        self._manager.clear()


def shortened(seconds: float) -> float:
    """What a server is given for a request: no more than whoever waits for it gives it."""
    waiting = who_waits()
    return seconds if waiting is None else min(seconds, waiting.request_seconds)
