"""Measure a bench of two recipes on seven tasks: first without indexes and runs, then again without changes.

python benchmarks/bench.py --data DIR [--repeat 5]

DIR contains the folders nlps, checkthat, worldtree2019, worldtree2021 and smart.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TASKS = {
    "nlps": ("dev", "nlps"),
    "explanation-2019": ("dev", "worldtree2019"),
    "explanation-2021": ("dev", "worldtree2021"),
    "checkthat": ("training", "checkthat"),
    "smart-types-dbpedia": ("fold0", "smart"),
    "smart-types-wikidata": ("fold0", "smart"),
    "smart-relations-dbpedia": ("fold0", "smart"),
}
"""The split and the folder of each task."""


def bench_file(data: Path) -> str:
    """Return the bench file."""
    lines = ["[recipes.bm25]", "[recipes.neighbours]"]
    for task, (split, folder) in TASKS.items():
        lines += [f"[tasks.{task}]", f"splits = '{split}'", f"data = '{data / folder}'", "lenient = true"]
    return "\n".join(lines)


def measure(command: list[str]) -> tuple[float, float]:
    """Run a command; return its processor time and wall-clock time in seconds."""
    before, begin = os.times(), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4]), time.perf_counter() - begin


def main() -> None:
    """Print the medians of both measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    cold, warm = [], []
    for _ in range(arguments.repeat):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            file = folder / "bench.toml"
            file.write_text(bench_file(arguments.data.resolve()))
            command = [sys.executable, "-m", "searchapp", "bench", str(file), "--home", str(folder / "home")]
            cold.append(measure(command))
            warm.append(measure(command))
    for label, rounds in (("without indexes and runs", cold), ("without changes", warm)):
        processors, clock = map(statistics.median, zip(*rounds, strict=True))
        print(f"{label}: {processors:.2f} s processor time, {clock:.2f} s wall-clock time")
    print(f"processes ready to run: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
