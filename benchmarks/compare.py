"""Measure the comparison of two runs, and the share of each part.

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
"""Module and function of each part; its time includes called functions."""

COMPARE = """
import json, os, sys, time
from pathlib import Path
begin = time.perf_counter()
from searchapp.app.compare import CompareRequest, compare
from searchapp.app.evaluate import GoldSource
comparison = compare(CompareRequest(tuple(map(Path, sys.argv[1:])), GoldSource()))
clock = time.perf_counter() - begin
times = os.times()
print(json.dumps([sum(times[:4]), clock, comparison.measures[0].topics]))
"""
"""Prints processor time including children and wall-clock time of a comparison in seconds, and the topics."""


def main() -> None:
    """Print the seconds of comparisons, each in a separate process, and the share of each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs=2)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--beside", type=Path, help="Python of another installation to measure in turn")
    arguments = parser.parse_args()
    names = [str(run.resolve()) for run in arguments.runs]
    pythons = [Path(sys.executable), *filter(None, [arguments.beside])]
    rounds: dict[Path, list[list[float]]] = {python: [] for python in pythons}
    for _ in range(arguments.repeat):
        for python, measured in rounds.items():
            command = [str(python), "-c", COMPARE, *names]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            measured.append(json.loads(done.stdout))
    lines = sum(read_manifest(run).hits for run in arguments.runs)
    for python, measured in rounds.items():
        processors, clock, _ = map(statistics.median, zip(*measured, strict=True))
        print(
            f"{python}: {lines:,} lines, {measured[0][2]:,} topics: {processors:.2f} s processor time, "
            f"{clock:.2f} s wall-clock time; load {os.getloadavg()[0]:.1f}"
        )
    print_parts(arguments.runs)


def print_parts(runs: list[Path]) -> None:
    """Print the share of each part under a profiler, which slows calls down, so that seconds are not comparable."""
    from searchapp import processes
    from searchapp.app.compare import CompareRequest, compare
    from searchapp.app.evaluate import GoldSource

    processes.cores = lambda: 1  # the profiler only sees this process
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    compare(CompareRequest(tuple(runs), GoldSource()))
    profile.disable()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = sum(own for _, _, own, _, _ in stats.values())
    for part, (file, name) in PARTS.items():
        seconds = sum(
            cumulative
            for (path, _, function), (_, _, _, cumulative, _) in stats.items()
            if function == name and Path(path).name == file and "searchapp" in path
        )
        print(f"  {part:<18} {seconds / total:5.0%}")


if __name__ == "__main__":
    main()
