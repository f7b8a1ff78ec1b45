"""Embed texts by an HTTP endpoint of the OpenAI form, by a command, or by a model in a local folder.

`embed` returns the vectors of texts. It stores each finished batch in the cache before it begins the next one, so that
a killed job loses at most the requests in flight, `concurrency` of them.

    POST {url}/embeddings   {"model": ..., "input": [text, ...], ...}
    200                     {"data": [{"index": 0, "embedding": [number, ...]}, ...], "usage": {"prompt_tokens": ...}}

A command reads one JSON object per line, {"index": 0, "text": ...}, and writes {"index": 0, "embedding": [...]} for
each one, in any order.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from searchapp.config.settings import EMBEDDING_KEY
from searchapp.embeddings.access import ATTEMPTS, Access, Budget, estimated_tokens
from searchapp.embeddings.cache import EmbeddingCache, Floats32
from searchapp.embeddings.command import command_answers
from searchapp.embeddings.endpoint import Endpoint, InvalidAnswerError
from searchapp.embeddings.local_models import local_vectors
from searchapp.embeddings.source import TABLE, EmbeddingSource
from searchapp.lucene.parameters import is_number
from searchapp.progress import Advance, Notify, no_notice, no_progress
from searchapp.text import counted

_PLACE = f"[{TABLE}] in the task file"


def embed(
    texts: Sequence[str],
    source: EmbeddingSource,
    cache: EmbeddingCache,
    access: Access,
    budget: Budget | None = None,
    advance: Advance = no_progress,
    notify: Notify = no_notice,
    attempts: int = ATTEMPTS,
) -> Floats32:
    """Return the vectors of texts, shape (texts, dimensions), and store new ones.

    Args:
        texts: texts that the source embeds unless they are stored
        source: an endpoint, a command or a local model
        cache: the stored vectors of the source
        access: what the user allows
        budget: counts requests and limits their cost
        advance: receives the number of newly stored vectors
        notify: receives a sentence before each further attempt
        attempts: the number of attempts after which a request fails

    Raises:
        UsageError: the user has not allowed the source, its key or command can't be read, or its library is missing.
        OverBudget: the cost would be too great.
        ModelUnavailable: the source fails.
        SearchappError: the cache can't be used.
        DataError: the source rejects a text, or a local model is invalid.
    """
    missing = cache.missing(texts)
    if missing:
        length = source.dimensions or cache.dimensions
        answers: Answers
        if source.library:
            answers = local_vectors(source, missing, length)
        elif source.command:
            answers = _command_answers(source, missing, length, access)
        else:
            answers = _endpoint_answers(source, missing, length, access, budget or Budget(), notify, attempts)
        for batch, vectors in answers:
            cache.store(batch, vectors)
            advance(len(batch))
    return cache.vectors(texts)


Answers = Iterator[tuple[Sequence[str], Floats32]]


def _checked(rows: Sequence[Any], count: int, length: int | None) -> Floats32:
    """Return the vectors of an answer in the order of the texts.

    Args:
        rows: objects with `index` and `embedding`
        count: the number of texts
        length: the number of elements of a vector, if known

    Raises:
        InvalidAnswerError: they are not as expected.
    """
    vectors: dict[int, list[float]] = {}
    for row in rows:
        index, vector = (row.get("index"), row.get("embedding")) if isinstance(row, dict) else (None, None)
        if not isinstance(index, int) or isinstance(index, bool) or not isinstance(vector, list):
            raise InvalidAnswerError("answers with an entry without `index` and `embedding`")
        if not all(map(is_number, vector)):
            raise InvalidAnswerError("answers with a vector that has other values than numbers")
        vectors[index] = vector
    if len(rows) != count or vectors.keys() != set(range(count)):
        raise InvalidAnswerError(f"answers with {counted(len(rows), 'vector')} for {counted(count, 'text')}")
    lengths = {len(vector) for vector in vectors.values()}
    expected = length or len(vectors[0])
    if lengths != {expected} or not expected:
        wrong = next((each for each in lengths if each != expected), 0)
        raise InvalidAnswerError(f"answers with a vector of {wrong:,} dimensions instead of {expected:,}")
    with np.errstate(over="ignore"):
        matrix = np.array([vectors[index] for index in range(count)], np.float64).astype(np.float32)
    if not np.isfinite(matrix).all() or not matrix.any(axis=1).all():
        raise InvalidAnswerError("answers with a vector that is zero or not finite")
    return matrix


def _endpoint_answers(
    source: EmbeddingSource,
    texts: Sequence[str],
    length: int | None,
    access: Access,
    budget: Budget,
    notify: Notify,
    attempts: int,
) -> Answers:
    assert source.url is not None
    endpoint = Endpoint(
        f"{source.url.rstrip('/')}/embeddings",
        place=_PLACE,
        key=EMBEDDING_KEY,
        timeout=source.timeout,
        price=source.cost,
        access=access,
        budget=budget,
        notify=notify,
        attempts=attempts,
    )
    first = threading.Lock()
    lengths = [] if length is None else [length]

    def vectors(batch: Sequence[str]) -> Floats32:
        # The first answer decides on the number of dimensions.
        with nullcontext() if lengths else first:
            body = {**source.parameters, "model": source.model, "input": list(batch)}
            matrix = endpoint.ask(body, estimated_tokens(batch), lambda answer: read(answer, len(batch)))
            lengths[:] = [matrix.shape[1]]
        return matrix

    def read(answer: Any, count: int) -> Floats32:
        rows = answer.get("data") if isinstance(answer, dict) else None
        return _checked(rows if isinstance(rows, list) else [], count, next(iter(lengths), None))

    starts = range(0, len(texts), source.batch_size)
    batches = (texts[start : start + source.batch_size] for start in starts)
    return endpoint.answers(batches, vectors, source.concurrency)


def _command_answers(
    source: EmbeddingSource, texts: Sequence[str], length: int | None, access: Access
) -> Answers:
    access.require_command(source.command[0])

    def read(row: dict[str, Any]) -> Floats32:
        nonlocal length
        matrix = _checked([{**row, "index": 0}], 1, length)
        length = matrix.shape[1]
        return matrix

    questions = [{"text": text} for text in texts]
    for batch in command_answers(source.command, source.folder, _PLACE, questions, read, source.batch_size):
        yield [texts[index] for index, _ in batch], np.concatenate([vector for _, vector in batch])
