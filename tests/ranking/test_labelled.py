from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from searchapp.errors import DataError, QueryRefused, UsageError
from searchapp.model import Document, Hits, Topic
from searchapp.ranking import recipes
from searchapp.ranking.labelled import Labels, fused, share, with_labels
from searchapp.resources import RecipeBook, recipe_book


def test_a_share_is_the_weighted_mean_of_grades() -> None:
    nearest = Hits(["a", "b", "c"], [4.0, 2.0, 1.0])
    assert share(nearest, {"a": 1.0}, 1.0) == pytest.approx(4 / 7)
    assert share(nearest, {"a": 1.0}, 2.0) == pytest.approx(16 / 21)
    assert share(nearest, {"b": 1.0, "c": 0.5}, 0.0) == pytest.approx(0.5)
    assert share(nearest, {"x": 1.0}, 1.0) == 0.0


def test_without_neighbours_the_share_is_0() -> None:
    assert share(Hits(), {"a": 1.0}, 1.0) == 0.0
    assert share(Hits(["a"], [0.0]), {"a": 1.0}, 1.0) == 0.0


def test_ranks_are_fused_and_ties_share_the_first_rank() -> None:
    scores = fused([{"a": 3.0, "b": 2.0, "c": 1.0}, {"a": 0.0, "b": 0.0, "c": 5.0}], 60.0)
    assert scores == pytest.approx({"a": 1 / 61 + 1 / 62, "b": 1 / 62 + 1 / 62, "c": 1 / 63 + 1 / 61})


def test_no_topic_is_ranked_by_its_own_gold() -> None:
    labels = Labels({}, {"one": {"one:1": 1.0}, "two": {"two:1": 2.0}})
    assert labels.without(Topic("one", "")) == {"two:1": 2.0}
    assert labels.without(Topic("three", "")) == {"one:1": 1.0, "two:1": 2.0}


class Neighbours:
    """An index that answers every query with the same hits."""

    def __init__(self, hits: Hits) -> None:
        self.hits = hits
        self.bodies: list[Any] = []

    def search(self, bodies: Iterable[Any], _advance: Any = None) -> Iterator[Hits]:
        for body in bodies:
            if "refused" in str(body):
                raise QueryRefused("no", len(self.bodies))
            self.bodies.append(body)
            yield self.hits


def asked(index: Any, texts: list[str]) -> list[Hits]:
    documents = {str(n): Document(str(n), text, {"speaker": "A"}) for n, text in enumerate(texts)}
    direct = Hits(list(documents), [float(-n) for n in range(len(documents))])
    recipe = recipes.load("checkthat", "neighbours")
    topic = Topic("d", "", {"debate": "d"})
    answers = iter([direct])
    labels = Labels(documents, {})
    return list(with_labels(index, [topic], answers, recipe, 10, labels, lambda _done: None))


def test_every_retrieved_document_asks_with_its_own_text() -> None:
    index = Neighbours(Hits(["x"], [1.0]))
    (hits,) = asked(index, ["first", "second"])
    assert len(hits) == len(index.bodies) == 2
    assert "first" in str(index.bodies[0]) and "second" in str(index.bodies[1])
    assert index.bodies[0]["size"] == 200


def test_a_refused_query_names_the_document() -> None:
    with pytest.raises(QueryRefused, match=r"document 1: no"):
        asked(Neighbours(Hits()), ["fine", "refused"])


def test_parameters_can_be_set_and_are_recorded() -> None:
    recipe = recipes.load("checkthat", "neighbours", {"k": 5, "power": 1})
    described = recipe.manifest()["labelled"]
    assert (described["k"], described["power"], described["rank_constant"]) == (5, 1.0, 60.0)
    assert recipe.learns and not recipes.load("checkthat", "bm25").learns
    with pytest.raises(UsageError, match=r"no parameter 'direct': it has k, power, rank_constant"):
        recipes.load("checkthat", "neighbours", {"direct": 1})
    with pytest.raises(UsageError, match=r"k must be a number that is not negative, not 0"):
        recipes.load("checkthat", "neighbours", {"k": 0})


def test_an_incomplete_signal_is_refused() -> None:
    shipped = recipe_book("checkthat")
    written = {"x": {"template": "bm25", "labelled": {"template": "alike", "k": 5}}}
    book = RecipeBook("checkthat", shipped.file, written, shipped.template)
    with pytest.raises(DataError, match=r"`labelled` must have template, k, power, rank_constant"):
        recipes.load(book, "x")
