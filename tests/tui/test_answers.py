"""What the screens say by themselves: to a wrong key, of what comes from elsewhere, of what failed, of time."""

from __future__ import annotations

import asyncio
import io
import threading
import time
from collections.abc import Callable
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
from tests.tui.conftest import Judging, drive, question, settled, text_of

P = Pilot[None]


def test_a_key_that_does_nothing_is_answered(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        for key, shown in (("w", "w"), ("f9", "f9"), ("ctrl+t", "^t"), ("%", "%")):
            await pilot.press(key)
            assert f"{shown} does nothing here: ? lists the keys" in text_of(app)
        await pilot.press("7")
        assert "unknown grade 7: the grades are 0 not relevant to 1 relevant" in text_of(app)
        assert judging.events() == []

    app = judging.app()
    drive(app, steps)


def test_the_adjudicating_screen_answers_wrong_keys_too(judging: Judging) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        await pilot.press("space")
        assert "space does nothing here: ? lists the keys" in text_of(app)
        await pilot.press("9")
        assert "unknown grade 9" in text_of(app)

    app = judging.adjudicating()
    drive(app, steps)


def test_every_grade_has_a_name(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        shown = text_of(app)
        for grade in ("0 unrelated", "1 least relevant", "3 middle", "5 very high", "6 most critical"):
            assert grade in shown
        await pilot.press("4")
        assert "saved  4 high: “" in text_of(app)

    app = judging.app("explanation-2021")
    drive(app, steps)


def test_what_comes_from_elsewhere_is_told(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        topic, documents = screen.topic_id, screen.ranking.documents
        window = judging.session("ann")
        window.grade([SeenDocument(topic, one) for one in documents[:3]], 1)
        window.note(SeenDocument(topic, documents[0]), "odd")
        judging.session("ben").grade([SeenDocument(topic, documents[5])], 1)
        judging.session("eve").skip(SeenDocument(topic, documents[5]))
        screen.control.refresh()
        await settled(pilot)
        shown = text_of(app)
        assert "3 grades and 1 note arrived from your other window" in shown
        assert "2 judgments by ben and eve arrived" in shown
        assert "3/69" in shown and "  1  2 " in shown
        window.undo()
        screen.control.refresh()
        await settled(pilot)
        assert "1 undo arrived from your other window" in text_of(app)
        await pilot.press("u")  # it takes back what holds, not the note that was taken back already
        assert "nothing to undo" in text_of(app)

    app = judging.app()
    drive(app, steps)


def test_prompts_tell_what_comes_from_elsewhere(judging: Judging) -> None:
    judging.app()
    topic, out = judging.judging.topics[0], io.StringIO()
    lines = iter(["1", "0", "q"])

    def ask(_prompt: str) -> str:
        line = next(lines)
        if line == "0":
            judging.session("ann").grade([SeenDocument(topic, judging.judging.order(topic).documents[4])], 0)
            judging.session("ben").skip(SeenDocument(topic, "d"))
        return line

    JudgePrompts(judging.judging, judging.run_pages, "title", ask=ask, out=out).converse()
    told = "1 grade arrived from your other window; 1 judgment by ben arrived"
    assert out.getvalue().count(told) == 1


def test_what_is_no_disagreement_any_more_is_told_and_takes_no_decision(judging: Judging) -> None:
    judging.adjudicating()
    first, out = judging.adjudication.disputes[0], io.StringIO()
    lines = iter(["1", "0", "q"])

    def ask(_prompt: str) -> str:
        line = next(lines)
        if line == "1":
            judging.session("ben").grade([SeenDocument(*first.key)], 1)  # who no longer disagrees
        return line

    AdjudicatePrompts(judging.adjudication, judging.run_pages, "title", ask=ask, out=out).converse()
    shown = out.getvalue()
    assert "1 judgment by ben arrived" in shown and "the disagreement that was shown is resolved" in shown
    decided = [event for event in judging.events() if event.action == "adjudicate"]
    assert [(event.grade, event.document_id != first.document_id) for event in decided] == [(0, True)]


def test_a_second_window_asks_first_and_is_shown_as_long_as_it_is_open(
    judging: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(work, "TEAM_SECONDS", 0.02)

    async def shows(pilot: P, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < end, text_of(app)
            await asyncio.sleep(0.02)
            await pilot.pause()

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert question(app).startswith("ann is already judging nlps in another window (process ")
        await pilot.press("1")
        assert judging.events() == []
        await pilot.press("g", "1")
        assert len(judging.events()) == 1
        await shows(pilot, lambda: "▲ 2 windows" in text_of(app))
        first.__exit__(None, None, None)
        await shows(pilot, lambda: "windows" not in text_of(app))

    first = Presence(judging.log.path, "nlps", "ann")
    with first, Presence(judging.log.path, "nlps", "ann") as mine:
        app = judging.app(presence=mine)
        drive(app, steps)


def test_a_second_window_can_be_left_at_once(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        await pilot.press("q")

    with Presence(judging.log.path, "nlps", "ann"), Presence(judging.log.path, "nlps", "ann") as mine:
        app = judging.app(presence=mine)
        drive(app, steps)
        assert app._exit


def test_what_fails_in_the_background_is_told(judging: Judging, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> Any:
        if threading.current_thread() is not threading.main_thread():
            raise EngineUnreachable("the server does not answer: try again")
        return None

    def broken(*_: object) -> Any:
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("no such thing")
        return []

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Pages, "prepare", gone)
            await pilot.press("end")
            await pilot.press("home")
            screen.run_pages._pages.clear()
            await pilot.press("down")
            await settled(pilot)
            assert "fetching the next documents failed: the server does not answer: try again" in text_of(app)
        with monkeypatch.context() as patch:
            patch.setattr(RunPages, "texts", broken)
            await pilot.press("slash", *"ring", "enter")
            await settled(pilot)
            assert "the search failed: ValueError: no such thing" in text_of(app)
        await pilot.press("1")
        assert len(judging.events()) == 1

    app = judging.app()
    drive(app, steps)


def test_what_fails_in_the_background_while_deciding_is_told(
    judging: Judging, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> Any:
        raise EngineUnreachable("the server does not answer: try again")

    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        screen.run_pages._pages.clear()
        monkeypatch.setattr(Pages, "prepare", gone)
        await pilot.press("down")
        await settled(pilot)
        assert "fetching the next documents failed: the server does not answer" in text_of(app)

    app = judging.adjudicating()
    drive(app, steps)


def test_pace_and_the_time_that_is_left_are_shown(judging: Judging, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(events.datetime):  # type: ignore[name-defined,misc]
        """A clock that goes on twelve seconds each time it is looked at, and stands still in between."""

        begin = datetime.now(UTC)
        seconds = 0

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            cls.seconds += 12
            return cls.begin.astimezone(tz) + timedelta(seconds=cls.seconds)

    monkeypatch.setattr(events, "datetime", Slow)

    async def steps(pilot: P, screen: JudgeScreen) -> None:
        assert "each" not in text_of(app)
        await pilot.press("1", "0", "1", "0")
        assert "12 s each · 13 min left here" in text_of(app)  # of 65

    app = judging.app()
    drive(app, steps)


def test_a_log_elsewhere_has_its_own_windows(judging: Judging, tmp_path: Path) -> None:
    with (
        Presence(tmp_path / "another.sqlite", "nlps", "ann"),
        Presence(judging.log.path, "nlps", "ann") as mine,
    ):
        assert mine.others == ()


def change(judging: Judging, document: str) -> str:
    """Let a document be another one than was ranked; returns what a screen says to a grade for it."""
    judging.run_pages._digests = {**judging.run_pages._digests, document: "0" * 16}
    return (
        f"the text of document {document} has changed since it was ranked, so it was not graded: rank again"
    )


def test_a_document_that_is_not_as_it_was_ranked_is_not_graded(judging: Judging) -> None:
    async def steps(pilot: P, screen: JudgeScreen) -> None:
        first, second = screen.ranking.documents[:2]
        refusal = change(judging, first)
        await pilot.press("1")
        assert refusal in text_of(app) and judging.events() == []
        await pilot.press("x", "1")  # that one can't tell is no grade
        assert [one.document_id for one in judging.events()] == [first, second]
        await pilot.press("u")
        refusal = change(judging, second)
        await pilot.press("U")
        assert refusal in text_of(app) and len(judging.events()) == 3

    app = judging.app()
    drive(app, steps, (200, 45))


def test_a_document_that_is_not_as_it_was_ranked_is_not_decided_on(judging: Judging) -> None:
    async def steps(pilot: P, screen: AdjudicateScreen) -> None:
        assert screen.dispute is not None
        refusal, before = change(judging, screen.dispute.document_id), len(judging.events())
        await pilot.press("1")
        assert refusal in text_of(app) and len(judging.events()) == before

    app = judging.adjudicating()
    drive(app, steps, (200, 45))
