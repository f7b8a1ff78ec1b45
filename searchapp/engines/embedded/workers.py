"""Work on all cores.

Analyzing a text and gathering its terms is Python, which one process does on one core. So large batches go to
processes that are forked from this one: they begin with the open index in their memory, at no cost, and send
back numbers. Where processes can't be forked, or there is but one core, this process does the work.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import connection
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

WORTH_IT = 4
"""Items from which on the start of the processes pays; an item is a batch of topics or documents."""

IN_FLIGHT = 3
"""Items for each process that are under way or wait for their turn."""

_work: Callable[[Any], Any]


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(work: Callable[[T], R], items: Iterable[T], processes: int | None = None) -> Iterator[R]:
    """What `work` makes of each item, in the order of the items, which are drawn as needed.

    `work` itself is inherited by the processes and need not be picklable, its argument and its result must be.
    """
    count = processes or cores()
    waiting = iter(items)
    first = list(islice(waiting, WORTH_IT))
    waiting = chain(first, waiting)
    if count == 1 or len(first) < WORTH_IT or not _can_fork():
        yield from map(work, waiting)
        return
    executor = _forked(work, count)
    try:
        under_way: deque[tuple[T, Future[R]]] = deque()
        for item in waiting:
            under_way.append((item, executor.submit(_call, item)))
            if len(under_way) == IN_FLIGHT * count:
                yield _result(work, *under_way.popleft())
        while under_way:
            yield _result(work, *under_way.popleft())
    except BrokenProcessPool:
        # `submit` says so when a process was killed, perhaps for want of memory: the rest is done here.
        yield from (_result(work, *one) for one in under_way)
        yield from map(work, chain([item], waiting))
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _result(work: Callable[[T], R], item: T, future: Future[R]) -> R:
    try:
        return future.result()
    except BrokenProcessPool:
        return work(item)


def _forked(work: Callable[[Any], Any], count: int) -> ProcessPoolExecutor:
    global _work
    _work = work
    executor = ProcessPoolExecutor(count, multiprocessing.get_context("fork"), _end_with_parent)
    with warnings.catch_warnings():
        # Python 3.12 warns of threads that other libraries have started: those of NumPy's BLAS, which is made
        # to be forked. The processes use neither it nor locks that another thread could hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        executor.submit(_nothing).result()
    return executor


def _can_fork() -> bool:
    """Forking is safe on Linux; on macOS the system's libraries are not made for it."""
    return sys.platform == "linux" and "fork" in multiprocessing.get_all_start_methods()


def _call(item: Any) -> Any:
    return _work(item)


def _end_with_parent() -> None:
    """End this process when the one that forked it is killed, rather than wait for work for ever."""
    gc.freeze()  # what is inherited is no garbage: to look through it would copy its memory pages
    parent = multiprocessing.parent_process()
    assert parent is not None
    sentinel = parent.sentinel

    def watch() -> None:
        connection.wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _nothing() -> None:
    """The first task, by which all processes are started."""
