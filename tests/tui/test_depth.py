"""How many documents of a ranking are offered to be judged, and those without a score."""

from __future__ import annotations

from textual.pilot import Pilot

from searchapp.judging.session import JudgingSession
from searchapp.tui.judge.prompts import JudgePrompts
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit.widgets import TextPane
from tests.tui.conftest import Judging, drive, text_of
from tests.tui.test_plain import talk

P = Pilot[None]


def test_documents_without_a_score_are_left_out(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        scores = judging.run_pages.rankings.ranking(screen.topic_id).hits.scores
        assert len(screen.ranking.documents) == sum(score != 0 for score in scores) == 19 < len(scores)
        assert "0/19" in text_of(app) and "– " not in text_of(app).split("Topic 602")[0]
        await pilot.press("end")
        assert "rank 19 · " in text_of(app) and "no score" not in text_of(app)

    app = judging.app(unscored=False)
    drive(app, steps)


def test_all_documents_are_offered_on_demand_and_those_without_a_score_marked(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert len(screen.ranking.documents) == 69
        await pilot.press("i", *screen.ranking.documents[18], "enter")
        assert "rank 19 · 0.6287" in text_of(app)
        await pilot.press("down")
        assert "rank 20 · no score" in text_of(app)
        rows = [line for line in text_of(app).splitlines() if "  – " in line]
        assert rows and all(int(line.split("·")[1].split()[0]) > 19 for line in rows if "│▶" not in line)

    app = judging.app()
    drive(app, steps)


def test_blind_judging_does_not_tell_which_have_no_score(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert len(screen.ranking.documents) == 69 and "  – " not in text_of(app)
        await pilot.press("end")
        assert "no score" not in text_of(app)

    app = judging.app(seed=1)
    drive(app, steps)
    assert "no score" not in talk(judging, "# 30", "# 69", seed=1)


def test_prompts_say_which_have_no_score(judging: Judging) -> None:
    shown = talk(judging, "# 19", "# 20")
    first, second = shown.split("Document 19 of 69")[1].split("Document 20 of 69")
    assert "which has no score" not in first and "which has no score" in second


def nothing_found(judging: Judging) -> JudgingSession:
    """A session whose first topic has no document with a score."""
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


def test_a_topic_without_a_document_that_has_a_score_is_told_and_passed_over(judging: Judging) -> None:
    app = judging.app()
    session = nothing_found(judging)
    fresh = JudgeScreen(session, judging.run_pages, app.work.keys, "title")
    assert fresh.topic_index == 1

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await app.push_screen(fresh)
        await pilot.press("[")
        said = fresh.query_one("#document", TextPane).text.plain
        assert (
            said
            == "No document of this topic has a score: `--depth all` also offers documents without a score."
        )
        assert "0/0" in text_of(app)
        for key in ("1", "s", "x", "n", "r", "space", "0", "down", "end", "g", "u", ".", "m", "escape"):
            await pilot.press(key)
        assert judging.events() == []
        await pilot.press("G")
        assert fresh.topic_index == 1

    drive(app, steps)


def test_prompts_go_on_from_a_topic_without_documents(judging: Judging) -> None:
    import io

    judging.app()
    out = io.StringIO()
    lines = iter(["[", "1", "s", "x", "n odd", "d", "u", "bulk 1-2 1", "", "/ring", "G", "1", "q"])
    JudgePrompts(
        nothing_found(judging), judging.run_pages, "title", None, lambda _: next(lines), out
    ).converse()
    assert "this topic has no document with a score" in out.getvalue()
    assert [event.topic_id for event in judging.events()] == [judging.judging.topics[1]]
