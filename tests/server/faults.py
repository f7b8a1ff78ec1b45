"""Proxies that inject faults between a client and Elasticsearch, and stand-ins for other servers.

`FaultProxy` forwards requests to a real server, except for those that match a rule of the test:

    with FaultProxy(node.server) as proxy:
        proxy.reject(2, path="/_bulk")                the next two bulk requests get 429
        proxy.answer(503, method="GET")               the next GET gets 503
        proxy.cut(path="/_msearch")                   the next response breaks off halfway
        proxy.lose(path="/_bulk")                     the next bulk is executed, and its response is lost
        proxy.lose(path="/_bulk", status=504)         the same, with the error of a gateway
        proxy.shorten(path="/_bulk")                  the next response has half its length
        proxy.double(path="/_bulk")                   the next bulk reaches the server twice
        proxy.delay(5.0, path="/_msearch")            the next response is five seconds late
        proxy.reject_documents({"7"})                 the next bulk gets 429 only for document 7
        proxy.refuse_from(3, path="/_bulk")           no response from the third bulk request on
        proxy.hold(3, path="/_bulk")                  the same, and the third bulk is held back
        proxy.release()                               the held bulk arrives now
        proxy.disturb(0.05, seed=1, seconds=2)        one request in twenty gets one of these faults
        ... proxy.url ... proxy.count(path="/_bulk")

`path` is a regular expression that is searched in the path without its query. The first matching rule applies.
`Serverless` makes a real server look like a serverless project. `NotElasticsearch`, `OpenSearch` and
`OldElasticsearch` replace servers that are not available to the tests. `HttpProxy` is a proxy as companies use.
"""

from __future__ import annotations

import gzip
import http.client
import json
import random
import re
import socket
import ssl
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

from .rest import Server

FORWARD_SECONDS = 120.0
PIECE = 1 << 14
# Headers of a single connection, which a proxy must not forward.
HOP_HEADERS = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "te", "upgrade"}
PRODUCT = {"X-elastic-product": "Elasticsearch"}


@dataclass(frozen=True, slots=True)
class Request:
    """A received request."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path


@dataclass(frozen=True, slots=True)
class Response:
    """A response. If `body` is shorter than `length`, the connection breaks off."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    length: int | None = None
    is_measured: bool = True
    """Whether there is a `Content-Length`; without it the body ends with the connection."""
    pause: float = 0.0
    """Seconds to wait before each piece of the body."""

    @classmethod
    def of_json(cls, status: int, body: object) -> Response:
        """Return a response with the product header of Elasticsearch."""
        return cls(status, {"Content-Type": "application/json", **PRODUCT}, json.dumps(body).encode())

    @classmethod
    def error(cls, status: int, kind: str, reason: str, **more: object) -> Response:
        """Return an error response in the format of Elasticsearch."""
        cause = {"type": kind, "reason": reason}
        return cls.of_json(status, {"error": {"root_cause": [cause], **cause, **more}, "status": status})


class LoopbackServer:
    """An HTTP server on a free port of 127.0.0.1, which runs in a `with` block."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._server = _Listener(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def respond(self, request: Request) -> Response | None:
        """Return the response to a request, or None to close the connection."""
        raise NotImplementedError

    def count(self, *, method: str | None = None, path: str = "") -> int:
        """Return the number of requests with this method and a matching path."""
        with self._lock:
            return sum(_matches(request, method, path) for request in self.requests)

    def close(self) -> None:
        """Stop listening, and end delays at once."""
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self, request: Request) -> Response | None:
        with self._lock:
            self.requests.append(request)
        return self.respond(request)


class _Listener(ThreadingHTTPServer):
    # `server_close` waits for threads that are not daemons, so that no socket outlives the test.
    daemon_threads = False

    def __init__(self, owner: LoopbackServer) -> None:
        self.owner = owner
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore disconnected clients, which these tests provoke."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10  # seconds, for a client that connects and sends nothing

    server: _Listener

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        response = self.server.owner._receive(Request(self.command, self.path, headers, body))
        # One request for each connection keeps the threads short-lived.
        self.close_connection = True
        if response is None:
            return
        if self.command == "CONNECT" and response.status == 200:
            self._tunnel()
            return
        self.send_response_only(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if response.is_measured and response.status not in (204, 304):
            length = len(response.body) if response.length is None else response.length
            self.send_header("Content-Length", str(length))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        for start in range(0, len(response.body), PIECE):
            if response.pause:
                self.server.owner._closing.wait(response.pause)
            self.wfile.write(response.body[start : start + PIECE])

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_CONNECT = _handle  # noqa: N815

    def _tunnel(self) -> None:
        """Forward bytes in both directions until both sides have closed."""
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port))) as target:
            self.send_response_only(200)
            self.end_headers()
            self.connection.settimeout(None)
            back = threading.Thread(target=_pour, args=(target, self.connection), daemon=True)
            back.start()
            _pour(self.connection, target)
            back.join()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Write nothing to the terminal."""


def forward(request: Request, target: Server) -> Response | None:
    """Forward a request to a server and return its response, None if there is none."""
    headers = {name: value for name, value in request.headers.items() if name not in HOP_HEADERS}
    connection = target.connect(FORWARD_SECONDS)
    try:
        connection.request(request.method, request.target, request.body or None, headers)
        response = connection.getresponse()
        body = response.read()
        forwarded = {name: value for name, value in response.getheaders() if name.lower() not in HOP_HEADERS}
        content_length = response.getheader("Content-Length")
        length = int(content_length) if request.method == "HEAD" and content_length else None
        return Response(response.status, forwarded, body, length)
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


@dataclass(slots=True)
class _Rule:
    """A rule for matching requests: it skips `skip` of them, and applies to the next `times` (None: all)."""

    act: Callable[[Request], Response | None]
    method: str | None
    path: str
    times: int | None
    skip: int = 0

    def applies_to(self, request: Request) -> bool:
        if self.times == 0 or not _matches(request, self.method, self.path):
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


class FaultProxy(LoopbackServer):
    """A proxy in front of a real server that injects faults, see the module's docstring.

    It forwards the credentials of the client and adds none.
    """

    def __init__(self, target: Server | str) -> None:
        super().__init__()
        self._target = Server(target) if isinstance(target, str) else target
        self._rules: list[_Rule] = []
        self.disturbed = 0
        self.held: list[Request] = []

    def answer(
        self,
        status: int,
        kind: str = "injected_exception",
        reason: str = "injected by the test",
        *,
        method: str | None = None,
        path: str = "",
        times: int | None = 1,
    ) -> None:
        """Answer with an error in the format of Elasticsearch, without forwarding the request."""
        self._add(lambda _: Response.error(status, kind, reason), method, path, times)

    def reject(self, times: int | None = 1, *, method: str | None = None, path: str = "") -> None:
        """Answer 429 as an overloaded server does."""
        reason = (
            "rejected execution of coordinating operation [coordinating_and_primary_bytes=53687091, "
            "replica_bytes=0, all_bytes=53687091, coordinating_operation_bytes=1048576, "
            "max_coordinating_and_primary_bytes=53687091]"
        )
        self.answer(429, "es_rejected_execution_exception", reason, method=method, path=path, times=times)

    def unavailable(self, times: int | None = 1, *, method: str | None = None, path: str = "") -> None:
        """Answer 503 as a server without its shards does."""
        kind, reason = "search_phase_execution_exception", "all shards failed"
        self.answer(503, kind, reason, method=method, path=path, times=times)

    def cut(self, times: int | None = 1, *, method: str | None = None, path: str = "") -> None:
        """Forward the request, and close the connection halfway through the response."""
        self._add(self._half, method, path, times)

    def lose(
        self, times: int | None = 1, *, status: int | None = None, method: str | None = None, path: str = ""
    ) -> None:
        """Forward the request, and send no response, or the error of a gateway with this status."""
        self._add(lambda request: self._lost(request, status), method, path, times)

    def shorten(self, times: int | None = 1, *, method: str | None = None, path: str = "") -> None:
        """Forward the request, and return half of the response with a matching length."""
        self._add(self._short, method, path, times)

    def double(self, times: int | None = 1, *, method: str | None = None, path: str = "") -> None:
        """Forward the request twice, and return the second response."""
        self._add(self._twice, method, path, times)

    def delay(
        self, seconds: float, times: int | None = 1, *, method: str | None = None, path: str = ""
    ) -> None:
        """Forward the request after some seconds, for a client with a shorter timeout."""
        self._add(lambda request: self._late(request, seconds), method, path, times)

    def disturb(self, share: float, seed: int, seconds: float) -> None:
        """Lose, shorten, cut, double or delay a random share of all requests; the delay is in seconds."""
        dice = random.Random(seed)
        acts: list[Callable[[Request], Response | None]] = [
            lambda request: self._lost(request, None),
            lambda request: self._lost(request, 504),
            self._short,
            self._half,
            self._twice,
            lambda request: self._late(request, seconds),
        ]

        def act_randomly(request: Request) -> Response | None:
            with self._lock:
                act = dice.choice(acts) if dice.random() < share else self._forward
                self.disturbed += act != self._forward
            return act(request)

        self._add(act_randomly, None, "", None)

    def refuse_from(self, first: int, *, method: str | None = None, path: str = "/_bulk$") -> None:
        """Answer nothing from the `first` matching request (from 1) on, as if the server had failed."""

        def stop_answering(request: Request) -> None:
            with self._lock:
                self._rules.insert(0, _Rule(lambda _: None, None, "", None))

        self._add(stop_answering, method, path, 1, skip=first - 1)

    def hold(self, number: int = 1, *, method: str | None = None, path: str = "") -> None:
        """Hold the n-th matching request until `release`, and answer nothing from it on."""

        def hold_request(request: Request) -> None:
            with self._lock:
                self.held.append(request)
                self._rules.insert(0, _Rule(lambda _: None, None, "", None))

        self._add(hold_request, method, path, 1, skip=number - 1)

    def release(self) -> list[Response | None]:
        """Forward the held requests, and return the responses, which no client gets."""
        with self._lock:
            requests, self.held = self.held, []
        return [self._forward(request) for request in requests]

    def reject_documents(self, ids: Collection[str], times: int | None = 1) -> None:
        """Answer 429 for these documents of a bulk request, and forward the others."""
        self._add(lambda request: self._without(request, frozenset(ids)), None, "/_bulk$", times)

    @property
    def open_rules(self) -> int:
        """The number of rules that still wait for a matching request."""
        with self._lock:
            return sum(rule.times != 0 for rule in self._rules)

    def heal(self) -> None:
        """Drop all rules, so that all requests are forwarded."""
        with self._lock:
            self._rules.clear()

    def respond(self, request: Request) -> Response | None:
        with self._lock:
            rule = next((rule for rule in self._rules if rule.applies_to(request)), None)
        return self._forward(request) if rule is None else rule.act(request)

    def _add(
        self,
        act: Callable[[Request], Response | None],
        method: str | None,
        path: str,
        times: int | None,
        skip: int = 0,
    ) -> None:
        with self._lock:
            self._rules.append(_Rule(act, method, path, times, skip))

    def _forward(self, request: Request) -> Response | None:
        return forward(request, self._target)

    def _lost(self, request: Request, status: int | None) -> Response | None:
        self._forward(request)
        return (
            None if status is None else Response(status, {"Content-Type": "text/html"}, b"<h1>gateway</h1>")
        )

    def _short(self, request: Request) -> Response | None:
        response = self._forward(request)
        return response and replace(response, body=response.body[: len(response.body) // 2])

    def _twice(self, request: Request) -> Response | None:
        self._forward(request)
        return self._forward(request)

    def _late(self, request: Request, seconds: float) -> Response | None:
        return None if self._closing.wait(seconds) else self._forward(request)

    def _half(self, request: Request) -> Response | None:
        response = self._forward(request)
        if response is None:
            return None
        length = len(response.body)
        return replace(response, body=response.body[: length // 2], length=length)

    def _without(self, request: Request, ids: frozenset[str]) -> Response | None:
        """Forward a bulk request without some documents, and insert their rejections into the response."""
        body = gzip.decompress(request.body) if "content-encoding" in request.headers else request.body
        forwarded: list[bytes] = []
        rejected: dict[int, dict[str, Any]] = {}
        lines = iter(body.splitlines())
        position = 0
        for line in lines:
            if not line.strip():
                continue
            action = json.loads(line)
            name, target = next(iter(action.items()))
            document = [] if name == "delete" else [next(lines)]
            if target.get("_id") in ids:
                rejected[position] = {name: _rejection(target)}
            else:
                forwarded += [line, *document]
            position += 1
        items: list[dict[str, Any]] = []
        headers: Mapping[str, str] = {"Content-Type": "application/json", **PRODUCT}
        if forwarded:
            encoded = {"content-encoding", "accept-encoding"}
            plain = {name: value for name, value in request.headers.items() if name not in encoded}
            response = self._forward(
                Request(request.method, request.target, plain, b"\n".join(forwarded) + b"\n")
            )
            if response is None or response.status != 200:
                return response
            items, headers = json.loads(response.body)["items"], response.headers
        for position, item in sorted(rejected.items()):
            items.insert(position, item)
        errors = any(entry.get("error") for item in items for entry in item.values())
        return Response(200, headers, json.dumps({"took": 1, "errors": errors, "items": items}).encode())


INTERNAL = re.compile(
    r"^/(_cluster|_nodes|_tasks|_snapshot|_ilm|_slm|_ccr|_remote|_dangling)(/|$)"
    r"|/_(stats|flush|segments|recovery|shard_stores|forcemerge|open|close|shrink|split|clone|cache|mount)(/|$)"
    r"|^/_cat/(shards|nodes|allocation|health|master|segments|recovery|thread_pool|plugins|pending_tasks)(/|$)"
)
"""Paths that users of serverless projects can't use."""

PUBLIC_SETTINGS = re.compile(
    r"index\.(analysis|similarity|sort|blocks\.(write|read|read_only|metadata)|mapping|query\.default_field|hidden"
    r"|default_pipeline|final_pipeline|refresh_interval)(\.|$)"
)
"""Index settings that users of serverless projects can set."""


class Serverless(FaultProxy):
    """A proxy that makes a real server look like a serverless project; `refused` lists the rejected requests.

    The rules and messages are those of Elasticsearch's source code: the scope of REST actions, public index settings,
    `ApiNotAvailableException` and the validator of settings.
    """

    def __init__(self, target: str) -> None:
        super().__init__(target)
        self.refused: list[str] = []

    def respond(self, request: Request) -> Response | None:
        if INTERNAL.search(request.path):
            self.refused.append(f"{request.method} {request.path}")
            reason = (
                f"Request for uri [{request.target}] with method [{request.method}] exists but is not available when "
                "running in serverless mode"
            )
            return Response.error(410, "api_not_available_exception", reason)
        private = [name for name in _settings_of(request) if not PUBLIC_SETTINGS.match(name)]
        if private:
            self.refused.append(f"{request.method} {request.path} {private}")
            reason = (
                f"Settings [{','.join(sorted(private))}] are not available when running in serverless mode"
            )
            return Response.error(400, "illegal_argument_exception", reason)
        response = super().respond(_without_replicas(request))
        if request.path == "/" and response is not None and response.status == 200:
            about = json.loads(response.body)
            about |= {"name": "serverless"}
            about["version"] |= {"number": "8.11.0", "build_flavor": "serverless", "build_hash": "00000000"}
            return Response.of_json(200, about)
        return response


def _without_replicas(request: Request) -> Request:
    """Return a request to create an index without replicas, for which a single node has no place."""
    if not _makes_index(request) or not request.body:
        return request
    body = json.loads(request.body)
    body["settings"] = {**body.get("settings", {}), "number_of_replicas": 0}
    return replace(request, body=json.dumps(body).encode())


def _makes_index(request: Request) -> bool:
    return request.method == "PUT" and re.fullmatch(r"/[^_/][^/]*", request.path) is not None


def _settings_of(request: Request) -> Iterator[str]:
    """Yield the full names of the index settings that a request sets."""
    changes = request.method == "PUT" and request.path.endswith("/_settings")
    if not request.body or not (_makes_index(request) or changes):
        return
    body = json.loads(request.body)
    for name in _flat(body if changes else body.get("settings", {})):
        name = name.removeprefix("settings.")
        yield name if name.startswith("index.") else f"index.{name}"


def _flat(settings: Mapping[str, Any], parent: str = "") -> Iterator[str]:
    for name, value in settings.items():
        path = f"{parent}.{name}" if parent else name
        if isinstance(value, Mapping):
            yield from _flat(value, path)
        else:
            yield path


class HttpProxy(LoopbackServer):
    """A forward proxy as companies use, for requests and tunnels.

    Args:
        authorization: The required `Proxy-Authorization`, if any.
    """

    def __init__(self, authorization: str | None = None) -> None:
        super().__init__()
        self.authorization = authorization
        self._server.daemon_threads = True  # a tunnel lives as long as the client keeps it

    @property
    def request_lines(self) -> list[str]:
        """The first line of each request without its version, such as `CONNECT host:port`."""
        return [f"{request.method} {request.target}" for request in self.requests]

    def respond(self, request: Request) -> Response | None:
        authorization = request.headers.pop("proxy-authorization", None)
        if self.authorization not in (None, authorization):
            return Response(407)
        if request.method == "CONNECT":
            return Response(200)
        parts = urlsplit(request.target)
        path = parts._replace(scheme="", netloc="").geturl()
        return forward(replace(request, target=path), Server(f"http://{parts.netloc}"))


def _pour(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(1 << 16):
            sink.sendall(piece)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


class StrangeElasticsearch(LoopbackServer):
    """A server that sends `about` and the headers of Elasticsearch to all requests; with a context it uses TLS."""

    def __init__(self, about: object = None, context: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self.about = about
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def respond(self, request: Request) -> Response:
        return Response.of_json(200, self.about)


class NotElasticsearch(LoopbackServer):
    """A web server that answers all requests with a page."""

    def respond(self, request: Request) -> Response:
        page = b"<!doctype html><title>Welcome</title><p>It works!\n"
        return Response(200, {"Content-Type": "text/html; charset=utf-8"}, page)


class OpenSearch(LoopbackServer):
    """An OpenSearch server, which can report a version of Elasticsearch and name itself only in its tagline."""

    def __init__(self, number: object, names_itself: bool) -> None:
        super().__init__()
        distribution = {"distribution": "opensearch"} if names_itself else {}
        version = {**distribution, "number": number, "build_type": "tar", "lucene_version": "9.12.1"}
        self.about = {"version": version, "tagline": "The OpenSearch Project: https://opensearch.org/"}

    def respond(self, request: Request) -> Response:
        body = json.dumps(self.about).encode()
        return Response(200, {"Content-Type": "application/json; charset=UTF-8"}, body)


class OldElasticsearch(LoopbackServer):
    """An Elasticsearch of the previous major release, which rejects the media type of a newer client."""

    def __init__(self, version: str = "8.17.0") -> None:
        super().__init__()
        self.version = version
        self.major = int(version.split(".")[0])

    def respond(self, request: Request) -> Response:
        for header, name in (("accept", "Accept"), ("content-type", "Content-Type")):
            value = request.headers.get(header, "")
            version = re.search(r"compatible-with=(\d+)", value)
            if version and int(version.group(1)) not in (self.major, self.major - 1):
                reason = (
                    f"{name} version must be either version {self.major} or {self.major - 1}, "
                    f"but found {version.group(1)}. {name}={value}"
                )
                return Response.error(
                    400,
                    "media_type_header_exception",
                    "Invalid media-type value on headers [Content-Type, Accept]",
                    caused_by={"type": "status_exception", "reason": reason},
                )
        if request.path != "/":
            return Response.error(
                404, "index_not_found_exception", f"no such index [{request.path.strip('/')}]"
            )
        about = {
            "name": "old",
            "cluster_name": "old",
            "version": {"number": self.version, "build_flavor": "default", "lucene_version": "9.12.0"},
            "tagline": "You Know, for Search",
        }
        return Response.of_json(200, about)


def _matches(request: Request, method: str | None, path: str) -> bool:
    return method in (None, request.method) and re.search(path, request.path) is not None


def _rejection(target: dict[str, object]) -> dict[str, object]:
    error = {"type": "es_rejected_execution_exception", "reason": "rejected execution of primary operation"}
    return {"_index": target.get("_index"), "_id": target.get("_id"), "status": 429, "error": error}
