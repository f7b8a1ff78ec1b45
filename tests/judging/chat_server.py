"""A model that judges on loopback: it counts requests and fails in every way."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Sequence

from tests.embeddings.server import rejection, sent
from tests.server.faults import LoopbackServer, Request, Response

# Requests that fail, after which the same question is asked again.
FAULTS = ("429", "500", "cut", "slow", "json", "form")

# Answers without a judgment.
ODD = ("words", "range", "refusal", "filter", "400 filter", "length", "empty")


def grade_of(prompt: str) -> int | None:
    """Return the grade of a prompt, 0 or 1, or None for an abstention."""
    return (0, 1, 1, None)[hashlib.sha256(prompt.encode()).digest()[0] % 4]


class ChatServer(LoopbackServer):
    """Answers `POST /v1/chat/completions`.

    Args:
        faults: those of the next requests
        trouble: the share of the later requests that fail
        odd: the share of prompts whose answer has no judgment
    """

    def __init__(self, faults: Sequence[str] = (), trouble: float = 0.0, odd: float = 0.0) -> None:
        super().__init__()
        self.faults = list(faults)
        self.trouble = trouble
        self.odd = odd
        self.bodies: list[dict[str, object]] = []
        self.answered: Counter[str] = Counter()
        """The prompts that got an answer which is not asked for again."""
        self.stored: set[str] = set()
        """Prompts that must not be asked again."""
        self.repeated: list[str] = []
        self.keys: list[str | None] = []
        self.redirect: str | None = None
        self._random = random.Random(1)

    def respond(self, request: Request) -> Response | None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = json.loads(request.body)
        prompt = body["messages"][0]["content"]
        with self._lock:
            self.bodies.append(body)
            self.keys.append(headers.get("authorization"))
            if prompt in self.stored:
                self.repeated.append(prompt)
            fault = self.faults.pop(0) if self.faults else ""
            if not fault and self._random.random() < self.trouble:
                fault = self._random.choice(FAULTS)
            of_prompt = random.Random(prompt)
            if not fault and of_prompt.random() < self.odd:
                fault = of_prompt.choice(ODD)
        if rejected := rejection(fault, self.redirect, headers.get("authorization")):
            return rejected
        if fault not in FAULTS:
            with self._lock:
                self.answered[prompt] += 1
        if fault == "400 filter":
            return Response(400, {}, b'{"error": {"message": "no", "code": "content_filter"}}')
        text: str | None = json.dumps({"grade": grade_of(prompt), "reason": "because of \u2028 it"})
        if fault == "words":
            text = "I would say that this is relevant."
        if fault == "range":
            text = '{"grade": 7, "reason": "very good"}'
        if fault == "thoughts":
            text = f'<think>{{"grade": 0}} or not?</think>\n```json\n{{"grade": "{grade_of(prompt) or 0}.0"}}\n```'
        if fault == "half":
            text = '{"grade": 1, "reason": "half of \\ud83d and of \ud83d"}'
        if fault == "empty":
            text = None
        message = {
            "role": "assistant",
            "content": text,
            "refusal": "I can't." if fault == "refusal" else None,
        }
        reason = {"filter": "content_filter", "length": "length"}.get(fault, "stop")
        choices = [{"index": 0, "message": message, "finish_reason": reason}]
        answer: object = {
            "model": f"{body['model']}-0125",
            "choices": [] if fault == "form" else choices,
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        }
        content = json.dumps(answer).encode()
        return sent(content, fault)
