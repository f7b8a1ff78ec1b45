"""An HTTP proxy as companies have it between their machines and a server: it hands requests and tunnels on."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit


class HttpProxy:
    """A proxy on a free port of 127.0.0.1 for the length of a `with` block.

    Args:
        authorization: the `Proxy-Authorization` that it wants, none if not given

    `asked` has the first line of each request, without its version: `CONNECT host:port`, `GET http://host:port/path`.
    """

    def __init__(self, authorization: str | None = None) -> None:
        self.authorization = authorization
        self.asked: list[str] = []
        self._server = _Listener(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True  # a tunnel lives as long as the client keeps it

    def __init__(self, owner: HttpProxy) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing when a client goes away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    server: _Listener

    def do_CONNECT(self) -> None:
        if not self._let_in():
            return
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port))) as there:
            self.send_response_only(200)
            self.end_headers()
            back = threading.Thread(target=_pour, args=(there, self.connection), daemon=True)
            back.start()
            _pour(self.connection, there)
            back.join()
        self.close_connection = True

    def _hand_on(self) -> None:
        if not self._let_in():
            return
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        hop = {"connection", "proxy-authorization", "host"}
        headers = {name: value for name, value in self.headers.items() if name.lower() not in hop}
        there = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=30)
        with contextlib.closing(there):
            there.request(self.command, parts._replace(scheme="", netloc="").geturl(), body or None, headers)
            answer = there.getresponse()
            told = answer.read()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(told)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _hand_on  # noqa: N815

    def _let_in(self) -> bool:
        owner = self.server.owner
        owner.asked.append(f"{self.command} {self.path}")
        if owner.authorization in (None, self.headers.get("Proxy-Authorization")):
            return True
        self.send_response_only(407)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing on the terminal."""


def _pour(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(1 << 16):
            sink.sendall(piece)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
