from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from searchapp.app.experiments.bench_result import FILE
from searchapp.config.settings import DECLARED
from tests.cli.conftest import run_command
from tests.report.reading import Reader

PAYLOADS = (
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=2</script>",
    "</style></title></svg><img/src=x/onerror=window.pwned=3>",
    "\"onmouseover='window.pwned=4'x=\"",
    "{{7*7}}{%raw%}&lt;b&gt;&#60;i&#62;",
    "\u202egnp\u202c\u200b\u2066x\uffff\ufdd0\u05d0\u0627",
    "javascript:window.pwned=5//<!--]]>",
)
"""Ids of topics and of documents."""

CANARY = "http://127.0.0.1:9/asked"
LOADS = (
    f'<link rel=stylesheet href="{CANARY}"><img src="{CANARY}"><iframe src="{CANARY}"></iframe>'
    f'<base href="{CANARY}"><meta http-equiv=refresh content="0;url={CANARY}"><style>@import "{CANARY}"</style>'
)
"""Markup in every text that would send a request."""

PLAN = """
baseline = "bm25"
permutations = 100
[recipes.bm25]
[recipes.words]
[recipes.wrong]
recipe = "words"
[tasks.own]
task = "task.toml"
splits = ["dev"]
"""


@dataclass(frozen=True)
class Reports:
    """Reports on a task whose ids, texts and names are all hostile."""

    folder: Path
    topics: tuple[str, ...]
    two_runs: Path
    one_run: Path
    bench: Path


def run_quietly(home: Path, *arguments: object) -> None:
    result = run_command(*arguments, "--home", home, "--quiet")
    assert result.code == 0, result.stderr


def _insert_payloads(path: Path) -> None:
    """Replace names and messages in a bench result by payloads."""
    bench = json.loads(path.read_text(encoding="utf-8"))
    for number, system in enumerate(bench["systems"]):
        system |= {"name": PAYLOADS[number], "recipe": PAYLOADS[3], "parameters": {PAYLOADS[0]: PAYLOADS[1]}}
    (column,) = bench["columns"]
    column |= {"task": PAYLOADS[5], "split": PAYLOADS[4], "warnings": [LOADS]}
    column["cells"][2] |= {"error": PAYLOADS[2], "run": PAYLOADS[6], "digest": PAYLOADS[0]}
    column["measures"][0]["name"] = PAYLOADS[1]
    bench |= {"file": PAYLOADS[2], "notes": [LOADS], "searchapp": PAYLOADS[0]}
    path.write_text(json.dumps(bench), encoding="utf-8")


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    folder = tmp_path_factory.mktemp("reports")
    home, task = folder / "home", folder / "task.toml"
    texts = [
        f"stew {payload} {LOADS}\x00\x1b[2J\u2028 number {number}" for number, payload in enumerate(PAYLOADS)
    ]
    for name, extra in (("documents", "stew of beans "), ("topics", "")):
        rows = [
            {"id": id_, "text": f"{extra * number}{text}"}
            for number, (id_, text) in enumerate(zip(PAYLOADS, texts, strict=True))
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [
        f"{topic} 0 {document} 1\n"
        for number, topic in enumerate(PAYLOADS)
        for document in PAYLOADS[number : number + 2]
    ]
    (folder / "gold.txt").write_text("".join(lines), encoding="utf-8")
    task.write_text(
        f"""name = "hostile"
title = {json.dumps("<script>window.pwned=6</script>")}
[documents]
file = "documents.jsonl"
[topics.dev]
file = "topics.jsonl"
gold = "gold.txt"
"""
    )
    with pytest.MonkeyPatch.context() as patch:
        for setting in DECLARED:
            if setting.variable:
                patch.delenv(setting.variable, raising=False)
        run_quietly(home, "index", task)
        runs = [folder / "<script>window.pwned=7<", folder / "\"'><b>run"]
        for run, depth in zip(runs, (7, 2), strict=True):
            tag = ("--tag", "<script>window.pwned=8</script>")
            run_quietly(home, "rank", task, "--split", "dev", "--depth", depth, "--out", run, *tag)
        two_runs, one_run = folder / "two.html", folder / "one.html"
        run_quietly(home, "report", *runs, "--out", two_runs)
        run_quietly(home, "report", runs[0], "--out", one_run)
        plan, bench = folder / "<b>plan.toml", folder / "bench.html"
        plan.write_text(PLAN)
        run_quietly(home, "bench", plan, "--out", folder / "benched")
        _insert_payloads(folder / "benched" / FILE)
        run_quietly(home, "report", folder / "benched", "--out", bench)
    return Reports(folder, PAYLOADS, two_runs, one_run, bench)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with Reader(tmp_path_factory.mktemp("browser")) as opened:
        yield opened
