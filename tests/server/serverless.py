"""A stand-in for a serverless project: a real server behind a proxy that refuses what a project refuses.

What that is, and in which words, is taken from the open source of Elasticsearch: the scope of each REST action, which
settings of indexes are public, `ApiNotAvailableException`, and the validator of settings.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .faults import FaultProxy, Request, Response

INTERNAL = re.compile(
    r"^/(_cluster|_nodes|_tasks|_snapshot|_ilm|_slm|_ccr|_remote|_dangling)(/|$)"
    r"|/_(stats|flush|segments|recovery|shard_stores|forcemerge|open|close|shrink|split|clone|cache|mount)(/|$)"
    r"|^/_cat/(shards|nodes|allocation|health|master|segments|recovery|thread_pool|plugins|pending_tasks)(/|$)"
)
"""Paths that only those who run the projects may ask."""

PUBLIC_SETTINGS = re.compile(
    r"index\.(analysis|similarity|sort|blocks\.(write|read|read_only|metadata)|mapping|query\.default_field|hidden"
    r"|default_pipeline|final_pipeline|refresh_interval)(\.|$)"
)
"""Settings of indexes that users may choose."""


class Serverless(FaultProxy):
    """A proxy in front of a real server that makes a serverless project of it; `refused` has what it refused."""

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
        answer = super().respond(_without_replicas(request))
        if request.path == "/" and answer is not None and answer.status == 200:
            about = json.loads(answer.body)
            about |= {"name": "serverless"}
            about["version"] |= {"number": "8.11.0", "build_flavor": "serverless", "build_hash": "00000000"}
            return Response.of_json(200, about)
        return answer


def _without_replicas(request: Request) -> Request:
    """A request as the project hands it on: it chooses replicas, and one node has no place for any."""
    if not _makes_index(request) or not request.body:
        return request
    body = json.loads(request.body)
    body["settings"] = {**body.get("settings", {}), "number_of_replicas": 0}
    return dataclasses.replace(request, body=json.dumps(body).encode())


def _makes_index(request: Request) -> bool:
    return request.method == "PUT" and re.fullmatch(r"/[^_/][^/]*", request.path) is not None


def _settings_of(request: Request) -> Iterator[str]:
    """The names of the index settings that a request would set, in full."""
    changes = request.method == "PUT" and request.path.endswith("/_settings")
    if not request.body or not (_makes_index(request) or changes):
        return
    body = json.loads(request.body)
    for name in _flat(body if changes else body.get("settings", {})):
        name = name.removeprefix("settings.")
        yield name if name.startswith("index.") else f"index.{name}"


def _flat(held: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for name, value in held.items():
        path = f"{above}.{name}" if above else name
        if isinstance(value, Mapping):
            yield from _flat(value, path)
        else:
            yield path
