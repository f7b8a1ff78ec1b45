"""The address that a server listens at."""

from __future__ import annotations

import errno
import os
import re
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from searchapp.errors import SearchappError, UsageError
from searchapp.files import reason

EVERY = ("0.0.0.0", "::")
"""Hosts that stand for all addresses of a machine."""


@dataclass(frozen=True, slots=True)
class Listening:
    """A socket that listens; `host` is as it was given, `port` the one that was taken."""

    socket: socket.socket
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine can reach it."""
        return ip_address(self.socket.getsockname()[0].partition("%")[0]).is_loopback

    @property
    def url(self) -> str:
        """What a browser is given, without a slash at its end."""
        host = socket.gethostname() if self.host in EVERY else self.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"


def listen(host: str, port: int) -> Listening:
    """Listen at a host's port; 0 takes any that is free.

    Raises:
        UsageError: the host is none of this machine.
        SearchappError: the port is taken, or not allowed.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, ValueError) as error:
        raise UsageError(
            f"--host {host!r} is no address: leave it out, or name one of this machine's"
        ) from error
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere it would let two programs have one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        raise _refused(host, port, error) from error
    return Listening(listener, host, listener.getsockname()[1])


def _refused(host: str, port: int, error: OSError) -> SearchappError:
    if error.errno == errno.EADDRINUSE:
        return SearchappError(
            f"port {port} of {host} is taken: name another one with --port, or --port 0 for any that is free"
        )
    if error.errno == errno.EACCES:
        return SearchappError(f"port {port} is not for every account: name one from 1024 on with --port")
    if error.errno == errno.EADDRNOTAVAIL:
        return UsageError(f"--host {host!r} is no address of this machine: leave it out, or name one that is")
    return SearchappError(f"{host}:{port} can't be listened at: {reason(error)}")


def public_url(given: str) -> str:
    """The address by which people reach the server through a proxy, as browsers write it, without a slash at its end.

    Raises:
        UsageError: it is no such address.
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
        raise UsageError("--public-url must be like https://search.example.org, with nothing behind the host")
    usual = {"http": 80, "https": 443}[parts.scheme]
    behind = "" if port in (None, usual) else f":{port}"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{behind}"
