from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchapp import resources
from searchapp.errors import DataError, UsageError
from searchapp.model import Topic
from searchapp.ranking import recipes


@pytest.fixture
def my_recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of query templates with one task of its own."""
    folder = tmp_path / "query_templates" / "mine"
    folder.mkdir(parents=True)
    query = {"match": {"text": {"query": "{{topic.text}}", "boost": "{{recipe.boost}}"}}}
    (folder / "plain.json").write_text(json.dumps({"size": "{{depth}}", "query": query}))
    (folder / "recipes.toml").write_text(
        '[plain]\nabout = "words"\ntemplate = "plain"\nparameters = { boost = 1.5 }\n'
        "[typo]\ntemplat = 'plain'\n"
        "[unused]\ntemplate = 'plain'\nparameters = { boost = 1.0, slop = 2 }\n"
    )
    monkeypatch.setattr(resources, "folder", lambda name: tmp_path / name)
    return folder


def test_a_recipe_renders_its_template_with_topic_depth_and_parameters(my_recipes: Path) -> None:
    recipe = recipes.load("mine", "plain")
    assert recipe.body(Topic("7", "finite group"), 20) == {
        "size": 20,
        "query": {"match": {"text": {"query": "finite group", "boost": 1.5}}},
    }


def test_a_parameter_can_be_overridden_and_is_in_the_manifest(my_recipes: Path) -> None:
    recipe = recipes.load("mine", "plain", {"boost": 3})
    assert recipe.body(Topic("7", "x"), 1)["query"]["match"]["text"]["boost"] == 3
    assert recipe.manifest()["parameters"] == {"boost": 3}


def test_an_unknown_recipe_is_refused_with_those_that_exist(my_recipes: Path) -> None:
    with pytest.raises(UsageError, match=r"mine has no recipe 'best': choose plain or"):
        recipes.load("mine", "best")


def test_an_unknown_parameter_is_refused(my_recipes: Path) -> None:
    with pytest.raises(UsageError, match=r"has no parameter 'bost' \(did you mean boost\?\): it has boost"):
        recipes.load("mine", "plain", {"bost": 3})


def test_a_misspelt_key_of_a_recipe_is_refused(my_recipes: Path) -> None:
    with pytest.raises(DataError, match=r"has the unknown key 'templat'"):
        recipes.load("mine", "typo")


def test_a_parameter_that_the_template_ignores_is_refused(my_recipes: Path) -> None:
    with pytest.raises(DataError, match=r"recipe\.slop is set, but the template does not use it"):
        recipes.load("mine", "unused")


def test_every_shipped_recipe_loads_and_says_what_it_is() -> None:
    for folder in sorted(resources.folder("query_templates").iterdir()):
        for name in recipes.names(folder.name):
            assert recipes.load(folder.name, name).about


def test_votes_are_added_on_the_scale_that_the_recipe_names() -> None:
    for task, scale in (("nlps", "shares"), ("explanation-2019", "scores")):
        assert recipes.load(task, "neighbours").manifest()["neighbours"]["scale"] == scale


def test_an_unknown_scale_is_refused(my_recipes: Path) -> None:
    described = "{ template = 'plain', k = 1, power = 1.0, direct = 1.0, scale = 'ranks' }"
    text = f'[scaled]\ntemplate = "plain"\nparameters = {{ boost = 1.0 }}\nneighbours = {described}\n'
    (my_recipes / "recipes.toml").write_text(text)
    with pytest.raises(DataError, match=r"has no scale 'ranks': choose shares or scores"):
        recipes.load("mine", "scaled")
