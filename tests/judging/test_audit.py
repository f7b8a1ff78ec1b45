"""How judgments were made, on a log whose figures are computed by hand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from searchapp.judging.audit import AnnotatorAudit, JudgingAudit, audit
from searchapp.judging.events import Action, Author, Event, Kind
from searchapp.judging.judgments import ReadingTime
from searchapp.judging.log import JudgmentLog
from searchapp.judging.view import JudgmentView, open_view

BEGIN = datetime(2026, 3, 1, 9, tzinfo=UTC)


def event(
    name: str,
    second: float,
    document: str,
    grade: int | None,
    *,
    kind: Kind = Kind.person,
    action: Action = Action.grade,
    saw_others: bool | None = False,
    refers: str = "",
) -> Event:
    made = Author(name, kind).event(
        "nlps", "t", document, action, grade=grade, rank=1, saw_others=saw_others, refers=refers
    )
    return replace(made, time=(BEGIN + timedelta(seconds=second)).isoformat(timespec="microseconds"))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[JudgmentLog]:
    with JudgmentLog(tmp_path / "judgments.sqlite") as log:
        yield log


def audited(
    log: JudgmentLog,
    events: Iterable[Event],
    names: list[str] | None = None,
    reading: ReadingTime | None = None,
    window: int = 50,
) -> tuple[JudgingAudit, dict[str, AnnotatorAudit]]:
    log.append(list(events))
    result = audit(view_of(log), names, reading or ReadingTime(), window)
    return result, {each.annotator: each for each in result.annotators}


def view_of(log: JudgmentLog) -> JudgmentView:
    return open_view(log, "nlps")


GRADES = {"ann": [1, 0, 1, 0], "ben": [1, 1, 0, 0], "bot": [1, 1, 1, 1]}


def study(names: Iterable[str] = GRADES) -> list[Event]:
    """Return judgments of documents a to d, 10 s apart."""
    return [
        event(name, 10 * number, document, grade, kind=Kind.model if name == "bot" else Kind.person)
        for name in names
        for number, (document, grade) in enumerate(zip("abcd", GRADES[name], strict=True))
    ]


def test_people_are_compared_with_people_and_models_with_people(log: JudgmentLog) -> None:
    result, by_name = audited(log, study(), window=3)
    assert [(each.annotator, each.kind.value) for each in result.annotators] == [
        ("ann", "person"),
        ("ben", "person"),
        ("bot", "model"),
    ]
    ann, ben, bot = by_name.values()
    # ann 1 0 1 0, ben 1 1 0 0: two of four are equal, as by chance.
    assert (ann.others.documents, ann.others.share, ann.others.kappa) == (4, 0.5, 0.0)
    assert (ann.bias, ben.bias, ann.earlier, ann.later) == (0, 0, 0.5, 0.5)
    # The lower median of the people's grades is 1 0 0 0.
    assert (bot.others.share, bot.bias, bot.earlier, bot.later, bot.pace) == (0.25, 0.75, 0.5, 0.0, None)
    first, last = result.windows
    assert (first.documents, first.share, last.documents, last.share) == (3, 1 / 3, 1, 1.0)
    assert (first.first, first.last) == (study()[0].time, study()[2].time)
    assert math.isnan(last.alpha)


def test_named_annotators_are_compared_with_each_other(log: JudgmentLog) -> None:
    result, by_name = audited(log, study(), ["ann", "bot"])
    assert by_name.keys() == {"ann", "bot"}
    assert (by_name["ann"].others.share, by_name["ann"].bias) == (0.5, -0.5)
    assert sum(window.documents for window in result.windows) == 4


def test_a_decision_of_another_annotator_counts_before_the_others(log: JudgmentLog) -> None:
    decided = [
        event("kim", 100, "b", 1, action=Action.adjudicate),
        event("ben", 101, "c", 0, action=Action.adjudicate),
    ]
    _, by_name = audited(log, [*study(["ann", "ben"]), *decided])
    # kim decides b against ann; ben's own decision on c counts for ann, not for ben.
    assert (by_name["ann"].others.share, by_name["ben"].others.share) == (0.5, 0.75)
    assert by_name["kim"].graded == 0 and math.isnan(by_name["kim"].others.share)


def test_only_first_judgments_with_a_known_time_can_be_too_fast(log: JudgmentLog) -> None:
    long = ReadingTime(2.0, 450, {"slow": 75, "long": 90})  # at least 10 s and 12 s
    events = [
        event("ann", 0, "first", 1),  # the time is unknown
        event("ann", 1, "fast", 1),  # below 2 s
        event("ann", 11, "slow", 1),  # exactly 10 s
        event("ann", 22.9, "long", 1),  # below 12 s
        event("ann", 23, "long", 0),  # a second judgment of the same document
        event("ann", 33, "other", 1),
        event("ann", 33.00001, "same key", 1),
        event("ann", 1000, "after a break", 1),
        replace(event("ann", 1000.5, "imported", 1), rank=None),
    ]
    _, by_name = audited(log, events, reading=long)
    pace = by_name["ann"].pace
    assert pace is not None
    assert (pace.timed, pace.too_fast, pace.at_once) == (4, 2, 1)
    assert pace.seconds == 10.0


def test_revisions_are_changes_between_grades_that_hold(log: JudgmentLog) -> None:
    slip = event("ann", 50, "c", 2)
    events = [
        *(event("ann", second, "a", grade) for second, grade in ((0, 0), (10, 2), (20, 2), (30, 0))),
        event("ann", 40, "b", 1),
        event("ann", 45, "b", 0, saw_others=True),
        slip,
        event("ann", 51, "c", None, action=Action.retract, refers=slip.id),
        event("ann", 52, "c", 1),
        event("ann", 60, "d", None, action=Action.cant_tell),
        event("ann", 61, "d", 1),
    ]
    _, by_name = audited(log, events)
    revisions = by_name["ann"].revisions
    assert (revisions.documents, revisions.saw_others) == (2, 1)
    assert revisions.grades == {0: {2: 1}, 1: {0: 1}, 2: {0: 1}}
    assert by_name["ann"].graded == 4


def test_a_log_without_two_annotators_has_no_agreement(log: JudgmentLog) -> None:
    result, by_name = audited(log, study(["bot"]))
    assert result.windows == () and by_name["bot"].others.documents == 0
    assert math.isnan(by_name["bot"].bias) and math.isnan(by_name["bot"].earlier)
