"""Somebody who waits for an engine's answer, at a screen, and may want another one before it comes.

A batch of topics has patience: its requests are repeated for minutes, so that it comes to its end. Who looks at a
screen wants to hear soon what is wrong, and has typed on before a request is done that hangs:

    waiting = Waiting(request_seconds=10, patience=2)
    with waiting:                         in the thread that asks
        index.find(body)
    waiting.leave()                       in any thread: what is asked from here on raises `NoLongerWanted`

It holds for all that the thread asks of any engine in the block, however deep; but what is done `at_leisure` comes to
its end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from types import TracebackType


class NoLongerWanted(Exception):
    """Whoever asked wants no answer any more; nobody is told."""


class Waiting:
    """Whoever waits.

    Args:
        request_seconds: what a server is given for one request, if it would be given more
        patience: how many seconds a request is repeated at most
    """

    def __init__(self, request_seconds: float, patience: float) -> None:
        self.request_seconds = request_seconds
        self.patience = patience
        self._has_left = threading.Event()
        self._token: Token[Waiting | None] | None = None

    def __enter__(self) -> Waiting:
        self._token = _WAITING.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._token is not None
        _WAITING.reset(self._token)

    def leave(self) -> None:
        """Want no answer any more."""
        self._has_left.set()

    @property
    def has_left(self) -> bool:
        return self._has_left.is_set()

    def pause(self, seconds: float) -> None:
        """Let some time go by before another attempt, as long as somebody waits for that."""
        self._has_left.wait(seconds)


_WAITING: ContextVar[Waiting | None] = ContextVar("waiting", default=None)


def who_waits() -> Waiting | None:
    """Whoever waits for what this thread asks; None where that is nobody."""
    return _WAITING.get()


def require_wanted() -> None:
    """Go on only if the answer is still wanted.

    Raises:
        NoLongerWanted: it is not.
    """
    waiting = _WAITING.get()
    if waiting is not None and waiting.has_left:
        raise NoLongerWanted


@contextmanager
def at_leisure(request_seconds: float = 30.0) -> Iterator[None]:
    """Do something that comes to its end also when whoever waits for it leaves: others will want it too.

    A server is given this many seconds for a request; requests are repeated no longer than otherwise.
    """
    waiting = _WAITING.get()
    if waiting is None:
        yield
    else:
        with Waiting(request_seconds, waiting.patience):
            yield
