"""Measure the peak memory of indexing, ranking and evaluating each shipped task with its official files.

    python benchmarks/task_memory.py DATA [--task TASK ...] [--recipe bm25]

`DATA` has the folders of tests/real.py. A recipe with trained models trains them while it ranks; for these, `--recipe`
is `best`. Memory is the peak of the resident set of the largest process; tasks without files in `DATA` are skipped.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from usage import make_parser, run_measured

FOLDERS = {
    "nlps": ("nlps", "dev"),
    "explanation-2019": ("worldtree2019", "dev"),
    "explanation-2021": ("worldtree2021", "dev"),
    "checkthat": ("checkthat", "training"),
    "smart-types-dbpedia": ("smart", "fold0"),
    "smart-types-wikidata": ("smart", "fold0"),
    "smart-relations-dbpedia": ("smart", "fold0"),
}
"""The folder of each task's data, and the split that is ranked."""

SEARCHAPP = Path(sys.executable).with_name("searchapp")


def measure(task: str, data: Path, recipe: str, home: Path) -> tuple[float, float, float]:
    """Return the peaks in MiB of `index`, `rank` and `evaluate`."""
    folder, split = FOLDERS[task]
    files, run = ("--data", data / folder), home / task
    commands = (
        ("index", task, *files, "--quiet"),
        ("rank", task, *files, "--split", split, "--recipe", recipe, "--out", run, "--quiet"),
        ("evaluate", run, *files, "--lenient"),
    )
    environment = {"SEARCHAPP_HOME": str(home), "PATH": "/usr/bin:/bin"}
    silent = {"stdout": subprocess.DEVNULL, "env": environment}
    index, rank, evaluate = (run_measured((SEARCHAPP, *words), **silent).mib for words in commands)
    return index, rank, evaluate


def main() -> None:
    """Measure and print."""
    parser = make_parser(__doc__)
    parser.add_argument("data", type=Path, metavar="DATA", help="the folder of the official files")
    parser.add_argument("--task", action="append", choices=FOLDERS, help="a task (default: all)")
    parser.add_argument("--recipe", default="bm25", help="the recipe that ranks (default bm25)")
    options = parser.parse_args()
    print("| task | index MiB | rank MiB | evaluate MiB |")
    print("|---|---:|---:|---:|")
    for task in options.task or FOLDERS:
        if (options.data / FOLDERS[task][0]).is_dir():
            with tempfile.TemporaryDirectory() as home:
                peaks = measure(task, options.data, options.recipe, Path(home))
            print(f"| {task} | {' | '.join(f'{peak:.0f}' for peak in peaks)} |", flush=True)


if __name__ == "__main__":
    main()
