"""Measure `searchapp --version` and completion by Tab as multiples of `python -c "import typer"`.

    python benchmarks/startup.py [--runs 10]

The commands run in turn, so that a changing speed of the machine affects all; medians and their ratios are printed. The
aims are ratios of at most 2.2 for the version and of at most 5 for Tab, which still feels immediate.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from usage import make_parser

SEARCHAPP = str(Path(sys.executable).with_name("searchapp"))
TYPER = f'{Path(sys.executable).name} -c "import typer"'


def tab(*words: str) -> Mapping[str, str]:
    """Return the variables with which Bash requests completions of the last word."""
    return {
        "_SEARCHAPP_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(["searchapp", *words]),
        "COMP_CWORD": str(len(words)),
    }


COMMANDS: Mapping[str, tuple[list[str], Mapping[str, str]]] = {
    TYPER: ([sys.executable, "-c", "import typer"], {}),
    "searchapp --version": ([SEARCHAPP, "--version"], {}),
    "searchapp in<Tab>": ([SEARCHAPP], tab("in")),
    "searchapp index <Tab>": ([SEARCHAPP], tab("index", "")),
    "searchapp rank nlps --split <Tab>": ([SEARCHAPP], tab("rank", "nlps", "--split", "")),
    "searchapp analyze nlps --field <Tab>": ([SEARCHAPP], tab("analyze", "nlps", "--field", "")),
    "searchapp rank checkthat --recipe <Tab>": ([SEARCHAPP], tab("rank", "checkthat", "--recipe", "")),
}
"""Arguments and variables of the measured commands; the first is the reference."""


def seconds(name: str) -> float:
    """Run a command; return its wall-clock time."""
    words, variables = COMMANDS[name]
    begin = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **variables})
    return time.perf_counter() - begin


def main() -> None:
    """Measure and print."""
    parser = make_parser(__doc__)
    parser.add_argument("--runs", type=int, default=10, help="measured runs of each command (default 10)")
    runs = parser.parse_args().runs
    for name in COMMANDS:
        seconds(name)  # warm the file cache
    rounds = [{name: seconds(name) for name in COMMANDS} for _ in range(runs)]
    times = {name: statistics.median(times[name] for times in rounds) for name in COMMANDS}
    width = max(map(len, COMMANDS))
    for name, time_ in times.items():
        print(f"{name:<{width}}  {time_ * 1000:7.1f} ms  ratio {time_ / times[TYPER]:5.2f}")
    print(f"medians of {runs}")


if __name__ == "__main__":
    main()
