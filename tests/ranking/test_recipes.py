from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from searchapp import resources, tasks
from searchapp.errors import DataError, UsageError
from searchapp.model import Topic
from searchapp.ranking import recipes
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals import KINDS, signal_class
from searchapp.resources import RecipeBook


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


def mine(name: str, overrides: Mapping[str, Any] | None = None) -> Recipe:
    return recipes.load(resources.recipe_book("mine"), name, overrides)


def test_a_recipe_renders_its_template_with_topic_depth_and_parameters(my_recipes: Path) -> None:
    recipe = mine("plain")
    assert recipe.body(Topic("7", "finite group"), 20) == {
        "size": 20,
        "query": {"match": {"text": {"query": "finite group", "boost": 1.5}}},
        "sort": [{"_score": "desc"}, {"id": "asc"}],
    }


def test_a_parameter_can_be_overridden_and_is_in_the_manifest(my_recipes: Path) -> None:
    recipe = mine("plain", {"boost": 3})
    assert recipe.body(Topic("7", "x"), 1)["query"]["match"]["text"]["boost"] == 3
    assert recipe.manifest()["parameters"] == {"boost": 3}


def test_an_unknown_recipe_is_refused_with_those_that_exist(my_recipes: Path) -> None:
    with pytest.raises(UsageError, match=r"mine has no recipe 'best': choose plain or"):
        mine("best")


def test_an_unknown_parameter_is_refused(my_recipes: Path) -> None:
    with pytest.raises(UsageError, match=r"has no parameter 'bost' \(did you mean boost\?\): it has boost"):
        mine("plain", {"bost": 3})


def test_a_misspelt_key_of_a_recipe_is_refused(my_recipes: Path) -> None:
    with pytest.raises(DataError, match=r"has the unknown key 'templat'"):
        mine("typo")


def test_a_parameter_that_the_template_ignores_is_refused(my_recipes: Path) -> None:
    with pytest.raises(DataError, match=r"recipe\.slop is set, but the template does not use it"):
        mine("unused")


def test_every_shipped_recipe_loads_and_says_what_it_is() -> None:
    every: list[str | RecipeBook] = [*tasks.names(), resources.recipe_book(resources.GENERAL)]
    for task in every:
        for name in recipes.names(task):
            assert recipes.load(task, name).about


def test_a_task_by_its_name_has_the_general_templates_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(resources.folder("query_templates"), tmp_path / "query_templates"))
    (folder / "nlps" / "words.json").unlink()
    monkeypatch.setattr(resources, "folder", lambda name: tmp_path / name)
    asked = recipes.load("nlps", "words").body(Topic("7", "finite group"), 20)["query"]["bool"]
    assert asked["must_not"] == [{"term": {"id": "7"}}] and "finite group" in json.dumps(asked["must"])


def test_votes_are_added_on_the_scale_that_the_recipe_names() -> None:
    for task, normalization in (("nlps", "max"), ("explanation-2019", "none")):
        assert recipes.load(task, "neighbours").manifest()["fusion"] == {
            "method": "sum",
            "normalization": normalization,
        }


def test_an_unknown_scale_is_refused(my_recipes: Path) -> None:
    write(my_recipes, SIGNALS + "fusion = { method = 'sum', normalization = 'ranks' }")
    with pytest.raises(DataError, match=r"has no normalization 'ranks': choose max or none"):
        mine("x")


SIGNALS = """signals = [
  { signal = "direct", template = "plain", weight = 0.5 },
  { signal = "neighbours", template = "plain", k = 3, power = 2.0 },
  { signal = "neighbours", name = "far", template = "plain", k = 30, power = 2.0 },
]
parameters = { boost = 1.0 }
"""


def write(folder: Path, text: str) -> None:
    (folder / "recipes.toml").write_text(f"[x]\n{text}")


def beside_direct(table: str) -> str:
    return f"signals = [{{ signal = 'direct', template = 'plain' }}, {{ signal = {table} }}]"


def test_a_template_alone_is_one_direct_signal(my_recipes: Path) -> None:
    loaded = []
    for text in ("template = 'plain'", "signals = [{ signal = 'direct', template = 'plain' }]"):
        write(my_recipes, f"{text}\nparameters = {{ boost = 1.0 }}\n")
        loaded.append(mine("x").manifest())
    assert loaded[0] == loaded[1]


def test_numbers_are_set_by_their_key_and_by_the_signal_where_several_have_it(my_recipes: Path) -> None:
    write(my_recipes, SIGNALS)
    recipe = mine("x", {"far.k": 7, "direct": 2, "boost": 4, "neighbours.power": 0})
    direct, near, far = recipe.manifest()["signals"]
    assert (direct["weight"], near["k"], near["power"], far["k"], far["power"]) == (2.0, 3, 0.0, 7, 2.0)
    assert recipe.parameters == {"boost": 4}
    with pytest.raises(UsageError, match=r"several parameters k: name neighbours\.k or far\.k"):
        mine("x", {"k": 7})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SIGNALS.replace(', name = "far"', ""), "two signals named neighbours: give each its own name"),
        (SIGNALS.replace("neighbours", "neighbors"), "has no signal 'neighbors'"),
        (SIGNALS.replace("k = 3,", ""), "has no k in 'neighbours'"),
        (SIGNALS.replace("k = 3,", "k = 3, kk = 3,"), "unknown key 'kk' .*in 'neighbours'"),
        (SIGNALS.replace("k = 3,", "k = true,"), "k must be a whole number"),
        (SIGNALS.replace("0.5", "-0.5"), "weight must be a non-negative number"),
        (SIGNALS.replace("0.5", "nan"), "weight must be a non-negative number"),
        (SIGNALS.replace("power = 2.0", "power = inf"), "power must be a non-negative number"),
        (
            SIGNALS + "fusion = { method = 'magic' }",
            "has no fusion 'magic': choose sum, mnz, rrf or learned",
        ),
        (
            SIGNALS + "fusion = { method = 'ranks' }",
            r"no fusion 'ranks' \(did you mean rrf\?\): choose sum",
        ),
        (SIGNALS + "fusion = { method = 'rrf', k = -1 }", "k must be a non-negative number"),
        (SIGNALS + "fusion = { method = 'sum', normalization = 'x' }", "has no normalization 'x'"),
        (SIGNALS + "fusion = { method = 'sum', constant = 1 }", "unknown key 'constant'"),
        (SIGNALS + "fusion = 'sum'", "fusion must be a table"),
        (SIGNALS + "baseline = 'tfidf'", "has the unknown key 'baseline'"),
        ("signals = []", "has no signals"),
        ("signals = ['direct']", "has a signal without a kind"),
        ("signals = [{ signal = 'tfidf' }]", "has neither a template for searches nor a direct signal"),
        (
            "signals = [{ signal = 'labelled', template = 'plain', k = 1, power = 1 }]\ntemplate = 'plain'",
            "begins with labelled, which needs candidates",
        ),
        (beside_direct("'cosine', kind_field = 'table'"), "has no kind_prior in 'cosine'"),
        (beside_direct("'cosine', kind_prior = 0.5"), "has the unknown key 'kind_prior'"),
        (
            beside_direct("'expansion', feedback_documents = 3, feedback_terms = 5"),
            "has the unknown key 'feedback_terms'",
        ),
        (
            beside_direct("'expansion', feedback_documents = 101"),
            "expands by 101 documents in 'expansion': the maximum is 100",
        ),
        (
            beside_direct("'labelled', template = 'plain', k = 3, power = 1, position_decay = 1"),
            "has no group_field in 'labelled'",
        ),
        (
            beside_direct("'multiclass', cost = 1, min_samples = 2, steepness = 8, category_cost = 2"),
            "has the unknown key 'category_cost'",
        ),
        (beside_direct("'popular', window = 10"), "has the unknown key 'window'"),
        (
            beside_direct("'multilabel', cost = 1, fewest = 2, steepness = 8"),
            r"has the unknown key 'fewest' \(did you mean min_samples\?\)",
        ),
        (
            SIGNALS + "fusion = { method = 'sum', scale = 'shares' }",
            r"has the unknown key 'scale' \(did you mean normalization\?\)",
        ),
    ],
)
def test_what_is_wrong_with_a_recipe_is_said(my_recipes: Path, text: str, message: str) -> None:
    write(my_recipes, text)
    with pytest.raises((DataError, UsageError), match=message):
        mine("x")


def test_what_is_left_out_has_its_default(my_recipes: Path) -> None:
    write(
        my_recipes,
        beside_direct("'multiclass', cost = 2, min_samples = 3, steepness = 8, category_field = 'kind'"),
    )
    direct, multiclass = mine("x").signals
    assert (direct.weight, direct.window) == (1.0, resources.recipe_book("mine").depth)
    of_kind = {"category_field": "kind", "category_cost": 2.0, "category_steepness": 8.0}
    assert multiclass.parameters() == {
        "cost": 2.0,
        "min_samples": 3,
        "seed": 2021,
        "steepness": 8.0,
        **of_kind,
    }


def test_the_general_recipes_that_rank_by_solved_topics_are_known() -> None:
    general = resources.recipe_book(resources.GENERAL)
    every = [recipes.load(general, name) for name in recipes.names(general)]
    learning = {one.name for one in every if one.learns}
    assert learning == {*resources.GENERAL_LEARNING}, (
        "name them in GENERAL_LEARNING of searchapp/resources.py"
    )


def test_every_kind_of_signal_says_what_it_is_called() -> None:
    assert all(signal_class(name).kind == name for name in KINDS)


def test_what_can_be_set_is_listed_with_values_and_meanings() -> None:
    recipe = recipes.load("explanation-2021", "neighbours", {"answer": 0.5})
    found = {one.name: one for one in recipes.settable("explanation-2021", recipe)}
    assert {name: one.value for name, one in found.items()} == {
        "answer": 0.5,
        "direct": 4.0,
        "window": 10_000,
        "neighbours": 1.0,
        "k": 100,
        "power": 1.5,
        "normalization": "none",
    }
    assert "bm25: query.bool.should[1].match.text.boost" in found["answer"].about


def ranks_by(recipe: Recipe) -> dict[str, object]:
    """What a run records of a recipe, without how its values were set."""
    return {key: value for key, value in recipe.manifest().items() if key != "set"}


def test_everything_that_is_listed_can_be_set_to_the_value_that_it_has_and_means_something() -> None:
    for task in tasks.names():
        for name in recipes.names(task):
            recipe = recipes.load(task, name)
            for one in recipes.settable(task, recipe):
                assert one.about and one.kind, (task, name, one)
                if one.value is not None:
                    again = recipes.load(task, name, {one.name: one.value})
                    assert ranks_by(again) == ranks_by(recipe)


def test_what_a_recipe_leaves_out_can_be_set_and_takes_no_name_away() -> None:
    best = recipes.load("smart-types-dbpedia", "best", {"power": 2.0, "multiclass.power": 4.0})
    neighbours, multiclass = best.signals
    assert (neighbours.parameters()["power"], multiclass.parameters()["power"]) == (2.0, 4.0)


def test_the_full_name_is_right_too() -> None:
    one, other = (recipes.load("nlps", "neighbours", {key: 7}) for key in ("k", "neighbours.k"))
    assert ranks_by(one) == ranks_by(other)
    weighed = recipes.load("nlps", "neighbours", {"direct.weight": 0.1})
    assert weighed.signals[0].weight == 0.1


def test_a_word_that_is_none_of_those_is_the_users_mistake() -> None:
    with pytest.raises(UsageError, match=r"normalization=x: .*choose max or none"):
        recipes.load("nlps", "neighbours", {"normalization": "x"})


def test_a_recipe_is_written_as_it_was_read() -> None:
    recipe = recipes.load("nlps", "neighbours", {"k": 7, "direct": 0.1})
    again = recipes.load(
        replace(tasks.load("nlps").recipe_book(), recipes={"again": recipe.written}), "again"
    )
    assert {**ranks_by(again), "name": "neighbours"} == ranks_by(recipe)
