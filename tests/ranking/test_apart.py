"""Signals that answer once and are fused in several ways."""

from __future__ import annotations

from searchapp.model import Hit, Hits
from searchapp.ranking.ranker import Ranker, SignalAnswers, WorkTime, learned_signals
from searchapp.ranking.recipes import Recipe
from tests.ranking.test_rank import DIRECT, TOPICS, VOTES, Index, inputs, recipe

LABELLED = {"signal": "labelled", "template": "similar", "k": 3, "power": 1.0}


def three() -> Recipe:
    shipped = recipe(signals=[DIRECT, VOTES, {**VOTES, "name": "further", "weight": 0.5}])
    assert [signal.name for signal in shipped.signals] == ["direct", "neighbours", "further"]
    return shipped


def test_all_signals_make_the_run_that_the_recipe_makes() -> None:
    run, _seconds = SignalAnswers(three(), inputs(), TOPICS, 2).run("tag")
    assert run == Ranker(three(), inputs()).rank(TOPICS, 2, "tag")


def test_some_signals_make_the_run_of_a_recipe_of_these() -> None:
    index = Index(Hit("a", 8.0), Hit("b", 4.0))
    apart = SignalAnswers(three(), inputs(index), TOPICS, 10)
    asked = index.asked
    for only, signals in (((0,), [DIRECT]), ((0, 1), [DIRECT, VOTES])):
        expected = Ranker(recipe(signals=signals), inputs(Index(*index.hits))).rank(TOPICS, 10, "tag")
        assert apart.run("tag", only)[0] == expected
    assert index.asked == asked == len(TOPICS)  # no signal is asked again


def test_a_ranking_that_is_too_short_is_completed_by_what_others_retrieve() -> None:
    apart = SignalAnswers(recipe(signals=[DIRECT, VOTES]), inputs(), TOPICS, 3)
    (votes, _other), _seconds = apart.run("tag", (1,))
    assert set(votes.document_ids()) == {"b", "c"}
    (whole, _other), _seconds = apart.run("tag", (1,), whole=True)
    assert whole.document_ids()[:2] == votes.document_ids() and whole.document_ids()[2] in ("1", "a")
    assert list(whole.hits.scores) == sorted(whole.hits.scores, reverse=True)


def test_signals_that_are_not_asked_again_say_what_they_said_before() -> None:
    first = SignalAnswers(three(), inputs(), TOPICS, 10)
    changed = Index(Hit("z", 8.0))
    given = inputs(changed)
    same = SignalAnswers(three(), given, TOPICS, 10, before=first, again=[1, 2])
    assert changed.asked == 0 and same.run("tag")[0] == first.run("tag")[0]
    assert same.seconds[0] is first.seconds[0]
    other = SignalAnswers(three(), given, TOPICS, 10, before=first, again=[0])
    assert changed.asked == len(TOPICS) and other.run("tag", (0,))[0].rankings[0].hits == Hits.of(
        Hit("z", 8.0)
    )
    # Those before have not changed.
    assert first.run("tag")[0] == same.run("tag")[0]


def test_what_ranks_candidates_is_asked_again_with_the_first_signal() -> None:
    asking = recipe(signals=[DIRECT, LABELLED])
    assert learned_signals(asking.signals) == [1]
    index = Index(Hit("a", 8.0), Hit("b", 4.0))
    first = SignalAnswers(asking, inputs(index), TOPICS[:1], 10)
    changed = Index(Hit("b", 8.0))
    second = SignalAnswers(asking, inputs(changed), TOPICS[:1], 10, before=first, again=[0])
    assert second.run("tag", (1,))[0].rankings[0].document_ids() == ("b",)
    assert set(first.run("tag", (1,))[0].rankings[0].document_ids()) == {"a", "b"}


def test_seconds_add_up() -> None:
    seconds = WorkTime(1.0, 2.0)
    with seconds.measure():
        sum(range(100_000))
    assert seconds.cpu > 1.0 and seconds.clock > 2.0
    assert seconds + WorkTime(1.0, 1.0) == WorkTime(seconds.cpu + 1.0, seconds.clock + 1.0)
