"""All topics of three tasks, ranked on a server and on the embedded engine: are the runs the same, byte for byte?

    python -m tests.server --version 8.19 -- python benchmarks/same_runs.py --data DIR [--only checkthat]
    python -m tests.server --version 9.4 -- python benchmarks/same_runs.py --data DIR

DIR has a folder for each task, named as below; the server is that of SEARCHAPP_URL. Everything is done by the commands
`index` and `rank`, as people do it. Exits with 1 if a run differs.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from usage import parser_of

FOLDERS = {"nlps": "nlps", "checkthat": "checkthat", "smart-types-dbpedia": "smart"}
FOLDS = [f"fold{number}" for number in range(5)]
RUNS = [
    *(("nlps", split, "bm25") for split in ("train", "dev")),
    ("nlps", "dev", "neighbours"),
    *(("checkthat", "training", recipe) for recipe in ("bm25", "neighbours")),
    *(("smart-types-dbpedia", fold, "bm25") for fold in FOLDS),
    ("smart-types-dbpedia", "fold0", "neighbours"),
]
"""Task, split and recipe of each run: every topic that there is gold for, and the recipes that use the server most."""

ENGINES = ("embedded", "elasticsearch")
PREFIX = "same-runs"
"""Of the indexes on the server, which stay there."""


def searchapp(home: Path, engine: str, *arguments: object) -> None:
    """Run a command on one of the engines."""
    command = [sys.executable, "-m", "searchapp", *map(str, arguments), "--home", str(home), "--quiet"]
    own = {**os.environ, "SEARCHAPP_INDEX_PREFIX": PREFIX}
    subprocess.run([*command, "--engine", engine], env=own, check=True)


def lines_of(run: Path) -> bytes:
    """The rankings of a run directory, unpacked if need be."""
    packed = run / "run.trec.gz"
    return gzip.decompress(packed.read_bytes()) if packed.exists() else (run / "run.trec").read_bytes()


def same(home: Path, data: Path, task: str, split: str, recipe: str) -> bool:
    """Rank on both engines, and say whether the runs are the same."""
    rankings = []
    for engine in ENGINES:
        out = home / f"{task}-{split}-{recipe}-{engine}"
        searchapp(
            home, engine, "rank", task, "--data", data, "--split", split, "--recipe", recipe, "--out", out
        )
        rankings.append(lines_of(out))
    lines = rankings[0].splitlines()
    topics = len({line.partition(b" ")[0] for line in lines})
    is_same = rankings[0] == rankings[1]
    verdict = "the same" if is_same else "DIFFERENT"
    print(f"{task:20} {split:9} {recipe:10} {topics:6,} topics {len(lines):10,} hits  {verdict}", flush=True)
    return is_same


def main() -> int:
    """Compare all runs."""
    options = parser_of(__doc__)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--only", choices=FOLDERS, help="one task")
    chosen = options.parse_args()
    if "SEARCHAPP_URL" not in os.environ:
        options.error("SEARCHAPP_URL names no server")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for task, files in FOLDERS.items():
            if chosen.only not in (None, task):
                continue
            for engine in ENGINES:
                searchapp(home, engine, "index", task, "--data", chosen.data / files)
            runs = [run for run in RUNS if run[0] == task]
            results += [same(home, chosen.data / files, *run) for run in runs]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
