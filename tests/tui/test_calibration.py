"""Calibration on the judging screen, at 80 × 24 cells: feedback after each grade, and guidelines."""

from __future__ import annotations

from textual.pilot import Pilot

from searchapp.judging.calibration import CalibrationJudging, draw, evaluate_calibration
from searchapp.judging.events import Author
from searchapp.judging.guidelines import read_guidelines
from searchapp.judging.session import Session
from searchapp.tasks import load
from searchapp.tui.judge.screen import JudgeScreen
from searchapp.tui.kit import keys
from searchapp.tui.kit.app import KeyApp
from tests.tui.conftest import JudgingHarness, drive, screen_text


def test_each_grade_is_followed_by_the_known_one(judging: JudgingHarness) -> None:
    judging.app()
    pages, info = judging.run_pages, load("nlps").info
    known = {
        topic: {document: rank % 2 for rank, document in enumerate(pages.ranking(topic)[:4])}
        for topic in pages.topics[:3]
    }
    drawn = draw("nlps", known, 4, 0, seed=0)
    guidelines = read_guidelines(info.guidelines)
    session = Session(judging.log, drawn.name, Author("ann"), guidelines=guidelines)
    calibration = CalibrationJudging(session, drawn, seed=0)
    own = keys.load(judging.home, info.grades)

    async def steps(pilot: Pilot[None], screen: JudgeScreen) -> None:
        for number in range(4):
            topic, document = screen.topic_id, screen.document_id
            assert document is not None
            grade = drawn.known[topic, document]
            await pilot.press("0" if number == 1 else str(grade))
            text = screen_text(pilot)
            if number == 1 and grade:
                assert "You gave 0 not relevant; the known grade is 1 relevant." in text
            elif number != 1:
                assert f"Right: the known grade is {grade} {info.grades[grade]}, too." in text
            assert "Example: " in text and "rank " not in text
            await pilot.press("1")  # closes the feedback, and grades nothing
            assert "known grade" not in screen_text(pilot)
            assert len(calibration.session.made_here) == number + 1
        assert "✓ every document of every" in screen_text(pilot)
        await pilot.press("H")
        assert "Premises of mathematical statements" in screen_text(pilot)
        await pilot.press("escape")
        await pilot.press("u")  # changes no result
        (ann,) = evaluate_calibration(judging.log, drawn).annotators
        assert ann.gold.documents == 4 and ann.passes(drawn, 0.1)

    drive(
        KeyApp(
            JudgeScreen(calibration, pages, own.keys, "calibration", next_topic=True), own.theme, own.spacing
        ),
        steps,
        size=(80, 24),
    )
