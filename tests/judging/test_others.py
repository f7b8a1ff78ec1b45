"""When annotators see the opinions of others, and how the log records it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from searchapp.judging.events import Author, Kind
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import JudgingSession, SeenDocument, Session

DOCUMENTS = ["a", "b", "c"]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[JudgmentLog]:
    """A log in which Ben graded a and b before visible opinions were recorded."""
    with JudgmentLog(tmp_path / "judgments.sqlite") as opened:
        Session(opened, "nlps", Author("ben")).grade([SeenDocument("t", "a"), SeenDocument("t", "b")], 1)
        yield opened


def open_session(
    log: JudgmentLog, name: str = "ann", *, seed: int | None = None, show_others: bool = False
) -> JudgingSession:
    session = Session(log, "nlps", Author(name))
    return JudgingSession(
        session, ["t"], lambda _: DOCUMENTS, lambda _: 3, "run", seed=seed, show_others=show_others
    )


def names(judging: JudgingSession, document: str) -> list[str]:
    return [opinion.annotator for opinion in judging.others("t", document)]


def recorded(log: JudgmentLog) -> list[tuple[str, str, bool | None]]:
    """Return action, document and `saw_others` of each event of Ann."""
    return [
        (event.action.value, event.document_id, event.saw_others)
        for _, event in log.events()
        if event.annotator == "ann" and event.action != "retract"
    ]


def test_others_are_hidden_until_the_annotator_has_an_opinion(log: JudgmentLog) -> None:
    judging = open_session(log)
    assert names(judging, "a") == []
    judging.skip("t", "a")
    judging.note("t", "a", "odd")
    assert names(judging, "a") == []
    judging.grade("t", ["a"], 0)
    assert names(judging, "a") == ["ben"] and names(judging, "b") == []
    judging.cant_tell("t", "b")
    assert names(judging, "b") == ["ben"]
    judging.undo()
    assert names(judging, "b") == []
    assert recorded(log) == [
        ("skip", "a", False),
        ("note", "a", False),
        ("grade", "a", False),
        ("cant_tell", "b", False),
    ]


def test_a_grade_that_is_changed_after_others_became_visible_is_recorded_as_such(log: JudgmentLog) -> None:
    judging = open_session(log)
    judging.grade("t", ["a", "c"], 0)
    judging.grade("t", ["a", "c"], 1)
    assert recorded(log)[2:] == [
        ("grade", "a", True),
        ("grade", "c", False),
    ]  # no other annotator has judged c
    open_session(log).grade("t", ["a"], 0)  # another day
    assert recorded(log)[-1] == ("grade", "a", True)


def test_a_grade_that_is_undone_at_once_does_not_count_as_seen(log: JudgmentLog) -> None:
    judging = open_session(log)
    judging.grade("t", ["a"], 0)
    judging.undo()
    judging.grade("t", ["a"], 1)
    assert recorded(log)[-1] == ("grade", "a", False)


def test_opinions_that_were_seen_stay_seen(log: JudgmentLog) -> None:
    judging = open_session(log)
    judging.grade("t", ["a"], 0)
    assert names(judging, "a") == ["ben"]  # by going back to it
    judging.undo()
    judging.grade("t", ["a"], 1)
    assert recorded(log)[-1] == ("grade", "a", True)
    judging.undo()
    judging.undo()
    open_session(log, seed=1).grade("t", ["a"], 1)  # a blind session, but the log has recorded it
    assert recorded(log)[-1] == ("grade", "a", True)


def test_an_undo_in_a_later_session_counts_as_seen(log: JudgmentLog) -> None:
    open_session(log).grade("t", ["a"], 0)
    later = open_session(log)
    later.undo()
    later.grade("t", ["a"], 1)
    assert recorded(log)[-1] == ("grade", "a", True)


def test_with_show_others_opinions_are_always_visible(log: JudgmentLog) -> None:
    Session(log, "nlps", Author("aba", Kind.model)).grade([SeenDocument("t", "a")], 0)
    judging = open_session(log, show_others=True)
    assert names(judging, "a") == ["ben", "aba"]  # people before models
    judging.grade("t", ["a", "b", "c"], 1)
    assert recorded(log) == [("grade", "a", True), ("grade", "b", True), ("grade", "c", False)]


def test_blind_annotators_see_no_opinions_even_after_their_own_grade(log: JudgmentLog) -> None:
    judging = open_session(log, seed=3, show_others=True)
    judging.grade("t", ["a"], 1)
    assert names(judging, "a") == []
    judging.grade("t", ["a"], 0)
    assert recorded(log) == [("grade", "a", False)] * 2


def test_visibility_is_unknown_after_events_without_a_record_of_it(log: JudgmentLog) -> None:
    Session(log, "nlps", Author("ann")).grade([SeenDocument("t", "a"), SeenDocument("t", "c")], 1)
    judging = open_session(log, seed=3)
    judging.grade("t", ["a"], 0)
    judging.grade("t", ["c"], 0)
    assert recorded(log)[2:] == [("grade", "a", None), ("grade", "c", False)]


def test_opinions_count_as_visible_from_the_refresh_that_reads_them(log: JudgmentLog) -> None:
    judging = open_session(log)
    judging.grade("t", ["c"], 1)
    assert names(judging, "c") == []
    open_session(log, "ben").grade("t", ["c"], 0)
    judging.refresh()
    judging.grade("t", ["c"], 0)
    assert recorded(log)[-1] == ("grade", "c", True)


def test_redo_records_the_original_visibility(log: JudgmentLog) -> None:
    judging = open_session(log)
    judging.grade("t", ["a"], 1)
    judging.undo()
    judging.redo()
    assert recorded(log)[-1] == ("grade", "a", False)
