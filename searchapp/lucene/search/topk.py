"""Select the top k: score descending, id ascending. `Memory` keeps answers for callers that search the same often."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from searchapp.lucene.errors import BEYOND_FLOAT32, Refused
from searchapp.lucene.index.reader import Numbers
from searchapp.lucene.queries.scores import Scores
from searchapp.lucene.records import Body
from searchapp.lucene.similarity import Float32s


@contextmanager
def finite_scores() -> Iterator[None]:
    """Refuse a query whose scores leave the range of a float32: infinite ones order nothing.

    Raises:
        Refused: in the place of what NumPy then raises.
    """
    try:
        with np.errstate(over="raise", invalid="raise"):
            yield
    except FloatingPointError as error:
        raise Refused(BEYOND_FLOAT32) from error


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


NOT_MATCHING = np.float32(-1)  # no query gives a negative score

SAMPLED = 16
"""Every SAMPLED-th document is looked at to estimate a score."""

_LARGEST_BITS = np.int64(0x7FFFFFFF)


def best(scores: Scores, ranks: Numbers, size: int) -> NDArray[np.intp]:
    """The first `size` documents that match, best first; `ranks` orders the documents by id.

    The bits of a float32 that is not negative order as the float does, so score and rank of id make one
    integer, by which everything is selected and sorted.
    """
    if size == 0:
        return np.empty(0, np.intp)
    candidates = promising(scores.values, size)
    if candidates is None:
        candidates = _sufficient(scores, size)
    keys = (_LARGEST_BITS - scores.values[candidates].view(np.int32).astype(np.int64)) << 32 | ranks[
        candidates
    ]
    if len(keys) <= size:
        return candidates[keys.argsort()]
    chosen = np.argpartition(keys, size)[:size]
    return candidates[chosen[keys[chosen].argsort()]]


def behind(scores: Scores, ranks: Numbers, score: float, place: int) -> Scores:
    """The scores of what comes after a score and, of documents with the same score, of ids from a place on."""
    bound = np.float32(score)
    rest = scores.mask() & ((scores.values < bound) | ((scores.values == bound) & (ranks >= place)))
    return Scores(np.where(rest, scores.values, np.float32(0)), rest)


def promising(values: Float32s, size: int) -> NDArray[np.intp] | None:
    """A few more documents than the best `size`, all of them matching; None when a sample does not tell them.

    The score that about one and a half times `size` documents reach is estimated from every sixteenth document.
    Whether enough documents reach the score is counted, so that the estimate decides on the time only.
    """
    sample = values[::SAMPLED]
    expected = size / SAMPLED
    place = int(expected + 3 * math.sqrt(expected)) + 1
    if 2 * place > len(sample):
        return None
    bound = np.partition(sample, len(sample) - place)[len(sample) - place]
    if not bound > 0:
        return None
    candidates = np.flatnonzero(values >= bound)
    return candidates if len(candidates) >= size else None


def _sufficient(scores: Scores, size: int) -> NDArray[np.intp]:
    """The matching documents with no less than the score of the last one of the best `size`."""
    values = np.where(scores.mask(), scores.values, NOT_MATCHING)
    bound = np.float32(0)
    if size < len(values):
        bound = max(np.partition(values, len(values) - size)[len(values) - size], bound)
    return np.flatnonzero(values >= bound)
