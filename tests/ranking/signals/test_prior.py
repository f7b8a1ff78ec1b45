"""What a query gives to documents whatever the topic is, on the sample of nlps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from searchapp.engines.base import SearchHit
from searchapp.errors import DataError
from searchapp.model import Counts, Explanation, Hit, Hits, Topic
from searchapp.progress import Advance, no_progress
from searchapp.ranking import recipes
from searchapp.ranking.ranker import Ranker
from searchapp.ranking.signals.base import Inputs, Normalization, SignalRequest
from searchapp.resources import RecipeBook, recipe_book

HITS = Hits.of(Hit("a", 2.0), Hit("b", 1.0))


class Index:
    """An index in which every query matches the same documents; it counts how often it is asked."""

    is_local = True

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def counts(self, query: Any, fields: Any) -> Counts:
        return Counts(len(HITS), {})

    def search(self, bodies: Iterable[Any], advance: Advance = no_progress) -> Iterator[Hits]:
        for body in bodies:
            self.asked.append(body)
            yield HITS

    def find(self, body: Any) -> list[SearchHit]:
        return [SearchHit(HITS[0], {}, {}, Explanation(2.0, "exists"))]


def recipe(template: dict[str, Any], **options: Any) -> Any:
    shipped = recipe_book("text")
    written = {"signals": [{"signal": "prior", "template": "mine"}], "template": "bm25"}

    def named(name: str) -> dict[str, Any]:
        return template if name == "mine" else shipped.template(name)

    return recipes.load(RecipeBook("mine", shipped.file, {"x": written}, named), "x")


EXISTS = {"size": "{{depth}}", "query": {"exists": {"field": "title"}}}


def test_it_is_asked_once_for_all_topics_and_for_all_that_match() -> None:
    index = Index()
    ranker = Ranker(recipe(EXISTS), Inputs(index))  # type: ignore[arg-type]
    run = ranker.rank([Topic("1", "one"), Topic("2", "two")], 10, "tag")
    assert [dict(ranking.hits) for ranking in run] == [{"a": 1.0, "b": 0.5}] * 2
    assert [body["size"] for body in index.asked] == [2]


def test_it_is_explained_by_the_query() -> None:
    scorer = recipe(EXISTS).signals[0].prepare(Inputs(Index()))  # type: ignore[arg-type]
    found = scorer.explain(SignalRequest([Topic("1", "one")], 10, Normalization.none), "a")
    assert found is not None and (found.value, found.details[0].description) == (2.0, "exists")


def test_a_template_that_asks_for_the_topic_is_refused() -> None:
    match = {"size": "{{depth}}", "query": {"match": {"text": {"query": "{{topic.text}}"}}}}
    with pytest.raises(DataError, match="uses topic.text, but the signal"):
        recipe(match)
