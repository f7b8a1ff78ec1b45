"""Progress reports for the command line, for screens, or without a display."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

# Receives the number of further items; a negative one when work restarts.
Advance = Callable[[int], None]

# Receives a sentence for the waiting user: the reason and the time limit.
Notify = Callable[[str], None]


def no_progress(_done: int) -> None:
    """Ignore progress."""


def no_notice(_sentence: str) -> None:
    """Ignore a notice."""


def byte_count(number: int) -> str:
    """Return a number of bytes in words.

    >>> byte_count(1), byte_count(512), byte_count(2_499_535)
    ('1 byte', '512 bytes', '2.5 MB')
    """
    if number < 1000:
        return f"{number} byte{'' if number == 1 else 's'}"
    size, units = number / 1000, iter("kMGTP")
    unit = next(units)
    while size >= 1000:
        size, unit = size / 1000, next(units)
    return f"{size:,.1f} {unit}B"


def progress_text(label: str, done: int, total: int | None, *, in_bytes: bool = False) -> str:
    """Return the progress of a stage in words.

    >>> progress_text("indexing", 500, 2000), progress_text("reading documents", 500, None)
    ('indexing 25%', 'reading documents 500')
    >>> progress_text("fetching", 1_200_000, 5_000_000, in_bytes=True)
    'fetching 1.2 MB of 5.0 MB'
    """
    if in_bytes:
        return f"{label} {byte_count(done)}" + (f" of {byte_count(total)}" if total else "")
    return f"{label} {min(done, total) / total:.0%}" if total else f"{label} {done:,}"


# The interval of progress reports in words.
REPORT_SECONDS = 0.1


class WorkStopped(Exception):
    """An `Advance`, or the beginning of a stage, cancels the work; unfinished results are discarded."""


class Progress(Protocol):
    """Shows the stages of work."""

    def stage(
        self, label: str, total: int | None = None, *, in_bytes: bool = False
    ) -> AbstractContextManager[Advance]:
        """Begin a stage ("indexing") of `total` items, or bytes, and yield the function that counts them."""


class TextProgress:
    """Reports progress in words; `tell` receives them in the working thread."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell

    @contextmanager
    def stage(self, label: str, total: int | None = None, *, in_bytes: bool = False) -> Iterator[Advance]:
        done, reported = 0, 0.0

        def advance(further: int) -> None:
            nonlocal done, reported
            done += further
            now = time.monotonic()
            if now - reported >= REPORT_SECONDS:
                reported = now
                self._tell(progress_text(label, done, total, in_bytes=in_bytes))

        self._tell(f"{label} …")
        yield advance


# Receives the stage, the number of items (or bytes) done, and their total, if known.
Callback = Callable[[str, int, int | None], object]


class CallbackProgress:
    """Reports numbers to a function, in the working thread."""

    def __init__(self, report: Callback) -> None:
        self._report = report

    @contextmanager
    def stage(
        self,
        label: str,
        total: int | None = None,
        *,
        in_bytes: bool = False,  # noqa: ARG002
    ) -> Iterator[Advance]:
        done = 0

        def advance(further: int) -> None:
            nonlocal done
            done += further
            self._report(label, done, total)

        self._report(label, 0, total)
        yield advance


class SilentProgress:
    """Reports nothing."""

    @contextmanager
    def stage(
        self,
        label: str,  # noqa: ARG002
        total: int | None = None,  # noqa: ARG002
        *,
        in_bytes: bool = False,  # noqa: ARG002
    ) -> Iterator[Advance]:
        yield no_progress
