"""Saved grades change only after confirmation: after the last document, by a skip, by a grade for several."""

from __future__ import annotations

import pytest
from textual import events
from textual.pilot import Pilot

from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.screen import JudgeScreen
from tests.tui.conftest import JudgingHarness, drive, question, screen_text, wait_until_idle
from tests.tui.test_adjudicate import decisions, run_adjudication_prompts
from tests.tui.test_prompts import run_prompts

P = Pilot[None]


def saved_actions(judging: JudgingHarness) -> list[tuple[str, int | None]]:
    return [(event.action.value, event.grade) for event in judging.events()]


def grades(judging: JudgingHarness, screen: JudgeScreen) -> list[int | None]:
    opinions = [
        judging.own_session.opinion(screen.topic_id, document) for document in screen.ranking.documents
    ]
    return [None if opinion is None else opinion.grade for opinion in opinions]


def test_a_further_grade_after_the_last_document_asks(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "1", "1")
        assert "topic done: } goes on" in screen_text(pilot)
        await pilot.press("1")
        assert "already judged 1 relevant   topic done: } goes on" in screen_text(pilot)
        await pilot.press("0", "0", "0")  # grades do not answer the question
        assert "is judged 1 relevant. Change it to 0 not relevant?" in question(pilot)
        assert grades(judging, screen) == [1, 1, 1]
        await pilot.press("n", "x")
        assert "Change it to can't tell?" in question(pilot)
        await pilot.press("escape")
        assert len(judging.events()) == 3
        await pilot.press("0", "y")
        assert grades(judging, screen) == [1, 1, 0] and "0 not relevant, was 1 relevant" in screen_text(pilot)
        await pilot.press("u")
        assert grades(judging, screen) == [1, 1, 1]

    drive(judging.app(depth=3), steps)


def test_the_question_can_go_on_to_the_next_topic(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "0", "}")
        assert screen.topic_index == 1 and saved_actions(judging) == [("grade", 1)]

    drive(judging.app(depth=1), steps)


def test_a_change_by_keys_without_pauses_asks_too(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        for key in ("1", "1", "up", "down", "1", "0"):  # without waiting for any of them
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await wait_until_idle(pilot)
        assert "Change it to 0 not relevant?" in question(pilot)
        assert saved_actions(judging) == [("grade", 1)] * 3

    app = judging.app(depth=3)
    drive(app, steps)


def test_a_change_after_moving_is_saved_without_a_question(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "1", "1", "up", "down", "0")
        assert grades(judging, screen) == [1, 1, 0] and "0 not relevant, was 1 relevant" in screen_text(pilot)
        await pilot.press("1")  # the cursor has stayed on the last document
        assert "Change it to 1 relevant?" in question(pilot)

    drive(judging.app(depth=3), steps)


def test_a_reason_for_another_grade_asks_too(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "R", "0", *"why", "enter")
        assert "Change it to 0 not relevant?" in question(pilot)
        await pilot.press("y")
        assert [(event.grade, event.text) for event in judging.events()] == [(1, ""), (0, "why")]

    drive(judging.app(depth=1), steps)


def test_a_skip_removes_a_grade_only_after_a_question(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "0", "home", "s")
        assert "is judged 1 relevant. Skip it and remove that judgment?" in question(pilot)
        await pilot.press("n")
        assert saved_actions(judging) == [("grade", 1), ("grade", 0)]
        await pilot.press("s", "y")
        assert grades(judging, screen) == [None, 0, None] and "skipped, was 1 relevant" in screen_text(pilot)
        await pilot.press("u")
        assert grades(judging, screen) == [1, 0, None]
        await pilot.press("end", "s")
        assert screen.ranking.cursor == 2
        assert "only skipped documents are left: } goes on" in screen_text(pilot)
        await pilot.press("s")
        assert "already skipped" in screen_text(pilot) and len(judging.events()) == 5
        await pilot.press("1")  # a skipped document is judged without a question
        assert grades(judging, screen) == [1, 0, 1]

    drive(judging.app(depth=3), steps)


def test_a_grade_for_several_documents_reports_how_many_are_judged(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "x", "0", "s", "home", *["space"] * 5, "0")
        assert question(pilot) == (
            "Grade 5 documents 0 not relevant? 3 of them are already judged (1 × 0 not relevant, 1 × 1 "
            "relevant, 1 × can't tell)."
        )
        await pilot.press("y", "u")
        assert grades(judging, screen)[:5] == [1, None, 0, None, None]
        opinion = judging.own_session.opinion(screen.topic_id, screen.ranking.documents[1])
        assert opinion is not None and opinion.action == "cant_tell"

    drive(judging.app(), steps)


def test_a_further_grade_after_the_last_decision_asks(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        await pilot.press("1", "1", "1", "1", "1")
        assert "already decided 1 relevant: ✓ all are decided" in screen_text(pilot)
        await pilot.press("0", "0")
        assert "is decided: 1 relevant. Change it to 0 not relevant?" in question(pilot)
        await pilot.press("a")
        assert [grade for _, _, grade, _ in decisions(judging)] == [1, 1, 1, 1]
        await pilot.press("0", "y")
        assert [grade for _, _, grade, _ in decisions(judging)] == [1, 1, 1, 1, 0]
        assert "decided 0 not relevant, was 1 relevant" in screen_text(pilot)

    drive(judging.adjudicating(), steps)


@pytest.mark.parametrize(
    ("keys", "expected"),
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
def test_prompts_ask_before_a_saved_grade_is_changed(
    judging: JudgingHarness, keys: list[str], expected: list[tuple[str, int | None]]
) -> None:
    run_prompts(judging, *keys, depth=1)
    assert saved_actions(judging) == expected


def test_prompts_report_how_many_of_several_documents_are_judged(judging: JudgingHarness) -> None:
    text = run_prompts(judging, "1", "0", "bulk 1-4 1", "n")
    assert (
        "Grade 4 documents 1 relevant? 2 of them are already judged (1 × 0 not relevant, 1 × 1 relevant)."
        in text
    )
    assert len(judging.events()) == 2


def test_prompts_of_adjudication_ask_too(judging: JudgingHarness) -> None:
    text = run_adjudication_prompts(judging, "1", "1", "1", "1", "1", "0", "n", "0", "y")
    assert "already decided 1 relevant" in text and "is decided: 1 relevant. Change it to 0" in text
    assert [grade for _, _, grade, _ in decisions(judging)] == [1, 1, 1, 1, 0]
