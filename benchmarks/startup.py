"""How long `searchapp --version` takes, as a multiple of `python -c "import typer"`.

    python benchmarks/startup.py [--runs 10]

The two commands run in turn, so that a machine whose speed drifts slows both; medians and their ratio are
printed. The aim is a ratio of at most 3.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

SEARCHAPP = [str(Path(sys.executable).with_name("searchapp")), "--version"]
TYPER = [sys.executable, "-c", "import typer"]


def seconds(command: list[str]) -> float:
    """The wall-clock time of one run of a command."""
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10, help="counted runs of each command (default 10)")
    runs = parser.parse_args().runs
    for command in (SEARCHAPP, TYPER):
        seconds(command)  # warm the file cache
    pairs = [(seconds(SEARCHAPP), seconds(TYPER)) for _ in range(runs)]
    searchapp, typer = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"searchapp --version        {searchapp * 1000:7.1f} ms")
    print(f'python -c "import typer"   {typer * 1000:7.1f} ms')
    print(f"ratio                      {searchapp / typer:7.2f}   (medians of {runs})")


if __name__ == "__main__":
    main()
