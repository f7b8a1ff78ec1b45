"""Variants of tasks, with recipes, templates and mappings of a user."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from searchapp import resources, tasks
from searchapp.errors import InvalidFiles
from searchapp.ranking import recipes
from tests.cli.conftest import SAMPLES, Cli
from tests.cli.conftest import offline as offline

RECIPE = """
[recipes.mine]
signals = [
  { signal = "direct", template = "query.json", weight = 0.5 },
  { signal = "neighbours", template = "similar", k = 5, power = 1.0 },
]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a mapping with another k1, a template, and two variants of nlps."""
    mapping = resources.index_mapping("premises")
    for similarity in mapping["settings"]["similarity"].values():
        similarity["k1"] = 3.0
    (tmp_path / "mine.json").write_text(json.dumps(mapping))
    (tmp_path / "query.json").write_text(json.dumps(resources.query_template("nlps", "bm25")))
    (tmp_path / "plain.toml").write_text(f'extends = "nlps"\n{RECIPE}')
    (tmp_path / "mapped.toml").write_text(
        f'extends = "nlps"\nmapping = "mine.json"\nrecipe = "mine"\n{RECIPE}'
    )
    return tmp_path


def test_a_variant_is_the_task_with_additional_recipes(folder: Path) -> None:
    task, base = tasks.load(str(folder / "plain.toml")), tasks.load("nlps")
    assert (task.name, task.info.index_names, task.info.file) == ("nlps", ("nlps",), None)
    assert task.reference == str(folder / "plain.toml")
    assert recipes.names(task.recipe_book()) == sorted([*recipes.names("nlps"), "mine"])
    assert task.index_mapping() == base.index_mapping()


def test_a_variant_with_a_mapping_has_its_own_indexes(folder: Path) -> None:
    task = tasks.load(str(folder / "mapped.toml"))
    (name,) = task.info.index_names
    assert name.startswith("nlps-m") and task.info.default_recipe == "mine"
    collection = task.collection(SAMPLES / "nlps")
    assert collection.index_of("dev") == name and list(collection.indexes) == [name]
    assert task.index_mapping() == task.examples_index_mapping() != tasks.load("nlps").index_mapping()


def test_a_variant_of_debates_has_two_indexes(tmp_path: Path) -> None:
    (tmp_path / "v.toml").write_text('extends = "checkthat"\nmapping = "m.json"\n')
    (tmp_path / "m.json").write_text(json.dumps(resources.index_mapping("sentences")))
    task = tasks.load(str(tmp_path / "v.toml"))
    collection = task.collection(SAMPLES / "checkthat")
    indexes = [collection.index_of(split) for split in task.info.splits]
    assert indexes == list(reversed(task.info.index_names)) and set(indexes) == set(collection.indexes)


def test_runs_of_a_variant_are_runs_of_the_task(
    offline: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    data = SAMPLES / "nlps"
    for task in ("nlps", "mapped.toml"):
        assert offline("index", task, "--data", data).code == 0
    assert offline("rank", "nlps", "--split", "dev", "--out", "shipped").code == 0
    assert offline("rank", "plain.toml", "--split", "dev", "--recipe", "mine", "--out", "plain").code == 0
    assert offline("rank", "mapped.toml", "--split", "dev", "--out", "mapped", "--set", "k=3").code == 0
    shipped, plain, mapped = (Path(f"{run}/run.trec").read_text() for run in ("shipped", "plain", "mapped"))
    assert len({shipped, plain, mapped}) == 3
    for task in ("nlps", "mapped.toml"):
        assert offline("search", task, "continuous", "--size", "1").code == 0
    compared = offline(
        "compare", "shipped", "plain", "mapped", "--cutoff", 30, "--permutations", 50, "--json"
    )
    assert compared.code == 0, compared.stderr
    manifest = json.loads(Path("mapped/run.json").read_text())
    assert manifest["task"] == "nlps" and manifest["variant"] == str(Path("mapped.toml").resolve())
    assert not json.loads(Path("shipped/run.json").read_text())["variant"]
    assert offline("runs", "verify", "mapped").code == 0
    query = Path("query.json").read_text()
    Path("query.json").write_text('{"query": "{{#section}}"}')
    verified = offline("runs", "verify", "mapped")
    assert verified.code == 4 and "the recipe can't be compared" in verified.stderr
    Path("query.json").write_text(f"  {query}")
    assert offline("runs", "verify", "mapped").code == 0
    Path("mapped.toml").unlink()
    verified = offline("runs", "verify", "mapped")
    assert verified.code == 0 and "mapped.toml: no longer exists, so it was not compared" in verified.stderr
    again = offline("rerun", "mapped", "--out", "again")
    assert again.code == 0, again.stderr
    assert offline("evaluate", "mapped", "--cutoff", 30).code == 0, (
        "a variant has the gold and the scorer of the task"
    )


def test_the_command_of_a_run_contains_the_overrides(
    folder: Path, offline: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    from searchapp.app.manifests import command
    from searchapp.runs.directory import read_manifest

    monkeypatch.chdir(folder)
    assert offline("index", "nlps", "--data", SAMPLES / "nlps").code == 0
    overrides = ("--set", "k=3", "--set", "direct=0.1", "--set", "normalization=none")
    options = ("--split", "dev", "--recipe", "mine", "--out", "run", *overrides)
    assert offline("rank", "plain.toml", *options).code == 0
    line = command(read_manifest(Path("run")))
    assert f"rank {folder / 'plain.toml'}" in line
    assert " ".join(overrides) in line and "power" not in line


def test_an_own_task_is_extended_by_its_path(tmp_path: Path) -> None:
    own = Path(shutil.copytree(SAMPLES / "own", tmp_path / "own"))
    (tmp_path / "v.toml").write_text('extends = "own/cooking.toml"\n[recipes.mine]\ntemplate = "bm25"\n')
    task = tasks.load(str(tmp_path / "v.toml"))
    assert task.info.file == own / "cooking.toml" and "mine" in recipes.names(task.recipe_book())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('extends = "nlsp"', "unknown task 'nlsp'"),
        ("extends = 7", "extends must be text"),
        ('extends = "v.toml"', "is itself a variant"),
        ('extends = "x.toml"', "is itself a variant"),
        ('extends = "none.toml"', "none.toml"),
        ('extends = "nlps"\nmaping = "x.json"', "unknown key"),
        ('extends = "nlps"\nmapping = "premises"', "must be the name of a .json file"),
        ('extends = "nlps"\nmapping = "none.json"', "none.json"),
        ('extends = "nlps"\nrecipe = "none"', "unknown recipe 'none'"),
        ('extends = "nlps"\nrecipes = 3', "recipes must be a table"),
        ('extends = "nlps"\nmapping = "list.json"', "a JSON object was expected"),
        ('extends = "nlps"\nmapping = "empty.json"', "must have a property id"),
        ('extends = "checkthat"\ntraining_mapping = "mine.json"', "has no index of training topics"),
    ],
)
def test_invalid_variants_are_rejected(text: str, message: str, folder: Path, offline: Cli) -> None:
    (folder / "list.json").write_text("[]")
    (folder / "empty.json").write_text("{}")
    (folder / "v.toml").write_text('extends = "nlps"')
    (folder / "x.toml").write_text(text)
    result = offline("tasks", "show", folder / "x.toml")
    assert result.code in (2, 4) and message in result.stderr, result.stderr
    assert "Traceback" not in result.stderr


def test_an_invalid_recipe_is_rejected_when_it_is_loaded(folder: Path) -> None:
    (folder / "x.toml").write_text('extends = "nlps"\n[recipes.x]\nsignals = 5\n')
    task: Any = tasks.load(str(folder / "x.toml"))
    with pytest.raises(Exception, match="signals must be a list"):
        recipes.load(task.recipe_book(), "x")
    with pytest.raises(InvalidFiles):
        tasks.load(str(folder / "none.toml"))
