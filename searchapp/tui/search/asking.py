"""Asks a searcher in the background, so that keys never wait for an engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

from searchapp.app.search import Searcher

T = TypeVar("T")

Post = Callable[[Callable[[], object]], object]
"""Has something done by the screen, when it gets to it."""


class Kind(IntEnum):
    """What is asked, the most urgent first."""

    search = 0
    document = 1
    page = 2
    why = 3
    counts = 4
    topics = 5


class _Job(NamedTuple):
    work: Callable[[Searcher], Any]
    then: Callable[[Any], object]
    failed: Callable[[Exception], object]


class Asker:
    """A searcher in a thread of its own, which is asked one thing at a time.

    Of what waits only the latest of each kind is asked: who types on wants no answer to what they typed before.

    Args:
        name: the thread's
        searcher: opens the searcher, in the thread, when it is needed first and until that succeeds
        post: has the answers taken in, in the thread of the screen
    """

    def __init__(self, name: str, searcher: Callable[[], Searcher], post: Post) -> None:
        self._open = searcher
        self._searcher: Searcher | None = None
        self._post = post
        self._waiting: dict[Kind, _Job] = {}
        self._changed = threading.Condition()
        self._is_busy = False
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def ask(
        self,
        kind: Kind,
        work: Callable[[Searcher], T],
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

    def forget(self, kind: Kind) -> None:
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
            if self._searcher is None:
                self._searcher = self._open()
            answer = job.work(self._searcher)
        except Exception as error:  # whatever it is, it is the screen's to say
            self._post_unless_closed(lambda error=error: job.failed(error))  # type: ignore[misc]
        else:
            self._post_unless_closed(lambda: job.then(answer))

    def _post_unless_closed(self, what: Callable[[], object]) -> None:
        if not self._is_closed:
            self._post(what)
