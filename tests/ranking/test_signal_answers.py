"""Answers of signals that are fused in several ways without new searches."""

from __future__ import annotations

from searchapp.model import Hit, Hits
from searchapp.ranking.ranker import Ranker, SignalAnswers, WorkTime, learned_signals
from searchapp.ranking.recipes import Recipe
from tests.ranking.test_rank import DIRECT, TOPICS, VOTES, Index, inputs, recipe

LABELLED = {"signal": "labelled", "template": "similar", "k": 3, "power": 1.0}


def three_signals() -> Recipe:
    loaded = recipe(signals=[DIRECT, VOTES, {**VOTES, "name": "further", "weight": 0.5}])
    assert [signal.name for signal in loaded.signals] == ["direct", "neighbours", "further"]
    return loaded


def test_all_signals_make_the_run_of_the_recipe() -> None:
    run, _seconds = SignalAnswers(three_signals(), inputs(), TOPICS, 2).run("tag")
    assert run == Ranker(three_signals(), inputs()).rank(TOPICS, 2, "tag")


def test_some_signals_make_the_run_of_a_recipe_with_these_signals() -> None:
    index = Index(Hit("a", 8.0), Hit("b", 4.0))
    answers = SignalAnswers(three_signals(), inputs(index), TOPICS, 10)
    for only, signals in (((0,), [DIRECT]), ((0, 1), [DIRECT, VOTES])):
        expected = Ranker(recipe(signals=signals), inputs(Index(*index.hits))).rank(TOPICS, 10, "tag")
        assert answers.run("tag", only)[0] == expected
    assert index.searches == len(TOPICS)  # each signal searches once


def test_a_short_ranking_is_completed_by_documents_of_other_signals() -> None:
    answers = SignalAnswers(recipe(signals=[DIRECT, VOTES]), inputs(), TOPICS, 3)
    (votes, _other), _seconds = answers.run("tag", (1,))
    assert set(votes.document_ids()) == {"b", "c"}
    (completed, _other), _seconds = answers.run("tag", (1,), whole=True)
    assert completed.document_ids()[:2] == votes.document_ids() and completed.document_ids()[2] in ("1", "a")
    assert list(completed.hits.scores) == sorted(completed.hits.scores, reverse=True)


def test_answers_are_reused_except_for_the_listed_signals() -> None:
    first = SignalAnswers(three_signals(), inputs(), TOPICS, 10)
    changed = Index(Hit("z", 8.0))
    changed_inputs = inputs(changed)
    same = SignalAnswers(three_signals(), changed_inputs, TOPICS, 10, before=first, again=[1, 2])
    assert changed.searches == 0 and same.run("tag")[0] == first.run("tag")[0]
    assert same.seconds[0] is first.seconds[0]
    other = SignalAnswers(three_signals(), changed_inputs, TOPICS, 10, before=first, again=[0])
    assert changed.searches == len(TOPICS)
    assert other.run("tag", (0,))[0].rankings[0].hits == Hits.of(Hit("z", 8.0))
    # The first answers are not changed.
    assert first.run("tag")[0] == same.run("tag")[0]


def test_signals_that_rank_candidates_answer_again_with_the_first_signal() -> None:
    reranking = recipe(signals=[DIRECT, LABELLED])
    assert learned_signals(reranking.signals) == [1]
    index = Index(Hit("a", 8.0), Hit("b", 4.0))
    first = SignalAnswers(reranking, inputs(index), TOPICS[:1], 10)
    changed = Index(Hit("b", 8.0))
    second = SignalAnswers(reranking, inputs(changed), TOPICS[:1], 10, before=first, again=[0])
    assert second.run("tag", (1,))[0].rankings[0].document_ids() == ("b",)
    assert set(first.run("tag", (1,))[0].rankings[0].document_ids()) == {"a", "b"}


def test_work_times_are_added() -> None:
    seconds = WorkTime(1.0, 2.0)
    with seconds.measure():
        sum(range(100_000))
    assert seconds.cpu > 1.0 and seconds.clock > 2.0
    assert seconds + WorkTime(1.0, 1.0) == WorkTime(seconds.cpu + 1.0, seconds.clock + 1.0)
