"""Recipes: keys, parameters, overrides and errors."""

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
    """A folder of query templates with one task."""
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
        "_source": False,
        "track_total_hits": False,
        "query": {"match": {"text": {"query": "finite group", "boost": 1.5}}},
        "sort": [{"_score": "desc"}, {"id": "asc"}],
    }


def test_a_body_of_another_application_ranks_by_the_variables_of_search_templates(my_recipes: Path) -> None:
    pasted = {
        "from": 0,
        "size": "{{size}}",
        "sort": ["_score"],
        "_source": ["title"],
        "highlight": {"fields": {"text": {}}},
        "aggs": {"kinds": {"terms": {"field": "kind"}}},
        "query": {
            "bool": {
                "should": [
                    {"match": {"text": "{{ query_string }}"}},
                    {"match": {"text": "{{#toJson}}q{{/toJson}}"}},
                ],
                "filter": [
                    {"term": {"kind": "{{kind}}"}},
                    {"range": {"year": {"gte": "{{#toJson}}year{{/toJson}}"}}},
                ],
            }
        },
    }
    (my_recipes / "plain.json").write_text(json.dumps(pasted))
    (my_recipes / "recipes.toml").write_text(
        '[plain]\nabout = "words"\ntemplate = "plain"\nparameters = { year = 1990 }\n'
    )
    assert mine("plain").body(Topic("7", 'a "ring"', {"kind": "lemma"}), 20) == {
        "size": 20,
        "_source": False,
        "track_total_hits": False,
        "sort": [{"_score": "desc"}, {"id": "asc"}],
        "query": {
            "bool": {
                "should": [{"match": {"text": 'a "ring"'}}, {"match": {"text": 'a "ring"'}}],
                "filter": [{"term": {"kind": "lemma"}}, {"range": {"year": {"gte": 1990}}}],
            }
        },
    }


def test_a_parameter_can_be_overridden_and_is_in_the_manifest(my_recipes: Path) -> None:
    recipe = mine("plain", {"boost": 3})
    assert recipe.body(Topic("7", "x"), 1)["query"]["match"]["text"]["boost"] == 3
    assert recipe.manifest()["parameters"] == {"boost": 3}


@pytest.mark.parametrize(
    ("name", "overrides", "error", "message"),
    [
        ("best", {}, UsageError, r"mine has no recipe 'best': choose plain or"),
        ("plain", {"bost": 3}, UsageError, r"has no parameter 'bost' \(did you mean boost\?\): it has boost"),
        ("typo", {}, DataError, r"has the unknown key 'templat'"),
        ("unused", {}, DataError, r"recipe\.slop is set, but the template does not use it"),
    ],
)
def test_unknown_names_and_unused_parameters_are_rejected(
    my_recipes: Path, name: str, overrides: dict[str, int], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        mine(name, overrides)


def test_all_shipped_recipes_load_and_have_a_description() -> None:
    books: list[str | RecipeBook] = [*tasks.names(), resources.recipe_book(resources.GENERAL)]
    for task in books:
        for name in recipes.names(task):
            assert recipes.load(task, name).about


def test_a_task_falls_back_to_the_general_templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(shutil.copytree(resources.folder("query_templates"), tmp_path / "query_templates"))
    (folder / "nlps" / "words.json").unlink()
    monkeypatch.setattr(resources, "folder", lambda name: tmp_path / name)
    query = recipes.load("nlps", "words").body(Topic("7", "finite group"), 20)["query"]["bool"]
    assert query["must_not"] == [{"term": {"id": "7"}}] and "finite group" in json.dumps(query["must"])


def test_shipped_recipes_choose_the_normalization() -> None:
    for task, normalization in (("nlps", "max"), ("explanation-2019", "none")):
        fusion = recipes.load(task, "neighbours").manifest()["fusion"]
        assert fusion == {"method": "sum", "normalization": normalization}


def test_an_unknown_normalization_is_rejected(my_recipes: Path) -> None:
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


def with_direct(table: str) -> str:
    return f"signals = [{{ signal = 'direct', template = 'plain' }}, {{ signal = {table} }}]"


def test_a_template_without_signals_is_one_direct_signal(my_recipes: Path) -> None:
    loaded = []
    for text in ("template = 'plain'", "signals = [{ signal = 'direct', template = 'plain' }]"):
        write(my_recipes, f"{text}\nparameters = {{ boost = 1.0 }}\n")
        loaded.append(mine("x").manifest())
    assert loaded[0] == loaded[1]


def test_a_parameter_of_several_signals_is_set_with_the_name_of_the_signal(my_recipes: Path) -> None:
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
        (SIGNALS + "fusion = { method = 'magic' }", "has no fusion 'magic': choose sum, mnz, rrf or learned"),
        (SIGNALS + "fusion = { method = 'ranks' }", r"no fusion 'ranks' \(did you mean rrf\?\): choose sum"),
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
        (with_direct("'cosine', kind_field = 'table'"), "has no kind_prior in 'cosine'"),
        (with_direct("'cosine', kind_prior = 0.5"), "has the unknown key 'kind_prior'"),
        (
            with_direct("'expansion', feedback_documents = 3, feedback_terms = 5"),
            "has the unknown key 'feedback_terms'",
        ),
        (
            with_direct("'expansion', feedback_documents = 101"),
            "expands by 101 documents in 'expansion': the maximum is 100",
        ),
        (
            with_direct("'labelled', template = 'plain', k = 3, power = 1, position_decay = 1"),
            "has no group_field in 'labelled'",
        ),
        (
            with_direct("'multiclass', cost = 1, min_samples = 2, steepness = 8, category_cost = 2"),
            "has the unknown key 'category_cost'",
        ),
        (with_direct("'popular', window = 10"), "has the unknown key 'window'"),
        (
            with_direct("'multilabel', cost = 1, fewest = 2, steepness = 8"),
            r"has the unknown key 'fewest' \(did you mean min_samples\?\)",
        ),
        (
            SIGNALS + "fusion = { method = 'sum', scale = 'shares' }",
            r"has the unknown key 'scale' \(did you mean normalization\?\)",
        ),
    ],
)
def test_invalid_recipes_are_rejected(my_recipes: Path, text: str, message: str) -> None:
    write(my_recipes, text)
    with pytest.raises((DataError, UsageError), match=message):
        mine("x")


def test_missing_parameters_have_defaults(my_recipes: Path) -> None:
    write(
        my_recipes,
        with_direct("'multiclass', cost = 2, min_samples = 3, steepness = 8, category_field = 'kind'"),
    )
    direct, multiclass = mine("x").signals
    assert (direct.weight, direct.window) == (1.0, resources.recipe_book("mine").depth)
    assert multiclass.parameters() == {
        "cost": 2.0,
        "min_samples": 3,
        "seed": 2021,
        "steepness": 8.0,
        "category_field": "kind",
        "category_cost": 2.0,
        "category_steepness": 8.0,
    }


def test_the_general_recipes_with_training_topics_are_listed() -> None:
    general = resources.recipe_book(resources.GENERAL)
    loaded = [recipes.load(general, name) for name in recipes.names(general)]
    learning = {recipe.name for recipe in loaded if recipe.learns}
    assert learning == {*resources.GENERAL_LEARNING}, "list them in searchapp/resources.py"


def test_classes_of_signals_have_the_name_of_their_kind() -> None:
    assert all(signal_class(name).kind == name for name in KINDS)


def test_settable_parameters_have_values_and_descriptions() -> None:
    recipe = recipes.load("explanation-2021", "neighbours", {"answer": 0.5})
    settable = {parameter.name: parameter for parameter in recipes.settable("explanation-2021", recipe)}
    assert {name: parameter.value for name, parameter in settable.items()} == {
        "answer": 0.5,
        "direct": 4.0,
        "window": 10_000,
        "neighbours": 1.0,
        "k": 100,
        "power": 1.5,
        "normalization": "none",
    }
    assert "bm25: query.bool.should[1].match.text.boost" in settable["answer"].about


def unset_manifest(recipe: Recipe) -> dict[str, object]:
    """Return the manifest of a recipe without the overrides."""
    return {key: value for key, value in recipe.manifest().items() if key != "set"}


def test_all_settable_parameters_have_a_description_and_accept_their_value() -> None:
    for task in tasks.names():
        for name in recipes.names(task):
            recipe = recipes.load(task, name)
            for parameter in recipes.settable(task, recipe):
                assert parameter.about and parameter.kind, (task, name, parameter)
                if parameter.value is not None:
                    again = recipes.load(task, name, {parameter.name: parameter.value})
                    assert unset_manifest(again) == unset_manifest(recipe)


def test_a_missing_parameter_can_be_set_without_making_names_ambiguous() -> None:
    best = recipes.load("smart-types-dbpedia", "best", {"power": 2.0, "multiclass.power": 4.0})
    neighbours, multiclass = best.signals
    assert (neighbours.parameters()["power"], multiclass.parameters()["power"]) == (2.0, 4.0)


def test_a_parameter_can_be_set_by_its_full_name() -> None:
    short, full = (recipes.load("nlps", "neighbours", {key: 7}) for key in ("k", "neighbours.k"))
    assert unset_manifest(short) == unset_manifest(full)
    weighed = recipes.load("nlps", "neighbours", {"direct.weight": 0.1})
    assert weighed.signals[0].weight == 0.1


def test_an_unknown_value_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"normalization=x: .*choose max or none"):
        recipes.load("nlps", "neighbours", {"normalization": "x"})


def test_the_written_form_of_a_recipe_is_read_back() -> None:
    recipe = recipes.load("nlps", "neighbours", {"k": 7, "direct": 0.1})
    book = replace(tasks.load("nlps").recipe_book(), recipes={"again": recipe.written})
    again = recipes.load(book, "again")
    assert {**unset_manifest(again), "name": "neighbours"} == unset_manifest(recipe)
