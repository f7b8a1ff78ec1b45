"""Embed texts by an HTTP endpoint of the OpenAI form, or by a command.

`embed` returns the vectors of texts. It stores each finished batch in the cache before it begins the next one, so that
a killed job loses at most the requests in flight, `concurrency` of them.

    POST {url}/embeddings   {"model": ..., "input": [text, ...], ...}
    200                     {"data": [{"index": 0, "embedding": [number, ...]}, ...], "usage": {"prompt_tokens": ...}}

A command reads one JSON object per line, {"index": 0, "text": ...}, and writes {"index": 0, "embedding": [...]} for
each one, in any order.

Texts leave this machine only for hosts that the settings name, and the key is not sent to the host of a redirect.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
import numpy as np
import tenacity

from searchapp.config.credentials import is_this_machine, read_secret, without_secrets
from searchapp.config.settings import SecretSource, Settings
from searchapp.embeddings.cache import EmbeddingCache, Floats32
from searchapp.embeddings.source import EmbeddingSource
from searchapp.errors import DataError, SearchappError, UsageError
from searchapp.fetching.download import (
    LONGEST_REQUESTED_WAIT_SECONDS,
    MOST_REDIRECTS,
    PASSING_STATUS,
    http_client,
    retry_after,
)
from searchapp.files import parse_json
from searchapp.formats.problems import shown
from searchapp.lucene.parameters import is_number
from searchapp.progress import Advance, Notify, no_notice, no_progress
from searchapp.text import counted

# A batch fails after this number of attempts.
ATTEMPTS = 8

_DOUBLING = tenacity.wait_exponential(multiplier=0.25, max=30.0)  # seconds

LARGEST_ANSWER = 1 << 28  # bytes

# Models cut English text into tokens of about four bytes, and formulas into shorter ones.
BYTES_PER_TOKEN = 3


@dataclass(frozen=True, slots=True)
class Access:
    """What the user allows: hosts beside this machine, the key, requests without TLS, and commands of task files."""

    hosts: frozenset[str] = frozenset()
    key: str | SecretSource | None = None
    insecure: bool = False
    commands: bool = False

    @classmethod
    def of(cls, settings: Settings, *, commands: bool = False) -> Access:
        hosts = (host.strip().lower() for host in (settings.embedding_hosts or "").split(","))
        return cls(frozenset(filter(None, hosts)), settings.embedding_key, settings.insecure, commands)

    def require(self, source: EmbeddingSource) -> None:
        """Check that texts may be sent to a source.

        Raises:
            UsageError: they must not.
        """
        if source.command and not self.commands:
            raise UsageError(
                f"the task file embeds texts by a command ({shown(source.command[0])}): read it, and allow it "
                "with --run-command"
            )
        if source.url is not None:
            self.require_url(source.url)

    def require_url(self, url: str) -> None:
        """Check that texts may be sent to an address.

        Raises:
            UsageError: they must not.
        """
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
        if is_this_machine(host):
            return
        if host not in self.hosts:
            raise UsageError(
                f"texts are not sent to {shown(host)} unless you allow it: add the host to the setting "
                "embedding_hosts, or to SEARCHAPP_EMBEDDING_HOSTS"
            )
        if parts.scheme != "https" and not self.insecure:
            raise UsageError(
                f"{host} has no TLS, so others on the network could read the key and the texts: use https, or "
                "allow it with --insecure"
            )


class OverBudget(SearchappError):
    """The next request could exceed the greatest cost."""


class Budget:
    """The requests and tokens of a job, and their cost at a price for a million tokens.

    A request of unknown outcome counts with the estimate of its tokens. Threads share a budget.
    """

    def __init__(self, price: float = 0.0, max_cost: float | None = None) -> None:
        self.requests = 0
        self.tokens = 0
        self._price = price
        self._max_cost = max_cost
        self._reserved = 0
        self._lock = threading.Lock()

    @property
    def cost(self) -> float:
        return self.cost_of(self.tokens)

    def cost_of(self, tokens: int) -> float:
        return tokens * self._price / 1e6

    def reserve(self, tokens: int) -> None:
        """Count a request and the estimate of its tokens.

        Raises:
            OverBudget: it could exceed the greatest cost.
        """
        with self._lock:
            if (
                self._max_cost is not None
                and self.cost_of(self.tokens + self._reserved + tokens) > self._max_cost
            ):
                raise OverBudget(
                    f"stopped at a cost of {self.cost:.4g}, because the next request could exceed --max-cost: "
                    "finished batches are stored, and the same command with a greater one resumes"
                )
            self._reserved += tokens
            self.requests += 1

    def settle(self, reserved: int, used: int) -> None:
        """Replace the estimate of a request by its tokens."""
        with self._lock:
            self._reserved -= reserved
            self.tokens += used


def estimated_tokens(texts: Sequence[str]) -> int:
    """Return an estimate of the number of tokens of texts."""
    return sum(-(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN) for text in texts)


def embed(
    texts: Sequence[str],
    source: EmbeddingSource,
    cache: EmbeddingCache,
    access: Access,
    budget: Budget | None = None,
    advance: Advance = no_progress,
    notify: Notify = no_notice,
) -> Floats32:
    """Return the vectors of texts, shape (texts, dimensions), and store new ones.

    Args:
        texts: texts that the source embeds unless they are stored
        source: an endpoint or a command
        cache: the stored vectors of the source
        access: what the user allows
        budget: counts requests and limits their cost
        advance: receives the number of newly stored vectors
        notify: receives a sentence before each further attempt

    Raises:
        UsageError: the user has not allowed the source, or its key or command can't be read.
        OverBudget: the cost would be too great.
        SearchappError: the source fails.
        DataError: the source rejects a text.
    """
    missing = cache.missing(texts)
    if missing:
        access.require(source)
        length = source.dimensions or cache.dimensions
        answers = (
            _command_answers(source, missing, length)
            if source.command
            else _endpoint_answers(source, missing, length, access, budget or Budget(), notify)
        )
        for batch, vectors in answers:
            cache.store(batch, vectors)
            advance(len(batch))
    return cache.vectors(texts)


Answers = Iterator[tuple[Sequence[str], Floats32]]


class _InvalidVectorsError(Exception):
    """An answer is not one valid vector for each text; the message completes "URL ..."."""


def _checked(rows: Sequence[Any], count: int, length: int | None) -> Floats32:
    """Return the vectors of an answer in the order of the texts.

    Args:
        rows: objects with `index` and `embedding`
        count: the number of texts
        length: the number of elements of a vector, if known

    Raises:
        _InvalidVectorsError: they are not as expected.
    """
    vectors: dict[int, list[float]] = {}
    for row in rows:
        index, vector = (row.get("index"), row.get("embedding")) if isinstance(row, dict) else (None, None)
        if not isinstance(index, int) or isinstance(index, bool) or not isinstance(vector, list):
            raise _InvalidVectorsError("answers with an entry without `index` and `embedding`")
        if not all(map(is_number, vector)):
            raise _InvalidVectorsError("answers with a vector that has other values than numbers")
        vectors[index] = vector
    if len(rows) != count or vectors.keys() != set(range(count)):
        raise _InvalidVectorsError(
            f"answers with {counted(len(rows), 'vector')} for {counted(count, 'text')}"
        )
    lengths = {len(vector) for vector in vectors.values()}
    expected = length or len(vectors[0])
    if lengths != {expected} or not expected:
        wrong = next((each for each in lengths if each != expected), 0)
        raise _InvalidVectorsError(f"answers with a vector of {wrong:,} dimensions instead of {expected:,}")
    with np.errstate(over="ignore"):
        matrix = np.array([vectors[index] for index in range(count)], np.float64).astype(np.float32)
    if not np.isfinite(matrix).all() or not matrix.any(axis=1).all():
        raise _InvalidVectorsError("answers with a vector that is zero or not finite")
    return matrix


def _batches(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (texts[first : first + size] for first in range(0, len(texts), size))


def _endpoint_answers(
    source: EmbeddingSource,
    texts: Sequence[str],
    length: int | None,
    access: Access,
    budget: Budget,
    notify: Notify,
) -> Answers:
    endpoint = _Endpoint(source, length, access, budget, notify)
    todo: queue.SimpleQueue[Sequence[str]] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Sequence[str], Floats32 | BaseException]] = queue.SimpleQueue()

    def work() -> None:
        while batch := todo.get():
            try:
                done.put((batch, endpoint.vectors(batch)))
            except BaseException as error:  # raised in the thread of the caller
                done.put((batch, error))

    waiting = _batches(texts, source.batch_size)
    running = 0
    failure: BaseException | None = None
    # Daemons, because an interrupted command must not wait for answers.
    threads = [threading.Thread(target=work, daemon=True) for _ in range(source.concurrency)]
    for thread in threads:
        thread.start()
    try:
        while True:
            # A batch begins only after a finished one is stored.
            while failure is None and running < source.concurrency and (batch := next(waiting, None)):
                todo.put(batch)
                running += 1
            if not running:
                break
            batch, answer = done.get()
            running -= 1
            if isinstance(answer, BaseException):
                failure = failure or answer
                endpoint.stop()
            else:
                yield batch, answer
        if failure is not None:
            raise failure
    finally:
        endpoint.stop()
        for _ in threads:
            todo.put(())
        if not running:
            endpoint.close()


class _FailedAttemptError(Exception):
    """A failure that a later attempt may not have; the message completes "URL ..."."""

    def __init__(self, message: str, *, wait: float | None = None, tokens: int | None = 0) -> None:
        super().__init__(message)
        self.wait = wait
        self.tokens = tokens  # None if it is unknown whether the endpoint embedded the texts


def _may_pass(error: BaseException) -> bool:
    """Return whether to try again: not if the endpoint asks to wait very long."""
    return isinstance(error, _FailedAttemptError) and (error.wait or 0) <= LONGEST_REQUESTED_WAIT_SECONDS


def _error_of(state: tenacity.RetryCallState) -> _FailedAttemptError:
    error = state.outcome and state.outcome.exception()
    assert isinstance(error, _FailedAttemptError)
    return error


def _seconds_to_wait(state: tenacity.RetryCallState) -> float:
    """Return what the endpoint asks for, or twice as long after each attempt."""
    wait = _error_of(state).wait
    return _DOUBLING(state) if wait is None else wait


class _Endpoint:
    """Sends batches to an endpoint, from several threads."""

    def __init__(
        self,
        source: EmbeddingSource,
        length: int | None,
        access: Access,
        budget: Budget,
        notify: Notify,
    ) -> None:
        assert source.url is not None
        self._source = source
        self._url = f"{source.url.rstrip('/')}/embeddings"
        self._length = length
        self._access = access
        self._budget = budget
        self._notify = notify
        self._stopped = threading.Event()
        self._first = threading.Lock()
        self._not_before = 0.0  # a rate limit holds for all threads
        self._key = None if access.key is None else read_secret(access.key)
        if self._key is not None and not (self._key.isascii() and self._key.isprintable()):
            raise UsageError("the embedding_key contains a character that no key has: set it again")
        is_local = is_this_machine(urlsplit(source.url).hostname or "")
        # A proxy of the environment does not reach this machine.
        self._client = http_client(source.timeout, trust_env=not is_local)

    def stop(self) -> None:
        """End waiting for further attempts."""
        self._stopped.set()

    def close(self) -> None:
        self._client.close()

    def vectors(self, texts: Sequence[str]) -> Floats32:
        """Return the vectors of a batch, after several attempts if necessary."""
        # The first answer decides on the number of dimensions.
        with self._first if self._length is None else nullcontext():
            vectors = self._attempts(texts)
            self._length = vectors.shape[1]
        return vectors

    def _attempts(self, texts: Sequence[str]) -> Floats32:
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_may_pass),
            stop=tenacity.stop_after_attempt(ATTEMPTS),
            wait=_seconds_to_wait,
            sleep=self._wait,
            before_sleep=self._announce,
            reraise=True,
        )
        try:
            return retrying(self._attempt, texts)
        except _FailedAttemptError as error:
            if _may_pass(error):
                raise self._failure(f"{error}, at the {ATTEMPTS}th attempt") from error
            raise self._failure(f"{error}, and asks to wait {error.wait:,.0f} s") from error

    def _announce(self, state: tenacity.RetryCallState) -> None:
        error = _error_of(state)
        if error.wait:
            self._not_before = max(self._not_before, time.monotonic() + error.wait)
        self._notify(f"{self._url} {error}: trying again in {_seconds_to_wait(state):.3g} s")

    def _wait(self, seconds: float) -> None:
        if self._stopped.wait(max(0.0, seconds)):
            raise self._failure("was stopped")

    def _failure(self, what: str) -> SearchappError:
        return SearchappError(
            f"{self._url} {what}: finished batches are stored, and the same command resumes"
        )

    def _attempt(self, texts: Sequence[str]) -> Floats32:
        self._wait(self._not_before - time.monotonic())
        estimate = estimated_tokens(texts)
        self._budget.reserve(estimate)
        tokens: int | None = 0
        try:
            body = {**self._source.parameters, "model": self._source.model, "input": list(texts)}
            answer = self._post(json.dumps(body).encode())
            usage = answer.get("usage")
            used = usage.get("prompt_tokens", usage.get("total_tokens")) if isinstance(usage, dict) else None
            tokens = used if isinstance(used, int) and used >= 0 else None
            rows = answer.get("data")
            try:
                return _checked(rows if isinstance(rows, list) else [], len(texts), self._length)
            except _InvalidVectorsError as error:
                raise _FailedAttemptError(str(error), tokens=tokens) from error
        except _FailedAttemptError as error:
            tokens = error.tokens
            raise
        finally:
            self._budget.settle(estimate, estimate if tokens is None else tokens)

    def _post(self, body: bytes) -> dict[str, Any]:
        """Return the JSON of the answer to a request, which may be redirected."""
        url, origin = self._url, _origin(self._url)
        for _ in range(MOST_REDIRECTS + 1):
            headers = {"Content-Type": "application/json"}
            if self._key is not None and _origin(url) == origin:
                headers["Authorization"] = f"Bearer {self._key}"
            try:
                with self._client.stream("POST", url, content=body, headers=headers) as response:
                    content = b""
                    for piece in response.iter_bytes():
                        content += piece
                        if len(content) > LARGEST_ANSWER:
                            raise self._failure(f"answers with more than {LARGEST_ANSWER:,} bytes")
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                raise _FailedAttemptError(f"can't be reached ({error})") from error
            except httpx.TimeoutException as error:
                raise _FailedAttemptError(
                    f"has sent nothing for {self._source.timeout} s", tokens=None
                ) from error
            except httpx.HTTPError as error:
                raise _FailedAttemptError(f"was interrupted ({error})", tokens=None) from error
            if not response.is_redirect:
                return self._read(response.status_code, response.headers.get("Retry-After"), content)
            url = urljoin(url, response.headers["Location"])
            if urlsplit(url).scheme not in ("http", "https"):
                raise self._failure("redirects to an address that is neither http nor https")
            self._access.require_url(url)
        raise self._failure(f"redirects more than {MOST_REDIRECTS} times")

    def _read(self, status: int, wait: str | None, content: bytes) -> dict[str, Any]:
        if status != 200:
            said = content[:2000].decode("utf-8", "replace")
            if self._key:
                said = said.replace(self._key, "…")
            what = f"answers {status}" + (f" ({shown(said)})" if said.strip() else "")
            if status in PASSING_STATUS:
                raise _FailedAttemptError(
                    what, wait=retry_after(wait), tokens=0 if status in (425, 429, 503) else None
                )
            if status in (401, 403):
                raise UsageError(f"{self._url} {what}: set SEARCHAPP_EMBEDDING_KEY to a valid key")
            raise DataError(f"{self._url} {what}: correct [embeddings] in the task file, or the texts")
        try:
            answer = parse_json(content.decode())
        except ValueError as error:
            raise _FailedAttemptError("answers with invalid JSON", tokens=None) from error
        if not isinstance(answer, dict):
            raise _FailedAttemptError("answers with JSON that is not an object", tokens=None)
        return answer


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _command_answers(source: EmbeddingSource, texts: Sequence[str], length: int | None) -> Answers:
    name = f"the command {shown(source.command[0])}"
    try:
        process = subprocess.Popen(
            source.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=source.folder,
            env=without_secrets(os.environ),
        )
    except (OSError, ValueError) as error:
        raise UsageError(f"{name} can't be run ({error}): correct [embeddings] in the task file") from error
    assert process.stdin is not None
    assert process.stdout is not None
    feeder = threading.Thread(target=_feed, args=(process.stdin, texts), daemon=True)
    answered: set[int] = set()
    try:
        feeder.start()
        indexes: list[int] = []
        rows: list[Any] = []
        for number, line in enumerate(process.stdout, 1):
            try:
                row = parse_json(line.decode())
                index = row["index"]
                if index not in range(len(texts)) or index in answered:
                    raise ValueError(index)
                (vector,) = _checked([{**row, "index": 0}], 1, length)
            except (ValueError, TypeError, KeyError, _InvalidVectorsError) as error:
                what = str(error) if isinstance(error, _InvalidVectorsError) else "writes no valid answer"
                raise DataError(f"{name} {what} (line {number} of its output)") from error
            length = len(vector)
            answered.add(index)
            indexes.append(index)
            rows.append(vector)
            if len(rows) == source.batch_size:
                yield [texts[index] for index in indexes], np.array(rows)
                indexes, rows = [], []
        if rows:
            yield [texts[index] for index in indexes], np.array(rows)
        code = process.wait()
    finally:
        process.kill()
        process.wait()
        feeder.join()
        process.stdout.close()
    if code or len(answered) < len(texts):
        raise SearchappError(
            f"{name} ended with exit code {code} and {counted(len(answered), 'vector')} for "
            f"{counted(len(texts), 'text')}: those vectors are stored, and the same command resumes"
        )


def _feed(pipe: Any, texts: Sequence[str]) -> None:
    try:
        with pipe:
            for index, text in enumerate(texts):
                pipe.write(json.dumps({"index": index, "text": text}).encode() + b"\n")
    except (OSError, ValueError):
        pass  # the command has ended, and its exit code tells why
