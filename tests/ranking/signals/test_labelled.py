from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from searchapp.errors import DataError, QueryRefused, UsageError
from searchapp.model import Document, Hits, Topic
from searchapp.ranking import recipes
from searchapp.ranking.signals.base import Answer, GradedDocuments, Inputs, Normalization, SignalRequest, Vote
from searchapp.ranking.signals.labelled import Labelled, share

QUERY = recipes.load("checkthat", "neighbours").signals[1].queries[0]


def inputs(labels: GradedDocuments) -> Inputs:
    index: Any = Neighbours(Hits())
    return Inputs(index, labels=lambda: labels)


def weighed(scores: dict[str, float], power: float, position: float = 0.0) -> list[tuple[str, float]]:
    """What the nearest documents weigh for the document `own`, at place 1 of 4, as those with their number as text."""
    signal = Labelled(
        "l",
        query=QUERY,
        k=200,
        power=power,
        position_decay=position,
        group_field="debate" if position else None,
        position_field="line",
    )
    places = {"own": 1, "last": 4, **{name: int(name) for name in scores}}
    documents = {name: Document(name, "", {"debate": "d", "line": place}) for name, place in places.items()}
    labels = GradedDocuments(documents, {})
    scorer: Any = signal.prepare(inputs(labels))
    weighed: list[tuple[str, float]] = scorer._weights("own", Hits(list(scores), list(scores.values())))
    return weighed


def test_a_share_is_the_weighted_mean_of_grades() -> None:
    scores = {"1": 4.0, "2": 2.0, "3": 1.0}
    assert share({"1": 1.0}, weighed(scores, 1.0)) == pytest.approx(4 / 7)
    assert share({"1": 1.0}, weighed(scores, 2.0)) == pytest.approx(16 / 21)
    assert share({"2": 1.0, "3": 0.5}, weighed(scores, 0.0)) == pytest.approx(0.5)
    assert share({"x": 1.0}, weighed(scores, 1.0)) == 0.0


def test_documents_at_another_position_weigh_less() -> None:
    found = dict(weighed({"1": 4.0, "3": 4.0, "4": 2.0}, 1.0, position=2.0))
    assert found["1"] == 1.0
    assert found["3"] == pytest.approx(math.exp(-2 * 2 / 4))
    assert found["4"] == pytest.approx(0.5 * math.exp(-2 * 3 / 4))


def test_positions_need_numbers() -> None:
    signal = Labelled(
        "l", query=QUERY, k=200, power=1.0, position_decay=1.0, group_field="debate", position_field="line"
    )
    labels = GradedDocuments({"d:1": Document("d:1", "", {"debate": "d", "line": "first"})}, {})
    with pytest.raises(DataError, match="document d:1 has no number in the field line: correct the recipe"):
        signal.prepare(inputs(labels))


def test_without_neighbours_the_share_is_0() -> None:
    assert share({"1": 1.0}, weighed({}, 1.0)) == 0.0
    assert share({"1": 1.0}, weighed({"1": 0.0}, 1.0)) == 0.0


def test_no_topic_is_ranked_by_its_own_gold() -> None:
    labels = GradedDocuments({}, {"one": {"one:1": 1.0}, "two": {"two:1": 2.0}})
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


def asked(index: Any, texts: list[str]) -> list[Answer]:
    documents = {str(n): Document(str(n), text, {"speaker": "A"}) for n, text in enumerate(texts)}
    direct = Hits(list(documents), [float(-n) for n in range(len(documents))])
    recipe = recipes.load("checkthat", "neighbours")
    topic = Topic("d", "", {"debate": "d"})
    labels = GradedDocuments(documents, {})
    scorer = recipe.signals[1].prepare(Inputs(index, labels=lambda: labels))
    return list(scorer.answers(SignalRequest([topic], 10, Normalization.max, [direct]), lambda _done: None))


def test_every_retrieved_document_asks_with_its_own_text() -> None:
    index = Neighbours(Hits(["x"], [1.0]))
    (shares,) = asked(index, ["first", "second"])
    assert len(shares) == len(index.bodies) == 2
    assert "first" in str(index.bodies[0]) and "second" in str(index.bodies[1])
    assert index.bodies[0]["size"] == 200


def test_only_so_many_candidates_ask() -> None:
    index = Neighbours(Hits(["x"], [1.0]))
    documents = {name: Document(name, name, {"speaker": "A"}) for name in ("first", "second", "third")}
    labels = GradedDocuments(documents, {"e": {"x": 1.0}})
    signal = Labelled("l", query=QUERY, k=200, power=1.0, candidates=2)
    scorer = signal.prepare(Inputs(index, labels=lambda: labels))  # type: ignore[arg-type]
    candidates = Hits(list(documents), [3.0, 2.0, 1.0])
    asks = SignalRequest([Topic("d", "", {"debate": "d"})], 10, Normalization.max, [candidates])
    assert list(scorer.answers(asks, lambda _done: None)) == [{"first": 1.0, "second": 1.0}]
    assert len(index.bodies) == 2
    assert scorer.explain(asks, "second") is not None and scorer.votes(asks, "second")
    assert scorer.explain(asks, "third") is None and not scorer.votes(asks, "third")


def test_a_refused_query_names_the_topic_and_the_document_that_asks_for_it() -> None:
    with pytest.raises(QueryRefused, match=r"^topic d, document 1: no"):
        asked(Neighbours(Hits()), ["fine", "refused"])


def test_parameters_can_be_set_and_are_recorded() -> None:
    recipe = recipes.load("checkthat", "neighbours", {"k": 5, "power": 1})
    described = recipe.manifest()
    assert [(one["signal"], one.get("k"), one.get("power")) for one in described["signals"]] == [
        ("direct", None, None),
        ("labelled", 5, 1.0),
    ]
    assert described["fusion"] == {"method": "rrf", "k": 60.0}
    assert recipe.learns and not recipes.load("checkthat", "bm25").learns
    known = "candidates, direct, fusion.k, group_field, k, labelled, position_decay, "
    with pytest.raises(UsageError, match=f"no parameter 'steep': it has {known}"):
        recipes.load("checkthat", "neighbours", {"steep": 1})
    with pytest.raises(UsageError, match=r"k must be a whole number of at least 1, not 0"):
        recipes.load("checkthat", "neighbours", {"k": 0})


def test_a_share_is_explained_by_the_graded_documents() -> None:
    index = Neighbours(Hits(["two:1", "two:2"], [2.0, 1.0]))
    labels = GradedDocuments({"d:1": Document("d:1", "x", {"speaker": "A"})}, {"two": {"two:1": 1.0}})
    recipe = recipes.load("checkthat", "neighbours", {"power": 1})
    scorer = recipe.signals[1].prepare(Inputs(index, labels=lambda: labels))  # type: ignore[arg-type]
    asked = SignalRequest([Topic("d", "", {"debate": "d"})], 10, Normalization.max)
    explained = scorer.explain(asked, "d:1")
    assert explained is not None and explained.value == pytest.approx(2 / 3)
    assert [part.description for part in explained.details] == ["grade of two:1, which has the score 2"]
    assert scorer.explain(asked, "unknown") is None
    assert scorer.votes(asked, "d:1") == [Vote("", "two:1", 1.0, 2.0, 1.0)]
    assert not scorer.votes(asked, "unknown")
