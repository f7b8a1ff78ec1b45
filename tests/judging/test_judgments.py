"""Current opinions, decisions, aggregated grades and lists of judgments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from searchapp.judging.events import Action, Author, Event, Kind
from searchapp.judging.judgments import Aggregation, JudgmentFilter, Rule, aggregate, combine, list_judgments
from searchapp.judging.log import JudgmentLog
from searchapp.judging.session import SeenDocument, Session
from searchapp.judging.view import JudgmentView

ANN, BEN, MODEL = Author("ann"), Author("ben"), Author("bot", Kind.model)


def graded(author: Author, grade: int, document: str = "d") -> Event:
    return author.event("nlps", "t", document, Action.grade, grade=grade)


def retracted(author: Author, event: Event) -> Event:
    return author.event("nlps", event.topic_id, event.document_id, Action.retract, refers=event.id)


def grades(*events: Event, **aggregation: object) -> dict[str, int]:
    topics = aggregate(JudgmentView(events), Aggregation(**aggregation)).grades  # type: ignore[arg-type]
    return dict(topics.get("t", {}))


def test_the_last_grade_holds() -> None:
    assert grades(graded(ANN, 1), graded(ANN, 3)) == {"d": 3}


def test_the_grade_before_a_retracted_grade_holds_again() -> None:
    first, second = graded(ANN, 1), graded(ANN, 3)
    undo = retracted(ANN, second)
    assert grades(first, second, undo) == {"d": 1}
    assert grades(first, second, undo, retracted(ANN, first)) == {}


def test_a_retraction_can_be_retracted() -> None:
    first = graded(ANN, 1)
    undo = retracted(ANN, first)
    assert grades(first, undo, retracted(ANN, undo)) == {"d": 1}


def test_retractions_nest_without_a_limit() -> None:
    events = [graded(ANN, 1)]
    for _ in range(5_000):
        events.append(retracted(ANN, events[-1]))
        if len(events) in (5_000, 5_001):
            assert grades(*events) == ({} if len(events) % 2 == 0 else {"d": 1})


def test_events_that_retract_each_other_change_nothing_else() -> None:
    first, undo = graded(ANN, 1), retracted(ANN, graded(ANN, 2))
    other = retracted(ANN, undo)
    around = replace(undo, refers=other.id)
    assert grades(first, around, other) == {"d": 1}
    assert JudgmentView([first, around, other]).holds(around.id) is JudgmentView(
        [first, other, around]
    ).holds(around.id)


def test_skip_and_cant_tell_remove_the_grade() -> None:
    for action in (Action.skip, Action.cant_tell):
        grade, event = graded(ANN, 2), ANN.event("nlps", "t", "d", action)
        assert grades(grade, event) == {}
        opinion = JudgmentView([event]).opinion("ann", "t", "d")
        assert opinion is not None and opinion.action is action and opinion.grade is None


def test_a_note_changes_no_grade() -> None:
    grade, note = graded(ANN, 2), ANN.event("nlps", "t", "d", Action.note, text="see the other proof")
    view = JudgmentView([grade, note])
    opinion = view.opinion("ann", "t", "d")
    assert opinion is not None and (opinion.grade, opinion.note) == (2, "see the other proof")


def test_the_order_of_arrival_of_events_does_not_matter() -> None:
    first, second = graded(ANN, 1), graded(ANN, 3)
    undo, other = retracted(ANN, second), graded(BEN, 0)
    decisions = [author.event("nlps", "t", "d", Action.adjudicate, grade=number) for number, author in
                 enumerate((BEN, ANN), 4)]  # fmt: skip
    for events in itertools.permutations([first, second, undo, other, *decisions]):
        view = JudgmentView(events)
        opinion = view.opinion("ann", "t", "d")
        assert opinion is not None and opinion.grade == 1
        assert view.decision("t", "d") == decisions[1] and view.latest("t", "d") == decisions[1].order[0]


def test_an_event_is_later_than_the_events_before_it_even_if_the_clock_is_behind() -> None:
    ahead = replace(graded(BEN, 1), time="2999-01-01T01:00:00+01:00")
    later = ANN.event("nlps", "t", "d", Action.skip, after=JudgmentView([ahead]).latest("t", "d"))
    assert later.time == "2999-01-01T00:00:00.000001+00:00"


def test_models_count_only_by_name() -> None:
    events = [graded(ANN, 0), graded(MODEL, 3)]
    assert grades(*events) == {"d": 0}
    assert grades(*events, annotators=["bot"]) == {"d": 3}


def test_a_decision_comes_before_every_opinion_until_it_is_retracted() -> None:
    opinions = [graded(ANN, 0), graded(BEN, 2)]
    decision = ANN.event("nlps", "t", "d", Action.adjudicate, grade=1)
    assert aggregate(JudgmentView(opinions)).disputed == (("t", "d"),)
    assert grades(*opinions, decision) == {"d": 1}
    assert aggregate(JudgmentView([*opinions, decision])).disputed == ()
    assert grades(*opinions, decision, retracted(ANN, decision)) == {"d": 0}


def test_only_opinions_and_decisions_of_named_annotators_count() -> None:
    opinions = [graded(ANN, 0), graded(BEN, 2), graded(Author("dan"), 2)]
    decision = Author("kim").event("nlps", "t", "d", Action.adjudicate, grade=1)
    events = [*opinions, decision]
    assert grades(*events) == {"d": 1}
    assert grades(*events, annotators=["ann"]) == {"d": 0}
    assert grades(*events, annotators=["ann", "ben", "dan"]) == {"d": 2}
    assert grades(*events, annotators=["ann", "kim"]) == grades(*events, annotators=["kim"]) == {"d": 1}
    assert aggregate(JudgmentView(events), Aggregation(annotators=["ann", "ben"])).disputed == (("t", "d"),)
    later = BEN.event("nlps", "t", "d", Action.adjudicate, grade=3)
    assert grades(*events, later, annotators=["ann", "kim"]) == {"d": 1}
    assert grades(*events, annotators=["ann", "ben"], rule=Rule.unanimous) == {}


@pytest.mark.parametrize(
    ("opinions", "majority", "median", "unanimous"),
    [
        ([1, 1, 3], 1, 1, None),
        ([0, 3], 0, 0, None),
        ([0, 2, 3], 2, 2, None),
        ([2, 2], 2, 2, 2),
        ([], None, None, None),
    ],
)
def test_aggregation_rules(
    opinions: list[int], majority: int | None, median: int | None, unanimous: int | None
) -> None:
    assert [combine(opinions, rule) for rule in Rule] == [majority, median, unanimous]


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


def listed(
    view: JudgmentView, wanted: JudgmentFilter | None = None
) -> list[tuple[str, str, str, int | None, str]]:
    return [
        (judgment.annotator, judgment.document_id, judgment.action.value, judgment.grade, judgment.words)
        for judgment in list_judgments(view, wanted)
    ]


def test_current_judgments_are_listed_in_order_of_time(view: JudgmentView) -> None:
    assert listed(view) == [
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
        (JudgmentFilter(with_notes=True), ["b", "c", "d", "a"]),
        (JudgmentFilter(annotators=["ann"], grades=[1], with_notes=True), ["b"]),
        (JudgmentFilter(topics=["nowhere"]), []),
    ],
)
def test_filters_select_judgments(view: JudgmentView, wanted: JudgmentFilter, documents: list[str]) -> None:
    assert [document for _, document, *_ in listed(view, wanted)] == documents
