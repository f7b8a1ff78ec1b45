from __future__ import annotations

from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session

FIRST, SECOND = SeenDocument("t", "d1", "run", 1), SeenDocument("t", "d2", "run", 2)


def session(log: JudgmentLog, name: str = "ann") -> Session:
    return Session(log, "nlps", Author(name))


def grade(session: Session, document: str) -> int | None:
    opinion = session.opinion("t", document)
    return opinion.grade if opinion else None


def test_a_grade_is_in_the_log_when_the_action_returns(log: JudgmentLog) -> None:
    outcome = session(log).grade([FIRST], 2, "defines the term")
    assert outcome.is_saved
    ((_, event),) = log.events("nlps")
    assert (event.grade, event.rank, event.run, event.text) == (2, 1, "run", "defines the term")


def test_actions_are_undone_and_redone_without_limit(log: JudgmentLog) -> None:
    mine = session(log)
    mine.grade([FIRST], 1)
    mine.grade([FIRST, SECOND], 3)
    mine.undo()
    assert (grade(mine, "d1"), grade(mine, "d2")) == (1, None)
    mine.undo()
    assert grade(mine, "d1") is None
    assert mine.undo() is None
    mine.redo()
    mine.redo()
    assert (grade(mine, "d1"), grade(mine, "d2")) == (3, 3)
    assert mine.redo() is None
    mine.undo()
    mine.grade([SECOND], 0)
    assert mine.redo() is None  # a new action discards the actions to redo
    assert grade(session(log), "d2") == 0


def test_a_later_session_undoes_actions_of_an_earlier_session(log: JudgmentLog) -> None:
    session(log).grade([FIRST], 1)
    session(log, "ben").grade([SECOND], 1)
    later = session(log)
    assert later.undo() is not None
    assert grade(later, "d1") is None
    assert later.undo() is None  # only actions of the same annotator are undone


def test_a_refresh_reads_opinions_of_another_annotator(log: JudgmentLog) -> None:
    mine = session(log)
    session(log, "ben").grade([FIRST], 3)
    assert mine.view.opinions("t", "d1") == []
    assert mine.refresh()
    assert [opinion.annotator for opinion in mine.view.opinions("t", "d1")] == ["ben"]
    assert not mine.refresh()


def test_events_that_could_not_be_written_are_written_later(log: JudgmentLog) -> None:
    mine = session(log)
    (pages,) = log._database.execute("PRAGMA page_count").fetchone()
    log._database.execute(f"PRAGMA max_page_count = {pages}")
    outcome = mine.grade([SeenDocument("t", f"d{number}") for number in range(500)], 1)
    assert not outcome.is_saved and "disk is full" in str(outcome.not_saved)
    assert mine.waiting == 500 and grade(mine, "d3") == 1
    assert not mine.undo().is_saved  # type: ignore[union-attr]
    log._database.execute("PRAGMA max_page_count = 1000000")
    assert mine.save_waiting().is_saved
    assert mine.waiting == 0
    assert [event.action for _, event in log.events()] == [Action.grade] * 500 + [Action.retract] * 500
