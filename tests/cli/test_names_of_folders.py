"""Folders and files whose names are bytes that are no UTF-8, as an archive from elsewhere may leave them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLE, SAMPLES, Cli, run_command

OWN = SAMPLES / "own"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    odd = Path(os.fsdecode(bytes(tmp_path / "f") + b"\xff \xf0\x9f"))
    try:
        odd.mkdir()
    except OSError:
        pytest.skip("this file system takes names in UTF-8 only")
    return odd


def test_every_command_copes_with_them(offline: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCHAPP_HOME", str(folder / "home"))
    data, own = shutil.copytree(SAMPLE, folder / "data"), shutil.copytree(OWN, folder / "own")
    task, run, trec = own / "cooking.toml", folder / "run", folder / "run.trec"
    judged = folder / "judged.jsonl"

    def done(*arguments: object, typed: str | None = None) -> None:
        result = run_command(*arguments, typed=typed)
        assert result.code == 0, (arguments, result.stdout, result.stderr)

    done("index", "nlps", "--data", data)
    done("search", "nlps", "ring")
    done("rank", "nlps", "--split", "dev", "--out", folder / "nlps")
    done("runs", "verify", folder / "nlps")
    done("index", task)
    done("index", task)
    for recipe in ("bm25", "neighbours"):
        done("rank", task, "--split", "dev", "--recipe", recipe, "--out", run, "--overwrite")
        done("runs", "verify", run)
        done("evaluate", run, "--json")
    done("export", run, "--out", trec)
    done("validate", trec, "--task", task, "--split", "dev")
    done("evaluate", trec, "--qrels", own / "gold.txt")
    done("judge", task, "--run", run, "--plain", "--annotator", "ann", typed="2\n1\nq\n")
    done("judgments", "export", task, "--format", "jsonl", "--out", judged)
    done("judgments", "pool", run, "--depth", 3, "--out", folder / "pool")
    done("judgments", "assign", task, "--split", "dev", "--out", folder / "a.json", "--to", "ann=3")
    done("tasks", "new", folder / "new.toml", "--documents", own / "recipes.jsonl")
    for listing in ("tasks", "doctor", ["indexes", "list"], ["data", "list"]):
        done(*([listing] if isinstance(listing, str) else listing), "--json")

    monkeypatch.setenv("SEARCHAPP_HOME", str(folder / "another home"))
    done("judgments", "import", task, judged)
    done("judgments", "imports", task)
    done("judgments", "stats", task, "--json")
    assert offline("rank", "nlps", "--data", folder / "nothing", "--split", "dev", "--out", run).code in (
        2,
        3,
        4,
    )
