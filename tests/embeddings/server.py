"""Endpoints of models on loopback that count requests and fail in every way."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from tests.programs import Program
from tests.server.faults import LoopbackServer, Request, Response

DIMENSIONS = 8

FAULTS = ("429", "500", "cut", "slow", "count", "nan", "dimensions", "order", "json")


def vector(text: str) -> list[float]:
    """Return the vector of a text, exact in float32."""
    return [byte - 127.5 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]]


def matrix(texts: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.array([vector(text) for text in texts], np.float32)


def rejection(fault: str, redirect: str | None, key: str | None) -> Response | None:
    """Return the answer of a server that does not ask its model, because of a fault or a redirect."""
    if redirect is not None:
        return Response(307, {"Location": redirect})
    if fault == "429":
        return Response(429, {"Retry-After": "0"}, b'{"error": "too many requests"}')
    if fault == "400":
        return Response(400, {}, f"bad key {key}".encode())
    return Response(500) if fault == "500" else None


def sent(content: bytes, fault: str) -> Response:
    """Return an answer with JSON, which some faults damage or delay."""
    if fault == "json":
        content = content[:-10]
    if fault == "cut":
        return Response(200, body=content[: len(content) // 2], length=len(content))
    return Response(200, body=content, pause=1.5 if fault == "slow" else 0)


def kill_during_requests(job: Program, server: LoopbackServer, more: int, seconds: float = 30) -> None:
    """Kill a program once a server has received some more requests, or after a time."""
    seen, until = len(server.requests), time.monotonic() + seconds
    while len(server.requests) < seen + more and time.monotonic() < until:
        time.sleep(0.002)
    job.send_signal(signal.SIGKILL)
    job.wait()


class ModelServer(LoopbackServer):
    """Answers with a row for each item of a request, such as a text.

    `faults` are those of the next requests, then a share of `trouble` fails.
    """

    def __init__(self, faults: Sequence[str] = (), trouble: float = 0.0) -> None:
        super().__init__()
        self.faults = list(faults)
        self.trouble = trouble
        self.answered: Counter[tuple[Any, ...]] = Counter()
        """The items of requests that got a right answer."""
        self.stored: set[Hashable] = set()
        """Items that must not be requested again."""
        self.repeated: list[Hashable] = []
        """Items that were requested although they were stored."""
        self.keys: list[str | None] = []
        """The header Authorization of each request."""
        self.redirect: str | None = None
        self._random = random.Random(1)

    @abstractmethod
    def items(self, body: Any) -> list[Any]:
        """Return the items of a request."""

    @abstractmethod
    def row(self, index: int, item: Any, fault: str = "") -> dict[str, Any]:
        """Return the row of an item, with the fault `nan` or `dimensions`."""

    @abstractmethod
    def answer(self, body: Any, rows: list[dict[str, Any]]) -> object:
        """Return the JSON of an answer."""

    def respond(self, request: Request) -> Response | None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = json.loads(request.body)
        items = self.items(body)
        with self._lock:
            self.keys.append(headers.get("authorization"))
            self.repeated += self.stored.intersection(items)
            fault = self.faults.pop(0) if self.faults else ""
            if not fault and self._random.random() < self.trouble:
                fault = self._random.choice(FAULTS)
        if rejected := rejection(fault, self.redirect, headers.get("authorization")):
            return rejected
        rows = [self.row(index, item) for index, item in enumerate(items)]
        if fault == "count":
            rows.pop()
        if fault in ("dimensions", "nan"):
            rows[-1] = self.row(len(items) - 1, items[-1], fault)
        if fault == "order":
            rows.reverse()
        content = json.dumps(self.answer(body, rows)).encode()
        if fault in ("", "order"):
            with self._lock:
                self.answered[tuple(items)] += 1
        return sent(content, fault)


class EmbeddingServer(ModelServer):
    """Answers `POST /v1/embeddings`."""

    def items(self, body: Any) -> list[Any]:
        return list(body["input"])

    def row(self, index: int, item: Any, fault: str = "") -> dict[str, Any]:
        wrong = {"nan": [float("nan")] * DIMENSIONS, "dimensions": [1.0, 2.0]}
        return {"index": index, "embedding": wrong.get(fault) or vector(item)}

    def answer(self, body: Any, rows: list[dict[str, Any]]) -> object:
        return {"data": rows, "usage": {"prompt_tokens": len(body["input"])}}


def score(query: str, text: str) -> float:
    """Return the score of a document for a query, from -10 to 10, in float64."""
    return int.from_bytes(hashlib.sha256(f"{query}\n{text}".encode()).digest()[:6]) / 2**48 * 20 - 10


class RerankServer(ModelServer):
    """Answers `POST /v1/rerank` in the form of Cohere, and `POST /rerank` in that of TEI, to pairs of texts."""

    def items(self, body: Any) -> list[Any]:
        return [(body["query"], text) for text in body.get("documents") or body["texts"]]

    def row(self, index: int, item: Any, fault: str = "") -> dict[str, Any]:
        value = float("nan") if fault == "nan" else score(*item)
        return {"index": -1 if fault == "dimensions" else index, "relevance_score": value, "score": value}

    def answer(self, body: Any, rows: list[dict[str, Any]]) -> object:
        if "texts" in body:
            return [{"index": row["index"], "score": row["score"]} for row in rows]
        best = sorted(rows, key=lambda row: -row["relevance_score"])
        return {"results": best[: body["top_n"]], "usage": {"total_tokens": len(rows)}}
