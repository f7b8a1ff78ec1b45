"""The list of what one has judged."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from searchapp.judging.session import SeenDocument
from searchapp.tui.judge.panes import JudgmentRows, Prefetcher
from searchapp.tui.judge.screen import JudgeScreen
from tests.tui.conftest import Judging, drive, question, settled, text_of

P = Pilot[None]


def test_what_was_said_is_listed_by_kind_and_words_and_gone_to(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        def listed() -> list[str]:
            return [one.document_id for one in app.screen.query_one(JudgmentRows).judgments]

        ids = screen.ranking.documents
        await pilot.press("1", "0", "s", "x", "n", *"odd one", "enter", "]", "1", "l")
        await settled(pilot)
        there = screen.ranking.documents[0]
        assert listed() == [ids[0], ids[1], ids[2], ids[3], ids[4], there]
        assert question(app) == (
            " all 6   0 not relevant 1   1 relevant 2   skipped 1   can't tell 1   noted 1  "
        )
        expected = [[ids[1]], [ids[0], there], [ids[2]], [ids[3]], [ids[4]]]
        for documents in expected:
            await pilot.press("tab")
            assert listed() == documents
        await pilot.press("tab", *"odd")
        assert listed() == [ids[4]] and "✎ odd one" in text_of(app)
        await pilot.press("enter")
        assert app.screen is screen and screen.topic_id == judging.judging.topics[0]
        assert screen.document_id == ids[4]
        await pilot.press("l", "pageup", "enter")
        assert screen.document_id == ids[0]
        await pilot.press("l", *"zzz", "enter", "escape")
        assert app.screen is screen and screen.document_id == ids[0]

    app = judging.app()
    drive(app, steps)


def test_others_judgments_are_not_listed_and_what_is_not_offered_is_told(judging: Judging) -> None:
    judging.app()
    topic = judging.judging.topics[0]
    deep = judging.judging.order(topic).documents[30]
    judging.session("ben").grade([SeenDocument(topic, judging.judging.order(topic).documents[0])], 1)
    judging.session("ann").grade([SeenDocument(topic, deep), SeenDocument("no topic of the run", "d")], 1)

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("l")
        assert [one.document_id for one in app.screen.query_one(JudgmentRows).judgments] == [deep]
        await pilot.press("enter")
        assert f"this topic has no document {deep}" in text_of(app)

    app = judging.app(depth=3)
    drive(app, steps)


def test_the_mouse_chooses_from_the_list_and_an_empty_one_opens_nothing(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("l", "enter")
        assert question(app)
        await pilot.press("escape", "1", "1", "l")
        await pilot.click("#judged", offset=(10, 1))
        assert not question(app) and screen.ranking.cursor == 0

    app = judging.app()
    drive(app, steps)


def test_documents_that_come_late_leave_the_cursor_where_somebody_went(
    judging: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    came: list[Callable[[], object]] = []
    monkeypatch.setattr(Prefetcher, "beginnings", lambda _fetching, _documents, then: came.append(then))

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "0", "1", "l", "e", "up")
        rows = app.screen.query_one(JudgmentRows)
        assert rows.count == 3
        here = rows.judgments[rows.cursor]
        assert rows.cursor == 1
        came[-1]()
        await settled(pilot)
        assert rows.judgments[rows.cursor] == here
        await pilot.press("down")
        came[-1]()
        assert rows.cursor == rows.count - 1  # the last one, as before

    app = judging.app()
    drive(app, steps)
