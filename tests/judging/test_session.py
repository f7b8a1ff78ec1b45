from __future__ import annotations

from searchapp.judging.events import Action, Author
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session

FIRST, SECOND = SeenDocument("t", "d1", "run", 1), SeenDocument("t", "d2", "run", 2)


def open_session(log: JudgmentLog, name: str = "ann") -> Session:
    return Session(log, "nlps", Author(name))


def grade_of(session: Session, document: str) -> int | None:
    opinion = session.opinion("t", document)
    return opinion.grade if opinion else None


def test_a_grade_is_in_the_log_when_the_action_returns(log: JudgmentLog) -> None:
    outcome = open_session(log).grade([FIRST], 2, "defines the term")
    assert outcome.is_saved
    ((_, event),) = log.events("nlps")
    assert (event.grade, event.rank, event.run, event.text) == (2, 1, "run", "defines the term")


def test_actions_are_undone_and_redone_without_limit(log: JudgmentLog) -> None:
    session = open_session(log)
    session.grade([FIRST], 1)
    session.grade([FIRST, SECOND], 3)
    session.undo()
    assert (grade_of(session, "d1"), grade_of(session, "d2")) == (1, None)
    session.undo()
    assert grade_of(session, "d1") is None
    assert session.undo() is None
    session.redo()
    session.redo()
    assert (grade_of(session, "d1"), grade_of(session, "d2")) == (3, 3)
    assert session.redo() is None
    session.undo()
    session.grade([SECOND], 0)
    assert session.redo() is None  # a new action discards the actions to redo
    assert grade_of(open_session(log), "d2") == 0


def test_a_later_session_undoes_actions_of_an_earlier_session(log: JudgmentLog) -> None:
    open_session(log).grade([FIRST], 1)
    open_session(log, "ben").grade([SECOND], 1)
    later = open_session(log)
    assert later.undo() is not None
    assert grade_of(later, "d1") is None
    assert later.undo() is None  # only actions of the same annotator are undone


def test_a_refresh_reads_opinions_of_another_annotator(log: JudgmentLog) -> None:
    session = open_session(log)
    open_session(log, "ben").grade([FIRST], 3)
    assert session.view.opinions("t", "d1") == []
    assert session.refresh()
    assert [opinion.annotator for opinion in session.view.opinions("t", "d1")] == ["ben"]
    assert not session.refresh()


def test_events_that_could_not_be_written_are_written_later(log: JudgmentLog) -> None:
    session = open_session(log)
    (pages,) = log._database.execute("PRAGMA page_count").fetchone()
    log._database.execute(f"PRAGMA max_page_count = {pages}")
    outcome = session.grade([SeenDocument("t", f"d{number}") for number in range(500)], 1)
    assert not outcome.is_saved and "disk is full" in str(outcome.not_saved)
    assert session.waiting == 500 and grade_of(session, "d3") == 1
    assert not session.undo().is_saved  # type: ignore[union-attr]
    log._database.execute("PRAGMA max_page_count = 1000000")
    assert session.save_waiting().is_saved
    assert session.waiting == 0
    assert [event.action for _, event in log.events()] == [Action.grade] * 500 + [Action.retract] * 500
