"""The screen of topics with the annotator's own grades instead of gold, and without both."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from searchapp.app.inspection.topics import RunTopics
from searchapp.judging.events import Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.tui.topics.screen import TopicsScreen
from tests.tui.conftest import drive, screen_text
from tests.tui.topics.conftest import TopicsHarness, press_and_wait, wait_until_answered

P = Pilot[None]


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
def test_grades_become_gold_at_once(topics_harness: TopicsHarness, size: tuple[int, int]) -> None:
    with JudgmentLog(topics_harness.home / "judgments.sqlite") as log:
        Session(log, "nlps", Author("bob")).grade([SeenDocument("602", "1")], 1)

    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        assert "judgments of ann as gold" in screen_text(pilot)
        topic, (_, second, third, *_) = screen.topic_id, screen.ranking.documents
        assert not screen.ranking.relevant and not screen.missed.count
        await press_and_wait(pilot, screen, "J", "0", "1", "1")
        await wait_until_answered(pilot, screen)
        figures = screen.topic_rows.figures
        assert figures is not None and figures.topics.keys() == {topic}
        assert (figures.topics[topic].relevant, figures.topics[topic].missed) == (2, 0)
        assert figures.topics[topic].value == pytest.approx((1 / 2 + 2 / 3) / 2)
        assert screen.ranking.relevant == {second: 1, third: 1}
        assert "2 rel" in str(screen.ranking.border_title)
        assert "none of 2" in str(screen.missed.border_title)
        await press_and_wait(pilot, screen, "u")
        await wait_until_answered(pilot, screen)
        assert screen.ranking.relevant == {second: 1}
        await press_and_wait(pilot, screen, "J", "c")

    app = topics_harness.app(annotator="ann")
    assert list(app.main.command)[-3:] == ["--annotator", "ann", "--judgments"]
    drive(app, steps, size)


def test_topics_without_gold_can_be_read_and_say_why_they_have_no_order(
    topics_harness: TopicsHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunTopics, "why_no_gold", lambda _: "the gold of dev is masked")

    async def steps(pilot: P, screen: TopicsScreen) -> None:
        await wait_until_answered(pilot, screen)
        assert screen.ranking.documents and "the gold of dev is masked" in screen_text(pilot)
        await press_and_wait(pilot, screen, "o")
        assert "the topics can't be sorted: the gold of dev is masked" in screen_text(pilot)

    app = topics_harness.app()
    drive(app, steps)
