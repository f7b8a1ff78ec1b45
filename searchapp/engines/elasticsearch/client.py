"""The client, made from settings: addresses, credentials, TLS, proxy, and what it must not do."""

from __future__ import annotations

import ipaddress
import logging
from urllib.parse import urlsplit

from elasticsearch import Elasticsearch

from searchapp.engines.elasticsearch.credentials import credentials
from searchapp.engines.elasticsearch.nodes import Node, Wire
from searchapp.engines.elasticsearch.tls import Pinned, trusting
from searchapp.errors import UsageError
from searchapp.settings import Settings, without_credentials

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
        retry_backoff_base=0,
        retry_backoff_cap=0,
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
