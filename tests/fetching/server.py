"""A server on loopback that serves files and ranges of them, and injects faults."""

from __future__ import annotations

import hashlib
import re
import ssl
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Self

import httpx
import pytest
from httpx._transports import default

from tests.server.faults import LoopbackServer, Request, Response


@dataclass(frozen=True)
class Fault:
    """A fault of one response."""

    cut_after: int | None = None
    """The number of bytes of the body after which the connection ends."""
    pause: float = 0.0
    """Seconds of silence before each chunk."""
    corrupt: bool = False
    """Whether the first byte of the body is wrong."""
    status: int | None = None
    """The status of a response without the file."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """The content in place of the file's."""
    no_ranges: bool = False
    """Whether the response to a range is the whole file."""
    shift: int = 0
    """How many bytes after the requested start a range begins."""
    unmeasured: bool = False
    """Whether the response lacks a Content-Length."""
    etag: str | None = None
    """The entity tag in place of the file's."""
    drop_etag: bool = False


class FileServer(LoopbackServer):
    """A server of `files` by path, with `faults` by path: a list has one for each next GET, a single one is for all."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[Fault] | Fault] = {}
        self.requests_of: dict[str, list[dict[str, str]]] = defaultdict(list)
        """The headers of each GET of a path."""
        self.bytes_sent = 0
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> Self:
        self._patch.setattr(default, "create_ssl_context", _shared_ssl_context)
        return super().__enter__()

    def close(self) -> None:
        self._patch.undo()
        super().close()

    def ranges(self, path: str) -> list[str | None]:
        """Return the Range header of each GET of a path."""
        return [headers.get("range") for headers in self.requests_of[path]]

    def respond(self, request: Request) -> Response:
        path, fault = request.target, Fault()
        if request.method == "GET":
            self.requests_of[path].append(request.headers)
            faults = self.faults.get(path, [])
            fault = faults if isinstance(faults, Fault) else faults.pop(0) if faults else fault
        if fault.status is not None or path not in self.files:
            return Response(fault.status or 404, fault.headers, fault.body or b"")
        response = self._file(request, fault)
        if request.method == "GET":
            self.bytes_sent += len(response.body)
        return response

    def _file(self, request: Request, fault: Fault) -> Response:
        """Return the file of a path, or the requested range of it."""
        content = self.files[request.target] if fault.body is None else fault.body
        etag = fault.etag or f'"{hashlib.sha1(self.files[request.target]).hexdigest()}"'
        headers = {**fault.headers, **({} if fault.drop_etag else {"ETag": etag})}
        requested = re.fullmatch(r"bytes=(\d+)-", request.headers.get("range", ""))
        start = 0
        if requested and not fault.no_ranges and request.headers.get("if-range", etag) == etag:
            start = int(requested[1])
        if start >= len(content) and start > 0:
            return Response(416, {"Content-Range": f"bytes */{len(content)}"})
        if start:
            start += fault.shift
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        body = content[start:]
        length = len(body)
        if fault.corrupt:
            body = bytes([body[0] ^ 0xFF]) + body[1:]
        return Response(
            206 if start else 200, headers, body[: fault.cut_after], length, not fault.unmeasured, fault.pause
        )


@cache
def _ssl_context() -> ssl.SSLContext:
    return httpx.create_ssl_context()


def _shared_ssl_context(verify: object = True, **_options: object) -> ssl.SSLContext:
    """Return the context of httpx, made once: reading all certificates takes longer than most downloads."""
    assert verify is True
    return _ssl_context()
