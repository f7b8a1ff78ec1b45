"""A forked process that works on items, and the pipes to it and back.

It ends with this process, whatever ends this one, and begins with what this one has in its memory.
"""

from __future__ import annotations

import fcntl
import gc
import os
import pickle
import select
import signal
import struct
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

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
