"""How the progress of work is reported, to be shown by a terminal, the interface, or nobody."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Advance = Callable[[int], None]
"""Called with the number of further items done, for a progress bar; a negative one when work is begun again."""

Notify = Callable[[str], None]
"""Called with a sentence for the person who waits: what for, and how long at most."""


def no_progress(_done: int) -> None:
    """The `Advance` of a caller that shows no progress."""


def no_notice(_sentence: str) -> None:
    """The `Notify` of a caller that nobody watches."""


def progress_text(label: str, done: int, total: int | None, *, in_bytes: bool = False) -> str:
    """How far a stage is, in words.

    >>> progress_text("indexing", 500, 2000), progress_text("reading documents", 500, None)
    ('indexing 25%', 'reading documents 500')
    """
    if total:
        return f"{label} {min(done, total) / total:.0%}"
    return f"{label} …" if in_bytes else f"{label} {done:,}"


SAID_SECONDS = 0.1
"""How often it is said in words how far a stage is."""


class WorkStopped(Exception):
    """Raised by an `Advance`, or at the beginning of a stage, to stop the work: somebody does not want it any more.

    What is half done is given up as after any other error.
    """


class Progress(Protocol):
    """Shows the stages of a piece of work."""

    def stage(
        self, label: str, total: int | None = None, *, in_bytes: bool = False
    ) -> AbstractContextManager[Advance]:
        """A stage ("indexing") of `total` items, or bytes; what it gives is called with each number of them done."""


class TextProgress:
    """A `Progress` that says in words how far it is; `tell` is called with them, in the thread that works."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell

    @contextmanager
    def stage(self, label: str, total: int | None = None, *, in_bytes: bool = False) -> Iterator[Advance]:
        done, told = 0, 0.0

        def advance(further: int) -> None:
            nonlocal done, told
            done += further
            now = time.monotonic()
            if now - told >= SAID_SECONDS:
                told = now
                self._tell(progress_text(label, done, total, in_bytes=in_bytes))

        self._tell(f"{label} …")
        yield advance


class SilentProgress:
    """A `Progress` that shows nothing."""

    @contextmanager
    def stage(
        self,
        label: str,  # noqa: ARG002
        total: int | None = None,  # noqa: ARG002
        *,
        in_bytes: bool = False,  # noqa: ARG002
    ) -> Iterator[Advance]:
        yield no_progress
