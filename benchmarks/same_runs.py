"""Compare runs of three tasks on Elasticsearch and on the embedded engine byte by byte.

    python -m tests.server --version 8.19 -- python benchmarks/same_runs.py --data DIR [--only checkthat]
    python -m tests.server --version 9.4 -- python benchmarks/same_runs.py --data DIR
    python -m tests.server --nodes 3 -- python benchmarks/same_runs.py --data DIR --hybrid --shards 3 --replicas 1

DIR contains a folder for each task, see `FOLDERS`; SEARCHAPP_URL is the address of the server. The script uses the
commands `index`, `embed` and `rank`. The exit code is 1 if a run differs.

`--hybrid` compares recipes with vectors instead, embeddings of hashed words (`hashed_embeddings.py`): first `hybrid` of
the task itself, which fuses `direct`, `neighbours` and `vectors`; then those of an own task of its documents and topics
with a `dense_vector` field, whose templates have a section `knn` (`hybrid_tasks.py`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hybrid_tasks import write_own, write_variant
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

HYBRID = [
    {"task": "nlps", "split": "dev", "training": "train"},
    {"task": "smart-types-dbpedia", "split": "fold0", "training": "fold1"},
]
"""The tasks of `--hybrid`, the split that is ranked, and the training topics of the own task."""

ENGINES = ("embedded", "elasticsearch")
PREFIX = "same-runs"
"""The prefix of the indexes on the server, which stay there."""


def searchapp(home: Path, engine: str, *arguments: object) -> None:
    """Run a command on an engine."""
    command = [sys.executable, "-m", "searchapp", *map(str, arguments), "--home", str(home), "--quiet"]
    environment = {**os.environ, "SEARCHAPP_INDEX_PREFIX": PREFIX}
    subprocess.run([*command, "--engine", engine], env=environment, check=True)


def index(home: Path, data: Path, task: object, layout: Sequence[object]) -> None:
    """Index a task on both engines, on the server with these options."""
    for engine in ENGINES:
        searchapp(home, engine, "index", task, "--data", data, *(layout if engine != "embedded" else ()))


def compare(home: Path, data: Path, task: str, split: str, recipe: str) -> bool:
    """Rank on both engines; return whether the runs are equal."""
    name = Path(task).stem
    rankings = []
    for engine in ENGINES:
        out = home / f"{name}-{split}-{recipe}-{engine}"
        searchapp(
            home, engine, "rank", task, "--data", data, "--split", split, "--recipe", recipe, "--out", out
        )
        rankings.append((out / "run.trec").read_bytes())
    lines = rankings[0].splitlines()
    topics = len({line.partition(b" ")[0] for line in lines})
    is_equal = rankings[0] == rankings[1]
    verdict = "equal" if is_equal else "DIFFERENT"
    print(f"{name:24} {split:9} {recipe:10} {topics:6,} topics {len(lines):10,} hits  {verdict}", flush=True)
    return is_equal


def compare_hybrid(home: Path, data: Path, names: Mapping[str, str], layout: Sequence[object]) -> list[bool]:
    """Compare the recipes with vectors of a shared task and of the own task of its texts."""
    task, splits = names["task"], [names["split"], names["training"]]
    of_splits = [option for split in splits for option in ("--split", split)]
    embed = ["--run-command", *of_splits]
    variant = write_variant(home, names)
    index(home, data, variant, layout)
    searchapp(home, "embedded", "embed", variant, "--data", data, *embed)
    results = [compare(home, data, str(variant), splits[0], "hybrid")]
    exported = home / f"{task}-exported"
    searchapp(home, "embedded", "tasks", "export", task, "--format", "beir", "--out", exported, *of_splits)
    own = write_own(exported, variant.with_suffix(".npz"), names)
    index(home, exported, own, layout)
    searchapp(home, "embedded", "embed", own, "--data", exported, *embed)
    return [*results, *(compare(home, exported, str(own), splits[0], recipe) for recipe in ("knn", "hybrid"))]


def main() -> int:
    """Compare all runs."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", choices=FOLDERS, help="compare only this task")
    parser.add_argument("--hybrid", action="store_true", help="compare recipes with vectors")
    parser.add_argument("--shards", type=int, default=1, help="shards of the indexes on the server")
    parser.add_argument("--replicas", type=int, default=0, help="their replicas")
    options = parser.parse_args()
    if "SEARCHAPP_URL" not in os.environ:
        parser.error("SEARCHAPP_URL is not set")
    layout = ["--shards", options.shards, "--replicas", options.replicas]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for task, files in FOLDERS.items():
            if options.only not in (None, task):
                continue
            data = options.data / files
            if options.hybrid:
                for names in HYBRID:
                    if names["task"] == task:
                        results += compare_hybrid(home, data, names, layout)
                continue
            index(home, data, task, layout)
            results += [compare(home, data, *run) for run in RUNS if run[0] == task]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
