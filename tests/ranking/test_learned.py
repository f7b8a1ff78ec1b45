"""The fusion `learned`: its candidates, its model and its training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from searchapp.errors import DataError, UsageError
from searchapp.model import Example, Hit, Hits, Topic
from searchapp.ranking import recipes
from searchapp.ranking.fusion import FUSION, LearnedFusion, TrainingFolds, Weighted
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
    """Return direct hits with a wrong best document, and votes for the right one."""
    hits = Hits.of(Hit("wrong", 8.0 + number), Hit("right", 4.0), Hit("other", 2.0), Hit("last", 1.0))
    return [hits, {"right": 3.0, "wrong": 1.0}]


def weighted(number: int = 0) -> Weighted:
    return [(weight, answer) for (_, weight), answer in zip(SIGNALS, answers(number), strict=True)]


def answering(withheld: list[frozenset[str]]) -> Any:
    """Return a function that answers training topics and records which topics must not vote."""

    def answer(folds: TrainingFolds) -> Iterator[tuple[Example, Sequence[Answer]]]:
        for examples, without in folds:
            withheld.append(without)
            for number, example in enumerate(examples):
                yield example, answers(number)

    return answer


def model(learned: LearnedFusion = LEARNED) -> StoredModel:
    header, arrays = learned.train(SIGNALS, EXAMPLES, answering([]))
    return StoredModel.of({"topics": [example.topic.id for example in EXAMPLES], **header}, arrays)


def ready(learned: LearnedFusion = LEARNED) -> Any:
    return learned.ready([name for name, _ in SIGNALS], lambda: model(learned))


def best_first(scores: Mapping[str, float]) -> list[str]:
    return sorted(scores, key=lambda document: -scores[document])


EACH_NORMALIZATION = pytest.mark.parametrize("learned", [LEARNED, replace(LEARNED, added=Normalization.none)])
"""Weighted sums of normalized scores and of raw scores."""


@EACH_NORMALIZATION
def test_trees_rank_the_candidates_and_the_sum_the_documents_below(learned: LearnedFusion) -> None:
    sums = learned.fused(weighted())
    assert best_first(sums) == ["wrong", "right", "other", "last"]
    assert sums["right"] == (1.0 if learned.added is Normalization.max else 5.5)
    scores = ready(learned).fused(weighted())
    assert best_first(scores) == ["right", "wrong", "other", "last"]
    assert min(scores["wrong"], scores["other"]) > scores["last"] == sums["last"] > 0


@EACH_NORMALIZATION
def test_without_a_model_the_fusion_is_the_weighted_sum(learned: LearnedFusion) -> None:
    def no_model() -> StoredModel:
        raise AssertionError("the model is not needed")

    plain = learned.unlearned.ready([name for name, _ in SIGNALS], no_model)
    assert plain.fused(weighted()) == learned.fused(weighted())
    assert plain.normalization is learned.normalization


@EACH_NORMALIZATION
def test_contributions_and_the_rest_add_up_to_the_score(learned: LearnedFusion) -> None:
    fusion = ready(learned)
    for document, score in fusion.fused(weighted()).items():
        signals, rest = fusion.given(weighted(), document)
        assert sum(part or 0.0 for part in signals) + rest == pytest.approx(score)
    description, (model_part,) = fusion.explained(weighted(), "right")
    assert "fused by learned" in description and "by 4 trees" in model_part.description
    assert model_part.value == pytest.approx(sum(part.value for part in model_part.details))
    assert any("votes share is 1" in part.description for part in model_part.details)
    assert fusion.explained(weighted(), "last") == (
        "fused by sum, below the 3 candidates that learned ranks",
        (),
    )


def test_topics_of_a_fold_do_not_vote_in_that_fold() -> None:
    withheld: list[frozenset[str]] = []
    header, _ = replace(LEARNED, max_topics=8).train(SIGNALS, EXAMPLES, answering(withheld))
    assert sorted(map(len, withheld)) == [10, 10] and not withheld[0] & withheld[1]
    assert header["candidates"] == 8 * 3, "3 candidates of 4 topics of each fold"
    reversed_withheld: list[frozenset[str]] = []
    replace(LEARNED, max_topics=8).train(SIGNALS, EXAMPLES[::-1], answering(reversed_withheld))
    assert reversed_withheld == withheld, "the folds depend on the order of training topics"


def fold_ids(learned: LearnedFusion) -> list[list[str]]:
    return [[example.topic.id for example in fold] for fold in learned.make_folds(EXAMPLES)]


def test_training_is_deterministic_and_folds_depend_on_the_seed() -> None:
    assert model().digest == model().digest
    other = replace(LEARNED, seed=2, max_topics=8)
    assert fold_ids(other) != fold_ids(LEARNED)


def test_a_training_topic_is_not_ranked_by_its_own_gold() -> None:
    with pytest.raises(DataError, match="trained on the topic t3"):
        ready().require_unseen([Topic("t3", "x")])
    ready().require_unseen([Topic("new", "x")])


def test_a_model_of_other_signals_is_rejected() -> None:
    with pytest.raises(DataError, match="features of other signals"):
        LEARNED.ready(["direct", "others"], model)


def test_training_needs_a_relevant_candidate() -> None:
    with pytest.raises(DataError, match="the fusion can't learn"):
        LEARNED.train(
            SIGNALS, [replace(example, gold={"nowhere": 1.0}) for example in EXAMPLES], answering([])
        )


def recipe(**fusion: Any) -> Recipe:
    shipped = recipe_book("text")
    table = {
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
    return recipes.load(RecipeBook("mine", shipped.file, {"x": table}, shipped.template), "x")


def test_the_manifest_of_a_recipe_has_the_parameters_of_training() -> None:
    loaded = recipe()
    assert loaded.is_learned and loaded.learns
    assert loaded.manifest()[FUSION] == {
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


def test_candidates_with_equal_tree_scores_are_ordered_by_the_sum() -> None:
    blind = replace(LEARNED, min_samples=1000)
    assert best_first(ready(blind).fused(weighted())) == best_first(blind.fused(weighted()))
