from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from searchapp.judging.events import Action, Author, Kind
from searchapp.judging.judgments import JudgmentFilter, list_judgments
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.judging.view import JudgmentView

A, B, C, D = (SeenDocument("t1" if name < "c" else "t2", name, "run", 3) for name in "abcd")


@pytest.fixture
def view(tmp_path: Path) -> Iterator[JudgmentView]:
    with JudgmentLog(tmp_path / "log.sqlite") as log:
        ann = Session(log, "nlps", Author("ann"))
        ann.grade([A, B], 1, "why")
        ann.grade([A], 0)
        ann.cant_tell(C, "cut off")
        ann.skip(D)
        ann.undo()
        ann.note(D, "odd")
        Session(log, "nlps", Author("bot", Kind.model)).grade([A], 1)
        Session(log, "nlps", Author("kim")).adjudicate(A, 1, "as it says")
        yield JudgmentView(event for _, event in log.events())


def found(
    view: JudgmentView, wanted: JudgmentFilter | None = None
) -> list[tuple[str, str, str, int | None, str]]:
    return [
        (one.annotator, one.document_id, one.action.value, one.grade, one.words)
        for one in list_judgments(view, wanted)
    ]


def test_what_holds_is_listed_in_the_order_in_which_it_was_said(view: JudgmentView) -> None:
    assert found(view) == [
        ("ann", "b", "grade", 1, "why"),
        ("ann", "a", "grade", 0, ""),
        ("ann", "c", "cant_tell", None, "cut off"),
        ("ann", "d", "note", None, "odd"),
        ("bot", "a", "grade", 1, ""),
        ("kim", "a", "adjudicate", 1, "as it says"),
    ]
    first = list_judgments(view)[0]
    assert (first.run, first.rank, first.topic_id, first.saw_others) == ("run", 3, "t1", None)


@pytest.mark.parametrize(
    ("wanted", "documents"),
    [
        (JudgmentFilter(annotators=["bot", "kim"]), ["a", "a"]),
        (JudgmentFilter(topics=["t2"]), ["c", "d"]),
        (JudgmentFilter(actions=[Action.note, Action.cant_tell]), ["c", "d"]),
        (JudgmentFilter(grades=[0]), ["a"]),
        (JudgmentFilter(noted=True), ["b", "c", "d", "a"]),
        (JudgmentFilter(annotators=["ann"], grades=[1], noted=True), ["b"]),
        (JudgmentFilter(topics=["nowhere"]), []),
    ],
)
def test_filters_leave_what_they_take(
    view: JudgmentView, wanted: JudgmentFilter, documents: list[str]
) -> None:
    assert [document for _, document, *_ in found(view, wanted)] == documents
