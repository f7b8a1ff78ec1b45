"""Summaries of judging sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchapp.judging import session as module
from searchapp.judging.events import Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import JudgingSession, Session, Summary, summary
from searchapp.tui.kit.descriptions import session_summary

LABELS = ("not relevant", "relevant")


def open_session(log: JudgmentLog) -> JudgingSession:
    rankings = {"t1": ["a", "b", "c"], "t2": ["a", "b"], "t3": ["c"]}
    session = Session(log, "nlps", Author("ann"))
    return JudgingSession(
        session, list(rankings), rankings.__getitem__, lambda topic: len(rankings[topic]), "run"
    )


def test_a_summary_counts_the_judgments_of_a_session_that_hold_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with JudgmentLog(tmp_path / "log.sqlite") as log:
        open_session(log).grade("t3", ["c"], 1)  # in an earlier session
        judging = open_session(log)
        judging.grade("t1", ["a", "b"], 1)
        judging.grade("t1", ["b"], 0)
        judging.cant_tell("t2", "a")
        judging.skip("t2", "b")
        judging.note("t2", "b", "odd")
        judging.grade("t1", ["c"], 1)
        judging.undo()
        result = summary(judging)
        assert result == Summary(2, {0: 1, 1: 1}, 1, 1, 1, None, 2, 2)
        assert session_summary(result, LABELS) == [
            "judged 3 documents of 2 topics: "
            "1 × 0 not relevant, 1 × 1 relevant, 1 × can't tell, 1 × skipped, 1 × noted",
            "2 documents of 2 topics left",
        ]
        assert session_summary(summary(open_session(log)), LABELS) == []  # a session without actions
        monkeypatch.setattr(module, "COUNTING_SECONDS", -1)
        assert summary(judging).left is None


def test_a_summary_shows_the_pace_and_the_time_left() -> None:
    result = Summary(1, {1: 1}, 0, 0, 0, 12.4, 100, 3)
    assert session_summary(result, LABELS) == [
        "judged 1 document of 1 topic, 12 s each: 1 × 1 relevant",
        "100 documents of 3 topics left, about 21 min at this pace",
    ]
    done = Summary(1, {1: 1}, 0, 0, 0, 12.4, 0, 0)
    assert session_summary(done, LABELS)[1] == "nothing is left to judge"
