"""Comparing two runs of a million lines: what each part takes.

python benchmarks/compare.py RUN RUN [--repeat 3]
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import statistics
import subprocess
import sys
import time
from pathlib import Path

PARTS = {
    "reading the runs": ("directory.py", "read"),
    "scoring them": ("evaluate.py", "evaluate_run"),
    "significance": ("significance.py", "pair_tests"),
    "overlap": ("overlap.py", "overlap"),
    "topics": ("compare_where.py", "topic_differences"),
}
"""The function of each part, whose time is that of all that it calls."""

ONE = """
import json, sys, time
from pathlib import Path
begun = time.process_time(), time.perf_counter()
from searchapp.app.compare import CompareRequest, compare
from searchapp.app.evaluate import GoldSource
found = compare(CompareRequest(tuple(map(Path, sys.argv[1:])), GoldSource()))
print(json.dumps([time.process_time() - begun[0], time.perf_counter() - begun[1], found.measures[0].topics]))
"""


def main() -> None:
    """Print the seconds of whole comparisons, each in a process of its own, and the share of each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs=2)
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    names = [str(run) for run in arguments.runs]
    rounds = []
    for _ in range(arguments.repeat):
        done = subprocess.run([sys.executable, "-c", ONE, *names], check=True, capture_output=True, text=True)
        rounds.append(json.loads(done.stdout))
    processor, clock = (statistics.median(one[place] for one in rounds) for place in (0, 1))
    lines = sum((run / "run.trec").read_bytes().count(b"\n") for run in arguments.runs)
    print(
        f"{lines:,} lines, {rounds[0][2]:,} topics: {processor:.2f} s of the processor, {clock:.2f} s by the clock"
    )
    print_parts(arguments.runs)


def print_parts(runs: list[Path]) -> None:
    """Print what each part takes of a comparison under a profiler, which slows calls down: shares, not seconds."""
    from searchapp.app.compare import CompareRequest, compare
    from searchapp.app.evaluate import GoldSource

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
