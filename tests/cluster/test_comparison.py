"""Runs on three nodes, with three shards and a replica, equal those of the embedded engine byte by byte.

The tests rank all topics of the real data of three tasks.
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
def test_runs_equal_those_of_the_embedded_engine(commands: Cli, tmp_path: Path, task: str) -> None:
    data = real_data(task)
    runs_by_engine = []
    for engine in ("embedded", "elasticsearch"):
        shards = ["--shards", 3, "--replicas", 1] if engine == "elasticsearch" else []
        indexed = commands("index", task, "--data", data, "--engine", engine, *shards)
        assert indexed.code == 0, indexed.stderr
        runs = []
        for split, recipe in [(split, recipe) for name, split, recipe in RUNS if name == task]:
            out = tmp_path / engine / f"{split}-{recipe}"
            options = ["--data", data, "--engine", engine, "--split", split, "--recipe", recipe, "--out", out]
            result = commands("rank", task, *options)
            assert result.code == 0, result.stderr
            runs.append(
                {path.name: path.read_bytes() for path in out.rglob("*.*") if path.name != "run.json"}
            )
        runs_by_engine.append(runs)
    embedded, elasticsearch = runs_by_engine
    assert embedded == elasticsearch
    assert all(run["run.trec"] for run in embedded)
