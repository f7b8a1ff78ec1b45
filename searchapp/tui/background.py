"""Asks something in the background, one question after the other, or works there: no key waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

S = TypeVar("S")
T = TypeVar("T")

Post = Callable[[Callable[[], object]], object]
"""Has something done by the screen, when it gets to it."""


class _Job(NamedTuple):
    work: Callable[[Any], Any]
    then: Callable[[Any], object]
    failed: Callable[[Exception], object]


class Background(Generic[S]):
    """Something in a thread of its own, which is asked one thing at a time.

    Of what waits only the latest of each kind is asked, the lowest number first: who types on wants no answer to what
    they typed before.

    Args:
        name: the thread's
        asked: opens what is asked, in the thread, when it is needed first and until that succeeds
        post: has the answers taken in, in the thread of the screen
    """

    def __init__(self, name: str, asked: Callable[[], S], post: Post) -> None:
        self._open = asked
        self._asked: S | None = None
        self._post = post
        self._waiting: dict[int, _Job] = {}
        self._changed = threading.Condition()
        self._is_busy = False
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def ask(
        self,
        kind: int,
        work: Callable[[S], T],
        then: Callable[[T], object],
        failed: Callable[[Exception], object],
    ) -> None:
        """Ask for something; `then` gets the answer, or `failed` the error, unless something else of the kind is asked
        before this is its turn.
        """
        with self._changed:
            if not self._thread.is_alive() and not self._is_closed:
                self._thread.start()
            self._waiting[kind] = _Job(work, then, failed)
            self._changed.notify()

    def forget(self, kind: int) -> None:
        """Ask no longer for what waits of a kind."""
        with self._changed:
            self._waiting.pop(kind, None)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being asked and nothing waits."""
        with self._changed:
            return not self._is_busy and not self._waiting

    def close(self) -> None:
        """Take no answers any more; what is being asked is not waited for."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._is_busy = False
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                if self._is_closed:
                    return
                job = self._waiting.pop(min(self._waiting))
                self._is_busy = True
            self._answer(job)

    def _answer(self, job: _Job) -> None:
        try:
            if self._asked is None:
                self._asked = self._open()
            answer = job.work(self._asked)
        except Exception as error:  # whatever it is, it is the screen's to say
            self._post_unless_closed(lambda error=error: job.failed(error))  # type: ignore[misc]
        else:
            self._post_unless_closed(lambda: job.then(answer))

    def _post_unless_closed(self, what: Callable[[], object]) -> None:
        if not self._is_closed:
            self._post(what)


def in_background(
    name: str,
    work: Callable[[], T],
    then: Callable[[T], object],
    failed: Callable[[Exception], object],
    post: Post,
) -> threading.Thread:
    """Work in a thread of its own; `post` has `then` take in what comes of it, or `failed` the error."""

    def run() -> None:
        try:
            result = work()
        except Exception as error:  # whatever it is, it is the screen's to say
            post(lambda error=error: failed(error))  # type: ignore[misc]
        else:
            post(lambda: then(result))

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
