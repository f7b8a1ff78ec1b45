"""The list of own judgments."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from searchapp.judging.session import SeenDocument
from searchapp.tui.judge.panes import JudgmentRows, Prefetcher
from searchapp.tui.judge.screen import JudgeScreen
from tests.tui.conftest import JudgingHarness, drive, question, screen_text, wait_until_idle

P = Pilot[None]


def test_judgments_are_filtered_by_kind_and_words_and_opened(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        def listed_documents() -> list[str]:
            return [judgment.document_id for judgment in app.screen.query_one(JudgmentRows).judgments]

        ids = screen.ranking.documents
        await pilot.press("1", "0", "s", "x", "down", "up", "a", *"odd one", "enter", "]", "1", "l")
        await wait_until_idle(pilot)
        other = screen.ranking.documents[0]
        assert listed_documents() == [ids[0], ids[1], ids[2], ids[3], ids[4], other]
        assert question(pilot) == (
            " all 6   0 not relevant 1   1 relevant 2   skipped 1   can't tell 1   noted 1  "
        )
        expected = [[ids[1]], [ids[0], other], [ids[2]], [ids[3]], [ids[4]]]
        for documents in expected:
            await pilot.press("tab")
            assert listed_documents() == documents
        await pilot.press("tab", *"odd")
        assert listed_documents() == [ids[4]] and "✎ odd one" in screen_text(pilot)
        await pilot.press("enter")
        assert app.screen is screen and screen.topic_id == judging.own_session.topics[0]
        assert screen.document_id == ids[4]
        await pilot.press("l", "pageup", "enter")
        assert screen.document_id == ids[0]
        await pilot.press("l", *"zzz", "enter", "escape")
        assert app.screen is screen and screen.document_id == ids[0]

    app = judging.app()
    drive(app, steps)


def test_only_own_judgments_are_listed_and_documents_below_the_depth_are_reported(
    judging: JudgingHarness,
) -> None:
    judging.app()
    topic = judging.own_session.topics[0]
    document = judging.own_session.order(topic).documents[30]
    judging.session("ben").grade([SeenDocument(topic, judging.own_session.order(topic).documents[0])], 1)
    judging.session("ann").grade([SeenDocument(topic, document), SeenDocument("no topic of the run", "d")], 1)

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("l")
        assert [judgment.document_id for judgment in app.screen.query_one(JudgmentRows).judgments] == [
            document
        ]
        await pilot.press("enter")
        assert f"this topic has no document {document}" in screen_text(pilot)

    app = judging.app(depth=3)
    drive(app, steps)


def test_the_mouse_selects_and_enter_in_an_empty_list_has_no_effect(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("l", "enter")
        assert question(pilot)
        await pilot.press("escape", "1", "1", "l")
        await pilot.click("#judged", offset=(10, 2))  # below border and heads
        assert not question(pilot) and screen.ranking.cursor == 0

    drive(judging.app(), steps)


def test_late_documents_do_not_move_the_cursor(
    judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    callbacks: list[Callable[[], object]] = []
    monkeypatch.setattr(
        Prefetcher, "beginnings", lambda _prefetcher, _documents, callback: callbacks.append(callback)
    )

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("1", "0", "1", "l", "e", "up")
        rows = app.screen.query_one(JudgmentRows)
        assert rows.count == 3
        current = rows.judgments[rows.cursor]
        assert rows.cursor == 1
        callbacks[-1]()
        await wait_until_idle(pilot)
        assert rows.judgments[rows.cursor] == current
        await pilot.press("down")
        callbacks[-1]()
        assert rows.cursor == rows.count - 1  # still on the last line

    app = judging.app()
    drive(app, steps)
