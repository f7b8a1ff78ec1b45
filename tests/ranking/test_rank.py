from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import pytest

from searchapp.engines.base import SearchHit
from searchapp.errors import DataError
from searchapp.model import Document, Explanation, Hit, Hits, Topic, float32
from searchapp.progress import Advance, no_progress
from searchapp.ranking import recipes
from searchapp.ranking.ranker import Ranker
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.base import GradedDocuments, Inputs, TrainingTopics
from searchapp.resources import RecipeBook, recipe_book

TOPICS = [Topic("1", "one"), Topic("2", "two")]


class Index:
    """An index that answers every query with the same hits, and explains a score by one line."""

    is_local = True

    def __init__(self, *hits: Hit) -> None:
        self.hits = Hits.of(*hits)
        self.asked = 0

    def search(self, bodies: Iterable[Any], advance: Advance = no_progress) -> Iterator[Hits]:
        for _ in bodies:
            self.asked += 1
            yield self.hits
            advance(1)

    def find(self, body: Any) -> list[SearchHit]:
        (document,) = body["query"]["bool"]["filter"][0]["ids"]["values"]
        found = [hit for hit in self.hits if hit.document_id == document]
        return [SearchHit(hit, {}, {}, Explanation(hit.score, "weight")) for hit in found]


DOCUMENTS = Index(Hit("a", 8.0), Hit("b", 4.0), Hit("1", 2.0))
NEAREST = Index(Hit("s", 3.0), Hit("1", 1.0))
GOLD = {"s": {"b": 1.0, "c": 1.0}, "1": {"c": 1.0}}


def inputs(index: Index = DOCUMENTS, *, topics_are_documents: bool = False) -> Inputs:
    known = {name: Document(name, name) for name in ("a", "b", "1")}
    return Inputs(
        index,  # type: ignore[arg-type]
        topics_are_documents,
        examples=lambda: TrainingTopics(NEAREST, GOLD),  # type: ignore[arg-type]
        labels=lambda: GradedDocuments(known, {"s": {"s": 1.0}}),
        documents=lambda: list(known.values()),
    )


def recipe(**written: Any) -> Recipe:
    shipped = recipe_book("text")
    return recipes.load(RecipeBook("mine", shipped.file, {"x": written}, shipped.template), "x")


DIRECT = {"signal": "direct", "template": "bm25"}
VOTES = {"signal": "neighbours", "template": "similar", "k": 2, "power": 1.0}


def test_one_signal_ranks_as_the_engine_does() -> None:
    run = Ranker(recipe(signals=[DIRECT]), inputs()).rank(TOPICS, 10, "tag")
    assert (run.tag, [ranking.topic_id for ranking in run]) == ("tag", ["1", "2"])
    assert all(ranking.hits is DOCUMENTS.hits for ranking in run)


def test_one_signal_of_scores_is_put_in_order() -> None:
    fixed = recipe(template="bm25", signals=[VOTES])
    (first, second) = Ranker(fixed, inputs()).rank(TOPICS, 10, "tag")
    assert first.hits == Hits.of(Hit("b", 1.0), Hit("c", 1.0))  # topic 1 has no vote for itself
    assert second.hits == Hits.of(Hit("c", 1.0), Hit("b", 0.75))


def test_several_signals_are_fused_and_a_topic_is_not_found_for_itself() -> None:
    both = recipe(signals=[DIRECT | {"weight": 2.0}, VOTES])
    (first, second) = Ranker(both, inputs(topics_are_documents=True)).rank(TOPICS, 3, "tag")
    assert first.hits == Hits.of(Hit("a", 2.0), Hit("b", 2.0), Hit("c", 1.0))
    assert second.hits == Hits.of(Hit("a", 2.0), Hit("b", 1.75), Hit("c", 1.0))


def test_a_topic_that_is_a_document_is_not_ranked_for_itself_by_one_signal_of_scores() -> None:
    given = Inputs(
        DOCUMENTS,  # type: ignore[arg-type]
        topics_are_documents=True,
        examples=lambda: TrainingTopics(NEAREST, {"s": {"2": 1.0, "c": 1.0}}),  # type: ignore[arg-type]
    )
    (ranking,) = Ranker(recipe(template="bm25", signals=[VOTES]), given).rank(TOPICS[1:], 10, "tag")
    assert ranking.hits == Hits.of(Hit("c", 1.0))


class Cut(Index):
    """An index that gives as many hits as it is asked for."""

    def search(self, bodies: Iterable[Any], advance: Advance = no_progress) -> Iterator[Hits]:
        for body in bodies:
            yield self.hits[: body["size"]]


def test_a_fused_ranking_is_cut_at_the_depth_and_not_made_of_fewer_documents() -> None:
    fused = recipe(signals=[DIRECT, VOTES])
    deep, short = (
        Ranker(fused, inputs(Cut(*DOCUMENTS.hits))).rank(TOPICS, depth, "tag").rankings[0].hits
        for depth in (3, 1)
    )
    assert deep == Hits.of(Hit("b", 1.5), Hit("a", 1.0), Hit("c", 1.0)) and short == deep[:1]
    assert [one.get("window") for one in fused.manifest()["signals"]] == [100, None]
    narrow = recipe(signals=[DIRECT | {"window": 1}, VOTES])
    (ranking,) = Ranker(narrow, inputs(Cut(*DOCUMENTS.hits))).rank(TOPICS[:1], 1, "tag")
    assert ranking.hits == Hits.of(Hit("a", 1.0)) and not narrow.raised(1)
    assert narrow.raised(3) and narrow.reaching(3).manifest()["signals"][0]["window"] == 3


def test_a_signal_that_is_alone_has_no_window() -> None:
    assert "window" not in recipe(signals=[DIRECT]).manifest()["signals"][0]
    with pytest.raises(DataError, match="unknown key 'window'"):
        recipe(signals=[DIRECT | {"window": 1}])


def test_candidates_are_those_of_the_first_signal_which_is_asked_once() -> None:
    index = Index(Hit("a", 8.0), Hit("s", 4.0))
    asked = recipe(
        signals=[DIRECT, {"signal": "labelled", "template": "bm25", "k": 2, "power": 1.0}],
        fusion={"method": "rrf", "k": 1},
    )
    known = {name: Document(name, name) for name in ("a", "s")}
    given = Inputs(index, labels=lambda: GradedDocuments(known, {"t": {"s": 1.0}}))  # type: ignore[arg-type]
    done: list[int] = []
    run = Ranker(asked, given).rank(TOPICS, 10, "tag", done.append)
    assert index.asked == len(TOPICS) * (1 + 2)
    assert sum(done) == len(TOPICS), "progress counts topics once"
    assert run.rankings[0].hits == Hits.of(Hit("a", 1.0), Hit("s", float32(2 / 3)))


def test_a_template_that_finds_a_topic_for_itself_is_refused() -> None:
    with pytest.raises(
        DataError, match=r"mine/bm25 retrieves the topic 1 as a document for itself: exclude it"
    ):
        Ranker(recipe(signals=[DIRECT]), inputs(topics_are_documents=True)).rank(TOPICS, 10, "tag")


def test_signals_are_prepared_once_for_all_that_is_ranked() -> None:
    prepared: list[int] = []
    given = Inputs(DOCUMENTS, documents=lambda: prepared.append(1) or [])  # type: ignore[arg-type, func-returns-value]
    ranker = Ranker(recipe(template="bm25", signals=[{"signal": "tfidf"}]), given)
    for _ in range(3):
        ranker.rank(TOPICS, 10, "tag")
    assert len(prepared) == 1


def test_what_a_recipe_does_not_need_is_not_read() -> None:
    plain = Inputs(DOCUMENTS)  # type: ignore[arg-type]
    assert len(Ranker(recipe(signals=[DIRECT]), plain).rank(TOPICS, 10, "tag")) == 2
    with pytest.raises(AssertionError, match="needs"):
        Ranker(recipe(signals=[DIRECT, VOTES]), plain)


def test_an_explanation_has_what_each_signal_gave() -> None:
    both = recipe(signals=[DIRECT | {"weight": 2.0}, VOTES])
    ranker = Ranker(both, inputs())
    found = ranker.rank_topic(TOPICS[1], 10)
    assert found.hits == ranker.rank(TOPICS[1:], 10, "tag").rankings[0].hits
    for hit in found.hits:
        explained = ranker.explain(found, hit.document_id)
        assert explained is not None and explained.value == pytest.approx(hit.score)
    explained = ranker.explain(found, "b")
    assert explained is not None
    assert [(part.value, part.description.split(":")[0]) for part in explained.details] == [
        (4.0, "direct, weight 2"),
        (0.75, "neighbours, weight 1"),
    ]
    assert ranker.explain(found, "unknown") is None


def test_the_explanation_of_one_signal_is_its_own() -> None:
    ranker = Ranker(recipe(signals=[DIRECT]), inputs())
    found = ranker.rank_topic(TOPICS[0], 10)
    assert ranker.explain(found, "b") == Explanation(4.0, "weight")
    assert ranker.explain(found, "unknown") is None


def test_signals_that_ask_for_the_same_ask_once() -> None:
    nearest = Index(Hit("s", 3.0), Hit("1", 1.0))
    given = Inputs(
        DOCUMENTS,  # type: ignore[arg-type]
        examples=cache(lambda: TrainingTopics(nearest, GOLD)),  # type: ignore[arg-type]
    )
    beside = VOTES | {"name": "count", "power": 0.0}
    other = VOTES | {"name": "fewer", "k": 1}
    both = recipe(signals=[VOTES, DIRECT, beside, other])
    (ranking,) = Ranker(both, given).rank(TOPICS[1:], 10, "tag")
    assert nearest.asked == 2, "fewer asks for itself"
    # c: 1 by votes, 1 by count and 1 by fewer; b: 3/4, 1/2 and 3/4 of them, and half of the greatest of direct
    alone = [Ranker(recipe(template="bm25", signals=[one]), inputs()) for one in (VOTES, beside, other)]
    expected = sum(dict(one.rank(TOPICS[1:], 10, "tag").rankings[0].hits)["c"] for one in alone)
    assert dict(ranking.hits)["c"] == pytest.approx(expected)
