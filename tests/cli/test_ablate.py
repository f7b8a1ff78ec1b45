"""`searchapp ablate` on the samples: figures are those of `rank` and `evaluate`, tests are those of `compare`."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from searchapp import tasks
from tests.cli.conftest import SAMPLES, Cli
from tests.cli.ranked_samples import learning_recipes, split_of

pytestmark = pytest.mark.shared_indexes

CUTOFF = ("--cutoff", 50)


def ablate(run: Cli, task: str, *options: object) -> Any:
    """Return the output of an ablation study of the sample of a task."""
    assert run("index", task, "--data", SAMPLES / task).code == 0
    result = run("ablate", task, "--json", *options)
    assert result.code == 0, result.stderr
    return result.json


def by_name(study: Any, measure: int = 0) -> dict[str, Any]:
    return {variant["name"]: variant for variant in study["measures"][measure]["variants"]}


def test_figures_and_tests_are_those_of_runs_that_are_ranked_and_compared(
    offline: Cli, tmp_path: Path
) -> None:
    study = ablate(offline, "nlps", "--split", "dev", "--recipe", "neighbours", "--measure", "RR", *CUTOFF)
    assert [variant["name"] for variant in study["variants"]] == [
        "full recipe", "without direct", "without neighbours", "direct alone", "neighbours alone",
    ]  # fmt: skip
    for recipe in ("bm25", "neighbours"):
        out = tmp_path / recipe
        assert offline("rank", "nlps", "--split", "dev", "--recipe", recipe, "--out", out).code == 0
    compared = offline("compare", tmp_path / "bm25", tmp_path / "neighbours", "--json", *CUTOFF).json
    for measure in (0, 1):
        variants = by_name(study, measure)
        name = study["measures"][measure]["measure"]
        (expected,) = [comparison for comparison in compared["measures"] if comparison["measure"] == name]
        figures = {Path(run).name: value for run, value in expected["means"].items()}
        assert variants["full recipe"]["figure"] == figures["neighbours"]
        assert (
            variants["direct alone"]["figure"] == figures["bm25"] == variants["without neighbours"]["figure"]
        )
        # A gain is the full recipe − the variant: here with the neighbours − without them.
        assert variants["without neighbours"]["tests"] == expected["pairs"][0]["tests"]
        assert variants["full recipe"]["tests"] is None


def test_costs_of_a_variant_are_those_of_its_signals(offline: Cli) -> None:
    study = ablate(offline, "nlps", "--split", "dev", "--recipe", "neighbours", *CUTOFF)
    full, without_direct, without_votes, *_ = study["variants"]
    direct, votes = study["signals"]
    assert full["cpu_seconds"] >= direct["cpu_seconds"] + votes["cpu_seconds"] > 0
    assert full["cpu_seconds_saved"] == 0
    assert without_direct["cpu_seconds"] >= votes["cpu_seconds"]
    assert without_votes["cpu_seconds"] >= direct["cpu_seconds"]
    assert without_direct["cpu_seconds_saved"] == full["cpu_seconds"] - without_direct["cpu_seconds"]


def test_training_topics_are_ranked_in_folds(offline: Cli) -> None:
    options = ("--split", "train", "--recipe", "neighbours", *CUTOFF)
    study = ablate(offline, "nlps", *options)
    assert study["folds"] == study["topics"] == 12
    assert ablate(offline, "nlps", *options, "--folds", 3)["folds"] <= 3
    both = ablate(
        offline, "smart-types-dbpedia", "--split", "fold0", "--split", "fold1", "--recipe", "neighbours"
    )
    assert both["splits"] == ["fold0", "fold1"]
    studies = [
        ablate(offline, "smart-types-dbpedia", "--split", fold, "--recipe", "neighbours")
        for fold in both["splits"]
    ]
    counts = [study["measures"][0]["topics"] for study in studies]
    assert both["measures"][0]["topics"] == sum(counts)
    means = [by_name(study)["direct alone"]["figure"] for study in studies]
    weighted = sum(count * mean for count, mean in zip(counts, means, strict=True)) / sum(counts)
    assert by_name(both)["direct alone"]["figure"] == pytest.approx(weighted, abs=1e-12)


@pytest.mark.parametrize("task", tasks.names())
def test_the_full_recipe_has_the_figure_of_its_run_for_every_task(
    offline: Cli, task: str, tmp_path: Path
) -> None:
    split, recipe = split_of(tasks.load(task)), learning_recipes(tasks.load(task))[0]
    options = ("--split", split, "--recipe", recipe)
    study = ablate(offline, task, *options, *CUTOFF)
    variants = by_name(study)
    signals = [signal["name"] for signal in study["signals"]]
    assert list(variants) == [
        "full recipe",
        *(["fused by sum"] if study["learned"] else []),
        *(f"without {name}" for name in signals),
        *(f"{name} alone" for name in signals),
    ]
    out = tmp_path / "run"
    assert offline("rank", task, *options, "--out", out).code == 0
    official = offline("evaluate", out, "--json", *CUTOFF).json["official"]
    assert study["measures"][0]["measure"] == official["measure"]
    assert variants["full recipe"]["figure"] == pytest.approx(official["value"], abs=1e-12)
    dependent = {"labelled", "cocitation", "expansion"}  # signals whose scores depend on other signals
    assert study["dependent"] == [
        signal["name"] for signal in study["signals"] if signal["kind"] in dependent
    ]


def test_the_models_of_an_ablation_study_are_stored(offline: Cli, tmp_path: Path) -> None:
    task = "smart-types-dbpedia"
    study = ablate(offline, task, "--split", "fold0")
    assert study["recipe"]["name"] == "best" and "multiclass alone" in by_name(study)
    models = sorted((tmp_path / "home" / "models").iterdir())
    assert len(models) == 1
    out = tmp_path / "run"
    assert offline("rank", task, "--split", "fold0", "--recipe", "best", "--out", out).code == 0
    assert sorted((tmp_path / "home" / "models").iterdir()) == models


def test_features_ablates_each_kind_of_features(offline: Cli) -> None:
    task = "smart-relations-dbpedia"
    study = ablate(offline, task, "--split", "fold0", "--features")
    names = [variant["name"] for variant in study["variants"]]
    assert names[1:6] == [
        f"multilabel without {kind}" for kind in ("words", "letters", "pattern", "begins", "ends")
    ]
    variants = by_name(study)
    assert len({variants[name]["figure"] for name in names[1:6]}) > 1
    # p-values are corrected among the five of them, and separately among the three variants without a signal.
    corrected = [variants[name]["corrected"]["randomisation"] for name in names[1:6]]
    assert all(test["holm"] <= min(1.0, 5 * test["p"]) + 1e-12 for test in corrected)
    assert [variant["kind"] for variant in study["variants"]] == [
        "full",
        *["without_feature"] * 5,
        *["without"] * 3,
        *["only"] * 3,
    ]
    refused = offline("ablate", task, "--split", "fold0", "--recipe", "neighbours", "--features")
    assert refused.code == 2 and "leave out --features" in refused.stderr


def test_a_learned_fusion_is_trained_for_each_variant(offline: Cli, tmp_path: Path) -> None:
    study = ablate(offline, "nlps", "--split", "dev", "--recipe", "best", *CUTOFF)
    assert study["learned"]
    # One for the full recipe, and one for the recipe without each signal.
    assert len(list((tmp_path / "home" / "models").glob("nlps-fusion-*"))) == 1 + len(study["signals"])


def test_every_layout_has_the_same_figures(offline: Cli) -> None:
    options = ("ablate", "nlps", "--split", "dev", "--recipe", "neighbours", *CUTOFF)
    variants = by_name(ablate(offline, *options[1:])).values()
    figures = [variant["figure"] for variant in variants]
    rows = list(csv.DictReader(io.StringIO(offline(*options, "--csv").stdout)))
    assert [float(row["figure"]) for row in rows] == figures
    assert [row["kind"] for row in rows] == ["full", "without", "without", "only", "only"]
    for layout in ((), ("--markdown",), ("--latex",)):
        text = offline(*options, *layout).stdout
        assert all(f"{figure:.4f}" in text for figure in figures)
        assert "Holm-corrected among the variants of one kind" in text
        assert "the official scorer requires more documents" in text
    assert offline(*options, "--csv", "--json").code == 2


def test_usage_errors_are_reported(offline: Cli) -> None:
    assert offline("index", "nlps", "--data", SAMPLES / "nlps").code == 0
    refused = offline("ablate", "nlps", "--split", "dev", "--recipe", "bm25")
    assert refused.code == 2 and "choose a recipe with several signals" in refused.stderr
    options = ("ablate", "nlps", "--recipe", "neighbours")
    assert offline(*options, "--split", "nowhere").code == 2
    refused = offline(*options, "--split", "dev", "--measure", "Guess@3")
    assert refused.code == 2 and "Guess@3" in refused.stderr
    refused = offline(*options, "--split", "dev", "--measure", "MAP@500")  # the sample has no 500 premises
    assert refused.code == 4 and "the official scorer would not score" in refused.stderr
    assert refused.stdout == ""
