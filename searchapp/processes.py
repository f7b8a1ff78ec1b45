"""Work on all cores.

Analyzing a text, gathering its terms and scoring a run is Python, which one process does on one core. So large batches
go to processes that are forked from this one: they begin with the open index, or the rankings, in their memory, at no
cost, and send back numbers. Where processes can't be forked, or there is but one core, this process does the work.
`spread` shares out many small items, `one_each` gives every item a process of its own.

Each process has pipes of its own, and this one looks after all of them whenever a result is asked for; there are
neither threads nor locks. So nothing can be left locked or waiting, whatever happens to a process, or to this one for
want of memory. (The standard library's pool of processes may wait for ever once one of them has ended, in Python 3.11
nearly always.)
"""

from __future__ import annotations

import fcntl
import gc
import os
import pickle
import select
import selectors
import signal
import struct
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeVar

from searchapp.errors import SearchappError

T = TypeVar("T")
R = TypeVar("R")

WORTH_IT = 4
"""Items from which on the start of the processes pays; an item is a batch of topics or documents."""

IN_FLIGHT = 3
"""Items for each process that are under way or wait for their turn."""

PIPE_BYTES = 1 << 18
"""What a pipe shall hold, so that nobody waits while the other side is busy; the system may allow less."""

CRASHES = frozenset({signal.SIGBUS, signal.SIGSEGV, signal.SIGILL, signal.SIGFPE, signal.SIGABRT})
"""Signals that end a process for what it does, which would end this one as well; others come from outside."""

_LENGTH = struct.Struct("!Q")
"""What precedes an item or an answer in a pipe."""

_forking = threading.Lock()
"""Held while processes are forked: those of another pool would inherit both ends of a pipe, and keep them open."""


_shared_by = 1
"""How many processes share the cores: those of `one_each` do, and what they start."""


def cores() -> int:
    """The cores that this process may use."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, there // _shared_by)


def spread(
    work: Callable[[T], R], items: Iterable[T], processes: int | None = None, worth_it: int = WORTH_IT
) -> Iterator[R]:
    """What `work` makes of each item, in the order of the items, which are drawn as needed.

    Fewer items than `worth_it` are worked on here.

    `work` itself is inherited by the processes and need not be picklable, its argument and its result must be.
    An exception that it raises there is raised here. What a process leaves undone that was ended from outside,
    for want of memory perhaps, is done here.

    Raises:
        SearchappError: a process crashed.
    """
    count = processes or cores()
    waiting = iter(items)
    first = list(islice(waiting, worth_it))
    waiting = chain(first, waiting)
    pool = _Pool.of(work, count) if count > 1 and len(first) == worth_it and _can_fork() else None
    if pool is None:
        yield from map(work, waiting)
        return
    try:
        under_way: deque[_Asked] = deque()
        for item in waiting:
            under_way.append(pool.ask(item))
            if len(under_way) == IN_FLIGHT * count:
                yield _result(work, pool.answered(under_way.popleft()))
        while under_way:
            yield _result(work, pool.answered(under_way.popleft()))
    finally:
        pool.close()


def one_each(
    work: Callable[[T], R], waiting: deque[T], processes: int | None = None
) -> Generator[tuple[T, R | Exception], None, None]:
    """What `work` makes of each item in a process of its own, as they are done, at most so many at a time.

    The caller may put further items into `waiting` while answers are drawn. An exception that `work` raises comes in
    the place of its result, and so does one for a process that was ended: the others go on. The processes share the
    cores, see `cores`. Where processes can't be forked, this one does the work.
    """
    count = processes or cores()
    pool = _Pool()
    under_way: list[_Asked] = []
    try:
        while waiting or under_way:
            while waiting and len(under_way) < count:
                item = waiting.popleft()
                asked = pool.ask_new(work, item, count) if _can_fork() else None
                if asked is None:
                    yield item, _tried(work, item)
                else:
                    under_way.append(asked)
            for asked in pool.any_answered(under_way):
                under_way.remove(asked)
                yield asked.item, _outcome(asked)
    finally:
        pool.close()


def _tried(work: Callable[[T], R], item: T) -> R | Exception:
    try:
        return work(item)
    except Exception as error:
        return error


def _outcome(asked: _Asked) -> Any:
    """The result of an item, or the exception that there is instead."""
    if asked.ended_by in CRASHES:
        return _crashed(asked.ended_by)
    if asked.answer is None:
        ended_by = f" ({signal.Signals(asked.ended_by).name})" if asked.ended_by else ""
        return SearchappError(
            f"the process that was at it was ended from outside{ended_by}: for want of memory perhaps, try again with "
            "fewer at a time"
        )
    _raised, answer = pickle.loads(asked.answer)
    return answer


def _result(work: Callable[[T], R], asked: _Asked) -> R:
    if asked.ended_by in CRASHES:
        raise _crashed(asked.ended_by)
    if asked.answer is None:
        return work(asked.item)
    raised, answer = pickle.loads(asked.answer)
    if raised:
        raise answer
    return answer  # type: ignore[no-any-return]


def _crashed(ended_by: int) -> SearchappError:
    return SearchappError(
        f"a process that read or wrote files crashed ({signal.Signals(ended_by).name}): the disk or the memory may be "
        "faulty, `searchapp doctor` reads every file of the indexes"
    )


def _can_fork() -> bool:
    """Forking is safe on Linux; on macOS the system's libraries are not made for it."""
    return sys.platform == "linux"


@dataclass(slots=True)
class _Asked:
    """An item, and the answer to it; without one, whether its process has ended, and by which signal."""

    item: Any
    answer: bytearray | None = None
    ended: bool = False
    ended_by: int = 0


class _Pool:
    """Processes that work on items, each on one after the other."""

    def __init__(self) -> None:
        self._workers: list[_Worker] = []
        self._selector = selectors.PollSelector()

    @classmethod
    def of(cls, work: Callable[[Any], Any], count: int) -> _Pool | None:
        """Processes that do some work; None if the system has none to spare, or no memory for them."""
        pool = cls()
        try:
            with _forking, _signals_held(), warnings.catch_warnings():
                # Python 3.12 warns of threads that other libraries have started: those of NumPy's BLAS, which is
                # made to be forked. The processes use neither it nor locks that another thread could hold.
                warnings.simplefilter("ignore", DeprecationWarning)
                for _ in range(count):
                    pool._workers.append(_Worker(work, pool._workers))
            for worker in pool._workers:
                pool._selector.register(worker.answers, selectors.EVENT_READ, worker)
        except (OSError, MemoryError):
            pool.close()
            return None
        return pool

    def ask(self, item: Any) -> _Asked:
        """Have the process work on an item that has the fewest to work on."""
        asked = _Asked(item)
        alive = [worker for worker in self._workers if worker.is_alive]
        if alive:
            worker = min(alive, key=lambda worker: len(worker.asked))
            worker.take(asked)
            self._write(worker)
            self._exchange(wait=False)
        else:
            asked.ended = True
        return asked

    def ask_new(self, work: Callable[[Any], Any], item: Any, sharing: int) -> _Asked | None:
        """Have a new process work on an item and on nothing else; None if the system has none to spare for it.

        `sharing` is how many processes share the cores.
        """
        try:
            with _forking, _signals_held(), warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # see `of`
                worker = _Worker(work, self._workers, sharing)
        except (OSError, MemoryError):
            return None
        self._workers.append(worker)
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)
        asked = _Asked(item)
        worker.take(asked)
        self._write(worker)
        return asked

    def any_answered(self, under_way: Sequence[_Asked]) -> list[_Asked]:
        """Those that there is an answer to, or nobody left to give one, once there are any; their processes end."""
        while under_way and not any(asked.answer is not None or asked.ended for asked in under_way):
            self._exchange(wait=True)
        for worker in self._workers:
            if worker.is_alive and not worker.asked:  # its only item is done
                os.kill(worker.pid, signal.SIGKILL)
                self._forget(worker)
        self._workers = [worker for worker in self._workers if worker.is_alive]
        return [asked for asked in under_way if asked.answer is not None or asked.ended]

    def answered(self, asked: _Asked) -> _Asked:
        """The same, once there is an answer, or nobody left to give one."""
        while asked.answer is None and not asked.ended:
            self._exchange(wait=True)
        return asked

    def _exchange(self, *, wait: bool) -> None:
        """Send and receive what can be."""
        for key, _events in self._selector.select(None if wait else 0):
            worker: _Worker = key.data
            if not worker.is_alive:
                continue  # the end of its other pipe came first
            if key.fd == worker.items:
                self._write(worker)
            elif not worker.receive():
                self._forget(worker)

    def _write(self, worker: _Worker) -> None:
        """Send what a pipe takes; the rest once it takes more."""
        done = worker.send()
        registered = worker.items in self._selector.get_map()
        if done and registered:
            self._selector.unregister(worker.items)
        elif not done and not registered:
            self._selector.register(worker.items, selectors.EVENT_WRITE, worker)

    def _forget(self, worker: _Worker) -> None:
        for end in (worker.items, worker.answers):
            if end in self._selector.get_map():
                self._selector.unregister(end)
        worker.end()

    def close(self) -> None:
        """End the processes, whatever they are at."""
        self._selector.close()
        for worker in self._workers:
            if worker.is_alive:
                os.kill(worker.pid, signal.SIGKILL)
        for worker in self._workers:
            if worker.is_alive:
                worker.end()


class _Buffer:
    """Bytes that come in pieces, and of which the last `left` have not come yet."""

    def __init__(self, size: int) -> None:
        self.content = bytearray(size)
        self.left = size

    def fill(self, pipe: int) -> bool:
        """Take what there is in a pipe; returns False at its end."""
        received = os.readv(pipe, [memoryview(self.content)[-self.left :]])
        self.left -= received
        return received > 0


class _Worker:
    """A forked process, and this side of its pipes: `items` goes there, `answers` comes back, in the same order.

    Raises:
        OSError, MemoryError: there is no process, memory or descriptor to spare for it.
    """

    def __init__(self, work: Callable[[Any], Any], others: Sequence[_Worker], sharing: int = 1) -> None:
        self.asked: deque[_Asked] = deque()
        self._to_send: deque[memoryview] = deque()
        self._length = _Buffer(_LENGTH.size)
        self._answer: _Buffer | None = None
        ends: list[int] = []
        try:
            for _pipe in ("items", "answers", "life"):
                ends += os.pipe()
            theirs, self.items, self.answers, back, life, self._life = ends
            for pipe in (self.items, back):
                with suppress(OSError):
                    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            os.set_blocking(self.items, False)
            os.set_blocking(self.answers, False)
            self.pid = os.fork()
        except BaseException:
            for end in ends:
                os.close(end)
            raise
        if not self.pid:
            try:
                _share_cores(sharing)
                _serve(work, theirs, back, life, [self, *others])
            finally:  # the other side is gone, or there is no memory: what is left undone is done elsewhere
                os._exit(1)
        self.is_alive = True
        for end in (theirs, back, life):  # so that the pipes end with the process
            os.close(end)

    def take(self, asked: _Asked) -> None:
        """Put an item into the queue of what is to be sent.

        Raises:
            Exception: it can't be pickled.
        """
        content = pickle.dumps(asked.item, pickle.HIGHEST_PROTOCOL)
        self._to_send += memoryview(_LENGTH.pack(len(content))), memoryview(content)
        self.asked.append(asked)

    def send(self) -> bool:
        """Send what the pipe takes; returns whether that is all. That the process has ended shows in its answers."""
        try:
            while self._to_send:
                first = self._to_send[0]
                sent = os.write(self.items, first)
                if sent < len(first):
                    self._to_send[0] = first[sent:]
                else:
                    self._to_send.popleft()
        except BlockingIOError:
            return False
        except BrokenPipeError:
            self._to_send.clear()
        return True

    def receive(self) -> bool:
        """Receive what there is of answers; returns whether the process goes on."""
        while True:
            buffer = self._answer or self._length
            try:
                if not buffer.fill(self.answers):
                    return False
            except BlockingIOError:
                return True
            if buffer.left:
                continue
            if self._answer is None:
                self._answer = _Buffer(*_LENGTH.unpack(self._length.content))
                self._length = _Buffer(_LENGTH.size)
            else:
                self.asked.popleft().answer = self._answer.content
                self._answer = None

    def end(self) -> None:
        """Clean up after a process that has ended or was killed; what it was asked for stays without an answer."""
        self.is_alive = False
        code = 0
        with suppress(ChildProcessError):
            code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        for number, asked in enumerate(self.asked):
            asked.ended, asked.ended_by = True, 0 if number else max(0, -code)
        self.asked.clear()
        self.close()

    def close(self) -> None:
        """Close this side of the pipes."""
        for end in (self.items, self.answers, self._life):
            os.close(end)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Keep signals back until a forked process does with them what it should, rather than what this one does."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# In the forked process


def _share_cores(sharing: int) -> None:
    """Make this process able to start processes of its own, of which there are fewer where others share the cores."""
    global _forking, _shared_by
    _forking = threading.Lock()  # the one that was inherited is held, and nobody here gives it back
    _shared_by *= sharing


def _serve(
    work: Callable[[Any], Any], items: int, answers: int, life: int, inherited: Iterable[_Worker]
) -> None:
    """Answer every item with whether the work raised an exception, and with that or its result."""
    for worker in inherited:
        worker.close()
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches every process: the first one ends the others
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    gc.freeze()  # what is inherited is no garbage: to look through it would copy its memory pages
    _end_with_the_other_side(life)
    with os.fdopen(items, "rb") as items_file, os.fdopen(answers, "wb") as answers_file:
        while length := items_file.read(_LENGTH.size):
            answer = _answer(work, items_file.read(_LENGTH.unpack(length)[0]))
            answers_file.write(_LENGTH.pack(len(answer)))
            answers_file.write(answer)
            answers_file.flush()


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


def _end_with_the_other_side(life: int) -> None:
    """End this process when the one that forked it is killed, rather than when it is done with its item.

    Nothing is ever written to the pipe: its end is all that the system has to signal, and the signal ends a process.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    with suppress(
        OSError
    ):  # where the system does not signal it, the end of the other pipes is noticed after the item
        fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([life], [], [], 0)[0]:
        os._exit(1)
