"""Progress and pace of annotators, and scores of rankings by their grades so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchapp.evaluation.measures import measure
from searchapp.judging.agreement import AnnotatorProgress, progress
from searchapp.judging.events import Action, Author, Event
from searchapp.judging.judgments import Pace, TopicScores, mean_topic_scores, seconds_each, topic_scores
from searchapp.judging.log import JudgmentLog
from searchapp.judging.view import open_view


def progress_of(folder: Path, events: Sequence[Event]) -> list[AnnotatorProgress]:
    with JudgmentLog(folder / "judgments.sqlite") as log:
        log.append(events)
        return progress(open_view(log, "nlps"))


def test_first_and_last_judgment_are_compared_across_time_zones(tmp_path: Path) -> None:
    event = Author("ann").event("nlps", "t", "d", Action.grade, grade=1)
    times = ["2026-03-01T09:00:00+00:00", "2026-03-01T10:30:00+02:00", "2026-03-01T01:00:00-09:00"]
    events = [replace(event, id=time, time=time, document_id=time) for time in times]
    (annotator,) = progress_of(tmp_path, events)
    assert (annotator.first, annotator.last) == (times[1], times[2])


def test_the_pace_in_progress_excludes_breaks(tmp_path: Path) -> None:
    event = Author("ann").event("nlps", "t", "d", Action.grade, grade=1, rank=1)
    minutes = ("00:00", "00:04", "00:10", "20:00", "20:05")
    times = [f"2026-03-01T09:{minute}+00:00" for minute in minutes]
    events = [replace(event, id=time, time=time, document_id=time) for time in times]
    (annotator,) = progress_of(tmp_path, events)
    assert (annotator.seconds, annotator.graded) == (5.0, 5)


BEGIN = datetime(2026, 3, 1, 9, tzinfo=UTC)


def moments(*seconds: float) -> list[datetime]:
    return [BEGIN + timedelta(seconds=second) for second in seconds]


def test_the_pace_excludes_breaks_and_grades_given_at_once() -> None:
    assert seconds_each(moments(0, 4, 10, 1000, 1005)) == 5.0
    at_once = [number / 1e6 for number in range(60)]
    assert seconds_each(moments(*at_once, 6, 14)) == pytest.approx(7, abs=1e-3)
    assert seconds_each(moments(0)) is None and seconds_each([]) is None


def test_the_current_pace_is_that_of_the_latest_judgments() -> None:
    def judged(second: float, action: Action = Action.grade, rank: int | None = 1) -> Event:
        author = Author("ann")
        grade = 1 if action is Action.grade else None
        after = BEGIN + timedelta(days=3000, seconds=second)
        return author.event("nlps", "t", "d", action, grade=grade, rank=rank, after=after)

    pace = Pace()
    for number in range(60):
        pace.add(judged(number * 100))
    assert pace.seconds == 100
    for number in range(60):
        pace.add(judged(6000 + number * 2))
    assert pace.seconds == 2
    for number in range(200):  # one key press grades several hundred documents
        pace.add(judged(6118 + number / 1e5))
    assert pace.seconds == 2
    pace.add(judged(0, Action.skip))
    pace.add(judged(6119, rank=None))  # imported
    assert pace.seconds == 2


documents = st.integers(0, 40).map(lambda number: f"d{number}")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(documents, min_size=1, max_size=30, unique=True),
    st.dictionaries(documents, st.integers(0, 6), min_size=1, max_size=25),
)
def test_topic_scores_equal_the_measures(ranking: list[str], grades: dict[str, int]) -> None:
    ranks = {document: rank for rank, document in enumerate(ranking, 1)}
    scores = topic_scores(ranks, grades)
    wanted = measure({"t": ranking}, {"t": grades}, ["AP", "nDCG@10", "Judged@10"]).per_topic
    for value, name in ((scores.ap, "AP"), (scores.ndcg, "nDCG@10"), (scores.judged, "Judged@10")):
        assert abs(value - wanted[name]["t"]) < 1e-12, name


def test_an_empty_ranking_scores_0() -> None:
    assert topic_scores({}, {"d1": 1}) == TopicScores(0.0, 0.0, 0.0)


def test_mean_scores() -> None:
    assert mean_topic_scores([]) is None
    scores = [TopicScores(1.0, 0.5, 0.1), TopicScores(0.0, 0.5, 0.3)]
    assert mean_topic_scores(scores) == TopicScores(0.5, 0.5, 0.2)
