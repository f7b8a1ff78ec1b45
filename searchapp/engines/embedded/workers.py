"""Work on all cores.

Analyzing a text and gathering its terms is Python, which one process does on one core. So large batches go to
processes that are forked from this one: they begin with the open index in their memory, at no cost, and send
back numbers. Where processes can't be forked, or there is but one core, this process does the work.

Each process has a pipe of its own, and a thread waits at this end of it. Nothing is shared that the end of a process
could leave locked: whatever happens to one, this one and the others go on. (The standard library's pool of processes
may wait for ever once one of them has ended, in Python 3.11 nearly always.)
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain, islice
from multiprocessing import connection
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, TypeVar

from searchapp.errors import SearchappError

T = TypeVar("T")
R = TypeVar("R")

WORTH_IT = 4
"""Items from which on the start of the processes pays; an item is a batch of topics or documents."""

IN_FLIGHT = 3
"""Items for each process that are under way or wait for their turn."""

CRASHES = frozenset({signal.SIGBUS, signal.SIGSEGV, signal.SIGILL, signal.SIGFPE, signal.SIGABRT})
"""Signals that end a process for what it does, which would end this one as well; others come from outside."""

_forking = threading.Lock()
"""Held while processes are forked: those of another pool would inherit both ends of a pipe, and keep them open."""


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(work: Callable[[T], R], items: Iterable[T], processes: int | None = None) -> Iterator[R]:
    """What `work` makes of each item, in the order of the items, which are drawn as needed.

    `work` itself is inherited by the processes and need not be picklable, its argument and its result must be.
    An exception that it raises there is raised here. What a process leaves undone that was ended from outside,
    for want of memory perhaps, is done here.

    Raises:
        SearchappError: a process crashed.
    """
    count = processes or cores()
    waiting = iter(items)
    first = list(islice(waiting, WORTH_IT))
    waiting = chain(first, waiting)
    workers = _forked(work, count) if count > 1 and len(first) == WORTH_IT and _can_fork() else []
    if not workers:
        yield from map(work, waiting)
        return
    pool = _Pool(workers)
    try:
        under_way: deque[tuple[T, Future[R]]] = deque()
        for item in waiting:
            under_way.append((item, pool.submit(item)))
            if len(under_way) == IN_FLIGHT * count:
                yield _result(work, *under_way.popleft())
        while under_way:
            yield _result(work, *under_way.popleft())
    finally:
        pool.close()


def _result(work: Callable[[T], R], item: T, future: Future[R]) -> R:
    try:
        return future.result()
    except _Ended:
        return work(item)


def _can_fork() -> bool:
    """Forking is safe on Linux; on macOS the system's libraries are not made for it."""
    return sys.platform == "linux" and "fork" in multiprocessing.get_all_start_methods()


class _Ended(Exception):
    """A process is no more, so that it does not answer."""


class _Pool:
    """Processes, and a thread for each that hands it its items and waits for the results."""

    def __init__(self, workers: Sequence[_Worker]) -> None:
        self._workers = workers
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        for worker in workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(len(workers))

    def submit(self, item: Any) -> Future[Any]:
        """Have a process work on an item as soon as one is idle."""
        try:
            return self._threads.submit(self._ask, item)
        except RuntimeError:  # the system has no thread to spare
            undone: Future[Any] = Future()
            undone.set_exception(_Ended())
            return undone

    def _ask(self, item: Any) -> Any:
        worker = self._idle.get()
        try:
            return worker.ask(item)
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """End the processes, whatever they are at."""
        for worker in self._workers:
            worker.kill()  # which ends the waiting of the threads, too
        self._threads.shutdown(wait=True, cancel_futures=True)
        for worker in self._workers:
            worker.close()


class _Worker:
    """A forked process, and this end of its pipe."""

    def __init__(self, work: Callable[[Any], Any], others: Sequence[_Worker]) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        inherited = [self._pipe, *(other._pipe for other in others)]
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_serve, args=(work, theirs, inherited), daemon=True)
        try:
            self._process.start()
        except BaseException:
            self._pipe.close()
            raise
        finally:
            theirs.close()  # so that the pipe ends with the process

    def ask(self, item: Any) -> Any:
        """What the process makes of an item.

        Raises:
            _Ended: it was ended.
            SearchappError: it crashed.
            Exception: the work raised it.
        """
        try:
            self._pipe.send(item)
            raised, answer = self._pipe.recv()
        except (EOFError, OSError) as error:
            self._process.join()
            code = self._process.exitcode or 0
            if -code in CRASHES:
                raise SearchappError(
                    f"a process that read or wrote the index crashed ({signal.Signals(-code).name}): the disk or the "
                    "memory may be faulty, `searchapp doctor` reads every file of the indexes"
                ) from error
            raise _Ended from error
        if raised:
            raise answer
        return answer

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """Clean up after a process that was killed."""
        self._process.join()
        self._process.close()
        self._pipe.close()


def _forked(work: Callable[[Any], Any], count: int) -> list[_Worker]:
    """Processes that do some work; none if the system has none to spare, or no memory for them."""
    workers: list[_Worker] = []
    with _forking, _signals_held(), warnings.catch_warnings():
        # Python 3.12 warns of threads that other libraries have started: those of NumPy's BLAS, which is made
        # to be forked. The processes use neither it nor locks that another thread could hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            for _ in range(count):
                workers.append(_Worker(work, workers))
        except (OSError, MemoryError):
            for worker in workers:
                worker.kill()
                worker.close()
            return []
    return workers


@contextmanager
def _signals_held() -> Iterator[None]:
    """Keep signals back until a forked process does with them what it should, rather than what this one does."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# In the forked process


def _serve(work: Callable[[Any], Any], pipe: Connection, inherited: Iterable[Connection]) -> None:
    """Answer every item with whether the work raised an exception, and with that or its result."""
    for end in inherited:
        end.close()
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches every process: the first one ends the others
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    gc.freeze()  # what is inherited is no garbage: to look through it would copy its memory pages
    _end_with_parent()
    try:
        while True:
            pipe.send_bytes(_answer(work, pipe.recv_bytes()))
    except (
        BaseException
    ):  # the other end is gone, or there is no memory: what is left undone is done elsewhere
        os._exit(1)


def _answer(work: Callable[[Any], Any], item: bytes) -> bytes:
    try:
        return pickle.dumps((False, work(pickle.loads(item))), pickle.HIGHEST_PROTOCOL)
    except BaseException as error:
        return _raised(error)


def _raised(error: BaseException) -> bytes:
    """An exception as an answer, or one that says as much if it can't be sent from process to process."""
    error.add_note("In a forked process:\n" + "".join(traceback.format_exception(error)))
    try:
        answer = pickle.dumps((True, error))
        pickle.loads(answer)
    except Exception:
        told = "".join(traceback.format_exception_only(error)).partition("\n")[0]
        return pickle.dumps((True, RuntimeError(told)))
    return answer


def _end_with_parent() -> None:
    """End this process when the one that forked it is killed, rather than at the end of its work."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    sentinel = parent.sentinel

    def watch() -> None:
        connection.wait([sentinel])
        os._exit(1)

    with suppress(RuntimeError):  # no thread to spare: the pipe ends as well, which is noticed after the work
        threading.Thread(target=watch, daemon=True).start()
