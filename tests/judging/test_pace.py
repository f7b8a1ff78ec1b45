from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from searchapp.judging.events import Action, Author, Event
from searchapp.judging.judgments import Pace, seconds_each

BEGIN = datetime(2026, 3, 1, 9, tzinfo=UTC)


def moments(*seconds: float) -> list[datetime]:
    return [BEGIN + timedelta(seconds=one) for one in seconds]


def test_breaks_and_what_is_given_at_once_say_nothing_about_pace() -> None:
    assert seconds_each(moments(0, 4, 10, 1000, 1005)) == 5.0
    at_once = [one / 1e6 for one in range(60)]
    assert seconds_each(moments(*at_once, 6, 14)) == pytest.approx(7, abs=1e-3)
    assert seconds_each(moments(0)) is None and seconds_each([]) is None


def test_the_pace_of_the_moment_goes_by_the_latest_judgments() -> None:
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
    for number in range(200):  # several hundred by one key
        pace.add(judged(6118 + number / 1e5))
    assert pace.seconds == 2
    pace.add(judged(0, Action.skip))
    pace.add(judged(6119, rank=None))  # imported
    assert pace.seconds == 2
