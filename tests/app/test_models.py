"""A stored model is reused only if training would read exactly the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import searchapp
from searchapp.model import Example
from searchapp.ranking.signals.metric import LearnedMetric
from tests.cli.conftest import SAMPLES, Cli
from tests.cli.conftest import offline as offline

RECIPE = """
[recipes.taught]
signals = [
  { signal = "direct", template = "bm25" },
  { signal = "neighbours", template = "bm25", k = 20, power = 1.0 },
]
fusion.method = "learned"
fusion.candidates = 10
fusion.max_topics = 20
fusion.folds = 2
fusion.num_trees = 2
fusion.num_leaves = 2
fusion.min_samples = 1
fusion.learning_rate = 0.5

[recipes.classes]
template = "bm25"
signals = [{ signal = "multilabel", cost = 1.0, min_samples = 1, steepness = 1.0 }]

[recipes.vectors]
signals = [
  { signal = "direct", template = "bm25" },
  { signal = "metric", min_df = 1, dimensions = 8, latent_dimensions = 16, weight = 0.5 },
]
[recipes.vectors.fusion]
method = "learned"
candidates = 10
max_topics = 20
folds = 2
num_trees = 2
num_leaves = 2
min_samples = 1
learning_rate = 0.5
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """An own task whose recipe `taught` has a learned fusion, and whose recipe `classes` a trained signal."""
    path = Path(shutil.copytree(SAMPLES / "own", tmp_path / "own")) / "cooking.toml"
    path.write_text(path.read_text() + RECIPE)
    return path


def train(run: Cli, task: Path, recipe: str = "taught") -> Any:
    """Return the description of a recipe's model by `train --json`, which trains it only if none is stored."""
    assert run("index", task).code == 0
    result = run("train", task, "--split", "dev", "--recipe", recipe, "--json")
    assert result.code == 0, result.stderr
    (model,) = result.json["models"]
    return model


def replace_text(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def change_field_of_a_training_topic(task: Path) -> None:
    replace_text(task.with_name("train.tsv"), "\teasy", "\thard")


def change_text_of_a_training_topic(task: Path) -> None:
    replace_text(task.with_name("train.tsv"), "a soup made", "some soup made")


def remove_last_grade(task: Path) -> None:
    path = task.with_name("train-gold.csv")
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")


def reverse_gold(task: Path) -> None:
    path = task.with_name("train-gold.csv")
    head, *rows = path.read_text().splitlines()
    path.write_text("\n".join([head, *reversed(rows)]) + "\n")


def change_document(task: Path) -> None:
    replace_text(task.with_name("recipes.jsonl"), "Simmer red lentils", "Simmer brown lentils")


def make_topics_documents(task: Path) -> None:
    task.write_text("topics_are_documents = true\n" + task.read_text())


def change_parameter(task: Path) -> None:
    replace_text(task, "k = 20", "k = 10")


CHANGES = (
    change_field_of_a_training_topic,
    change_text_of_a_training_topic,
    remove_last_grade,
    reverse_gold,
    change_document,
    make_topics_documents,
    change_parameter,
)


@pytest.mark.parametrize("change", CHANGES)
def test_a_fusion_is_trained_again_after_each_change_of_what_training_reads(
    offline: Cli, task: Path, change: Any
) -> None:
    first = train(offline, task)
    assert first["trained"] and not train(offline, task)["trained"]
    change(task)
    again = train(offline, task)
    assert again["trained"] and again["key"] != first["key"]


def test_the_vectors_of_a_fusion_are_trained_without_the_topics_they_rank(
    offline: Cli, task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trees learn from folds of topics whose vectors a model of the other folds has computed."""
    seen: list[frozenset[str]] = []
    original = LearnedMetric.train

    def watched(signal: LearnedMetric, examples: Sequence[Example], *more: Any) -> Any:
        seen.append(frozenset(example.topic.id for example in examples))
        return original(signal, examples, *more)

    monkeypatch.setattr(LearnedMetric, "train", watched)
    command = ("train", task, "--split", "dev", "--recipe", "vectors", "--rebuild", "--json")
    assert offline("index", task).code == 0
    first, again = (offline(*command).json["models"] for _ in range(2))
    assert [model["digest"] for model in first] == [model["digest"] for model in again]
    everything, *folds = seen[: len(seen) // 2]
    assert len(folds) == 2 and folds[0] | folds[1] == everything and not folds[0] & folds[1]


@pytest.mark.parametrize("recipe", ["taught", "classes"])
@pytest.mark.parametrize("package", ["searchapp", "scikit-learn", "numpy", "scipy"])
def test_a_model_of_other_versions_is_trained_again(
    offline: Cli, task: Path, recipe: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = train(offline, task, recipe)
    installed = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "99.0" if name == package else installed(name))
    if package == "searchapp":
        monkeypatch.setattr(searchapp, "__version__", "99.0")
    again = train(offline, task, recipe)
    assert again["trained"] and again["key"] != first["key"]
    assert again["versions"][package] == "99.0" != first["versions"][package]


def test_a_change_that_training_does_not_read_reuses_the_model(
    offline: Cli, task: Path, tmp_path: Path
) -> None:
    first = train(offline, task)
    task.write_text(f"# a comment\n{task.read_text()}\n[recipes.more]\ntemplate = 'bm25'\n")
    replace_text(task.with_name("gold.txt"), "q1 0 r01 2", "q1 0 r01 1")
    replace_text(task.with_name("questions.tsv"), "soup with lentils", "lentil soup")
    again = train(offline, task)
    assert not again["trained"] and again["digest"] == first["digest"]
    out = tmp_path / "run"
    assert offline("rank", task, "--split", "dev", "--recipe", "taught", "--out", out).code == 0
    models = json.loads((out / "run.json").read_text())["recipe"]["models"]
    assert models["fusion"]["key"] == first["key"]
