"""Work on all cores, in processes forked from this one.

Analyzing a text, gathering its terms and scoring a run is Python, which one process does on one core. Forked
processes begin with the open index, or the rankings, in their memory at no cost, and send back numbers. `spread`
shares out many small items, `one_each` gives every item a process of its own; where processes can't be forked, or
there is one core, this process does the work.

Each process has its own pipes, which this process serves whenever a result is asked for; there are neither threads nor
locks, so nothing stays locked when a process ends or memory runs out. (The standard library's pool may wait for ever
once one of its processes has ended, in Python 3.11 nearly always.) A forked process ends with this one.
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

PIPE_BYTES = 1 << 19
"""What a pipe shall hold, so that nobody waits while the other side is busy: two answers of 64 topics with 500 hits
each. The system may allow less, and bounds what all pipes of a user hold together."""

_LENGTH = struct.Struct("!Q")
"""What precedes an item or an answer in a pipe."""

_forking = threading.Lock()
"""Held while processes are forked: those of another pool would inherit both ends of a pipe, and keep them open."""

_shared_by = 1
"""How many processes share the cores: those of `processes.one_each` do, and what they start."""


def cores() -> int:
    """The cores that this process may use."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, there // _shared_by)


def can_fork() -> bool:
    """Forking is safe on Linux; on macOS the system's libraries are not made for it."""
    return sys.platform == "linux"


@dataclass(slots=True)
class Asked:
    """An item, and the answer to it; without one, whether its process has ended, and by which signal."""

    item: Any
    answer: bytearray | None = None
    ended: bool = False
    ended_by: int = 0


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


class Forked:
    """A forked process, and this side of its pipes: `items` goes there, `answers` comes back, in the same order.

    Raises:
        OSError, MemoryError: there is no process, memory or descriptor to spare for it.
    """

    def __init__(self, work: Callable[[Any], Any], others: Sequence[Forked], sharing: int = 1) -> None:
        self.asked: deque[Asked] = deque()
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

    def take(self, asked: Asked) -> None:
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
def forking() -> Iterator[None]:
    """While processes are forked: nobody else of this one forks, and signals wait."""
    with _forking, _signals_held(), warnings.catch_warnings():
        # Python 3.12 warns of threads that other libraries have started: those of NumPy's BLAS, which is made to be
        # forked. The processes use neither it nor locks that another thread could hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


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
    work: Callable[[Any], Any], items: int, answers: int, life: int, inherited: Iterable[Forked]
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


__all__ = ["cores", "one_each", "spread"]

T = TypeVar("T")
R = TypeVar("R")

WORTH_IT = 4
"""Items from which on the start of the processes pays; an item is a batch of topics or documents."""

IN_FLIGHT = 3
"""Items for each process that are under way or wait for their turn."""

BESIDE = 2
"""The same for each process while this one is at work as well: what it is at, and what comes next."""

LAST, SHARES = 3, 6
"""The last LAST batches are cut into smaller ones: each is one of SHARES parts of what is left."""

CRASHES = frozenset({signal.SIGBUS, signal.SIGSEGV, signal.SIGILL, signal.SIGFPE, signal.SIGABRT})
"""Signals that end a process for what it does, which would end this one as well; others come from outside."""


def spread(
    work: Callable[[T], R],
    items: Iterable[T],
    processes: int | None = None,
    worth_it: int = WORTH_IT,
    *,
    here: bool = False,
) -> Iterator[R]:
    """What `work` makes of each item, in the order of the items, which are drawn as needed.

    Fewer items than `worth_it` are worked on here. If `here`, this process is always one of the `processes`: it works
    on an item whenever the next result is not there yet. One process less is forked, which counts where all of the work
    takes a fraction of a second; but what crashes a process may crash this one.

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
    pool = _Pool.of(work, count - here) if count > 1 and len(first) == worth_it and can_fork() else None
    if pool is None:
        yield from map(work, waiting)
        return
    try:
        yield from (_beside if here else _by_others)(work, waiting, pool, IN_FLIGHT * count)
    finally:
        pool.close()


def in_batches(items: Iterable[T], size: int, least: int, processes: int | None = None) -> Iterator[list[T]]:
    """Batches of some items for `spread`, of which the last ones are smaller, but not below `least`: so several
    processes end at about the same time.

    The first WORTH_IT batches and one more, which may be worked on before, are never cut: `spread` counts them.
    """
    waiting = iter(items)
    least = least if (processes or cores()) > 1 else size
    ahead = list(islice(waiting, LAST * size))
    made = 0
    while ahead:
        if len(ahead) == LAST * size or made <= WORTH_IT:
            count = size
        else:
            count = min(size, max(least, -(-len(ahead) // SHARES)))
            if len(ahead) <= size and len(ahead) - count < least:
                count = len(ahead)
        yield ahead[:count]
        made += 1
        ahead = [*ahead[count:], *islice(waiting, count)]


def _by_others(work: Callable[[T], R], waiting: Iterator[T], pool: _Pool, most: int) -> Iterator[R]:
    """What a pool makes of each item; at most so many are under way."""
    under_way: deque[Asked] = deque()
    for item in waiting:
        under_way.append(pool.ask(item))
        if len(under_way) == most:
            yield _result(work, pool.answered(under_way.popleft()))
    while under_way:
        yield _result(work, pool.answered(under_way.popleft()))


def _beside(work: Callable[[T], R], waiting: Iterator[T], pool: _Pool, most: int) -> Iterator[R]:
    """What a pool and this process make of each item; this one makes no result once so many are under way."""
    under_way: deque[Asked | _Done] = deque()
    is_more = True
    while is_more or under_way:
        theirs = [pool.ask(item) for item in islice(waiting, pool.room)]
        under_way += theirs
        first = under_way[0] if under_way else None
        is_ready = isinstance(first, _Done) or (first is not None and pool.is_answered(first))
        if not is_ready and is_more and len(under_way) < most:
            mine = [_Done.of(work, item) for item in islice(waiting, 1)]
            under_way += mine
            is_more = bool(mine)
        elif first is not None:
            if not is_more:
                pool.let_go()
            under_way.popleft()
            yield first.result() if isinstance(first, _Done) else _result(work, pool.answered(first))


@dataclass(frozen=True, slots=True)
class _Done:
    """What work has come to that was done here before its turn: its result, or an exception that `is_raised` then."""

    outcome: Any
    is_raised: bool

    @classmethod
    def of(cls, work: Callable[[T], Any], item: T) -> _Done:
        try:
            return cls(work(item), is_raised=False)
        except Exception as error:
            return cls(error, is_raised=True)

    def result(self) -> Any:
        if self.is_raised:
            raise self.outcome
        return self.outcome


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
    under_way: list[Asked] = []
    try:
        while waiting or under_way:
            while waiting and len(under_way) < count:
                item = waiting.popleft()
                asked = pool.ask_new(work, item, count) if can_fork() else None
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


def _outcome(asked: Asked) -> Any:
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


def _result(work: Callable[[T], R], asked: Asked) -> R:
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


class _Pool:
    """Processes that work on items, each on one after the other."""

    def __init__(self) -> None:
        self._workers: list[Forked] = []
        self._selector = selectors.PollSelector()

    @classmethod
    def of(cls, work: Callable[[Any], Any], count: int) -> _Pool | None:
        """Processes that do some work; None if the system has none to spare, or no memory for them."""
        pool = cls()
        try:
            with forking():
                for _ in range(count):
                    pool._workers.append(Forked(work, pool._workers))
            for worker in pool._workers:
                pool._selector.register(worker.answers, selectors.EVENT_READ, worker)
        except (OSError, MemoryError):
            pool.close()
            return None
        return pool

    def ask(self, item: Any) -> Asked:
        """Have the process work on an item that has the fewest to work on."""
        asked = Asked(item)
        alive = [worker for worker in self._workers if worker.is_alive]
        if alive:
            worker = min(alive, key=lambda worker: len(worker.asked))
            worker.take(asked)
            self._write(worker)
            self._exchange(wait=False)
        else:
            asked.ended = True
        return asked

    @property
    def room(self) -> int:
        """How many items the processes can be asked for so that each has `BESIDE` of them."""
        return sum(max(0, BESIDE - len(worker.asked)) for worker in self._workers if worker.is_alive)

    def let_go(self) -> None:
        """End processes that have nothing to do, without waiting for that: the system takes its time to clean up."""
        for worker in self._workers:
            if worker.is_alive and not worker.asked:
                os.kill(worker.pid, signal.SIGKILL)

    def is_answered(self, asked: Asked) -> bool:
        """Whether there is an answer, or nobody left to give one."""
        if asked.answer is None and not asked.ended:
            self._exchange(wait=False)
        return asked.answer is not None or asked.ended

    def ask_new(self, work: Callable[[Any], Any], item: Any, sharing: int) -> Asked | None:
        """Have a new process work on an item and on nothing else; None if the system has none to spare for it.

        `sharing` is how many processes share the cores.
        """
        try:
            with forking():
                worker = Forked(work, self._workers, sharing)
        except (OSError, MemoryError):
            return None
        self._workers.append(worker)
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)
        asked = Asked(item)
        worker.take(asked)
        self._write(worker)
        return asked

    def any_answered(self, under_way: Sequence[Asked]) -> list[Asked]:
        """Those that there is an answer to, or nobody left to give one, once there are any; their processes end."""
        while under_way and not any(asked.answer is not None or asked.ended for asked in under_way):
            self._exchange(wait=True)
        for worker in self._workers:
            if worker.is_alive and not worker.asked:  # its only item is done
                os.kill(worker.pid, signal.SIGKILL)
                self._forget(worker)
        self._workers = [worker for worker in self._workers if worker.is_alive]
        return [asked for asked in under_way if asked.answer is not None or asked.ended]

    def answered(self, asked: Asked) -> Asked:
        """The same, once there is an answer, or nobody left to give one."""
        while asked.answer is None and not asked.ended:
            self._exchange(wait=True)
        return asked

    def _exchange(self, *, wait: bool) -> None:
        """Send and receive what can be."""
        for key, _events in self._selector.select(None if wait else 0):
            worker: Forked = key.data
            if not worker.is_alive:
                continue  # the end of its other pipe came first
            if key.fd == worker.items:
                self._write(worker)
            elif not worker.receive():
                self._forget(worker)

    def _write(self, worker: Forked) -> None:
        """Send what a pipe takes; the rest once it takes more."""
        done = worker.send()
        registered = worker.items in self._selector.get_map()
        if done and registered:
            self._selector.unregister(worker.items)
        elif not done and not registered:
            self._selector.register(worker.items, selectors.EVENT_WRITE, worker)

    def _forget(self, worker: Forked) -> None:
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
