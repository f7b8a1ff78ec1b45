"""The answers of bodies that were searched, for who asks the same many times: the tuning of a recipe."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from searchapp.engines.base import Body
from searchapp.engines.embedded.similarity import Float32s
from searchapp.engines.embedded.storage.reader import Numbers

Answer = tuple[Numbers, Float32s]
"""The best documents of a query and their scores."""

NOTHING: Answer = np.empty(0, np.int32), np.empty(0, np.float32)
"""The answer to what no document matches."""

Packed = tuple[Numbers, Float32s, list[int]]
"""Answers one after the other, and how many documents each has: a process sends few objects to another."""


def packed(answers: Sequence[Answer]) -> Packed:
    """Answers, to be sent from process to process."""
    if not answers:
        return *NOTHING, []
    documents, scores = zip(*answers, strict=True)
    return np.concatenate(documents), np.concatenate(scores), list(map(len, documents))


def unpacked(sent: Packed) -> list[Answer]:
    """The answers that were sent."""
    documents, scores, sizes = sent
    ends = list(accumulate(sizes))
    return [
        (documents[end - size : end], scores[end - size : end]) for end, size in zip(ends, sizes, strict=True)
    ]


class Memory:
    """The answers of bodies, eight bytes a hit; once they take `size` bytes no more are kept."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._answers: dict[bytes, Answer] = {}

    def keys(self, bodies: Sequence[Body]) -> list[bytes]:
        """What the answers of bodies are known by."""
        return [
            hashlib.blake2b(json.dumps(body, sort_keys=True).encode(), digest_size=16).digest()
            for body in bodies
        ]

    def get(self, key: bytes) -> Answer | None:
        """An answer, if it is known."""
        return self._answers.get(key)

    def put(self, key: bytes, answer: Answer) -> None:
        """Keep an answer, if there is room."""
        size = sum(part.nbytes for part in answer) + len(key)
        if size <= self._left and key not in self._answers:
            self._left -= size
            documents, scores = answer
            self._answers[key] = documents.copy(), scores.copy()  # not the whole batch that it is part of
