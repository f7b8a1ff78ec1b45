"""The depth of judging, and documents without a score."""

from __future__ import annotations

import io

from textual.pilot import Pilot

from searchapp.judging.session import JudgingSession
from searchapp.tui.judge.prompts import JudgePrompts
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.widgets import TextPane
from tests.tui.conftest import JudgingHarness, drive, screen_text
from tests.tui.test_prompts import run_prompts

P = Pilot[None]


def test_documents_without_a_score_are_left_out(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        scores = judging.run_pages.rankings.ranking(screen.topic_id).hits.scores
        assert len(screen.ranking.documents) == sum(score != 0 for score in scores) == 19 < len(scores)
        assert "0/19" in screen_text(pilot) and "– " not in screen_text(pilot).split("Topic 602")[0]
        await pilot.press("end")
        assert "rank 19 · " in screen_text(pilot) and "no score" not in screen_text(pilot)

    drive(judging.app(unscored=False), steps)


def test_all_documents_can_be_judged_and_documents_without_a_score_are_marked(
    judging: JudgingHarness,
) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert len(screen.ranking.documents) == 69
        await pilot.press("i", *screen.ranking.documents[18], "enter")
        assert "rank 19 · 0.6287" in screen_text(pilot)
        await pilot.press("down")
        assert "rank 20 · no score" in screen_text(pilot)
        rows = [line for line in screen_text(pilot).splitlines() if " – " in line]
        assert rows and all(int(line.split("·")[1].split()[0]) > 19 for line in rows if "│▶" not in line)

    drive(judging.app(), steps)


def test_blind_judging_does_not_mark_documents_without_a_score(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert len(screen.ranking.documents) == 69 and "  – " not in screen_text(pilot)
        await pilot.press("end")
        assert "no score" not in screen_text(pilot)

    drive(judging.app(seed=1), steps)
    assert "no score" not in run_prompts(judging, "# 30", "# 69", seed=1)


def test_prompts_mark_documents_without_a_score(judging: JudgingHarness) -> None:
    text = run_prompts(judging, "# 19", "# 20")
    first, second = text.split("Document 19 of 69")[1].split("Document 20 of 69")
    assert "which has no score" not in first and "which has no score" in second


def session_without_scores(judging: JudgingHarness) -> JudgingSession:
    """Make a session whose first topic has no document with a score."""
    run_pages = judging.run_pages
    first = run_pages.topics[0]
    return JudgingSession(
        judging.session("ann"),
        run_pages.topics,
        run_pages.ranking,
        lambda topic: 0 if topic == first else run_pages.scored(topic),
        run_pages.name,
        100,
    )


def test_a_topic_without_scores_is_reported_and_skipped(judging: JudgingHarness) -> None:
    app = judging.app()
    session = session_without_scores(judging)
    judge_screen = JudgeScreen(session, judging.run_pages, app.main.keys, "title")
    assert judge_screen.topic_index == 1

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await app.push_screen(judge_screen)
        await pilot.press("[")
        message = judge_screen.query_one("#document", TextPane).text.plain
        assert (
            message
            == "No document of this topic has a score: `--depth all` also offers documents without a score."
        )
        assert "0/0" in screen_text(pilot)
        for key in ("1", "s", "x", "n", "r", "space", "0", "down", "end", "g", "u", ".", "m", "escape"):
            await pilot.press(key)
        assert judging.events() == []
        await pilot.press("}")
        assert judge_screen.topic_index == 1

    drive(app, steps)


def test_prompts_continue_after_a_topic_without_documents(judging: JudgingHarness) -> None:
    judging.app()
    out = io.StringIO()
    lines = iter(["[", "1", "s", "x", "a odd", "d", "u", "bulk 1-2 1", "", "/ring", "}", "1", "q"])
    JudgePrompts(
        session_without_scores(judging), judging.run_pages, "title", None, lambda _: next(lines), out
    ).converse()
    assert "this topic has no document with a score" in out.getvalue()
    assert [event.topic_id for event in judging.events()] == [judging.own_session.topics[1]]
