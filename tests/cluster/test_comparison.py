"""Runs on three nodes, in three shards with a replica each, are byte by byte those of the embedded engine.

All topics of the real data of three tasks.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.real import real_data

pytestmark = [pytest.mark.data, pytest.mark.timeout(3600)]

SMART = "smart-types-dbpedia"
FOLDS = [(SMART, f"fold{number}", "bm25") for number in range(5)]
RUNS = [
    ("nlps", "dev", "bm25"),
    ("checkthat", "training", "bm25"),
    ("checkthat", "training", "neighbours"),
    *FOLDS,
    (SMART, "fold0", "neighbours"),
]


@pytest.mark.parametrize("task", list(dict.fromkeys(task for task, _, _ in RUNS)))
def test_runs_are_those_of_the_embedded_engine(commands: Cli, tmp_path: Path, task: str) -> None:
    data = real_data(task)
    found = []
    for engine in ("embedded", "elasticsearch"):
        spread = ["--shards", 3, "--replicas", 1] if engine == "elasticsearch" else []
        indexed = commands("index", task, "--data", data, "--engine", engine, *spread)
        assert indexed.code == 0, indexed.stderr
        runs = []
        for split, recipe in [(split, recipe) for name, split, recipe in RUNS if name == task]:
            out = tmp_path / engine / f"{split}-{recipe}"
            options = ["--data", data, "--engine", engine, "--split", split, "--recipe", recipe, "--out", out]
            made = commands("rank", task, *options)
            assert made.code == 0, made.stderr
            runs.append(
                {path.name: path.read_bytes() for path in out.rglob("*.*") if path.name != "run.json"}
            )
        found.append(runs)
    assert found[0] == found[1]
    assert all(run["run.trec"] for run in found[0])
