"""The error for a rejected query names its topic, on both engines."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest

from searchapp.config.settings import Settings
from searchapp.engines import open_engine
from searchapp.engines.base import Engine
from searchapp.errors import QueryRefused
from searchapp.model import Topic
from searchapp.ranking import recipes
from searchapp.ranking.ranker import Ranker
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.base import GradedDocuments, Inputs, TrainingTopics
from searchapp.resources import RecipeBook, recipe_book
from tests.engines.conftest import GROUPS, match, spec_of

DIRECT = {"signal": "direct", "template": "bm25"}
NEIGHBOURS = {"signal": "neighbours", "template": "similar", "k": 2, "power": 1.0}
LABELLED = {"signal": "labelled", "template": "alike", "k": 2, "power": 1.0}

RECIPES: dict[str, dict[str, Any]] = {
    "direct": {"signals": [DIRECT]},
    "neighbours": {"template": "bm25", "signals": [NEIGHBOURS]},
    "fused": {
        "signals": [DIRECT | {"template": "plain"}, NEIGHBOURS],
        "fusion": {"method": "sum", "normalization": "max"},
    },
    "labelled": {
        "signals": [DIRECT | {"template": "plain"}, LABELLED],
        "fusion": {"method": "rrf"},
    },
}

INVALID_FIELDS = {
    "invalid number": {"boost": "heavy"},
    "negative boost": {"boost": -1.0},
    "too many words": {"text": " ".join(f"word{number}" for number in range(20_000))},
}

MANY = 130
"""More topics than an engine searches in one batch."""

BAD = 100


def template(name: str) -> dict[str, Any]:
    query: dict[str, Any] = {"match": {"text": {"query": "{{topic.text}}", "boost": "{{topic.boost}}"}}}
    if name == "plain":
        query = {"match": {"text": {"query": "group"}}}
    body = {**match("", 0), "size": "{{depth}}", "query": query}
    if name == "alike":
        body["query"] = {"bool": {"must": [query, {"match": {"text": {"query": "{{document.text}}"}}}]}}
    return body


def recipe(name: str) -> Recipe:
    return recipes.load(RecipeBook("mine", recipe_book("text").file, RECIPES, template), name)


def topics(invalid: Mapping[str, Any]) -> list[Topic]:
    valid: dict[str, Any] = {"text": "group", "boost": 1.0}
    result = []
    for number in range(MANY):
        values = {**valid, **(invalid if number == BAD else {})}
        result.append(Topic(f"t{number}", values["text"], {"boost": values["boost"]}))
    return result


def rank(engine: Engine, name: str, invalid: Mapping[str, Any]) -> None:
    engine.build("groups", spec_of(GROUPS), GROUPS)
    index = engine.open("groups")
    documents = {document.id: document for document in GROUPS}
    inputs = Inputs(
        index,
        examples=lambda: TrainingTopics(index, {"1": {"2": 1.0}}),
        labels=lambda: GradedDocuments(documents, {"s": {"1": 1.0}}),
    )
    Ranker(recipe(name), inputs).rank(topics(invalid), 3, "tag")


@pytest.mark.parametrize("invalid", INVALID_FIELDS.values(), ids=INVALID_FIELDS)
@pytest.mark.parametrize("name", RECIPES)
def test_the_error_names_the_topic(engine_settings: Settings, name: str, invalid: Mapping[str, Any]) -> None:
    with (
        closing(open_engine(engine_settings)) as engine,
        pytest.raises(QueryRefused, match=rf"topic t{BAD}\b"),
    ):
        rank(engine, name, invalid)
