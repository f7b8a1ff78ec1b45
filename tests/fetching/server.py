"""A server on loopback that holds a few files, with ranges, and misbehaves on request."""

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


class FileServer(LoopbackServer):
    """`files` by path, `faults` by path: the first of a list goes with the next GET, one alone with every one."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[Fault] | Fault] = {}
        self.asked: dict[str, list[dict[str, str]]] = defaultdict(list)
        """The headers of each GET of a path."""
        self.bytes_sent = 0
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> Self:
        self._patch.setattr(default, "create_ssl_context", _authorities_once)
        return super().__enter__()

    def close(self) -> None:
        self._patch.undo()
        super().close()

    def ranges(self, path: str) -> list[str | None]:
        """The Range header of each GET of a path."""
        return [headers.get("range") for headers in self.asked[path]]

    def respond(self, request: Request) -> Response:
        path, fault = request.target, Fault()
        if request.method == "GET":
            self.asked[path].append(request.headers)
            faults = self.faults.get(path, [])
            fault = faults if isinstance(faults, Fault) else faults.pop(0) if faults else fault
        if fault.status is not None or path not in self.files:
            return Response(fault.status or 404, fault.headers, fault.body or b"")
        response = self._file(request, fault)
        if request.method == "GET":
            self.bytes_sent += len(response.body)
        return response

    def _file(self, request: Request, fault: Fault) -> Response:
        """The file of a path, or the rest of it."""
        content = self.files[request.target] if fault.body is None else fault.body
        etag = fault.etag or f'"{hashlib.sha1(self.files[request.target]).hexdigest()}"'
        headers = {**fault.headers, **({} if fault.drop_etag else {"ETag": etag})}
        asked = re.fullmatch(r"bytes=(\d+)-", request.headers.get("range", ""))
        start = 0
        if asked and not fault.no_ranges and request.headers.get("if-range", etag) == etag:
            start = int(asked[1])
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
def _authorities() -> ssl.SSLContext:
    return httpx.create_ssl_context()


def _authorities_once(verify: object = True, **_options: object) -> ssl.SSLContext:
    """What httpx trusts. Nothing here is encrypted, and to read all authorities takes longer than most downloads."""
    assert verify is True
    return _authorities()
