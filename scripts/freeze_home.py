"""Make the home directory of this version as a fixture; all later versions must open it (`tests/test_homes.py`).

    python -m scripts.freeze_home [tests/fixtures/homes]

Writes VERSION.tar.gz with these folders and files:

    data        samples and an own task
    home        indexes, a trained model, a tuning, the judgment log
    runs        run directories and a pool
    steps.json  the commands that made the home
    answers.json          commands with the JSON that they print
    judgments-VERSION.json  a team's judgments as that version of Elasticsearch stores them

It starts each tested version of Elasticsearch.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import searchapp
from tests.server.distribution import RELEASES, Distribution
from tests.server.node import Node

FOLDER = Path("/tmp/searchapp-homes")
"""A home refers to task files and data by absolute paths, so it is made and opened in the same folder."""

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "searchapp" / "samples"
TASK = "data/own/cooking.toml"

STEPS: Sequence[tuple[str, ...]] = (
    ("index", "nlps", "--data", "data/nlps"),
    ("index", TASK),
    ("rank", "nlps", "--data", "data/nlps", "--split", "dev", "--recipe", "best", "--out", "runs/best"),
    ("rank", "nlps", "--data", "data/nlps", "--split", "dev", "--recipe", "bm25", "--out", "runs/bm25"),
    ("rank", TASK, "--split", "dev", "--recipe", "half", "--out", "runs/half"),
    ("runs", "tag", "runs/best", "submitted"),
    ("tune", TASK, "--recipe", "half", "--param", "half=0.3,0.5,0.7"),
    ("judge", "nlps", "--run", "runs/best", "--annotator", "ann", "--plain"),
    ("judge", "nlps", "--run", "runs/best", "--annotator", "ben", "--plain"),
    ("judgments", "pool", "runs/best", "runs/bm25", "--depth", "5", "--out", "runs/pool"),
    (
        "judgments",
        "assign",
        "nlps",
        "--split",
        "dev",
        "--quota",
        "ann=3",
        "--quota",
        "ben=3",
        "--out",
        "shares.json",
    ),
)
"""Commands that fill the home directory, from the folder above it."""

TYPED = {"ann": "1\n0\n1\ns\nq\n", "ben": "1\n1\nq\n"}
"""Input of an annotator's prompts."""

QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "search": ("search", "nlps", "normal subgroup of a group", "--json"),
    "own task": ("search", "cooking", "bread without an oven", "--json"),
    "indexes": ("indexes", "list", "--json"),
    "runs": ("runs", "list", "--tag", "submitted", "--json"),
    "run": ("runs", "show", "runs/best", "--json"),
    "run of an own task": ("runs", "verify", "runs/half", "--json"),
    "evaluation": ("evaluate", "runs/best", "--data", "data/nlps", "--cutoff", "50", "--json"),
    "evaluation by judgments": (
        "evaluate",
        "runs/bm25",
        "--data",
        "data/nlps",
        "--cutoff",
        "50",
        "--judgments",
        "--json",
    ),
    "comparison": ("compare", "runs/bm25", "runs/best", "--data", "data/nlps", "--cutoff", "50", "--json"),
    "judgments": ("judgments", "list", "nlps", "--json"),
    "statistics": ("judgments", "stats", "nlps", "--json"),
    "agreement": ("judgments", "agreement", "nlps", "--json"),
    "log": ("judgments", "verify", "--json"),
    "tuning": ("tune", TASK, "--recipe", "half", "--param", "half=0.3,0.5,0.7", "--json"),
}
"""Commands whose JSON output later versions must repeat; they may add keys."""

VARYING = {
    "seconds",
    "created",
    "indexed",
    "bytes",
    "size",
    "version",
    "searchapp",
    "path",
    "file",
    "log",
    "data",
}
"""Keys of the output that depend on the time, the machine or the version."""


def comparable(value: Any, folder: Path) -> Any:
    """Return a JSON value without the keys in `VARYING`, and with paths relative to a folder."""
    if isinstance(value, dict):
        return {key: comparable(item, folder) for key, item in value.items() if key not in VARYING}
    if isinstance(value, list):
        return [comparable(item, folder) for item in value]
    return value.replace(f"{folder}/", "") if isinstance(value, str) else value


def run(folder: Path, *arguments: str, typed: str = "", url: str = "") -> str:
    """Run a command of searchapp in a folder with the home directory `home`, and return its standard output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEARCHAPP_")}
    environment |= {"SEARCHAPP_HOME": "home"} | ({"SEARCHAPP_URL": url} if url else {})
    command = [str(Path(sys.executable).with_name("searchapp")), *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, input=typed, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def share_judgments(folder: Path) -> None:
    """Send the judgments to each version of Elasticsearch, and save what it stores."""
    for release in RELEASES:
        with Node(Distribution.find(release)) as node:
            run(folder, "judgments", "sync", url=node.url)
            index = node.server.request("GET", "/searchapp-judgments").json()
            hits = node.server.request("GET", "/searchapp-judgments/_search?size=1000&sort=_seq_no").json()
        stored = {"index": index, "documents": {hit["_id"]: hit["_source"] for hit in hits["hits"]["hits"]}}
        _write(folder / f"judgments-{release}.json", stored)


def answers(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield the name of each question, with its command and the comparable output."""
    for name, command in QUESTIONS.items():
        yield name, {"command": command, "output": comparable(json.loads(run(folder, *command)), folder)}


def main() -> None:
    """Write the fixture of the installed version."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests" / "fixtures" / "homes"
    out.mkdir(parents=True, exist_ok=True)
    FOLDER.mkdir()
    try:
        folder = FOLDER / searchapp.__version__
        for sample in ("nlps", "own"):
            shutil.copytree(SAMPLES / sample, folder / "data" / sample)
        for step in STEPS:
            typed = TYPED.get(step[step.index("--annotator") + 1], "") if "--annotator" in step else ""
            run(folder, *step, typed=typed)
        share_judgments(folder)
        _write(folder / "steps.json", STEPS)
        _write(folder / "answers.json", dict(answers(folder)))
        with tarfile.open(out / f"{folder.name}.tar.gz", "w:gz") as archive:
            archive.add(folder, folder.name)
    finally:
        shutil.rmtree(FOLDER)


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
