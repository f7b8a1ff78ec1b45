"""The server's socket, and access control by a token that is exchanged for a cookie.

Pages of other sites in the same browser may send requests here, so requests need the right `Origin`, and the
cookie is `SameSite=Strict`. Their host names may also resolve to this machine, so `Host` must be a known name
or an IP address.
"""

from __future__ import annotations

import errno
import hmac
import os
import re
import secrets
import socket
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web

from searchapp.errors import SearchappError, UsageError
from searchapp.files import reason
from searchapp.lucene.dataclass import dataclass

ANY_ADDRESS = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Listening:
    """A listening socket."""

    socket: socket.socket
    # As the user wrote it.
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        return ip_address(self.socket.getsockname()[0].partition("%")[0]).is_loopback

    @property
    def url(self) -> str:
        """The address without a trailing slash."""
        host = socket.gethostname() if self.host in ANY_ADDRESS else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


def listen(host: str, port: int) -> Listening:
    """Listen at a port; 0 takes any free port.

    Raises:
        UsageError: the host is not an address of this machine.
        SearchappError: the port is in use or not allowed.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--host {host!r} is not an address: leave out --host, or give one of this machine"
        ) from error
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere it would let two programs share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        raise _refused(host, port, error) from error
    return Listening(listener, host, listener.getsockname()[1])


def _refused(host: str, port: int, error: OSError) -> SearchappError:
    match error.errno:
        case errno.EADDRINUSE:
            return SearchappError(
                f"port {port} of {host} is in use: give another one with --port, or --port 0 for a free one"
            )
        case errno.EACCES:
            return SearchappError(
                f"port {port} requires administrator rights: give a port from 1024 with --port"
            )
        case errno.EADDRNOTAVAIL:
            return UsageError(
                f"--host {host!r} is not an address of this machine: leave out --host, or give one that is"
            )
    return SearchappError(f"can't listen on {host}:{port}: {reason(error)}")


def public_url(given: str) -> str:
    """Normalise the address of a reverse proxy as browsers send it, without a trailing slash.

    Raises:
        UsageError: the address has more than scheme, host and port, or is invalid.
    """
    try:
        parts = urlsplit(given.strip())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    host = (parts.hostname or "").lower()
    is_plain = not (parts.username or parts.password or parts.query or parts.fragment)
    if (
        parts.scheme not in ("http", "https")
        or not re.fullmatch(r"[a-z0-9._:-]+", host)
        or parts.path not in ("", "/")
        or not is_plain
    ):
        raise UsageError("--public-url must be like https://search.example.org, without a path")
    usual = {"http": 80, "https": 443}[parts.scheme]
    port_suffix = "" if port in (None, usual) else f":{port}"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port_suffix}"


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PAGE = "/"
# The parameter of `PAGE` with the token.
TOKEN = "token"
WEBSOCKET = "/ws"
STATIC = ("/static/", "/page/")

_NEEDS_TOKEN = (
    "<!DOCTYPE html><title>401</title><p>This page needs the token: open the complete address that "
    "<code>searchapp serve</code> printed. If you have done so, <a href='/'>continue</a>.\n"
)
# Allows nothing from other sites; the terminal creates styles at run time.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Guard:
    """Admits or rejects requests; `public_url` is the address of a reverse proxy."""

    def __init__(self, listening: Listening, public_url: str | None = None) -> None:
        self._token = secrets.token_urlsafe(32)
        self._secret = secrets.token_urlsafe(32)  # the cookie's value
        # Cookies do not depend on the port, so several servers on a host need several names.
        self._cookie = f"searchapp-{listening.port}"
        self._url = public_url or listening.url
        self._is_secure = self._url.startswith("https:")
        names = {"localhost", urlsplit(self._url).hostname or "localhost"}
        names.add(socket.gethostname() if listening.host in ANY_ADDRESS else listening.host)
        self._names = {name.lower() for name in names}

    def __repr__(self) -> str:
        return "Guard()"

    @property
    def address(self) -> str:
        """The address with the token, to open in a browser."""
        return f"{self._url}{PAGE}?{TOKEN}={self._token}"

    def redacted(self, text: str) -> str:
        """Remove token and cookie from a text."""
        return text.replace(self._token, "…").replace(self._secret, "…")

    @web.middleware
    async def authorize(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer 401 without token or cookie, 403 to other sites, and a token with a cookie."""
        has_token = self._has_token(request)
        if not has_token and not self._has_cookie(request):
            return web.Response(status=401, text=_NEEDS_TOKEN, content_type="text/html")
        if not self._is_known_host(request.headers.get("Host", "")):
            return _forbidden(
                "This server has another name: see --host and --public-url of searchapp serve.\n"
            )
        if not self._is_own_origin(request):
            return _forbidden("This request comes from another site: see --public-url of searchapp serve.\n")
        return self._exchange(request) if has_token else await handler(request)

    async def harden(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add security headers to a response."""
        is_static = response.status < 400 and request.path.startswith(STATIC)
        response.headers.update(
            {
                "Cache-Control": "private, no-cache" if is_static else "no-store",
                "Content-Security-Policy": _POLICY,
                "Cross-Origin-Opener-Policy": "same-origin",
                "Cross-Origin-Resource-Policy": "same-origin",
                "Referrer-Policy": "no-referrer",
                "X-Content-Type-Options": "nosniff",
                "X-Frame-Options": "DENY",
            }
        )

    def _exchange(self, request: web.Request) -> web.Response:
        rest = request.rel_url.without_query_params(TOKEN)
        response = web.Response(status=303, headers={"Location": f".{rest}"})
        response.set_cookie(
            self._cookie, self._secret, httponly=True, samesite="Strict", secure=self._is_secure
        )
        return response

    def _has_token(self, request: web.Request) -> bool:
        return (
            request.method == "GET"
            and request.path == PAGE
            and any(_is_equal(given, self._token) for given in request.query.getall(TOKEN, []))
        )

    def _has_cookie(self, request: web.Request) -> bool:
        return _is_equal(request.cookies.get(self._cookie, ""), self._secret)

    def _is_known_host(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._names or _is_address(name)

    def _is_own_origin(self, request: web.Request) -> bool:
        origin = request.headers.get("Origin")
        if origin is None:
            return request.path != WEBSOCKET  # browsers send the origin of every websocket
        return origin in (self._url, f"http://{request.headers.get('Host')}")


def _forbidden(text: str) -> web.Response:
    return web.Response(status=403, text=text)


def _is_equal(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "backslashreplace"), secret.encode())


def _is_address(name: str) -> bool:
    """Return whether a host is an IP address, which no site can redirect."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
