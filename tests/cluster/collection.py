"""A small task whose run is known: what the embedded engine makes of it."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.cli.conftest import Cli, run_command
from tests.profile import FULL
from tests.server.cluster import Cluster

TASK = """
name = "words"
depth = 50
mapping = "mapping.json"

[documents]
file = "documents.jsonl"

[topics.dev]
file = "topics.jsonl"

[topics.few]
file = "few.jsonl"
"""

# The stemmers of versions 8 and 9 differ in words such as "adding".
MAPPING = {
    "settings": {
        "analysis": {
            "filter": {"stems": {"type": "stemmer", "language": "porter2"}},
            "analyzer": {"words": {"tokenizer": "standard", "filter": ["lowercase", "stems"]}},
        }
    },
    "mappings": {
        "dynamic": "strict",
        "properties": {"id": {"type": "keyword"}, "text": {"type": "text", "analyzer": "words"}},
    },
}
VOCABULARY = [
    "adding",
    "added",
    "add",
    "odded",
    "egging",
    "erred",
    *(f"word{number}" for number in range(60)),
]
DOCUMENTS, TOPICS, FEW = (4000, 640, 64) if FULL else (800, 160, 32)
BATCH = TOPICS // 10
"""Of how many topics a request is where something happens while they are ranked."""


@dataclass(frozen=True)
class Words:
    """The task's file, and the bytes of the runs of its splits on the embedded engine."""

    task: Path
    runs: dict[str, bytes]

    @classmethod
    def make(cls, folder: Path) -> Words:
        """Write the task into a folder, and rank its topics without a server."""
        task = write_task(folder, DOCUMENTS)
        elsewhere = {f"SEARCHAPP_{name}": None for name in ("URL", "ENGINE", "INDEX_PREFIX", "SHARED")}
        run = partial(run_command, environment={**elsewhere, "SEARCHAPP_HOME": str(folder / "home")})
        done = run("index", task)
        assert done.code == 0, done.stderr
        return cls(task, {split: ranked(run, task, folder / split, split) for split in ("dev", "few")})

    def __len__(self) -> int:
        """The number of its documents."""
        return DOCUMENTS

    def require_same(self, commands: Cli, out: Path, split: str = "few", *, task: Path | None = None) -> None:
        """Rank a split with these commands, and make sure that the run is the known one.

        Another `task` is one with the same documents and topics.
        """
        assert ranked(commands, task or self.task, out, split) == self.runs[split]


def write_task(folder: Path, documents: int, seed: int = 1) -> Path:
    """The file of the task in a folder, with so many documents."""
    dice = random.Random(seed)
    _write(folder / "documents.jsonl", "d", documents, 12, dice)
    _write(folder / "topics.jsonl", "q", TOPICS, 4, dice)
    _write(folder / "few.jsonl", "f", FEW, 4, dice)
    (folder / "mapping.json").write_text(json.dumps(MAPPING), encoding="utf-8")
    (folder / "words.toml").write_text(TASK, encoding="utf-8")
    return folder / "words.toml"


def renamed(task: Path, folder: Path, name: str) -> Path:
    """The file of the same task under another name, with the same documents and topics, in a folder of its own."""
    shutil.copytree(task.parent, folder, ignore=shutil.ignore_patterns("home"))
    file = folder / task.name
    file.write_text(file.read_text(encoding="utf-8").replace('"words"', f'"{name}"'), encoding="utf-8")
    return file


def ranked(commands: Cli, task: Path, out: Path, split: str) -> bytes:
    """The run of a split, which these commands make."""
    done = commands("rank", task, "--split", split, "--out", out)
    assert done.code == 0, done.stderr
    return (out / "run.trec").read_bytes()


def stored(cluster: Cluster, alias: str) -> dict[str, str]:
    """The documents of the judgments in the index, by the ids of these, asked for past the code under test."""
    cluster.server.request("POST", f"/{alias}/_refresh", timeout=60)
    answer = cluster.server.request("GET", f"/{alias}/_search?size=10000&_source=document_id", timeout=60)
    return {hit["_id"]: hit["_source"]["document_id"] for hit in answer.json()["hits"]["hits"]}


def _write(path: Path, letter: str, count: int, length: int, dice: random.Random) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            text = " ".join(dice.choices(VOCABULARY, k=length))
            file.write(json.dumps({"id": f"{letter}{number}", "text": text}) + "\n")
