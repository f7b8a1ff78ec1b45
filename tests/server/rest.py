"""Plain HTTP requests to Elasticsearch, so that the starter does not depend on the client under test."""

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
    """Where a server is and what it takes to be let in; user and password may also stand in the URL."""

    url: str
    username: str | None = None
    password: str | None = None
    ca_certs: Path | None = None

    def connect(self, timeout: float = 10) -> http.client.HTTPConnection:
        """A connection to the server; the caller closes it."""
        parts = urlsplit(self.url)
        host = parts.hostname or "127.0.0.1"
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=self.ca_certs)
            return http.client.HTTPSConnection(host, parts.port or 443, timeout=timeout, context=context)
        return http.client.HTTPConnection(host, parts.port or 80, timeout=timeout)

    def request(self, method: str, path: str, body: object = None, timeout: float = 10) -> Answer:
        """Send one request and read the whole answer.

        Args:
            method: `GET`, `PUT`, ...
            path: path and query, such as `/_cluster/health?timeout=1s`
            body: bytes as they stand, anything else as JSON
            timeout: seconds for connecting and for each read

        Raises:
            OSError: no connection, or TLS that does not verify
            http.client.HTTPException: an answer that is not HTTP, or breaks off
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

        Each by its name, because a node does not delete by a pattern unless it is told to; all in one request, because
        each is a change of the cluster's state. Aliases go with their indices, but for those on others. They are listed
        without what they hold, which takes a node several times as long.
        """
        there = self.request("GET", f"/_resolve/index/{prefix}*?expand_wildcards=all").json()
        indices = {entry["name"] for entry in there["indices"]}
        if indices:
            self.request("DELETE", f"/{','.join(sorted(indices))}", timeout=60)
        for alias in there["aliases"]:
            for index in set(alias["indices"]) - indices:
                self.request("DELETE", f"/{index}/_alias/{alias['name']}", timeout=60)

    def _authorization(self) -> dict[str, str]:
        parts = urlsplit(self.url)
        username = self.username or unquote(parts.username or "")
        password = self.password or unquote(parts.password or "")
        if not username:
            return {}
        return {"Authorization": "Basic " + b64encode(f"{username}:{password}".encode()).decode()}
