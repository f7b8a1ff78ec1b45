"""Requests to HTTP endpoints of models: attempts, redirects, and simultaneous requests.

The key is not sent to the host of a redirect.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx
import tenacity

from searchapp.config.credentials import is_this_machine, read_secret
from searchapp.embeddings.access import ATTEMPTS, Access, Budget
from searchapp.embeddings.source import Price
from searchapp.errors import DataError, ModelUnavailable, UsageError
from searchapp.fetching.download import (
    LONGEST_REQUESTED_WAIT_SECONDS,
    MOST_REDIRECTS,
    PASSING_STATUS,
    http_client,
    retry_after,
)
from searchapp.files import parse_json, without_halves
from searchapp.formats.problems import shown
from searchapp.progress import Notify
from searchapp.text import counted

_DOUBLING = tenacity.wait_exponential(multiplier=0.25, max=30.0)  # seconds

LARGEST_ANSWER = 1 << 28  # bytes


class InvalidAnswerError(Exception):
    """An answer of a model is not what was asked for; the message completes "URL ..."."""


class RejectedRequestError(DataError):
    """An endpoint rejects the content of a request; `answer` is the beginning of what it answers."""

    def __init__(self, message: str, answer: str = "") -> None:
        super().__init__(message)
        self.answer = answer


Tokens = tuple[int, int]  # that a model has read and written


class _FailedAttemptError(Exception):
    """A failure that a later attempt may not have; the message completes "URL ..."."""

    def __init__(self, message: str, *, wait: float | None = None, tokens: Tokens | None = (0, 0)) -> None:
        super().__init__(message)
        self.wait = wait
        self.tokens = tokens  # None if it is unknown whether the endpoint has read the texts


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


Batch = TypeVar("Batch")
Answer = TypeVar("Answer")


class Endpoint:
    """Sends texts to an endpoint, from several threads.

    Args:
        url: the address of the requests
        place: where the user describes the endpoint, as messages name it
        key: the setting of the key
        timeout: after so many seconds of silence a request has failed
        price: of tokens and requests
        access: what the user allows
        budget: counts requests and limits their cost
        notify: receives a sentence before each further attempt
        attempts: the number of attempts after which a request fails

    Raises:
        UsageError: the user has not allowed the address, or the key can't be read.
    """

    def __init__(
        self,
        url: str,
        *,
        place: str,
        key: str,
        timeout: int,
        price: Price,
        access: Access,
        budget: Budget,
        notify: Notify,
        attempts: int = ATTEMPTS,
    ) -> None:
        access.require_url(url)
        self._url = url
        self._place = place
        self._key_setting = key
        self._timeout = timeout
        self._price = price
        self._access = access
        self._budget = budget
        self._notify = notify
        self._attempts = attempts
        self._stopped = threading.Event()
        self._not_before = 0.0  # a rate limit holds for all threads
        secret = access.keys.get(key)
        self._key = None if secret is None else read_secret(secret)
        if self._key is not None and not (self._key.isascii() and self._key.isprintable()):
            raise UsageError(f"the {key} contains a character that no key has: set it again")
        is_local = is_this_machine(urlsplit(url).hostname or "")
        # A proxy of the environment does not reach this machine.
        self._client = http_client(timeout, trust_env=not is_local)
        self._retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_may_pass),
            stop=tenacity.stop_after_attempt(attempts),
            wait=_seconds_to_wait,
            sleep=self._wait,
            before_sleep=self._announce,
            reraise=True,
        )

    @property
    def attempts(self) -> int:
        """The number of attempts of this thread's last request."""
        return int(self._retrying.statistics["attempt_number"])

    def answers(
        self, batches: Iterable[Batch], answer: Callable[[Batch], Answer], concurrency: int
    ) -> Iterator[tuple[Batch, Answer]]:
        """Yield batches with their answers as they arrive, and close the endpoint at the end.

        A request begins only when the caller has stored an earlier answer, so that a killed job loses at most
        `concurrency` answers.

        Raises:
            as `answer` does, after the answers to all requests in flight.
        """
        todo: queue.SimpleQueue[list[Batch]] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[Batch, Answer | None, BaseException | None]] = queue.SimpleQueue()

        def work() -> None:
            while batch := todo.get():
                try:
                    done.put((batch[0], answer(batch[0]), None))
                except BaseException as error:  # raised in the thread of the caller
                    done.put((batch[0], None, error))

        waiting = iter(batches)
        running = 0
        failure: BaseException | None = None
        # Daemons, because an interrupted command must not wait for answers.
        threads = [threading.Thread(target=work, daemon=True) for _ in range(concurrency)]
        for thread in threads:
            thread.start()
        try:
            while True:
                while (
                    failure is None and running < concurrency and (batch := next(waiting, None)) is not None
                ):
                    todo.put([batch])
                    running += 1
                if not running:
                    break
                batch, answered, error = done.get()
                running -= 1
                if error is not None:
                    failure = failure or error
                    self._stopped.set()
                else:
                    yield batch, answered  # type: ignore[misc]  # None only with an error
            if failure is not None:
                raise failure
        finally:
            self._stopped.set()
            for _ in threads:
                todo.put([])
            if not running:
                self._client.close()

    def ask(
        self, body: Mapping[str, Any], tokens: int, read: Callable[[Any], Answer], written: int = 0
    ) -> Answer:
        """Send a request, several times if necessary, and return what is read from its answer.

        Args:
            body: the JSON of the request
            tokens: an estimate of the tokens of its texts
            read: returns the content of an answer, or raises `InvalidAnswerError`
            written: an estimate of the tokens of the answer
        """
        content = json.dumps(body).encode()
        try:
            answer: Answer = self._retrying(self._attempt, content, (tokens, written), read)
        except _FailedAttemptError as error:
            if _may_pass(error):
                raise self._failure(f"{error}, after {counted(self._attempts, 'attempt')}") from error
            raise self._failure(f"{error}, and asks to wait {error.wait:,.0f} s") from error
        return answer

    def _announce(self, state: tenacity.RetryCallState) -> None:
        error = _error_of(state)
        if error.wait:
            self._not_before = max(self._not_before, time.monotonic() + error.wait)
        self._notify(f"{self._url} {error}: trying again in {_seconds_to_wait(state):.3g} s")

    def _wait(self, seconds: float) -> None:
        if self._stopped.wait(max(0.0, seconds)):
            raise self._failure("was stopped")

    def _failure(self, what: str) -> ModelUnavailable:
        return ModelUnavailable(f"{self._url} {what}")

    def _attempt(self, content: bytes, estimate: Tokens, read: Callable[[Any], Answer]) -> Answer:
        self._wait(self._not_before - time.monotonic())
        reserved = self._price.cost(estimate[0], written=estimate[1])
        self._budget.reserve(reserved)
        tokens: Tokens | None = (0, 0)
        requests = 0  # that the endpoint charges
        try:
            answer = self._post(content)
            tokens, requests = used_tokens(answer), 1
            try:
                return read(answer)
            except InvalidAnswerError as error:
                raise _FailedAttemptError(str(error), tokens=tokens) from error
        except _FailedAttemptError as error:
            tokens = error.tokens
            requests = max(requests, tokens is None)
            raise
        finally:
            used = estimate if tokens is None else tokens
            self._budget.settle(reserved, self._price.cost(used[0], requests, used[1]), sum(used))

    def _post(self, body: bytes) -> Any:
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
                raise _FailedAttemptError(f"has sent nothing for {self._timeout} s", tokens=None) from error
            except httpx.HTTPError as error:
                raise _FailedAttemptError(f"was interrupted ({error})", tokens=None) from error
            if not response.is_redirect:
                return self._read(response.status_code, response.headers.get("Retry-After"), content)
            url = urljoin(url, response.headers["Location"])
            if urlsplit(url).scheme not in ("http", "https"):
                raise self._failure("redirects to an address that is neither http nor https")
            self._access.require_url(url)
        raise self._failure(f"redirects more than {MOST_REDIRECTS} times")

    def _read(self, status: int, wait: str | None, content: bytes) -> Any:
        if status != 200:
            said = content[:2000].decode("utf-8", "replace")
            if self._key:
                said = said.replace(self._key, "…")
            what = f"answers {status}" + (f" ({shown(said)})" if said.strip() else "")
            if status in PASSING_STATUS:
                raise _FailedAttemptError(
                    what, wait=retry_after(wait), tokens=(0, 0) if status in (425, 429, 503) else None
                )
            if status in (401, 403):
                variable = f"SEARCHAPP_{self._key_setting.upper()}"
                raise UsageError(f"{self._url} {what}: set {variable} to a valid key")
            raise RejectedRequestError(f"{self._url} {what}: correct {self._place}, or the texts", said)
        try:
            text = content.decode()
            try:
                return parse_json(text)
            except ValueError:
                # A model that stops inside of an emoji writes half of it.
                return parse_json(without_halves(text))
        except ValueError as error:
            raise _FailedAttemptError("answers with invalid JSON", tokens=None) from error


def used_tokens(answer: Any) -> Tokens | None:
    """Return the numbers of tokens that an answer reports, in the form of OpenAI; None if it reports none."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    if not isinstance(usage, dict):
        return None
    read, written = usage.get("prompt_tokens", usage.get("total_tokens")), usage.get("completion_tokens", 0)
    if type(read) is not int or type(written) is not int or min(read, written) < 0:
        return None
    return read, written


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
