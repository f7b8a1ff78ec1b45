from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from searchapp.judging.events import Action, Author, Kind
from searchapp.judging.judgments import Aggregation
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import Adjudication, SeenDocument, Session, disputes


@pytest.fixture
def log(tmp_path: Path) -> Iterator[JudgmentLog]:
    """Three people and a model; a and b are disputed among people, c with the model only, d by nobody."""
    with JudgmentLog(tmp_path / "log.sqlite") as log:
        for name, kind, grades in (
            ("ann", Kind.person, {"a": 0, "b": 2, "c": 1, "d": 3}),
            ("ben", Kind.person, {"a": 3, "b": 1, "c": 1, "d": 3}),
            ("bot", Kind.model, {"b": 3, "c": 0}),
        ):
            session = Session(log, "nlps", Author(name, kind))
            for document, grade in grades.items():
                session.grade([SeenDocument("t", document)], grade)
        Session(log, "nlps", Author("lea")).cant_tell(SeenDocument("t", "d"))
        yield log


def deciding(log: JudgmentLog, name: str = "kim", **options: str) -> Adjudication:
    return Adjudication(Session(log, "nlps", Author(name), (Action.adjudicate,)), **options)


def test_the_farthest_apart_come_first_and_models_count_only_if_they_are_named(log: JudgmentLog) -> None:
    adjudication = deciding(log)
    assert [(one.document_id, one.spread) for one in adjudication.disputes] == [("a", 3), ("b", 1)]
    assert adjudication.disputes[1].grades == {"ann": 2, "ben": 1}
    found = disputes(adjudication.session.view, Aggregation(annotators=["bot", "ben"]))
    assert [(one.document_id, one.grades) for one in found] == [
        ("b", {"ben": 1, "bot": 3}),
        ("c", {"ben": 1, "bot": 0}),
    ]
    assert [one.document_id for one in deciding(log, document="b").disputes] == ["b"]
    assert deciding(log, topic="u").disputes == []


def test_what_is_decided_stays_in_the_list_and_is_passed_over(log: JudgmentLog) -> None:
    adjudication = deciding(log)
    adjudication.decide(adjudication.disputes[0], 2, "as a whole")
    assert (adjudication.decided, adjudication.next_open(), adjudication.next_open(1)) == (1, 1, 1)
    adjudication.decide(adjudication.disputes[1], 2)
    assert (adjudication.decided, adjudication.next_open()) == (2, None)
    decision = deciding(log, "lea").decision(adjudication.disputes[0])
    assert decision is not None and (decision.annotator, decision.grade, decision.text) == (
        "kim",
        2,
        "as a whole",
    )


def test_undoing_takes_back_decisions_not_what_was_judged(log: JudgmentLog) -> None:
    first = deciding(log, "ann")
    assert first.session.undo() is None
    first.decide(first.disputes[0], 1)
    judging = Session(log, "nlps", Author("ann"))
    judging.undo()
    assert judging.opinion("t", "d") is None and judging.view.decision("t", "a") is not None
    again = deciding(log, "ann")
    again.session.undo()
    assert again.decided == 0
    again.session.redo()
    assert again.decided == 1


def test_what_others_write_is_taken_in(log: JudgmentLog) -> None:
    adjudication = deciding(log)
    assert not adjudication.refresh()
    Session(log, "nlps", Author("ben")).grade([SeenDocument("t", "a")], 0)
    Session(log, "nlps", Author("lea")).grade([SeenDocument("t", "c")], 0)
    assert adjudication.refresh()
    assert [one.document_id for one in adjudication.disputes] == ["b", "c"]
