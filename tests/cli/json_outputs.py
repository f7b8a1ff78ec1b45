"""The JSON that commands print for the samples; docs/reference/json.md describes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cli.conftest import SAMPLES, Cli

Output = tuple[str, Any]
"""The words of a command without its arguments, and the document that it prints."""

BENCH = """
measures = ["AP"]

[recipes.bm25]

[recipes.neighbours]

[tasks.nlps]
splits = ["dev"]
data = "{data}"
cutoff = 50
"""

TASK, DATA = "nlps", SAMPLES / "nlps"


def outputs(cli: Cli, folder: Path) -> Iterator[Output]:
    """Run the commands that take --json and need no server, each after the commands that it depends on."""
    topic, other = list(json.loads((DATA / "dev_set.json").read_text("utf-8")))[:2]
    document, further = list(json.loads((DATA / "knowledge_base.json").read_text("utf-8")))[:2]
    one, two = folder / "one", folder / "two"
    scored = ("--cutoff", 50)
    few = ("--permutations", 500)
    split = ("--split", "dev")
    bench = folder / "bench.toml"
    bench.write_text(BENCH.format(data=DATA), encoding="utf-8")
    qrels = folder / "ann.qrels"
    qrels.write_text(f"{topic} 0 {document} 1\n{topic} 0 {further} 0\n", encoding="utf-8")
    others = folder / "bob.qrels"
    others.write_text(
        f"{topic} 0 {document} 0\n{topic} 0 {further} 0\n{other} 0 {document} 1\n", encoding="utf-8"
    )

    def run(command: str, *arguments: object, code: int = 0, typed: str | None = None) -> Output:
        result = cli(*command.split(), *arguments, "--json", typed=typed)
        assert result.code == code, (command, arguments, result.stderr)
        return command, result.json

    yield run("index", TASK, "--data", DATA)
    yield run("index", TASK)
    yield run("indexes list")
    yield run("tasks")
    yield run("tasks show", TASK)
    yield run("tasks show", TASK, "--recipe", "best")
    yield run("data list", TASK)
    yield run("data verify", TASK, "--data", DATA, code=4)
    yield run("config")
    yield run("doctor")
    yield run("analyze", TASK, "a group")
    yield run("search", TASK, "abelian group")
    yield run("search", TASK, "abelian group", "--explain", "--recipe", "neighbours")
    yield run("search", TASK, "abelian group", "--explain-document", document)
    yield run("search", TASK, "--document", document)
    yield run("search", TASK, "--list-saved")
    yield run("search", TASK, typed="abelian group\nring\n")
    yield run("rank", TASK, *split, "--recipe", "bm25", "--out", one)
    yield run("rank", TASK, *split, "--recipe", "neighbours", "--out", two)
    yield run("explain", TASK, document, "--topic", topic, "--recipe", "neighbours")
    yield run("evaluate", one, *scored, "--by", "all", "--per-topic")
    yield run("evaluate", one, two, *scored)
    yield run("evaluate", one / "run.trec", "--qrels", qrels)
    yield run("compare", one, two, *scored, *few)
    yield run("report", one, two, *scored, *few, "--out", folder / "report.html")
    cli("export", one, "--out", folder / "official.txt", *scored)
    yield run("validate", folder / "official.txt", "--task", TASK, *split, *scored)
    yield run("rerun", one, "--out", folder / "again")
    yield run("compare", one, two, folder / "again", *scored, *few)
    yield run("runs list")
    yield run("runs show", two)
    yield run("runs tag", one, "paper")
    yield run("runs verify", one)
    yield run("runs import", one / "run.trec", "--task", TASK, *split, "--out", folder / "imported")
    yield run("topics", TASK, "--run", one)
    yield run("topics", TASK, "--run", one, "--topic", topic)
    yield run("topics", TASK, "--run", one, "--topic", topic, "--failures")
    yield run("topics", TASK, "--run", one, "--topic", topic, "--depth", 1)
    grouped = "explanation-2019"
    yield run("index", grouped, "--data", SAMPLES / grouped)
    yield run("rank", grouped, *split, "--recipe", "bm25", "--out", folder / "facts")
    yield run("evaluate", folder / "facts", "--by", "all")
    yield run("judgments import", TASK, qrels, "--format", "qrels", "--annotator", "ann")
    yield run("judgments import", TASK, others, "--format", "qrels", "--annotator", "bob")
    yield run("judgments imports", TASK)
    yield run("judgments list", TASK)
    yield run("judgments stats", TASK)
    yield run("judgments agreement", TASK)
    yield run("judgments pool", one, two, "--depth", 3, "--out", folder / "pool")
    yield run(
        "judgments assign",
        TASK,
        *split,
        "--quota",
        "ann=3",
        "--quota",
        "bob=3",
        "--out",
        folder / "assigned.json",
    )
    yield run("evaluate", one, "--judgments", "--measure", "AP", *scored)
    yield run("evaluate", one, "--judgments", "--unjudged", "bounds", "--measure", "AP", *scored)
    yield run("compare", one, two, "--judgments", *few, "--measure", "AP", *scored)
    yield run("report", one, two, "--judgments", *few, *scored, "--out", folder / "judged.html")
    yield run("judgments backup", folder / "backup.sqlite")
    yield run("judgments verify")
    yield run("judgments retract", TASK, "--import", 2)
    yield run("train", TASK, *split)
    yield run("ablate", TASK, *split, "--recipe", "neighbours", *scored, *few)
    yield run(
        "learning-curve",
        TASK,
        *split,
        "--recipe",
        "neighbours",
        "--points",
        "0,3",
        *scored,
        "--repetitions",
        2,
    )
    yield run(
        "tune",
        TASK,
        "--param",
        "k1=0.9,1.2",
        "--recipe",
        "bm25",
        *scored,
        "--folds",
        2,
        "--search",
        "grid",
        "--out",
        folder / "t.toml",
    )
    yield run("bench", bench, "--out", folder / "bench")
    yield "bench", run("report", folder / "bench", "--out", folder / "bench.html")[1]
    yield run("indexes remove", TASK, "--yes")
