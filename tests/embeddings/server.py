"""An endpoint of embeddings on loopback that counts requests and fails in every way."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Sequence

import numpy as np

from tests.server.faults import LoopbackServer, Request, Response

DIMENSIONS = 8

FAULTS = ("429", "500", "cut", "slow", "count", "nan", "dimensions", "order", "json")


def vector(text: str) -> list[float]:
    """Return the vector of a text, exact in float32."""
    return [byte - 127.5 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]]


def matrix(texts: Sequence[str]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.array([vector(text) for text in texts], np.float32)


class EmbeddingServer(LoopbackServer):
    """Answers `POST /v1/embeddings`; `faults` are those of the next requests, then a share of `trouble` fails."""

    def __init__(self, faults: Sequence[str] = (), trouble: float = 0.0) -> None:
        super().__init__()
        self.faults = list(faults)
        self.trouble = trouble
        self.answered: Counter[tuple[str, ...]] = Counter()
        """The batches of requests that got a right answer."""
        self.stored: set[str] = set()
        """Texts that must not be requested again."""
        self.repeated: list[str] = []
        """Texts that were requested although they were stored."""
        self.keys: list[str | None] = []
        """The header Authorization of each request."""
        self.redirect: str | None = None
        self._random = random.Random(1)

    def respond(self, request: Request) -> Response | None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = json.loads(request.body)
        texts = body["input"]
        with self._lock:
            self.keys.append(headers.get("authorization"))
            self.repeated += self.stored.intersection(texts)
            fault = self.faults.pop(0) if self.faults else ""
            if not fault and self._random.random() < self.trouble:
                fault = self._random.choice(FAULTS)
        if self.redirect is not None:
            return Response(307, {"Location": self.redirect})
        if fault == "429":
            return Response(429, {"Retry-After": "0"}, b'{"error": "too many requests"}')
        if fault == "400":
            return Response(400, {}, f"bad key {headers.get('authorization')}".encode())
        if fault == "500":
            return Response(500)
        rows: list[object] = [{"index": index, "embedding": vector(text)} for index, text in enumerate(texts)]
        if fault == "count":
            rows.pop()
        if fault == "dimensions":
            rows[-1] = {"index": len(texts) - 1, "embedding": [1.0, 2.0]}
        if fault == "nan":
            rows[-1] = {"index": len(texts) - 1, "embedding": [float("nan")] * DIMENSIONS}
        if fault == "order":
            rows.reverse()
        content = json.dumps({"data": rows, "usage": {"prompt_tokens": len(texts)}}).encode()
        if fault == "json":
            content = content[:-10]
        if fault == "cut":
            return Response(200, body=content[: len(content) // 2], length=len(content))
        if fault == "slow":
            return Response(200, body=content, pause=1.5)
        if fault in ("", "order"):
            with self._lock:
                self.answered[tuple(texts)] += 1
        return Response(200, body=content)
