"""`searchapp ablate` on the samples: its figures are those of `rank` and `evaluate`, its tests those of `compare`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from searchapp import tasks
from tests.cli.conftest import SAMPLES, Cli
from tests.cli.ranked_samples import learning_recipes, split_of

pytestmark = pytest.mark.shared_indexes

CUTOFF = ("--cutoff", 50)


def ablated(run: Cli, task: str, *options: object) -> Any:
    assert run("index", task, "--data", SAMPLES / task).code == 0
    result = run("ablate", task, "--json", *options)
    assert result.code == 0, result.stderr
    return result.json


def by_name(found: Any, measure: int = 0) -> dict[str, Any]:
    return {variant["name"]: variant for variant in found["measures"][measure]["variants"]}


def test_figures_and_tests_are_those_of_runs_that_are_ranked_and_compared(
    offline: Cli, tmp_path: Path
) -> None:
    found = ablated(offline, "nlps", "--split", "dev", "--recipe", "neighbours", "--measure", "RR", *CUTOFF)
    assert [variant["name"] for variant in found["variants"]] == [
        "full recipe", "without direct", "without neighbours", "direct alone", "neighbours alone",
    ]  # fmt: skip
    for recipe in ("bm25", "neighbours"):
        out = tmp_path / recipe
        assert offline("rank", "nlps", "--split", "dev", "--recipe", recipe, "--out", out).code == 0
    compared = offline("compare", tmp_path / "bm25", tmp_path / "neighbours", "--json", *CUTOFF).json
    for measure in (0, 1):
        variants = by_name(found, measure)
        (expected,) = [
            one for one in compared["measures"] if one["measure"] == found["measures"][measure]["measure"]
        ]
        figures = {Path(name).name: value for name, value in expected["means"].items()}
        assert variants["full recipe"]["figure"] == figures["neighbours"]
        assert (
            variants["direct alone"]["figure"] == figures["bm25"] == variants["without neighbours"]["figure"]
        )
        # A gain is what the recipe as it is has more: the neighbours, over bm25 alone.
        assert variants["without neighbours"]["tests"] == expected["pairs"][0]["tests"]
        assert variants["full recipe"]["tests"] is None


def test_costs_are_those_of_the_signals_that_are_left(offline: Cli) -> None:
    found = ablated(offline, "nlps", "--split", "dev", "--recipe", "neighbours", *CUTOFF)
    whole, without_direct, without_votes, *_ = found["variants"]
    direct, votes = found["signals"]
    assert (
        whole["cpu_seconds"] >= direct["cpu_seconds"] + votes["cpu_seconds"] > 0
        and whole["cpu_seconds_saved"] == 0
    )
    assert (
        without_direct["cpu_seconds"] >= votes["cpu_seconds"]
        and without_votes["cpu_seconds"] >= direct["cpu_seconds"]
    )
    assert without_direct["cpu_seconds_saved"] == whole["cpu_seconds"] - without_direct["cpu_seconds"]


def test_topics_that_are_solved_ones_are_ranked_in_folds(offline: Cli) -> None:
    found = ablated(offline, "nlps", "--split", "train", "--recipe", "neighbours", *CUTOFF)
    assert found["folds"] == found["topics"] == 12
    assert (
        ablated(offline, "nlps", "--split", "train", "--folds", 3, "--recipe", "neighbours", *CUTOFF)["folds"]
        <= 3
    )
    both = ablated(
        offline, "smart-types-dbpedia", "--split", "fold0", "--split", "fold1", "--recipe", "neighbours"
    )
    assert both["splits"] == ["fold0", "fold1"]
    ones = [
        ablated(offline, "smart-types-dbpedia", "--split", fold, "--recipe", "neighbours")
        for fold in both["splits"]
    ]
    counts = [one["measures"][0]["topics"] for one in ones]
    assert both["measures"][0]["topics"] == sum(counts)
    means = [by_name(one)["direct alone"]["figure"] for one in ones]
    weighted = sum(count * mean for count, mean in zip(counts, means, strict=True)) / sum(counts)
    assert by_name(both)["direct alone"]["figure"] == pytest.approx(weighted, abs=1e-12)


@pytest.mark.parametrize("task", tasks.names())
def test_every_task_s_best_recipe_is_taken_apart_as_it_ranks(offline: Cli, task: str, tmp_path: Path) -> None:
    split, recipe = split_of(tasks.load(task)), learning_recipes(tasks.load(task))[0]
    options = ("--split", split, "--recipe", recipe)
    found = ablated(offline, task, *options, *CUTOFF)
    variants = by_name(found)
    signals = [signal["name"] for signal in found["signals"]]
    assert list(variants) == [
        "full recipe",
        *(["fused by sum"] if found["learned"] else []),
        *(f"without {name}" for name in signals),
        *(f"{name} alone" for name in signals),
    ]
    out = tmp_path / "run"
    assert offline("rank", task, *options, "--out", out).code == 0
    official = offline("evaluate", out, "--json", *CUTOFF).json["official"]
    assert found["measures"][0]["measure"] == official["measure"]
    assert variants["full recipe"]["figure"] == pytest.approx(official["value"], abs=1e-12)
    told = {"labelled", "cocitation", "expansion"}  # what ranks what others have ranked high
    assert found["dependent"] == [signal["name"] for signal in found["signals"] if signal["kind"] in told]


def test_trained_signals_are_parts_too_and_their_models_are_kept(offline: Cli, tmp_path: Path) -> None:
    task = "smart-types-dbpedia"
    found = ablated(offline, task, "--split", "fold0")
    assert found["recipe"]["name"] == "best" and "multiclass alone" in by_name(found)
    kept = sorted((tmp_path / "home" / "models").iterdir())
    assert len(kept) == 1
    out = tmp_path / "run"
    assert offline("rank", task, "--split", "fold0", "--recipe", "best", "--out", out).code == 0
    assert sorted((tmp_path / "home" / "models").iterdir()) == kept


def test_models_are_trained_without_each_kind_of_features(offline: Cli) -> None:
    task = "smart-relations-dbpedia"
    found = ablated(offline, task, "--split", "fold0", "--features")
    names = [variant["name"] for variant in found["variants"]]
    assert names[1:6] == [
        f"multilabel without {kind}" for kind in ("words", "letters", "pattern", "begins", "ends")
    ]
    variants = by_name(found)
    assert len({variants[name]["figure"] for name in names[1:6]}) > 1
    # p-values are corrected among the five of them, and among the three signals that are left out.
    p = [variants[name]["corrected"]["randomisation"] for name in names[1:6]]
    assert all(one["holm"] <= min(1.0, 5 * one["p"]) + 1e-12 for one in p)
    assert [variant["kind"] for variant in found["variants"]] == [
        "full",
        *["without_feature"] * 5,
        *["without"] * 3,
        *["only"] * 3,
    ]
    refused = offline("ablate", task, "--split", "fold0", "--recipe", "neighbours", "--features")
    assert refused.code == 2 and "leave out --features" in refused.stderr


def test_a_learned_fusion_is_trained_for_the_signals_that_are_left(offline: Cli, tmp_path: Path) -> None:
    found = ablated(offline, "nlps", "--split", "dev", "--recipe", "best", *CUTOFF)
    assert found["learned"]
    # One for the recipe, and one for it without each signal.
    assert len(list((tmp_path / "home" / "models").iterdir())) == 1 + len(found["signals"])


def test_every_layout_has_the_same_figures(offline: Cli) -> None:
    found = ablated(offline, "nlps", "--split", "dev", "--recipe", "neighbours", *CUTOFF)
    options = ("ablate", "nlps", "--split", "dev", "--recipe", "neighbours", *CUTOFF)
    figures = {name: one["figure"] for name, one in by_name(found).items()}
    rows = list(csv.DictReader(io.StringIO(offline(*options, "--csv").stdout)))
    assert [float(row["figure"]) for row in rows] == list(figures.values())
    assert [row["kind"] for row in rows] == ["full", "without", "without", "only", "only"]
    for layout in ((), ("--markdown",), ("--latex",)):
        shown = offline(*options, *layout).stdout
        assert all(f"{figure:.4f}" in shown for figure in figures.values())
        assert "Holm-corrected among the variants of one kind" in shown
        assert "the official scorer requires more documents" in shown
    assert offline(*options, "--csv", "--json").code == 2


def test_what_can_t_be_taken_apart_is_a_mistake(offline: Cli) -> None:
    assert offline("index", "nlps", "--data", SAMPLES / "nlps").code == 0
    refused = offline("ablate", "nlps", "--split", "dev", "--recipe", "bm25")
    assert refused.code == 2 and "choose a recipe with several signals" in refused.stderr
    options = ("ablate", "nlps", "--recipe", "neighbours")
    assert offline(*options, "--split", "nowhere").code == 2
    refused = offline(*options, "--split", "dev", "--measure", "Guess@3")
    assert refused.code == 2 and "Guess@3" in refused.stderr
    refused = offline(*options, "--split", "dev", "--measure", "MAP@500")  # the sample has no 500 premises
    assert refused.code == 4 and "the official scorer would not score" in refused.stderr
    assert json.dumps(refused.stdout) == '""'
