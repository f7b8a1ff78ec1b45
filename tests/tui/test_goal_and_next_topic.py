"""The goal of a session, going to the next topic, and the end of messages."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from textual.pilot import Pilot

from searchapp.errors import SearchappError
from searchapp.judging.session import JudgingSession
from searchapp.tui.judge.prompts import JudgePrompts
from searchapp.tui.judge.screen import JudgeScreen
from tests.cli.conftest import EMBEDDED, run_command
from tests.tui.conftest import JudgingHarness, drive, screen_text, typing

P = Pilot[None]


def first_line(pilot: P) -> str:
    return screen_text(pilot).splitlines()[0]


def configure(judging: JudgingHarness, *lines: str) -> None:
    (judging.home / "settings.toml").write_text("\n".join(["[judge]", *lines]))


def test_a_finished_topic_leads_to_the_next_one_with_unjudged_documents(judging: JudgingHarness) -> None:
    configure(judging, "next_topic = true")

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        topics = judging.own_session.topics
        last = screen.ranking.documents[1]
        await pilot.press("]", "1", "1", "[")  # the second topic is done, and went on to the third one
        assert screen.topic_id == topics[1]
        await pilot.press("[", "1", "s")
        assert screen.topic_id == topics[0]  # a skipped document is not judged
        await pilot.press("0")
        assert screen.topic_id == topics[2] and "was skipped, topic done: “" in first_line(pilot)
        await pilot.press("a", *"odd", "enter")  # belongs to the document just graded
        event = judging.events()[-1]
        assert (event.topic_id, event.document_id, event.text) == (topics[0], last, "odd")
        await pilot.press("u", "u")
        assert screen.topic_id == topics[0]
        await pilot.press("0")
        assert screen.topic_id == topics[2]
        await pilot.press("[", "[", "home", "0")  # a change of a finished topic stays there
        assert screen.topic_id == topics[0] and judging.events()[-1].grade == 0

    drive(judging.app(depth=2), steps)


def test_without_the_setting_the_screen_stays_and_the_message_ends_with_the_topic(
    judging: JudgingHarness,
) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "1")
        assert screen.topic_id == judging.own_session.topics[0]
        assert "topic done: } goes on" in first_line(pilot)
        await pilot.press("ctrl+d")
        assert "topic done" in first_line(pilot)
        await pilot.press("]")
        assert "topic done" not in first_line(pilot)
        await pilot.press("[", "u")
        assert "undone" in first_line(pilot)

    drive(judging.app(depth=2), steps)


def test_messages_end_with_their_condition(judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("space", "space")
        assert "2 selected" in first_line(pilot)
        await pilot.press("]")
        assert "selected" not in first_line(pilot)
        await pilot.press("slash", *"subgroup", "enter")
        await screen.app.workers.wait_for_complete()
        await pilot.pause()
        assert "“subgroup”: " in first_line(pilot)
        await pilot.press("down")
        assert "“subgroup”: " not in first_line(pilot)
        await pilot.press("8")
        assert "unknown grade 8" in first_line(pilot)
        await pilot.press("down")
        assert "unknown grade" not in first_line(pilot)

        def fail(self: JudgingSession) -> None:
            raise SearchappError("the log can't be read")

        with monkeypatch.context() as patch:
            patch.setattr(JudgingSession, "refresh", fail)
            screen.control.refresh()
            await pilot.press("down")
            assert "the log can't be read" in first_line(pilot)
        screen.control.refresh()
        await pilot.pause()
        assert "the log can't be read" not in first_line(pilot)

    drive(judging.app(), steps)


def test_the_list_of_judgments_is_centred(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("l")
        assert "You have judged none of these topics yet: esc goes back" in screen_text(pilot)
        await pilot.press("escape", "1", "l", *"zzz")
        assert "No judgment of this kind has these words." in screen_text(pilot)
        region = screen.app.screen.query_one(".judged").region
        assert region.x == (160 - region.width) // 2 > 0
        assert abs(region.y - (45 - region.bottom)) <= 1

    drive(judging.app(), steps)


def test_the_first_line_shows_the_progress_towards_the_goal(judging: JudgingHarness) -> None:
    configure(judging, "goal = 3")

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert "0/3" in first_line(pilot)
        await pilot.press("1", "s", "x")
        assert "2/3" in first_line(pilot)
        await pilot.press("u", "1", "1")
        assert "3/3 ✓" in first_line(pilot)
        await pilot.press("home", "0")  # the same document again
        assert "3/3 ✓" in first_line(pilot)
        await pilot.press("1")
        assert "4/3 ✓" in first_line(pilot)

    drive(judging.app(), steps)


def test_judgments_of_earlier_sessions_do_not_count(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "1")
        assert judging.own_session.session.judged_here == 2

    drive(judging.app(), steps)
    assert judging.session("ann").judged_here == 0


def talk(
    judging: JudgingHarness, *lines: str, goal: int | None = None, next_topic: bool = False, depth: int
) -> str:
    out = io.StringIO()
    judging.app(depth=depth)
    prompts = JudgePrompts(
        judging.own_session,
        judging.run_pages,
        "title",
        ask=typing(lines, out),
        out=out,
        goal=goal,
        next_topic=next_topic,
    )
    prompts.converse()
    return out.getvalue()


def test_prompts_go_to_the_next_topic_too(judging: JudgingHarness) -> None:
    shown = talk(judging, "1", "1", "bulk 1-2 0", "y", "[", "# 1", "1", "q", next_topic=True, depth=2)
    second, third = judging.own_session.topics[1:3]
    assert shown.count("All documents of this topic are judged.") == 2
    assert f"Topic 2 of 10, {second}, 0 of 2" in shown and f"Topic 3 of 10, {third}, 0 of 2" in shown
    assert judging.events()[-1].topic_id == second  # the changed grade did not leave the topic
    assert "Document 2 of 2" in shown.rpartition("saved. 1 relevant, was 0")[2] or "} goes" in shown


def test_a_note_belongs_to_the_document_just_graded_in_the_previous_topic(judging: JudgingHarness) -> None:
    talk(judging, "1", "a odd", "q", next_topic=True, depth=1)
    grade, note = judging.events()
    assert (note.topic_id, note.document_id) == (grade.topic_id, grade.document_id)


def test_prompts_without_the_setting_stay(judging: JudgingHarness) -> None:
    shown = talk(judging, "1", "1", "q", depth=2)
    assert "all documents of this topic are judged: } goes to the next topic" in shown
    assert "Topic 2 of 10" not in shown


def test_prompts_report_the_progress_towards_the_goal(judging: JudgingHarness) -> None:
    shown = talk(judging, "1", "a odd", "1", "u", "q", goal=2, depth=9)
    assert "The goal of this session: 2 documents." in shown
    assert shown.count("1 of 2 judged in this session") == 2  # after the first grade, and after the undo
    assert shown.count("2 of 2 judged in this session: goal reached") == 1


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("goal = 0", "judge.goal must be a whole number from 1"),
        ("goal = true", "judge.goal must be a whole number from 1"),
        ('next_topic = "yes"', "judge.next_topic must be true or false"),
    ],
)
def test_wrong_values_of_the_settings_are_rejected(tmp_path: Path, line: str, problem: str) -> None:
    (tmp_path / "settings.toml").write_text(f"[judge]\n{line}\n")
    result = run_command("config", "--home", tmp_path, environment=EMBEDDED)
    assert result.code == 4 and problem in result.stderr


def test_config_shows_the_goal_as_a_number(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("[judge]\ngoal = 50\n")
    result = run_command("config", "--json", "--home", tmp_path, environment=EMBEDDED)
    assert result.code == 0 and '"value": 50' in result.stdout
