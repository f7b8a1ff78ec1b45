"""Plain HTTP requests to Elasticsearch, independent of the client under test."""

from __future__ import annotations

import http.client
import json
import ssl
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers (names in lower case) and body of a response."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Server:
    """Address and credentials of a server; the URL can contain user name and password."""

    url: str
    username: str | None = None
    password: str | None = None
    ca_certs: Path | None = None

    def connect(self, timeout: float = 10) -> http.client.HTTPConnection:
        """Return a connection to the server, which the caller closes."""
        parts = urlsplit(self.url)
        host = parts.hostname or "127.0.0.1"
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=self.ca_certs)
            return http.client.HTTPSConnection(host, parts.port or 443, timeout=timeout, context=context)
        return http.client.HTTPConnection(host, parts.port or 80, timeout=timeout)

    def request(self, method: str, path: str, body: object = None, timeout: float = 10) -> Answer:
        """Send a request and read the response.

        Args:
            method: `GET`, `PUT`, ...
            path: Path and query, such as `/_cluster/health?timeout=1s`.
            body: Bytes, which are sent unchanged, or an object, which is sent as JSON.
            timeout: Seconds for connecting and for each read.

        Raises:
            OSError: No connection, or TLS verification failed.
            http.client.HTTPException: The response is not HTTP or is truncated.
        """
        headers = self._authorization()
        if body is not None:
            headers["Content-Type"] = (
                "application/x-ndjson" if isinstance(body, bytes) else "application/json"
            )
        connection = self.connect(timeout)
        try:
            payload = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, urlsplit(self.url).path.rstrip("/") + path, payload, headers)
            response = connection.getresponse()
            names = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, names, response.read())
        finally:
            connection.close()

    def delete_indices(self, prefix: str) -> None:
        """Delete the indices and aliases whose names begin with a prefix.

        Indices are deleted by their names, because nodes reject patterns by default, and in one request, because each
        request changes the cluster state. Aliases on other indices are deleted separately. `_resolve` lists names
        several times faster than requests that return the indices.
        """
        resolved = self.request("GET", f"/_resolve/index/{prefix}*?expand_wildcards=all").json()
        indices = {entry["name"] for entry in resolved["indices"]}
        if indices:
            self.request("DELETE", f"/{','.join(sorted(indices))}", timeout=60)
        for alias in resolved["aliases"]:
            for index in set(alias["indices"]) - indices:
                self.request("DELETE", f"/{index}/_alias/{alias['name']}", timeout=60)

    def _authorization(self) -> dict[str, str]:
        parts = urlsplit(self.url)
        username = self.username or unquote(parts.username or "")
        password = self.password or unquote(parts.password or "")
        if not username:
            return {}
        return {"Authorization": "Basic " + b64encode(f"{username}:{password}".encode()).decode()}
