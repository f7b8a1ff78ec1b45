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
    """A log of three people and a model: people dispute a and b, only the model disputes c, d is undisputed."""
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


def adjudication_by(log: JudgmentLog, name: str = "kim", **options: str) -> Adjudication:
    return Adjudication(Session(log, "nlps", Author(name), (Action.adjudicate,)), **options)


def test_disputes_are_sorted_by_spread_and_models_count_only_by_name(log: JudgmentLog) -> None:
    adjudication = adjudication_by(log)
    assert [(dispute.document_id, dispute.spread) for dispute in adjudication.disputes] == [
        ("a", 3),
        ("b", 1),
    ]
    assert adjudication.disputes[1].grades == {"ann": 2, "ben": 1}
    with_model = disputes(adjudication.session.view, Aggregation(annotators=["bot", "ben"]))
    assert [(dispute.document_id, dispute.grades) for dispute in with_model] == [
        ("b", {"ben": 1, "bot": 3}),
        ("c", {"ben": 1, "bot": 0}),
    ]
    assert [dispute.document_id for dispute in adjudication_by(log, document="b").disputes] == ["b"]
    assert adjudication_by(log, topic="u").disputes == []


def test_decided_disputes_stay_in_the_list_and_are_skipped(log: JudgmentLog) -> None:
    adjudication = adjudication_by(log)
    adjudication.decide(adjudication.disputes[0], 2, "as a whole")
    assert (adjudication.decided, adjudication.next_open(), adjudication.next_open(1)) == (1, 1, 1)
    adjudication.decide(adjudication.disputes[1], 2)
    assert (adjudication.decided, adjudication.next_open()) == (2, None)
    decision = adjudication_by(log, "lea").decision(adjudication.disputes[0])
    assert decision is not None
    assert (decision.annotator, decision.grade, decision.text) == ("kim", 2, "as a whole")


def test_undo_retracts_decisions_or_judgments_of_its_own_session(log: JudgmentLog) -> None:
    first = adjudication_by(log, "ann")
    assert first.session.undo() is None
    first.decide(first.disputes[0], 1)
    judging = Session(log, "nlps", Author("ann"))
    judging.undo()
    assert judging.opinion("t", "d") is None and judging.view.decision("t", "a") is not None
    again = adjudication_by(log, "ann")
    again.session.undo()
    assert again.decided == 0
    again.session.redo()
    assert again.decided == 1


def test_a_refresh_reads_events_of_others(log: JudgmentLog) -> None:
    adjudication = adjudication_by(log)
    assert not adjudication.refresh()
    Session(log, "nlps", Author("ben")).grade([SeenDocument("t", "a")], 0)
    Session(log, "nlps", Author("lea")).grade([SeenDocument("t", "c")], 0)
    assert adjudication.refresh()
    assert [dispute.document_id for dispute in adjudication.disputes] == ["b", "c"]
