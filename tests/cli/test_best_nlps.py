"""The recipe `best` of nlps on its sample: several signals, co-citation, and a fusion by trees."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from searchapp.ranking import learning
from searchapp.ranking.signals import metric
from searchapp.ranking.signals.latent_space import LatentSpace, latent_space
from tests.cli.conftest import SAMPLES, Cli

TASK = "nlps"
DATA = ("--data", SAMPLES / TASK)
QUICK = ("--set", "num_trees=5", "--set", "min_samples=2", "--set", "num_leaves=4")


def rank(run: Cli, out: Path, *options: object) -> dict[str, bytes]:
    """Make a run, and return its files and the models in its manifest."""
    engine = options[:2] if "--engine" in options else ()
    assert run("index", TASK, *DATA, *engine).code == 0
    result = run("rank", TASK, *DATA, "--split", "dev", "--recipe", "best", *QUICK, "--out", out, *options)
    assert result.code == 0, result.stderr
    files = {file.name: file.read_bytes() for file in out.rglob("*.*") if file.name != "run.json"}
    return files | {"models": json.dumps(recipe_of(out)["models"]).encode()}


def recipe_of(run: Path) -> Any:
    return json.loads((run / "run.json").read_text())["recipe"]


def test_a_run_records_the_model_that_fused_it_and_train_makes_the_same(offline: Cli, tmp_path: Path) -> None:
    first = rank(offline, tmp_path / "run")
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
    trained = [(model["signal"], model["trained"]) for model in again.json["models"]]
    assert trained == [("metric", True), ("fusion", True)]
    assert path.read_bytes() == content
    assert rank(offline, tmp_path / "again") == first
    assert offline("runs", "verify", tmp_path / "run").code == 0
    # Another value of a parameter that training reads requires another model.
    other = offline("train", TASK, "--split", "dev", *QUICK, "--set", "neighbours.k=3", "--json")
    metric, fusion = other.json["models"]
    assert not metric["trained"]
    assert fusion["trained"] and fusion["path"] != str(path)


def test_folds_share_a_latent_space_which_is_not_kept(
    offline: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    @lru_cache(maxsize=1)
    def watched(texts: tuple[str, ...], *parameters: int) -> LatentSpace:
        sizes.append(len(texts))
        return latent_space(texts, *parameters)

    monkeypatch.setattr(metric, "_latent_space", watched)
    rank(offline, tmp_path / "run")
    assert len(sizes) == 2, "one for the model that ranks, and one for those of the five folds"
    assert watched.cache_info().currsize == 0


def test_a_deeper_ranking_begins_with_the_shorter_one(offline: Cli, tmp_path: Path) -> None:
    for depth in (5, 20):
        rank(offline, tmp_path / str(depth), "--depth", depth)
    rows = {
        depth: [line.split()[:4] for line in (tmp_path / depth / "run.trec").read_text().splitlines()]
        for depth in ("5", "20")
    }
    assert rows["5"] == [row for row in rows["20"] if int(row[3]) <= 5]


def test_a_training_topic_is_not_ranked_with_its_own_gold(offline: Cli, tmp_path: Path) -> None:
    assert offline("index", TASK, *DATA).code == 0
    refused = offline(
        "rank", TASK, *DATA, "--split", "train", "--recipe", "best", *QUICK, "--out", tmp_path / "x"
    )
    assert refused.code == 4 and "was trained on the topic" in refused.stderr
    assert not (tmp_path / "x").exists()


def test_the_explanation_of_trees_adds_up(offline: Cli) -> None:
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
    embedded = rank(server, tmp_path / "embedded", "--engine", "embedded")
    for path in (tmp_path / "home" / "models").glob("*"):
        path.unlink()
    assert rank(server, tmp_path / "elasticsearch", "--engine", "elasticsearch") == embedded
