"""The fusion `learned`: which candidates it ranks, by what, and whose votes it is trained on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from searchapp.errors import DataError, UsageError
from searchapp.model import Example, Hit, Hits, Topic
from searchapp.ranking import recipes
from searchapp.ranking.fusion import FUSION, LearnedFusion, Weighted
from searchapp.ranking.learning import StoredModel
from searchapp.ranking.recipes import Recipe
from searchapp.ranking.signals.base import Answer, Normalization
from searchapp.resources import RecipeBook, recipe_book

LEARNED = LearnedFusion(
    candidates=3, max_topics=100, folds=2, num_trees=4, num_leaves=3, min_samples=2, learning_rate=0.5, seed=1
)
SIGNALS = [("direct", 1.0), ("votes", 0.5)]
EXAMPLES = [Example(Topic(f"t{number}", "x"), {"right": 1.0}) for number in range(20)]


def answers(number: int = 0) -> list[Answer]:
    """Direct hits that are wrong, and votes of which the second is right."""
    hits = Hits.of(Hit("wrong", 8.0 + number), Hit("right", 4.0), Hit("other", 2.0), Hit("last", 1.0))
    return [hits, {"right": 3.0, "wrong": 1.0}]


def weighted(number: int = 0) -> Weighted:
    return [(weight, answer) for (_, weight), answer in zip(SIGNALS, answers(number), strict=True)]


def asking(withheld: list[frozenset[str]]) -> Any:
    def asked(some: Sequence[Example], without: frozenset[str]) -> Iterator[tuple[Example, Sequence[Answer]]]:
        withheld.append(without)
        for number, example in enumerate(some):
            yield example, answers(number)

    return asked


def model(learned: LearnedFusion = LEARNED) -> StoredModel:
    header, arrays = learned.train(SIGNALS, EXAMPLES, asking([]))
    return StoredModel.of({"topics": [one.topic.id for one in EXAMPLES], **header}, arrays)


def ready(learned: LearnedFusion = LEARNED) -> Any:
    return learned.ready([name for name, _ in SIGNALS], lambda: model(learned))


def best_first(scores: Mapping[str, float]) -> list[str]:
    return sorted(scores, key=lambda one: -scores[one])


EACH_SCALE = pytest.mark.parametrize("learned", [LEARNED, replace(LEARNED, added=Normalization.none)])
"""The weighted sum of shares, and of scores as they come."""


@EACH_SCALE
def test_candidates_are_ranked_by_the_trees_and_others_behind_them_by_the_sum(learned: LearnedFusion) -> None:
    added = learned.fused(weighted())
    assert best_first(added) == ["wrong", "right", "other", "last"]
    assert added["right"] == (1.0 if learned.added is Normalization.max else 5.5)
    scores = ready(learned).fused(weighted())
    assert best_first(scores) == ["right", "wrong", "other", "last"]
    assert min(scores["wrong"], scores["other"]) > scores["last"] == added["last"] > 0


@EACH_SCALE
def test_without_its_model_it_is_the_weighted_sum(learned: LearnedFusion) -> None:
    def no_model() -> StoredModel:
        raise AssertionError("nobody asks for it")

    plain = learned.unlearned.ready([name for name, _ in SIGNALS], no_model)
    assert (
        plain.fused(weighted()) == learned.fused(weighted()) and plain.normalization is learned.normalization
    )


@EACH_SCALE
def test_what_the_signals_gave_and_the_rest_come_to_the_score(learned: LearnedFusion) -> None:
    fusion = ready(learned)
    for document, score in fusion.fused(weighted()).items():
        signals, rest = fusion.given(weighted(), document)
        assert sum(one or 0.0 for one in signals) + rest == pytest.approx(score)
    said, (of_model,) = fusion.explained(weighted(), "right")
    assert "fused by learned" in said and "by 4 trees" in of_model.description
    assert of_model.value == pytest.approx(sum(one.value for one in of_model.details))
    assert any("votes share is 1" in one.description for one in of_model.details)
    assert fusion.explained(weighted(), "last") == (
        "fused by sum, below the 3 candidates that learned ranks",
        (),
    )


def test_the_votes_of_a_part_are_withheld_from_its_topics() -> None:
    withheld: list[frozenset[str]] = []
    header, _ = replace(LEARNED, max_topics=8).train(SIGNALS, EXAMPLES, asking(withheld))
    assert sorted(map(len, withheld)) == [10, 10] and not withheld[0] & withheld[1]
    assert header["candidates"] == 8 * 3, "3 candidates of 4 topics of each part"
    turned = replace(LEARNED, max_topics=8)
    again: list[frozenset[str]] = []
    turned.train(SIGNALS, EXAMPLES[::-1], asking(again))
    assert again == withheld, "whatever the order of the solved topics"


def test_training_is_the_same_every_time_and_the_seed_decides() -> None:
    assert model().digest == model().digest
    other = replace(LEARNED, seed=2, max_topics=8)
    parts = [[one.topic.id for one in part] for part in other.make_folds(EXAMPLES)]
    assert parts != [[one.topic.id for one in part] for part in LEARNED.make_folds(EXAMPLES)]


def test_a_solved_topic_is_not_ranked_by_its_own_answer() -> None:
    with pytest.raises(DataError, match="trained on the topic t3"):
        ready().require_unseen([Topic("t3", "x")])
    ready().require_unseen([Topic("new", "x")])


def test_a_model_of_other_signals_is_refused() -> None:
    with pytest.raises(DataError, match="features of other signals"):
        LEARNED.ready(["direct", "others"], model)


def test_without_a_relevant_candidate_nothing_can_be_learned() -> None:
    with pytest.raises(DataError, match="the fusion can't learn"):
        LEARNED.train(SIGNALS, [replace(one, gold={"nowhere": 1.0}) for one in EXAMPLES], asking([]))


def recipe(**fusion: Any) -> Recipe:
    shipped = recipe_book("text")
    written = {
        "signals": [
            {"signal": "direct", "template": "bm25"},
            {"signal": "neighbours", "template": "similar", "k": 2, "power": 1.0},
        ],
        "fusion": {
            "method": "learned",
            "candidates": 3,
            "max_topics": 9,
            "folds": 2,
            "num_trees": 4,
            "num_leaves": 3,
            "min_samples": 2,
            "learning_rate": 0.5,
        }
        | fusion,
    }
    return recipes.load(RecipeBook("mine", shipped.file, {"x": written}, shipped.template), "x")


def test_a_recipe_says_how_it_learns() -> None:
    read = recipe()
    assert read.is_learned and read.learns
    assert read.manifest()[FUSION] == {
        "method": "learned",
        "normalization": "max",
        "candidates": 3,
        "max_topics": 9,
        "folds": 2,
        "num_trees": 4,
        "num_leaves": 3,
        "min_samples": 2,
        "learning_rate": 0.5,
        "seed": 2021,
    }
    assert recipe(normalization="none").manifest()[FUSION]["normalization"] == "none"
    with pytest.raises(DataError, match="has 1 fold in its fusion"):
        recipe(folds=1)
    with pytest.raises(DataError, match="has 1 leaf in its fusion"):
        recipe(num_leaves=1)
    with pytest.raises(UsageError, match="trees must be a whole number"):
        recipe(num_trees=0)


def test_candidates_that_the_trees_cannot_tell_apart_are_ordered_by_the_sum() -> None:
    blind = replace(LEARNED, min_samples=1000)
    assert best_first(ready(blind).fused(weighted())) == best_first(blind.fused(weighted()))
