"""Which certificates a server is believed by: those of the system's authorities, of a file, or one that is pinned.

A pinned certificate is named by the SHA-256 of its bytes, which a server prints at its first start: that of its
authority, or of the server itself. That such a certificate is among those that a server shows proves nothing, for
anybody may show it. It becomes the one authority that is trusted, and TLS then verifies that the server has a key that
it vouches for.
"""

from __future__ import annotations

import hashlib
import http.client
import ssl
import sys
import threading
from base64 import b64encode
from pathlib import Path
from urllib.parse import unquote, urlsplit

from elastic_transport import ConnectionError as NoConnection
from elastic_transport import ConnectionTimeout, NodeConfig, TlsError

from searchapp.errors import UsageError
from searchapp.inputs import open_file

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
