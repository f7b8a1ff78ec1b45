"""The Elasticsearch client for given settings: addresses, TLS, proxy, credentials, server versions, request log.

Credentials are read when a server is first used, and never printed.
"""

from __future__ import annotations

import hashlib
import http.client
import logging
import re
import ssl
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import urllib3
from elastic_transport import ConnectionError as NoConnection
from elastic_transport import (
    ConnectionTimeout,
    HttpHeaders,
    NodeConfig,
    TlsError,
    TransportError,
    Urllib3HttpNode,
)
from elastic_transport.client_utils import DEFAULT
from elasticsearch import Elasticsearch

from searchapp.config.credentials import is_this_machine, read_secret
from searchapp.config.settings import (
    BY_NAME,
    SecretSource,
    Settings,
    without_credentials,
)
from searchapp.engines.base import current_patience
from searchapp.errors import EngineRefused, UsageError
from searchapp.files import open_file
from searchapp.lucene.dataclass import dataclass

OLDEST_SERVER = (8, 19)  # The last minor version of 8. The tests run on it and on the newest version.

SUPPORTED = "8.19 and 9.x"
UNKNOWN = "unknown"

SHARED_MEDIA_VERSION = 8  # version of request and response bodies that servers of 8.x and 9.x accept


@dataclass(frozen=True, slots=True)
class Server:
    """A server as its root describes it; `version` is "unknown" for a user without access to it."""

    version: str = UNKNOWN
    is_serverless: bool = False

    def supported_settings(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the index settings; empty for a serverless project, which rejects all."""
        return {} if self.is_serverless else dict(settings)

    @property
    def is_older(self) -> bool:
        """Whether the server is of version 8. A serverless project has no version but reports 8.11."""
        return not self.is_serverless and self.version.removeprefix("v").partition(".")[0] == "8"

    @property
    def may_be_older(self) -> bool:
        return self.is_older or self.version == UNKNOWN

    @property
    def media_version(self) -> int | None:
        """The version of bodies to request; None for the client's default."""
        return SHARED_MEDIA_VERSION if self.may_be_older else None


def identify_server(url: str, about: object) -> Server:
    """Parse a server's description of itself.

    Raises:
        EngineRefused: searchapp does not support the server.
    """
    version = about.get("version") if isinstance(about, Mapping) else None
    if not isinstance(version, Mapping) or "number" not in version:
        raise EngineRefused(f"{url} is not an Elasticsearch: it reports no version")
    number, flavor = version["number"], version.get("build_flavor")
    if is_opensearch(about):
        raise _opensearch(url, number)
    if _version_numbers(url, number) < OLDEST_SERVER and flavor != "serverless":
        raise refuse_version(url, str(number))
    return Server(str(number), flavor == "serverless")


def is_opensearch(about: object) -> bool:
    """Return whether the description identifies OpenSearch, which may report a version of Elasticsearch."""
    if not isinstance(about, Mapping):
        return False
    version = about.get("version")
    distribution = version.get("distribution") if isinstance(version, Mapping) else None
    return distribution == "opensearch" or "OpenSearch" in str(about.get("tagline", ""))


def refuse_product(url: str, about: object) -> EngineRefused | None:
    """Return the error for a server without Elasticsearch's product header, if its description identifies it."""
    if is_opensearch(about):
        version = about.get("version") if isinstance(about, Mapping) else None
        return _opensearch(url, version.get("number") if isinstance(version, Mapping) else None)
    if isinstance(about, Mapping) and about.get("tagline") == "You Know, for Search":
        try:  # servers before 7.14 send no product header
            identify_server(url, about)
        except EngineRefused as error:
            return error
    return None


def refuse_version(url: str, number: str) -> EngineRefused:
    """Return the error for a server of an unsupported version."""
    return EngineRefused(
        f"{url} runs Elasticsearch {number}, and searchapp works with {SUPPORTED}: upgrade the server"
    )


def _opensearch(url: str, number: object) -> EngineRefused:
    name = (
        f"OpenSearch {number}"
        if isinstance(number, str) and re.fullmatch(r"[\w.-]{1,40}", number)
        else "OpenSearch"
    )
    return EngineRefused(
        f"{url} runs {name}, which searchapp does not support, because it may rank differently and the "
        f"client connects to Elasticsearch only: use one of {SUPPORTED}, or the embedded engine"
    )


def _version_numbers(url: str, number: object) -> tuple[int, int]:
    """Return the major and minor version; any text may follow."""
    match = re.match(r"v?(\d{1,9})(?:\.(\d{1,9}))?", number) if isinstance(number, str) else None
    if match is None:
        raise EngineRefused(
            f"{url} reports the version {str(number)[:40]!r}, which is not one of Elasticsearch: check the address"
        )
    return int(match[1]), int(match[2] or 0)


# Message of the `TlsError` for a server without the pinned certificate.
NOT_PINNED = "no certificate has the fingerprint"


def trust_authorities(ca_certs: Path) -> ssl.SSLContext:
    """Return a context that trusts the authorities in a PEM file.

    Raises:
        UsageError: the file can't be read, or is not PEM.
    """
    try:
        with open_file(ca_certs):  # rejects a pipe, which would block the library
            return ssl.create_default_context(cafile=str(ca_certs))
    except ssl.SSLError as error:
        raise UsageError(f"{ca_certs} contains no certificates in PEM format ({error.reason})") from error
    except OSError as error:
        raise UsageError(
            f"{ca_certs} can't be read ({error.strerror}): SEARCHAPP_CA_CERTS must name a PEM file"
        ) from error


class PinnedCertificate:
    """A TLS context that trusts only the certificate, of a server or its authority, with a SHA-256 fingerprint."""

    def __init__(self, fingerprint: str) -> None:
        # The client fetches the certificate chain without verification, and then trusts only the certificate with the
        # fingerprint. TLS still verifies that the server has a key that this certificate signs.
        self._fingerprint = bytes.fromhex(fingerprint)
        self._lock = threading.Lock()
        self._is_known = False
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False  # the fingerprint identifies the server
        # The certificate may be the server's own, without a trusted authority.
        self.context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN

    def learn(self, config: NodeConfig, proxy: str | None, timeout: float) -> None:
        """Fetch the certificate from a server, unless it is known.

        Raises:
            TlsError: the server does not show it, or TLS failed.
            NoConnection: the server does not respond.
        """
        with self._lock:
            if self._is_known:
                return
            for certificate in _shown_certificates(config, proxy, timeout):
                if hashlib.sha256(certificate).digest() == self._fingerprint:
                    self.context.load_verify_locations(cadata=certificate)
                    self._is_known = True
                    return
        raise TlsError(NOT_PINNED)


def _shown_certificates(config: NodeConfig, proxy: str | None, timeout: float) -> list[bytes]:
    """Return the unverified certificate chain of a server as DER, its own certificate first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    host, port = config.host, config.port
    if proxy is not None:
        parts = urlsplit(proxy)
        host, port = parts.hostname or "", parts.port or 80
    connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=context)
    if proxy is not None:
        connection.set_tunnel(config.host, config.port, proxy_headers(proxy))
    try:
        connection.connect()
        return _chain(connection.sock)
    except ssl.SSLError as error:
        raise TlsError(str(error), errors=(error,)) from error
    except TimeoutError as error:
        raise ConnectionTimeout("no TLS handshake in time", errors=(error,)) from error
    except (OSError, http.client.HTTPException) as error:
        raise NoConnection(str(error), errors=(error,)) from error
    finally:
        connection.close()


def proxy_headers(proxy: str) -> dict[str, str]:
    """Return the headers with the user and password in a proxy's address."""
    parts = urlsplit(proxy)
    if not parts.username:
        return {}
    return {"proxy-authorization": f"Basic {_basic(unquote(parts.username), unquote(parts.password or ''))}"}


def _chain(sock: ssl.SSLSocket) -> list[bytes]:
    if sys.version_info >= (3, 13):
        return list(sock.get_unverified_chain())
    # Private before Python 3.13.
    import _ssl

    chain = sock._sslobj.get_unverified_chain()  # type: ignore[attr-defined]
    return [certificate.public_bytes(_ssl.ENCODING_DER) for certificate in chain]


REQUEST_TIMEOUT_SECONDS = 60.0

ALIVE_AFTER_SECONDS = 4.0  # with several addresses, an address is probed once a request takes this long

ALIVE_SECONDS = 2.0  # time limit of the probe

# Logs a line per request at level INFO, without body, headers and query string.
REQUESTS = logging.getLogger("searchapp.requests")

_MEDIA_TYPE = re.compile(r"application/vnd\.elasticsearch\+([\w-]+)\s*;\s*compatible-with=\d+")
_REFUSED_MEDIA_TYPE = b"media_type_header_exception"


@dataclass(slots=True)
class Wire:
    """The state that all nodes of a client share."""

    opaque_id: str  # identifies the requests in the server's logs
    proxy: str | None = None
    pinned: PinnedCertificate | None = None
    is_plain: bool = True  # request bodies without a version, until the server is identified
    media_version: int | None = None  # of bodies; None for the client's default
    has_others: bool = False  # with several addresses, a hanging one is abandoned early

    def with_version(self, headers: HttpHeaders | None) -> HttpHeaders:
        with_version = HttpHeaders() if headers is None else headers.copy()
        if self.is_plain:
            media_type = r"application/\1"
        elif self.media_version is None:
            return with_version
        else:
            media_type = rf"application/vnd.elasticsearch+\1; compatible-with={self.media_version}"
        for name in ("accept", "content-type"):
            if name in with_version:
                with_version[name] = _MEDIA_TYPE.sub(media_type, with_version[name])
        return with_version


class Node(Urllib3HttpNode):
    """A connection to a server that treats an empty response as a lost connection."""

    wire: ClassVar[Wire]  # the state of the client; each client has its own subclass

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
        if current_patience() is not None:
            timeout = self.config.request_timeout if request_timeout is DEFAULT else request_timeout
            request_timeout = limited_timeout(REQUEST_TIMEOUT_SECONDS if timeout is None else timeout)
        answer = self._perform(method, target, body, headers, request_timeout)
        if answer.meta.status == 400 and _REFUSED_MEDIA_TYPE in answer.body and not self.wire.is_plain:
            # A node of 8.x in a cluster during its upgrade. It has not executed the request, and nodes of 9.x accept
            # the older version too.
            self.wire.media_version = SHARED_MEDIA_VERSION
            answer = self._perform(method, target, body, headers, request_timeout)
        if method != "HEAD" and 200 <= answer.meta.status < 300 and not answer.body:
            raise NoConnection("the answer is empty")
        return answer

    def _perform(
        self, method: str, target: str, body: bytes | None, headers: HttpHeaders | None, timeout: Any
    ) -> Any:
        began, outcome, received = time.perf_counter(), "", 0
        try:
            if self.wire.pinned is not None:
                seconds = self.config.request_timeout if timeout is DEFAULT else timeout
                self.wire.pinned.learn(self.config, self.wire.proxy, seconds or REQUEST_TIMEOUT_SECONDS)
            answer = self._answer(method, target, body, self.wire.with_version(headers), timeout)
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

    def _answer(
        self, method: str, target: str, body: bytes | None, headers: HttpHeaders, timeout: Any
    ) -> Any:
        """Send a request; with several addresses, probe this one when it is slow."""
        send = super().perform_request
        if not self.wire.has_others:
            return send(method, target, body, headers, timeout)
        answers: Future[Any] = Future()

        def answer() -> None:
            try:
                answers.set_result(send(method, target, body, headers, timeout))
            except BaseException as error:
                answers.set_exception(error)

        threading.Thread(target=answer, name="request", daemon=True).start()
        while not wait([answers], ALIVE_AFTER_SECONDS).done:
            # A server that is only busy responds at once; then wait further for the request.
            try:
                send("GET", "/", None, headers, ALIVE_SECONDS)
            except TransportError as error:
                if not answers.done():
                    raise ConnectionTimeout("the address answers nothing any more", (error,)) from error
        return answers.result()

    def _pool(self, config: NodeConfig) -> Any:
        options: dict[str, Any] = {
            "timeout": urllib3.Timeout(total=config.request_timeout),
            "maxsize": config.connections_per_node,
            "block": True,
        }
        if config.scheme == "https":
            # The client's own pool would add the authorities of the package certifi to the given context.
            context = config.ssl_context or ssl.create_default_context()
            options |= {"ssl_context": context, "cert_reqs": "CERT_REQUIRED"}
            if not context.check_hostname:
                options["assert_hostname"] = False
        if self.wire.proxy is not None:
            return _ProxyPool(config, self.wire.proxy, options)
        kind = urllib3.HTTPSConnectionPool if config.scheme == "https" else urllib3.HTTPConnectionPool
        return kind(config.host, config.port, **options)

    def _log_request(self, *_: Any, **__: Any) -> None:
        """Suppress the client's own log, which contains headers and bodies."""


class _ProxyPool:
    def __init__(self, config: NodeConfig, proxy: str, options: Mapping[str, Any]) -> None:
        host = f"[{config.host}]" if ":" in config.host else config.host
        self._base = f"{config.scheme}://{host}:{config.port}"
        self._manager = urllib3.ProxyManager(
            without_credentials(proxy), num_pools=1, proxy_headers=proxy_headers(proxy), **options
        )

    def urlopen(self, method: str, target: str, **options: Any) -> Any:
        # The library adds its own `Accept` unless it finds one in this spelling.
        options["headers"] = {name.title(): value for name, value in options["headers"].items()}
        return self._manager.urlopen(method, self._base + target, redirect=False, **options)

    def close(self) -> None:
        self._manager.clear()


def limited_timeout(seconds: float) -> float:
    """Return the time limit of a request, at most `request_seconds` of the thread's `Patience`."""
    waiting = current_patience()
    return seconds if waiting is None else min(seconds, waiting.request_seconds)


def credentials(settings: Settings) -> dict[str, Any]:
    """Return the client option that identifies the user; empty without credentials.

    Raises:
        UsageError: a secret can't be read or sent.
    """
    if settings.api_key is not None:
        return {"api_key": _sendable(settings.api_key, "api_key")}
    if settings.bearer_token is not None:
        return {"bearer_auth": _sendable(settings.bearer_token, "bearer_token")}
    if settings.username and settings.password is not None:
        return {"basic_auth": _basic(settings.username, read_secret(settings.password))}
    of_addresses = {login for url in settings.urls if (login := _of_address(url)) is not None}
    if len(of_addresses) > 1:
        raise UsageError(
            "the addresses contain different user names or passwords: remove them, and set "
            "SEARCHAPP_USERNAME and SEARCHAPP_PASSWORD"
        )
    return {"basic_auth": of_addresses.pop()} if of_addresses else {}


def _sendable(source: str | SecretSource, name: str) -> str:
    key = read_secret(source)
    if not re.fullmatch(r"[!-~]+", key):  # the client's error would print the secret
        where = source.setting if isinstance(source, SecretSource) else BY_NAME[name].variable
        noun, value = (
            ("API key", "`encoded` with which the key was made")
            if name == "api_key"
            else ("token", "that was given")
        )
        raise UsageError(
            f"{where} contains a space, a line end or another character that no {noun} has: "
            f"set it again, to the value {value}"
        )
    return key


def _basic(username: str, password: str) -> str:
    # The client would reject characters outside ASCII, which the server accepts.
    return b64encode(f"{username}:{password}".encode()).decode()


def _of_address(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None  # `_require_address` reports it
    if not parts.username and not parts.password:
        return None
    return _basic(unquote(parts.username or ""), unquote(parts.password or ""))


# Initial and longest time for which an address that did not respond is skipped.
AWAY_SECONDS, LONGEST_AWAY_SECONDS = 5.0, 120.0

# The client logs each attempt as a warning, which Python would print.
logging.getLogger("elastic_transport").addHandler(logging.NullHandler())


def make_client(settings: Settings, timeout: float) -> tuple[Elasticsearch, Wire]:
    """Return a client that fails over between addresses, and the state that its nodes share.

    Raises:
        UsageError: settings contradict each other, or would send a secret unencrypted.
    """
    for url in settings.urls:
        _require_address(url)
    options = credentials(settings)
    if options or settings.headers:
        _require_private(settings)
    wire = Wire(settings.opaque_id, settings.proxy)
    is_tls = any(url.startswith("https") for url in settings.urls)
    if settings.fingerprint is not None:
        if not all(url.startswith("https") for url in settings.urls):
            raise UsageError(
                f"SEARCHAPP_FINGERPRINT needs TLS, and {settings.address} has an address without it: "
                "begin each address with https"
            )
        wire.pinned = PinnedCertificate(settings.fingerprint)
        options["ssl_context"] = wire.pinned.context
    elif settings.ca_certs is not None and is_tls:
        options["ssl_context"] = trust_authorities(settings.ca_certs)
    addresses = list(dict.fromkeys(_plain(url) for url in settings.urls))
    wire.has_others = len(addresses) > 1
    client = Elasticsearch(
        addresses,
        node_class=type("Node", (Node,), {"wire": wire}),
        headers=dict(settings.headers),
        opaque_id=settings.opaque_id,
        request_timeout=timeout,
        # Only fails over to another address; `Connection.call` retries with back-off.
        max_retries=len(addresses) - 1,
        retry_on_timeout=True,
        retry_on_status=(),
        dead_node_backoff_factor=AWAY_SECONDS,
        max_dead_node_backoff=LONGEST_AWAY_SECONDS,
        **options,
    )
    return client, wire


def _require_address(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_right = False
    if not is_right:
        # Python's message quotes the address with its password.
        raise UsageError(
            f"{without_credentials(url)!r} is not the address of a server, which needs a scheme (http "
            "or https) and a host: use the form http://localhost:9200"
        )


def _require_private(settings: Settings) -> None:
    if settings.insecure:
        return
    for url in settings.urls:
        parts = urlsplit(url)
        if parts.scheme == "http" and (
            settings.proxy is not None or not is_this_machine(parts.hostname or "")
        ):
            raise UsageError(
                f"{without_credentials(url)} has no TLS, so others on the network could read the "
                "password, key, token or headers: use https, or allow it with --insecure"
            )


def _plain(url: str) -> str:
    """Return the address without credentials and with its port, by default 443 for https and 9200 for http."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = parts.port or (443 if parts.scheme == "https" else 9200)
    return parts._replace(netloc=f"{host}:{port}", query="", fragment="").geturl()
