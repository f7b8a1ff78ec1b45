"""Ranking topics by recipes, and explaining the scores."""

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

TOPICS = [Topic("1", "first"), Topic("2", "second")]


class Index:
    """An index that answers all queries with the same hits, and explains a score by one line."""

    is_local = True

    def __init__(self, *hits: Hit) -> None:
        self.hits = Hits.of(*hits)
        self.searches = 0

    def search(self, bodies: Iterable[Any], advance: Advance = no_progress) -> Iterator[Hits]:
        for _ in bodies:
            self.searches += 1
            yield self.hits
            advance(1)

    def find(self, body: Any) -> list[SearchHit]:
        (document,) = body["query"]["bool"]["filter"][0]["ids"]["values"]
        hits = [hit for hit in self.hits if hit.document_id == document]
        return [SearchHit(hit, {}, {}, Explanation(hit.score, "weight")) for hit in hits]


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


def recipe(**table: Any) -> Recipe:
    shipped = recipe_book("text")
    return recipes.load(RecipeBook("mine", shipped.file, {"x": table}, shipped.template), "x")


DIRECT = {"signal": "direct", "template": "bm25"}
VOTES = {"signal": "neighbours", "template": "similar", "k": 2, "power": 1.0}


def test_a_single_signal_ranks_like_the_engine() -> None:
    run = Ranker(recipe(signals=[DIRECT]), inputs()).rank(TOPICS, 10, "tag")
    assert (run.tag, [ranking.topic_id for ranking in run]) == ("tag", ["1", "2"])
    assert all(ranking.hits is DOCUMENTS.hits for ranking in run)


def test_a_single_signal_of_scores_is_sorted() -> None:
    first, second = Ranker(recipe(template="bm25", signals=[VOTES]), inputs()).rank(TOPICS, 10, "tag")
    assert first.hits == Hits.of(Hit("b", 1.0), Hit("c", 1.0))  # topic 1 has no vote for itself
    assert second.hits == Hits.of(Hit("c", 1.0), Hit("b", 0.75))


def test_several_signals_are_fused_without_the_topic_itself() -> None:
    both = recipe(signals=[DIRECT | {"weight": 2.0}, VOTES])
    first, second = Ranker(both, inputs(topics_are_documents=True)).rank(TOPICS, 3, "tag")
    assert first.hits == Hits.of(Hit("a", 2.0), Hit("b", 2.0), Hit("c", 1.0))
    assert second.hits == Hits.of(Hit("a", 2.0), Hit("b", 1.75), Hit("c", 1.0))


def test_a_single_signal_of_scores_does_not_rank_the_topic_itself() -> None:
    own_inputs = Inputs(
        DOCUMENTS,  # type: ignore[arg-type]
        topics_are_documents=True,
        examples=lambda: TrainingTopics(NEAREST, {"s": {"2": 1.0, "c": 1.0}}),  # type: ignore[arg-type]
    )
    (ranking,) = Ranker(recipe(template="bm25", signals=[VOTES]), own_inputs).rank(TOPICS[1:], 10, "tag")
    assert ranking.hits == Hits.of(Hit("c", 1.0))


class SizedIndex(Index):
    """An index that returns as many hits as the query asks for."""

    def search(self, bodies: Iterable[Any], advance: Advance = no_progress) -> Iterator[Hits]:
        for body in bodies:
            yield self.hits[: body["size"]]


def test_the_depth_cuts_a_fused_ranking_but_not_the_window() -> None:
    fused = recipe(signals=[DIRECT, VOTES])
    deep, short = (
        Ranker(fused, inputs(SizedIndex(*DOCUMENTS.hits))).rank(TOPICS, depth, "tag").rankings[0].hits
        for depth in (3, 1)
    )
    assert deep == Hits.of(Hit("b", 1.5), Hit("a", 1.0), Hit("c", 1.0)) and short == deep[:1]
    assert [signal.get("window") for signal in fused.manifest()["signals"]] == [100, None]
    narrow = recipe(signals=[DIRECT | {"window": 1}, VOTES])
    (ranking,) = Ranker(narrow, inputs(SizedIndex(*DOCUMENTS.hits))).rank(TOPICS[:1], 1, "tag")
    assert ranking.hits == Hits.of(Hit("a", 1.0)) and not narrow.raised(1)
    assert narrow.raised(3) and narrow.reaching(3).manifest()["signals"][0]["window"] == 3


def test_a_single_signal_has_no_window() -> None:
    assert "window" not in recipe(signals=[DIRECT]).manifest()["signals"][0]
    with pytest.raises(DataError, match="unknown key 'window'"):
        recipe(signals=[DIRECT | {"window": 1}])


def test_the_candidates_of_the_first_signal_are_searched_once() -> None:
    index = Index(Hit("a", 8.0), Hit("s", 4.0))
    reranking = recipe(
        signals=[DIRECT, {"signal": "labelled", "template": "bm25", "k": 2, "power": 1.0}],
        fusion={"method": "rrf", "k": 1},
    )
    known = {name: Document(name, name) for name in ("a", "s")}
    own_inputs = Inputs(index, labels=lambda: GradedDocuments(known, {"t": {"s": 1.0}}))  # type: ignore[arg-type]
    done: list[int] = []
    run = Ranker(reranking, own_inputs).rank(TOPICS, 10, "tag", done.append)
    assert index.searches == len(TOPICS) * (1 + 2)
    assert sum(done) == len(TOPICS), "progress counts topics once"
    assert run.rankings[0].hits == Hits.of(Hit("a", 1.0), Hit("s", float32(2 / 3)))


def test_a_template_that_retrieves_the_topic_itself_is_rejected() -> None:
    message = "mine/bm25 retrieves the topic 1 as a document for itself: exclude it"
    with pytest.raises(DataError, match=message):
        Ranker(recipe(signals=[DIRECT]), inputs(topics_are_documents=True)).rank(TOPICS, 10, "tag")


def test_signals_are_prepared_once_for_all_rankings() -> None:
    prepared: list[int] = []
    counting = Inputs(DOCUMENTS, documents=lambda: prepared.append(1) or [])  # type: ignore[arg-type, func-returns-value]
    ranker = Ranker(recipe(template="bm25", signals=[{"signal": "tfidf"}]), counting)
    for _ in range(3):
        ranker.rank(TOPICS, 10, "tag")
    assert len(prepared) == 1


def test_inputs_that_a_recipe_does_not_need_are_not_read() -> None:
    plain = Inputs(DOCUMENTS)  # type: ignore[arg-type]
    assert len(Ranker(recipe(signals=[DIRECT]), plain).rank(TOPICS, 10, "tag")) == 2
    with pytest.raises(AssertionError, match="needs"):
        Ranker(recipe(signals=[DIRECT, VOTES]), plain)


def test_an_explanation_has_a_part_for_each_signal() -> None:
    both = recipe(signals=[DIRECT | {"weight": 2.0}, VOTES])
    ranker = Ranker(both, inputs())
    ranking = ranker.rank_topic(TOPICS[1], 10)
    assert ranking.hits == ranker.rank(TOPICS[1:], 10, "tag").rankings[0].hits
    for hit in ranking.hits:
        explained = ranker.explain(ranking, hit.document_id)
        assert explained is not None and explained.value == pytest.approx(hit.score)
    explained = ranker.explain(ranking, "b")
    assert explained is not None
    assert [(part.value, part.description.split(":")[0]) for part in explained.details] == [
        (4.0, "direct, weight 2"),
        (0.75, "neighbours, weight 1"),
    ]
    assert ranker.explain(ranking, "unknown") is None


def test_a_single_signal_is_explained_by_the_engine() -> None:
    ranker = Ranker(recipe(signals=[DIRECT]), inputs())
    ranking = ranker.rank_topic(TOPICS[0], 10)
    assert ranker.explain(ranking, "b") == Explanation(4.0, "weight")
    assert ranker.explain(ranking, "unknown") is None


def test_signals_with_equal_searches_search_once() -> None:
    nearest = Index(Hit("s", 3.0), Hit("1", 1.0))
    own_inputs = Inputs(
        DOCUMENTS,  # type: ignore[arg-type]
        examples=cache(lambda: TrainingTopics(nearest, GOLD)),  # type: ignore[arg-type]
    )
    count = VOTES | {"name": "count", "power": 0.0}
    fewer = VOTES | {"name": "fewer", "k": 1}
    both = recipe(signals=[VOTES, DIRECT, count, fewer])
    (ranking,) = Ranker(both, own_inputs).rank(TOPICS[1:], 10, "tag")
    assert nearest.searches == 2, "fewer has a search of its own"
    # c: 1 by each of votes, count and fewer; b: 3/4, 1/2 and 3/4, and half of the best score of direct
    singles = [
        Ranker(recipe(template="bm25", signals=[signal]), inputs()) for signal in (VOTES, count, fewer)
    ]
    expected = sum(dict(ranker.rank(TOPICS[1:], 10, "tag").rankings[0].hits)["c"] for ranker in singles)
    assert dict(ranking.hits)["c"] == pytest.approx(expected)
