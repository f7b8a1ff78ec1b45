"""Threads that send batches at the same time, no more of them in memory than can be under way."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from typing import Generic, TypeVar

LEAVING_SECONDS = 1.0
"""How long a thread that is no longer needed is waited for; one that waits for a server ends by itself."""

T = TypeVar("T")


class Senders(Generic[T]):
    """Calls `send` with each batch, `threads` of them at once, and once more as many may wait for their turn.

    A thread starts when there is something for it to do. As soon as one batch fails no other is begun; `stopped` says
    so to a `send` that repeats its request.
    """

    def __init__(self, send: Callable[[T], None], threads: int) -> None:
        self._send = send
        self._most = threads
        self._threads: list[threading.Thread] = []
        self._waiting: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[tuple[T, BaseException | None]] = queue.SimpleQueue()
        self._stop = threading.Event()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def sent(self, batches: Iterable[T]) -> Iterator[T]:
        """The batches as they are done, in any order; they are drawn as needed.

        Raises:
            BaseException: what drawing a batch or sending one raised; those that are on their way may still arrive.
        """
        under_way = 0
        try:
            for batch in batches:
                self._hand_over(batch)
                under_way += 1
                while under_way == 2 * self._most or not self._ended.empty():
                    yield self._one_done()
                    under_way -= 1
            for _ in range(under_way):
                yield self._one_done()
        finally:
            self._stop.set()
            for _ in self._threads:
                self._waiting.put(None)
            for thread in self._threads:
                thread.join(LEAVING_SECONDS)

    def _hand_over(self, batch: T) -> None:
        if len(self._threads) < self._most:
            # Who waits for an engine's answer (`engines.waiting`) is known to each thread that asks.
            thread = threading.Thread(
                target=copy_context().run, args=(self._work,), name="sender", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        self._waiting.put(batch)

    def _one_done(self) -> T:
        batch, error = self._ended.get()
        if error is not None:
            raise error
        return batch

    def _work(self) -> None:
        while (batch := self._waiting.get()) is not None and not self.stopped:
            try:
                self._send(batch)
            except BaseException as error:
                self._ended.put((batch, error))
                return
            self._ended.put((batch, None))
