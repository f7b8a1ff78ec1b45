"""How fast somebody judges, by the times of their judgments."""

from __future__ import annotations

import itertools
import statistics
from bisect import insort
from collections.abc import Iterable, Iterator
from datetime import datetime

from searchapp.judging.events import Action, Event

BREAK_SECONDS = 300.0
"""A longer time between two judgments is a break, and says nothing about pace."""
AT_ONCE_SECONDS = 0.05
"""What comes faster was given to several documents by one key."""
RECENT = 50
"""How many judgments the pace of this moment goes by."""


def seconds_each(moments: Iterable[datetime]) -> float | None:
    """The median time from one judgment to the next, in seconds; None without two in a row.

    Breaks are left out, and what was given to several documents at once counts once.
    """
    working = [gap for gap in _gaps(sorted(moments, reverse=True)) if gap <= BREAK_SECONDS]
    return statistics.median(working) if working else None


def _gaps(moments: Iterable[datetime]) -> Iterator[float]:
    """The seconds between what was not said at once, the latest moment first."""
    gaps = ((later - earlier).total_seconds() for later, earlier in itertools.pairwise(moments))
    return (gap for gap in gaps if gap > AT_ONCE_SECONDS)


def tells_pace(event: Event) -> bool:
    """Whether an event is a judgment of somebody who had the document before them."""
    return event.action in (Action.grade, Action.cant_tell) and event.rank is not None


class Pace:
    """How fast somebody judges at the moment, after what they judged at some moments before."""

    def __init__(self, moments: Iterable[datetime] = ()) -> None:
        self._moments = sorted(moments)

    def add(self, event: Event) -> None:
        """Add an event, whenever it was."""
        if tells_pace(event):
            insort(self._moments, event.order[0])

    @property
    def seconds(self) -> float | None:
        """The median time from one of the latest judgments to the next, in seconds; None without two in a row."""
        recent = itertools.islice(_gaps(reversed(self._moments)), RECENT)
        working = [gap for gap in recent if gap <= BREAK_SECONDS]
        return statistics.median(working) if working else None


def duration(seconds: float) -> str:
    """A time as people say it, in one or two units.

    >>> [duration(seconds) for seconds in (4.44, 59.9, 61, 3599, 3600, 4000, 36_000, 200_000)]
    ['4.4 s', '60 s', '1 min', '60 min', '1 h', '1 h 7 min', '10 h', '2 days']
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours} h {minutes} min" if minutes and hours < 10 else f"{hours} h"
    return f"{seconds / 86_400:.0f} days"
