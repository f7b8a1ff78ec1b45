"""What processes have used: seconds at work, and memory."""

from __future__ import annotations

import resource
import sys

_TO_MIB = 1 / (2**20 if sys.platform == "darwin" else 1024)


def work() -> float:
    """Seconds that this process and those that it has started and that have ended were at work."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(map(work_of, used))


def work_of(usage: resource.struct_rusage) -> float:
    """Seconds of all processors that were used."""
    return usage.ru_utime + usage.ru_stime


def peak_of(usage: resource.struct_rusage) -> float:
    """The greatest resident set, in MiB; of children that of the largest one."""
    return usage.ru_maxrss * _TO_MIB


def peak() -> float:
    """The greatest resident set of this process so far, in MiB."""
    return peak_of(resource.getrusage(resource.RUSAGE_SELF))
