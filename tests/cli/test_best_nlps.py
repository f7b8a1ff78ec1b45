"""The recipe `best` of nlps on its sample: signals side by side, co-citation, and trees that fuse them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from searchapp.ranking import learning
from tests.cli.conftest import SAMPLES, Cli

TASK = "nlps"
DATA = ("--data", SAMPLES / TASK)
QUICK = ("--set", "num_trees=5", "--set", "min_samples=2", "--set", "num_leaves=4")


def ranked(run: Cli, out: Path, *options: object) -> dict[str, bytes]:
    """The bytes of a run, and what it records of its models."""
    engine = options[:2] if "--engine" in options else ()
    assert run("index", TASK, *DATA, *engine).code == 0
    result = run("rank", TASK, *DATA, "--split", "dev", "--recipe", "best", *QUICK, "--out", out, *options)
    assert result.code == 0, result.stderr
    held = {file.name: file.read_bytes() for file in out.rglob("*.*") if file.name != "run.json"}
    return held | {"models": json.dumps(recipe_of(out)["models"]).encode()}


def recipe_of(run: Path) -> Any:
    return json.loads((run / "run.json").read_text())["recipe"]


def test_a_run_records_the_model_that_fused_it_and_train_makes_the_same(offline: Cli, tmp_path: Path) -> None:
    result = ranked(offline, tmp_path / "run")
    (path,) = (tmp_path / "home" / "models").glob("nlps-fusion-*.npz")
    stored = learning.read_model(path)
    recipe = recipe_of(tmp_path / "run")
    assert recipe["models"]["fusion"]["digest"] == stored.digest
    assert recipe["models"]["fusion"]["training_topics"] == 12
    assert [signal["name"] for signal in recipe["signals"]][:4] == [
        "neighbours",
        "pairs",
        "formulae",
        "cocitation",
    ]
    content = path.read_bytes()
    again = offline("train", TASK, *DATA, "--split", "dev", *QUICK, "--rebuild", "--workers", 2, "--json")
    assert again.code == 0, again.stderr
    assert [(model["signal"], model["trained"]) for model in again.json["models"]] == [("fusion", True)]
    assert path.read_bytes() == content
    assert ranked(offline, tmp_path / "again") == result
    assert offline("runs", "verify", tmp_path / "run").code == 0
    # What is not looked at by those who train makes no other model, what they look at does.
    result = offline("train", TASK, "--split", "dev", *QUICK, "--set", "neighbours.k=3", "--json")
    assert result.json["models"][0]["trained"] and result.json["models"][0]["path"] != str(path)


def test_a_deeper_ranking_begins_with_the_shorter_one(offline: Cli, tmp_path: Path) -> None:
    for depth in (5, 20):
        ranked(offline, tmp_path / str(depth), "--depth", depth)
    rows = {
        depth: [line.split()[:4] for line in (tmp_path / depth / "run.trec").read_text().splitlines()]
        for depth in ("5", "20")
    }
    assert rows["5"] == [row for row in rows["20"] if int(row[3]) <= 5]


def test_a_solved_topic_is_not_ranked_by_its_own_answers(offline: Cli, tmp_path: Path) -> None:
    assert offline("index", TASK, *DATA).code == 0
    refused = offline(
        "rank", TASK, *DATA, "--split", "train", "--recipe", "best", *QUICK, "--out", tmp_path / "x"
    )
    assert refused.code == 4 and "was trained on the topic" in refused.stderr
    assert not (tmp_path / "x").exists()


def test_why_adds_up_and_names_what_the_trees_went_by(offline: Cli) -> None:
    assert offline("index", TASK, *DATA).code == 0
    words = "Let $H$ be a subgroup of a finite group."
    options = ["--recipe", "best", "--json"]
    first = offline("search", TASK, words, *options).json["hits"][0]
    result = offline("search", TASK, words, "--explain-document", first["id"], *options)
    assert result.code == 0, result.stderr
    explanation = result.json["explanation"]
    assert explanation["description"].startswith("fused by learned: log-odds")
    of_trees = explanation["details"][-1]
    assert of_trees["value"] == pytest.approx(sum(detail["value"] for detail in of_trees["details"]))


def test_both_engines_train_the_same_model_and_rank_the_same(server: Cli, tmp_path: Path) -> None:
    result = ranked(server, tmp_path / "embedded", "--engine", "embedded")
    for path in (tmp_path / "home" / "models").glob("*"):
        path.unlink()
    assert ranked(server, tmp_path / "elasticsearch", "--engine", "elasticsearch") == result
