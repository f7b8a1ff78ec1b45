"""A server on loopback that holds a few files, with ranges, and misbehaves on request."""

from __future__ import annotations

import hashlib
import re
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from httpx._transports import default


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one answer.

    `cut_after`: the connection ends after this many bytes of the body. `pause`: seconds of silence before each
    piece. `corrupt`: the first byte is another. `status` with `headers`: no file, but this answer. `body` instead
    of the file's. `no_ranges`: a range is answered with the whole file. `shift`: a range begins this many bytes
    further than asked for. `unmeasured`: no Content-Length. `etag` instead of the file's, and `drop_etag`.
    """

    cut_after: int | None = None
    pause: float = 0.0
    corrupt: bool = False
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    no_ranges: bool = False
    shift: int = 0
    unmeasured: bool = False
    etag: str | None = None
    drop_etag: bool = False


class FileServer:
    """`files` by path, `faults` by path: the first of a list goes with the next GET, one alone with every one."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[Fault] | Fault] = {}
        self.requests: dict[str, list[dict[str, str]]] = defaultdict(list)
        self.bytes_sent = 0
        outer = self

        class Handler(_Handler):
            owner = outer

        self._patch = pytest.MonkeyPatch()
        self._server = _Quiet(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> FileServer:
        self._patch.setattr(default, "create_ssl_context", _authorities_once)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()
        self._server.shutdown()
        self._server.server_close()

    def ranges(self, path: str) -> list[str | None]:
        """The Range header of each GET of a path."""
        return [headers.get("range") for headers in self.requests[path]]

    def fault(self, path: str) -> Fault:
        """What goes wrong with the next answer."""
        faults = self.faults.get(path, [])
        if isinstance(faults, Fault):
            return faults
        return faults.pop(0) if faults else Fault()


@cache
def _authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context()


def _authorities_once(verify: object = True, **_options: object) -> ssl.SSLContext:
    """What httpx trusts. Nothing here is encrypted, and to read all authorities takes longer than most downloads."""
    assert verify is True
    return _authorities()


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """A client that hangs up is what is tested."""


class _Handler(BaseHTTPRequestHandler):
    owner: FileServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *_: Any) -> None:  # noqa: A002
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._answer(Fault() if self.path in self.owner.files else Fault(status=404), with_body=False)

    def do_GET(self) -> None:
        self.owner.requests[self.path].append({name.lower(): value for name, value in self.headers.items()})
        fault = self.owner.fault(self.path)
        if self.path not in self.owner.files and fault.status is None:
            fault = Fault(status=404)
        self._answer(fault)

    def _answer(self, fault: Fault, *, with_body: bool = True) -> None:
        if fault.status is not None:
            body = fault.body or b""
            self.send_response(fault.status)
            for name, value in fault.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        content = fault.body if fault.body is not None else self.owner.files[self.path]
        etag = fault.etag or f'"{hashlib.sha1(self.owner.files[self.path]).hexdigest()}"'
        start = 0 if fault.no_ranges else self._start(etag)
        if start is not None and start >= len(content) and start > 0:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(content)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start = start or 0
        self.send_response(206 if start else 200)
        if start:
            start += fault.shift
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        body = content[start:]
        for name, value in fault.headers.items():
            self.send_header(name, value)
        if not fault.drop_etag:
            self.send_header("ETag", etag)
        if fault.unmeasured:
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self._send(body, fault)

    def _start(self, etag: str) -> int | None:
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if not asked or self.headers.get("If-Range", etag) != etag:
            return None
        return int(asked[1])

    def _send(self, body: bytes, fault: Fault) -> None:
        if fault.corrupt:
            body = bytes([body[0] ^ 0xFF]) + body[1:]
        if fault.cut_after is not None:
            body = body[: fault.cut_after]
        try:
            for at in range(0, len(body), 1 << 14):
                if fault.pause:
                    time.sleep(fault.pause)
                piece = body[at : at + (1 << 14)]
                # Counted first: whoever has read the last piece may look at the count before this thread goes on.
                self.owner.bytes_sent += len(piece)
                self.wfile.write(piece)
            self.wfile.flush()
        except OSError:
            self.close_connection = True  # the client has gone
        if fault.cut_after is not None:
            self.close_connection = True
