"""Distribute work over forked processes, which inherit the open index or the rankings at no cost.

Each process has its own pair of pipes, so that killing one leaves the others alone. (The standard library's
pool ends all of its processes when one is killed, and in Python 3.11 may wait forever.) Without fork, or with
one core, this process does the work.
"""

from __future__ import annotations

import fcntl
import gc
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from itertools import chain, islice
from multiprocessing.connection import Connection, Pipe, wait
from queue import SimpleQueue
from typing import Any, TypeVar, cast

from searchapp.errors import SearchappError

__all__ = ["cores", "map_in_processes", "process_each"]

T = TypeVar("T")
R = TypeVar("R")

# The requested capacity of a pipe of answers: two answers of 64 topics with 500 hits each, so that a
# process does not wait while this one is busy.
PIPE_BYTES = 1 << 19

# Forking pays from this number of items (batches of topics or documents).
WORTH_IT = 4

# Unanswered items per process.
IN_FLIGHT = 3

# Unanswered items per process while this one works too: the current and the next.
BESIDE = 2

# `in_batches` cuts the last LAST batches: each smaller batch is one of SHARES parts of the rest.
LAST, SHARES = 3, 6

# Faults of a process, which would end this one too; other signals come from outside.
CRASHES = frozenset({signal.SIGBUS, signal.SIGSEGV, signal.SIGILL, signal.SIGFPE, signal.SIGABRT})

# Held while forking: a second pool would inherit both ends of a pipe and keep them open.
_forking = threading.Lock()

# The number of processes that share the cores: see `process_each`.
_shared_by = 1


def cores() -> int:
    """Return the number of cores that this process may use."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, available // _shared_by)


def can_fork() -> bool:
    """Return whether forking is safe; the system libraries of macOS do not support it."""
    return sys.platform == "linux"


class ProcessEnded(SearchappError):
    """A signal from outside ended a process before it answered."""

    def __init__(self, ended_by: int = 0) -> None:
        by = f" ({signal.Signals(ended_by).name})" if ended_by else ""
        super().__init__(
            f"a worker process was killed{by}, possibly for lack of memory: try again with fewer processes"
        )


class Worker:
    """A forked process that answers items in order, and this side of its pipes.

    Raises:
        OSError, MemoryError: the system lacks a process, memory or a descriptor.
    """

    def __init__(self, work: Callable[[Any], Any], siblings: Sequence[Worker], sharing: int = 1) -> None:
        self.asked: deque[Future[Any]] = deque()
        items, self._items = Pipe(duplex=False)
        self.answers, answers = Pipe(duplex=False)
        with suppress(OSError, AttributeError):  # only Linux has it
            fcntl.fcntl(answers.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self.pid = os.fork()
        if not self.pid:
            try:
                for inherited in (self, *siblings):
                    inherited._close()
                _share_cores(sharing)
                _serve(work, items, answers)
            finally:  # the parent has ended, or memory is exhausted: another process does the rest
                os._exit(1)
        self.is_alive = True
        items.close()
        answers.close()

    def ask(self, item: Any) -> Future[Any]:
        """Send an item, and return its future answer.

        Raises:
            Exception: the item cannot be pickled.
        """
        content = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
        self.asked.append(Future())
        with suppress(BrokenPipeError):
            self._items.send_bytes(content)
        return self.asked[-1]

    def receive(self) -> None:
        """Wait for an answer, or for the end of the process."""
        try:
            answer = self.answers.recv_bytes()
        except (EOFError, OSError):
            self.end()
            return
        raised, outcome = pickle.loads(answer)
        if raised:
            self.asked.popleft().set_exception(outcome)
        else:
            self.asked.popleft().set_result(outcome)

    def kill(self) -> None:
        if self.is_alive:
            os.kill(self.pid, signal.SIGKILL)

    def end(self) -> None:
        """Clean up after a process that has ended or was killed."""
        if not self.is_alive:
            return
        self.is_alive = False
        ended_by = 0
        with suppress(ChildProcessError):
            ended_by = max(0, -os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]))
        while self.asked:
            self.asked.popleft().set_exception(
                _crashed(ended_by) if ended_by in CRASHES else ProcessEnded(ended_by)
            )
            ended_by = 0  # the process had not started the other items
        self._close()

    def _close(self) -> None:
        self._items.close()
        self.answers.close()


def _crashed(ended_by: int) -> SearchappError:
    return SearchappError(
        f"a worker process crashed ({signal.Signals(ended_by).name}) while it read or wrote files: the disk "
        "or the memory "
        "may be faulty; `searchapp doctor` checks every file of the indexes"
    )


@contextmanager
def forking() -> Iterator[None]:
    """Block other threads from forking, and signals until the new process has its own handlers."""
    signals = {signal.SIGINT, signal.SIGTERM}
    with _forking, warnings.catch_warnings():
        # Python 3.12 warns about threads of other libraries, here NumPy's BLAS, which supports forking. The
        # processes use neither BLAS nor locks that another thread could hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _forked(
    work: Callable[[Any], Any], count: int, siblings: Sequence[Worker] = (), sharing: int = 1
) -> list[Worker]:
    workers: list[Worker] = []
    try:
        with forking():
            for _ in range(count):
                workers.append(Worker(work, [*siblings, *workers], sharing))
    except (OSError, MemoryError):
        _end(workers)
        return []
    return workers


def _end(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.end()


def _receive(workers: Iterable[Worker], *, wait_for_one: bool) -> None:
    """Receive the available answers; with `wait_for_one`, at least one answer or the end of a process."""
    alive = {worker.answers: worker for worker in workers if worker.is_alive}
    for pipe in wait(list(alive), None if wait_for_one and alive else 0):
        alive[cast("Connection", pipe)].receive()


# In the forked process


def _share_cores(sharing: int) -> None:
    """Reduce the number of processes that this one may start."""
    global _forking, _shared_by
    _forking = threading.Lock()  # nothing in this process would release the inherited lock
    _shared_by *= sharing


def _serve(work: Callable[[Any], Any], items: Connection, answers: Connection) -> None:
    """Answer each item with a flag for an exception, and with the exception or the result."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches every process, and the parent ends the others
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    gc.freeze()  # garbage collection would copy the memory pages of all inherited objects
    waiting: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_take, args=(items, waiting), daemon=True).start()
    while True:
        answers.send_bytes(_answer(work, waiting.get()))


def _take(items: Connection, waiting: SimpleQueue[bytes]) -> None:
    """Take items from the pipe at once, so that the sender never waits; end this process with the sender."""
    try:
        while True:
            waiting.put(items.recv_bytes())
    finally:
        os._exit(1)


def _answer(work: Callable[[Any], Any], item: bytes) -> bytes:
    try:
        return pickle.dumps((False, work(pickle.loads(item))), pickle.HIGHEST_PROTOCOL)
    except BaseException as error:
        return _raised(error)


def _raised(error: BaseException) -> bytes:
    """Pickle an exception, or its message if it cannot be pickled."""
    error.add_note("In a forked process:\n" + "".join(traceback.format_exception(error)))
    try:
        answer = pickle.dumps((True, error))
        pickle.loads(answer)
    except Exception:
        message = "".join(traceback.format_exception_only(error)).partition("\n")[0]
        return pickle.dumps((True, RuntimeError(message)))
    return answer


# In this process


def map_in_processes(
    work: Callable[[T], R],
    items: Iterable[T],
    processes: int | None = None,
    worth_it: int = WORTH_IT,
    *,
    here: bool = False,
) -> Iterator[R]:
    """Yield `work(item)` for each item, in order; draw items as needed.

    The processes inherit `work`; items and results must be picklable. Items of a process that was ended from
    outside are done here.

    Args:
        work: its exceptions are raised here
        items: its arguments
        processes: default: the number of cores
        worth_it: with fewer items, this process does the work
        here: this process works too while the next result is missing. Saves a fork, which matters below a
            second; but a fault in `work` may crash this process.

    Raises:
        SearchappError: a process crashed.
    """
    count = processes or cores()
    waiting = iter(items)
    first = list(islice(waiting, worth_it))
    waiting = chain(first, waiting)
    workers = _forked(work, count - here) if count > 1 and len(first) == worth_it and can_fork() else []
    if not workers:
        yield from map(work, waiting)
        return
    most, each = IN_FLIGHT * count, BESIDE if here else IN_FLIGHT
    under_way: deque[tuple[T, Future[R]]] = deque()
    is_more = True
    try:
        while is_more or under_way:
            _receive(workers, wait_for_one=False)
            alive = [worker for worker in workers if worker.is_alive]
            free = [worker for worker in alive if len(worker.asked) < each]
            is_ready = bool(under_way) and under_way[0][1].done()
            is_mine = not free and not is_ready and (here or not alive)
            if is_more and len(under_way) < most and (free or is_mine):
                drawn = list(islice(waiting, 1))
                for item in drawn:
                    least_busy = min(free, key=lambda worker: len(worker.asked), default=None)
                    answer = _done(work, item) if least_busy is None else least_busy.ask(item)
                    under_way.append((item, answer))
                is_more = bool(drawn)
            elif is_ready:
                item, answer = under_way.popleft()
                yield work(item) if isinstance(answer.exception(), ProcessEnded) else answer.result()
            else:
                if not is_more:  # early, because the system needs time to clean up after a process
                    for worker in alive:
                        if not worker.asked:
                            worker.kill()
                _receive(workers, wait_for_one=True)
    finally:
        _end(workers)


def process_each(
    work: Callable[[T], R], waiting: deque[T], processes: int | None = None
) -> Generator[tuple[T, R | BaseException], None, None]:
    """Yield each item with the result or exception of `work` in a process of its own, as they finish.

    The caller may add items to `waiting` meanwhile. At most `processes` run at a time, and they share the
    cores.
    """
    count = processes or cores()
    under_way: dict[Worker, tuple[T, Future[R]]] = {}
    try:
        while waiting or under_way:
            while waiting and len(under_way) < count:
                item = waiting.popleft()
                for worker in _forked(work, 1, list(under_way), count) if can_fork() else []:
                    under_way[worker] = item, worker.ask(item)
                    break
                else:
                    answer = _done(work, item)
                    yield item, answer.exception() or answer.result()
            _receive(under_way, wait_for_one=True)
            for worker in [worker for worker in under_way if not worker.asked]:
                item, answer = under_way.pop(worker)
                _end([worker])
                yield item, answer.exception() or answer.result()
    finally:
        _end(list(under_way))


def _done(work: Callable[[T], R], item: T) -> Future[R]:
    answer: Future[R] = Future()
    try:
        answer.set_result(work(item))
    except Exception as error:
        answer.set_exception(error)
    return answer


def in_batches(items: Iterable[T], size: int, least: int, processes: int | None = None) -> Iterator[list[T]]:
    """Yield batches for `map_in_processes`, the last ones smaller, so that all processes end together.

    Never cuts the first WORTH_IT + 1 batches, because `map_in_processes` counts them.
    """
    waiting = iter(items)
    least = least if (processes or cores()) > 1 else size
    ahead = list(islice(waiting, LAST * size))
    batches = 0
    while ahead:
        count = size
        if len(ahead) < LAST * size and batches > WORTH_IT:
            count = min(size, max(least, -(-len(ahead) // SHARES)))
            if len(ahead) <= size and len(ahead) - count < least:
                count = len(ahead)
        yield ahead[:count]
        batches += 1
        ahead = [*ahead[count:], *islice(waiting, count)]
