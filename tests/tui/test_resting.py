"""What stands is not changed by a key too many: after the last document, by a skip, by a grade for several."""

from __future__ import annotations

import pytest
from textual import events
from textual.pilot import Pilot

from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.screen import JudgeScreen
from tests.tui.conftest import Judging, drive, question, settled, text_of
from tests.tui.test_adjudicate import decisions
from tests.tui.test_adjudicate import talk as decide
from tests.tui.test_plain import talk

P = Pilot[None]


def said(judging: Judging) -> list[tuple[str, int | None]]:
    return [(event.action.value, event.grade) for event in judging.events()]


def grades(judging: Judging, screen: JudgeScreen) -> list[int | None]:
    opinions = [judging.judging.opinion(screen.topic_id, one) for one in screen.ranking.documents]
    return [None if opinion is None else opinion.grade for opinion in opinions]


def test_after_the_last_document_a_further_grade_asks(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "1", "1")
        assert "topic done: G goes on" in text_of(app)
        await pilot.press("1")
        assert "already judged 1 relevant: topic done: G goes on" in text_of(app)
        await pilot.press("0", "0", "0")  # the question takes no grade for an answer
        assert "is judged 1 relevant. Change it to 0 not relevant?" in question(app)
        assert grades(judging, screen) == [1, 1, 1]
        await pilot.press("n", "x")
        assert "Change it to can't tell?" in question(app)
        await pilot.press("escape")
        assert len(judging.events()) == 3
        await pilot.press("0", "y")
        assert grades(judging, screen) == [1, 1, 0] and "0 not relevant, was 1 relevant" in text_of(app)
        await pilot.press("u")
        assert grades(judging, screen) == [1, 1, 1]

    app = judging.app(depth=3)
    drive(app, steps)


def test_the_question_can_go_on_to_the_next_topic(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "0", "G")
        assert screen.topic_index == 1 and said(judging) == [("grade", 1)]

    drive(judging.app(depth=1), steps)


def test_keys_that_come_at_once_are_asked_about_all_the_same(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        for key in ("1", "1", "up", "down", "1", "0"):  # without waiting for any of them
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await settled(pilot)
        assert "Change it to 0 not relevant?" in question(app)
        assert said(judging) == [("grade", 1)] * 3

    app = judging.app(depth=3)
    drive(app, steps)


def test_a_document_that_is_gone_to_is_changed_at_once_and_told(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "1", "1", "up", "down", "0")
        assert grades(judging, screen) == [1, 1, 0] and "0 not relevant, was 1 relevant" in text_of(app)
        await pilot.press("1")  # there is none below it: the cursor rests
        assert "Change it to 1 relevant?" in question(app)

    app = judging.app(depth=3)
    drive(app, steps)


def test_a_reason_for_another_grade_asks_too(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "r", "0", *"why", "enter")
        assert "Change it to 0 not relevant?" in question(app)
        await pilot.press("y")
        assert [(event.grade, event.text) for event in judging.events()] == [(1, ""), (0, "why")]

    app = judging.app(depth=1)
    drive(app, steps)


def test_a_skip_takes_a_grade_back_after_a_question_only(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "0", "home", "s")
        assert "is judged 1 relevant. Skip it and remove that judgment?" in question(app)
        await pilot.press("n")
        assert said(judging) == [("grade", 1), ("grade", 0)]
        await pilot.press("s", "y")
        assert grades(judging, screen) == [None, 0, None] and "skipped, was 1 relevant" in text_of(app)
        await pilot.press("u")
        assert grades(judging, screen) == [1, 0, None]
        await pilot.press("end", "s")
        assert screen.ranking.cursor == 2 and "only skipped documents are left: G goes on" in text_of(app)
        await pilot.press("s")
        assert "already skipped" in text_of(app) and len(judging.events()) == 5
        await pilot.press("1")  # what was put off is judged without a question
        assert grades(judging, screen) == [1, 0, 1]

    app = judging.app(depth=3)
    drive(app, steps)


def test_a_grade_for_several_says_how_many_are_judged_already(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "x", "0", "s", "home", *["space"] * 5, "0")
        assert question(app) == (
            "Grade 5 documents 0 not relevant? 3 of them are already judged (1 × 0 not relevant, 1 × 1 "
            "relevant, 1 × can't tell)."
        )
        await pilot.press("y", "u")
        assert grades(judging, screen)[:5] == [1, None, 0, None, None]
        opinion = judging.judging.opinion(screen.topic_id, screen.ranking.documents[1])
        assert opinion is not None and opinion.action == "cant_tell"

    app = judging.app()
    drive(app, steps)


def test_after_the_last_decision_a_further_grade_asks(judging: Judging) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        await pilot.press("1", "1", "1", "1", "1")
        assert "already decided 1 relevant: ✓ all are decided" in text_of(app)
        await pilot.press("0", "0")
        assert "is decided: 1 relevant. Change it to 0 not relevant?" in question(app)
        await pilot.press("n")
        assert [grade for _, _, grade, _ in decisions(judging)] == [1, 1, 1, 1]
        await pilot.press("0", "y")
        assert [grade for _, _, grade, _ in decisions(judging)] == [1, 1, 1, 1, 0]
        assert "decided 0 not relevant, was 1 relevant" in text_of(app)

    app = judging.adjudicating()
    drive(app, steps)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["1", "0", "n"], [("grade", 1)]),
        (["1", "0", "y"], [("grade", 1), ("grade", 0)]),
        (["1", "x why", "n"], [("grade", 1)]),
        (["1", "1"], [("grade", 1)]),
        (["1", "s", "n"], [("grade", 1)]),
        (["1", "s", "y", "0"], [("grade", 1), ("skip", None), ("grade", 0)]),
        (["s", "s", "s"], [("skip", None)]),
        (["1", "# 1", "0"], [("grade", 1), ("grade", 0)]),
        (["1", "0"], [("grade", 1)]),  # the input ends with the question
    ],
)
def test_prompts_ask_before_what_stands_is_changed(
    judging: Judging, typed: list[str], expected: list[tuple[str, int | None]]
) -> None:
    talk(judging, *typed, depth=1)
    assert said(judging) == expected


def test_prompts_say_how_many_of_several_are_judged_already(judging: Judging) -> None:
    shown = talk(judging, "1", "0", "bulk 1-4 1", "n")
    assert (
        "Grade 4 documents 1 relevant? 2 of them are already judged (1 × 0 not relevant, 1 × 1 relevant)."
        in shown
    )
    assert len(judging.events()) == 2


def test_prompts_for_deciding_ask_too(judging: Judging) -> None:
    shown = decide(judging, "1", "1", "1", "1", "1", "0", "n", "0", "y")
    assert "already decided 1 relevant" in shown and "is decided: 1 relevant. Change it to 0" in shown
    assert [grade for _, _, grade, _ in decisions(judging)] == [1, 1, 1, 1, 0]
