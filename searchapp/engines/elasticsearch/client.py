"""The client, made from settings: addresses, TLS, proxies, credentials, supported versions of servers, log of requests.

Credentials are read from where they are kept when a server is first asked, and shown nowhere.

A pinned certificate is named by the SHA-256 of its bytes, which a server prints at its first start: that of its
authority, or of the server itself. That such a certificate is among those that a server shows proves nothing, for
anybody may show it. It becomes the one authority that is trusted, and TLS then verifies that the server has a key that
it vouches for.
"""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import logging
import os
import re
import select
import shlex
import ssl
import subprocess
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
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

from searchapp.config.settings import (
    BY_NAME,
    DECLARED,
    SecretSource,
    Settings,
    without_credentials,
)
from searchapp.engines.base import current_patience
from searchapp.errors import EngineRefused, UsageError
from searchapp.files import open_file

OLDEST_SERVER = (8, 19)
"""The last minor version of 8, and all that came later. The tests run on it and on the newest."""

SUPPORTED = "8.19 and 9.x"
UNKNOWN = "unknown"

SHARED_MEDIA_VERSION = 8
"""The version of request and answer bodies that servers of 8.x and 9.x both take."""


@dataclass(frozen=True, slots=True)
class Server:
    """What the root of a server says of it.

    `version` is "unknown" where whoever asks may not know it. A serverless project has no shards, replicas or nodes
    that its users could see or choose.
    """

    version: str = UNKNOWN
    is_serverless: bool = False

    def allowed(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of an index that a serverless project chooses itself, and refuses; all of them anywhere else."""
        return {} if self.is_serverless else dict(settings)

    @property
    def is_older(self) -> bool:
        """Whether it is of version 8. A serverless project is of no version, and says 8.11 for the sake of clients."""
        return not self.is_serverless and self.version.removeprefix("v").partition(".")[0] == "8"

    @property
    def may_be_older(self) -> bool:
        """Whether it is of version 8, or nobody here may know of which version it is."""
        return self.is_older or self.version == UNKNOWN

    @property
    def media_version(self) -> int | None:
        """The version of bodies to ask for; None for the client's own."""
        return SHARED_MEDIA_VERSION if self.may_be_older else None


def recognised(url: str, about: object) -> Server:
    """The server that says this of itself.

    Raises:
        EngineRefused: it is none that searchapp works with.
    """
    version = about.get("version") if isinstance(about, Mapping) else None
    if not isinstance(version, Mapping) or "number" not in version:
        raise EngineRefused(f"{url} is not an Elasticsearch: it reports no version")
    number, flavor = version["number"], version.get("build_flavor")
    if is_opensearch(about):
        raise _opensearch(url, number)
    if _numbers(url, number) < OLDEST_SERVER and flavor != "serverless":
        raise too_old(url, str(number))
    return Server(str(number), flavor == "serverless")


def is_opensearch(about: object) -> bool:
    """Whether the root of a server says that it is an OpenSearch, also one that gives a version of Elasticsearch."""
    if not isinstance(about, Mapping):
        return False
    version = about.get("version")
    distribution = version.get("distribution") if isinstance(version, Mapping) else None
    return distribution == "opensearch" or "OpenSearch" in str(about.get("tagline", ""))


def refused_product(url: str, about: object) -> EngineRefused | None:
    """What is said of a server that does not name itself as Elasticsearch, if what it says of itself tells more."""
    if is_opensearch(about):
        version = about.get("version") if isinstance(about, Mapping) else None
        return _opensearch(url, version.get("number") if isinstance(version, Mapping) else None)
    if isinstance(about, Mapping) and about.get("tagline") == "You Know, for Search":
        try:  # before 7.14 no server named itself
            recognised(url, about)
        except EngineRefused as error:
            return error
    return None


def too_old(url: str, number: str) -> EngineRefused:
    """A sentence on a server of an earlier version."""
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
        f"{url} runs {name}, which searchapp does not work with: nobody has shown that it ranks as Elasticsearch does, "
        f"and the client speaks to Elasticsearch only; use one of {SUPPORTED}, or the embedded engine"
    )


def _numbers(url: str, number: object) -> tuple[int, int]:
    """Major and minor of a server's version; what stands behind them can be anything.

    Raises:
        EngineRefused: the version begins with no number.
    """
    found = re.match(r"v?(\d{1,9})(?:\.(\d{1,9}))?", number) if isinstance(number, str) else None
    if found is None:
        raise EngineRefused(
            f"{url} reports the version {str(number)[:40]!r}, which is not one of Elasticsearch: check the address"
        )
    return int(found[1]), int(found[2] or 0)


NOT_PINNED = "no certificate has the fingerprint"
"""What a `TlsError` says if a server shows no certificate that is pinned."""


def trusting(ca_certs: Path) -> ssl.SSLContext:
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


class Pinned:
    """A context that trusts the one certificate with a fingerprint, as soon as a server has shown it."""

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = bytes.fromhex(fingerprint)
        self._lock = threading.Lock()
        self._is_known = False
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False  # whose certificate it is was said by the fingerprint
        # The certificate may be the server's own, which no authority that is trusted here has signed.
        self.context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN

    def learn(self, config: NodeConfig, proxy: str | None, timeout: float) -> None:
        """Look for the certificate among those that a server shows, unless it is known.

        Raises:
            TlsError: it is not among them, or TLS failed.
            NoConnection: nobody answers.
        """
        with self._lock:
            if self._is_known:
                return
            for certificate in _shown(config, proxy, timeout):
                if hashlib.sha256(certificate).digest() == self._fingerprint:
                    self.context.load_verify_locations(cadata=certificate)
                    self._is_known = True
                    return
        raise TlsError(NOT_PINNED)


def _shown(config: NodeConfig, proxy: str | None, timeout: float) -> list[bytes]:
    """The certificates that a server shows, its own first, as DER. Nothing is sent to it, and nothing believed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection(config.host, config.port, timeout=timeout, context=context)
    if proxy is not None:
        connection = _tunnel(config, proxy, timeout, context)
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


def _tunnel(
    config: NodeConfig, proxy: str, timeout: float, context: ssl.SSLContext
) -> http.client.HTTPSConnection:
    parts = urlsplit(proxy)
    connection = http.client.HTTPSConnection(
        parts.hostname or "", parts.port or 80, timeout=timeout, context=context
    )
    connection.set_tunnel(config.host, config.port, proxy_headers(proxy))
    return connection


def proxy_headers(proxy: str) -> dict[str, str]:
    """The headers that a proxy is told user and password in, if its address has any."""
    parts = urlsplit(proxy)
    if not parts.username:
        return {}
    told = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"proxy-authorization": f"Basic {b64encode(told.encode()).decode()}"}


def _chain(sock: ssl.SSLSocket) -> list[bytes]:
    if sys.version_info >= (3, 13):
        return list(sock.get_unverified_chain())
    # Private before 3.13, and there all the same; the Elasticsearch client asks for its neighbour in the same way.
    import _ssl

    shown = sock._sslobj.get_unverified_chain()  # type: ignore[attr-defined]
    return [one.public_bytes(_ssl.ENCODING_DER) for one in shown]


REQUEST_TIMEOUT_SECONDS = 60.0

ALIVE_AFTER_SECONDS = 4.0
"""How long a request may take before its address is asked whether it is alive, where there are other addresses."""

ALIVE_SECONDS = 2.0
"""How long the address may take to answer that."""

REQUESTS = logging.getLogger("searchapp.requests")
"""A line for each request, at the level INFO: never with a body, a header or the query of an address."""

_MEDIA_TYPE = re.compile(r"application/vnd\.elasticsearch\+([\w-]+)\s*;\s*compatible-with=\d+")
_REFUSED_MEDIA_TYPE = b"media_type_header_exception"


@dataclass(slots=True)
class Wire:
    """What all nodes of a client share.

    `media_version` is the version of bodies that they ask for, None for the client's own; `is_plain` that they ask for
    bodies of no version, as long as nobody knows who answers. `opaque_id` is what a server's own logs name them by.
    `pinned` is the certificate that all of them must be believed by. `has_others` is whether there are several
    addresses: then one that hangs is given up soon.
    """

    opaque_id: str
    proxy: str | None = None
    pinned: Pinned | None = None
    is_plain: bool = True
    media_version: int | None = None
    has_others: bool = False

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
        if current_patience() is not None:
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
            answer = self._answer(method, target, body, self.wire.spoken(headers), timeout)
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
        """The answer to a request; given up soon, where there are other addresses, when this one seems to hang.

        Raises:
            ConnectionTimeout: no answer in time, or the address answers nothing at all any more.
        """
        ask = super().perform_request
        if not self.wire.has_others:
            return ask(method, target, body, headers, timeout)
        answers: Future[Any] = Future()

        def answer() -> None:
            try:
                answers.set_result(ask(method, target, body, headers, timeout))
            except BaseException as error:
                answers.set_exception(error)

        threading.Thread(target=answer, name="request", daemon=True).start()
        while not wait([answers], ALIVE_AFTER_SECONDS).done:
            # A server that is only busy answers this at once; a slow request to it is waited for.
            try:
                ask("GET", "/", None, headers, ALIVE_SECONDS)
            except TransportError as error:
                if not answers.done():
                    raise ConnectionTimeout("the address answers nothing any more", (error,)) from error
        return answers.result()

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
    waiting = current_patience()
    return seconds if waiting is None else min(seconds, waiting.request_seconds)


COMMAND_SECONDS = 60.0
"""Somebody may have to unlock what holds the secret."""

LARGEST = 1 << 14
"""In bytes: a token of a single sign-on has some thousand."""

_secrets: dict[SecretSource, str] = {}
"""What commands have printed and files held: nobody is asked twice for a pass phrase."""


def credentials(settings: Settings) -> dict[str, Any]:
    """The option of the client that says who asks; none if nobody has said it.

    Raises:
        UsageError: a secret can't be read, or be sent.
    """
    if settings.api_key is not None:
        return {"api_key": _sendable(_secret(settings.api_key), "api_key", settings.api_key)}
    if settings.bearer_token is not None:
        return {
            "bearer_auth": _sendable(_secret(settings.bearer_token), "bearer_token", settings.bearer_token)
        }
    if settings.username and settings.password is not None:
        return {"basic_auth": _basic(settings.username, _secret(settings.password))}
    of_addresses = {one for url in settings.urls if (one := _of_address(url)) is not None}
    if len(of_addresses) > 1:
        raise UsageError(
            "the addresses have different user names or passwords: leave them out there, and set SEARCHAPP_USERNAME "
            "and SEARCHAPP_PASSWORD"
        )
    return {"basic_auth": of_addresses.pop()} if of_addresses else {}


def forget() -> None:
    """Read secrets again when they are next asked for: a server has not accepted them."""
    _secrets.clear()


def _secret(kept: str | SecretSource) -> str:
    if isinstance(kept, str):
        return kept
    if kept not in _secrets:
        _secrets[kept] = _of_file(kept) if kept.path is not None else _of_command(kept)
    return _secrets[kept]


def _of_file(kept: SecretSource) -> str:
    assert kept.path is not None
    try:
        with open_file(kept.path) as file:
            held = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(
            f"{kept.path} can't be read ({error.strerror or error}): "
            f"{kept.setting} must name a file that holds the secret"
        ) from None
    return _one_line(held, f"{kept.path}, which {kept.setting} names,")


def _of_command(kept: SecretSource) -> str:
    """What a command prints on its standard output; what it has to say to a person goes to theirs."""
    assert kept.command is not None
    until = time.monotonic() + COMMAND_SECONDS
    try:
        process = subprocess.Popen(
            shlex.split(kept.command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=_without_secrets(os.environ),
        )
    except (OSError, ValueError, IndexError):
        # What Python says of it quotes the command, which may have the secret in it.
        raise UsageError(f"the command in {kept.setting} can't be run: look at how it is written") from None
    with process:
        try:
            held = _printed(process, until)
            code = process.wait(max(until - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            raise UsageError(
                f"the command in {kept.setting} took longer than {COMMAND_SECONDS:.0f} s"
            ) from None
        except _TooLong:
            raise UsageError(
                f"the command in {kept.setting} printed more than {LARGEST:,} bytes: it must give the secret alone, "
                "in one line"
            ) from None
        finally:
            process.kill()
    if code:
        raise UsageError(
            f"the command in {kept.setting} failed with exit code {code}: run it yourself to see why"
        )
    return _one_line(held, f"the command in {kept.setting}")


class _TooLong(Exception):
    """A command prints more than a secret may have."""


def _printed(process: subprocess.Popen[bytes], until: float) -> bytes:
    """Return all that a command prints on its standard output.

    Raises:
        _TooLong: it prints more than `LARGEST` bytes.
        subprocess.TimeoutExpired: it has not closed its output by the time `until`.
    """
    assert process.stdout is not None
    held = b""
    while len(held) <= LARGEST:
        seconds = max(until - time.monotonic(), 0)
        if not select.select([process.stdout], [], [], seconds)[0]:
            raise subprocess.TimeoutExpired(process.args, seconds)
        piece = os.read(process.stdout.fileno(), LARGEST)
        if not piece:
            return held
        held += piece
    raise _TooLong


def _one_line(held: bytes, where: str) -> str:
    """The secret in what was read: all of it, without the line's end.

    Raises:
        UsageError: there is none, or more than one line.
    """
    try:
        text = held.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise UsageError(f"{where} gives no text in UTF-8") from None
    if len(held) > LARGEST or not text.strip() or "\n" in text:
        raise UsageError(f"{where} must give the secret alone, in one line")
    return text


def _without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment for others, without the secrets that this program was given in its own."""
    may_hold = {one.variable: one for one in DECLARED if one.variable}
    return {
        name: value
        for name, value in environ.items()
        if name not in may_hold or not may_hold[name].holds_credentials(value)
    }


def _sendable(key: str, name: str, kept: str | SecretSource) -> str:
    """A key or token, if it can stand in the header of a request: the error on one that can't would show it."""
    if not re.fullmatch(r"[!-~]+", key):
        where = kept.setting if isinstance(kept, SecretSource) else BY_NAME[name].variable
        what, made = (
            ("API key", "`encoded` with which the key was made")
            if name == "api_key"
            else ("token", "that was given")
        )
        raise UsageError(
            f"{where} holds a space, a line end or another character that no {what} has: "
            f"set it again, to the value {made}"
        )
    return key


def _basic(username: str, password: str) -> str:
    # Put together here: the client would refuse what is not ASCII, which the server takes.
    return b64encode(f"{username}:{password}".encode()).decode()


def _of_address(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None  # which others report
    if not parts.username and not parts.password:
        return None
    return _basic(unquote(parts.username or ""), unquote(parts.password or ""))


AWAY_SECONDS, LONGEST_AWAY_SECONDS = 5.0, 120.0
"""How long an address that did not answer is left alone while another one does: at first, and after many times. One
that hangs takes a whole request's time whenever it is tried."""

# The client logs each of its attempts as a warning, which Python would print: we report how they ended.
logging.getLogger("elastic_transport").addHandler(logging.NullHandler())


def make_client(settings: Settings, timeout: float) -> tuple[Elasticsearch, Wire]:
    """A client that goes on with another address if one fails, and what its nodes share.

    Raises:
        UsageError: the settings can't be right, or would send a secret where others can read it.
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
                f"a certificate's fingerprint is set, and {settings.address} has an address without TLS: "
                "begin each with https"
            )
        wire.pinned = Pinned(settings.fingerprint)
        options["ssl_context"] = wire.pinned.context
    elif settings.ca_certs is not None and is_tls:
        options["ssl_context"] = trusting(settings.ca_certs)
    addresses = list(dict.fromkeys(_plain(url) for url in settings.urls))
    wire.has_others = len(addresses) > 1
    client = Elasticsearch(
        addresses,
        node_class=type("Node", (Node,), {"wire": wire}),
        headers=dict(settings.headers),
        opaque_id=settings.opaque_id,
        request_timeout=timeout,
        # Another address at once if one does not answer; `Connection.call` does all that takes patience, and waits
        # longer each time, after a 429 too.
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
        # What Python says of a wrong address quotes it, with the password.
        raise UsageError(
            f"{without_credentials(url)!r} is not an address of a server (it needs a scheme, http or https, and a "
            "host): use the form http://localhost:9200"
        )


def _require_private(settings: Settings) -> None:
    """Refuse to send a secret in the clear to another machine, where everybody on the way can read it."""
    if settings.insecure:
        return
    for url in settings.urls:
        parts = urlsplit(url)
        if parts.scheme == "http" and (
            settings.proxy is not None or not _is_this_machine(parts.hostname or "")
        ):
            raise UsageError(
                f"{without_credentials(url)} is reached without TLS, where others on the network could read the "
                "password, key, token or headers: use https, or allow it with --insecure"
            )


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _plain(url: str) -> str:
    """The address without user and password, and with its port, as the client demands: 443 for https, 9200 for http."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = parts.port or (443 if parts.scheme == "https" else 9200)
    return parts._replace(netloc=f"{host}:{port}", query="", fragment="").geturl()
