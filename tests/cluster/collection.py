"""A small task, and its run on the embedded engine."""

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
"""Number of topics in a request, in tests with faults during rankings."""


@dataclass(frozen=True)
class Words:
    """The task file, and the bytes of the runs of its splits on the embedded engine."""

    task: Path
    runs: dict[str, bytes]

    @classmethod
    def make(cls, folder: Path) -> Words:
        """Write the task into a folder, and rank its topics with the embedded engine."""
        task = write_task(folder, DOCUMENTS)
        unset = {f"SEARCHAPP_{name}": None for name in ("URL", "ENGINE", "INDEX_PREFIX", "SHARED")}
        run = partial(run_command, environment={**unset, "SEARCHAPP_HOME": str(folder / "home")})
        result = run("index", task)
        assert result.code == 0, result.stderr
        return cls(task, {split: ranked(run, task, folder / split, split) for split in ("dev", "few")})

    def __len__(self) -> int:
        """Return the number of documents."""
        return DOCUMENTS

    def require_same(self, commands: Cli, out: Path, split: str = "few", *, task: Path | None = None) -> None:
        """Rank a split, and check that the run equals that of the embedded engine.

        Another `task` must have the same documents and topics.
        """
        assert ranked(commands, task or self.task, out, split) == self.runs[split]


def write_task(folder: Path, documents: int, seed: int = 1) -> Path:
    """Write the task with a number of documents into a folder, and return its file."""
    dice = random.Random(seed)
    _write(folder / "documents.jsonl", "d", documents, 12, dice)
    _write(folder / "topics.jsonl", "q", TOPICS, 4, dice)
    _write(folder / "few.jsonl", "f", FEW, 4, dice)
    (folder / "mapping.json").write_text(json.dumps(MAPPING), encoding="utf-8")
    (folder / "words.toml").write_text(TASK, encoding="utf-8")
    return folder / "words.toml"


def renamed(task: Path, folder: Path, name: str) -> Path:
    """Copy a task with its documents and topics under another name into a folder, and return its file."""
    shutil.copytree(task.parent, folder, ignore=shutil.ignore_patterns("home"))
    file = folder / task.name
    file.write_text(file.read_text(encoding="utf-8").replace('"words"', f'"{name}"'), encoding="utf-8")
    return file


def ranked(commands: Cli, task: Path, out: Path, split: str) -> bytes:
    """Rank a split, and return the bytes of the run."""
    result = commands("rank", task, "--split", split, "--out", out)
    assert result.code == 0, result.stderr
    return (out / "run.trec").read_bytes()


def stored(cluster: Cluster, alias: str) -> dict[str, str]:
    """Return the judged documents by the ids of the judgments in the index, by own requests."""
    cluster.server.request("POST", f"/{alias}/_refresh", timeout=60)
    response = cluster.server.request("GET", f"/{alias}/_search?size=10000&_source=document_id", timeout=60)
    return {hit["_id"]: hit["_source"]["document_id"] for hit in response.json()["hits"]["hits"]}


def _write(path: Path, letter: str, count: int, length: int, dice: random.Random) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            text = " ".join(dice.choices(VOCABULARY, k=length))
            file.write(json.dumps({"id": f"{letter}{number}", "text": text}) + "\n")
