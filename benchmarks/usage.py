"""Command lines of benchmarks, and processor time and memory of processes."""

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


def cpu_seconds() -> float:
    """Return the processor time of this process and its ended children."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(map(cpu_seconds_of, usages))


def cpu_seconds_of(usage: resource.struct_rusage) -> float:
    """Return the processor time in seconds."""
    return usage.ru_utime + usage.ru_stime


def peak_mib_of(usage: resource.struct_rusage) -> float:
    """Return the peak resident set in MiB; for children, that of the largest one."""
    return usage.ru_maxrss * _TO_MIB


def peak_mib() -> float:
    """Return the peak resident set of this process in MiB."""
    return peak_mib_of(resource.getrusage(resource.RUSAGE_SELF))


class Usage(NamedTuple):
    """Wall-clock time and processor time in seconds, and peak memory in MiB, of a process."""

    seconds: float
    cpu_seconds: float
    mib: float


def run_measured(command: Sequence[object], **options: Any) -> Usage:
    """Run a command with options of `subprocess.Popen`, and measure it.

    Raises:
        SystemExit: the command failed
    """
    begin = time.perf_counter()
    process = subprocess.Popen(list(map(str, command)), **options)
    _pid, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command[:6]))} ended with {process.returncode}")
    return Usage(seconds, cpu_seconds_of(usage), peak_mib_of(usage))


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that shows the docstring of a script with its lines as description."""
    formatter = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=description, formatter_class=formatter)
