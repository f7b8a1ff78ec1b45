"""Compare runs of three tasks on Elasticsearch and on the embedded engine byte by byte.

    python -m tests.server --version 8.19 -- python benchmarks/same_runs.py --data DIR [--only checkthat]
    python -m tests.server --version 9.4 -- python benchmarks/same_runs.py --data DIR

DIR contains a folder for each task, see `FOLDERS`; SEARCHAPP_URL is the address of the server. The script uses the
commands `index` and `rank`. The exit code is 1 if a run differs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from usage import make_parser

FOLDERS = {"nlps": "nlps", "checkthat": "checkthat", "smart-types-dbpedia": "smart"}
FOLDS = [f"fold{number}" for number in range(5)]
RUNS = [
    *(("nlps", split, "bm25") for split in ("train", "dev")),
    ("nlps", "dev", "neighbours"),
    *(("checkthat", "training", recipe) for recipe in ("bm25", "neighbours")),
    *(("smart-types-dbpedia", fold, "bm25") for fold in FOLDS),
    ("smart-types-dbpedia", "fold0", "neighbours"),
]
"""Task, split and recipe of each run: all topics with gold, and the recipes with most searches."""

ENGINES = ("embedded", "elasticsearch")
PREFIX = "same-runs"
"""The prefix of the indexes on the server, which stay there."""


def searchapp(home: Path, engine: str, *arguments: object) -> None:
    """Run a command on an engine."""
    command = [sys.executable, "-m", "searchapp", *map(str, arguments), "--home", str(home), "--quiet"]
    environment = {**os.environ, "SEARCHAPP_INDEX_PREFIX": PREFIX}
    subprocess.run([*command, "--engine", engine], env=environment, check=True)


def compare(home: Path, data: Path, task: str, split: str, recipe: str) -> bool:
    """Rank on both engines; return whether the runs are equal."""
    rankings = []
    for engine in ENGINES:
        out = home / f"{task}-{split}-{recipe}-{engine}"
        searchapp(
            home, engine, "rank", task, "--data", data, "--split", split, "--recipe", recipe, "--out", out
        )
        rankings.append((out / "run.trec").read_bytes())
    lines = rankings[0].splitlines()
    topics = len({line.partition(b" ")[0] for line in lines})
    is_equal = rankings[0] == rankings[1]
    verdict = "equal" if is_equal else "DIFFERENT"
    print(f"{task:20} {split:9} {recipe:10} {topics:6,} topics {len(lines):10,} hits  {verdict}", flush=True)
    return is_equal


def main() -> int:
    """Compare all runs."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", choices=FOLDERS, help="compare only this task")
    options = parser.parse_args()
    if "SEARCHAPP_URL" not in os.environ:
        parser.error("SEARCHAPP_URL is not set")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for task, files in FOLDERS.items():
            if options.only not in (None, task):
                continue
            for engine in ENGINES:
                searchapp(home, engine, "index", task, "--data", options.data / files)
            runs = [run for run in RUNS if run[0] == task]
            results += [compare(home, options.data / files, *run) for run in runs]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
