"""What scripts that measure share: their command line, and what processes have used of time and memory."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

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


class Used(NamedTuple):
    """What a process took: seconds by the clock, those of all processors, and its peak memory in MiB."""

    seconds: float
    work: float
    mib: float


def measured(command: Sequence[object], **options: Any) -> Used:
    """Run a command to its end, with further options of `subprocess.Popen`.

    Raises:
        SystemExit: it failed
    """
    begin = time.perf_counter()
    process = subprocess.Popen(list(map(str, command)), **options)
    _pid, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command[:6]))} ended with {process.returncode}")
    return Used(seconds, work_of(usage), peak_of(usage))


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """The parser of a script whose description is its docstring, in its own lines."""
    formatter = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=description, formatter_class=formatter)
