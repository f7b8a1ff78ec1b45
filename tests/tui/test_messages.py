"""Messages of the screens: unknown keys, actions in other programs, failures and pace."""

from __future__ import annotations

import io
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from searchapp.app.inspection.pages import Pages, RunPages
from searchapp.errors import EngineUnreachable
from searchapp.judging import events, log
from searchapp.judging.log import Presence
from searchapp.judging.session import SeenDocument
from searchapp.tui.adjudicate.prompts import AdjudicatePrompts
from searchapp.tui.adjudicate.screen import AdjudicateScreen
from searchapp.tui.judge.prompts import JudgePrompts
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit import judging as work
from tests.tui.conftest import JudgingHarness, drive, question, screen_text, wait_until, wait_until_idle

P = Pilot[None]


def test_an_unknown_key_is_reported(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        for key, text in (("w", "w"), ("f12", "f12"), ("ctrl+t", "^t"), ("%", "%")):
            await pilot.press(key)
            assert f"{text} does nothing here: ? lists the keys" in screen_text(pilot)
        await pilot.press("7")
        assert "unknown grade 7: the grades are 0 not relevant to 1 relevant" in screen_text(pilot)
        assert judging.events() == []

    drive(judging.app(), steps)


def test_the_adjudication_screen_reports_unknown_keys(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        await pilot.press("space")
        assert "space does nothing here: ? lists the keys" in screen_text(pilot)
        await pilot.press("9")
        assert "unknown grade 9" in screen_text(pilot)

    drive(judging.adjudicating(), steps)


def test_every_grade_has_a_name(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        text = screen_text(pilot)
        for grade in ("0 unrelated", "1 least relevant", "3 middle", "5 very high", "6 most critical"):
            assert grade in text
        await pilot.press("4")
        assert "saved  4 high: “" in screen_text(pilot)

    drive(judging.app("explanation-2021"), steps)


def test_actions_in_other_programs_are_reported(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        topic, documents = screen.topic_id, screen.ranking.documents
        window = judging.session("ann")
        window.grade([SeenDocument(topic, document) for document in documents[:3]], 1)
        window.note(SeenDocument(topic, documents[0]), "odd")
        judging.session("ben").grade([SeenDocument(topic, documents[5])], 1)
        judging.session("eve").skip(SeenDocument(topic, documents[5]))
        screen.control.refresh()
        await wait_until_idle(pilot)
        text = screen_text(pilot)
        assert "3 grades and 1 note arrived from your other window" in text
        assert "2 judgments by ben and eve arrived" in text
        assert "3/69" in text and "  1  2 " in text
        window.undo()
        screen.control.refresh()
        await wait_until_idle(pilot)
        assert "1 undo arrived from your other window" in screen_text(pilot)
        await pilot.press("u")  # undo is limited to the actions of this window
        assert "nothing to undo" in screen_text(pilot)

    drive(judging.app(), steps)


def test_prompts_report_actions_in_other_programs(judging: JudgingHarness) -> None:
    judging.app()
    topic, out = judging.own_session.topics[0], io.StringIO()
    lines = iter(["1", "0", "q"])

    def ask(_prompt: str) -> str:
        line = next(lines)
        if line == "0":
            judging.session("ann").grade(
                [SeenDocument(topic, judging.own_session.order(topic).documents[4])], 0
            )
            judging.session("ben").skip(SeenDocument(topic, "d"))
        return line

    JudgePrompts(judging.own_session, judging.run_pages, "title", ask=ask, out=out).converse()
    message = "1 grade arrived from your other window; 1 judgment by ben arrived"
    assert out.getvalue().count(message) == 1


def test_a_resolved_disagreement_is_reported_and_not_decided(judging: JudgingHarness) -> None:
    judging.adjudicating()
    first, out = judging.adjudication.disputes[0], io.StringIO()
    lines = iter(["1", "0", "q"])

    def ask(_prompt: str) -> str:
        line = next(lines)
        if line == "1":
            judging.session("ben").grade([SeenDocument(*first.key)], 1)  # ben agrees now
        return line

    AdjudicatePrompts(judging.adjudication, judging.run_pages, "title", ask=ask, out=out).converse()
    text = out.getvalue()
    assert "1 judgment by ben arrived" in text and "the disagreement that was shown is resolved" in text
    decisions = [event for event in judging.events() if event.action == "adjudicate"]
    assert [(event.grade, event.document_id != first.document_id) for event in decisions] == [(0, True)]


def test_a_second_window_asks_and_is_reported_while_it_is_open(
    judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(work, "TEAM_SECONDS", 0.02)

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert question(pilot).startswith("ann is already judging nlps in another window (process ")
        await pilot.press("1")
        assert judging.events() == []
        await pilot.press("g", "1")
        assert len(judging.events()) == 1
        await wait_until(pilot, lambda: "▲ 2 windows" in screen_text(pilot))
        first.__exit__(None, None, None)
        await wait_until(pilot, lambda: "windows" not in screen_text(pilot))

    first = Presence(judging.log.path, "nlps", "ann")
    with first, Presence(judging.log.path, "nlps", "ann") as second:
        drive(judging.app(presence=second), steps)


def test_a_second_window_can_be_left_at_once(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("q")

    with Presence(judging.log.path, "nlps", "ann"), Presence(judging.log.path, "nlps", "ann") as second:
        app = judging.app(presence=second)
        drive(app, steps)
        assert app._exit


def test_failures_in_the_background_are_reported(
    judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_to_fetch(*_: object) -> Any:
        if threading.current_thread() is not threading.main_thread():
            raise EngineUnreachable("the server does not answer: try again")
        return None

    def fail_to_search(*_: object) -> Any:
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("no such thing")
        return []

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Pages, "prepare", fail_to_fetch)
            await pilot.press("end")
            await pilot.press("home")
            screen.run_pages._pages.clear()
            await pilot.press("down")
            await wait_until_idle(pilot)
            message = "fetching the next documents failed: the server does not answer: try again"
            assert message in screen_text(pilot)
        with monkeypatch.context() as patch:
            patch.setattr(RunPages, "texts", fail_to_search)
            await pilot.press("slash", *"ring", "enter")
            await wait_until_idle(pilot)
            assert "the search failed: ValueError: no such thing" in screen_text(pilot)
        await pilot.press("1")
        assert len(judging.events()) == 1

    app = judging.app()
    drive(app, steps)


def test_failures_in_the_background_of_adjudication_are_reported(
    judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_to_fetch(*_: object) -> Any:
        raise EngineUnreachable("the server does not answer: try again")

    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        screen.run_pages._pages.clear()
        monkeypatch.setattr(Pages, "prepare", fail_to_fetch)
        await pilot.press("down")
        await wait_until_idle(pilot)
        assert "fetching the next documents failed: the server does not answer" in screen_text(pilot)

    drive(judging.adjudicating(), steps)


def test_pace_and_remaining_time_are_shown(judging: JudgingHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    class TickingClock(events.datetime):  # type: ignore[name-defined,misc]
        """A clock that advances by twelve seconds each time it is read."""

        start = datetime.now(UTC)
        seconds = 0

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            cls.seconds += 12
            return cls.start.astimezone(tz) + timedelta(seconds=cls.seconds)

    monkeypatch.setattr(events, "datetime", TickingClock)

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert "each" not in screen_text(pilot)
        await pilot.press("1", "0", "1", "0")
        assert "12 s each · 13 min left here" in screen_text(pilot)  # for the remaining 65 documents

    drive(judging.app(), steps)


def test_each_log_has_its_own_windows(judging: JudgingHarness, tmp_path: Path) -> None:
    with (
        Presence(tmp_path / "another.sqlite", "nlps", "ann"),
        Presence(judging.log.path, "nlps", "ann") as second,
    ):
        assert second.others == ()


def change_document(judging: JudgingHarness, document: str) -> str:
    """Change the digest of a document, and return the message that a grade for it causes."""
    judging.run_pages._digests = {**judging.run_pages._digests, document: "0" * 16}
    return (
        f"the text of document {document} has changed since it was ranked, so it was not graded: rank again"
    )


def test_a_document_changed_since_ranking_is_not_graded(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        first, second = screen.ranking.documents[:2]
        message = change_document(judging, first)
        await pilot.press("1")
        assert message in screen_text(pilot) and judging.events() == []
        await pilot.press("x", "1")  # can't tell is not a grade and is saved
        assert [event.document_id for event in judging.events()] == [first, second]
        await pilot.press("u")
        message = change_document(judging, second)
        await pilot.press("U")
        assert message in screen_text(pilot) and len(judging.events()) == 3

    drive(judging.app(), steps, (200, 45))


def test_a_document_changed_since_ranking_is_not_decided(judging: JudgingHarness) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        assert screen.dispute is not None
        message, before = change_document(judging, screen.dispute.document_id), len(judging.events())
        await pilot.press("1")
        assert message in screen_text(pilot) and len(judging.events()) == before

    drive(judging.adjudicating(), steps, (200, 45))
