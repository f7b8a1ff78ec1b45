"""Comparing two runs of a million lines: what each part takes.

python benchmarks/compare.py RUN RUN [--repeat 5] [--beside .../bin/python]
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import statistics
import subprocess
import sys
import time
from pathlib import Path

from searchapp.runs.directory import read_manifest

PARTS = {
    "reading the runs": ("directory.py", "read"),
    "scoring them": ("comparison.py", "score_run"),
    "significance": ("significance.py", "pair_tests"),
    "overlap": ("overlap.py", "overlap"),
    "topics": ("compare.py", "topic_differences"),
}
"""The function of each part, whose time is that of all that it calls."""

ONE = """
import json, os, sys, time
from pathlib import Path
begun = time.perf_counter()
from searchapp.app.compare import CompareRequest, compare
from searchapp.app.evaluate import GoldSource
found = compare(CompareRequest(tuple(map(Path, sys.argv[1:])), GoldSource()))
clock = time.perf_counter() - begun
used = os.times()
print(json.dumps([sum(used[:4]), clock, found.measures[0].topics]))
"""
"""A comparison: seconds of all processors, those of the processes that it started too, and seconds by the clock."""


def main() -> None:
    """Print the seconds of whole comparisons, each in a process of its own, and the share of each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs=2)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--beside", type=Path, help="Python of another installation, which is measured in turn."
    )
    arguments = parser.parse_args()
    names = [str(run.resolve()) for run in arguments.runs]
    pythons = [Path(sys.executable), *filter(None, [arguments.beside])]
    rounds: dict[Path, list[list[float]]] = {python: [] for python in pythons}
    for _ in range(arguments.repeat):
        for python, measured in rounds.items():
            command = [str(python), "-c", ONE, *names]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            measured.append(json.loads(done.stdout))
    lines = sum(read_manifest(run).hits for run in arguments.runs)
    for python, measured in rounds.items():
        processors, clock = (statistics.median(one[place] for one in measured) for place in (0, 1))
        print(
            f"{python}: {lines:,} lines, {measured[0][2]:,} topics: {processors:.2f} s of the processors, "
            f"{clock:.2f} s by the clock; load {os.getloadavg()[0]:.1f}"
        )
    print_parts(arguments.runs)


def print_parts(runs: list[Path]) -> None:
    """Print what each part takes of a comparison under a profiler, which slows calls down: shares, not seconds."""
    from searchapp import processes
    from searchapp.app.compare import CompareRequest, compare
    from searchapp.app.evaluate import GoldSource

    processes.cores = lambda: 1  # all of it here, where the profiler sees it
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    compare(CompareRequest(tuple(runs), GoldSource()))
    profile.disable()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = sum(own for _, _, own, _, _ in stats.values())
    for part, (file, name) in PARTS.items():
        taken = sum(
            cumulative
            for (where, _, function), (_, _, _, cumulative, _) in stats.items()
            if function == name and Path(where).name == file and "searchapp" in where
        )
        print(f"  {part:<18} {taken / total:5.0%}")


if __name__ == "__main__":
    main()
