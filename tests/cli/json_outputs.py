"""The JSON that commands print for the samples; docs/reference/json.md describes it."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
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

JUDGE = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"grade": 1}))
"""

TASK, DATA = "nlps", SAMPLES / "nlps"


def outputs(cli: Cli, folder: Path) -> Iterator[Output]:
    """Run the commands that take --json and need no server, each after the commands that it depends on."""
    topic, other_topic = list(json.loads((DATA / "dev_set.json").read_text("utf-8")))[:2]
    document, other_document = list(json.loads((DATA / "knowledge_base.json").read_text("utf-8")))[:2]
    first, second = folder / "first", folder / "second"
    cutoff = ("--cutoff", 50)
    permutations = ("--permutations", 500)
    split = ("--split", "dev")
    bench = folder / "bench.toml"
    bench.write_text(BENCH.format(data=DATA), encoding="utf-8")
    qrels = folder / "ann.qrels"
    qrels.write_text(f"{topic} 0 {document} 1\n{topic} 0 {other_document} 0\n", encoding="utf-8")
    other_qrels = folder / "bob.qrels"
    other_qrels.write_text(
        f"{topic} 0 {document} 0\n{topic} 0 {other_document} 0\n{other_topic} 0 {document} 1\n",
        encoding="utf-8",
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
    yield run("tasks export", TASK, "--format", "beir", "--out", str(folder / "collection"))
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
    yield run("rank", TASK, *split, "--recipe", "bm25", "--out", first)
    yield run("rank", TASK, *split, "--recipe", "neighbours", "--out", second)
    yield run("explain", TASK, document, "--topic", topic, "--recipe", "neighbours")
    yield run("evaluate", first, *cutoff, "--by", "all", "--per-topic")
    yield run("evaluate", first, second, *cutoff)
    yield run("evaluate", first / "run.trec", "--qrels", qrels)
    yield run("compare", first, second, *cutoff, *permutations)
    yield run("report", first, second, *cutoff, *permutations, "--out", folder / "report.html")
    cli("export", first, "--out", folder / "official.txt", *cutoff)
    yield run("validate", folder / "official.txt", "--task", TASK, *split, *cutoff)
    yield run("rerun", first, "--out", folder / "again")
    yield run("compare", first, second, folder / "again", *cutoff, *permutations)
    yield run("runs list")
    yield run("runs show", second)
    yield run("runs tag", first, "paper")
    yield run("runs verify", first)
    yield run("runs import", first / "run.trec", "--task", TASK, *split, "--out", folder / "imported")
    yield run("topics", TASK, "--run", first)
    yield run("topics", TASK, "--run", first, "--topic", topic)
    yield run("topics", TASK, "--run", first, "--topic", topic, "--failures")
    yield run("topics", TASK, "--run", first, "--topic", topic, "--depth", 1)
    own = Path(shutil.copytree(SAMPLES / "own", folder / "own")) / "cooking.toml"
    own.write_text(own.read_text("utf-8").replace('gold = "gold.txt"\n', ""), "utf-8")
    with own.open("a", encoding="utf-8") as file:
        file.write('[embeddings]\ndocuments = "vectors.jsonl"\ntopics = "vectors.jsonl"\n')
    texts = [
        json.loads(line)["id"] for line in (own.parent / "recipes.jsonl").read_text("utf-8").splitlines()
    ]
    for name in ("questions.tsv", "train.tsv"):
        texts += [line.split("\t")[0] for line in (own.parent / name).read_text("utf-8").splitlines()[1:]]
    rows = [{"id": id_, "embedding": [1, place]} for place, id_ in enumerate(texts)]
    (own.parent / "vectors.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    yield run("embed", own, "--data", own.parent)
    yield run("index", own)
    yield run("topics", own, *split, "--topic", "q1")
    facts = "explanation-2019"
    yield run("index", facts, "--data", SAMPLES / facts)
    yield run("rank", facts, *split, "--recipe", "bm25", "--out", folder / "facts")
    yield run("evaluate", folder / "facts", "--by", "all")
    yield run("judgments import", TASK, qrels, "--format", "qrels", "--annotator", "ann")
    yield run("judgments import", TASK, other_qrels, "--format", "qrels", "--annotator", "bob")
    yield run("judgments imports", TASK)
    judge = f"{shlex.quote(sys.executable)} -c {shlex.quote(JUDGE)}"
    yield run("judge", TASK, "--run", first, "--depth", 2, "--command", judge, "--model", "ones")
    yield run("judgments list", TASK)
    yield run("judgments stats", TASK)
    yield run("judgments agreement", TASK)
    yield run("judgments audit", TASK)
    yield run("judgments report", TASK, "--out", folder / "judgments.html")
    decide = ("--annotator", "eve", "--topic", topic, "--document", document, "--grade", 1)
    assert cli("judgments", "adjudicate", TASK, *decide).code == 0
    yield run("judgments agreement", TASK)
    yield run("judgments pool", first, second, "--depth", 3, "--out", folder / "pool")
    sample = folder / "sample"
    assert cli("judgments", "pool", first, second, "--by", "sample", "--out", sample).code == 0
    lines = [line.split() for line in (sample / "run.trec").read_text("utf-8").splitlines()]
    sampled_qrels = folder / "sampled.qrels"
    sampled_qrels.write_text("".join(f"{line[0]} 0 {line[2]} 1\n" for line in lines), "utf-8")
    assert (
        cli("judgments", "import", TASK, sampled_qrels, "--format", "qrels", "--annotator", "cem").code == 0
    )
    yield run("judgments progress", TASK, "--sample", sample)
    again = ("--command", f"{judge} again", "--model", "ones", "--annotator", "ones again")
    yield run("judge", TASK, "--run", first, "--depth", 2, *again)
    yield run("judgments trust", TASK, "ones", "--resamples", 100)
    yield run("judgments trust", TASK, "ones", "--resamples", 100, "--runs", first, second)
    yield run(
        "judgments probe", TASK, "--command", judge, "--model", "ones", "--documents", 2, "--resamples", 100
    )
    yield run("evaluate", first, "--judgments", "--sample", sample)
    quotas = ("--quota", "ann=3", "--quota", "bob=3")
    yield run("judgments assign", TASK, *split, *quotas, "--out", folder / "assigned.json")
    yield run("evaluate", first, "--judgments", "--measure", "AP", *cutoff)
    yield run("evaluate", first, "--judgments", "--unjudged", "bounds", "--measure", "AP", *cutoff)
    yield run("compare", first, second, "--judgments", *permutations, "--measure", "AP", *cutoff)
    yield run("report", first, second, "--judgments", *permutations, *cutoff, "--out", folder / "judged.html")
    yield run("judgments backup", folder / "backup.sqlite")
    yield run("judgments verify")
    yield run("judgments retract", TASK, "--import", 2)
    calibration = ("judgments calibrate", TASK, "--run", first, "--size", 4, "--repeats", 1)
    for name in ("ann", "bob"):
        words = [*calibration[0].split(), *calibration[1:], "--annotator", name, "--plain"]
        assert cli(*words, typed="1\n0\n1\n0\nq\n1\nq\n").code == 0
    yield run(*calibration, "--results")
    yield run(*calibration, "--results", "--annotator", "ann", "--pass", -1)
    yield run("train", TASK, *split)
    yield run("ablate", TASK, *split, "--recipe", "neighbours", *cutoff, *permutations)
    neighbours = ("--recipe", "neighbours", *cutoff)
    yield run("learning-curve", TASK, *split, *neighbours, "--points", "0,3", "--repetitions", 2)
    grid = ("--recipe", "bm25", "--param", "k1=0.9,1.2", "--folds", 2, "--search", "grid")
    yield run("tune", TASK, *grid, *cutoff, "--out", folder / "t.toml")
    yield run("bench", bench, "--out", folder / "bench")
    yield "bench", run("report", folder / "bench", "--out", folder / "bench.html")[1]
    yield run("indexes remove", TASK, "--yes")
