"""Rounding of dates to the beginnings of intervals, in a time zone.

Source: org.elasticsearch.common.Rounding.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from searchapp.lucene.dataclass import dataclass
from searchapp.lucene.errors import invalid
from searchapp.lucene.index import dates
from searchapp.lucene.index.arrays import Int64s

# Units of calendars, by their names and abbreviations.
CALENDAR = {
    **dict.fromkeys(("second", "1s"), "s"),
    **dict.fromkeys(("minute", "1m"), "m"),
    **dict.fromkeys(("hour", "1h"), "h"),
    **dict.fromkeys(("day", "1d"), "d"),
    **dict.fromkeys(("week", "1w"), "w"),
    **dict.fromkeys(("month", "1M"), "M"),
    **dict.fromkeys(("quarter", "1q"), "q"),
    **dict.fromkeys(("year", "1y"), "y"),
}
_FIXED = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MONTHS = {"M": 1, "q": 3, "y": 12}
_DAYS = {"d": 1, "w": 7}
_DAY = 86_400_000
_WEEKDAY = 3  # days from a Monday to 1970-01-01


def milliseconds(text: str, label: str) -> int:
    """Read a duration such as `12h` (`TimeValue`)."""
    match = re.fullmatch(r"[ \t]*(\d{1,15}) *(ms|s|m|h|d)[ \t]*", text, re.ASCII)
    if not match:
        raise invalid(f"{label} must be a duration such as 12h, not {text!r}")
    return int(match[1]) * _FIXED[match[2]]


@dataclass(frozen=True, slots=True)
class Rounding:
    """Intervals of a unit of the calendar, or of a fixed number of milliseconds."""

    unit: str | int
    zone: dates.Zone

    def rounded(self, instants: Int64s) -> Int64s:
        """Return the beginnings of the intervals that contain dates, in milliseconds since 1970."""
        if isinstance(self.zone, int):
            offset = self.zone * 1000
            return self._floor(instants + offset) - offset
        distinct, inverse = np.unique(instants, return_inverse=True)
        beginnings = np.array([self._in_region(instant) for instant in distinct.tolist()], np.int64)
        return np.asarray(beginnings[inverse])

    def next(self, beginning: int) -> int:
        """Return the beginning of the next interval."""
        if isinstance(self.unit, int):
            if isinstance(self.zone, int):
                return beginning + self.unit
            return dates.instant_of(dates.local_of(beginning, self.zone) + self.unit, self.zone)
        if self.unit not in (*_DAYS, *_MONTHS):
            return self.round(beginning + _FIXED[self.unit])
        local = dates.local_of(beginning, self.zone)
        if self.unit in _DAYS:
            return dates.instant_of(self._floor_one(local) + _DAYS[self.unit] * _DAY, self.zone)
        month = np.datetime64(self._floor_one(local), "ms").astype("M8[M]") + _MONTHS[self.unit]
        return dates.instant_of(int(month.astype("M8[ms]").astype(np.int64)), self.zone)

    def round(self, instant: int) -> int:
        return int(self.rounded(np.array([instant], np.int64))[0])

    def _floor_one(self, local: int) -> int:
        return int(self._floor(np.array([local], np.int64))[0])

    def _floor(self, local: Int64s) -> Int64s:
        """Round local times, in milliseconds."""
        if self.unit in _MONTHS:
            months = local.view("M8[ms]").astype("M8[M]").astype(np.int64)
            first = months // _MONTHS[self.unit] * _MONTHS[self.unit]
            return np.asarray(first.astype("M8[M]").astype("M8[ms]").astype(np.int64))
        interval: Any = (
            self.unit if isinstance(self.unit, int) else _DAYS.get(self.unit, 0) * _DAY or _FIXED[self.unit]
        )
        start = -_WEEKDAY * _DAY if self.unit == "w" else 0
        return np.asarray((local - start) // interval * interval + start)

    def _in_region(self, instant: int) -> int:
        local = self._floor_one(dates.local_of(instant, self.zone))
        if self.unit in (*_DAYS, *_MONTHS):
            return dates.instant_of(local, self.zone)
        return dates.instant_of(local, self.zone, before=instant)
