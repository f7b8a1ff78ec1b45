"""Measure the start of searchapp: short commands, completion by Tab, and the first frame and the data of each screen.

    python benchmarks/startup.py [--runs 10]
    python benchmarks/startup.py --screens [--runs 20] [--beside SEARCHAPP]

The commands run in turn, so that a changing speed of the machine affects all; medians and their ratios are printed.
Without `--screens`, the CPU times are multiples of that of `python -c "import typer"`. The aims are ratios of at most
2.2 for the version, 3 for `tasks`, 4.4 for `search` in the sample of nlps, and 5 for Tab, which still feels immediate.

With `--screens`, each screen opens the sample of nlps on a pseudo-terminal of 80 x 24. Its first frame has its title;
its data are complete when documents, runs or differences are drawn. The reference is a Typer program that opens an
empty Textual app. The aim is a ratio of at most 1.3 for the first frame. `--beside` measures another installation in
turn.
"""

from __future__ import annotations

import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from terminal import Terminal
from usage import make_parser

from searchapp.resources import SAMPLES

SEARCHAPP = str(Path(sys.executable).with_name("searchapp"))
TASK = "nlps-sample"
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
    "searchapp tasks": ([SEARCHAPP, "tasks"], {}),
    "searchapp runs list": ([SEARCHAPP, "runs", "list"], {}),
    f"searchapp search {TASK} ring": ([SEARCHAPP, "search", TASK, "ring", "--size", "3"], {}),
    "searchapp in<Tab>": ([SEARCHAPP], tab("in")),
    "searchapp index <Tab>": ([SEARCHAPP], tab("index", "")),
    "searchapp rank nlps --split <Tab>": ([SEARCHAPP], tab("rank", "nlps", "--split", "")),
    "searchapp analyze nlps --field <Tab>": ([SEARCHAPP], tab("analyze", "nlps", "--field", "")),
    "searchapp rank checkthat --recipe <Tab>": ([SEARCHAPP], tab("rank", "checkthat", "--recipe", "")),
}
"""Arguments and variables of the measured commands; the first is the reference."""


def cpu_seconds(name: str, home: str) -> float:
    """Run a command in a home directory; return its CPU time."""
    words, variables = COMMANDS[name]
    environment = {**os.environ, "SEARCHAPP_HOME": home, **variables}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = subprocess.DEVNULL
    subprocess.run(words, check=True, stdout=output, stderr=output, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_commands(runs: int) -> None:
    """Measure and print the CPU time of each command."""
    with tempfile.TemporaryDirectory() as home:
        index = [SEARCHAPP, "index", TASK, "--quiet"]
        subprocess.run(index, check=True, env={**os.environ, "SEARCHAPP_HOME": home})
        for name in COMMANDS:
            cpu_seconds(name, home)  # warm the file cache
        rounds = [{name: cpu_seconds(name, home) for name in COMMANDS} for _ in range(runs)]
    width = max(map(len, COMMANDS))
    for name in COMMANDS:
        median = statistics.median(times[name] for times in rounds)
        ratio = statistics.median(times[name] / times[TYPER] for times in rounds)
        print(f"{name:<{width}}  {median * 1000:7.1f} ms  ratio {ratio:5.2f}")
    print(f"medians of {runs}, and of the ratios in a round")


class Start(NamedTuple):
    """A program with a screen, and patterns of its first frame and of its data."""

    words: Sequence[str]
    first: str
    data: str


EMPTY = """
import typer

app = typer.Typer()

@app.command()
def main() -> None:
    from textual.app import App
    App().run()

app()
"""
"""The reference for screens."""

HOME = r"\x1b\[1;1H"
"""The beginning of a complete frame."""


def starts(searchapp: str, run: Path, other: Path) -> Mapping[str, Start]:
    """Return the measured screens of an installation."""
    document = "Document [^ ]+"
    return {
        "browse": Start([searchapp, "browse"], "searchapp", "✓ embedded"),
        "search": Start([searchapp, "search", "nlps"], "nlps", document),
        "judge": Start([searchapp, "judge", "nlps", "--run", str(run)], "nlps", document),
        "topics": Start([searchapp, "topics", "nlps", "--run", str(run)], "nlps", document),
        "compare": Start([searchapp, "compare", str(run), str(other), "--screen"], run.name, document),
        "config": Start([searchapp, "config", "--screen"], "(?i)settings", "user file"),
    }


def open_screen(start: Start, environment: Mapping[str, str]) -> tuple[float, float]:
    """Open a screen; return the times of its first frame and of its data."""
    begin = time.perf_counter()
    terminal = Terminal(list(start.words), dict(environment), 80, 24)
    output = terminal.wait_for(start.first)
    first = data = terminal.arrived - begin
    if not re.search(start.data, output):
        terminal.wait_for(start.data)
        data = terminal.arrived - begin
    terminal.close()
    return first, data


def measure_screens(runs: int, beside: str | None) -> None:
    """Measure and print the first frame and the data of each screen."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        environment = {**os.environ, "SEARCHAPP_HOME": name, "SEARCHAPP_ANNOTATOR": "bench"}
        environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        run, other = home / "runs" / "bm25", home / "runs" / "neighbours"
        sample = ["nlps", "--data", str(SAMPLES / "nlps"), "--quiet"]
        subprocess.run([SEARCHAPP, "index", *sample], check=True, env=environment)
        for path in (run, other):
            ranking = ["rank", *sample, "--split", "dev", "--recipe", path.name, "--out", str(path)]
            subprocess.run([SEARCHAPP, *ranking], check=True, env=environment, stderr=subprocess.DEVNULL)
        measured = {"empty": Start([sys.executable, "-c", EMPTY], HOME, HOME)}
        for installation in filter(None, (beside, SEARCHAPP)):
            label = " (beside)" if installation == beside else ""
            measured |= {f"{key}{label}": start for key, start in starts(installation, run, other).items()}
        for start in measured.values():
            open_screen(start, environment)  # warm the file cache
        rounds = [
            {key: open_screen(start, environment) for key, start in measured.items()} for _ in range(runs)
        ]
    print(f"{'':20}{'first frame':>22}{'data':>22}")
    for key in measured:
        cells = []
        for place in (0, 1):
            median = statistics.median(times[key][place] for times in rounds)
            ratio = statistics.median(times[key][place] / times["empty"][place] for times in rounds)
            cells.append(f"{median * 1000:9.0f} ms x {ratio:5.2f}")
        print(f"{key:20}" + "".join(f"{cell:>22}" for cell in cells))
    print(f"medians of {runs}, and of the ratios in a round")


def main() -> None:
    """Measure and print."""
    parser = make_parser(__doc__)
    parser.add_argument("--runs", type=int, default=10, help="measured runs of each command (default 10)")
    parser.add_argument("--screens", action="store_true", help="measure screens instead of commands")
    parser.add_argument("--beside", metavar="SEARCHAPP", help="the program of another installation")
    options = parser.parse_args()
    if options.screens:
        measure_screens(options.runs, options.beside)
    else:
        measure_commands(options.runs)


if __name__ == "__main__":
    main()
