"""Reports of progress, for the command line, the screens, or no display."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Advance = Callable[[int], None]
"""Called with the number of further items done, for a progress bar; a negative one when work restarts."""

Notify = Callable[[str], None]
"""Called with a sentence for the waiting user: the reason, and the time limit."""


def no_progress(_done: int) -> None:
    """The `Advance` of a caller without a display."""


def no_notice(_sentence: str) -> None:
    """The `Notify` of a caller without a display."""


def progress_text(label: str, done: int, total: int | None, *, in_bytes: bool = False) -> str:
    """Return the progress of a stage in words.

    >>> progress_text("indexing", 500, 2000), progress_text("reading documents", 500, None)
    ('indexing 25%', 'reading documents 500')
    """
    if total:
        return f"{label} {min(done, total) / total:.0%}"
    return f"{label} …" if in_bytes else f"{label} {done:,}"


SAID_SECONDS = 0.1
"""The interval of progress reports in words."""


class WorkStopped(Exception):
    """Raised by an `Advance`, or at the beginning of a stage, to cancel the work; unfinished results are discarded."""


class Progress(Protocol):
    """Shows the stages of some work."""

    def stage(
        self, label: str, total: int | None = None, *, in_bytes: bool = False
    ) -> AbstractContextManager[Advance]:
        """Begin a stage ("indexing") of `total` items, or bytes, and yield the function that counts them."""


class TextProgress:
    """A `Progress` in words; `tell` receives them in the working thread."""

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
    """A `Progress` without a display."""

    @contextmanager
    def stage(
        self,
        label: str,  # noqa: ARG002
        total: int | None = None,  # noqa: ARG002
        *,
        in_bytes: bool = False,  # noqa: ARG002
    ) -> Iterator[Advance]:
        yield no_progress
